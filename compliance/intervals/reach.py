r"""Quantiles q of a sum of noise on a stratum's N0 and on its sums, from which intervals are made (`inversion`).

q is the quantile of |e1 + w e0| at a level, e0 within R, for the laws of both. It grows with |w|, since the farther e0
is off the less likely the sum is small (`inversion`), and is computed for the next larger w of a grid.

**Independent noise.** e0 is summed over: P = sum over k of P(e0 = k) P(|e1 + w k| <= q), by the exact law of noise
drawn on, or rounded to, the whole numbers. If there are many k, those far from 0 are replaced by the next of a grid,
which is farther out.

**One cube.** Given its size t both are uniform on [-t, t]. P(|U1 + w U0| > x) for two that are uniform on [-1, 1] is,
for w <= 1, 1 - x up to x = 1 - w and (1 + w - x)^2 / (4 w) from there to 1 + w; a w above 1 is w times 1/w. With x =
q/t and t of law Gamma(d+1), the means of 1, 1/t and 1/t^2 over a range of t are differences of the regularised gamma
functions Q(d+1), Q(d)/d and Q(d-1)/(d (d-1)). A staircase has few sizes, which are summed over.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from compliance.intervals.inversion import BEYOND, Reach
from fairwall.arrays import Floats
from fairwall.laws.noise.distributions import Gaussian, Laplace
from fairwall.laws.noise.linf_ball import CubeNoise
from fairwall.laws.noise.quantiles import distribution, noise_reach

Additive: TypeAlias = Laplace | Gaussian | CubeNoise
"""The laws of noise on N0 and on sums."""

_FINE = 250
"""Grid of weights: multiples of 1/250 up to 1, and powers of 1.004 beyond."""

_COARSE = 100
"""Grid of weights for two cubes: multiples of 1/100 of the sum of all other weights."""

_COARSER = 1.02
"""Ratio of the grid on which N0's noise far from 0 is rounded outwards."""

_FEW = 1000.0
"""Largest deviation at which discrete Gaussian noise is summed number by number."""

_DOUBLINGS = 200

_SEED = 2014
_DRAWS = 20_000
_LEAST_WEIGHT = 1e-300

_LEVELS = (*np.arange(0, 0.9, 1e-3).tolist(), *np.arange(0.9, 1, 1e-4).tolist(), 1.0)
"""Levels of the quantiles of draws that are kept."""

_MORE, _AT_ONCE = 5, 1_000_000
"""Factor on the draws for few models, and most numbers drawn at a time with it."""

_SURER = 6.2
"""Standard deviations of a quantile of draws by which it is raised: exceeded once in 10^9."""


@dataclass(frozen=True)
class Size:
    """N0 as released.

    `value`: a possible N0, or a number between two. `whole`: whether the noise was drawn on the whole numbers, or
    rounded to one. `shared`: whether it is a coordinate of the very cube that the sums' noise is from.
    """

    value: float
    law: Additive
    whole: bool = True
    shared: bool = False

    @property
    def reach(self) -> float:
        """R: largest distance at which N0 is searched."""
        return noise_reach(self.law, 1 - BEYOND) + (0.5 if self.whole else 0.0)

    def range(self, fewest: int, n: int) -> tuple[float, float]:
        """Return the least and the largest N searched, for n people and groups of at least `fewest`."""
        reach = self.reach
        return max(float(fewest), self.value - reach), min(float(n - fewest), self.value + reach)


def of_sums(size: Size, law: Additive, units: Floats, rounded: Floats) -> Reach:
    """Return q for the noise on N0 and on the sums of a stratum.

    `law`, `units`: of the sums' noise, and its unit for each model, shape (m,). `rounded`: largest change of each sum
    by rounding, shape (m,).
    """
    scales = np.where(units > 0, units, 1.0)

    def reach(least: Floats, most: Floats, level: float) -> Floats:
        weights = np.maximum(np.abs(least), np.abs(most)) / scales
        places = np.ceil(np.where(weights < 1, _FINE * weights, _FINE * (1 + np.log(np.maximum(weights, 1.0)))))
        known = _quantiles(size.law, law, size.whole, size.shared, level)
        different = np.unique(places)
        missing = [place for place in different.tolist() if place not in known]
        if missing:
            at = np.array(missing)
            at = np.where(at < _FINE, at / _FINE, np.exp(at / _FINE - 1))
            known.update(zip(missing, _solved(size, law, at, level), strict=True))
        q: Floats = scales * np.array([known[place] for place in places.tolist()]) + rounded
        return q

    return reach


@lru_cache(maxsize=512)
def _quantiles(size: Additive, sums: Additive, whole: bool, shared: bool, level: float) -> dict[float, float]:  # noqa: ARG001
    """Return the cache of q for these laws, by the place of w in its grid."""
    return {}


def _solved(size: Size, law: Additive, weights: Floats, level: float) -> list[float]:
    """Return q for each w, rounded up."""
    if size.shared:
        assert isinstance(law, CubeNoise), "noise is shared by the coordinates of one cube"
        level, within = level + BEYOND, _in_one_cube(law, weights)
    else:
        values, chances = _noise_on_size(size)
        if not law.scale:
            order = int(np.searchsorted(np.cumsum(chances), level))
            found: list[float] = (weights * values[min(order, values.size - 1)]).tolist()
            return found
        within = _independent(law, weights[:, np.newaxis] * values, chances)
    low, high = np.zeros(weights.size), np.full(weights.size, noise_reach(law, level))
    for _ in range(_DOUBLINGS):
        if not (short := within(high) < level).any():
            break
        low, high = np.where(short, high, low), np.where(short, 2 * high, high)
    else:
        raise ValueError(f"noise on N0 is within reach less often than {level:g}")
    # The logarithm of what lies beyond is nearly straight.
    missed = [np.log(np.maximum(1 - within(end), 1e-300)) for end in (low, high)]
    for _ in range(40):
        if (high - low <= 1e-4 * high).all():
            break
        share = (missed[0] - math.log(1 - level)) / np.maximum(missed[0] - missed[1], 1e-300)
        middle = low + (high - low) * np.clip(share + 1e-4, 0.05, 0.95)
        beyond = np.log(np.maximum(1 - within(middle), 1e-300))
        enough = beyond <= math.log(1 - level)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        missed = [np.where(enough, missed[0], beyond), np.where(enough, beyond, missed[1])]
    solved: list[float] = high.tolist()
    return solved


def _independent(law: Additive, shift: Floats, chances: Floats) -> Callable[[Floats], Floats]:
    below = distribution(law)

    def within(q: Floats) -> Floats:
        inside: Floats = (below(q[:, np.newaxis] - shift) - below(-q[:, np.newaxis] - shift)) @ chances
        return inside

    return within


def _in_one_cube(law: CubeNoise, weights: Floats) -> Callable[[Floats], Floats]:
    d, larger = law.sides, np.maximum(1.0, weights)
    w = np.minimum(1.0, weights) / larger
    if law.stair:
        sizes, chances = law.sizes(np.empty(0))
        return lambda q: 1 - _beyond((q / larger)[:, np.newaxis] / sizes, w[:, np.newaxis]) @ chances
    from scipy.special import gammaincc

    def within(q: Floats) -> Floats:
        x = q / law.scale / larger
        first, last = x / (1 + w), x / np.maximum(1 - w, 1e-9)

        def between(order: int) -> Floats:
            of_range: Floats = gammaincc(d + 1 - order, first) - gammaincc(d + 1 - order, last)
            return of_range

        middle = (1 + w) ** 2 * between(0) - 2 * (1 + w) * x * between(1) / d + x**2 * between(2) / (d * (d - 1))
        far = gammaincc(d + 1, last) - x / d * gammaincc(d, last)
        alone = gammaincc(d + 1, x) - x / d * gammaincc(d, x)
        inside: Floats = 1 - np.where(w > 1e-6, middle / np.maximum(4 * w, 1e-9) + far, alone)
        return inside

    if d == 1:
        # N0 alone: all models predict the same for everybody, and their sums follow from it.
        return lambda q: 1 - np.asarray(gammaincc(2, q / law.scale) - q / law.scale * gammaincc(1, q / law.scale))
    return within


def _beyond(x: Floats, w: Floats) -> Floats:
    """Return P(|U1 + w U0| > x), w at most 1."""
    part = np.square(np.maximum(1 + w - x, 0.0)) / np.maximum(4 * w, 1e-9)
    beyond: Floats = np.where(x <= 1 - w, 1 - x, part)
    return beyond


def _noise_on_size(size: Size) -> tuple[Floats, Floats]:
    """Return absolute values of N0's noise within R, ascending and rounded outwards, and their probabilities.

    Both signs count together: e1 is symmetric.
    """
    law, reach = size.law, size.reach
    if not law.scale:
        return np.zeros(1), np.ones(1)
    below = distribution(law)
    if not size.whole:
        edges = reach * np.concatenate([np.arange(1, 64) / 256, np.geomspace(0.25, 1.0, 64)])
        return edges, np.diff(2 * below(edges) - 1, prepend=0.0)
    powers = _COARSER ** np.arange(math.ceil(math.log(reach + 2, _COARSER)))
    edges = np.unique(np.floor(np.concatenate([[0.0, reach], np.minimum(powers, reach)])))
    if isinstance(law, Laplace):
        # P(|k| <= K) for P(k) ~ r^|k|.
        r = math.exp(-1 / law.scale)
        inside = 1 - 2 * r ** (edges + 1) / (1 + r)
    elif isinstance(law, Gaussian) and law.scale < _FEW:
        k = np.arange(math.ceil(12 * law.scale) + 2.0)
        chances = np.exp(-0.5 * (k / law.scale) ** 2) * np.where(k > 0, 2.0, 1.0)
        inside = np.cumsum(chances / chances.sum())[np.minimum(edges, k[-1]).astype(np.intp)]
    else:
        # Rounded noise; of discrete Gaussian noise of a large deviation that is the same to 1 part in deviation^2.
        inside = 2 * below(edges + 0.5) - 1
    return edges, np.diff(inside, prepend=0.0)


@dataclass(frozen=True)
class Noises:
    """The laws of noise on sums of a stratum.

    `common`: of noise that sums share. `coordinates`: number of coordinates of the common noise. `apart`: whether
    shared noise on N0 is from the sums' own cube, not from the common one.
    """

    own: Additive
    common: CubeNoise | None = None
    coordinates: int = 0
    apart: bool = False


@lru_cache(maxsize=16)
def _drawn(size: Size, noises: Noises, draws: int) -> Floats:
    """Draw noise on N0, on two sums, and the common noise, shape (3 + r, draws); N0's noise beyond R is infinite."""
    generator = np.random.default_rng(_SEED)

    def of(law: Additive, numbers: int) -> Floats:
        if not isinstance(law, CubeNoise):
            return law.sample(generator, (numbers, draws))
        return law.draw_sizes(generator, draws) * generator.uniform(-1.0, 1.0, (numbers, draws))

    of_size, further = ([], 1) if size.shared else ([of(size.law, 1)], 0)
    if noises.common is None:
        drawn = np.vstack([*of_size, of(noises.own, 2 + further)])
    elif noises.apart:
        drawn = np.vstack([*of_size, of(noises.own, 2 + further), of(noises.common, noises.coordinates)])
    else:
        common = of(noises.common, noises.coordinates + further)
        drawn = np.vstack([*of_size, common[:further], of(noises.own, 2), common[further:]])
    if size.whole:
        # Rounded noise lies no nearer to 0 than what is drawn on the whole numbers.
        drawn[0] = np.rint(drawn[0])
    drawn[0, np.abs(drawn[0]) > size.reach] = np.inf
    return drawn


def of_draws(size: Size, noises: Noises, about: Floats, level: float, rounded: Floats) -> Floats:
    """Return q, shape (m,), for weighted sums of noise on N0, on two sums and in common; weights have shape (3 + r, m).

    `rounded` is the largest change of the sum by rounding, shape (m,).
    """
    drawn = _drawn(Size(0.0, size.law, size.whole, size.shared), noises, _draws_for(about.shape[1]))
    place = _place(level, drawn.shape[1])
    return np.array([float(np.partition(_sizes(weights, drawn), place)[place]) for weights in about.T]) + rounded


def of_common(size: Size, noises: Noises, units: Floats, weights: Floats, rounded: Floats) -> Reach:
    """Return q for the noise on N0, on a sum, and in common, with weights of shape (r, m). Arguments as `of_sums`.

    N0's weight is rounded up to the next of a grid, and so are levels.
    """
    steps = (units + np.abs(weights).sum(axis=0)) / _COARSE
    steps = np.where(steps > 0, steps, 1.0)
    drawn = _drawn(Size(0.0, size.law, size.whole, size.shared), noises, _draws_for(len(units)))
    kept = np.unique([math.ceil(level * (drawn.shape[1] - 1)) for level in _LEVELS])
    known: dict[bytes, Floats] = {}

    def quantiles(model: int, weight: float) -> Floats:
        of_model = np.concatenate([[weight * steps[model], units[model], 0.0], weights[:, model]])
        if (key := of_model.tobytes()) not in known:
            known[key] = np.sort(_sizes(of_model, drawn))[kept]
        return known[key]

    def reach(least: Floats, most: Floats, level: float) -> Floats:
        of_size = np.ceil(np.maximum(np.abs(least), np.abs(most)) / steps).tolist()
        at = int(np.searchsorted(kept, _place(level, drawn.shape[1])))
        return np.array([quantiles(*each)[at] for each in enumerate(of_size)]) + rounded

    return reach


def _draws_for(models: int) -> int:
    return min(max(_AT_ONCE // models // _DRAWS, 1), _MORE) * _DRAWS


def _place(level: float, draws: int) -> int:
    """Return the place of the level's quantile among sorted draws, raised by `_SURER` deviations."""
    return min(math.ceil((level + _SURER * math.sqrt(level * (1 - level) / draws)) * (draws - 1)), draws - 1)


def _sizes(weights: Floats, drawn: Floats) -> Floats:
    of_size = weights[:1]
    # Not 0 times what lies beyond R.
    sizes: Floats = np.abs(np.concatenate([np.where(of_size == 0, _LEAST_WEIGHT, of_size), weights[1:]]) @ drawn)
    return sizes
