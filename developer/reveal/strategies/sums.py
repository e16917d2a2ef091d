"""Read many small counts from one exact answer, as digits of a weighted sum over one group.

Write ``w`` for the queried row, W for its sum, and ``x`` for the sum of w over the disadvantaged. By ``SP = (W - x) /
N1 - x / N0``,

    x = (W / N1 - SP) / c = (W N0 - SP N0 N1) / n,    c = 1/N0 + 1/N1.

Scores are multiples of one power of two, ``q = 2^-e``, and so is x: an error of SP below ``q c / 2`` does no harm. So x
is a long integer that is learnt exactly: each *digit* is a weighted count of disadvantaged people with a known short
range, and has its own place in x, as in a mixed-radix number.

**Close to h0** (b < 1) each score is a multiple of ``2^-G`` below h0, the *coarse part*, plus weights up to the width
that b leaves: ``q x = 2^-G C + q D``, where C is a whole number, the sum of coarse parts. C is unknown at first, and D
must stay below ``2^-G / q`` to be separated from C. From the second row on C is known and D may be larger. No score is
clipped: at the ends of [0, 1] the coarse part moves inward. Where answers are decimals, coarse parts lie as far below
h0 as b allows, and people near 0 or 1 have less width than others.

**Unknown N0**: every value is possible at first; a value is dropped if it makes x no whole number, or the digits
invalid. A wrong N0 survives with probability equal to the share of valid values of x; while several sizes are left,
fewer digits are asked for to keep that probability small.

**Absolute gaps** are the same for A and 1 - A. Call the groups alpha and beta, with N0 the size of beta and x the sum
over beta. People known to be in alpha are *anchors*: their weight is so large that the gap alpha - beta is always
positive. If rows are free, alpha is the first person's group. Close to h0, alpha is the group with the higher rate in
the first row that is read; later, where the digits could change the sign and anchors cannot fix it, both signs are
tried.
"""

import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from developer.reveal.strategies.precision import PRECISIONS, error, possible
from developer.reveal.strategies.sizes import alone
from developer.reveal.strategies.strategy import Reveal, StrategyInputs, everyone
from fairwall.arrays import Bools, Floats, Ints
from fairwall.laws.metrics.answer_precision import Precision
from fairwall.laws.metrics.metric import find_metric

Integers = Ints

LONGEST = 2**53
"""Largest integer up to which integers and their sums are exact in float64."""

STRAY = (2.0**-12, 2.0**-2)
"""Largest accepted probability that a wrong reading looks right: at first, and where no row fits otherwise."""

_BITS, _MANY = 8.0, 20
"""Approximate bits that an answer in decimals reveals; and the number of answers among which one more costs little."""

PATIENCE = 8
"""Number of successive rows without any result after which the search stops."""

PROBED = 0.38
"""Share of people in a probing row: neither few nor half, where x hardly depends on N0."""


@dataclass(frozen=True, eq=False)
class Digit:
    """A weighted count of the disadvantaged among people, (s,); weights are at least 0, the count `low` to `high`."""

    people: NDArray[np.intp]
    weights: Integers
    low: int
    high: int

    @property
    def radix(self) -> int:
        """The number of possible values."""
        return self.high - self.low + 1

    @cached_property
    def widest(self) -> int:
        """The largest weight."""
        return int(self.weights.max(initial=0))

    @cached_property
    def total(self) -> int:
        """The sum of all weights."""
        return int(self.weights.sum())


@dataclass(frozen=True, eq=False)
class Layout:
    """The places of digits in a row.

    Attributes
    ----------
    digits : the lowest first.
    weights : (n,), the sum of the digits' weights, in units of 2^-exponent.
    exponent : e.
    spare : number of values of each place that its digit never takes.
    anchor : each anchor's weight, in units of 2^-exponent.
    least, most : the range of the digits' sum.
    stretch : further factor of the digits' weights, at least 1.
    """

    digits: tuple[Digit, ...]
    weights: Integers
    exponent: int
    spare: int
    anchor: int
    least: int
    most: int
    stretch: Fraction = Fraction(1)


@dataclass(frozen=True)
class PossibleSums:
    """A hypothesis: the size of the group summed over, and the sum of its coarse parts (None where unknown)."""

    n0: int
    coarse: int | None


class Sums:
    """A sender of rows of digits, which keeps the possible sizes, signs and precisions."""

    def __init__(self, inputs: StrategyInputs) -> None:
        self._hand = inputs
        self.people = inputs.people
        self.left = inputs.queries
        self.answers = 0
        metric = inputs.terms.metric
        self.absolute = find_metric(metric).absolute
        self.near = inputs.perturbation < 1
        self.anchors: NDArray[np.intp] = np.zeros(int(self.absolute and not self.near), np.intp)
        told: Precision | None = inputs.terms.precision
        self._precisions: tuple[Precision, ...] = PRECISIONS if told is None else (told,)
        self._fruitless = 0
        # The room that `relax` has given away, and the precisions already tried.
        self._need = 0
        self._hoped: tuple[Precision, ...] = self._precisions if len(self._precisions) == 1 else ()
        # The weight, relative to the smallest, from which decimals are too short once N0 and C are known.
        self._illegible = math.inf
        self._peaks = WeakKeyDictionary[Digit, float]()
        # Whether it is decided which group is alpha.
        self._named = not (self.absolute and self.near)
        self._coarse_exponent, self._width, self._coarse = self._base(inputs.terms.n0)
        self._coarse_total = int(self._coarse.sum())
        self.worlds = self._worlds()

    def _base(self, n0: int | None) -> tuple[int, Integers, Integers]:
        """Return G, the largest weights in units of 2^-G, (n,), and the coarse parts in the same units, (n,)."""
        b, nothing = self._hand.perturbation, np.zeros(self.people, np.int64)
        if not self.near:
            return 0, nothing + 1, nothing
        if b < 2.0**-30:
            return 0, nothing, nothing
        told = self._hand.terms.precision
        # A finer grid leaves more of b to the weights, but less of the first row to its digits, which only long floats
        # afford.
        G = -math.floor(math.log2(b)) + (2 if told == "float64" else 0)
        if isinstance(told, int) and not self.absolute and n0 and answers_needed(self.people, n0, _BITS) > _MANY:
            # The finest grid at which C is readable. The row for C holds little else, which pays off over many rows.
            G = max(G, -math.ceil(math.log2(2 * 10.0**-told * n0 * (self.people - n0) / self.people)))
        base = np.ldexp(np.clip(self._hand.base(), 0, 1), G)
        b = math.ldexp(b, G)
        if self.coarse:
            # As far as b allows on either side; half as much where h0 is near 0 or 1. 2^-40 is a margin for rounding.
            b *= 1 - 2.0**-40
            least, most = np.ceil(np.maximum(base - b, 0)), np.floor(np.minimum(base + b, 2.0**G))
            return G, (most - least).astype(np.int64), least.astype(np.int64)
        width = math.floor(b)
        # The row then lies between h0 - 2^-G (or 1 - width) and h0 + width.
        return G, nothing + width, np.minimum(np.floor(base).astype(np.int64), 2**G - width)

    def _worlds(self) -> tuple[PossibleSums, ...]:
        n, told = self.people, self._hand.terms.n0
        if n < 2 or (self.near and not self._width.all()):
            return ()
        known = None if self.near else 0
        if told is not None:
            sizes = sorted({told, n - told}) if self.absolute else [told]
            return tuple(PossibleSums(size, known) for size in sizes if 0 < size < n)
        if self.near:
            return tuple(PossibleSums(size, known) for size in range(1, n))
        gap = self._hand.auditor.size(alone(n, 0))
        if not self._listen(gap):
            return ()
        # The size of the person's group is 1 / |gap|.
        own = np.arange(1, n)
        expected = 1 / own
        bound = self._error(expected, expected, expected)
        fits = np.abs(expected - abs(gap)) <= 2 * bound
        right = fits if self.absolute or gap >= -bound.max() else np.zeros_like(fits)
        other = fits if not self.absolute and gap <= bound.max() else np.zeros_like(fits)
        sizes = sorted({*(n - own[right]).tolist(), *own[other].tolist()})
        return tuple(PossibleSums(size, known) for size in sizes)

    def _listen(self, answer: float) -> bool:
        """Narrow the possible precisions by an answer's digits."""
        if not math.isfinite(answer):
            return False
        self.answers += 1
        if len(self._precisions) > 1:
            self._precisions = possible(self._precisions, answer)
        return bool(self._precisions)

    def _error(self, rate1: Floats, rate0: Floats, gap: Floats, hopeful: bool = False) -> Floats:
        """Return an upper bound on an answer's error at the coarsest precision possible (the finest, if `hopeful`)."""
        precisions = self._precisions[-1:] if hopeful else self._precisions
        bound: Floats = np.max([error(precision, rate1, rate0, gap) for precision in precisions], axis=0)
        return bound

    @property
    def n0(self) -> int | None:
        """The size of the group summed over, once it is known."""
        return self.worlds[0].n0 if len(self.worlds) == 1 else None

    @property
    def coarse(self) -> bool:
        """Whether answers are so short that only the weights' size relative to the last decimal counts."""
        return isinstance(self._hand.terms.precision, int) and not self.absolute

    @property
    def open(self) -> bool:
        """Whether further queries can reveal anything."""
        return bool(self.worlds) and self.left > 0 and self._fruitless < PATIENCE

    @property
    def stuck(self) -> bool:
        """Whether another kind of row is due: the last row left several sizes possible, and as many as before."""
        return len(self.worlds) > 1 and self._fruitless % 2 == 1

    @property
    def wide(self) -> Bools:
        """Mask, (n,), of people whose largest weight is above the midpoint of all people's largest weights."""
        wide: Bools = 2 * self._width > self._width.min() + self._width.max()
        return wide

    def relax(self) -> bool:
        """Accept a riskier row where none fits; return False where no risk is left to take.

        First a row that may be read in several ways; then, once, a row that needs the finest precision possible.
        """
        if self._need == 0:
            self._need = 1
            return True
        if self._need == 1 and self._hoped != self._precisions:
            self._need, self._hoped = 2, self._precisions
            return True
        return False

    def fit(self, digits: Sequence[Digit]) -> Layout | None:
        """Return a layout of digits in one row that one answer can reveal, or None if they are too many."""
        # The top digit may be long if its weights are small; for floats, a digit with a large total should be short.
        slim = sorted(digits, key=lambda digit: -digit.total / max(digit.radix - 1, 1))
        long = sorted(digits, key=lambda digit: digit.radix / max(self._peak(digit), 2.0**-40))
        # A wrong size or sign multiplies x by a ratio of small numbers or mirrors it, which keeps x whole more often
        # than chance. Digits with values that never occur seldom survive that.
        for spare in (0, 1):
            for order in (slim, long):
                if (not spare and len(self.worlds) > 1) or (too_wide := self._widest(order)) >= self._illegible:
                    continue
                layout = self._lay(order, spare)
                if layout is not None and self._legible(layout):
                    return layout
                if layout is not None and layout.stretch != 1 and len(self.worlds) == 1:
                    self._illegible = too_wide
        return None

    def longest(self, people: NDArray[np.intp], most: int) -> tuple[Layout, list[Digit]] | None:
        """Return the longest block of at most `most` people that one answer reveals, with one digit per person."""
        best, fewest, most = None, 1, min(most, people.size)
        while fewest <= most:
            length = (fewest + most) // 2
            digits = [Digit(people[i : i + 1], np.ones(1, np.int64), 0, 1) for i in range(length)]
            layout = self.fit(digits)
            if layout is None:
                most = length - 1
            else:
                best, fewest = (layout, digits), length + 1
        return best

    def _peak(self, digit: Digit) -> float:
        """Return the largest weight of a digit relative to its person's width."""
        if digit not in self._peaks:
            self._peaks[digit] = float((digit.weights / self._width[digit.people]).max(initial=0))
        return self._peaks[digit]

    def _widest(self, digits: Sequence[Digit]) -> float:
        places = itertools.accumulate((digit.radix for digit in digits[:-1]), operator.mul, initial=1)
        return max((place * self._peak(digit) for place, digit in zip(places, digits, strict=True)), default=0.0)

    def _lay(self, digits: Sequence[Digit], spare: int) -> Layout | None:
        radices = [digit.radix + spare for digit in digits]
        places = list(itertools.accumulate(radices[:-1], operator.mul, initial=1))
        least = sum(place * digit.low for place, digit in zip(places, digits, strict=True))
        most = sum(place * digit.high for place, digit in zip(places, digits, strict=True))
        total = sum(place * digit.total for place, digit in zip(places, digits, strict=True))
        if total > LONGEST or most > LONGEST:
            return None
        weights = np.zeros(self.people, np.int64)
        for place, digit in zip(places, digits, strict=True):
            weights[digit.people] += place * digit.weights
        # The person with the largest weight relative to the width.
        top = int(np.argmax(weights / self._width))
        widest, width = int(weights[top]), int(self._width[top])
        room = 0
        if self.worlds[0].coarse is None:
            valid = math.prod(digit.radix for digit in digits)
            room = max(most - least, math.ceil(valid * len(self.worlds) / self._stray) if spare else 0)
        exponent = self._coarse_exponent
        while widest << self._coarse_exponent > width << exponent or room >= 1 << exponent - self._coarse_exponent:
            exponent += 1
        layout = Layout(tuple(digits), weights, exponent, spare, 0, least, most)
        if self.coarse and not room and widest:
            # Decimals need no powers of two: the largest weight is as large as allowed.
            return replace(layout, stretch=Fraction(width << (exponent - self._coarse_exponent), widest))
        while self.absolute and self.anchors.size and (anchor := self._anchoring(layout)):
            if anchor << self._coarse_exponent <= width << layout.exponent:
                return replace(layout, anchor=anchor)
            if self.near:
                break
            layout = replace(layout, exponent=layout.exponent + 1)
        return layout

    @property
    def _stray(self) -> float:
        return STRAY[min(self._need, 1)]

    def _anchoring(self, layout: Layout) -> int:
        """Return the anchors' weight that makes the gap alpha - beta positive; 0 where its sign is fixed anyway."""
        n, total, shift = self.people, self._total(layout), layout.exponent - self._coarse_exponent
        weight = 0
        for world in self.worlds:
            # (W - x) / N1 > x / N0 is W N0 > n x.
            coarse = (world.coarse or 0) << shift
            if self.near and total * world.n0 < n * (coarse + layout.least):
                continue
            lacking = n * (coarse + layout.most) // world.n0 + 1 - total
            weight = max(weight, -(-lacking // self.anchors.size))
        return weight

    def _row(self, layout: Layout) -> Floats:
        coarse = self._coarse << (layout.exponent - self._coarse_exponent)
        if layout.stretch != 1:
            most = self._width << (layout.exponent - self._coarse_exponent)
            stretched: Floats = coarse + np.minimum(layout.weights * float(layout.stretch), most)
            return stretched
        row = layout.weights + coarse
        row[self.anchors] += layout.anchor
        return row.astype(np.float64)

    def _total(self, layout: Layout) -> Fraction:
        coarse = self._coarse_total << (layout.exponent - self._coarse_exponent)
        return coarse + int(layout.weights.sum()) * layout.stretch + layout.anchor * self.anchors.size

    def _tolerances(self, layout: Layout, total: Fraction, hopeful: bool = False) -> tuple[Floats, Bools]:
        """Return bounds on x's error, in units, and whether an absolute gap's sign is open; (k,), one per world."""
        n, unit = self.people, math.ldexp(1.0, -layout.exponent)
        n0 = np.array([world.n0 for world in self.worlds], np.float64)
        n1 = n - n0
        shift = layout.exponent - self._coarse_exponent
        W, stretch = float(total) * unit, float(layout.stretch)
        known = self.worlds[0].coarse is not None
        if known:
            coarse = np.array([(world.coarse or 0) << shift for world in self.worlds], np.float64)
            low, high = (coarse + layout.least * stretch) * unit, (coarse + layout.most * stretch) * unit
        else:
            low, high = np.zeros_like(n0), np.minimum(n0, W)
        rate1 = np.minimum((W - low) / n1, 1)
        rate0 = np.minimum(high / n0, 1)
        top, bottom = W / n1 - low * n / (n0 * n1), W / n1 - high * n / (n0 * n1)
        if not known:
            top, bottom = rate1, -rate0
        gap = np.minimum(np.maximum(np.abs(top), np.abs(bottom)), 1)
        off = self._error(rate1, rate0, gap, hopeful)
        either = self.absolute & (bottom <= off) & (top >= -off)
        if not self.near or not self._named:
            either = np.zeros_like(either)
        return off * (n0 * n1 / n) / (unit * stretch) * (1 + 2.0**-40), either

    def _legible(self, layout: Layout) -> bool:
        total = self._total(layout)
        if total > LONGEST:
            return False
        # Before any answer, assume the finest precision.
        hopeful = self.answers == 0 or self._need > 1
        tolerances, either = self._tolerances(layout, total, hopeful)
        if tolerances.max() >= 0.5 - 2.0**-20:
            return False
        readings = len(self.worlds) + int(either.sum())
        if readings == 1:
            return True
        if not layout.spare:
            return False
        # A wrong reading looks right if x is close enough to a whole number with valid digits.
        valid = math.prod(digit.radix for digit in layout.digits)
        known = self.worlds[0].coarse is not None
        among = layout.most - layout.least + 1 if known else 2 ** (layout.exponent - self._coarse_exponent)
        return 2 * float(tolerances.max()) * valid / among * readings <= self._stray

    def ask(self, layout: Layout) -> list[int] | None:
        """Query a row of digits and return their values in the layout's order, or None if the answer is ambiguous.

        None is also returned if the answer has no reading at all, as with noise; `open` is then False.
        """
        row, total = self._row(layout), self._total(layout)
        answer = self._send(row, layout.exponent)
        if answer is None:
            return None
        tolerances, either = self._tolerances(layout, total)
        found: dict[PossibleSums, list[list[int]]] = {}
        for world, tolerance, both in zip(self.worlds, tolerances.tolist(), either.tolist(), strict=True):
            for sign in self._signs(world, layout, total, both=both):
                for reading in self._readings(world, layout, total, sign * Fraction(answer), tolerance):
                    found.setdefault(reading[0], []).append(reading[1])
        everything = [values for readings in found.values() for values in readings]
        if len(everything) == 1:
            self.worlds = tuple(found)
            self._named, self._fruitless, self._need = True, 0, 0
            self._refine()
            return everything[0]
        self._settle(tuple(found))
        return None

    def _refine(self) -> None:
        """Use finer coarse parts if N0, now known, keeps them readable; C is then unknown again."""
        finer = self._base(self.n0) if self.near and self.coarse else None
        if finer is not None and finer[0] > self._coarse_exponent:
            self._coarse_exponent, self._width, self._coarse = finer
            self._peaks.clear()
            self._coarse_total = int(self._coarse.sum())
            self.worlds = tuple(PossibleSums(world.n0, None) for world in self.worlds)

    def _settle(self, worlds: tuple[PossibleSums, ...]) -> None:
        """Keep the worlds that are still possible after a row that could not be read."""
        before = len(self.worlds)
        if not self._named:
            # The choice of alpha held for this row alone.
            sizes = sorted({size for world in worlds for size in (world.n0, self.people - world.n0)})
            worlds = tuple(PossibleSums(size, None) for size in sizes)
        # Two readings of C for one size are worth no more than none.
        different = dict.fromkeys(world.n0 for world in worlds)
        if len(different) < len(worlds) or any(world.coarse is None for world in worlds):
            worlds = tuple(PossibleSums(size, None) for size in different)
        if len(worlds) < before:
            self._fruitless = self._need = 0
        else:
            self._fruitless += 1
            self._need = min(self._need, 1)
        self.worlds = worlds

    def _signs(self, world: PossibleSums, layout: Layout, total: Fraction, both: bool) -> tuple[int, ...]:
        if both:
            return (1, -1)
        if not self.absolute or not self.near or not self._named or world.coarse is None:
            return (1,)
        # The sign is not open, so any x determines it.
        x = 2 * (world.coarse << (layout.exponent - self._coarse_exponent)) + layout.least + layout.most
        return (1,) if 2 * total * world.n0 >= x * self.people else (-1,)

    def _readings(
        self, world: PossibleSums, layout: Layout, total: Fraction, gap: Fraction, tolerance: float
    ) -> list[tuple[PossibleSums, list[int]]]:
        """Return the readings of an answer in a world: none if impossible, two or more if the answer is too coarse."""
        n, n0 = self.people, world.n0
        shift = layout.exponent - self._coarse_exponent
        x = (total * n0 - gap * 2**layout.exponent * n0 * (n - n0)) / n
        if world.coarse is not None:
            # Beyond the coarse parts, in units of the digits.
            x = (x - (world.coarse << shift)) / layout.stretch + (world.coarse << shift)
        nearest = round(x)
        if tolerance >= 0.5:
            # Too coarse to separate: no evidence against the world, but no unique reading either.
            inside = -tolerance <= x <= total + tolerance
            return [(world, []), (world, [])] if inside else []
        if abs(x - nearest) > tolerance:
            return []
        if world.coarse is None:
            D = (nearest - layout.least) % (1 << shift) + layout.least
            coarse = (nearest - D) >> shift
            if not 0 <= coarse <= self._coarse_total:
                return []
        else:
            coarse = world.coarse
            D = nearest - (coarse << shift)
        if not layout.least <= D <= layout.most:
            return []
        values, rest = [], D - layout.least
        for digit in layout.digits:
            rest, value = divmod(rest, digit.radix + layout.spare)
            if value >= digit.radix:
                return []
            values.append(value + digit.low)
        return [(PossibleSums(n0, coarse), values)] if rest == 0 else []

    def probe(self) -> None:
        """Query a random row that reveals N0 alone: drop the sizes for which x is no whole number."""
        chosen = (self._hand.rng.random(self.people) < PROBED).astype(np.int64)
        row = (self._coarse + chosen).astype(np.float64)
        total, exponent = int(row.sum()), self._coarse_exponent
        answer = self._send(row, exponent)
        if answer is None:
            return
        n = self.people
        n0 = np.array([world.n0 for world in self.worlds], np.float64)
        rate1, rate0 = np.minimum(total * 2.0**-exponent / (n - n0), 1), np.ones_like(n0)
        off = self._error(rate1, rate0, np.maximum(rate1, rate0))
        tolerances = off * (n0 * (n - n0) / n) * 2.0**exponent
        kept = []
        for world, tolerance in zip(self.worlds, tolerances.tolist(), strict=True):
            for sign in (1, -1) if self.absolute and self._named else (1,):
                x = (total * world.n0 - sign * Fraction(answer) * 2**exponent * world.n0 * (n - world.n0)) / n
                if abs(x - round(x)) <= tolerance and -tolerance <= x <= total + tolerance:
                    kept.append(world)
                    break
        self._settle(tuple(kept))

    def _send(self, row: Floats, exponent: int) -> float | None:
        self.left -= 1
        answer = float(self._hand.auditor.gaps(np.ldexp(row, -exponent)[None])[0])
        if not self._listen(answer):
            self.worlds = ()
            return None
        return answer

    def reveal(self, share: Floats) -> Reveal:
        """Return a guess from each person's probability of being disadvantaged (or in beta), (n,); NaN where unknown.

        Where a group of people is known only by its count, the whole group goes to the class that raises balanced
        accuracy: disadvantaged where its share is above everybody's. If equal, or with unknown sizes, the prior guess
        stands.
        """
        n, n0 = self.people, self.n0
        prior = self._hand.prior().astype(np.bool_)
        if n0 is None or np.isnan(share).all():
            return everyone(prior)
        if not self.absolute:
            usual = n0 / n
            return everyone(np.where(np.isnan(share) | (share == usual), prior, share < usual))
        # Beta's share; the larger group is named advantaged, or by N0 where it is public. A partition up to polarity
        # has no prior.
        beta = np.where(np.isnan(share) | (share == n0 / n), False, share > n0 / n)
        told = self._hand.terms.n0
        beta_advantaged = n0 > n - n0 if told is None else n0 != told
        return replace(everyone(beta if beta_advantaged else ~beta), polarity_known=2 * n0 != n)


def answers_needed(n: int, n0: int, bits: float) -> int:
    """Return a lower bound on the number of answers, of at most `bits` bits each, that identify n0 of n people.

    The group is one of C(n, n0) sets, so no queries can do with fewer than ``log2 C(n, n0) / bits`` answers.
    """
    return math.ceil(math.log2(math.comb(n, n0)) / bits)
