r"""Intervals of answers computed from a noisy N0 and noisy sums, with guaranteed coverage whatever the attributes.

**The release.** A stratum of n people releases N0 + e0 and, for each model's values v about a centre c, the sum nu =
sum over a=0 of (v - c) with noise, nu + e1, of public laws: symmetric, with one peak. T, the total of v, is public. e0
and e1 are independent; or they are coordinates of one cube, which are independent and uniform given its size. So what
is used below holds for both: the farther one of them is off, the less likely the other's sum stays small (Anderson).

**Inverting a test** (Neyman). Say the truth is (N, nu) with a gap g. N and g give nu,

    nu(N, g) = N (T/n - c) - g h(N),    h(N) = N (n - N)/n.

Under that hypothesis e0 = N^ - N and e1 = nu^ - nu(N, g) are known, and so is L = e1 - nu'(N, g) e0, nu' the derivative
by N: the effect of noise on the gap, to first order. It is accepted where |L| <= q, the level's quantile of |e1 + w
e0|, w = |nu'|: which has the level's probability at least, for any w. The interval is every g that is accepted with
some N, so that it holds the truth wherever the truth is accepted. By the formula above

    L = (nu^ - (T/n - c) N^) + g (h(N^) + (N^ - N)^2 / n):

N enters by the last term alone, and by q. To first order in e0 no hypothesis N is worse than another, and the interval
is the noise's own reach. N is searched where |e0| <= R, an event that q's probability includes.

**Ratios**, r = mean0/mean1, have sum0 = s(N, r) = T r N / ((n - N) + r N), nu = s - c N, and

    L = nu^ + c N^ - F(N, r),    F(N, r) = s + s'(N, r) (N^ - N).

The second derivative of s by N has one sign for every N, so that F is extreme at N^ or at the ends of N's range. F = y
is a quadratic equation for r; as F is 0 at r = 0 and T where r grows without bounds, it has one root for 0 < y < T,
below which F < y and above which F > y.

**Rates of hits among positives** are means among P positives of which p are of the disadvantaged: as above with p for
N, P for n and the hits for v. p and the hits are known up to sums of noise, so that L is one of three terms, whose
quantile is that of draws, with a fixed seed: so high that draws are wrong about it once in 10^9.

**Flipped attributes** are sums of independent e_i, one for each person, and so is L: of e_i (v_i - nu'). q is
Chernoff's, by the e_i whose sign makes it largest, since the signs are not known.

**Equalized odds** combines two strata, whose noise is independent. The larger of two absolute gaps lies between the
larger of their lower ends and the larger of their upper ends wherever both lie in their intervals: with probability
LEVEL, where each does with its square root. For a sum, let U be one less the largest level at which an interval leaves
the truth out: P(U <= u) <= u for each stratum. So U1 U2 >= a in LEVEL of cases, where a (1 - ln a) = 1 - LEVEL (Fisher
1932), and the sum lies where some u1 u2 = a have it.

Sums that people of these values cannot have are cut off, which leaves no truth out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from compliance.intervals.interval import Ends
from fairwall.arrays import Bools, Floats
from fairwall.laws.metrics.metric import Metric
from fairwall.laws.noise.quantiles import LEVEL

BEYOND = 0.001
"""Probability that N0's noise lies beyond the N that are searched."""

LAST_BITS = 2.0**-40
"""Margin for float64's rounding errors in the ends of intervals."""

_FURTHER = (1.0, 0.5, 0.2, 0.1)
"""Share of the remaining range of g that each step tests from each end: the nu' in it decide whether it is rejected."""

_PARTS = 16
"""Number of pairs of levels into which the curve u1 u2 = a is cut."""

Reach: TypeAlias = Callable[[Floats, Floats, float], Floats]
"""Maps the least and the largest nu', shape (m,) each, and a level to q, shape (m,).

With that probability |e1 - nu' e0| is at most q and e0 within R, for every nu' between them."""


@dataclass(frozen=True, eq=False)
class StratumPart:
    """Released and public knowledge of one part of a metric: people of one stratum, and one sum for each model.

    Parameters
    ----------
    n, totals : the people in the stratum, and the totals of their values, shape (m,). Public.
    at, first, last : N^, and the ends of the search for N.
    sums, centres : the centred sums as released, shape (m,), and what was subtracted from each value.
    reach : of the noise on both.
    possible : the least and the largest possible gap, or ratio, shape (m,) each.
    known : models whose sum follows from N, shape (m,): those that predict the same for everybody.
    """

    n: int | Floats
    totals: Floats
    at: float | Floats
    first: float | Floats
    last: float | Floats
    sums: Floats
    centres: Floats | float
    reach: Reach
    possible: Ends
    known: Bools


def gaps_of_part(part: StratumPart, level: float) -> Ends:
    """Return intervals that hold the gap of one part with at least the level's probability."""
    n, at = part.n, part.at
    slope = part.totals / n - part.centres
    off = part.sums - slope * at
    nearest = np.clip(at, part.first, part.last)
    widths = np.stack(
        [np.broadcast_to(at * (1 - 2 * size / n) + size**2 / n, off.shape) for size in (part.first, part.last, nearest)]
    )
    told = np.asarray((widths > 0).all(axis=0))
    widths = np.where(told, widths, 1.0)

    def slopes(one: Floats, other: Floats) -> Ends:
        found = np.stack([slope - g * (1 - 2 * size / n) for g in (one, other) for size in (part.first, part.last)])
        return found.min(axis=0), found.max(axis=0)

    return _narrowed(part, level, told, slopes, (
        lambda q: ((-off - q) / widths).min(axis=0), lambda q: ((-off + q) / widths).max(axis=0)
    ))  # fmt: skip


def ratios_of_part(part: StratumPart, level: float) -> Ends:
    """Return intervals that hold a ratio of means with at least the level's probability."""
    n, at, total = part.n, part.at, part.totals
    sizes = np.stack([np.broadcast_to(size, total.shape) for size in (part.first, part.last, at)])
    told = np.asarray(np.full(total.shape, fill_value=True) & (at >= part.first) & (at <= part.last))
    y = part.sums + part.centres * at

    def slopes(one: Floats, other: Floats) -> Ends:
        least, most = _slopes_of_ratios(n, total, sizes[:2], one, other)
        return least - part.centres, most - part.centres

    return _narrowed(part, level, told, slopes, (
        lambda q: _ratios_at(y - q, n, total, at, sizes).min(axis=0),
        lambda q: _ratios_at(y + q, n, total, at, sizes).max(axis=0),
    ))  # fmt: skip


def _narrowed(
    part: StratumPart,
    level: float,
    narrowed: Bools,
    slopes: Callable[[Floats, Floats], Ends],
    ends: tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]],
) -> Ends:
    """Return the least and the largest possible g that may be accepted.

    `narrowed`: models for which noise excludes some g, shape (m,). `slopes`: maps two g, the smaller first, to the
    least and the largest nu' between them. `ends`: map q to the least and to the largest g that is accepted with it.
    """
    (low, high), narrowed = part.possible, narrowed & ~part.known
    for share in _FURTHER:
        inner = _between(low, high, share), _between(low, high, 1 - share)
        least = ends[0](part.reach(*slopes(low, inner[0]), level)) - LAST_BITS
        most = ends[1](part.reach(*slopes(inner[1], high), level)) + LAST_BITS
        # Where noise has moved all that is accepted out of what is possible, that ends there.
        low, high = (
            np.where(narrowed, np.clip(least, low, inner[0]), low),
            np.where(narrowed, np.clip(most, inner[1], high), high),
        )
        low, high = np.minimum(low, high), np.maximum(low, high)
    return low, high


def _between(low: Floats, high: Floats, share: float) -> Floats:
    """Return a number at `share` of the way from low to high; for a ratio, which may be infinite, by its odds."""
    if share in (0.0, 1.0):
        return high if share else low
    if np.isfinite(high).all():
        return low + share * (high - low)
    ends = [np.where(np.isfinite(end), end / (1 + np.minimum(end, 1e300)), 1.0) for end in (low, high)]
    part = np.minimum(ends[0] + share * (ends[1] - ends[0]), 1 - 2.0**-53)
    between: Floats = np.clip(part / (1 - part), low, high)
    return between


def _slopes_of_ratios(n: int | Floats, total: Floats, sizes: Floats, low: Floats, high: Floats) -> Ends:
    """Return the least and the largest s' = T r n / ((n - N) + r N)^2 for ratios from low to high and all N."""
    slopes = []
    for size in sizes:
        for ratio in (low, high, np.clip((n - size) / size, low, high)):
            finite = np.minimum(ratio, 1e100)
            slopes.append(total * finite * n / ((n - size) + finite * size) ** 2)
    return np.min(slopes, axis=0), np.max(slopes, axis=0)


def _ratios_at(y: Floats, n: int | Floats, total: Floats, at: float | Floats, sizes: Floats) -> Floats:
    """Return the ratio at which F(N, r) = y, for each N, shape (sizes, m); 0 for y of 0 or less, infinite from T on."""
    inside = np.clip(y, 1e-12 * total, total)
    b, a, k = sizes, n - sizes, n * (at - sizes)
    leading, constant = (total - inside) * b**2, -inside * a**2
    middle = total * (a * b + k) - 2 * inside * a * b
    root = np.sqrt(np.maximum(middle**2 - 4 * leading * constant, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        # Of both ways to write the root the one that takes nothing from a number as large.
        found = np.where(middle > 0, -2 * constant / (middle + root), (root - middle) / (2 * leading))
    return np.where(y >= total, np.inf, np.where((y <= 0) & (at == sizes), 0.0, np.where(total > 0, found, 0.0)))


def gaps_of_parts(metric: Metric, parts: Sequence[StratumPart]) -> Ends:
    """Return a metric's intervals at `LEVEL`: of differences of means, or of one ratio of means."""
    if not metric.bounded:
        (only,) = parts
        return ratios_of_part(only, LEVEL)
    if len(parts) == 1 or metric.joined == "max":
        return combined(metric, [gaps_of_part(part, level_of_parts(metric)) for part in parts])
    return _gaps_of_sum(parts)


def level_of_parts(metric: Metric) -> float:
    """Return the probability with which each part's gap must lie in its interval."""
    return math.sqrt(LEVEL) if metric.joined == "max" else LEVEL


def combined(metric: Metric, parts: Sequence[Ends]) -> Ends:
    """Return the metric's intervals from those of its parts' gaps, at `level_of_parts`; not for a sum of gaps."""
    if not metric.absolute:
        (only,) = parts
        return only
    # One gap's interval stays as wide as before its sign came off: what lies below 0 is cut off where it is told, and
    # till then tells how wide the noise is.
    sizes = [_without_sign(*ends) for ends in parts]
    return np.max([low for low, _ in sizes], axis=0), np.max([high for _, high in sizes], axis=0)


def _without_sign(low: Floats, high: Floats) -> Ends:
    middle, half = np.abs(high + low) / 2, (high - low) / 2
    return middle - half, middle + half


def _gaps_of_sum(parts: Sequence[StratumPart]) -> Ends:
    """Return intervals of the sum of two absolute gaps, at `LEVEL`."""
    cuts = np.geomspace(_fisher(), 1.0, _PARTS + 1)[:-1].tolist()
    first, second = ([_without_sign(*gaps_of_part(part, 1 - missed)) for missed in cuts] for part in parts)
    # Between two cuts both intervals are at most as wide as at their wider ends.
    pairs = list(zip(first, reversed(second), strict=True))
    lows, highs = ([one[side] + other[side] for one, other in pairs] for side in (0, 1))
    return np.min(lows, axis=0), np.max(highs, axis=0)


@lru_cache(maxsize=1)
def _fisher() -> float:
    """Return a with a (1 - ln a) = 1 - LEVEL."""
    low, high = 0.0, 1 - LEVEL
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * (1 - math.log(middle)) <= 1 - LEVEL else (low, middle)
    return low
