"""Predict, without looking at A, the error and the interval's width of each mechanism, and rank mechanisms by it.

**Contenders.** Mechanisms that answer with gaps and whose guarantee fits (pure ones for delta = 0, all for delta > 0),
with answers clamped to the metric's range; and the free public midpoint of that range. `sample-and-aggregate` and
`propose-test-release` are left out: counts or noisy attributes have erred less wherever measured (docs/mechanisms.md).
`counts` and `counts-gaussian` also appear with answers moved towards no gap where noise hides them
(`fairwall.laws.noise.count_noise`); where no mechanism beats the midpoint, these come close to it.

**Simulation.** Over a public range of group shares and two worlds: uniform scores with no gap beyond chance, and 0/1
decisions, a quarter of them 1, with a gap of 0.1 besides chance. The seed is fixed, so that everybody gets the same
table. Nothing reads A or predictions.

**Selection.** The least error, averaged over shares and worlds, among mechanisms whose median error is at most the
midpoint's at every share and in both worlds: nobody should pay for less than the midpoint tells. If none qualifies,
the one closest to that. The error is the mean of the median and the root mean square, so that neither few large nor
many small errors go unseen. A mechanism without intervals wins only if every one with intervals errs `_SURER` times as
much.

**Guaranteed.** Where a policy wants guaranteed intervals, only mechanisms that have them contend, and the least
half-width wins: the 95% quantile of unshrunk errors, or what noisy attributes promise.

Equalized odds is ranked by the error of an absolute gap among n people. Predictive parity (one person moves it by up to
1 at any group size) and the unbounded ratio get counts and noisy attributes only.

**Reveal limit.** With a limit, only mechanisms contend whose best attack (`fairwall.laws.privacy.exposure`) stays
within that balanced accuracy, with no more cells than it allows. If none does, the one that reveals least is taken.

An interval is as wide as the noise on N0 and on a sum moves a gap, to first order: nu' e0 and e1, over h = N0 N1 / n
(`compliance.intervals.inversion`). The reaches of both are combined as independent errors are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Floats
from fairwall.laws.choice.low_rank import best_split
from fairwall.laws.choice.posterior import SHARE
from fairwall.laws.choice.public_batch import AskedBatch, Stratum
from fairwall.laws.mechanisms.calibration import metric_range, require_batch
from fairwall.laws.mechanisms.table import MECHANISM_LAWS, MechanismLaw, NoiseInputs
from fairwall.laws.metrics.group_size_range import DEFAULT_SHARES, Shares
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.noise.count_noise import CountScales, Totals, expected_in_batches, gaussian_scales, laplace_scales
from fairwall.laws.noise.distributions import Gaussian, Laplace, NoiseDistribution
from fairwall.laws.noise.gaussian import gaussian_multiplier
from fairwall.laws.noise.linf_ball import coordinates, cube_scales
from fairwall.laws.noise.quantiles import LEVEL, noise_reach
from fairwall.laws.noise.randomized_response import (
    noisy_sums,
    response_estimates,
    response_widths,
    turned_law,
    turning_probability,
)
from fairwall.laws.privacy.exposure import NO_LIMIT, Limit, within

_FARTHER = 2.0
"""Range in which N0 is searched, as a multiple of its 95% noise reach, approximately."""

_SUMMED = 1.2
"""Margin of two cubes' half-widths: the combination of three noises predicts widths within this factor."""


def half_widths(batch: AskedBatch, mechanism: str, epsilon: float, delta: float, shares: Shares) -> Floats:
    """Return the expected half-widths of a guaranteed interval, shape (2, 2, 3).

    First axis: from the noise, at most 1; and cut off to the gaps that people of these values can have. Second: without
    a gap, and at the largest gap. Third: for groups of the least size of the public range, of `SHARE` of the people,
    and of the largest. Epsilon is above 0 and finite, the budget of the whole batch.
    """
    law, found = MECHANISM_LAWS[mechanism], []
    nothing = law.interval is None or law.interval.is_posterior or law.is_choice
    for stratum in batch.strata:
        n = stratum.people
        sizes = np.array([min(shares.counts(n)), _smaller_group(stratum, shares), max(shares.counts(n))])
        apart, reach = sizes * (n - sizes) / n, 0.0
        gaps = np.stack([np.zeros(len(sizes)), _half_ranges(stratum, sizes)])
        if nothing:
            widths = np.full(gaps.shape, np.inf)
        elif law.noise_on == "gaps":
            widths = np.full(gaps.shape, noise_reach(noise_on_gaps(batch, stratum, mechanism, epsilon, delta, shares)))
        elif law.noise_on == "attributes":
            deviation, turned = float(stratum.inside.std(axis=1).mean()), turned_law([turning_probability(epsilon)])
            widths, reach = response_widths(deviation, n, sizes, gaps, *turned)
        else:
            squared, squares = noise_on_sums(stratum, mechanism, epsilon, delta, noise_reach)
            surely, reach = _SUMMED if law.noise_on == "directions" else 1.0, math.sqrt(squared)
            widths = surely * np.sqrt(float(np.sqrt(squares).mean()) ** 2 + gaps**2 * squared) / apart
        fewest = np.maximum(sizes - _FARTHER * reach, shares.minimum_group).astype(np.intp)
        found.append([np.minimum(widths, 1.0), np.minimum(widths, _half_ranges(stratum, fewest))])
    total: Floats = np.mean(found, axis=0)
    return total


def _half_ranges(stratum: Stratum, sizes: NDArray[np.intp]) -> Floats:
    """Return half the range of possible gaps of groups of some sizes, the mean over models."""
    sums, n = np.concatenate([[0.0], np.cumsum(stratum.ordered)]) * stratum.stands_for, stratum.people
    of_first, of_others = np.interp([sizes, n - sizes], stratum.stands_for * np.arange(len(sums)), sums)
    # Rounding could make this negative for constant values.
    between = np.maximum(sums[-1] - of_others - of_first, 0.0)
    ranges: Floats = between * (1 / sizes + 1 / (n - sizes)) / 2
    return ranges


def noise_on_gaps(
    batch: AskedBatch, stratum: Stratum, mechanism: str, epsilon: float, delta: float, shares: Shares
) -> NoiseDistribution:
    """Return the distribution of a mechanism's noise on each gap of a stratum."""
    n0 = _smaller_group(stratum, shares)
    proxy = batch.metric if find_metric(batch.metric).of_means else "abs_sp"
    about = NoiseInputs(proxy, n0, stratum.people - n0, batch.queries, epsilon, delta, shares=shares)
    law = MECHANISM_LAWS[mechanism].error(about)
    assert law is not None, "what adds noise has a law"
    return law


def noise_on_sums(
    stratum: Stratum,
    mechanism: str,
    epsilon: float,
    delta: float,
    size_of: Callable[[NoiseDistribution], float],
    models: int | None = None,
) -> tuple[float, Floats]:
    """Return the squared size of the noise on N0, and on each sum, shape (models,), including N0's part in it.

    `mechanism`: one that adds noise to N0 and to sums, separately or by cubes. `size_of`: the measure of a
    distribution's size, such as `noise_reach`. `models`: the number of sums evaluated, the first ones; all by default.
    """
    values, means, k = stratum.inside[:models], stratum.means[:models], stratum.rows
    if MECHANISM_LAWS[mechanism].noise_on == "cube":
        told = coordinates([values], 2.0**-20)
        cube = cube_scales(told.sides, epsilon)
        of_one = size_of(cube.law) ** 2
        of_size = of_one if cube.size is None else size_of(Laplace(cube.size)) ** 2
        return of_size, told.halves**2 * of_one + (means - told.centres) ** 2 * of_size
    if MECHANISM_LAWS[mechanism].noise_on == "directions":
        split = best_split(values, epsilon, 2.0**-20, size_known=False)
        common, of_own = (size_of(law) ** 2 if law.scale else 0.0 for law in (split.law, split.own_law))
        told_by_all = np.square(split.weights).sum(axis=1) + (means - split.own.centres) ** 2
        return common, split.own.halves**2 * of_own + told_by_all * common
    kind: type[Laplace | Gaussian]
    if MECHANISM_LAWS[mechanism].needs_delta:
        scales, kind = gaussian_scales(k, gaussian_multiplier(epsilon, delta)), Gaussian
    else:
        scales, kind = laplace_scales(k, epsilon), Laplace
    of_size, of_sums = (size_of(kind(scale)) ** 2 for scale in (scales.size, scales.sums))
    return of_size, of_sums + (means - 0.5) ** 2 * of_size


def _smaller_group(stratum: Stratum, shares: Shares) -> int:
    """Return the assumed number of disadvantaged people: `SHARE` of the people, within the allowed group sizes."""
    n, least = stratum.people, shares.minimum_group
    return min(max(least, round(SHARE * n)), n - least)


Guarantee: TypeAlias = Literal["pure", "approximate"]
"""Kind of privacy guarantee: epsilon alone, or epsilon and delta."""

MIDPOINT = "midpoint"
SHRUNK = " shrunk"
Promise: TypeAlias = Literal["likely", "guaranteed"]
"""Selection criterion: the least error, or the least half-width of guaranteed intervals."""

_SURER = 1.5
_SEED = 2012
_NUMBERS = 200
_BATCHES_MIN = 10


@dataclass(frozen=True)
class MechanismRank:
    """One row of the table behind a choice.

    Parameters
    ----------
    name : a mechanism's name, with suffix `SHRUNK` where answers move towards no gap; or `MIDPOINT`.
    guarantee : "pure" for the midpoint, which reads nothing.
    median_error, mean_error, rms_error : of one clamped answer, averaged over group shares and worlds.
    half_width : of guaranteed intervals, likewise; infinite where there are none.
    worst_ratio : the largest ratio of the median error to the midpoint's, over group shares and worlds.
    """

    name: str
    guarantee: Guarantee
    median_error: float
    mean_error: float
    rms_error: float
    half_width: float
    worst_ratio: float

    @property
    def error(self) -> float:
        """The error by which rows are ranked: the mean of the median and the root mean square error."""
        return (self.median_error + self.rms_error) / 2

    @property
    def mechanism(self) -> str:
        """The mechanism's name without `SHRUNK`."""
        return self.name.removesuffix(SHRUNK)


def midpoint(metric: str) -> float:
    """Return the middle of a metric's range: 0 for signed gaps; 1, equal treatment, for the unbounded ratio."""
    low, high = metric_range(metric)
    return 1.0 if math.isinf(high) else (low + high) / 2


def choose(
    metric: str,
    n: int,
    queries: int,
    epsilon: float,
    delta: float = 0.0,
    shares: Shares = DEFAULT_SHARES,
    limit: Limit = NO_LIMIT,
    exposed: int | None = None,
    promise: Promise = "likely",
) -> str:
    """Return the name of the best recommendable mechanism. Arguments as for `standings`.

    `exposed` is the number of people for whom the limit holds, n by default: `Records.exposed`.
    """
    asked = standings(metric, n, queries, epsilon, delta, shares)
    rows = [row for row in asked if row.name != MIDPOINT and MECHANISM_LAWS[row.mechanism].recommendable]
    names = [row.mechanism for row in rows]
    allowed = within(names, metric, n if exposed is None else exposed, queries, epsilon, delta, limit)
    rows = [row for row, name in zip(rows, names, strict=True) if name in allowed]
    if promise == "guaranteed" and any(math.isfinite(row.half_width) for row in rows):
        return min(rows, key=lambda row: row.half_width).name
    worth = [row for row in rows if row.worst_ratio <= 1]
    if not worth:
        return min(rows, key=lambda row: row.worst_ratio).name
    surer = [row for row in worth if MECHANISM_LAWS[row.mechanism].interval is not None]
    return surer[0].name if surer and surer[0].error < _SURER * worth[0].error else worth[0].name


@lru_cache(maxsize=256)
def standings(
    metric: str, n: int, queries: int, epsilon: float, delta: float = 0.0, shares: Shares = DEFAULT_SHARES
) -> tuple[MechanismRank, ...]:
    """Return the mechanisms and the midpoint compared for a batch, the smallest error first.

    `n`: people in the metric's stratum, at least 3; for equalized odds, people. `epsilon`, `delta`: the whole budget of
    the batch; epsilon finite, delta at least 0 and below 1. `shares`: the public range of group shares.
    """
    find_metric(metric)
    require_batch(queries, epsilon)
    if n < 3 or math.isinf(epsilon):
        raise ValueError("n must be at least 3 and epsilon finite")
    if not 0 <= delta < 1:
        raise ValueError("delta must be at least 0 and below 1")
    plan = _Plan(metric, n, queries, epsilon, delta, shares)
    figures = {
        # A batch shares the noise on N0, and shrinking looks at all of its answers.
        name: (guarantee, tuple(_errors(plan, answers, joined=not name.startswith("counts"))))
        for name, guarantee, answers in _contenders(plan)
    }
    least = figures[MIDPOINT][1][0]
    rows = []
    for name, (guarantee, (medians, means, squares, reaches)) in figures.items():
        median, mean, rms, reach = (float(of.mean()) for of in (medians, means, squares, reaches))
        width, worst = _half_width(plan, name, reach), float((medians / least).max())
        rows.append(MechanismRank(name, guarantee, median, mean, rms, width, worst))
    return tuple(sorted(rows, key=lambda row: row.error))


def _half_width(plan: _Plan, name: str, reach: float) -> float:
    """Return the half-width of guaranteed intervals; `reach` is the 95% quantile of errors."""
    law = MECHANISM_LAWS.get(name)
    if law is None or law.interval is None or law.interval.is_posterior:
        return math.inf
    if law.noise_on != "attributes":
        return reach
    n, turned = plan.n, turned_law([turning_probability(plan.epsilon)])
    sizes = np.array(plan.shares.counts(n))
    found = [
        response_widths(math.sqrt(world.variance), n, sizes, np.full(sizes.size, world.gap), *turned)[0]
        for world in _WORLDS
    ]
    return float(np.mean(np.minimum(found, 1.0)))


@dataclass(frozen=True)
class _Plan:
    metric: str
    n: int
    queries: int
    epsilon: float
    delta: float
    shares: Shares


@dataclass(frozen=True, eq=False)
class _Batches:
    """Simulated batches: signed gaps, shape (batches, models), the secret N0, and the public totals of each model."""

    n0: int
    gaps: Floats
    totals: Totals


@dataclass(frozen=True)
class _World:
    """A kind of batch: mean and variance of predictions, and the gap besides chance."""

    mean: float
    variance: float
    gap: float


_WORLDS = (_World(mean=0.5, variance=1 / 12, gap=0.0), _World(mean=0.25, variance=0.25 * 0.75, gap=0.1))

_Answers = Callable[[_Batches, np.random.Generator], Floats]
"""Function that simulates a mechanism's answers about signed gaps, before the metric's sign and range."""


def _errors(plan: _Plan, answers: _Answers, *, joined: bool) -> Iterator[Floats]:
    """Yield medians, means, root mean squares and 95% quantiles of clamped answers' errors, shape (shares, worlds)."""
    absolute = find_metric(plan.metric).absolute
    low, high = metric_range("abs_sp" if absolute else "sp")
    told = []
    for n0 in plan.shares.counts(plan.n):
        for i, world in enumerate(_WORLDS):
            # Common random numbers for mechanisms that draw in the same way.
            generator = np.random.default_rng((_SEED, n0, i))
            batches = _batches(plan, n0, world, generator, joined=joined)
            truth = np.abs(batches.gaps) if absolute else batches.gaps
            errors = np.abs(np.clip(answers(batches, generator), low, high) - truth)
            of_all = np.median(errors), np.mean(errors), np.sqrt(np.mean(errors**2)), np.quantile(errors, LEVEL)
            told.append([float(one) for one in of_all])
    return (np.reshape(of, (-1, len(_WORLDS))) for of in np.transpose(told))


def _batches(plan: _Plan, n0: int, world: _World, generator: np.random.Generator, *, joined: bool) -> _Batches:
    """Draw batches; `joined` into one, which is faster, for answers that do not depend on the rest of their batch."""
    n, m = plan.n, plan.queries
    chance = math.sqrt(world.variance * n * n / (n0 * (n - n0) * (n - 1)))
    gaps = np.clip(generator.normal(world.gap, chance, (max(_BATCHES_MIN, _NUMBERS // m), m)), -1, 1)
    if joined:
        gaps = gaps.reshape(1, -1)
    totals = Totals(n, np.full(gaps.shape[1], n * world.mean), np.full(gaps.shape[1], world.variance))
    return _Batches(n0, gaps, totals)


def _contenders(plan: _Plan) -> Iterator[tuple[str, Guarantee, _Answers]]:
    metric, m, epsilon, delta = plan.metric, plan.queries, plan.epsilon, plan.delta
    found = find_metric(metric)
    middle = midpoint("abs_sp" if found.absolute else "sp")
    yield MIDPOINT, "pure", lambda batches, _: np.full(batches.gaps.shape, middle)
    for shrinks in (False, True):
        scales = laplace_scales(m * found.sums_a_stratum, epsilon)
        yield "counts" + SHRUNK * shrinks, "pure", _counted(plan, scales, shrinks, gaussian=False)
    if delta:
        multiplier = gaussian_multiplier(epsilon, delta)
        for shrinks in (False, True):
            scales = gaussian_scales(m * found.sums_a_stratum, multiplier)
            yield "counts-gaussian" + SHRUNK * shrinks, "approximate", _counted(plan, scales, shrinks, gaussian=True)
    yield "randomized-response", "pure", _responded(plan)
    if not found.bounded or found.binary:
        return
    proxy = metric if found.of_means else "abs_sp"
    for name, law in MECHANISM_LAWS.items():
        if law.independent and (delta or not law.needs_delta) and epsilon < law.epsilon_below:
            yield name, "approximate" if law.needs_delta else "pure", _added(plan, law, proxy)


def _added(plan: _Plan, public: MechanismLaw, proxy: str) -> _Answers:
    absolute = find_metric(plan.metric).absolute

    def answers(batches: _Batches, generator: np.random.Generator) -> Floats:
        secret = np.abs(batches.gaps) if absolute else batches.gaps
        n0, n1 = batches.n0, plan.n - batches.n0
        noise = public.error(NoiseInputs(proxy, n0, n1, plan.queries, plan.epsilon, plan.delta, shares=plan.shares))
        assert noise is not None, "what is independent adds noise"
        return secret + noise.sample(generator, secret.size).reshape(secret.shape)

    return answers


def _counted(plan: _Plan, scales: CountScales, shrinks: bool, *, gaussian: bool) -> _Answers:
    n, absolute, fewest = plan.n, find_metric(plan.metric).absolute, plan.shares.minimum_group
    laws: tuple[NoiseDistribution, NoiseDistribution] = (
        (Gaussian(scales.size), Gaussian(scales.sums)) if gaussian else (Laplace(scales.size), Laplace(scales.sums))
    )

    def answers(batches: _Batches, generator: np.random.Generator) -> Floats:
        n0, total, queries = batches.n0, batches.totals.total, batches.gaps.shape[1]
        drawn = [(laws[0].sample(generator, 1), laws[1].sample(generator, queries)) for _ in batches.gaps]
        size = np.clip(np.rint(n0 + np.array([of_size for of_size, _ in drawn])), fewest, n - fewest)
        centred = n0 * (total / n - 0.5) - batches.gaps * n0 * (n - n0) / n + np.array([noise for _, noise in drawn])
        if shrinks:
            # As `fairwall.laws.noise.count_noise.shrunk_sums`, for many batches at once.
            by_chance, apart = size * (total / n - 0.5), size * (n - size) / n
            spread = np.sqrt(batches.totals.variance * n * apart / (n - 1))
            moved = expected_in_batches(centred - by_chance, spread, apart[:, 0], scales.sums, gaussian=gaussian)
            centred = by_chance + moved
        # Possible sums of 0/1 predictions.
        sum0 = np.clip(centred + size / 2, np.maximum(0.0, total - (n - size)), np.minimum(total, size))
        gap: Floats = (total - sum0) / (n - size) - sum0 / size
        return np.abs(gap) if absolute else gap

    return answers


def _responded(plan: _Plan) -> _Answers:
    n, absolute, probability = plan.n, find_metric(plan.metric).absolute, turning_probability(plan.epsilon)

    def answers(batches: _Batches, generator: np.random.Generator) -> Floats:
        n0, total, (gaps,) = batches.n0, batches.totals.total, batches.gaps
        mean0 = total / n - gaps * (n - n0) / n
        noisy_size, noisy = noisy_sums(
            (n0, n - n0), (mean0, mean0 + gaps), batches.totals.variance, probability, generator
        )
        n1, sum1 = response_estimates(noisy_size, noisy, n, total, probability)
        gap = sum1 / n1 - (total - sum1) / (n - n1)
        return np.abs(gap) if absolute else gap

    return answers
