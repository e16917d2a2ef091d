"""Noise from one ball: rows of counts by group, of many models, all of which one person moves at once.

**What one person moves.** A row x holds one number for each of k groups: the sum of its people's contributions, each a
whole number from -L to L (L = 1 for a yes or no, say -1 and 1). The number of people is the row to which everybody
contributes 1. Contributions and the row's total are public. A person who goes from group a to b moves a row by
u (e_b - e_a), |u| <= L, whose half l1 norm is at most L. With T the least whole number for which

    |x_1| + ... + |x_k| <= 2 L T    for all rows x at once, each with an L of its own,

T(z) is 0 for z = 0, one person's move has T <= 1, and T(z + z') <= T(z) + T(z').

**Noise** z on all rows, each summing to 0, has P(z) ~ e^(-rate T(z)): a neighbour's rows change T by at most one, so
all rows together cost exactly the rate (attained wherever they change it by one). It is the mechanism of Hardt
and Talwar (STOC 2010), as `fairwall.laws.noise.linf_ball` is for two groups, and a mixture, since e^(-rate T) is
proportional to the sum over t >= T of e^(-rate t): draw T with

    P(T = t) ~ e^(-rate t) w(t),    w(t) = product over all rows of G(L t),

G(n) the number of whole z that sum to 0 and have |z_1| + ... + |z_k| <= 2 n; then each row uniformly from these.
With d = k - 1 they are the lattice points of n times the root polytope of A_d, whose number is (Conway and Sloane,
"Low-dimensional lattices VII", 1997)

    G(n) = sum over j of C(d, j)^2 C(n - j + d, d).

The numerator of their generating function, sum of C(d, j)^2 x^j, has only real roots, so G is log-concave, and so is w.

**Drawing T.** m is where e^(-rate t) w(t) is largest. Draw t with P(t) ~ e^(-|t-m|/s), discrete Laplace, and keep it
with probability

    e^(-rate t) w(t) e^(|t-m|/s) / M,    M the largest of these for any t,

which lies where the logarithm's slope is 1/s or -1/s, by concavity. With s = (1 + sqrt(D)) / rate, D = d times
the number of rows, above T's standard deviation, more than a third is kept. Logarithms have 40 digits; the exponent of
the acceptance coin is a float64, wrong by 2^-53 of itself: for any T that may occur this changes the loss by
less than `fairwall.laws.groups.group_counts.noise_rate` took off.

**Drawing a row** of half l1 norm at most n: noise of P(z) ~ e^(-q |z|/2), |z| its l1 norm, is kept with probability
e^(-q (n - |z|/2)), or drawn again. The result is uniform for any q; q = 2 asinh(d / 2n), which gives |z|/2 a mean of
about n, keeps 1/sqrt(2 pi d) of all.

**One number** of a row has the variance kappa E[n (n + 1)], n = L T. For a uniform point of the polytope itself
z_1 has the variance kappa n^2, where its a positive numbers are the parts of a sum, and so are the k - a others,

    kappa = d / (k (d + 2)) E[2/(a+1) + 2/(k-a+1)],    P(a) ~ C(k, a) C(k-2, a-1);

for two groups that is 1/3 and exact; for more groups, too little where n is below d. Numbers of different rows are
uncorrelated but not independent: they share T. For m rows the variance is about m^2 d^2 kappa / rate^2: for 25 unlike
models' decisions the root mean square error of rates is 3.2 times less than with a table for each model at 1/m of
epsilon, for two groups, and 1.6 times less for ten.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np

from fairwall.arrays import Floats, Ints
from fairwall.laws.noise.linf_ball import CubeNoise, Stairs

SCORE_REACH = 1 << 15
"""Largest absolute contribution of one score, in steps; a step is 2^-16 for scores from 0 to 1."""

_DIGITS = 40
_SIZES = 4_096
"""Most sizes T evaluated; beyond, every few are."""
_NEAR = 14
"""Range of sizes T considered, in scales either side of the likeliest; beyond lies less than one in a million."""
_UNSEEN, _FEW = 1e-9, 24
"""Probability below which a size is ignored; and the number of sizes up to which all are enumerated."""


@dataclass(frozen=True)
class Ball:
    """Noise on rows of counts of at least 2 `groups`, at a total privacy loss of `rate`, infinite for no noise.

    `reaches` has L of each row, that of people first.
    """

    rate: float
    groups: int
    reaches: tuple[int, ...]

    @property
    def scale(self) -> float:
        """The scale s of the discrete Laplace proposal for T."""
        return (1 + math.sqrt((self.groups - 1) * len(self.reaches))) / self.rate

    @property
    def middle(self) -> int:
        """The likeliest T."""
        return _drawing(self)[0]

    def exponent(self, size: int) -> float:
        """Return -log of the probability of keeping a drawn size; infinite for a size below 0."""
        middle, ceiling = _drawing(self)
        if size < 0:
            return math.inf
        with localcontext(prec=_DIGITS):
            return max(float(ceiling - _log_weight(self, size) - abs(size - middle) / Decimal(self.scale)), 0.0)

    def sizes(self) -> tuple[Ints, Floats]:
        """Return the sizes T that are not practically impossible, and their probabilities."""
        return _sizes(self)

    def variance(self, reach: int) -> float:
        """Return the variance of one number of a row, in steps; the reach is 1 for people and for yes or no."""
        if math.isinf(self.rate):
            return 0.0
        sizes, likely = self.sizes()
        limits = reach * sizes.astype(np.float64)
        return _spread(self.groups) * float(likely @ (limits * (limits + 1)))

    def simulated(self, generator: np.random.Generator, draws: int, *reaches: int) -> Ints:
        """Simulate noise of the people's row and of others of these reaches, shape (1 + reaches, draws, groups)."""
        if math.isinf(self.rate):
            return np.zeros((1 + len(reaches), draws, self.groups), np.int64)
        sizes, likely = self.sizes()
        drawn = generator.choice(sizes, draws, p=likely)
        return np.stack([_even(generator, drawn * limit, self.groups) for limit in (1, *reaches)])


def points(limit: int, groups: int) -> int:
    """Return G: the number of integer vectors over the groups with sum 0 and l1 norm at most twice the limit."""
    d = groups - 1
    found, choose, more = 0, 1, math.comb(limit + d, d)
    for j in range(min(d, limit) + 1):
        found += choose * choose * more
        choose = choose * (d - j) // (j + 1)
        more = more * (limit - j) // (limit - j + d)
    return found


def row_rate(limit: int, groups: int) -> float:
    """Return q, the best proposal rate for a row of at most this half l1 norm; the limit is at least 1."""
    return 2 * math.asinh((groups - 1) / (2 * limit))


@lru_cache(maxsize=64)
def _drawing(ball: Ball) -> tuple[int, Decimal]:
    """Return the likeliest T, and log M."""
    with localcontext(prec=_DIGITS):
        step = 1 / Decimal(ball.scale)
        middle = _first(ball, Decimal(0))
        ends = (_first(ball, step), _first(ball, -step))
        return middle, max(_log_weight(ball, end) + abs(end - middle) * step for end in ends)


def _first(ball: Ball, slope: Decimal) -> int:
    """Return the first size after which the log-weight grows by at most the slope."""

    def steep(size: int) -> bool:
        return _log_weight(ball, size + 1) - _log_weight(ball, size) > slope

    low, high = -1, 1
    while steep(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if steep(middle) else (low, middle)
    return high


@lru_cache(maxsize=1 << 14)
def _log_weight(ball: Ball, size: int) -> Decimal:
    with localcontext(prec=_DIGITS):
        rows = Counter(ball.reaches).items()
        grown = sum((times * (+Decimal(points(reach * size, ball.groups))).ln() for reach, times in rows), Decimal(0))
        return grown - Decimal(ball.rate) * size


@lru_cache(maxsize=64)
def _sizes(ball: Ball) -> tuple[Ints, Floats]:
    reach = math.ceil(_NEAR * ball.scale) + 1
    first, last = max(0, ball.middle - reach), ball.middle + reach
    sizes = np.arange(first, last + 1, 1 + (last - first) // _SIZES)
    logs = -ball.rate * sizes
    for limit, times in Counter(ball.reaches).items():
        logs = logs + times * _log_points(limit * sizes, ball.groups)
    likely = np.exp(logs - logs.max())
    return sizes, likely / likely.sum()


@lru_cache(maxsize=64)
def _spread(groups: int) -> float:
    """Return kappa."""
    positive = range(1, groups)
    likely = [math.comb(groups, a) * math.comb(groups - 2, a - 1) for a in positive]
    mean = sum(w * (2 / (a + 1) + 2 / (groups - a + 1)) for a, w in zip(positive, likely, strict=True)) / sum(likely)
    return (groups - 1) / (groups * (groups + 1)) * mean


def _log_points(limits: Ints, groups: int) -> Floats:
    """Return log G of each limit, a whole number of at least 0."""
    d, found = groups - 1, np.full(limits.shape, -np.inf)
    for j in range(d + 1):
        each = 2 * _log_choose(np.array(d), np.array(j)) + _log_choose(limits - j + d, np.array(d))
        found = np.logaddexp(found, np.where(limits >= j, each, -np.inf))
    return found


def _log_choose(of: Ints, chosen: Ints) -> Floats:
    """Return the logarithm of a binomial coefficient; -inf where it is 0."""
    from scipy.special import betaln  # loading it takes a while; lgamma alone loses its digits of large numbers

    inside = (chosen >= 0) & (chosen <= of)
    n, k = np.where(inside, of, 0), np.where(inside, chosen, 0)
    found: Floats = np.where(inside, -betaln(n - k + 1.0, k + 1.0) - np.log1p(n), -np.inf)
    return found


def _even(generator: np.random.Generator, limits: Ints, groups: int) -> Ints:
    """Draw rows uniformly among those with a half l1 norm of at most each limit, shape (rows, groups)."""
    # The row's size: the least n with G(n) above a uniform number between 0 and G(limit).
    drawn = np.log1p(-generator.random(len(limits))) + _log_points(limits, groups)
    low, high = np.full(len(limits), -1), limits.copy()
    while (wide := high - low > 1).any():
        middle = np.where(wide, (low + high) // 2, high)
        enough = _log_points(middle, groups) >= drawn
        low, high = np.where(wide & ~enough, middle, low), np.where(enough, middle, high)
    size = high[:, np.newaxis]
    # The number of positive entries, and their places.
    some = np.arange(1, groups)
    logs = (
        _log_choose(np.array(groups), some)
        + _log_choose(size - 1, some - 1)
        + _log_choose(size + groups - some - 1, groups - some - 1)
    )
    logs[high == 0] = 0.0
    likely = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    positive = 1 + (likely < generator.random((len(limits), 1)) * likely[:, -1:]).sum(axis=1, keepdims=True)
    positive[high == 0] = 0
    gains = generator.random((len(limits), groups)).argsort(axis=1) < positive
    # A uniform composition of a sum: multinomial with uniformly distributed probabilities.
    parts = generator.standard_exponential((2, len(limits), groups)) * np.array([gains, ~gains])
    parts[0, high == 0, 0] = 1.0
    parts /= parts.sum(axis=2, keepdims=True)
    up = generator.multinomial(high - positive[:, 0], parts[0]) + gains
    return np.where(gains, up, -generator.multinomial(high, parts[1]))


@dataclass(frozen=True)
class WholeCube(CubeNoise):
    """Noise of the two-group ball on a single row: a cube with sizes spaced by one person.

    Whole numbers from -T to T are, up to rounding, all numbers from -T - 1/2 to T + 1/2: a staircase's with
    gamma = 1/2. `stair` is the rate, and the scale 1/rate where one person moves the number by 1.
    """

    def __post_init__(self) -> None:
        """Skip the checks of `CubeNoise`: any number of sides is allowed, one per row."""

    @property
    def _stairs(self) -> Stairs:
        sizes, likely = Ball(self.stair, 2, (1,) * self.sides).sizes()
        seen = likely > _UNSEEN
        return Stairs.of(self.stair * (sizes[seen].astype(np.float64) + 0.5), likely[seen])

    def sizes(self, edges: Floats) -> tuple[Floats, Floats]:
        """Return all sizes and their probabilities if they are few, else one between any two quantiles."""
        sizes, likely = self._stairs[:2]
        if len(sizes) > _FEW:
            places = np.searchsorted(np.cumsum(likely), (edges[1:] + edges[:-1]) / 2)
            sizes, likely = sizes[places], np.diff(edges)
        return self.scale * sizes, likely
