"""A batch of metric queries, without protected attributes: the models' predictions, and the strata of a metric.

The choice of mechanism, the partition into cells and the predicted errors are functions of this alone, so no protected
attribute can enter them.
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

from fairwall.arrays import Bools, Bytes, Floats
from fairwall.laws.choice.cell_partition import Cuts, cut, enlarged, least_among, part_of
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.metrics.values import AT_ONCE, Values, possible_sums, sums_over, sums_within, values_of
from fairwall.laws.noise.linf_ball import Coordinates, coordinates, told_apart
from fairwall.rpc.memory import part

FEW = 2**16
"""Target number of people in the public sample by which errors are predicted for very many."""

_RAREST, _MANY, _SOME = 2**12, 2**20, 64
"""Expected sample members of the rarer label; largest sample for that; fewest such members of any sample."""

_Arguments = ParamSpec("_Arguments")
_Found = TypeVar("_Found")


@dataclass(frozen=True, eq=False)
class Stratum:
    """People of one label, or all, whom a batch asks about, and their values.

    `parts` are the numbers of the metric's parts that look at them, `members` is their mask, shape (n,), and `values`
    has the values of each of those parts: k rows in all, all models of one part after those of another. In a sample
    (`AskedBatch.few`) each member stands for several people.
    """

    label: int | None
    parts: tuple[int, ...]
    members: Bools
    values: tuple[Values, ...]
    stands_for: float = 1.0

    @cached_property
    def people(self) -> int:
        """The number of people whom the members stand for."""
        return round(self.stands_for * np.count_nonzero(self.members))

    @property
    def rows(self) -> int:
        """The number of values of each member: k."""
        return sum(map(len, self.values))

    @cached_property
    def _inside(self) -> NDArray[np.intp] | slice:
        return slice(None) if self.members.all() else np.flatnonzero(self.members)

    def pieces(self) -> Iterator[Floats]:
        """Yield the members' values some rows at a time, shape (r, people)."""
        for values in self.values:
            yield from values.pieces(self._inside)

    def blocks(self) -> Iterator[tuple[NDArray[np.intp] | slice, Floats]]:
        """Yield some members at a time, by position, and all their values, shape (k, b)."""
        for some in _in_blocks(int(np.count_nonzero(self.members)), self.rows):
            people = some if isinstance(self._inside, slice) else self._inside[some]
            yield people, np.concatenate([values.of(slice(None), people) for values in self.values])

    @cached_property
    def inside(self) -> Floats:
        """The members' values, shape (k, people): only for few members, who fit into memory."""
        return np.concatenate(list(self.pieces()))

    @property
    def by_sums(self) -> bool:
        """Whether each value is 0 or 1, so that sums suffice, for coordinates too (`Coordinates.of_sums`)."""
        return all(values.decided for values in self.values)

    @cached_property
    def _told(self) -> Floats:
        """Means, minima and maxima of each row."""
        if self.by_sums:
            members = np.count_nonzero(self.members)
            return np.stack([self.totals / members, self.totals == members, self.totals > 0])
        pieces = ([piece.mean(axis=1), piece.min(axis=1), piece.max(axis=1)] for piece in self.pieces())
        return np.concatenate(list(pieces), axis=1)

    @property
    def means(self) -> Floats:
        """The means of the members' values, shape (k,)."""
        return np.asarray(self._told[0])

    @cached_property
    def variances(self) -> Floats:
        """The mean squares around the means, shape (k,)."""
        return np.concatenate([piece.var(axis=1) for piece in self.pieces()])

    @cached_property
    def totals(self) -> Floats:
        """Sums of the members' values, in the protocol's order of addition, shape (k,)."""
        return np.concatenate([sums_over(self.members, values) for values in self.values])

    def possible_sums(self, first: int, last: int) -> tuple[Floats, Floats]:
        """Return the ends of the sums over `first` to `last` members: `fairwall.laws.metrics.values.possible_sums`."""
        if not self.by_sums:
            return possible_sums(self.pieces(), first, last)
        _, least, most = self._told
        return sums_within(self.totals, (least, most), self.people, first, last)

    def coordinates(self, step: float) -> Coordinates:
        """Return the values as coordinates that one person moves by at most 1: `linf_ball.coordinates`."""
        if not self.by_sums:
            return coordinates(self.pieces(), step)
        first, decisions = int(np.argmax(self.members)), (each for values in self.values for each in values.decisions())
        signs, keys = np.zeros(self.rows), list[bytes]()
        for row, (total, decided) in enumerate(zip(self.totals, decisions, strict=True)):
            # Mirrored decisions share a coordinate, as in `fairwall.laws.noise.linf_ball.coordinates`.
            signs[row] = np.sign(2 * total - np.count_nonzero(self.members)) or 2.0 * decided[first] - 1
            keys.append(blake3(((decided == (signs[row] > 0)) & self.members).data.cast("B")).digest())
        _, least, most = self._told
        return told_apart(least, most, signs, keys, step)

    @cached_property
    def ordered(self) -> Floats:
        """The mean over rows of the members' values in ascending order, shape (people,)."""
        ordered: Floats = np.sort(self.inside, axis=1).mean(axis=0)
        return ordered

    def centre(self, values: Floats) -> Floats:
        """Return some members' values less the means, shape (k, b); exactly 0 in a row that is the same for everybody.

        Scaled by the root of `stands_for`, so that sums of squares are the whole population's.
        """
        means, least, most = self._told
        centred: Floats = values - means[:, np.newaxis]
        # A constant row has no gap except by rounding.
        centred[least == most] = 0.0
        return centred if self.stands_for == 1 else centred * math.sqrt(self.stands_for)

    @cached_property
    def gram(self) -> Floats:
        """X X' of the centred values X, shape (k, k)."""
        total = np.zeros((self.rows, self.rows))
        for _, values in self.blocks():
            centred = self.centre(values)
            total += centred @ centred.T
        return total


def _in_blocks(people: int, rows: int) -> Iterator[slice]:
    """Return slices of people so that each holds about `AT_ONCE` numbers in `rows` rows, and at least one person."""
    step = max(1, AT_ONCE // rows)
    return (slice(first, first + step) for first in range(0, people, step))


def kept(
    find: Callable[Concatenate[AskedBatch, _Arguments], _Found],
) -> Callable[Concatenate[AskedBatch, _Arguments], _Found]:
    """Cache a function's results in the batch for as long as it lives; a global cache would keep predictions."""

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
    """One batch, without the protected attributes of its people.

    At least one model predicts for everybody, shape (m, n), as of `fairwall.laws.metrics.values.Values`; labels are 0
    or 1, shape (n,), and `metrics` are all metrics for which these people are audited. A sample (`few`) has the
    positions `drawn` of a batch with `drawn_from` people of each label.
    """

    metric: str
    predictions: NDArray[Any]
    labels: Bytes
    metrics: tuple[str, ...]
    stands_for: float = 1.0
    drawn: NDArray[np.intp] | None = None
    drawn_from: tuple[int, ...] | None = None

    @property
    def queries(self) -> int:
        """The number of models: m."""
        return len(self.predictions)

    @property
    def people(self) -> int:
        """The number of people the metric looks at."""
        return sum(stratum.people for stratum in self.strata)

    @property
    def exposed(self) -> int:
        """The number of people if all strata were as small as the smallest, which reveals most."""
        return len(self.strata) * min(stratum.people for stratum in self.strata)

    @cached_property
    def few(self) -> AskedBatch:
        """A public sample of very many people for predicting errors; the batch itself for few, or a rare label."""
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

    def of(self, people: NDArray[np.intp]) -> Floats:
        """Return the predictions about some people, shape (m, b)."""
        return Values(self.predictions).of(slice(None), people)

    def blocks(self, people: NDArray[np.intp]) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of `people` and the predictions about each slice, shape (m, b)."""
        return ((some, self.of(people[some])) for some in _in_blocks(len(people), self.queries))

    @cached_property
    def split(self) -> tuple[NDArray[np.intp], ...]:
        """The people, by position, from whom cells for all `metrics` are made: by label if any metric uses labels."""
        if any(find_metric(metric).labelled for metric in self.metrics):
            strata = [np.flatnonzero(self.labels == label) for label in (0, 1)]
        else:
            strata = [np.arange(len(self.labels))]
        return tuple(people for people in strata if len(people))

    @kept
    def cuts(self, least: int) -> tuple[tuple[NDArray[np.intp], Cuts], ...]:
        """Cut each part of `split` into cells of similar predictions, of at least `least` people each."""
        least = least_among(least, self.stands_for)
        return tuple((people, cut(self.of(people), least)) for people in self.split)

    def cells(self, people: NDArray[np.intp], cuts: Cuts, count: int, least: int) -> NDArray[np.intp]:
        """Return each person's cell by cuts of a sample, after merging cells of fewer than `least` people."""
        found = np.concatenate([cuts.cell_of_others(values, count) for _, values in self.blocks(people)])
        return enlarged(found, count, least)

    @cached_property
    def found(self) -> dict[Hashable, Any]:
        """Cached results of the `kept` functions."""
        return {}
