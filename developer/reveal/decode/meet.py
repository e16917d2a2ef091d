"""Meet in the middle: everybody from a single exact answer (Horowitz, Sahni, J. ACM 1974).

One gap tells, to about 15 digits, one sum over the disadvantaged:

    x = sum of h_j over a_j = 0  =  (sum of all h / N1 - SP) / c,    c = 1/N0 + 1/N1,

and n scores of a model that was trained, not designed, have ``C(n, N0)`` such sums, with hardly two alike: log2 C(100,
10) = 44 bits, of the 53 that a float64 has. To find the group with the sum x without trying them all, cut the people in
two halves with N0/2 of it each; list the ``C(n/2, N0/2)`` sums of either (2.1 million for 100 people and N0 = 10), and
match.

Does such a cut exist? Lay the people out in a circle, and let f(t) count the disadvantaged among the w = n/2 places
from t on. f changes by at most 1 from one t to the next, and ``f(0) + f(w) = N0``. So on the way from 0 to w, f takes
the value ``floor(N0/2)``: some cut is right, whatever the circle. (For even N0, t = w is right only where 0 is. For odd
n, an empty place makes it even.) One in four is, for 100 people and N0 = 10, but neighbours are right or wrong
together: the order in which cuts are tried jumps about.

Which sums match? Let ``u = 2^-53``. The metric adds up its values pairwise (`sums_over`): each passes at most
d = 16 + 7 + 3 + ceil(log2(n/128)) additions, those of a block of eight accumulators, a block's remainder, the
accumulators, and the tree. So the sum S over a group is off by d u S, each mean, at most 1, by (d + 1) u with its
division, and the gap by 2 (d + 1) u + u. x gets this over c; and from its own operations 4 u of either term of its
numerator, at most 1 each, over c again. A half's sums are off by N0 u x, or less. All of it lies within

    (2 d + 12) u / c + 2 N0 u max(x, 1).

About one wrong pair of sums in a cut is that near, among 4 million million. Whether a group is right is then asked of
the metric itself, computed as the audit service does: does it replay the answer bit for bit?
"""

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.values import sums_over

SUMS_MAX = 20_000_000
"""Sums listed for a half at most: about a gigabyte in all."""

NEAR_MAX = 2_000
"""Groups looked at for one cut at most. Where more come near, scores are alike or too coarse to tell people apart."""


def meet(scores: NDArray[np.float64], gap: float, n0: int) -> NDArray[np.uint8] | None:
    """Find a group of disadvantaged people that explains one statistical parity gap to the last bit.

    People with equal scores are told apart by no answer: which of them are named is then arbitrary. Whoever does not
    know N0 calls this for each N0 there may be.

    Parameters
    ----------
    scores : (n,) in [0, 1], the row asked about.
    gap : the answer, as the metric computed it, in float64.
    n0 : the number of disadvantaged people, 1 to n - 1.

    Returns
    -------
    (n,), the protected attributes, 1 = advantaged; None where no group replays the answer.
    """
    n = scores.size
    if not 1 <= n0 < n:
        raise ValueError(f"n0 must be from 1 to {n - 1}, not {n0}")
    if not is_listable(n, n0):
        raise ValueError(
            f"{min(n0, n - n0)} of {n} people cannot be found from one answer: half of them have "
            f"{_sums(n, n0):.1e} sums, and at most {SUMS_MAX:.1e} are listed"
        )
    # The smaller group is the easier to find.
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
    """Say whether a half of n people, N0 of them disadvantaged, has few enough sums to be listed.

    Of 100 people, at most 12 may be in the smaller group. By then ``log2 C(n, N0)`` is 50, about as many bits as a gap
    has, so that more memory would find more groups that replay, and not the right one among them.
    """
    return _sums(n, n0) <= SUMS_MAX


def _sums(n: int, n0: int) -> int:
    return math.comb((n + 1) // 2, (min(n0, n - n0) + 1) // 2)


def _tolerance(n: int, n0: int, c: float, x: float) -> float:
    """Bound the error of the sum that is sought; the derivation is above."""
    u = 2.0**-53
    d = 26 + max(0, math.ceil(math.log2(n / 128)))
    return (2 * d + 12) * u / c + 2 * max(n0, n - n0) * u * max(x, 1.0)


def _gap(scores: NDArray[np.float64], a: NDArray[np.uint8]) -> float:
    """Compute the gap bit for bit as the protocol fixes it."""
    one, zero = (float(sums_over(a == group, scores[np.newaxis])[0]) for group in (1, 0))
    n1 = int(a.sum())
    return one / n1 - zero / (a.size - n1)


def _groups(scores: NDArray[np.float64], size: int, target: float, tolerance: float) -> Iterator[NDArray[np.intp]]:
    """Give every group of ``size`` people whose sum is near the target; those whom several cuts split, several times.

    Yields
    ------
    (size,), positions in ``scores``.
    """
    places = scores.size + scores.size % 2
    width, first = places // 2, size // 2
    circle = np.arange(places)
    for cut in _jumping(max(width + size % 2, 1)):
        left, right = (np.roll(circle, -cut - start)[:width] for start in (0, width))
        left, right = left[left < scores.size], right[right < scores.size]
        yield from _matches(scores, left, first, right, size - first, target, tolerance)


def _jumping(count: int) -> list[int]:
    """Order 0 to count - 1 so that near ones come far apart: by their bits, read backwards."""
    bits = (count - 1).bit_length()
    return sorted(range(count), key=lambda number: f"{number:0{bits}b}"[::-1])


def _matches(
    scores: NDArray[np.float64],
    left: NDArray[np.intp],
    from_left: int,
    right: NDArray[np.intp],
    from_right: int,
    target: float,
    tolerance: float,
) -> Iterator[NDArray[np.intp]]:
    """Give the groups of so many people from either side whose sum is near the target."""
    if from_left > left.size or from_right > right.size:
        return
    lefts, rights = (
        np.unique(subset_sums(scores[side], size)) for side, size in ((left, from_left), (right, from_right))
    )
    # Ascending partners are found several times as quickly as in any other order.
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
    # Sorting lost whose sums these are.
    of_left = _positions(scores[left], from_left, {value for value, _ in pairs})
    of_right = _positions(scores[right], from_right, {value for _, value in pairs})
    groups = ((i, j) for value, partner in pairs for i in of_left[value] for j in of_right[partner])
    for i, j in itertools.islice(groups, NEAR_MAX):
        yield np.concatenate([left[members(i, from_left)], right[members(j, from_right)]])


def _positions(values: NDArray[np.float64], size: int, wanted: set[float]) -> dict[float, list[int]]:
    """Say at which positions of `subset_sums` each of the wanted sums is."""
    sums, few = subset_sums(values, size), np.array(sorted(wanted))
    nearest = np.minimum(np.searchsorted(few, sums), few.size - 1)
    found: dict[float, list[int]] = {value: [] for value in wanted}
    for position in np.flatnonzero(few[nearest] == sums).tolist():
        found[float(sums[position])].append(position)
    return found


def subset_sums(values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Add up every subset of a given size.

    In the order of their largest elements, then of the next to largest, and so on: then the subsets of the first i
    values come first, and one more element i turns the first ``C(i, k - 1)`` subsets of size k - 1 into those of size
    k whose largest it is.

    Parameters
    ----------
    values : (n,).
    size : k, at most n.

    Returns
    -------
    (C(n, k),), off by at most ``k - 1`` roundings.
    """
    sums = np.zeros(1)
    for k in range(1, size + 1):
        sums = np.concatenate([values[i] + sums[: math.comb(i, k - 1)] for i in range(k - 1, values.size)])
    return sums


def members(position: int, size: int) -> list[int]:
    """Say which subset is at a position of `subset_sums`: its largest i has ``C(i, k)`` at most there, and so on."""
    found = []
    for k in range(size, 0, -1):
        i = k - 1
        while math.comb(i + 1, k) <= position:
            i += 1
        found.append(i)
        position -= math.comb(i, k)
    return found
