"""Which mechanism has the smallest median error, and what that is: by public numbers alone.

**What is compared.** The mechanisms that answer with gaps and whose guarantee fits: pure ones for delta = 0, all where
there is a delta; their answers clamped to the metric's range; and the public midpoint of that range, which costs
nothing. `sample-and-aggregate` and `propose-test-release` are left out: counts or noisy attributes have had less error
wherever it was measured (docs/mechanisms.md). Beside `counts` and `counts-gaussian` as they are stand the same with
answers moved towards no gap where noise hides them (`fairwall.laws.counts`): where no mechanism beats the midpoint,
these come close to it.

**How.** By simulation, over a public range of group shares and in two worlds: uniform scores with no gap beyond chance,
and 0/1 decisions, a quarter of them 1, with a gap of 0.1 beside chance. The seed is fixed, so that everybody gets the
same table. Nobody looks at A, nor at predictions: this choice depends on metric, n, m, epsilon, delta and shares.

**Which.** The smallest error, averaged over shares and worlds, of those whose median error is at most the midpoint's at
every share and in both worlds: nobody shall pay for less than the midpoint tells. Where there is none, what comes
closest to that. The error is the mean of the median and of the root mean square, so that neither a few answers that are
far off nor many that are a little off go unseen. What has no interval comes first only where nothing that has one errs
less than `_SURER` times as much.

**Guaranteed.** Where a policy wants intervals that hold whoever is who, only mechanisms contend that have them, and the
least half-width counts: the 95% quantile of unshrunk errors, which it is, or what noisy attributes promise.

Equalized odds is ranked by what an absolute gap among n people would suffer. Predictive parity, which moves by up to 1
with one person whatever the group sizes, gets counts and noisy attributes only, as does the unbounded ratio.

**How much it may give away.** Where a limit is given, only mechanisms contend whose best attack, by
`fairwall.laws.exposure`, has no larger balanced accuracy, and no more cells are made than it allows. Where none
stays below, the one that gives away least is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.bounding import metric_range
from fairwall.laws.calibration import require_batch
from fairwall.laws.counts import CountScales, Totals, expected_in_batches, gaussian_scales, laplace_scales
from fairwall.laws.exposure import NO_LIMIT, Limit, within
from fairwall.laws.gaussian import gaussian_multiplier
from fairwall.laws.mechanisms import MECHANISM_LAWS, Batch, MechanismLaw
from fairwall.laws.metric import find_metric
from fairwall.laws.noise import Gaussian, Laplace, Law
from fairwall.laws.quantiles import LEVEL
from fairwall.laws.response import noisy_sums, response_estimates, response_widths, turned_law, turning_probability
from fairwall.laws.shares import DEFAULT_SHARES, Shares

Guarantee: TypeAlias = Literal["pure", "approximate"]
"""Which privacy is promised: epsilon alone, or epsilon and delta."""

MIDPOINT = "midpoint"
SHRUNK = " shrunk"
Promise: TypeAlias = Literal["likely", "guaranteed"]
"""By what is chosen: the least error, or the least half-width of an interval that holds whoever is who."""

_SURER = 1.5
_SEED = 2012
_NUMBERS = 200
_BATCHES_MIN = 10


@dataclass(frozen=True)
class Standing:
    """One row of the table behind a choice.

    Parameters
    ----------
    name : a mechanism's name, with `SHRUNK` behind it where answers move towards no gap; or `MIDPOINT`.
    guarantee : the midpoint's is any: it looks at nothing.
    median_error, mean_error, rms_error : of one clamped answer, averaged over group shares and worlds.
    half_width : of its guaranteed interval, likewise; infinite where it has none.
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
        """By what it is ranked."""
        return (self.median_error + self.rms_error) / 2

    @property
    def mechanism(self) -> str:
        """The name of what answers, whether its answers are moved or not."""
        return self.name.removesuffix(SHRUNK)


def midpoint(metric: str) -> float:
    """Return the middle of a metric's range: 0 for signed gaps; for the ratio the value where there is no gap, 1."""
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
    """Return the name of the best mechanism, of those that can be recommended. Arguments as for `standings`.

    `exposed` is for how many people the limit holds, n where it is left out: `Records.exposed`.
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
) -> tuple[Standing, ...]:
    """Compare the mechanisms, and the midpoint, for a batch.

    Parameters
    ----------
    n : people in the metric's stratum, at least 3; for equalized odds, people.
    epsilon, delta : the whole budget of the batch; epsilon finite, delta at least 0 and below 1.
    shares : the public range of group shares.

    Returns
    -------
    tuple of Standing
        The smallest error first.
    """
    find_metric(metric)
    require_batch(queries, epsilon)
    if n < 3 or math.isinf(epsilon):
        raise ValueError("n must be at least 3 and epsilon finite")
    if not 0 <= delta < 1:
        raise ValueError("delta must be at least 0 and below 1")
    plan = _Plan(metric, n, queries, epsilon, delta, shares)
    figures = {
        # The noise on N0 is the whole batch's, and what shrinks answers looks at all of them.
        name: (guarantee, tuple(_errors(plan, answers, joined=not name.startswith("counts"))))
        for name, guarantee, answers in _contenders(plan)
    }
    least = figures[MIDPOINT][1][0]
    rows = []
    for name, (guarantee, (medians, means, squares, reaches)) in figures.items():
        median, mean, rms, reach = (float(of.mean()) for of in (medians, means, squares, reaches))
        width, worst = _half_width(plan, name, reach), float((medians / least).max())
        rows.append(Standing(name, guarantee, median, mean, rms, width, worst))
    return tuple(sorted(rows, key=lambda row: row.error))


def _half_width(plan: _Plan, name: str, reach: float) -> float:
    """Return the half-width of guaranteed intervals, from how far nearly all errors reach."""
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
    """Simulated batches: signed gaps, shape (batches, models), the secret N0, and what is public of each model."""

    n0: int
    gaps: NDArray[np.float64]
    totals: Totals


@dataclass(frozen=True)
class _World:
    """What batches are like: the mean and the variance of predictions, and the gap beside chance."""

    mean: float
    variance: float
    gap: float


_WORLDS = (_World(mean=0.5, variance=1 / 12, gap=0.0), _World(mean=0.25, variance=0.25 * 0.75, gap=0.1))

_Answers = Callable[[_Batches, np.random.Generator], NDArray[np.float64]]
"""Simulates what a mechanism says of batches' signed gaps, before the metric's sign and range."""


def _errors(plan: _Plan, answers: _Answers, *, joined: bool) -> Iterator[NDArray[np.float64]]:
    """Return medians, means, root mean squares and 95% quantiles of clamped answers' errors, shape (shares, worlds)."""
    absolute = find_metric(plan.metric).absolute
    low, high = metric_range("abs_sp" if absolute else "sp")
    told = []
    for n0 in plan.shares.counts(plan.n):
        for i, world in enumerate(_WORLDS):
            # The same numbers for every mechanism, as far as it draws in the same way.
            generator = np.random.default_rng((_SEED, n0, i))
            batches = _batches(plan, n0, world, generator, joined=joined)
            truth = np.abs(batches.gaps) if absolute else batches.gaps
            errors = np.abs(np.clip(answers(batches, generator), low, high) - truth)
            of_all = np.median(errors), np.mean(errors), np.sqrt(np.mean(errors**2)), np.quantile(errors, LEVEL)
            told.append([float(one) for one in of_all])
    return (np.reshape(of, (-1, len(_WORLDS))) for of in np.transpose(told))


def _batches(plan: _Plan, n0: int, world: _World, generator: np.random.Generator, *, joined: bool) -> _Batches:
    """Draw batches; joined into one, which is faster, for answers that do not depend on the rest of their batch."""
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

    def answers(batches: _Batches, generator: np.random.Generator) -> NDArray[np.float64]:
        secret = np.abs(batches.gaps) if absolute else batches.gaps
        n0, n1 = batches.n0, plan.n - batches.n0
        noise = public.error(Batch(proxy, n0, n1, plan.queries, plan.epsilon, plan.delta, shares=plan.shares))
        assert noise is not None, "what is independent adds noise"
        return secret + noise.sample(generator, secret.size).reshape(secret.shape)

    return answers


def _counted(plan: _Plan, scales: CountScales, shrinks: bool, *, gaussian: bool) -> _Answers:
    n, absolute, fewest = plan.n, find_metric(plan.metric).absolute, plan.shares.minimum_group
    laws: tuple[Law, Law] = (
        (Gaussian(scales.size), Gaussian(scales.sums)) if gaussian else (Laplace(scales.size), Laplace(scales.sums))
    )

    def answers(batches: _Batches, generator: np.random.Generator) -> NDArray[np.float64]:
        n0, total, queries = batches.n0, batches.totals.total, batches.gaps.shape[1]
        drawn = [(laws[0].sample(generator, 1), laws[1].sample(generator, queries)) for _ in batches.gaps]
        size = np.clip(np.rint(n0 + np.array([of_size for of_size, _ in drawn])), fewest, n - fewest)
        centred = n0 * (total / n - 0.5) - batches.gaps * n0 * (n - n0) / n + np.array([noise for _, noise in drawn])
        if shrinks:
            # As `fairwall.laws.counts.shrunk_sums`, for many batches at once.
            by_chance, apart = size * (total / n - 0.5), size * (n - size) / n
            spread = np.sqrt(batches.totals.variance * n * apart / (n - 1))
            moved = expected_in_batches(centred - by_chance, spread, apart[:, 0], scales.sums, gaussian=gaussian)
            centred = by_chance + moved
        # What is possible for 0/1 predictions.
        sum0 = np.clip(centred + size / 2, np.maximum(0.0, total - (n - size)), np.minimum(total, size))
        gap: NDArray[np.float64] = (total - sum0) / (n - size) - sum0 / size
        return np.abs(gap) if absolute else gap

    return answers


def _responded(plan: _Plan) -> _Answers:
    n, absolute, probability = plan.n, find_metric(plan.metric).absolute, turning_probability(plan.epsilon)

    def answers(batches: _Batches, generator: np.random.Generator) -> NDArray[np.float64]:
        n0, total, (gaps,) = batches.n0, batches.totals.total, batches.gaps
        mean0 = total / n - gaps * (n - n0) / n
        noisy_size, noisy = noisy_sums(
            (n0, n - n0), (mean0, mean0 + gaps), batches.totals.variance, probability, generator
        )
        n1, sum1 = response_estimates(noisy_size, noisy, n, total, probability)
        gap = sum1 / n1 - (total - sum1) / (n - n1)
        return np.abs(gap) if absolute else gap

    return answers
