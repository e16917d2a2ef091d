"""Reveal by adaptive splitting: groups with a known number of disadvantaged people are cut until none is mixed.

The first group is everybody, with N0 disadvantaged. A *cut* of a group of g people, k of them disadvantaged, gives its
parts weights; the weighted count reveals the number of disadvantaged in each part. A cut is one digit of `Sums`, or
several: an answer holds cuts of many groups. Four kinds of cuts:

* by **count**: parts of equal size, one digit each (for all but the last) with the part's count;
* by **width**, where some people may weigh more than others: two parts, whose count may be anything, since the base
  model's score near 0 or 1 may be correlated with the group;
* by **index**, where one person differs from all others (k = 1 or g - 1): parts 0, 1, 2, ... have these numbers for
  weights, and the sum is the index of that person's part. Every value of the digit is used;
* by **subset**, for small groups: weights such that all C(g, k) subsets of k people have different sums, chosen
  greedily (as the Mian-Chowla sequence is, for k = 2). It ends the group.

A count's range is cut to all but a 2^-42 of its probability on either side. People are shuffled first, so counts are
hypergeometric whoever the disadvantaged are: a count out of range makes one run in many billions wrong.
"""

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from developer.reveal.strategies.strategy import Reveal, StrategyInputs
from developer.reveal.strategies.sums import Digit, Layout, Sums
from fairwall.arrays import Bools, Floats, Ints

TAIL = 2.0**-42
"""The probability cut off on either side of a count's range."""

SUBSETS = 1000
"""Most subsets of a group that a code may separate."""

ROWS_TRIED = 16
"""Number of candidate rows for a short answer, of which the most informative is asked."""

FINAL_TRIALS = 40
"""Most groups for which the end of all of them is tried in one row."""

APART = 100
"""Group size from which the first cut is by width: the top digit is for those who may weigh most."""


@dataclass(frozen=True, eq=False)
class Group:
    """People, (g,), of whom k are disadvantaged."""

    people: NDArray[np.intp]
    k: int

    @property
    def size(self) -> int:
        """The number of people, g."""
        return int(self.people.size)

    @property
    def mixed(self) -> bool:
        """Whether the group has people of both kinds."""
        return 0 < self.k < self.size


Pieces = list[Group]


@dataclass(frozen=True, eq=False)
class GroupQuery:
    """A query about a group: its digits, the reading of its answer (None for an invalid one), and its bits."""

    digits: tuple[Digit, ...]
    read: Callable[[Sequence[int]], Pieces | None]
    told: float = 0.0


def play(inputs: StrategyInputs) -> Reveal:
    """Reveal everyone with at most ``inputs.queries`` queries."""
    sums = Sums(inputs)
    share = np.full(inputs.people, np.nan)
    groups: list[Group] | None = None
    people = inputs.rng.permutation(inputs.people)
    share[sums.anchors] = 0
    people = people[np.isnan(share[people])]
    while sums.open:
        if sums.n0 is not None and groups is None:
            groups = [Group(people, sums.n0)]
        if groups is not None and not any(group.mixed for group in groups):
            break
        if sums.stuck:
            chosen = None
        elif groups is None:
            # If an answer makes sense for two sizes, another choice of people will separate the sizes.
            people = inputs.rng.permutation(people)
            chosen = opening(sums, people)
        else:
            chosen = choose(sums, [group for group in groups if group.mixed], inputs.rng)
        if chosen is None:
            if sums.stuck or not sums.relax():
                if len(sums.worlds) == 1:
                    break
                sums.probe()
            continue
        layout, cuts, others = chosen
        values = sums.ask(layout)
        if values is not None:
            found = dict(zip((id(digit) for digit in layout.digits), values, strict=True))
            pieces = [cut.read([found[id(digit)] for digit in cut.digits]) for cut in cuts]
            if any(piece is None for piece in pieces) or sums.n0 is None:
                break
            done = [group for group in groups or [] if not group.mixed]
            groups = done + others + [group for piece in pieces for group in piece or []]
            if sums.absolute:
                pure = [group.people for group in groups if group.k == 0]
                sums.anchors = np.concatenate([np.flatnonzero(share == 0), *pure])
    for group in groups or []:
        share[group.people] = group.k / group.size
    return sums.reveal(share)


Choice = tuple[Layout, list[GroupQuery], list[Group]]
"""A row, its cuts, and the groups that it leaves whole."""


def opening(sums: Sums, people: NDArray[np.intp]) -> Choice | None:
    """Return a row with as many single people as one answer can reveal while N0 is unknown."""
    block = sums.longest(people, 64)
    if block is None:
        return None
    layout, digits = block

    def read(values: Sequence[int]) -> Pieces | None:
        return _by_count([*(digit.people for digit in digits), people[len(digits) :]], values, sums.n0 or 0)

    return layout, [GroupQuery(tuple(digits), read)], []


def choose(sums: Sums, groups: list[Group], rng: np.random.Generator) -> Choice | None:
    """Fill a row with cuts: all groups to their ends if one row can, else the most informative of several rows."""
    ends = [end for group in groups if (end := final(group)) is not None] if len(groups) <= FINAL_TRIALS else []
    if len(ends) == len(groups):
        layout = sums.fit([digit for end in ends for digit in end.digits])
        if layout is not None:
            return layout, ends, []
    best = None
    for attempt in range(ROWS_TRIED if sums.coarse else 1):
        choice = _filled(sums, _order(sums, groups, rng if attempt else None))
        if choice is None:
            break
        if best is None or _told(choice) > _told(best):
            best = choice
    return best


def _told(choice: Choice) -> float:
    return sum(cut.told for cut in choice[1])


def _order(sums: Sums, groups: list[Group], rng: np.random.Generator | None) -> list[Group]:
    """Return the order in which groups are cut, given the room of a row."""
    # Long answers have room for the most uncertain groups; where one person differs from all others any radix will do,
    # and these groups fill gaps. In a short answer only the top digit may have more values than there is room, so the
    # largest group gets it, row by row; the others are cut from the smallest to the largest, or nearly in this order.
    if not sums.coarse:
        return sorted(
            groups, key=lambda group: (min(group.k, group.size - group.k) == 1, -entropy(group.size, group.k))
        )
    order = sorted(groups, key=lambda group: (group.k, group.size))
    if rng is not None:
        moved = np.exp2(rng.uniform(-1, 1, len(order) - 1)) * [
            group.k + group.size / sums.people for group in order[:-1]
        ]
        order = [order[i] for i in np.argsort(moved)] + order[-1:]
    return order[-1:] + order[:-1]


def _filled(sums: Sums, order: list[Group]) -> Choice | None:
    cuts: dict[int, GroupQuery] = {}
    best: Layout | None = None
    limit, wide = math.inf, sums.wide
    for position, group in enumerate(order):
        for cut in _options(group, wide):
            radix = math.prod(digit.radix for digit in cut.digits)
            if cuts and radix >= limit:
                continue
            layout = sums.fit([digit for other in [*cuts.values(), cut] for digit in other.digits])
            if layout is not None:
                best, cuts[position] = layout, cut
                break
            limit = radix
        if cuts and limit <= 2:
            break
    if best is None:
        return None

    # Too few groups to fill a row: divide them into more parts, the largest parts first.
    if len(cuts) == len(order):
        best = _refine(sums, order, cuts, best)
    others = [group for position, group in enumerate(order) if position not in cuts]
    return best, list(cuts.values()), others


def _refine(sums: Sums, groups: list[Group], cuts: dict[int, GroupQuery], best: Layout) -> Layout:
    plans = [parts_of(group.size, group.k) for group in groups]
    numbers = [len(cut.digits) + 1 for _, cut in sorted(cuts.items())]
    heap = [
        (-group.size / numbers[position], position)
        for position, group in enumerate(groups)
        if plans[position] is not None
    ]
    heapq.heapify(heap)
    while heap:
        _, position = heapq.heappop(heap)
        group, least = groups[position], plans[position]
        number = numbers[position] + 1
        if number > group.size or least is None:
            continue
        finer = by_count(group, parts(group.size, least, number))
        layout = sums.fit([digit for i, cut in cuts.items() for digit in (finer if i == position else cut).digits])
        if layout is not None:
            best, cuts[position], numbers[position] = layout, finer, number
            heapq.heappush(heap, (-group.size / number, position))
    return best


def _options(group: Group, wide: Bools) -> list[GroupQuery]:
    """Return the cuts worth trying, the best first."""
    g, k = group.size, group.k
    if min(k, g - k) == 1:
        return [by_index(group, number) for number in range(g, 1, -1) if number == g or number <= 128]
    least = parts_of(g, k)
    if least is None:
        whole = by_subset(group)
        assert whole is not None, "else there is a part to count in"
        return [whole, by_count(group, [1, g - 1])]
    inside = wide[group.people]
    apart = [by_width(group, inside)] if g >= APART and inside.any() and not inside.all() else []
    options = [*apart, by_count(group, parts(g, least, 2))]
    # Where little room is left, small parts.
    return options + [by_count(group, parts(g, few, 2)) for few in (3, 1) if few < least]


def by_width(group: Group, wide: Bools) -> GroupQuery:
    """Cut into the people who may weigh much and the others."""
    pieces = [group.people[wide], group.people[~wide]]
    low, high = max(0, group.k - pieces[1].size), min(group.k, pieces[0].size)
    digit = Digit(pieces[0], np.ones(pieces[0].size, np.int64), low, high)
    return GroupQuery(
        (digit,), lambda counts: _by_count(pieces, counts, group.k), count_bits(group.size, group.k, pieces[0].size)
    )


def final(group: Group) -> GroupQuery | None:
    """Return the cut that ends a group, or None for groups too large."""
    if min(group.k, group.size - group.k) == 1:
        return by_index(group, group.size)
    return by_subset(group)


def by_count(group: Group, sizes: Sequence[int]) -> GroupQuery:
    """Cut into parts of these sizes, with a digit for each but the last."""
    pieces = np.split(group.people, np.cumsum(sizes)[:-1])
    digits, told = [], 0.0
    for piece in pieces[:-1]:
        low, high = count_range(group.size, group.k, piece.size)
        digits.append(Digit(piece, np.ones(piece.size, np.int64), low, high))
        told += count_bits(group.size, group.k, piece.size)
    return GroupQuery(tuple(digits), lambda counts: _by_count(pieces, counts, group.k), told)


def _by_count(pieces: Sequence[NDArray[np.intp]], counts: Sequence[int], k: int) -> Pieces | None:
    ks = [*counts, k - sum(counts)]
    if any(not 0 <= count <= piece.size for count, piece in zip(ks, pieces, strict=True)):
        return None
    return [Group(piece, count) for count, piece in zip(ks, pieces, strict=True) if piece.size]


def by_index(group: Group, number: int) -> GroupQuery:
    """Cut a group in which one person differs into `number` parts, and find that person's part."""
    pieces = np.array_split(group.people, number)
    weights = np.repeat(np.arange(number), [piece.size for piece in pieces])
    # The one differing person is disadvantaged, or the only one who is not.
    only = group.k == 1
    total = int(weights.sum())
    low, high = (0, number - 1) if only else (total - number + 1, total)

    def read(values: Sequence[int]) -> Pieces:
        where = values[0] if only else total - values[0]
        ks = [int(i == where) if only else piece.size - int(i == where) for i, piece in enumerate(pieces)]
        return [Group(piece, k) for piece, k in zip(pieces, ks, strict=True)]

    return GroupQuery((Digit(group.people, weights, low, high),), read, math.log2(number))


def by_subset(group: Group) -> GroupQuery | None:
    """Identify all people of a group at once; None for groups too large."""
    g, k = group.size, group.k
    fewer = min(k, g - k)
    code = subset_code(g, fewer)
    if code is None:
        return None
    weights, subsets = code
    total = int(weights.sum())
    sums = (min(subsets), max(subsets)) if k == fewer else (total - max(subsets), total - min(subsets))

    def read(values: Sequence[int]) -> Pieces | None:
        subset = subsets.get(values[0] if k == fewer else total - values[0])
        if subset is None:
            return None
        inside = np.isin(np.arange(g), subset)
        disadvantaged = inside if k == fewer else ~inside
        return [Group(group.people[disadvantaged], k), Group(group.people[~disadvantaged], 0)]

    return GroupQuery((Digit(group.people, weights, *sums),), read, entropy(g, k))


@cache
def subset_code(g: int, k: int) -> tuple[Ints, dict[int, tuple[int, ...]]] | None:
    """Return g weights, each the smallest possible, for which all k-subsets have different sums, and the subset by sum.

    None is returned for more than `SUBSETS` subsets.
    """
    if math.comb(g, k) > SUBSETS:
        return None
    weights: list[int] = []
    # sums[j]: those of all j of the people so far; two equal ones do no harm if too few people come to complete them.
    sums: list[set[int]] = [{0}, *(set() for _ in range(k))]
    for person in range(g):
        later = g - person - 1
        weight = weights[-1] + 1 if weights else 0
        while any(
            later >= k - j and not sums[j].isdisjoint(weight + smaller for smaller in sums[j - 1])
            for j in range(1, k + 1)
        ):
            weight += 1
        weights.append(weight)
        for j in range(k, 0, -1):
            sums[j] |= {weight + smaller for smaller in sums[j - 1]}
    subsets = {sum(weights[i] for i in subset): subset for subset in itertools.combinations(range(g), k)}
    return np.array(weights, np.int64), subsets


def parts(g: int, least: int, number: int) -> list[int]:
    """Return the sizes of `number` parts of g people: equal ones, or small ones and the rest."""
    if 4 * least >= g:
        return [g // number + int(i < g % number) for i in range(number)]
    return [*([least] * (number - 1)), g - least * (number - 1)] if least * (number - 1) < g else parts(g, g, number)


@cache
def parts_of(g: int, k: int) -> int | None:
    """Return the part size whose digit gives most information per bit of room; None to end the group at once."""
    sizes = sorted({s for s in (1, 2, 3, 4, 6, 8, g // 4, g // 3, g // 2) if 0 < s <= g // 2})
    gains = []
    for s in sizes:
        low, high = count_range(g, k, s)
        gains.append(count_bits(g, k, s) / math.log2(high - low + 1) if high > low else 0.0)
    best = int(np.argmax(gains))
    code = subset_code(g, min(k, g - k))
    if code is not None:
        sums = code[1]
        if entropy(g, k) / math.log2(max(sums) - min(sums) + 1) >= gains[best]:
            return None
    return sizes[best]


def entropy(g: int, k: int) -> float:
    """Return the bits that identify k of g people."""
    return float(_log2_comb(g, np.array(k)))


@cache
def count_range(g: int, k: int, s: int) -> tuple[int, int]:
    """Return the range of the count in a part of s people, without tails of probability `TAIL`."""
    p = count_law(g, k, s)
    first = max(0, k - (g - s))
    low = int(np.searchsorted(np.cumsum(p), TAIL))
    high = p.size - 1 - int(np.searchsorted(np.cumsum(p[::-1]), TAIL))
    return first + low, first + high


@cache
def count_bits(g: int, k: int, s: int) -> float:
    """Return the entropy, in bits, of the count in a part of s people."""
    p = count_law(g, k, s)
    return float(-(p[p > 0] * np.log2(p[p > 0])).sum())


def count_law(g: int, k: int, s: int) -> Floats:
    """Return the hypergeometric probabilities of all counts from ``max(0, k - (g - s))`` to ``min(k, s)``."""
    v = np.arange(max(0, k - (g - s)), min(k, s) + 1)
    p: Floats = np.exp2(_log2_comb(s, v) + _log2_comb(g - s, k - v) - entropy(g, k))
    p /= p.sum()
    return p


def _log2_comb(g: int, k: Ints) -> Floats:
    table = _log2_factorials(max(g, 1).bit_length())
    value: Floats = table[g] - table[k] - table[g - k]
    return value


@cache
def _log2_factorials(bits: int) -> Floats:
    logs: Floats = np.log2(np.arange(1, 2**bits + 1))
    table: Floats = np.concatenate([np.zeros(1), np.cumsum(logs)])
    return table
