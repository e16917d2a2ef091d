"""Meet in the middle: everybody from a single exact answer (Horowitz, Sahni, J. ACM 1974).

One gap determines, to about 15 digits, one sum over the disadvantaged:

    x = sum of h_j over a_j = 0  =  (sum of all h / N1 - SP) / c,    c = 1/N0 + 1/N1,

and n scores of a model that was trained, not designed, have ``C(n, N0)`` such sums, hardly any two equal: log2 C(100,
10) = 44 bits, of the 53 of a float64. To find the group with the sum x without trying all groups, cut the people in two
halves with N0/2 of it each; list the ``C(n/2, N0/2)`` sums of either (2.1 million for 100 people and N0 = 10), and
match.

Such a cut exists. Lay the people out in a circle, and let f(t) count the disadvantaged among the w = n/2 places that
begin at t. f changes by at most 1 from one t to the next, and ``f(0) + f(w) = N0``. So on the way from 0 to w, f takes
the value ``floor(N0/2)``: some cut is right, whatever the circle. (For even N0, t = w is right only where 0 is. For odd
n, an empty place makes it even.) One in four is, for 100 people and N0 = 10, but neighbours are right or wrong
together, so cuts are tried in a scattered order.

The tolerance of a match: let ``u = 2^-53``. The metric adds up its values pairwise (`sums_over`): each passes at most d
= 16 + 7 + 3 + ceil(log2(n/128)) additions, those of a block of eight accumulators, a block's remainder, the
accumulators, and the tree. So the sum S over a group is off by d u S, each mean, at most 1, by (d + 1) u with its
division, and the gap by 2 (d + 1) u + u. x gets this over c; and from its own operations 4 u of either term of its
numerator, at most 1 each, over c again. A half's sums are off by N0 u x, or less. All of it lies within

    (2 d + 12) u / c + 2 N0 u max(x, 1).

About one wrong pair of sums in a cut is within the tolerance, among 4 million million. Whether a group is right is
decided by the metric itself, computed as the audit service does: the answer must be reproduced bit for bit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bytes, Floats
from fairwall.laws.metrics.values import sums_over

SUMS_MAX = 20_000_000
"""Most sums listed for a half: about a gigabyte in all."""

NEAR_MAX = 2_000
"""Most groups checked for one cut. More near groups mean that scores are equal or too coarse to separate people."""


def meet(scores: Floats, gap: float, n0: int) -> Bytes | None:
    """Return attributes, (n,) with 1 = advantaged, that explain one statistical parity gap to the last bit, or None.

    No answer separates people with equal scores: the choice among them is arbitrary. If N0 is unknown, call this for
    each possible N0. `gap` is the answer about the row `scores`, (n,) in [0, 1], as the metric computed it in float64;
    `n0` is the number of disadvantaged people, 1 to n - 1.
    """
    n = scores.size
    if not 1 <= n0 < n:
        raise ValueError(f"n0 must be from 1 to {n - 1}, not {n0}")
    if not is_listable(n, n0):
        raise ValueError(
            f"{min(n0, n - n0)} of {n} people cannot be found from one answer: half of them have "
            f"{_sums(n, n0):.1e} sums, and at most {SUMS_MAX:.1e} are listed"
        )
    # The smaller group is easier to find.
    sought, size = (0, n0) if 2 * n0 <= n else (1, n - n0)
    total, c = math.fsum(scores), 1 / n0 + 1 / (n - n0)
    x = (total / (n - n0) - gap) / c
    target = x if sought == 0 else total - x
    for group in _groups(scores, size, target, _tolerance(n, n0, c, max(x, total - x))):
        a = np.full(n, 1 - sought, np.uint8)
        a[group] = sought
        if _gap(scores, a) == gap:
            return a
    return None


def is_listable(n: int, n0: int) -> bool:
    """Return whether a half of n people, N0 of them disadvantaged, has few enough sums to be listed.

    Of 100 people, at most 12 may be in the smaller group. By then ``log2 C(n, N0)`` is 50, about as many bits as a gap
    has: more memory would find more groups that reproduce the answer, not the right one among them.
    """
    return _sums(n, n0) <= SUMS_MAX


def _sums(n: int, n0: int) -> int:
    return math.comb((n + 1) // 2, (min(n0, n - n0) + 1) // 2)


def _tolerance(n: int, n0: int, c: float, x: float) -> float:
    """Return a bound on the error of the sum sought, derived in the module's docstring."""
    u = 2.0**-53
    d = 26 + max(0, math.ceil(math.log2(n / 128)))
    return (2 * d + 12) * u / c + 2 * max(n0, n - n0) * u * max(x, 1.0)


def _gap(scores: Floats, a: Bytes) -> float:
    """Return the gap, bit for bit as the protocol fixes it."""
    one, zero = (float(sums_over(a == group, scores[np.newaxis])[0]) for group in (1, 0))
    n1 = int(a.sum())
    return one / n1 - zero / (a.size - n1)


def _groups(scores: Floats, size: int, target: float, tolerance: float) -> Iterator[NDArray[np.intp]]:
    """Yield the positions of each group of ``size`` people whose sum is near the target, some groups more than once."""
    places = scores.size + scores.size % 2
    width, first = places // 2, size // 2
    circle = np.arange(places)
    for cut in _jumping(max(width + size % 2, 1)):
        left, right = (np.roll(circle, -cut - start)[:width] for start in (0, width))
        left, right = left[left < scores.size], right[right < scores.size]
        yield from _matches(scores, left, first, right, size - first, target, tolerance)


def _jumping(count: int) -> list[int]:
    """Return 0 to count - 1 in an order that separates neighbours: by their bits, read backwards."""
    bits = (count - 1).bit_length()
    return sorted(range(count), key=lambda number: f"{number:0{bits}b}"[::-1])


def _matches(
    scores: Floats,
    left_half: NDArray[np.intp],
    from_left: int,
    right_half: NDArray[np.intp],
    from_right: int,
    target: float,
    tolerance: float,
) -> Iterator[NDArray[np.intp]]:
    """Yield the near groups with `from_left` and `from_right` people of the two halves."""
    if from_left > left_half.size or from_right > right_half.size:
        return
    lefts, rights = (
        np.unique(subset_sums(scores[side], size)) for side, size in ((left_half, from_left), (right_half, from_right))
    )
    # Sorted partners are found several times as fast as unsorted ones.
    partners = (target - rights)[::-1]
    start = np.searchsorted(lefts, partners - tolerance)
    hits = np.flatnonzero(start < lefts.size)
    hits = hits[lefts[start[hits]] <= partners[hits] + tolerance]
    if not hits.size:
        return
    stop = np.searchsorted(lefts, partners[hits] + tolerance, side="right")
    near = (
        (float(value), float(rights[rights.size - 1 - hit]))
        for hit, end in zip(hits, stop, strict=True)
        for value in lefts[start[hit] : end]
    )
    pairs = list(itertools.islice(near, NEAR_MAX))
    # Sorting lost the positions of the sums.
    of_left = _positions(scores[left_half], from_left, {value for value, _ in pairs})
    of_right = _positions(scores[right_half], from_right, {value for _, value in pairs})
    groups = ((i, j) for value, partner in pairs for i in of_left[value] for j in of_right[partner])
    for i, j in itertools.islice(groups, NEAR_MAX):
        yield np.concatenate([left_half[members(i, from_left)], right_half[members(j, from_right)]])


def _positions(values: Floats, size: int, wanted: set[float]) -> dict[float, list[int]]:
    """Return the positions in `subset_sums` of each wanted sum."""
    sums, few = subset_sums(values, size), np.array(sorted(wanted))
    nearest = np.minimum(np.searchsorted(few, sums), few.size - 1)
    found: dict[float, list[int]] = {value: [] for value in wanted}
    for position in np.flatnonzero(few[nearest] == sums).tolist():
        found[float(sums[position])].append(position)
    return found


def subset_sums(values: Floats, size: int) -> Floats:
    """Return the sum of every subset of ``size`` = k values, (C(n, k),), off by at most ``k - 1`` roundings.

    Subsets are ordered by their largest element, then the next largest, and so on: the subsets of the first i values
    come first, and element i turns the first ``C(i, k - 1)`` subsets of size k - 1 into those of size k with largest i.
    """
    sums = np.zeros(1)
    for k in range(1, size + 1):
        sums = np.concatenate([values[i] + sums[: math.comb(i, k - 1)] for i in range(k - 1, values.size)])
    return sums


def members(position: int, size: int) -> list[int]:
    """Return the subset at a position of `subset_sums`: its largest i has ``C(i, k)`` at most `position`, and so on."""
    found = []
    for k in range(size, 0, -1):
        i = k - 1
        while math.comb(i + 1, k) <= position:
            i += 1
        found.append(i)
        position -= math.comb(i, k)
    return found
