"""The information of answers about one person, as looks: observations of a disadvantaged or an advantaged person.

**One row.** Let the 1s of a row of predictions be k people with the person among them, X of them disadvantaged. The
observation is X plus noise. With z = 1 where the person is disadvantaged,

    X = 1 + H(n - 1, k - 1, N0 - 1)  for z = 1,    X = H(n - 1, k - 1, N0)  for z = 0,

H the hypergeometric count of N0 - z others among k - 1 of n - 1. So the density of the observation is known under both,
and so is the distribution of the log-likelihood ratio L. A person whose row is 0 is told just as much, by N0 - X.

**Many looks** are taken as independent, within one batch and across batches. People already identified no longer
disturb the others' rows: beyond an accuracy of `_DISTURBED_LESS` the number of people is reduced as z's variance is,
until that is stable (the fixed point of Tanaka, IEEE Trans. Inf. Theory 48, 2002, for random spreading). So log-ratios
add up, and the sum's distribution is their convolution. Guessing by its sign is right most often; it is right for

    (P(sum > 0 | z = 1) + P(sum <= 0 | z = 0)) / 2  =  1/2 + TV / 2,

TV the total variation distance between the observations of a disadvantaged person and of an advantaged one. Nearly
Gaussian sums make that Phi(d/2), where for a noise variance S^2 and m rows of 0 and 1, p = N0/n,
d^2 = m / (n p (1-p) + 4 S^2).

**Randomised response** flips everybody's value with probability p = 1/(1 + e^epsilon) = 1 - q. Of the others only the
number S reported as disadvantaged counts: to an attacker who knows N0 and nobody's group all of them are alike.
Given z, N0 - z of them are disadvantaged, so that S ~ Bin(N0 - z, q) + Bin(n - 1 - N0 + z, p). A person's own value
and S are one look, and there is no other.

**Large data sets.** d does not change where n, N0 and m are divided by one number and the noise by its square root.
So large ones are computed as small ones with n p (1-p) = `_SPREAD_MAX`, but for m below 1, which is taken as 1: an
overestimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Floats
from fairwall.laws.choice.cell_partition import CROWDS, PARTS, cells_scale
from fairwall.laws.noise.distributions import NoiseDistribution
from fairwall.laws.noise.linf_ball import CubeNoise
from fairwall.laws.noise.randomized_response import turning_probability

_SPREAD_MAX = 100.0
_BINS = 1 << 12
_POINTS = 1000
_SEED, _DRAWS, _DRAWS_OF_LOOKS, _SIZES = 2026, 20_000, 4_000, 16
"""Seed; simulated answers of a cube, fewer for a look; number of sizes T by quantiles (a staircase uses all sizes)."""

_ROWS_THAT_TELL_SIZE = 64
"""Rows from which a cube's size T counts as known, to a few percent; overstates accuracy by at most .02."""

_FAR = 40.0
"""Range of noise evaluated, in scales."""

_DEVIATIONS = 6
_DISTURBED_LESS, _ROUNDS, _STEADY = 0.6, 12, 2e-3
_LEAST_SCALE = 0.02
"""Least noise scale, in people; less noise hides nothing and is raised to this."""

_RESPONSES_MAX = 10_000
_TINY = 1e-300
_CERTAIN = 40.0
"""Log-likelihood ratio that counts as certain."""


@dataclass(frozen=True, eq=False)
class SinglePersonTest:
    """Distributions of an observation of one person, and the number of such looks.

    `one`, `zero`: probabilities of the observations, of one shape, for a disadvantaged and for an advantaged person;
    they need not sum to 1. `times`: the number of such looks, at least 1.
    """

    one: Floats
    zero: Floats
    times: int = 1


def told_apart(looks: Sequence[SinglePersonTest]) -> float:
    """Return the balanced accuracy of independent looks at distinguishing two hypotheses: 1/2 + TV/2."""
    laws = [(look.one / look.one.sum(), look.zero / look.zero.sum(), look.times) for look in looks]
    if len(laws) == 1 and laws[0][2] == 1:
        return float(0.5 + np.abs(laws[0][0] - laws[0][1]).sum() / 4)
    # Observations impossible under one hypothesis are certain; larger ratios would only make the grid coarser.
    ratios = [
        np.clip(np.log(np.maximum(one, _TINY)) - np.log(np.maximum(zero, _TINY)), -_CERTAIN, _CERTAIN)
        for one, zero, _ in laws
    ]
    reach, square = 1e-12, 0.0
    for (one, zero, times), ratio in zip(laws, ratios, strict=True):
        reach += times * max(abs(float(one @ ratio)), abs(float(zero @ ratio)))
        square += times * float((one + zero) / 2 @ np.square(ratio))
    step = 2 * (reach + 10 * math.sqrt(square)) / _BINS
    of_one, of_zero = np.ones(_BINS // 2 + 1, complex), np.ones(_BINS // 2 + 1, complex)
    for (one, zero, times), ratio in zip(laws, ratios, strict=True):
        places = np.clip(ratio / step, -_BINS / 2 + 1, _BINS / 2 - 2)
        of_one *= _power(np.fft.rfft(_on_grid(places, one)), times)
        of_zero *= _power(np.fft.rfft(_on_grid(places, zero)), times)
    apart = np.abs(np.fft.irfft(of_one, _BINS) - np.fft.irfft(of_zero, _BINS)).sum()
    return float(np.clip(0.5 + apart / 4, 0.5, 1.0))


def _power(law: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """Return law**times; a power of complex numbers takes ten times as long as these products."""
    found = law if times % 2 else np.ones_like(law)
    while times := times // 2:
        law = law * law
        found = found * law if times % 2 else found
    return found


def _on_grid(places: Floats, law: Floats) -> Floats:
    # Split between two bins, so that means are kept.
    below = np.floor(places)
    above, index = places - below, below.astype(np.intp) % _BINS
    spread: Floats = np.zeros(_BINS)
    for where, weights in ((index, law * (1 - above)), ((index + 1) % _BINS, law * above)):
        spread += np.bincount(where, weights, _BINS)
    return spread


def of_noise(law: NoiseDistribution, n: int, n0: int, rows: int) -> float:
    """Return the balanced accuracy of `rows` rows of 0 and 1 with noise on X, of a cube or independent."""
    law, n, n0, smaller = small(law, n, n0)
    rows = max(1, round(rows / smaller))
    told: Callable[[int, int], float] = (
        (lambda n, n0: of_cube(law, n, n0, rows)) if isinstance(law, CubeNoise) else
        (lambda n, n0: told_apart([look_at_rows(law, n, n0, rows)]))
    )  # fmt: skip
    return found_out(told, n, n0)


def small(law: NoiseDistribution, n: int, n0: int) -> tuple[NoiseDistribution, int, int, float]:
    """Return the noise, n and N0 of a smaller data set that tells as much, and the ratio of sizes."""
    smaller = max(1.0, n0 * (n - n0) / n / _SPREAD_MAX)
    if smaller == 1:
        return law, n, n0, smaller
    return scaled(law, 1 / math.sqrt(smaller)), round(n / smaller), round(n0 / smaller), smaller


def scaled(law: NoiseDistribution, factor: float) -> NoiseDistribution:
    """Return a distribution with `factor` times the noise, at least `_LEAST_SCALE`."""
    of_scale: Any = law
    least = _LEAST_SCALE / law.sides if isinstance(law, CubeNoise) else _LEAST_SCALE
    found: NoiseDistribution = replace(of_scale, scale=max(law.scale * factor, least))
    return found


def found_out(accuracy_of: Callable[[int, int], float], n: int, n0: int) -> float:
    """Return the accuracy once identified people no longer disturb the others' rows.

    `accuracy_of` returns the accuracy for n people, n0 of them disadvantaged.
    """
    found = accuracy_of(n, n0)
    for _ in range(_ROUNDS):
        if found < _DISTURBED_LESS:
            break
        left = _uncertain(found, n0 / n)
        before, found = found, max(found, accuracy_of(max(2, math.ceil(n * left)), max(1, math.ceil(n0 * left))))
        if found - before < _STEADY:
            break
    return found


def _uncertain(accuracy: float, share: float) -> float:
    """Return the remaining share of the variance p (1-p) of z, for a Gaussian log-likelihood ratio of this accuracy."""
    d = distance(accuracy)
    x = np.linspace(-8, 8, 401)
    weights = np.exp(-(x**2) / 2)
    weights /= weights.sum()
    left = 0.0
    for sign, prior in ((1, share), (-1, 1 - share)):
        odds = math.log(share / (1 - share)) + sign * d * d / 2 + d * x
        left += prior * float(weights @ (0.25 / np.cosh(np.clip(odds / 2, -300, 300)) ** 2))
    return left / (share * (1 - share))


def distance(accuracy: float) -> float:
    """Return the distance of two standard normal distributions with this accuracy; squares of distances add up."""
    return 2 * NormalDist().inv_cdf(min(accuracy, 1 - 1e-9))


def look_at_rows(law: NoiseDistribution, n: int, n0: int, rows: int, *, ones: int = 0) -> SinglePersonTest:
    """Return the look of `rows` rows with independent noise on X; half of each row is 1s, or `ones` people."""
    first, with_one, without = _counts(n, ones or n // 2, n0)
    middle, reach = first + len(without) / 2, len(without) / 2 + 1
    near = np.linspace(-reach, reach, _POINTS)
    far = law.scale * _FAR * np.sinh(np.linspace(-6, 6, _POINTS)) / math.sinh(6)
    # Midpoints of steps, which avoid the densities' peaks.
    ends = np.unique(np.concatenate([near, far]))
    x, width = middle + (ends[1:] + ends[:-1]) / 2, np.diff(ends)
    density = np.exp(law.log_density(x[:, np.newaxis] - (first + np.arange(len(without)))))
    return SinglePersonTest(width * (density @ with_one), width * (density @ without), rows)


def of_cube(law: CubeNoise, n: int, n0: int, rows: int) -> float:
    """Return the balanced accuracy of one batch's rows with noise from a cube."""
    if rows >= _ROWS_THAT_TELL_SIZE:
        return told_apart([look_at_cube(law, n, n0, rows)])
    # TV is the mean of |p1 - p0| / (p1 + p0) over observations under either hypothesis equally.
    return 0.5 + float(np.abs(np.tanh(_ratios_of_cube(law, n, n0, rows) / 2)).mean()) / 2


def look_at_cube(law: CubeNoise, n: int, n0: int, rows: int) -> SinglePersonTest:
    """Return the look of a whole batch with noise from a cube: simulated log-likelihood ratios.

    From `_ROWS_THAT_TELL_SIZE` rows on the cube's size is known and rows are independent given it: no simulation.
    """
    if rows >= _ROWS_THAT_TELL_SIZE:
        return replace(_look_at_uniform(law.scale * (law.sides + 1), n, n0), times=rows)
    tilt = np.tanh(_ratios_of_cube(law, n, n0, rows, _DRAWS_OF_LOOKS) / 2)
    return SinglePersonTest(1 + tilt, 1 - tilt)


def _look_at_uniform(size: float, n: int, n0: int) -> SinglePersonTest:
    """Return the look of a row, half of it 1s, with noise on X that is uniform up to a size."""
    _, *laws = _counts(n, n // 2, n0)
    whole = np.arange(len(laws[0]))
    # Between these ends the set of possible X is constant.
    ends = np.unique(np.concatenate([whole - size, whole + size]))
    x, width = (ends[1:] + ends[:-1]) / 2, np.diff(ends)
    first, after = np.searchsorted(whole, x - size), np.searchsorted(whole, x + size)
    below = (np.append(0.0, np.cumsum(of_x)) for of_x in laws)
    with_one, without = (width * (each[after] - each[first]) / (2 * size) for each in below)
    return SinglePersonTest(with_one, without)


def _ratios_of_cube(law: CubeNoise, n: int, n0: int, rows: int, drawn: int = _DRAWS) -> Floats:
    rng = np.random.default_rng(_SEED)
    _, *laws = _counts(n, n // 2, n0)
    sizes, weights = law.sizes(np.arange(_SIZES + 1) / _SIZES)
    draws = max(drawn // rows // 2, 200)
    x = np.concatenate([rng.choice(len(of_x), (draws, rows), p=of_x) for of_x in laws])
    seen = x + rng.choice(sizes, (2 * draws, 1), p=weights if law.stair else None) * rng.uniform(
        -1, 1, (2 * draws, rows)
    )
    # X lies within T of the observation. (The density of uniform noise, 1 / 2T, is common to both hypotheses.)
    ends = [
        np.clip(np.floor(end).astype(np.intp) + 1, 0, len(laws[0]))
        for end in (seen[..., np.newaxis] - sizes, seen[..., np.newaxis] + sizes)
    ]
    likely = []
    for of_x in laws:
        below = np.append(0.0, np.cumsum(of_x))
        each = np.log(np.maximum(below[ends[1]] - below[ends[0]], 1e-300)).sum(axis=1) - rows * np.log(sizes)
        each += np.log(weights) if law.stair else 0.0
        likely.append(np.logaddexp.reduce(each, axis=1))
    ratios: Floats = likely[0] - likely[1]
    return ratios


def of_cells(n: int, n0: int, cells: int, epsilon: float, *, besides: bool = False) -> float:
    """Return the balanced accuracy of noisy counts of equal cells, and of a sum measured besides.

    The sum takes its largest part of epsilon, and is taken to cost the counts nothing.
    """
    looks = [look_at_cells(n, n0, cells, epsilon)] if cells > 1 else []
    looks += [look_at_residual(n, n0, epsilon)] if besides and n >= CROWDS else []
    return told_apart(looks) if looks else 0.5


def look_at_residual(n: int, n0: int, epsilon: float) -> SinglePersonTest:
    """Return the look of the sum measured besides cells: as if an eighth of the people had all of its weight."""
    return look_at_cells(n, n0, CROWDS, PARTS[-1] * epsilon)


def look_at_cells(n: int, n0: int, cells: int, epsilon: float) -> SinglePersonTest:
    """Return the look of noisy counts of at least two equal cells, of at least one person each."""
    scale = cells_scale(epsilon) * math.sqrt(1 - 1 / cells)
    _, with_one, without = _counts(n, max(1, n // cells), n0)
    most = math.ceil(_FAR * scale)
    noise = np.exp(-np.abs(np.arange(-most, most + 1)) / scale)
    noise /= noise.sum()
    return SinglePersonTest(np.convolve(with_one, noise), np.convolve(without, noise))


@lru_cache(maxsize=256)
def look_at_response(n: int, n0: int, epsilon: float) -> SinglePersonTest:
    """Return the look of randomised response: a person's own noisy attribute, and the count of all others'.

    More than `_RESPONSES_MAX` people count as that many: the information that N0 adds falls with 1/sqrt(n).
    """
    smaller = max(1.0, n / _RESPONSES_MAX)
    n, n0 = round(n / smaller), max(1, round(n0 / smaller))
    turned = turning_probability(epsilon)

    def others(disadvantaged: int) -> Floats:
        # Counted are the disadvantaged who are not flipped, and the others who are.
        return np.convolve(_binomial(disadvantaged, turned)[::-1], _binomial(n - 1 - disadvantaged, turned))

    one, zero = others(n0 - 1), others(n0)
    return SinglePersonTest(
        np.concatenate([(1 - turned) * one, turned * one]), np.concatenate([turned * zero, (1 - turned) * zero])
    )


def _binomial(trials: int, p: float) -> Floats:
    """Return the probabilities of 0 .. trials hits, with p above 0 and at most 1/2."""
    logs, hits = _log_factorials(trials), np.arange(trials + 1)
    law = logs[trials] - logs[hits] - logs[trials - hits] + hits * math.log(p) + (trials - hits) * math.log1p(-p)
    likely: Floats = np.exp(law)
    return likely


@lru_cache(maxsize=256)
def _counts(n: int, k: int, n0: int) -> tuple[int, Floats, Floats]:
    """Return the least X, and X's distributions (tails cut) for a disadvantaged and an advantaged person of the k."""
    logs = _log_factorials(n)
    middle, reach = k * n0 / n, 3 + _DEVIATIONS * math.sqrt(k * n0 * (n - n0)) / n
    x = np.arange(max(0, math.floor(middle - reach)), min(k, math.ceil(middle + reach)) + 1)

    def log_choose(of: int, chosen: NDArray[np.int_]) -> Floats:
        taken = np.clip(chosen, 0, of)
        found: Floats = np.where(taken == chosen, logs[of] - logs[taken] - logs[of - taken], -np.inf)
        return found

    def hypergeometric(others: NDArray[np.int_], disadvantaged: int) -> Floats:
        law = log_choose(k - 1, others) + log_choose(n - k, disadvantaged - others)
        likely: Floats = np.exp(law - law.max())
        likely /= likely.sum()
        return likely

    return int(x[0]), hypergeometric(x - 1, n0 - 1), hypergeometric(x, n0)


@lru_cache(maxsize=4)
def _log_factorials(n: int) -> Floats:
    # scipy.stats would take a second to load.
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
