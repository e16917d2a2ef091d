"""Searches for questions in the games of groups and of releases, beside plans that were made by hand.

    python benchmarks/searches.py [--games 100] [--part groups] [--part release]

Both answer as compliance does. The groups are those of 1,000 people of Adult; a search may ask for 32 batches of 100
models. Plans by hand are those of docs/groups.md: blocks of 4 models in 1, 2, 8 or 32 batches, and 100 halves. The
release is that of the scenario `ldp-mixture`, beside which at most so many queries are asked, or all of them. Numbers
are percent with 95% intervals, of the groups balanced accuracy; differences are on the same people.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
from numpy.typing import NDArray
from short import parsed

from compliance.answers.groups import released
from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.local_protocols import PROTOCOLS, seeded
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion
from compliance.noise.sampling import Seeded
from compliance.records.groups import Attribute, Grouped
from compliance.records.people import Records
from developer.groups.decode import decode
from developer.groups.subsets import SUBSETS, SearchBounds, SubsetPlan
from developer.groups.subsets import found as plan_of
from developer.release.beliefs import AttributeGuesses, believe
from developer.release.mixture import from_mixture, tossed
from developer.release.searched import found as queries_of
from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.laws.privacy.amounts import part_of
from sim.games import lay_out, read
from sim.games.groups.deal import GroupsDeal
from sim.games.groups.deal import deal as groups_deal
from sim.games.groups.trial import leakage
from sim.games.referee import terms_of
from sim.games.release.deal import ReleaseDeal
from sim.games.release.deal import deal as release_deal

BY_HAND = (*(SubsetPlan("blocks", 16, batches) for batches in (1, 2, 8, 32)), SubsetPlan("halves", 100, 1))


def told(name: str, values: list[float]) -> None:
    """Print a mean with its interval."""
    print(f"  {name:<28}{np.mean(values):6.1f} +- {1.96 * np.std(values) / math.sqrt(len(values)):.1f}", flush=True)


def groups(columns: list[str], epsilon: float, games: int) -> None:
    """Print what plans tell of who is in which group."""
    asked = {"source": "adult", "columns": columns, "people": 1000, "epsilon": epsilon}
    (cell,) = lay_out({"scenario": {"name": "groups", "game": "groups"}, "groups": asked}, "groups").cells
    dealt = [groups_deal(cell, trial, "deal") for trial in range(games)]
    started = time.perf_counter()
    found = plan_of(SearchBounds(tuple(dealt[0].shares), 1000, epsilon, 32, 100))
    print(f"{' by '.join(columns)}, epsilon {epsilon:g}: searched in {time.perf_counter() - started:.1f} s")
    right = {plan: [_asked(plan, one, epsilon, trial) for trial, one in enumerate(dealt)] for plan in (*BY_HAND, found)}
    for plan, values in right.items():
        told(f"{plan.subsets}, {plan.parts} in {plan.batches}", values)
    best = max(BY_HAND, key=lambda plan: np.mean(right[plan]))
    told("less the best by hand", list(np.subtract(right[found], right[best])))


def _asked(plan: SubsetPlan, dealt: GroupsDeal, epsilon: float, trial: int) -> float:
    cards, rng = dealt.groups, np.random.default_rng((trial, 1))
    columns = zip(cards.names, cards.sizes, strict=True)
    attributes = tuple(Attribute(name, tuple(map(str, range(size)))) for name, size in columns)
    people = Grouped(attributes, cards.codes, np.zeros(cards.codes.shape[1], np.uint8))
    header = wire.ByGroupHeader(
        by=cards.names, measures=[wire.MEASURE_SELECTION_RATE], epsilon=part_of(epsilon, plan.batches)
    )
    batches = [SUBSETS[plan.subsets](rng, cards.codes.shape[1], plan.parts) for _ in range(plan.batches)]
    answers = [(batch, released(people, header, batch, Seeded(rng))) for batch in batches]
    return leakage(decode(answers, dealt.shares), dealt.cells)


def release(epsilon: float, share: float, queries: int, games: int) -> None:
    """Print what a release and queries tell of who is advantaged: the searched number of these, and all."""
    settings = {"epsilon": [epsilon], "queries": [queries], "queries_share": [share], "protocol": ["grr"]}
    cells = read("ldp-mixture", [f"release.{key}={value}" for key, value in settings.items()]).cells
    right: dict[str, list[float]] = {"without queries": [], "all": [], "searched": [], "searched less all": []}
    asked, seconds = [], 0.0
    for trial in range(games):
        dealt = release_deal(cells[0], trial, "deal")
        terms = terms_of(dealt.release)
        believed, group = _believed(dealt, terms), dealt.release.protected
        started = time.perf_counter()
        asked.append(queries_of(terms.queried, believed))
        seconds += time.perf_counter() - started
        right["without queries"].append(100 * float((believed.from_everything == group).mean()))
        for name, number in (("all", queries), ("searched", asked[-1])):
            guess = _queried(terms.queried, believed, group, number, trial)
            right[name].append(100 * float((guess == group).mean()))
        right["searched less all"].append(right["searched"][-1] - right["all"][-1])
    middle = np.quantile(asked, (0.1, 0.5, 0.9)).astype(int)
    print(f"epsilon {epsilon:g}, share {share:g}, {queries} queries: {middle} asked")
    print(f"  searched in {seconds / games:.1f} s; 10%, half and 90% of trials ask no more than so many")
    for name, values in right.items():
        told(name, values)


def _believed(dealt: ReleaseDeal, terms: game.ReleaseTerms) -> AttributeGuesses:
    cards, draw = dealt.release, seeded(dealt.compliance.seed)
    if not dealt.releases:
        return believe(terms, dealt.features, dealt.labels, None)
    told = [
        PROTOCOLS[cards.protocol].sanitise(values, column.domain, column.share * cards.epsilon, draw)
        for column, values in zip(cards.columns, cards.values.T, strict=True)
    ]
    return believe(terms, dealt.features, dealt.labels, np.hstack(told))


def _queried(
    asked: game.QueryTerms, believed: AttributeGuesses, group: NDArray[np.uint8], queries: int, trial: int
) -> NDArray[np.uint8]:
    rows = tossed(len(group), queries, trial)
    question = BatchQuestion("sp", rows, Records(np.zeros_like(group), group, ("sp",)))
    noise = Seeded(np.random.default_rng((trial, 2)))
    answers = MECHANISMS[asked.mechanism].release(question, NO_FACTS, asked.epsilon, 0.0, noise).values
    return from_mixture(asked, believed, rows, answers)


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--part", choices=("groups", "release"), action="append")
    asked = parsed(parser, games=1)
    short, parts = asked.games == 1, asked.part or ("groups", "release")
    if "groups" in parts:
        for columns in (["race"],) if short else (["race"], ["race", "sex"]):
            for epsilon in (1.0,) if short else (1.0, 5.0, 20.0):
                groups(columns, epsilon, asked.games)
    if "release" in parts:
        for queries in (10,) if short else (10, 100):
            for epsilon in (2.0,) if short else (1.0, 2.0, 5.0):
                for share in (0.25,) if short else (0.25, 1.0):
                    release(epsilon, share, queries, asked.games)


if __name__ == "__main__":
    main()
