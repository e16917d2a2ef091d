"""What a whole budget gives away: what is told beside what the best attack known here finds out, played end to end.

    python benchmarks/revealed.py [--epsilon 4] [--people 600] [--trials 40] [--mechanisms cells ...] [--batches 1 4 20]

A budget is spent in 1, 4 or 20 batches on people of whom 0.5 to 50% are disadvantaged. Each batch is answered by the
mechanism itself and charged to a ledger, which affords no more than all of them. The attacker knows how many people are
disadvantaged, and everything that was released: the noisy counts of cells and tables, noisy attributes, or answers.
Batches are made for the attack: cells and strata of people drawn at random, or models that accept a random half. `eo`
is asked about half of the people, those with label 1; all else is `sp`.

Counts are read by belief propagation: each person's odds from each count, given what the others' odds leave open of
it. Answers are read by expectation propagation (`developer.reveal.decode.ep`); of those of `recommended` nothing but
the cells that it bought. Played is the mean balanced accuracy with its standard error. Told is `revealed_by_budget` for
groups of just that size: the worst split, whatever the batches are. Exit status 1 if any is played at more than is told
and three standard errors.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp
from short import parsed

from compliance.answers.audits import AuditCase, facts_of, values_of
from compliance.answers.charging import DEVELOPER, game_ledger
from compliance.answers.exposure import limited, offers
from compliance.answers.groups import GroupCase
from compliance.ledger.accountant import Budget, Neighbours
from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.randomized_response import ATTRIBUTES, EPSILON
from compliance.records.groups import Attribute, Grouped
from compliance.records.people import Records
from developer.reveal.decode import ep
from developer.reveal.decode.decoder import DecoderInputs
from developer.reveal.strategies.strategy import PublicTerms
from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.laws.choice.cell_purchases import EPSILON as CELLS_EPSILON
from fairwall.laws.choice.cell_purchases import purchases
from fairwall.laws.mechanisms.table import MECHANISM_LAWS, NoiseInputs
from fairwall.laws.metrics.group_size_range import Shares
from fairwall.laws.privacy.budget_exposure import STRATUM, AuditOffer, most_by_budget, revealed_by_budget
from fairwall.laws.privacy.exposure import REVEAL_MAX, Limit, cells_within, least_people_within
from fairwall.rpc.arrays import from_message

SHARES = (0.005, 0.02, 0.1, 0.5)
MODELS = 20
KINDS = ("cells", "recommended", "eo", "by group", "counts", "cube", "laplace", "randomized-response")
ROUNDS, SHARPER = 12, 1e-6
"""Of belief propagation; and by how much a batch costs more than the one before, so that it buys anew."""


@dataclass(frozen=True, eq=False)
class Counted:
    """Noisy counts of disadvantaged people: who is in which, and the law of their noise, P(k) ~ exp(-rate |k|)."""

    cell_of: NDArray[np.intp]
    counts: NDArray[np.float64]
    rate: float


def log_odds(told: list[Counted], n: int, n0: int) -> NDArray[np.float64]:
    """Return each person's log-likelihood ratio by belief propagation, shape (n,)."""
    prior = math.log(n0 / (n - n0))
    messages = np.zeros((len(told), n))
    for _ in range(ROUNDS):
        for number, one in enumerate(told):
            p = 1 / (1 + np.exp(-np.clip(prior + messages.sum(axis=0) - messages[number], -30, 30)))
            # The others of a count are as many coins as have their mean and variance.
            mean, spread = (np.bincount(one.cell_of, each)[one.cell_of] - each for each in (p, p * (1 - p)))
            mean, spread = np.maximum(mean, 1e-6), np.maximum(spread, 1e-7)
            odds = np.clip(1 - spread / mean, 1e-6, 1 - 1e-6)
            coins = mean / odds
            x = np.arange(math.ceil(float((mean + 7 * np.sqrt(spread)).max())) + 4)[:, np.newaxis]
            with np.errstate(invalid="ignore"):
                law = gammaln(coins + 1) - gammaln(x + 1) - gammaln(np.maximum(coins - x, -0.999) + 1)
                law = np.where(x < coins + 1, law + x * np.log(odds) + (coins - x) * np.log1p(-odds), -np.inf)
            seen = one.counts[one.cell_of]
            ratio = logsumexp(law - one.rate * np.abs(seen - 1 - x), axis=0) - logsumexp(
                law - one.rate * np.abs(seen - x), axis=0
            )
            messages[number] += 0.6 * (ratio - messages[number])
    found: NDArray[np.float64] = messages.sum(axis=0)
    return found


@dataclass(frozen=True, eq=False)
class World:
    """People, and those among them whom the attack is about."""

    records: Records
    inside: NDArray[np.bool_]
    limit: Limit
    rng: np.random.Generator

    @property
    def z(self) -> NDArray[np.bool_]:
        """Who of them is disadvantaged."""
        found: NDArray[np.bool_] = (self.records.protected == 0)[self.inside]
        return found


def world(people: int, share: float, metric: str, seed: int) -> World:
    """Draw people of whom just so many are disadvantaged, of both labels as many."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(people) % 2).astype(np.uint8)
    inside = labels == 1 if metric == "eo" else np.ones(people, np.bool_)
    protected = np.ones(people, np.uint8)
    for members in (inside, ~inside):
        among = np.flatnonzero(members)
        least = min(max(1, round(share * len(among))), (len(among) - 1) // 2)
        protected[rng.permutation(among)[:least]] = 0
    least = int(np.count_nonzero(protected[inside] == 0))
    records = Records(labels, protected, (metric,), least)
    return World(records, inside, Limit(REVEAL_MAX, Shares(minimum_group=least, by_policy=True)), rng)


def opened(kind: str, here: World, epsilon: float) -> AuditCase:
    """Open an account of so much."""
    name = {"eo": "cells", "by group": "counts"}.get(kind, kind)
    mechanism = limited(MECHANISMS[name], here.limit)
    ledger = game_ledger("people", Neighbours.A_FLIP, Budget(epsilon))
    seed = here.rng.bytes(32)
    return AuditCase("people", here.records, mechanism, ledger, 100_000, seed=seed, shares=here.limit.shares)


def sold(kind: str, here: World) -> list[AuditOffer]:
    """Say what is sold, as a service says it of its policy."""
    case = opened(kind, here, 1.0)
    found = offers(
        here.records, case.mechanism, MODELS, (1e-3, math.inf, 0.0), here.limit, by_group=kind == "by group", released=0
    )
    return [AuditOffer(("tables",), *list(vars(each).values())[1:]) for each in found] if kind == "by group" else found


def costs(epsilon: float, batches: int) -> list[float]:
    """Part a budget into batches that cost next to the same, and each a little more than the one before."""
    each = math.floor(epsilon / batches / SHARPER) * SHARPER - batches * SHARPER
    return [round(each + number * SHARPER, 9) for number in range(batches)] if batches > 1 else [epsilon]


def by_cells(kind: str, here: World, paid: list[float]) -> NDArray[np.float64]:
    """Buy cells of people drawn at random, and read all counts."""
    metric, n = here.records.metrics[0], len(here.inside)
    case, among = opened(kind, here, sum(paid) + 1e-9), np.flatnonzero(here.inside)
    for number, epsilon in enumerate(paid):
        most = min(
            cells_within(len(among), epsilon, here.limit), len(among) // least_people_within(epsilon, here.limit), 100
        )
        score = here.rng.random(n)
        score[among] = (here.rng.permutation(len(among)) + 0.5) / len(among)
        cuts = np.arange(1, max(most, 6)) / max(most, 6)
        case.answer(DEVELOPER, f"r{number}", b"", metric, (score > cuts[:, np.newaxis]).astype(np.float64), epsilon)
    facts = facts_of(case.ledger.facts("people", DEVELOPER))
    n0 = int(here.z.sum())
    told = [
        Counted(one.cell_of[here.inside], one.counts, epsilon)
        for one, epsilon in zip(purchases(facts), facts.get(CELLS_EPSILON, ()), strict=True)
    ]
    return log_odds(told, len(among), n0)


def by_tables(kind: str, here: World, paid: list[float]) -> NDArray[np.float64]:
    """Buy counts by group of strata drawn at random, and read all of them."""
    case, n = opened(kind, here, sum(paid) + 1e-9), len(here.inside)
    groups = Grouped(
        (Attribute("group", ("0", "1")),), here.records.protected[np.newaxis], np.zeros(n, np.uint8)
    )  # fmt: skip
    tables, told = GroupCase(case, groups, 0.0, here.limit), list[Counted]()
    for number, epsilon in enumerate(paid):
        stratum = here.rng.permutation(n) * max(2, n // STRATUM) // n
        models = (stratum >> np.arange(max(1, int(stratum.max()).bit_length()))[:, np.newaxis] & 1).astype(np.float64)
        header = wire.ByGroupHeader(by=("group",), measures=(wire.MEASURE_SELECTION_RATE,), epsilon=epsilon)
        entry = tables.answer(DEVELOPER, f"r{number}", b"", header, models)
        for table in wire.GroupRelease.FromString(entry.reply.answer).tables:
            hits, counts = np.asarray(from_message(table.hits)).T, np.asarray(from_message(table.counts), np.float64)
            cell_of = np.argmax((models[list(table.models)].T[:, np.newaxis] == hits).all(axis=2), axis=1)
            told.append(Counted(cell_of, counts[:, 0], 2 * table.rate))
    return log_odds(told, n, int(here.z.sum()))


def by_response(kind: str, here: World, paid: list[float]) -> NDArray[np.float64]:
    """Buy noisy attributes again and again, and add up what they say."""
    case, n = opened(kind, here, sum(paid) + 1e-9), len(here.inside)
    for number, epsilon in enumerate(paid):
        case.answer(DEVELOPER, f"r{number}", b"", "sp", here.rng.random((1, n)), epsilon)
    facts = facts_of(case.ledger.facts("people", DEVELOPER))
    copies = np.atleast_2d(facts[ATTRIBUTES]).astype(np.float64)
    found: NDArray[np.float64] = facts[EPSILON] @ (1 - 2 * copies)
    return found + here.rng.uniform(-1e-9, 1e-9, n)


def by_halves(kind: str, here: World, paid: list[float]) -> NDArray[np.float64]:
    """Ask about models that accept a random half, and read their gaps."""
    n, n0 = len(here.inside), int(here.z.sum())
    case, c = opened(kind, here, sum(paid) + 1e-9), 1 / n0 + 1 / (n - n0)
    rows, x, scales = [], [], []
    for number, epsilon in enumerate(paid):
        models = (np.argsort(here.rng.random((4, n)), axis=1) < n // 2).astype(np.float64)
        entry = case.answer(DEVELOPER, f"r{number}", b"", "sp", models, epsilon)
        public = MECHANISM_LAWS[kind]
        if public.noise_on == "gaps":
            law = public.error(NoiseInputs("sp", n0, n - n0, len(models), epsilon, shares=here.limit.shares))
            told = DecoderInputs(models, values_of(entry), n0, n - n0, law)
        else:
            terms = PublicTerms(mechanism=kind, epsilon=epsilon, n0=n0)
            told = ep.settled(terms, None, models, values_of(entry), size_epsilon=0.0, epsilon=epsilon)
        own = 1 / told.n0 + 1 / told.n1
        rows.append(told.rows)
        x.append(told.gaps * c / own)
        assert told.noise is not None, kind
        scales.append(ep.rescaled(told.noise, c / own))
    evidence = DecoderInputs(np.vstack(rows), np.concatenate(x), n0, n - n0, scales[0], None, here.rng)
    return ep.posterior(evidence).log_odds - math.log(n0 / (n - n0))


ATTACKS: dict[str, Callable[[str, World, list[float]], NDArray[np.float64]]] = {
    "by group": by_tables,
    "randomized-response": by_response,
    **dict.fromkeys(("cells", "recommended", "eo"), by_cells),
    **dict.fromkeys(("counts", "cube", "laplace"), by_halves),
}


def played(kind: str, people: int, share: float, paid: list[float], trials: int) -> tuple[float, float]:
    """Play an attack: the mean balanced accuracy, and its standard error."""
    found = []
    for trial in range(trials):
        here = world(people, share, "eo" if kind == "eo" else "sp", trial)
        guess, z = ATTACKS[kind](kind, here, paid) > 0, here.z
        found.append((guess[z].mean() + (~guess[~z]).mean()) / 2)
    return float(np.mean(found)), float(np.std(found, ddof=1) / math.sqrt(trials)) if trials > 1 else math.inf


def lines(asked: argparse.Namespace) -> Iterator[tuple[str, bool]]:
    """Give the table's lines, each with whether more was played than is told."""
    for kind in asked.mechanisms:
        for share in asked.shares:
            here = world(asked.people, share, "eo" if kind == "eo" else "sp", 0)
            told = max(revealed_by_budget(offer, asked.epsilon) for offer in sold(kind, here))
            proved = most_by_budget(len(here.z), int(here.z.sum()), asked.epsilon)
            for batches in asked.batches:
                mean, error = played(kind, asked.people, share, costs(asked.epsilon, batches), asked.trials)
                over = mean > told + 3 * error
                percent = f"{100 * told:5.1f}  {100 * mean:6.1f} +- {100 * error:4.1f}  {100 * proved:6.1f}"
                yield f"{kind:20}{100 * share:8.1f}%{batches:9d}  {percent}{'  ABOVE' * over}", over


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--people", type=int, default=600)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--mechanisms", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 4, 20])
    parser.add_argument("--shares", nargs="+", type=float, default=SHARES)
    asked = parsed(parser, trials=2, people=200, shares=[0.1], batches=[2])
    print(
        f"{asked.people} people, epsilon {asked.epsilon:g} in all, {asked.trials} trials, balanced accuracy in percent"
    )
    print(f"{'':20}minority  batches   told  played           proved")
    above = 0
    for line, over in lines(asked):
        print(line, flush=True)
        above += over
    sys.exit(1 if above else 0)


if __name__ == "__main__":
    main()
