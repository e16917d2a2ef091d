"""The least favourable models of a batch: those whose answer is least probably near its true gap.

The true gap is not known before the batch is answered, and where answers are clamped, or counts are released, the
error's distribution depends on it: so the least probability over all models counts, and the promise holds for any gap.
Models decide 0 or 1 here: a model is two counts in each stratum, the people of each group with a 1. For few people all
models are tried; for many, a lattice that gets finer around the least probabilities. Where there is no closed form,
probabilities are shares of draws, with a standard error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol, TypeAlias

import numpy as np

from fairwall.arrays import Floats
from fairwall.laws.metrics.metric import Metric
from sim.planning import PlanError

Array: TypeAlias = Floats
Sums: TypeAlias = tuple[Array, Array]
"""Disadvantaged and advantaged people of a stratum with a decision of 1, in k cases: shape (k,) each."""

_STRICTLY = 2e-9
_ALL = 4000
_LATTICE = 13
_FINER = 2
_STARTS = 3
_DESCENTS = 5
_START_RATES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
_SEED = 2012
_FIRST_DRAWS, _DRAWS_MIN, _DRAWS = 100, 400, 4000
_NUMBERS = 30_000
_FINALISTS = 2


class Computed(Protocol):
    """The distribution of a stratum's released gap, where it has a closed form."""

    def inside(self, low: Array, high: Array, sum0: Array, sum1: Array) -> Array:
        """Return P(low <= released gap <= high) in k cases, shape (k,)."""


class SampledGap(Protocol):
    """The distribution of a stratum's released gap, by draws."""

    @property
    def numbers(self) -> int:
        """Number of answers that one draw needs."""

    def draw(self, sum0: float, sum1: float, generator: np.random.Generator, size: int) -> Array:
        """Draw released gaps, shape (size,)."""


@dataclass(frozen=True)
class Worst:
    """The least favourable model, and the probability that its released gap is within reach of its true gap.

    ``error`` is the probability's standard error, 0 where it is computed. ``ones`` and ``rates`` are numbers and shares
    of the groups' people with a 1 in each stratum, unless only the gap matters. ``case`` is the index of the laws
    drawn.
    """

    probability: float
    error: float
    gap: float
    ones: tuple[tuple[int, int], ...] | None
    rates: tuple[tuple[float, float], ...] = ()
    case: int = 0


@dataclass(frozen=True)
class Near:
    """The demand on an answer: within F of the metric's true gap, for (n0, n1) people in each stratum."""

    metric: Metric
    groups: Sequence[tuple[int, int]]
    within: float

    def worst(self, probability: float, ones: tuple[tuple[int, int], ...], error: float = 0.0, case: int = 0) -> Worst:
        """Return the least favourable model with its true gap and rates."""
        rates = tuple((s0 / n0, s1 / n1) for (n0, n1), (s0, s1) in zip(self.groups, ones, strict=True))
        return Worst(probability, error, true_gap(self.metric, self.groups, ones), ones, rates, case)


def least_computed(near: Near, laws: Sequence[Computed]) -> Worst:
    """Return the least favourable model by closed forms, for ``eodds_max`` or a difference of means."""
    groups = near.groups
    if len(groups) > 1 and math.prod((n0 + 1) * (n1 + 1) for n0, n1 in groups) <= _ALL:
        models = [range(n + 1) for pair in groups for n in pair]
        every = [axis.ravel().astype(np.float64) for axis in np.meshgrid(*models, indexing="ij")]
        sums = list(zip(every[::2], every[1::2], strict=True))
        least = int(np.argmin(probabilities(near, laws, sums)))
        return computed_at(near, laws, tuple((int(a[least]), int(b[least])) for a, b in sums))
    return near.worst(*min((_descend(near, laws, [*start]) for start in _starts(near, laws)), key=lambda pair: pair[0]))


def _starts(near: Near, laws: Sequence[Computed]) -> list[tuple[tuple[int, int], ...]]:
    groups = near.groups
    if len(groups) == 1:
        return [((0, 0),)]
    some = [
        sorted({(round(r0 * n0), round(r1 * n1)) for r0, r1 in product(_START_RATES, repeat=2)}) for n0, n1 in groups
    ]
    models = list(product(*some))
    sums = [
        (np.array([float(model[i][0]) for model in models]), np.array([float(model[i][1]) for model in models]))
        for i in range(len(groups))
    ]
    found = probabilities(near, laws, sums)
    # The first step keeps the last stratum's model, so each start has a different one.
    starts: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
    for i in np.argsort(found, kind="stable"):
        starts.setdefault(models[i][-1], models[i])
    return list(starts.values())[:_DESCENTS]


def _descend(
    near: Near, laws: Sequence[Computed], ones: list[tuple[int, int]]
) -> tuple[float, tuple[tuple[int, int], ...]]:
    best, strata = math.inf, len(near.groups)
    for i in [*range(strata), *range(strata - 1)]:

        def probability(sums: Sums, i: int = i) -> Array:
            fixed = [(np.full(sums[0].shape, float(a)), np.full(sums[0].shape, float(b))) for a, b in ones]
            fixed[i] = sums
            return probabilities(near, laws, fixed)

        best, ones[i] = _least_of_one(probability, *near.groups[i])
    return best, tuple(ones)


def computed_at(near: Near, laws: Sequence[Computed], ones: tuple[tuple[int, int], ...]) -> Worst:
    """Return the probability for one model; arguments as for `least_computed`."""
    sums = [(np.array([float(s0)]), np.array([float(s1)])) for s0, s1 in ones]
    return near.worst(float(probabilities(near, laws, sums)[0]), ones)


def probabilities(near: Near, laws: Sequence[Computed], sums: Sequence[Sums]) -> Array:
    """Return P(abs(released - true gap) <= within) in k cases, shape (k,); arguments as for `least_computed`."""
    metric, within = near.metric, near.within
    gaps = [_gaps(*pair) for pair in zip(near.groups, sums, strict=True)]
    if not metric.of_means and metric.joined != "max":
        raise PlanError(f"--metric: the law of {metric.name} has no closed form")
    if not metric.absolute:
        (law,), (gap,), (pair,) = laws, gaps, sums
        return law.inside(gap - within, gap + within, *pair)
    largest = np.maximum.reduce([np.abs(gap) for gap in gaps])

    def all_at_most(x: Array) -> Array:
        # The probability that no stratum's gap is farther from 0 than x; strata are independent.
        return np.asarray(np.multiply.reduce([law.inside(-x, x, *pair) for law, pair in zip(laws, sums, strict=True)]))

    below = largest - within - _STRICTLY
    return all_at_most(largest + within) - np.where(below > 0, all_at_most(np.maximum(below, 0.0)), 0.0)


def least_drawn(near: Near, alternatives: Sequence[Sequence[SampledGap]]) -> Worst:
    """Return the least favourable of some models by draws; ``alternatives`` has the strata's laws of each case."""
    models = [list(_few(n0, n1, near.within)) for n0, n1 in near.groups]
    first = []
    for case, laws in enumerate(alternatives):
        drawn = [
            [_drawn(law, pair, _FIRST_DRAWS, i) for pair in some]
            for i, (law, some) in enumerate(zip(laws, models, strict=True))
        ]
        for chosen in product(*(range(len(some)) for some in models)):
            model = tuple(some[i] for some, i in zip(models, chosen, strict=True))
            gaps = [some[i] for some, i in zip(drawn, chosen, strict=True)]
            first.append((_share(near, gaps, model), case, model))
    last = [
        drawn_at(near, alternatives, model, case)
        for _, case, model in sorted(first, key=lambda row: row[0])[:_FINALISTS]
    ]
    return min(last, key=lambda worst: worst.probability)


def drawn_at(
    near: Near,
    alternatives: Sequence[Sequence[SampledGap]],
    ones: tuple[tuple[int, int], ...],
    case: int,
    draws: int | None = None,
) -> Worst:
    """Return the probability for one model and one case of the laws, by draws; arguments as for `least_drawn`."""
    laws = alternatives[case]
    if draws is None:
        draws = min(_DRAWS, max(_DRAWS_MIN, _NUMBERS // max(law.numbers for law in laws)))
    gaps = [_drawn(law, pair, draws, i) for i, (law, pair) in enumerate(zip(laws, ones, strict=True))]
    share = _share(near, gaps, ones)
    # Not 0 where all draws agree: a further draw might differ.
    error = math.sqrt(max(share * (1 - share), 1 / draws) / draws)
    return near.worst(share, ones, error, case)


def true_gap(metric: Metric, groups: Sequence[tuple[int, int]], ones: Sequence[tuple[int, int]]) -> float:
    """Return the metric of a model, given the people of each group with a 1 in each stratum."""
    gaps = [s1 / n1 - s0 / n0 for (n0, n1), (s0, s1) in zip(groups, ones, strict=True)]
    return float(metric.of_gaps([np.array([gap]) for gap in gaps])[0])


def _drawn(law: SampledGap, ones: tuple[int, int], draws: int, stratum: int) -> Array:
    # The same seed, so the same noise for every model where the law draws alike.
    return law.draw(float(ones[0]), float(ones[1]), np.random.default_rng((_SEED, stratum)), draws)


def _share(near: Near, gaps: Sequence[Array], ones: Sequence[tuple[int, int]]) -> float:
    errors = near.metric.of_gaps(gaps) - true_gap(near.metric, near.groups, ones)
    return float(np.mean(np.abs(errors) <= near.within + _STRICTLY))


def _gaps(groups: tuple[int, int], sums: Sums) -> Array:
    return sums[1] / groups[1] - sums[0] / groups[0]


def _least_of_one(probability: Callable[[Sums], Array], n0: int, n1: int) -> tuple[float, tuple[int, int]]:
    if (n0 + 1) * (n1 + 1) <= _ALL:
        return _least_among(probability, _lattice(np.arange(n0 + 1.0), np.arange(n1 + 1.0)))[0]
    rates = np.linspace(0, 1, _LATTICE)
    sums = _lattice(np.rint(rates * n0), np.rint(rates * n1))
    # Half of the lattice is enough: exchanging 0 and 1 changes the signs of the gap and its error.
    half = sums[0] / n0 + sums[1] / n1 <= 1 + 1 / min(n0, n1)
    sums = sums[0][half], sums[1][half]
    found = _least_among(probability, sums)
    steps = n0 / (_LATTICE - 1), n1 / (_LATTICE - 1)
    while max(steps) > 1:
        around = np.arange(-_FINER, _FINER + 1) / _FINER
        near = [
            _lattice(
                *(np.clip(np.rint(at + step * around), 0, n) for at, step, n in zip(ones, steps, (n0, n1), strict=True))
            )
            for _, ones in found
        ]
        sums = np.concatenate([a for a, _ in near]), np.concatenate([b for _, b in near])
        found = sorted([*found, *_least_among(probability, sums)], key=lambda pair: pair[0])[:_STARTS]
        steps = steps[0] / _FINER, steps[1] / _FINER
        if max(steps) < max(n0, n1) / 500:
            break
    return found[0]


def _least_among(probability: Callable[[Sums], Array], sums: Sums) -> list[tuple[float, tuple[int, int]]]:
    found = probability(sums)
    return [(float(found[i]), (int(sums[0][i]), int(sums[1][i]))) for i in np.argsort(found, kind="stable")[:_STARTS]]


def _lattice(first: Array, second: Array) -> Sums:
    sum0, sum1 = np.meshgrid(np.unique(first), np.unique(second), indexing="ij")
    return sum0.ravel(), sum1.ravel()


def _few(n0: int, n1: int, within: float) -> Iterator[tuple[int, int]]:
    """Yield models to draw, with gaps small and large compared with F, at two overall rates."""
    for rate, factors in ((0.5, (0.0, 0.5, 1.05, 1.5, 2.0, 3.0, 1 / within)), (0.2, (0.0, 1.05, 2.0))):
        for gap in (factor * within for factor in factors):
            share = n1 / (n0 + n1)
            high, low = rate + gap * (1 - share), rate - gap * share
            yield tuple(  # type: ignore[misc]
                round(min(max(mean, 0.0), 1.0) * n) for mean, n in ((low, n0), (high, n1))
            )
