r"""Noise from a cube: whatever one person moves by at most 1 in each coordinate is hidden at one price, however many.

The mechanism is the K-norm mechanism of Hardt and Talwar (STOC 2010) with the cube as its ball: for numbers x in d
coordinates that one person moves by at most 1 each, all at once, noise of density proportional to exp(-eps max_j |z_j|)
costs eps, since max |z + v| <= max |z| + max |v|.

**What one flip moves.** Of a stratum's values v (public, in [0, 1]) take for each model j the midrange c_j and the
half-range D_j over all its people. A flip moves nu_j = (sum over a=0 of (v_j - c_j)) / D_j by (v_j(i) - c_j) / D_j for
one person i: by at most 1. N0 is the same sum of a model that is 1 for everybody, with c = 0 and D = 1: one coordinate
more. A model that predicts the same for everybody has no nu (its sum is c_j N0), and one whose nu_j is another's, or
its negative, needs none of its own (`coordinates`).

**No rounding of secrets.** Each person's (v_j - c_j) / D_j is rounded to whole steps of a grid with 1/h steps to 1,
before anything is added up: k from -1/h to 1/h. Their sum over a=0 is a whole number, exactly, and moves by at most 1/h
steps. So the discrete law P(z) ~ exp(-lambda max |z|) on the grid costs lambda / h: it is lambda = eps h, with no
allowance. Whoever rounds the sum instead needs one: two whole numbers rint(y) and rint(y') are apart by at most
floor(|y - y'|) + 1, which is more than 1/h where 1/h is not whole, or where float64 adds anything to |y - y'|. With 1/h
whole and an error below one step that is 1/h + 1 steps, lambda = eps h / (1 + h). Rounding people moves a group's mean
by at most h D_j / 2, and its sum by n D_j h / 2.

**The law is a mixture.** With r = e^-lambda, r^M = (1 - r) sum over t >= M of r^t. Hence for M = max |z|

    exp(-lambda M) = (1 - r) sum over t of r^t (2t+1)^d [1{M <= t} / (2t+1)^d]:

draw T with P(T = t) ~ r^t (2t+1)^d, then every coordinate evenly from -T..T. (The largest is then at most T, and T only
one of many that may have made it: P(M = m) ~ ((2m+1)^d - (2m-1)^d) r^m.)

**Drawing T.** A sum G of d+1 geometric numbers has P(G = t) ~ r^t (t+1)...(t+d). Keep it with probability

    (t + 1/2)^d / ((t+1)...(t+d)),    else draw again:

what is kept has P(t) ~ r^t (t + 1/2)^d ~ r^t (2t+1)^d. The factors (2t+1)/(2t+2k), k = 1..d, are probabilities, so that
d coins of whole odds decide it: no number is rounded. About exp(-d lambda/2) of all are kept.

**One coordinate.** On a fine grid T lambda is Gamma(d+1), and a coordinate, in units of 1/lambda, has with Q the
regularised upper incomplete gamma function

    density Q(d, |x|) / (2d),    P(|X| > x) = E[(1 - x/T)+] = Q(d+1, x) - (x/d) Q(d, x),    variance (d+1)(d+2)/3;

d = 1 is Laplace. Coordinates are uncorrelated, E[T^2]/3 each, and not independent: they share T. The k-th, given that
the largest of those before it is M, has with a = d-k+1

    P(|X_k| <= x) = x/a Q(a, M) / Q(a+1, M) for x <= M, else 1 - (Q(a+1, x) - (x/a) Q(a, x)) / Q(a+1, M).

**N0.** As one more coordinate it costs the others (d+2)/(d+1) of noise, and its own is as large as theirs. Apart, with
the share w of epsilon, it costs them 1/(1-w). An error of N0 counts delta = |mean - c| / D times as much as one of nu.
With w = `share_of_size` the first way has the smaller median error up to d = 25, by 42% where d = delta = 1, whatever
delta is (but for one percent at d = 25, delta = 1). Beyond, the second's is at most 9% larger and up to 12% smaller,
and N0, which an account's later batches need too, is known 1.4 times better at d = 26 and 5.6 times at d = 400. (Where
epsilon is so large that N0 is as good as exact once it is rounded, the second would be better for few sums too.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.calibration import require_batch
from fairwall.laws.counts import share_of_size
from fairwall.laws.decimals import least_scale
from fairwall.laws.noise import Scaled

TOGETHER = 25
"""Up to so many sums N0 is one more coordinate of theirs; beyond, it has noise of its own."""


@dataclass(frozen=True)
class CubeScales:
    """The noise of one batch.

    Parameters
    ----------
    scale, sides : float, int
        Of the cube: 1/lambda, where a person moves each coordinate by at most 1, and d.
    size : float or None
        Of Laplace noise on N0 apart; None where N0 was bought before or is the cube's first coordinate.
    together : bool
        Whether it is that.
    """

    scale: float
    sides: int
    size: float | None
    together: bool


def cube_scales(sums: int, epsilon: float, *, size_known: bool = False) -> CubeScales:
    """Return the noise that makes a batch epsilon-private; none for an infinite epsilon.

    Released are d different centred sums of the stratum, see `coordinates`, and N0, unless it was bought before.
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
    """Return what `cube_scales` cost two neighbours one of whose sums moves fully, whatever the counts."""
    scales = cube_scales(sums, epsilon, size_known=size_known)
    if math.isinf(epsilon):
        return math.inf
    return 1 / scales.scale + (1 / scales.size if scales.size else 0.0)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """What a stratum's values are in units of a flip. Public.

    Parameters
    ----------
    centres, halves : ndarray of float64
        c and D of each model, shape (k,).
    steps : ndarray of float64
        Whole numbers, shape (d, n): what each person counts in each coordinate, from -1/h to 1/h.
    place : ndarray of intp
        Whose coordinate is each model's, shape (k,): from 0 to d-1, -1 where it predicts the same for all.
    sign : ndarray of float64
        1, or -1 for a coordinate's negative, shape (k,).
    """

    centres: NDArray[np.float64]
    halves: NDArray[np.float64]
    steps: NDArray[np.float64]
    place: NDArray[np.intp]
    sign: NDArray[np.float64]

    def sums(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each model's sum of v - c, shape (..., k), from the coordinates, shape (..., d)."""
        if not released.shape[-1]:
            return np.zeros((*released.shape[:-1], len(self.place)))
        told: NDArray[np.float64] = self.halves * self.sign * released[..., self.place]
        return told


def coordinates(values: NDArray[np.float64], step: float) -> Coordinates:
    """Turn the values of everybody in a stratum, shape (k, n), into coordinates that one person moves by at most 1.

    The step is h: a power of two, at most 1.
    """
    least, most = values.min(axis=1), values.max(axis=1)
    centres, halves = (least + most) / 2, (most - least) / 2
    telling = np.flatnonzero(halves > 0)
    steps = (values[telling] - centres[telling, np.newaxis]) / halves[telling, np.newaxis]
    steps = np.clip(np.rint(steps / step), -1 / step, 1 / step)
    # A mirror image is the same coordinate; the first person with a number other than 0 says which is which.
    first = steps[np.arange(len(steps)), np.argmax(steps != 0, axis=1)]
    sign = np.where(first < 0, -1.0, 1.0)
    steps *= sign[:, np.newaxis]
    # As bytes: rows compare as one thing each. Adding 0.0 takes the sign from zeros.
    seen: dict[bytes, int] = {}
    places = [seen.setdefault((row + 0.0).tobytes(), len(seen)) for row in steps]
    place, signs = np.full(len(values), -1, dtype=np.intp), np.zeros(len(values))
    place[telling], signs[telling] = places, sign
    kept = np.unique(np.array(places, dtype=np.intp), return_index=True)[1]
    return Coordinates(centres, halves, steps[kept], place, signs)


@dataclass(frozen=True)
class CubeNoise(Scaled):
    """One coordinate of the cube's noise: density Q(d, |x|/scale) / (2 d scale), Laplace where d = 1.

    The scale is 1/lambda, at least 0, and d is how many `sides` the cube has, at least 1.
    """

    sides: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sides < 1:
            raise ValueError("a cube has at least one side")

    def _log_density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        from scipy.special import gammaincc, gammaln

        y, d = np.abs(x) / self.scale, self.sides
        upper = gammaincc(d, y)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Far out, where Q is no float64 number any more: the first terms of Gamma(d, y) for y well above d.
            far = (d - 1) * np.log(y) - y - gammaln(d) - np.log1p(-(d - 1) / y)
            log: NDArray[np.float64] = np.where(upper > 1e-290, np.log(upper), far)
        return log - math.log(2 * d * self.scale)

    def _sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        drawn: NDArray[np.float64] = rng.gamma(self.sides + 1, self.scale, size) * rng.uniform(-1.0, 1.0, size)
        return drawn

    def median_abs(self) -> float:
        """Return the median of the noise's absolute value."""
        return self.reach(0.5)

    def variance(self) -> float:
        """Return the variance; the covariance of two coordinates is 0."""
        return self.scale**2 * (self.sides + 1) * (self.sides + 2) / 3

    def distribution(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of at most x, in x's shape, at a scale above 0."""
        from scipy.special import gammaincc

        y, d = np.abs(x) / self.scale, self.sides
        beyond = gammaincc(d + 1, y) - y / d * gammaincc(d, y)
        below: NDArray[np.float64] = np.where(x < 0, beyond / 2, 1 - beyond / 2)
        return below

    def reach(self, level: float) -> float:
        """Return what the noise is at most, either way, with a probability of the level, in (0, 1)."""
        return self.scale * _reach(self.sides, level)


def made_uniform(noise: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Make independent numbers that are uniform on [0, 1] out of a cube's noise, a coordinate after the other.

    The noise is all coordinates of one draw, shape (d,), and its scale 1/lambda, above 0.
    """
    from scipy.special import gammaincc

    x = np.abs(noise) / scale
    before = np.maximum.accumulate(np.append(0.0, x[:-1]))
    a = np.arange(x.size, 0, -1.0)
    inside = x / a * gammaincc(a, before) / gammaincc(a + 1, before)
    outside = 1 - (gammaincc(a + 1, x) - x / a * gammaincc(a, x)) / gammaincc(a + 1, before)
    sizes: NDArray[np.float64] = np.where(x <= before, inside, outside)
    return 0.5 + np.sign(noise) * sizes / 2


@lru_cache(maxsize=1024)
def _reach(sides: int, level: float) -> float:
    from scipy.special import gammaincc

    def beyond(x: float) -> float:
        return float(gammaincc(sides + 1, x) - x / sides * gammaincc(sides, x))

    low, high = 0.0, 2.0 * sides
    while beyond(high) > 1 - level:
        high *= 2
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > 1 - level else (low, middle)
    return high
