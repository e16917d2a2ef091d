"""A batch of metric queries, as far as it is public to who asks: the models' predictions, and the strata of a metric.

Which mechanism answers a batch, how people are cut into cells for it and how far answers will err are functions of
this alone, and nobody's protected attribute is within their reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from fairwall.laws.cells import Cuts, cut, enlarged, least_among, part_of
from fairwall.laws.cube import Coordinates, coordinates, told_apart
from fairwall.laws.metric import find_metric
from fairwall.laws.values import AT_ONCE, Values, possible_sums, sums_over, sums_within, values_of
from fairwall.rpc.memory import part

FEW = 2**16
"""About so many people predict the errors of very many; most of them are not whom cells are cut by."""

_RAREST, _MANY, _SOME = 2**12, 2**20, 64
"""How many of them have the rarer label at least; if that takes more than so many, it is some at least."""

_Arguments = ParamSpec("_Arguments")
_Found = TypeVar("_Found")


@dataclass(frozen=True, eq=False)
class Stratum:
    """People of one label, or all, whom a batch asks about, and what is added up about them.

    `parts` are the numbers of the metric's parts that look at them, `members` says who they are, shape (n,), and
    `values` has what each of those parts adds up: k rows in all, all models of one part after those of the other.
    Each of them stands for several people, if there are very many: `AskedBatch.few`.
    """

    label: int | None
    parts: tuple[int, ...]
    members: NDArray[np.bool_]
    values: tuple[Values, ...]
    stands_for: float = 1.0

    @cached_property
    def people(self) -> int:
        """How many members there are, all they stand for counted."""
        return round(self.stands_for * np.count_nonzero(self.members))

    @property
    def rows(self) -> int:
        """How many values each member has: k."""
        return sum(map(len, self.values))

    @cached_property
    def _inside(self) -> NDArray[np.intp] | slice:
        return slice(None) if self.members.all() else np.flatnonzero(self.members)

    def pieces(self) -> Iterator[NDArray[np.float64]]:
        """Give the members' values some rows at a time, shape (r, people)."""
        for values in self.values:
            yield from values.pieces(self._inside)

    def blocks(self) -> Iterator[tuple[NDArray[np.intp] | slice, NDArray[np.float64]]]:
        """Give some members at a time, by position, and all their values, shape (k, b)."""
        for some in _in_blocks(int(np.count_nonzero(self.members)), self.rows):
            people = some if isinstance(self._inside, slice) else self._inside[some]
            yield people, np.concatenate([values.of(slice(None), people) for values in self.values])

    @cached_property
    def inside(self) -> NDArray[np.float64]:
        """The members' values, shape (k, people): of few alone, who fit into memory."""
        return np.concatenate(list(self.pieces()))

    @property
    def by_sums(self) -> bool:
        """Whether each value is 0 or 1, so that sums tell all: those of coordinates too, `Coordinates.of_sums`."""
        return all(values.decided for values in self.values)

    @cached_property
    def _told(self) -> NDArray[np.float64]:
        """Means, least and most of each row."""
        if self.by_sums:
            members = np.count_nonzero(self.members)
            return np.stack([self.totals / members, self.totals == members, self.totals > 0])
        pieces = ([piece.mean(axis=1), piece.min(axis=1), piece.max(axis=1)] for piece in self.pieces())
        return np.concatenate(list(pieces), axis=1)

    @property
    def means(self) -> NDArray[np.float64]:
        """The means of the members' values, shape (k,)."""
        return np.asarray(self._told[0])

    @cached_property
    def variances(self) -> NDArray[np.float64]:
        """The mean squares around the means, shape (k,)."""
        return np.concatenate([piece.var(axis=1) for piece in self.pieces()])

    @cached_property
    def totals(self) -> NDArray[np.float64]:
        """What the members' values add up to, in the protocol's order, shape (k,)."""
        return np.concatenate([sums_over(self.members, values) for values in self.values])

    def possible_sums(self, first: int, last: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return between what so many members' values add up: `fairwall.laws.values.possible_sums`."""
        if not self.by_sums:
            return possible_sums(self.pieces(), first, last)
        _, least, most = self._told
        return sums_within(self.totals, (least, most), self.people, first, last)

    def coordinates(self, step: float) -> Coordinates:
        """Return the values as coordinates that one person moves by at most 1: `fairwall.laws.cube.coordinates`."""
        if not self.by_sums:
            return coordinates(self.pieces(), step)
        first, decisions = int(np.argmax(self.members)), (each for values in self.values for each in values.decisions())
        signs, keys = np.zeros(self.rows), list[bytes]()
        for row, (total, decided) in enumerate(zip(self.totals, decisions, strict=True)):
            # Of decisions that mirror one another, as there.
            signs[row] = np.sign(2 * total - np.count_nonzero(self.members)) or 2.0 * decided[first] - 1
            keys.append(blake3(((decided == (signs[row] > 0)) & self.members).data.cast("B")).digest())
        _, least, most = self._told
        return told_apart(least, most, signs, keys, step)

    @cached_property
    def ordered(self) -> NDArray[np.float64]:
        """The mean over rows of the members' values in ascending order, shape (people,)."""
        ordered: NDArray[np.float64] = np.sort(self.inside, axis=1).mean(axis=0)
        return ordered

    def centre(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Take the means off some members' values, shape (k, b): just 0 in a row that is the same for everybody.

        They are times the root of how many each stands for, so that sums of squares are those of all of these.
        """
        means, least, most = self._told
        centred: NDArray[np.float64] = values - means[:, np.newaxis]
        # What is the same for everybody has no gap but by rounding.
        centred[least == most] = 0.0
        return centred if self.stands_for == 1 else centred * math.sqrt(self.stands_for)

    @cached_property
    def gram(self) -> NDArray[np.float64]:
        """X X' of the centred values X, shape (k, k)."""
        total = np.zeros((self.rows, self.rows))
        for _, values in self.blocks():
            centred = self.centre(values)
            total += centred @ centred.T
        return total


def _in_blocks(people: int, rows: int) -> Iterator[slice]:
    """Cut people into blocks of `AT_ONCE` numbers, for so many rows of them, and of one person at least."""
    step = max(1, AT_ONCE // rows)
    return (slice(first, first + step) for first in range(0, people, step))


def kept(
    find: Callable[Concatenate[AskedBatch, _Arguments], _Found],
) -> Callable[Concatenate[AskedBatch, _Arguments], _Found]:
    """Keep what a function finds out about a batch with it: as long as that lives, and no longer.

    It is looked at several times: for its price, whether it is free, and for its answer. A cache of the function's
    own would keep the predictions in memory.
    """

    @wraps(find)
    def known(batch: AskedBatch, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Found:
        key = find, args, tuple(kwargs.items())
        if key not in batch.found:
            batch.found[key] = find(batch, *args, **kwargs)
        found: _Found = batch.found[key]
        return found

    return known


@dataclass(frozen=True, eq=False)
class AskedBatch:
    """One batch, without the protected attributes of whom it is about.

    At least one model predicts for everybody, shape (m, n), as of `fairwall.laws.values.Values`; labels are 0 or 1,
    shape (n,), and `metrics` are all that these people are audited for. Each may stand for several, drawn from all of
    them, `drawn_from` so many of each label: `few`.
    """

    metric: str
    predictions: NDArray[Any]
    labels: NDArray[np.uint8]
    metrics: tuple[str, ...]
    stands_for: float = 1.0
    drawn: NDArray[np.intp] | None = None
    drawn_from: tuple[int, ...] | None = None

    @property
    def queries(self) -> int:
        """How many models are asked about: m."""
        return len(self.predictions)

    @property
    def people(self) -> int:
        """How many people the metric looks at."""
        return sum(stratum.people for stratum in self.strata)

    @property
    def exposed(self) -> int:
        """How many people the metric would look at if all its strata were as small as its smallest.

        Most is given away of the smallest: groups may be as small there as in any other.
        """
        return len(self.strata) * min(stratum.people for stratum in self.strata)

    @cached_property
    def few(self) -> AskedBatch:
        """The same batch about a public part of very many people, drawn by position, by which errors are predicted.

        Itself, where there are no more than `FEW`, or a label is too rare.
        """
        people = len(self.labels)
        least = min((int(count) for count in np.bincount(self.labels) if count), default=0)
        many = max(FEW, min(math.ceil(_RAREST * people / max(least, 1)), _MANY))
        if people <= 2 * many or least * many < _SOME * people:
            return self
        drawn = part_of(people, many)
        of_few = np.ascontiguousarray(part(self.predictions, slice(None), drawn)), self.labels[drawn], self.metrics
        labels = tuple(np.bincount(self.labels, minlength=2).tolist())
        return AskedBatch(self.metric, *of_few, people / len(drawn), drawn, labels)

    @cached_property
    def strata(self) -> tuple[Stratum, ...]:
        """The metric's strata, in their order."""
        metric, found = find_metric(self.metric), []
        values = list(values_of(self.metric, self.predictions, self.labels))
        for label in metric.strata:
            parts = tuple(i for i, part in enumerate(metric.parts) if part.label == label)
            of_parts = tuple(values[i][1] for i in parts)
            members, stands_for = values[parts[0]][0], self.stands_for
            if self.drawn_from is not None:
                people = sum(self.drawn_from) if label is None else self.drawn_from[label]
                stands_for = people / np.count_nonzero(members)
            found.append(Stratum(label, parts, members, of_parts, stands_for))
        return tuple(found)

    def of(self, people: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the predictions about some people, shape (m, b)."""
        return Values(self.predictions).of(slice(None), people)

    def blocks(self, people: NDArray[np.intp]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Give which of some people, a part of them at a time, and the predictions about these, shape (m, b)."""
        return ((some, self.of(people[some])) for some in _in_blocks(len(people), self.queries))

    @cached_property
    def split(self) -> tuple[NDArray[np.intp], ...]:
        """The people, by position, whom cells are made of: those of each label, where any of `metrics` looks at it.

        A cell then serves all of these metrics.
        """
        if any(find_metric(metric).labelled for metric in self.metrics):
            strata = [np.flatnonzero(self.labels == label) for label in (0, 1)]
        else:
            strata = [np.arange(len(self.labels))]
        return tuple(people for people in strata if len(people))

    @kept
    def cuts(self, least: int) -> tuple[tuple[NDArray[np.intp], Cuts], ...]:
        """Cut those who are `split` into cells of alike predictions, each of at least so many people."""
        least = least_among(least, self.stands_for)
        return tuple((people, cut(self.of(people), least)) for people in self.split)

    def cells(self, people: NDArray[np.intp], cuts: Cuts, count: int, least: int) -> NDArray[np.intp]:
        """Put people into so many cells as others of them were cut into, shape (people,); some may be empty.

        The others have at least `least` people each: those of smaller ones are put together with cells beside them.
        """
        found = np.concatenate([cuts.cell_of_others(values, count) for _, values in self.blocks(people)])
        return enlarged(found, count, least)

    @cached_property
    def found(self) -> dict[Hashable, Any]:
        """What functions that are `kept` have found out about it."""
        return {}
