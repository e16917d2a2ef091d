r"""Sources of noise, and the release of a noisy number: as a whole multiple of a public grid step.

**Why a grid.** A float64 draw of real-valued noise, added to a float64 secret, does not reach every float64: which of
them it can reach depends on the secret, so the low bits reveal what the noise was meant to hide (Mironov, CCS 2012).
Here every released number is ``step * k`` with an integer k, where the step is a power of two that depends on public
numbers alone and |k| <= 2^53. The product is exact in float64, all multiples have positive probability whatever the
secret, and nothing lies between them.

**How.** Laplace and Gaussian noise are integers: the secret is rounded to the grid first and integer noise is added.
Rounding moves a number by half a step, so it can move the difference of two neighbours by one step; calibration adds
`ROUNDING_STEPS` steps to the sensitivity, the second one for the rounding errors of float64, which `step_for` keeps far
below a step. Cauchy noise is real-valued and exact, and the sum is rounded: post-processing, which needs no allowance.

**System.** `System` draws from the operating system's generator. Laplace noise is the difference of two geometric
numbers (`compliance.noise.geometric`: exact, and no slower for larger noise). Gaussian noise comes from OpenDP's exact
sampler of the discrete law (Canonne, Kamath, Steinke 2020). OpenDP has no Cauchy noise: it is the ratio V/W of a point
in the unit half disk (V, W > 0), drawn with integers. Bits are drawn until the acceptance and the rounded sum are
certain, so there is no error at all. Noise from a cube is made of geometric and whole numbers. Beyond 2^53 steps a
number is cut off there, which is post-processing too.

**Seeded.** `Seeded` draws from a numpy generator, for games that have to replay. Same laws, same grid, but float64
arithmetic underneath: no promise for a real service.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import random
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from compliance.noise.geometric import geometric
from fairwall.arrays import Bools, Floats, Ints
from fairwall.laws.studies.commitment import name_and_nonce, noise_key

STEPS_MAX = 2**53
"""The largest multiple of a step that is released; all integers up to here are float64 numbers."""

ROUNDING_STEPS = 2
"""Steps by which rounding to the grid may enlarge the distance of two neighbours, float64 errors included."""

GAUSSIAN_FINENESS = 30
"""Fineness of the grid for Gaussian noise, see `fairwall.laws.noise.gaussian`."""

_TRIED, _RARE = 64, 60.0
"""Sizes of a staircase drawn at a time; and the distance from the least size, in scales, beyond which none is drawn."""

_FINEST = 2.0**-44
_BITS = 128


def step_for(scale: float, fineness: int = 20, magnitude: float = 1.0) -> float:
    """Return the grid step for noise of a public scale: a power of two, at least 2^-44 of the magnitude.

    Sums of a million float64 numbers have a relative error of 2^-47.

    `scale`: the smallest scale that the noise can have whatever the secret, at least 0. `fineness`: the step is at most
    2^-fineness of the scale, unless float64 cannot tell secrets apart on so fine a grid. `magnitude`: largest absolute
    value that the secret can have.
    """
    if not 0 <= scale < math.inf:
        raise ValueError("the scale must be a finite number of at least 0")
    finest = _FINEST * 2.0 ** math.ceil(math.log2(magnitude))
    return finest if scale == 0 else max(finest, 2.0 ** (math.frexp(scale)[1] - 1 - fineness))


def request_key(seed: bytes, request_id: str) -> bytes:
    """Return the 32-byte key of one request's noise, a function of the case's seed and the request id alone."""
    return hmac.digest(seed, request_id.encode(), hashlib.sha256)


def noise_for(seed: bytes | None, request_id: str) -> Noise:
    """Return one request's noise: a function of seed and request, or the system's without a seed."""
    if seed is None:
        return System()
    return Seeded(np.random.default_rng(int.from_bytes(request_key(seed, request_id), "big")))


def committed_noise(seed: bytes, request_id: str) -> Noise:
    """Return one request's noise from a committed seed, with the ids as names: see `laws.studies.commitment`."""
    # Imported here, so that a game's process does not wait for a library of ciphers.
    from compliance.noise.uniform_bits import KeyedBits

    return System(KeyedBits(noise_key(seed, *name_and_nonce(request_id))))


class Noise(Protocol):
    """A source of noise, whose results lie on the grid."""

    def laplace(self, values: Floats, scale: float, step: float) -> Floats:
        """Round values to multiples of the step and add discrete Laplace noise: P(k steps) ~ exp(-|k| step/scale).

        `values`: secret numbers, shape (size,). `scale`: at least 0; 0 only rounds. `step`: the grid's step, a power of
        two.
        """

    def gaussian(self, values: Floats, sigma: float, step: float) -> Floats:
        """Round values to the grid and add discrete Gaussian noise: P(k steps) ~ exp(-(k step)^2 / (2 sigma^2))."""

    def cauchy(self, values: Floats, scale: float, step: float) -> Floats:
        """Add Cauchy noise to values and round the sums to the grid."""

    def cube(self, values: Floats, scale: float, step: float, least: int = 0) -> Floats:
        """Round values to the grid and add noise of `laws.noise.linf_ball`: P(k steps) ~ exp(-max|k| step/scale).

        `values`: secret numbers, shape (size,), at least one. `scale`: at least 0; 0 only rounds. `step`: the grid's
        step, a power of two; at most scale/size, or draws take long. `least`: above 0 for a staircase: its least size
        in steps. One person moves each value by at most 1, and its sizes are 1 apart. 0 is for a cube of any size.
        """

    def bernoulli(self, probability: float, size: int) -> Bools:
        """Return independent draws, shape (size,), True with the given probability."""

    def bernoulli_exp(self, exponents: Floats) -> Bools:
        """Return independent draws, True with probability exp(-exponent) each; exponents are at least 0."""

    def integers(self, high: int, size: int) -> Ints:
        """Return independent uniform draws from 0 .. high-1, shape (size,)."""

    def permutation(self, n: int) -> Ints:
        """Return a uniform permutation of 0 .. n-1."""


@dataclass(frozen=True, eq=False)
class Seeded:
    """Noise that replays, from a numpy generator. For games, not for service."""

    generator: np.random.Generator

    def laplace(self, values: Floats, scale: float, step: float) -> Floats:
        """See `Noise.laplace`. The difference of two geometric draws has the discrete law."""
        if scale == 0:
            return _on_grid(np.rint(values / step), step)
        success = -math.expm1(-step / scale)
        positive, negative = self.generator.geometric(success, (2, values.size))
        return _on_grid(np.rint(values / step) + (positive - negative), step)

    def gaussian(self, values: Floats, sigma: float, step: float) -> Floats:
        """See `Noise.gaussian`. Rounded normal draws: the discrete law but for (step / sigma)^2 / 24 of it."""
        drawn = self.generator.normal(0.0, sigma, values.size)
        return _on_grid(np.rint(values / step) + np.rint(drawn / step), step)

    def cauchy(self, values: Floats, scale: float, step: float) -> Floats:
        """See `Noise.cauchy`."""
        return _on_grid(np.rint((values + scale * self.generator.standard_cauchy(values.size)) / step), step)

    def cube(self, values: Floats, scale: float, step: float, least: int = 0) -> Floats:
        """See `Noise.cube`."""
        (drawn,) = self.cubes(values[np.newaxis], scale, step, least)
        return np.asarray(drawn)

    def cubes(self, values: Floats, scale: float, step: float, least: int = 0) -> Floats:
        """Add a cube's noise to each row of values, shape (rows, size). See `fairwall.laws.noise.linf_ball`."""
        steps = np.rint(values / step)
        if scale == 0:
            return _on_grid(steps, step)
        sides = values.shape[1]
        if least:
            return _on_grid(steps + self._on_stairs(values.shape, scale, round(1 / step), least), step)
        # A sum of geometric numbers is a negative binomial one.
        farthest = np.full(len(values), -1)
        while (missing := np.flatnonzero(farthest < 0)).size:
            drawn = self.generator.negative_binomial(sides + 1, -math.expm1(-step / scale), missing.size)
            kept = np.prod((drawn[:, np.newaxis] + 0.5) / (drawn[:, np.newaxis] + np.arange(1, sides + 1)), axis=1)
            farthest[missing] = np.where(self.generator.random(missing.size) < kept, drawn, -1)
        ends = farthest[:, np.newaxis]
        return _on_grid(steps + self.generator.integers(-ends, ends, values.shape, endpoint=True), step)

    def _on_stairs(self, shape: tuple[int, ...], scale: float, spacing: int, least: int) -> Ints:
        k = np.arange(math.ceil(_RARE * scale) + 1)
        sizes = least + k * spacing
        weights = np.exp(-k / scale) * (2.0 * sizes + 1) ** shape[1]
        ends = self.generator.choice(sizes, (shape[0], 1), p=weights / weights.sum())
        return self.generator.integers(-ends, ends, shape, endpoint=True)

    def bernoulli(self, probability: float, size: int) -> Bools:
        """See `Noise.bernoulli`."""
        _require_probability(probability)
        return self.generator.random(size) < probability

    def bernoulli_exp(self, exponents: Floats) -> Bools:
        """See `Noise.bernoulli_exp`."""
        return self.generator.standard_exponential(exponents.shape) >= exponents

    def integers(self, high: int, size: int) -> Ints:
        """See `Noise.integers`."""
        return self.generator.integers(high, size=size)

    def permutation(self, n: int) -> Ints:
        """See `Noise.permutation`."""
        return self.generator.permutation(n)


@dataclass(frozen=True)
class System:
    """Noise for service: exact samplers, from the operating system's bits or a committed key's.

    `bits`: source of all bits, except those of Gaussian noise, which are the operating system's.
    """

    bits: random.Random = field(default_factory=random.SystemRandom, repr=False)

    def laplace(self, values: Floats, scale: float, step: float) -> Floats:
        """See `Noise.laplace`."""
        steps = _steps(values, step)
        if scale > 0:
            positive, negative = geometric(Fraction(step) / Fraction(scale), 2 * values.size, self.bits).reshape(2, -1)
            steps += positive - negative
        return _on_grid(steps.astype(np.float64), step)

    def gaussian(self, values: Floats, sigma: float, step: float) -> Floats:
        """See `Noise.gaussian`."""
        # Imports parts of OpenDP: its prelude imports scikit-learn, for two seconds, while a first caller waits.
        from opendp.measurements import make_gaussian
        from opendp.metrics import l2_distance
        from opendp.mod import enable_features

        enable_features("contrib")
        steps = _steps(values, step).tolist()
        if sigma > 0:
            steps = make_gaussian(_vectors(), l2_distance(T=float), scale=sigma / step)(steps)
        return _on_grid(np.array(steps, dtype=np.float64), step)

    def cauchy(self, values: Floats, scale: float, step: float) -> Floats:
        """See `Noise.cauchy`."""
        unit = Fraction(scale) / Fraction(step)
        steps = [_cauchy_steps(Fraction(value) / Fraction(step), unit, self.bits) for value in values.tolist()]
        return _on_grid(np.array(steps, dtype=np.float64), step)

    def cube(self, values: Floats, scale: float, step: float, least: int = 0) -> Floats:
        """See `Noise.cube`. Geometric numbers, coins of whole odds and uniform whole numbers: exact."""
        steps = _steps(values, step).tolist()
        if scale > 0:
            apart = Fraction(1) / Fraction(step) if least else Fraction(1)
            farthest = _cube_size(Fraction(step) * apart / Fraction(scale), len(steps), self.bits, int(apart), least)
            steps = [at + _below(2 * farthest + 1, self.bits) - farthest for at in steps]
        return _on_grid(np.array(steps, dtype=np.float64), step)

    def bernoulli(self, probability: float, size: int) -> Bools:
        """See `Noise.bernoulli`. Exact: a float64 probability is a fraction."""
        _require_probability(probability)
        return np.array([_bernoulli(Fraction(probability), self.bits) for _ in range(size)], dtype=np.bool_)

    def bernoulli_exp(self, exponents: Floats) -> Bools:
        """See `Noise.bernoulli_exp`. Exact (Canonne, Kamath, Steinke 2020, Algorithm 1)."""
        return np.array([_bernoulli_exp(Fraction(x), self.bits) for x in exponents.tolist()], dtype=np.bool_)

    def integers(self, high: int, size: int) -> Ints:
        """See `Noise.integers`."""
        return np.array([self.bits.randrange(high) for _ in range(size)], dtype=np.int64)

    def permutation(self, n: int) -> Ints:
        """See `Noise.permutation`."""
        order = list(range(n))
        self.bits.shuffle(order)
        return np.array(order, dtype=np.int64)


def _steps(values: Floats, step: float) -> Ints:
    """Round values to whole steps; dividing by a power of two is exact."""
    return np.clip(np.rint(values / step), -STEPS_MAX, STEPS_MAX).astype(np.int64)


def _on_grid(steps: Floats, step: float) -> Floats:
    # Adding 0.0 turns -0.0 into 0.0: the sign of a zero would be one more bit, and a function of the secret.
    on_grid: Floats = np.clip(steps, -STEPS_MAX, STEPS_MAX) * step + 0.0
    return on_grid


@lru_cache(maxsize=1)
def _vectors() -> Any:
    from opendp.domains import atom_domain, vector_domain

    return vector_domain(atom_domain(T="i64"))


def _cauchy_steps(value: Fraction, scale: Fraction, bits: random.Random) -> int:
    """Draw ``value + scale * X`` with X Cauchy, rounded to an integer (halves up, which has probability 0)."""
    # One denominator for both makes the rest integer arithmetic.
    denominator = math.lcm(value.denominator, scale.denominator)
    at, per = (x.numerator * (denominator // x.denominator) for x in (value, scale))
    while True:
        drawn = _in_half_disk(at, per, denominator, bits)
        if drawn is not None:
            return drawn


def _in_half_disk(at: int, per: int, denominator: int, bits: random.Random) -> int | None:
    """Draw one point of [-1, 1] x [0, 1]; None if it lies outside the unit half disk, else the rounded sum."""
    sign = bits.getrandbits(1) * 2 - 1
    v = w = known = 0
    while True:
        # The point is in the cell [v, v+1] x [w, w+1] / 2^known: halve it until everything in it agrees.
        v, w = (x << _BITS | bits.getrandbits(_BITS) for x in (v, w))
        known += _BITS
        if v * v + w * w >= 1 << 2 * known:
            return None
        if (v + 1) ** 2 + (w + 1) ** 2 <= 1 << 2 * known and w:
            ends = {
                (2 * (at * y + sign * per * x) + denominator * y) // (2 * denominator * y)
                for x, y in ((v, w + 1), (v + 1, w))
            }
            if len(ends) == 1:
                return ends.pop()


def _cube_size(rate: Fraction, sides: int, bits: random.Random, spacing: int = 1, least: int = 0) -> int:
    """Draw T = least + k spacing with P(k) ~ e^(-rate k) (2T+1)^sides: see `fairwall.laws.noise.linf_ball`."""
    coin = max(2 * spacing, 2 * least + 1)
    # Few draws of a staircase are kept, so many are drawn at once.
    together = _TRIED if least else 1
    while True:
        for drawn in geometric(rate, together * (sides + 1), bits).reshape(together, -1).sum(axis=1).tolist():
            size: int = least + drawn * spacing
            if all(bits.randrange(coin * (drawn + k)) < 2 * size + 1 for k in range(1, sides + 1)):
                return size


def _below(size: int, bits: random.Random) -> int:
    """Draw uniformly from 0 .. size-1, in a time that hardly ever depends on the size or the number (Lemire 2019)."""
    too_many = 2**_BITS % size
    while (product := bits.getrandbits(_BITS) * size) % 2**_BITS < too_many:
        pass
    return product >> _BITS


def _bernoulli(probability: Fraction, bits: random.Random) -> bool:
    return bits.randrange(probability.denominator) < probability.numerator


def _bernoulli_exp(exponent: Fraction, bits: random.Random) -> bool:
    """Draw True with probability exp(-exponent), by the alternating series of von Neumann."""
    if exponent < 0:
        raise ValueError("exponents must be at least 0")
    while exponent > 1:
        if not _bernoulli_exp(Fraction(1), bits):
            return False
        exponent -= 1
    k = 1
    while _bernoulli(exponent / k, bits):
        k += 1
    return k % 2 == 1


def _require_probability(probability: float) -> None:
    if not 0 <= probability <= 1:
        raise ValueError("a probability must be at least 0 and at most 1")
