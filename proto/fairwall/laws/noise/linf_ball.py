"""Noise from a cube: one privacy price for any number of coordinates that one person moves by at most 1 each.

The mechanism is the K-norm mechanism of Hardt and Talwar (STOC 2010) with the cube as its ball: for numbers x in d
coordinates that one person moves by at most 1 each, all at once, noise of density proportional to exp(-eps max_j |z_j|)
costs eps, since max |z + v| <= max |z| + max |v|.

**What one flip moves.** Of a stratum's values v (public, in [0, 1]) take for each model j the midrange c_j and the
half-range D_j over all its people. A flip moves nu_j = (sum over a=0 of (v_j - c_j)) / D_j by (v_j(i) - c_j) / D_j for
one person i: by at most 1. N0 is the same sum of a model that is 1 for everybody, with c = 0 and D = 1: one coordinate
more. A model that predicts the same for everybody has no nu (its sum is c_j N0), and one whose nu_j equals another's,
or its negative, shares the coordinate (`coordinates`).

**No rounding of secrets.** Each person's (v_j - c_j) / D_j is rounded to whole steps of a grid with 1/h steps to 1,
before anything is added up: k from -1/h to 1/h. Their sum over a=0 is a whole number, exactly, and moves by at most 1/h
steps. So the discrete distribution P(z) ~ exp(-lambda max |z|) on the grid costs lambda / h: lambda = eps h, with no
allowance. Rounding the sum instead would need one: two whole numbers rint(y) and rint(y') differ by at most
floor(|y - y'|) + 1, which is more than 1/h where 1/h is not whole, or where float64 adds anything to |y - y'|. With 1/h
whole and an error below one step that is 1/h + 1 steps, lambda = eps h / (1 + h). Rounding people moves a group's mean
by at most h D_j / 2, and its sum by n D_j h / 2.

**The distribution is a mixture.** With r = e^-lambda, r^M = (1 - r) sum over t >= M of r^t. Hence for M = max |z|

    exp(-lambda M) = (1 - r) sum over t of r^t (2t+1)^d [1{M <= t} / (2t+1)^d]:

draw T with P(T = t) ~ r^t (2t+1)^d, then every coordinate uniformly from -T..T. (The largest is then at most T, and
T only one of many that may have made it: P(M = m) ~ ((2m+1)^d - (2m-1)^d) r^m.)

**Drawing T.** A sum G of d+1 geometric numbers has P(G = t) ~ r^t (t+1)...(t+d). Keep it with probability

    (t + 1/2)^d / ((t+1)...(t+d)),    else draw again:

the kept ones have P(t) ~ r^t (t + 1/2)^d ~ r^t (2t+1)^d. The factors (2t+1)/(2t+2k), k = 1..d, are probabilities, so
d coins of whole odds decide it: no number is rounded. About exp(-d lambda/2) of all are kept.

**One coordinate.** On a fine grid T lambda is Gamma(d+1), and a coordinate, in units of 1/lambda, has with Q the
regularised upper incomplete gamma function

    density Q(d, |x|) / (2d),    P(|X| > x) = E[(1 - x/T)+] = Q(d+1, x) - (x/d) Q(d, x),    variance (d+1)(d+2)/3;

d = 1 is Laplace. Coordinates are uncorrelated, E[T^2]/3 each, and not independent: they share T. The k-th, given that
the largest of those before it is M, has with a = d-k+1

    P(|X_k| <= x) = x/a Q(a, M) / Q(a+1, M) for x <= M, else 1 - (Q(a+1, x) - (x/a) Q(a, x)) / Q(a+1, M).

**N0.** As one more coordinate it costs the others (d+2)/(d+1) of noise, and its own is as large as theirs. Separately,
with the share w of epsilon, it costs them 1/(1-w). An error of N0 counts delta = |mean - c| / D times as much as one of
nu. With w = `share_of_size` the first way has the smaller median error up to d = 25, by 42% where d = delta = 1, at any
delta (but for one percent at d = 25, delta = 1). Beyond, the second's is at most 9% larger and up to 12% smaller,
and N0, which an account's later batches need too, is known 1.4 times better at d = 26 and 5.6 times at d = 400. (Where
epsilon is so large that N0 is exact once rounded, the second would be better for few sums too.)

**Staircases.** For few sides and a large epsilon the mixture over all sizes wastes noise. Let one person move a
coordinate by L = 1/h steps, g be a whole number from 1 to L, and T only one of T_k = g + k L, k = 0, 1, ..., with

    P(k) ~ e^(-eps k) (2 T_k + 1)^d,    so that    P(z) ~ sum over T_k >= M of e^(-eps k) ~ e^(-eps k(M)),

k(M) the least k with T_k >= M = max |z|. One person moves M by at most L steps, and so k(M) by at most one: the loss is
at most eps, and eps from M = g to g + 1. (Were sizes less than L apart, k(M) would move by two at times.) For one side
it is the staircase mechanism of Geng and Viswanath (ISIT 2014). In units of what a person moves by, with gamma = g/L, T
is gamma + k and P(k) ~ e^(-eps k) (gamma + k)^d.

gamma is a function of d and epsilon, which are public: of the multiples of 1/32 the one with the least mean of median
and root mean square, the ranking criterion of `fairwall.laws.choice.prediction`; except those whose draws would take
long, and those where 95% of a coordinate's noise reaches farther than with all sizes. (Of two coordinates that err
together, as N0 and a sum do, 95% may reach up to 1.08 times as far, at eps = 3.7 for d = 2.) That mean is then less
than with all sizes by a factor of (eps = 1, 2, 3, 5, 7)

    1.06, 1.25, 1.26, 1.81, 2.60 for d = 1,    1.01, 1.04, 1.16, 1.36, 1.79 for 2,    1.00, 1.04, 1.08, 1.14, 1.48 for 3

Staircases are taken for up to `STAIRS` sides and where that factor is at least `_WORTH`. With w_k = P(k)

    P(|X| > x) = sum over T_k > x of w_k (1 - x/T_k),    density sum over T_k >= x of w_k / (2 T_k),    E[T^2]/3.

**Drawing k.** A sum G of d+1 geometric numbers of ratio e^-eps has P(G = k) ~ e^(-eps k) (k+1)...(k+d). Keep it with d
coins of whole odds (2 T_k + 1) / (c (k+j)), j = 1..d, c = max(2L, 2g+1): probabilities, as 2g + 1 <= c j and 2L <= c.
(g = 0 and L = 1 give all sizes.) At a large epsilon about gamma^d / d! of all are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from fairwall.arrays import Floats
from fairwall.laws.mechanisms.calibration import require_batch
from fairwall.laws.noise.count_noise import share_of_size
from fairwall.laws.noise.distributions import Scaled
from fairwall.laws.privacy.amounts import least_scale

TOGETHER = 25
"""Most sums for which N0 is another coordinate of their cube; beyond, N0 has separate noise."""

STAIRS = 3
"""Most sides of a cube with a staircase of sizes."""

_WORTH, _NO_STAIR = 1.03, 0.5
"""Least factor by which a staircase must reduce the noise; and an epsilon up to which it does not."""

_GAMMAS, _KEPT = (np.arange(1, 33) / 32).tolist(), 1 / 4000
"""Candidates for gamma; and the least acceptance rate of draws, so that a draw takes some milliseconds at most."""

_REACHED = 0.95
"""Level of intervals, at which a staircase's noise must not reach farther than that of all sizes."""

_NEGLIGIBLE = 60.0
"""Distance from the least size, in scales, beyond which sizes are ignored."""


@dataclass(frozen=True)
class CubeScales:
    """Noise of one batch.

    `scale`, `sides`: of the cube: 1/lambda, where a person moves each coordinate by at most 1, and d. `size`: scale of
    separate Laplace noise on N0; None where N0 was bought before or is the cube's first coordinate. `together`: whether
    N0 is the cube's first coordinate.
    """

    scale: float
    sides: int
    size: float | None
    together: bool

    @property
    def law(self) -> CubeNoise:
        """Return the noise on a coordinate: a staircase's where that pays."""
        law = CubeNoise(self.scale, max(self.sides, 1))
        stair = 1 / self.scale if self.scale else 0.0
        worth = law.sides <= STAIRS and stair > _NO_STAIR and _best_stairs(law.sides, stair)[1] >= _WORTH
        return replace(law, stair=stair) if worth else law


def cube_scales(sums: int, epsilon: float, *, size_known: bool = False) -> CubeScales:
    """Return the noise that makes a batch epsilon-private; none for an infinite epsilon.

    The release is d different centred sums of the stratum, see `coordinates`, and N0, unless it was bought before.
    """
    require_batch(max(sums, 1), epsilon)
    together = not size_known and sums <= TOGETHER
    if math.isinf(epsilon):
        return CubeScales(0.0, sums + together, None if size_known or together else 0.0, together=together)
    if size_known or together:
        return CubeScales(least_scale(epsilon), sums + together, None, together=together)
    size = 1 / (share_of_size(sums) * epsilon)
    return CubeScales(least_scale(epsilon, size), sums, size, together=False)


def cube_loss(sums: int, epsilon: float, *, size_known: bool = False) -> float:
    """Return the privacy loss of `cube_scales` for neighbours with one sum moving fully, at any counts."""
    scales = cube_scales(sums, epsilon, size_known=size_known)
    if math.isinf(epsilon):
        return math.inf
    return 1 / scales.scale + (1 / scales.size if scales.size else 0.0)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A stratum's values in units of one flip. Public.

    Parameters
    ----------
    centres, halves : c and D of each model, shape (k,).
    kept : the models whose values are the coordinates, shape (d,).
    place : each model's coordinate, 0 to d-1, shape (k,); -1 where it predicts the same for all.
    sign : 1, or -1 for a coordinate's negative, shape (k,); 0 where it predicts the same for all.
    step : h: a power of two, at most 1.
    """

    centres: Floats
    halves: Floats
    kept: NDArray[np.intp]
    place: NDArray[np.intp]
    sign: Floats
    step: float

    @property
    def sides(self) -> int:
        """The number of coordinates: d."""
        return len(self.kept)

    def sums(self, released: Floats) -> Floats:
        """Return each model's sum of v - c, shape (..., k), from the coordinates, shape (..., d)."""
        if not released.shape[-1]:
            return np.zeros((*released.shape[:-1], len(self.place)))
        told: Floats = self.halves * self.sign * released[..., self.place]
        return told

    def of_sums(self, people: float, sums: Floats) -> Floats:
        """Return the coordinates' sums over people, shape (d,), from values' sums, shape (k,); exact for decisions."""
        told: Floats = (self.sign * (sums - self.centres * people))[self.kept] / self.halves[self.kept]
        return told

    def of(self, values: Floats) -> Floats:
        """Return some people's contributions, whole numbers in -1/h .. 1/h, shape (d, b), from values, shape (k, b)."""
        return self._of(values[self.kept], self.kept)

    def pieces(self, pieces: Iterable[Floats]) -> Iterator[Floats]:
        """Yield everybody's contributions to some coordinates at a time, shape (r, n), from rows of values."""
        first = 0
        for values in pieces:
            kept = self.kept[(self.kept >= first) & (self.kept < first + len(values))]
            if len(kept):
                yield self._of(values[kept - first], kept)
            first += len(values)

    def _of(self, values: Floats, models: NDArray[np.intp]) -> Floats:
        return self.sign[models, np.newaxis] * _steps(values, self.centres[models], self.halves[models], self.step)


def coordinates(pieces: Iterable[Floats], step: float) -> Coordinates:
    """Return the values of everybody in a stratum as coordinates that one person moves by at most 1.

    The values come in pieces of some rows, shape (r, n), k in all. The step is h: a power of two, at most 1.
    """
    about, keys = list[Floats](), list[bytes]()
    for values in pieces:
        least, most = values.min(axis=1), values.max(axis=1)
        centres, halves, signs = (least + most) / 2, (most - least) / 2, np.zeros(len(values))
        telling = np.flatnonzero(halves > 0)
        steps = _steps(values[telling], centres[telling], halves[telling], step)
        # A mirror image shares the coordinate, signed so that its sum is above 0 or, at 0, its first nonzero number is.
        first = steps[np.arange(len(steps)), np.argmax(steps != 0, axis=1)]
        more = steps.sum(axis=1)
        signs[telling] = np.sign(np.where(more == 0, first, more))
        # Rows are compared by digest. Adding 0.0 takes the sign from zeros.
        own = (
            blake3((sign * told + 0.0).data.cast("B")).digest()
            for sign, told in zip(signs[telling], steps, strict=True)
        )
        keys += [next(own) if half > 0 else b"" for half in halves]
        about.append(np.stack([least, most, signs]))
    least, most, signs = np.concatenate(about, axis=1)
    return told_apart(least, most, signs, keys, step)


def told_apart(least: Floats, most: Floats, signs: Floats, keys: Sequence[bytes], step: float) -> Coordinates:
    """Return the coordinates of models, from the ends of their values; models with equal keys share one."""
    centres, halves = (least + most) / 2, (most - least) / 2
    seen: dict[bytes, int] = {}
    place, kept = np.full(len(keys), -1, np.intp), list[int]()
    for row in np.flatnonzero(halves > 0).tolist():
        place[row] = seen.setdefault(keys[row], len(seen))
        if place[row] == len(kept):
            kept.append(row)
    return Coordinates(centres, halves, np.array(kept, np.intp), place, np.where(halves > 0, signs, 0.0), step)


def _steps(values: Floats, centres: Floats, halves: Floats, step: float) -> Floats:
    steps: Floats = values - centres[:, np.newaxis]
    steps /= halves[:, np.newaxis]
    steps /= step
    return np.clip(np.rint(steps, out=steps), -1 / step, 1 / step, out=steps)


@dataclass(frozen=True)
class CubeNoise(Scaled):
    """Noise on one coordinate of a cube: all sizes, or a staircase's.

    With all sizes the density is Q(d, |x|/scale) / (2 d scale), Laplace where d = 1. The scale is 1/lambda, at least 0;
    `sides` is d, at least 1. `stair` is 0 for all sizes; above 0 it is the distance a person moves a coordinate, in
    scales, and the spacing of sizes.
    """

    sides: int
    stair: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sides < 1:
            raise ValueError("a cube has at least one side")
        if not 0 <= self.stair < math.inf or (self.stair and self.sides > STAIRS):
            raise ValueError(f"a stair is a finite number of at least 0, and 0 for more than {STAIRS} sides")

    @property
    def gamma(self) -> float:
        """The least size of a staircase, in units of one person's move; 0 for all sizes."""
        return _best_stairs(self.sides, self.stair)[0] if self.stair else 0.0

    @property
    def _stairs(self) -> Stairs:
        return _best_stairs(self.sides, self.stair)[2]

    def sizes(self, edges: Floats) -> tuple[Floats, Floats]:
        """Return sizes T and their probabilities: a staircase's sizes, else one between any two quantiles.

        The edges are those quantiles' probabilities, ascending from 0 to 1.
        """
        if self.stair:
            return self.scale * self._stairs.sizes, self._stairs.weights
        from scipy.special import gammaincinv  # loading it takes a while

        return self.scale * gammaincinv(self.sides + 1, (edges[1:] + edges[:-1]) / 2), np.diff(edges)

    def draw_sizes(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Return independent T of the given shape; a draw's coordinates are uniform between -T and T."""
        if not self.stair:
            return rng.gamma(self.sides + 1, self.scale, size)
        drawn: Floats = rng.choice(self.scale * self._stairs.sizes, size, p=self._stairs.weights)
        return drawn

    def _log_density(self, x: Floats) -> Floats:
        y, d = np.abs(x) / self.scale, self.sides
        if self.stair:
            stairs = self._stairs
            # Beyond the sizes kept, the density falls by about e^-eps per size.
            further = np.maximum(np.ceil((y - stairs.sizes[-1]) / self.stair), 0.0)
            k = np.minimum(np.searchsorted(stairs.sizes, y), stairs.sizes.size - 1)
            return np.asarray(np.log(stairs.slopes[k] / (2 * self.scale)) - self.stair * further)
        from scipy.special import gammaincc, gammaln

        upper = gammaincc(d, y)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Far out, where Q underflows: the first terms of Gamma(d, y) for y well above d.
            far = (d - 1) * np.log(y) - y - gammaln(d) - np.log1p(-(d - 1) / y)
            log: Floats = np.where(upper > 1e-290, np.log(upper), far)
        return log - math.log(2 * d * self.scale)

    def _sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        drawn: Floats = self.draw_sizes(rng, size) * rng.uniform(-1.0, 1.0, size)
        return drawn

    def median_abs(self) -> float:
        """Return the median of the noise's absolute value."""
        return self.reach(0.5)

    def variance(self) -> float:
        """Return the variance; the covariance of two coordinates is 0."""
        if self.stair:
            return self.scale**2 * self._stairs.variance()
        return self.scale**2 * (self.sides + 1) * (self.sides + 2) / 3

    def distribution(self, x: Floats) -> Floats:
        """Return the probability of at most x, in x's shape, at a scale above 0."""
        y = np.abs(x) / self.scale
        beyond = self._stairs.beyond(y) if self.stair else _beyond(self.sides, y)
        below: Floats = np.where(x < 0, beyond / 2, 1 - beyond / 2)
        return below

    def reach(self, level: float) -> float:
        """Return the bound on the noise's absolute value that holds with a probability of the level, in (0, 1)."""
        if self.stair:
            return self.scale * self._stairs.reach(level)
        return self.scale * _reach(self.sides, level)


class Stairs(NamedTuple):
    """A staircase's sizes in scales, ascending, without practically impossible ones; their weights w_k; and tail sums.

    `left` has the sum of w_k and `slopes` that of w_k / T_k from each k on, with a 0 at the end.
    """

    sizes: Floats
    weights: Floats
    left: Floats
    slopes: Floats

    @classmethod
    def of(cls, sizes: Floats, weights: Floats) -> Stairs:
        """Return the staircase with its tail sums."""
        left, slopes = (np.append(np.cumsum(of[::-1])[::-1], 0.0) for of in (weights, weights / sizes))
        return cls(sizes, weights, left, slopes)

    def beyond(self, x: Floats) -> Floats:
        """Return P(|X| > x)."""
        k = np.searchsorted(self.sizes, x)
        found: Floats = np.maximum(self.left[k] - x * self.slopes[k], 0.0)
        return found

    def reach(self, level: float) -> float:
        """Return x with P(|X| > x) = 1 - level, by the linear piece on which it lies."""
        k = int(np.argmax(self.left[1:] - self.sizes * self.slopes[1:] <= 1 - level))
        return float((self.left[k] - (1 - level)) / self.slopes[k])

    def variance(self) -> float:
        """Return E[T^2]/3."""
        return float(self.weights @ self.sizes**2) / 3


def _stairs(sides: int, stair: float, gamma: float) -> Stairs:
    k = np.arange(math.ceil(_NEGLIGIBLE / stair) + 1.0)
    weights = np.exp(-stair * k) * (gamma + k) ** sides
    return Stairs.of(stair * (gamma + k[weights > 0]), weights[weights > 0] / weights.sum())


@lru_cache(maxsize=1024)
def _best_stairs(sides: int, stair: float) -> tuple[float, float, Stairs]:
    """Return gamma, the ratio of the noise with all sizes to a staircase's, and the staircase.

    The ratio is 0 if every staircase reaches farther. Ledgers' records of N0 are read by gamma: changing its choice
    would misread older ones.
    """

    def error(law: Stairs | CubeNoise) -> float:
        return (law.reach(0.5) + math.sqrt(law.variance())) / 2

    every = CubeNoise(1.0, sides)
    enough = [gamma for gamma in _GAMMAS if gamma**sides / math.factorial(sides) >= _KEPT]
    found = [(gamma, _stairs(sides, stair, gamma)) for gamma in enough]
    near = [each for each in found if each[1].reach(_REACHED) <= every.reach(_REACHED)]
    gamma, best = min(near or found, key=lambda candidate: error(candidate[1]))
    return gamma, error(every) / error(best) if near else 0.0, best


def made_uniform(noise: Floats, scale: float, stair: float = 0.0) -> Floats:
    """Return independent uniform numbers on [0, 1] from a cube's noise, one coordinate after the other.

    The noise is all coordinates of one draw, shape (d,), its scale is above 0, and `stair` is as of `CubeNoise`.
    """
    from scipy.special import gammaincc

    x = np.abs(noise) / scale
    before = np.maximum.accumulate(np.append(0.0, x[:-1]))
    if stair:
        # Given the earlier coordinates, sizes are weighted by their likelihood.
        sizes, weights = _best_stairs(x.size, stair)[2][:2]
        given = weights / sizes ** np.arange(x.size)[:, np.newaxis] * (sizes >= before[:, np.newaxis])
        within = (given * np.minimum(x[:, np.newaxis] / sizes, 1.0)).sum(axis=1) / given.sum(axis=1)
    else:
        a = np.arange(x.size, 0, -1.0)
        inside = x / a * gammaincc(a, before) / gammaincc(a + 1, before)
        outside = 1 - (gammaincc(a + 1, x) - x / a * gammaincc(a, x)) / gammaincc(a + 1, before)
        within = np.where(x <= before, inside, outside)
    found: Floats = 0.5 + np.sign(noise) * within / 2
    return found


def _beyond(sides: int, x: Floats | float) -> Floats:
    """Return P(|X| > x) with all sizes; x in scales."""
    from scipy.special import gammaincc

    beyond: Floats = gammaincc(sides + 1, x) - x / sides * gammaincc(sides, x)
    return beyond


@lru_cache(maxsize=1024)
def _reach(sides: int, level: float) -> float:
    low, high = 0.0, 2.0 * sides
    while _beyond(sides, high) > 1 - level:
        high *= 2
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _beyond(sides, middle) > 1 - level else (low, middle)
    return high
