r"""Reveal from the gap of precision, a ratio of counts: PPV = TP1/PP1 - TP0/PP0.

Accept a set S of P people of whom T have y = 1, both public. Let p and t count the disadvantaged among them:

    PPV(S) = (T - t)/(P - p) - t/p = (T p - P t) / (p (P - p)),   and 0 where p is 0 or P.

**One answer gives two counts.** Where P is a prime and 0 < T < P, one exact answer determines both p and t: modulo P
the fraction is T p / (-p^2) = -T/p, which differs for all p in 1..P-1, and given p the gap falls with t. It is never 0,
so a 0 means that all of S are in one group. Two values differ by at least ``1 / (p (P-p) p' (P-p')) >= 16/P^4``, far
more than float64 rounds for a P up to 5000. For other sets the answers of all counts that are still possible are
compared, as floats, and a set is used only if all of them differ.

So each answer weighs two sets at once, one per label: it counts the disadvantaged in each. This is the problem of
counterfeit coins on a spring scale, twice in parallel.

**Queries.** First everybody, or as many as make a prime. Then in each class people stand in cells with known numbers of
disadvantaged people. A cell is cut in two halves; the open numbers of several cells' first halves have a joint
distribution, uniform over the possible disadvantaged sets. Of some random unions of first halves the one whose sum has
the largest entropy is weighed. Sums of several halves tell more than one half does: 12 equal chances take about 7
weighings. A settled number makes two cells of one, until all cells are of one group.

**Counts are always readable in the end.** Adding known wholes (uncut cells, known people) varies P, T and the offsets
of t and p. If no choice separates all counts, weigh one half alone: beside a mixed cell of the other label, with d
disadvantaged among s, the gap falls with k = t for a half of w with y = 1, since both ``(w-k)/(w-k+s-d)`` falls and
``k/(k+d)`` grows; with y = 0 it grows with k. Beside one known person of the other label the gap is 0 at one end and
``-1/(w-k+1)`` or similar elsewhere: distinct, too.

**Who can be identified.** If all labels are the same every gap is 0, and nothing is ever learnt. With both labels and
both groups present everything is: two people of different labels have the gap 0 if they are in one group, else +1 or
-1, which identifies both; and if no two such people differed, all people would be in one group.

**The bound.** An answer about half of each class has the entropy of (t, p): with 25 of 100 people of y = 1 and 10
disadvantaged 4.5 bits of the 44 needed, so about 10 answers are the least; with 250 of 1000 and 104, 7.9 of 477, about
61. This strategy's numbers, 20 seeds each: 16 to 24 (median 20.5), and 107 to 134 (124.5). The larger class takes
longest: with 50 of 100 people of y = 1 it is 12 to 19 (16). Decisions are 0 or 1 here, and no score of h0 is near them.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, product
from typing import TypeAlias

import numpy as np

from developer.reveal.strategies.one_by_one import OneByOne, OutOfQueries, log_choose
from developer.reveal.strategies.strategy import Reveal, StrategyInputs, everyone
from fairwall.arrays import Bools, Floats, Ints

_WORLDS_MAX = 2**13
"""Most joint numbers of a class's halves that are kept when a cell is added."""

_UNIONS = 64
"""Number of unions of halves that are compared."""

_TRIES = 40
"""Number of random additions of people with known numbers that are tried."""

_APART = 1e-13
"""Smallest difference at which the answers of two counts can be separated."""

_Ints: TypeAlias = Ints
_Mask: TypeAlias = Bools | None


@dataclass(frozen=True, eq=False)
class _Cell:
    """People of one label, and the number of disadvantaged among them; None where unknown."""

    people: _Ints
    n0: int | None

    @property
    def mixed(self) -> bool:
        return self.n0 is not None and 0 < self.n0 < self.people.size

    def first_half(self) -> _Ints:
        """Return the people to weigh: half of the cell, or all where nothing is known."""
        return self.people if self.n0 is None else self.people[: self.people.size // 2]

    def numbers(self) -> tuple[_Ints, Floats]:
        """Return the possible numbers of disadvantaged people in the first half, and their probabilities."""
        if self.n0 is None:
            k = np.arange(self.people.size + 1)
            return k, np.full(k.size, 1 / k.size)
        left = self.people.size // 2
        right = self.people.size - left
        k = np.arange(max(0, self.n0 - right), min(left, self.n0) + 1)
        weights = np.exp(log_choose(left, k) + log_choose(right, self.n0 - k))
        return k, weights / weights.sum()


class _Scale:
    """One label's class: cells being cut, the joint distribution of their first halves' numbers, and waiting cells.

    whole : cells not being cut, with people of both groups or an unknown number.
    numbers : (worlds, cells being cut), the disadvantaged in each first half.
    weights : (worlds,), summing to 1.
    settled : people whose group is known, and whether it is the disadvantaged.
    """

    def __init__(self, cells: list[_Cell]) -> None:
        self.whole: list[_Cell] = []
        self.cut: list[_Cell] = []
        self.numbers = np.zeros((1, 0), np.int64)
        self.weights = np.ones(1)
        self.settled: list[tuple[_Ints, bool]] = []
        for cell in cells:
            self._put(cell)
        self._fill()

    @property
    def open(self) -> bool:
        return bool(self.cut)

    def unions(self, rng: np.random.Generator) -> list[Bools]:
        """Return unions of first halves, as masks of the cells being cut, the largest entropy first."""
        every = np.ones((1, len(self.cut)), np.bool_)
        masks = np.concatenate([every, rng.random((_UNIONS, len(self.cut))) < 0.5])
        masks = masks[masks.any(axis=1)]
        sums = self.numbers @ masks.T
        entropies = []
        for column in sums.T:
            p = np.bincount(column, self.weights)
            p = p[p > 0]
            entropies.append(-float(p @ np.log(p)))
        return [masks[i] for i in np.argsort(entropies, kind="stable")[::-1]]

    def learn(self, mask: Bools, n0: int) -> None:
        """Condition on the number of disadvantaged in a union."""
        keep = self.numbers @ mask == n0
        self.numbers, self.weights = self.numbers[keep], self.weights[keep]
        self.weights /= self.weights.sum()
        fixed = (self.numbers == self.numbers[0]).all(axis=0)
        for i in np.flatnonzero(fixed):
            cell, k = self.cut[i], int(self.numbers[0, i])
            half = cell.first_half()
            self._put(_Cell(half, k))
            if cell.n0 is not None:
                self._put(_Cell(cell.people[half.size :], cell.n0 - k))
        self.cut = [cell for cell, done in zip(self.cut, fixed, strict=True) if not done]
        self.numbers = self.numbers[:, ~fixed]
        self._fill()

    def _put(self, cell: _Cell) -> None:
        if cell.n0 is None or cell.mixed:
            self.whole.append(cell)
        elif cell.people.size:
            self.settled.append((cell.people, cell.n0 > 0))

    def _fill(self) -> None:
        """Cut as many cells as the joint distribution may hold, the largest first: they need most weighings."""
        self.whole.sort(key=lambda cell: cell.people.size)
        while self.whole:
            k, weights = self.whole[-1].numbers()
            if self.cut and len(self.weights) * k.size > _WORLDS_MAX:
                return
            self.cut.append(self.whole.pop())
            self.numbers = np.column_stack([np.repeat(self.numbers, k.size, axis=0), np.tile(k, len(self.weights))])
            self.weights = np.outer(self.weights, weights).ravel()


@dataclass(frozen=True, eq=False)
class _Weighing:
    """One query and its possible answers.

    accepted : the people to accept.
    masks : the unions weighed, class by class; None where a class is not weighed.
    counts : the possible numbers, class by class, each (possibilities,).
    answers : the metric's values, (possibilities,), all different.
    """

    accepted: list[_Ints]
    masks: tuple[_Mask, _Mask]
    counts: tuple[_Ints, _Ints]
    answers: Floats


def play(inputs: StrategyInputs) -> Reveal:
    """Reveal everyone, or as many as the queries allow; the others are guessed by the base model's scores.

    Answers must be exact float64: any other answer is read as the nearest possible one, which may be wrong.
    """
    if inputs.labels is None:
        raise ValueError("predictive parity needs the labels")
    if inputs.perturbation < 1:
        raise ValueError("strategy ppv needs free decisions: a perturbation of 1")
    scales: list[_Scale] = []
    guess = inputs.prior() == 1
    if not 0 < inputs.labels.sum() < inputs.people:
        return everyone(guess)
    with suppress(OutOfQueries):
        _find_out(inputs, scales, guess)
    scores = inputs.base()
    for scale in scales:
        for people, disadvantaged in scale.settled:
            guess[people] = not disadvantaged
        for cell in scale.whole + scale.cut:
            if cell.n0 is not None:
                guess[cell.people] = True
                guess[cell.people[np.argsort(scores[cell.people], kind="stable")[: cell.n0]]] = False
    return everyone(guess)


def _find_out(inputs: StrategyInputs, scales: list[_Scale], guess: Bools) -> None:
    assert inputs.labels is not None
    answers = OneByOne(inputs)

    def ask(accepted: list[_Ints]) -> float:
        """Return the metric's value if exactly these people are accepted."""
        row = np.zeros(inputs.people)
        row[np.concatenate(accepted)] = 1
        return answers.ask(row)

    classes = [np.flatnonzero(inputs.labels == 1), np.flatnonzero(inputs.labels == 0)]
    left_out: list[_Ints] = [np.zeros(0, np.int64), np.zeros(0, np.int64)]
    larger = int(classes[1].size > classes[0].size)
    extra = inputs.people - _prime(inputs.people)
    classes[larger], left_out[larger] = np.split(classes[larger], [classes[larger].size - extra])

    totals = [people.size for people in classes]
    t, rest = (grid.ravel() for grid in np.meshgrid(*(np.arange(size + 1) for size in totals), indexing="ij"))
    possible = (t + rest > 0) & (t + rest < sum(totals))
    t, rest = t[possible], rest[possible]
    gap = ask(classes)
    if gap == 0:
        _compare(ask, classes, left_out, guess)
        return
    at = int(np.argmin(np.abs(_gaps(t, rest, totals[0], totals[1]) - gap)))
    for people, n0, others in zip(classes, (int(t[at]), int(rest[at])), left_out, strict=True):
        scales.append(_Scale([_Cell(people, n0)] + [_Cell(others, None)] * bool(others.size)))
    while any(scale.open for scale in scales):
        weighing = _weighing(scales, inputs.rng)
        at = int(np.argmin(np.abs(weighing.answers - ask(weighing.accepted))))
        for scale, mask, counts in zip(scales, weighing.masks, weighing.counts, strict=True):
            if mask is not None:
                scale.learn(mask, int(counts[at]))


def _compare(ask: Callable[[list[_Ints]], float], classes: list[_Ints], left_out: list[_Ints], guess: Bools) -> None:
    """Compare each person left out with one of the other label, where all the others are in one group."""
    alike, advantaged = np.concatenate(classes), None
    for i, people in enumerate(left_out):
        for person in people:
            gap = ask([np.array([person]), classes[1 - i][:1]])
            if gap == 0:
                alike = np.append(alike, person)
            else:
                guess[person] = (gap > 0) == (i == 0)
                advantaged = not guess[person]
            if advantaged is not None:
                guess[alike] = advantaged


def _weighing(scales: list[_Scale], rng: np.random.Generator) -> _Weighing:
    """Return a query whose answers separate all counts that are still possible."""
    unions: list[list[_Mask]] = [list(scale.unions(rng)[:3]) if scale.open else [None] for scale in scales]
    halves: list[list[_Mask]] = [list(np.eye(len(scale.cut), dtype=np.bool_)) for scale in scales]
    alone: list[_Mask] = [None]
    choices = chain(
        product(unions[0], unions[1]),
        product(unions[0], alone), product(alone, unions[1]),
        product(halves[0], alone), product(alone, halves[1]),
    )  # fmt: skip
    for masks in choices:
        if masks[0] is None and masks[1] is None:
            continue
        for added in _additions(scales, masks, rng):
            weighing = _weighed(scales, masks, added)
            if weighing is not None:
                return weighing
    raise AssertionError("one half alone can always be weighed")


def _weighed(scales: list[_Scale], masks: tuple[_Mask, _Mask], added: list[tuple[int, _Cell]]) -> _Weighing | None:
    """Return the query of these unions beside whole cells of known numbers, or None where two counts look the same."""
    accepted, sizes, possible = [], [0, 0], []
    for i, (scale, mask) in enumerate(zip(scales, masks, strict=True)):
        cells = [cell for label, cell in added if label == i]
        possible.append(np.zeros(1, np.int64) if mask is None else np.unique(scale.numbers @ mask))
        people = [cell.people for cell in cells]
        if mask is not None:
            people += [scale.cut[j].first_half() for j in np.flatnonzero(mask)]
        accepted += people
        sizes[i] = sum(part.size for part in people)
    counts = tuple(grid.ravel() for grid in np.meshgrid(*possible, indexing="ij"))
    known = [sum(cell.n0 or 0 for label, cell in added if label == i) for i in (0, 1)]
    gaps = _gaps(counts[0] + known[0], counts[1] + known[1], *sizes)
    if np.diff(np.sort(gaps)).min(initial=np.inf) < _APART:
        return None
    return _Weighing(accepted, masks, (counts[0], counts[1]), gaps)


def _additions(
    scales: list[_Scale], masks: tuple[_Mask, _Mask], rng: np.random.Generator
) -> Iterator[list[tuple[int, _Cell]]]:
    """Yield cells of known numbers to accept as well: none, random ones, and at last each alone."""
    mixed: list[tuple[int, _Cell]] = []
    pure: list[tuple[int, _Cell]] = []
    for i, (scale, mask) in enumerate(zip(scales, masks, strict=True)):
        idle = scale.cut if mask is None else [cell for cell, cut in zip(scale.cut, mask, strict=True) if not cut]
        mixed += [(i, cell) for cell in scale.whole + idle if cell.mixed]
        for disadvantaged in (False, True):
            people = [people for people, group in scale.settled if group == disadvantaged]
            if people:
                few = rng.permutation(np.concatenate(people))[:8]
                pure += [(i, _Cell(few[j : j + 1], int(disadvantaged))) for j in range(few.size)]
    yield []
    for _ in range(_TRIES):
        share = rng.random()
        cells = [mixed[j] for j in rng.permutation(len(mixed))[: rng.integers(0, 3)]]
        yield cells + [cell for cell in pure if rng.random() < share]
    for cell in mixed + pure:
        yield [cell]


def _gaps(t: _Ints, rest: _Ints, hits: int, others: int) -> Floats:
    """Return precision gaps if `hits` and `others` people (y = 1, y = 0) are accepted, t and `rest` disadvantaged."""
    n0 = t + rest
    n1 = hits + others - n0
    defined = (n0 > 0) & (n1 > 0)
    return np.where(defined, (hits - t) / np.where(defined, n1, 1) - t / np.where(defined, n0, 1), 0.0)


def _prime(most: int) -> int:
    """Return the largest prime up to a number of at least 2."""
    return next(p for p in range(most, 1, -1) if all(p % d for d in range(2, int(p**0.5) + 1)))
