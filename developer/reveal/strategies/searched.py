"""Search for the most informative queries under any mechanism that can be simulated on drawn attributes.

A mechanism is a black box here: rows and attributes go in, gaps come out. By default it is what public laws say of
the mechanism in force. Batches (`CoinTossPlan`) are tried on simulated people with drawn attributes, so the guess can
be scored;
from the best of a coarse grid on, neighbours are tried while they are better, as QueryCheetah does (Stevanoski, Cretu,
de Montjoye 2024). The search sends no query. The distribution of the answers' errors under a plan is measured too,
whatever its source. `best` is a contender: a plan is played only if it beats `best` on fresh draws by more than chance
would, and `best` is played otherwise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from developer.reveal.decode import DecoderInputs, ep
from developer.reveal.decode import best as decoder
from developer.reveal.decode.few_sums import usual_size
from developer.reveal.decode.likelihood import law_of
from developer.reveal.strategies import best
from developer.reveal.strategies.compressed import decide
from developer.reveal.strategies.strategy import SIGNED, PublicTerms, Reveal, StrategyInputs
from fairwall.arrays import Bools, Floats
from fairwall.laws.noise.distributions import Cauchy, Gaussian, Laplace, NoiseDistribution, Uniform

Simulate = Callable[[Floats, Bools, np.random.Generator], Floats]
"""A function from rows, (m, n), the disadvantaged, (n,), and a random generator to the mechanism's gaps, (m,)."""

_GAMES, _FINAL = 6, 20
"""Number of simulated games per plan, and of games in which the last plan is compared with `best`."""

_STEPS = 3
_CHANCE = 2.5
"""Standard errors by which a plan must beat `best`: about one in a hundred plans that are no better does."""


@dataclass(frozen=True)
class CoinTossPlan:
    """A batch of coin-toss rows, each queried `repeats` times, with a share of scores at the upper end."""

    rows: int
    repeats: int
    share: float = 0.5

    def neighbours(self, most: int) -> Iterator[CoinTossPlan]:
        """Yield the plans one step away with at most `most` queries."""
        for rows, repeats in ((2, 1), (0.7, 1), (1.4, 1), (1, 2), (1, 0.5), (0.5, 2), (0.7, 1.5), (1.4, 0.7)):
            plan = CoinTossPlan(max(1, round(self.rows * rows)), max(1, round(self.repeats * repeats)), self.share)
            if plan != self and plan.rows * plan.repeats <= most:
                yield plan
        yield replace(self, share=0.25 if self.share == 0.5 else 0.5)


@dataclass(frozen=True, eq=False)
class SimulatedAuditor:
    """An auditor whose people are simulated."""

    simulate: Simulate
    z: Bools
    rng: np.random.Generator

    def give_up(self, queries: int) -> None:
        """Ignore the renunciation: no budget is spent here."""

    def size(self, row: Floats) -> float:
        """Answer the size query."""
        return float(self.gaps(row[None])[0])

    def gaps(self, rows: Floats) -> Floats:
        """Answer metric queries."""
        return self.simulate(rows, self.z, self.rng)

    def sized_gaps(self, row: Floats, rows: Floats) -> tuple[float, Floats]:
        """Answer both in one batch."""
        answers = self.gaps(np.vstack([row, rows]))
        return float(answers[0]), answers[1:]


def play(inputs: StrategyInputs, simulate: Simulate | None = None) -> Reveal:
    """Play the best plan found, or `best`.

    Where N0 is not public a usual one is assumed, and no size query is sent. `simulate` is the mechanism; None for its
    public law, which exists only for noise on gaps or sums.
    """
    simulate = simulate or by_law(inputs.terms)
    if simulate is None or inputs.queries < 2:
        return best.play(inputs)
    plan = _found(inputs, simulate)
    if plan is None:
        return best.play(inputs)
    law = _measured(inputs, plan, simulate)
    inputs.auditor.give_up(inputs.queries - plan.rows * plan.repeats)
    own = replace(inputs, decode=inputs.decode or decoder.decode, llr=inputs.llr or best.hunch(inputs))
    return _asked(own, plan, law)


def by_law(terms: PublicTerms) -> Simulate | None:
    """Return a simulation of the mechanism in force by its public law; None where no law of a gap's error suffices."""
    if math.isinf(terms.epsilon) or terms.metric not in SIGNED or terms.noise_on not in ("gaps", "sums"):
        return None

    def simulate(rows: Floats, z: Bools, rng: np.random.Generator) -> Floats:
        n0, n1, m = int(z.sum()), int((~z).sum()), len(rows)
        law = law_of(terms, n0=n0, n1=n1, queries=m, epsilon=terms.shares(m)[1]) or Gaussian(0.0)
        return rows @ np.where(z, -1 / n0, 1 / n1) + law.sample(rng, m)

    return simulate


def _found(inputs: StrategyInputs, simulate: Simulate) -> CoinTossPlan | None:
    """Return the best plan of the search, or None where `best` does as well."""
    most = min(inputs.queries, 4 * inputs.people)
    grid = {
        CoinTossPlan(rows, repeats)
        for rows in np.unique(np.geomspace(1, min(most, inputs.people), 7).astype(int)).tolist()
        for repeats in {1, most // rows}
    }
    scores = {plan: _score(inputs, plan, simulate, _GAMES).mean() for plan in sorted(grid, key=str)}
    for _ in range(_STEPS):
        top = max(scores, key=lambda plan: scores[plan])
        new = [plan for plan in top.neighbours(most) if plan not in scores]
        scores |= {plan: _score(inputs, plan, simulate, _GAMES).mean() for plan in new}
        if max(scores, key=lambda plan: scores[plan]) == top:
            break
    top = max(scores, key=lambda plan: scores[plan])
    gain = _score(inputs, top, simulate, _FINAL) - _score(inputs, None, simulate, _FINAL)
    return top if gain.mean() > _CHANCE * gain.std() / math.sqrt(_FINAL) + 1 else None


def _score(inputs: StrategyInputs, plan: CoinTossPlan | None, simulate: Simulate, games: int) -> Floats:
    """Return balanced accuracies in percent, (games,), of a plan, or of `best`, on simulated people."""
    law, scores = None if plan is None else _measured(inputs, plan, simulate), []
    for auditor, rng in itertools.islice(_draws(inputs, simulate), games):
        # The fast decoder for both, and no features, which are unrelated to drawn attributes.
        own = replace(inputs, auditor=auditor, rng=rng, decode=ep.decode, llr=lambda: np.zeros(inputs.people))
        guess = (best.play(own) if plan is None or law is None else _asked(own, plan, law)).guess == 0
        scores.append(50 * float(guess[auditor.z].mean() + (~guess[~auditor.z]).mean()))
    return np.array(scores)


def _draws(inputs: StrategyInputs, simulate: Simulate) -> Iterator[tuple[SimulatedAuditor, np.random.Generator]]:
    """Yield auditors and generators, the same for every plan."""
    for seed in itertools.count():
        rng = np.random.default_rng(seed)
        yield SimulatedAuditor(simulate, rng.permutation(inputs.people) < _size(inputs), rng), rng


def _size(inputs: StrategyInputs) -> int:
    return usual_size(inputs.people) if inputs.terms.n0 is None else inputs.terms.n0


def _batch(inputs: StrategyInputs, plan: CoinTossPlan) -> Floats:
    low, high = (
        np.maximum(inputs.base() - inputs.perturbation, 0.0),
        np.minimum(inputs.base() + inputs.perturbation, 1.0),
    )
    return np.where(inputs.rng.random((plan.rows, inputs.people)) < plan.share, high, low)


def _averaged(inputs: StrategyInputs, plan: CoinTossPlan, rows: Floats) -> Floats:
    """Query every row `repeats` times in one batch, and return the averages."""
    answers: Floats = inputs.auditor.gaps(np.repeat(rows, plan.repeats, axis=0)).reshape(plan.rows, -1)
    averages: Floats = answers.mean(axis=1) if plan.repeats < 3 else np.median(answers, axis=1)
    return averages


def _asked(inputs: StrategyInputs, plan: CoinTossPlan, law: NoiseDistribution) -> Reveal:
    rows, n0 = _batch(inputs, plan), _size(inputs)
    gaps = _averaged(inputs, plan, rows)
    return decide(inputs, DecoderInputs(rows, gaps, n0, inputs.people - n0, law, rng=inputs.rng))


def _measured(inputs: StrategyInputs, plan: CoinTossPlan, simulate: Simulate) -> NoiseDistribution:
    """Return the likeliest error distribution among those with the simulated errors' median."""
    errors = []
    for auditor, rng in itertools.islice(_draws(inputs, simulate), 4):
        own = replace(inputs, auditor=auditor, rng=rng)
        rows = _batch(own, plan)
        exact = rows[:, ~auditor.z].mean(axis=1) - rows[:, auditor.z].mean(axis=1)
        errors.append(_averaged(own, plan, rows) - exact)
    found = np.concatenate(errors)
    median = max(float(np.median(np.abs(found))), 1e-9)
    kinds: tuple[Callable[[float], NoiseDistribution], ...] = (Gaussian, Laplace, Cauchy, Uniform)
    laws = [kind(median / kind(1.0).median_abs()) for kind in kinds]
    return max(laws, key=lambda law: float(np.asarray(law.log_density(found)).sum()))
