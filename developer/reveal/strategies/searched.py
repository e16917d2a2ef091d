"""Search for the questions that tell most, under any mechanism that can be run on attributes that are drawn.

A mechanism is a black box here: rows and attributes go in, gaps come out. Without one it is what public laws say of the
mechanism in force. Batches (`Plan`) are tried on it, each on people whose attributes are drawn, so that everybody's
guess can be scored; from the best of a coarse grid on, neighbours are tried while they are better, as QueryCheetah does
(Stevanoski, Cretu, de Montjoye 2024). Nothing is asked meanwhile. How answers err under a plan is measured, too: the
law of the errors' size, whatever they come from. `best` is a contender like any other: a plan is asked only if it beats
`best` on fresh draws by more than chance would, and `best` is played else.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from developer.reveal.decode import Evidence, ep
from developer.reveal.decode import best as decoder
from developer.reveal.decode.few_sums import usual_size
from developer.reveal.decode.likelihood import law_of
from developer.reveal.strategies import best
from developer.reveal.strategies.compressed import decide
from developer.reveal.strategies.strategy import SIGNED, Hand, Reveal, Terms
from fairwall.laws.noise import Cauchy, Gaussian, Laplace, Law, Uniform

Simulate = Callable[[NDArray[np.float64], NDArray[np.bool_], np.random.Generator], NDArray[np.float64]]
"""From rows, (m, n), who is disadvantaged, (n,), and draws to the gaps that the mechanism answers, (m,)."""

_GAMES, _FINAL = 6, 20
"""On how many drawn games a plan is tried, and on how many the last one is held against `best`."""

_STEPS = 3
_CHANCE = 2.5
"""By how many standard errors a plan must beat `best`: of a hundred that are no better about one does."""


@dataclass(frozen=True)
class Plan:
    """A batch: so many coin-toss rows, each so often, with so large a share of scores at the upper end."""

    rows: int
    repeats: int
    share: float = 0.5

    def neighbours(self, most: int) -> Iterator[Plan]:
        """Give the plans one step away, of at most so many questions."""
        for rows, repeats in ((2, 1), (0.7, 1), (1.4, 1), (1, 2), (1, 0.5), (0.5, 2), (0.7, 1.5), (1.4, 0.7)):
            plan = Plan(max(1, round(self.rows * rows)), max(1, round(self.repeats * repeats)), self.share)
            if plan != self and plan.rows * plan.repeats <= most:
                yield plan
        yield replace(self, share=0.25 if self.share == 0.5 else 0.5)


@dataclass(frozen=True, eq=False)
class Drawn:
    """An auditor whose people are drawn."""

    simulate: Simulate
    z: NDArray[np.bool_]
    rng: np.random.Generator

    def give_up(self, queries: int) -> None:
        """Plan for fewer questions: nothing is paid here."""

    def size(self, row: NDArray[np.float64]) -> float:
        """Answer the size query."""
        return float(self.gaps(row[None])[0])

    def gaps(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Answer metric queries."""
        return self.simulate(rows, self.z, self.rng)

    def sized_gaps(self, row: NDArray[np.float64], rows: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Answer both in one batch."""
        answers = self.gaps(np.vstack([row, rows]))
        return float(answers[0]), answers[1:]


def play(hand: Hand, simulate: Simulate | None = None) -> Reveal:
    """Play the plan that was found, or `best`.

    Parameters
    ----------
    hand : what is played with; where N0 is not public a usual one is assumed, and not asked for.
    simulate : the mechanism; None for what is public of it. What is no noise on gaps or sums has no such law.
    """
    simulate = simulate or by_law(hand.terms)
    if simulate is None or hand.queries < 2:
        return best.play(hand)
    plan = _found(hand, simulate)
    if plan is None:
        return best.play(hand)
    law = _measured(hand, plan, simulate)
    hand.auditor.give_up(hand.queries - plan.rows * plan.repeats)
    own = replace(hand, decode=hand.decode or decoder.decode, llr=hand.llr or best.hunch(hand))
    return _asked(own, plan, law)


def by_law(terms: Terms) -> Simulate | None:
    """Answer as the mechanism in force does, by its public law; None where no law of a gap's error says all."""
    if math.isinf(terms.epsilon) or terms.metric not in SIGNED or terms.noise_on not in ("gaps", "sums"):
        return None

    def simulate(rows: NDArray[np.float64], z: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.float64]:
        n0, n1, m = int(z.sum()), int((~z).sum()), len(rows)
        law = law_of(terms, n0=n0, n1=n1, queries=m, epsilon=terms.shares(m)[1]) or Gaussian(0.0)
        return rows @ np.where(z, -1 / n0, 1 / n1) + law.sample(rng, m)

    return simulate


def _found(hand: Hand, simulate: Simulate) -> Plan | None:
    """Climb to a plan; None where `best` does as well."""
    most = min(hand.queries, 4 * hand.people)
    grid = {
        Plan(rows, repeats)
        for rows in np.unique(np.geomspace(1, min(most, hand.people), 7).astype(int)).tolist()
        for repeats in {1, most // rows}
    }
    scores = {plan: _score(hand, plan, simulate, _GAMES).mean() for plan in sorted(grid, key=str)}
    for _ in range(_STEPS):
        top = max(scores, key=lambda plan: scores[plan])
        new = [plan for plan in top.neighbours(most) if plan not in scores]
        scores |= {plan: _score(hand, plan, simulate, _GAMES).mean() for plan in new}
        if max(scores, key=lambda plan: scores[plan]) == top:
            break
    top = max(scores, key=lambda plan: scores[plan])
    gain = _score(hand, top, simulate, _FINAL) - _score(hand, None, simulate, _FINAL)
    return top if gain.mean() > _CHANCE * gain.std() / math.sqrt(_FINAL) + 1 else None


def _score(hand: Hand, plan: Plan | None, simulate: Simulate, games: int) -> NDArray[np.float64]:
    """Play a plan, or `best`, on so many draws: balanced accuracies in percent, (games,)."""
    law, scores = None if plan is None else _measured(hand, plan, simulate), []
    for auditor, rng in itertools.islice(_draws(hand, simulate), games):
        # The quick decoder for both, and nothing that features say: draws have nothing to do with them.
        own = replace(hand, auditor=auditor, rng=rng, decode=ep.decode, llr=lambda: np.zeros(hand.people))
        guess = (best.play(own) if plan is None or law is None else _asked(own, plan, law)).guess == 0
        scores.append(50 * float(guess[auditor.z].mean() + (~guess[~auditor.z]).mean()))
    return np.array(scores)


def _draws(hand: Hand, simulate: Simulate) -> Iterator[tuple[Drawn, np.random.Generator]]:
    """Draw people and randomness, the same ones for every plan."""
    for seed in itertools.count():
        rng = np.random.default_rng(seed)
        yield Drawn(simulate, rng.permutation(hand.people) < _size(hand), rng), rng


def _size(hand: Hand) -> int:
    return usual_size(hand.people) if hand.terms.n0 is None else hand.terms.n0


def _batch(hand: Hand, plan: Plan) -> NDArray[np.float64]:
    low, high = np.maximum(hand.base() - hand.perturbation, 0.0), np.minimum(hand.base() + hand.perturbation, 1.0)
    return np.where(hand.rng.random((plan.rows, hand.people)) < plan.share, high, low)


def _averaged(hand: Hand, plan: Plan, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ask every row so often in one batch, and average."""
    answers: NDArray[np.float64] = hand.auditor.gaps(np.repeat(rows, plan.repeats, axis=0)).reshape(plan.rows, -1)
    averages: NDArray[np.float64] = answers.mean(axis=1) if plan.repeats < 3 else np.median(answers, axis=1)
    return averages


def _asked(hand: Hand, plan: Plan, law: Law) -> Reveal:
    rows, n0 = _batch(hand, plan), _size(hand)
    gaps = _averaged(hand, plan, rows)
    return decide(hand, Evidence(rows, gaps, n0, hand.people - n0, law, rng=hand.rng))


def _measured(hand: Hand, plan: Plan, simulate: Simulate) -> Law:
    """Measure how answers err: the likeliest of the laws that have the errors' median."""
    errors = []
    for auditor, rng in itertools.islice(_draws(hand, simulate), 4):
        own = replace(hand, auditor=auditor, rng=rng)
        rows = _batch(own, plan)
        exact = rows[:, ~auditor.z].mean(axis=1) - rows[:, auditor.z].mean(axis=1)
        errors.append(_averaged(own, plan, rows) - exact)
    found = np.concatenate(errors)
    median = max(float(np.median(np.abs(found))), 1e-9)
    kinds: tuple[Callable[[float], Law], ...] = (Gaussian, Laplace, Cauchy, Uniform)
    laws = [kind(median / kind(1.0).median_abs()) for kind in kinds]
    return max(laws, key=lambda law: float(np.asarray(law.log_density(found)).sum()))
