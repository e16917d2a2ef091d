"""A batch of metric queries, as far as it is public to who asks: the models' predictions, and the strata of a metric.

Which mechanism answers a batch, how people are cut into cells for it and how far answers will err are functions of
this alone, and nobody's protected attribute is within their reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.cells import Cuts, cut, least_among, part_of
from fairwall.laws.metric import find_metric, part_values
from fairwall.laws.posterior import centred_values

FEW = 2**16
"""About so many people predict the errors of very many; most of them are not whom cells are cut by."""

_RAREST = 2**12
"""How many of them have the rarer label at least."""

_Arguments = ParamSpec("_Arguments")
_Found = TypeVar("_Found")


@dataclass(frozen=True, eq=False)
class Stratum:
    """People of one label, or all, whom a batch asks about, and what is added up about them.

    `parts` are the numbers of the metric's parts that look at them, and `members` says who they are, shape (n,). The
    values are what those parts add up about everybody, all models of one part after those of the other, shape (k, n).
    Each of them stands for several people, if there are very many: `AskedBatch.few`.
    """

    label: int | None
    parts: tuple[int, ...]
    members: NDArray[np.bool_]
    values: NDArray[np.float64]
    stands_for: float = 1.0

    @cached_property
    def people(self) -> int:
        """How many members there are, all they stand for counted."""
        return round(self.stands_for * np.count_nonzero(self.members))

    @cached_property
    def _are_all(self) -> bool:
        return bool(self.members.all())

    @cached_property
    def inside(self) -> NDArray[np.float64]:
        """The members' values, shape (k, people)."""
        return self.values if self._are_all else self.values[:, self.members]

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """Their means, shape (k,)."""
        means: NDArray[np.float64] = self.inside.mean(axis=1)
        return means

    @cached_property
    def ordered(self) -> NDArray[np.float64]:
        """The mean over models of their values in ascending order, shape (people,)."""
        ordered: NDArray[np.float64] = np.sort(self.inside, axis=1).mean(axis=0)
        return ordered

    @cached_property
    def centred(self) -> NDArray[np.float64]:
        """The members' values less their means, and 0 for everybody else, shape (k, n).

        They are times the root of how many each stands for, so that sums of squares are those of all of these.
        """
        inside = centred_values(self.inside)
        if self.stands_for != 1:
            inside *= math.sqrt(self.stands_for)
        if self._are_all:
            return inside
        centred = np.zeros(self.values.shape)
        centred[:, self.members] = inside
        return centred

    @property
    def centred_inside(self) -> NDArray[np.float64]:
        """The members' part of them, shape (k, people)."""
        return self.centred if self._are_all else self.centred[:, self.members]


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

    At least one model predicts for everybody, shape (m, n), each in [0, 1]; labels are 0 or 1, shape (n,), and
    `metrics` are all that these people are audited for. Each may stand for several, drawn from all of them: `few`.
    """

    metric: str
    predictions: NDArray[np.float64]
    labels: NDArray[np.uint8]
    metrics: tuple[str, ...]
    stands_for: float = 1.0
    drawn: NDArray[np.intp] | None = None

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
        many = max(FEW, math.ceil(_RAREST * people / max(least, 1)))
        if people <= 2 * many:
            return self
        drawn = part_of(people, many)
        of_few = np.ascontiguousarray(self.predictions[:, drawn]), self.labels[drawn], self.metrics
        return AskedBatch(self.metric, *of_few, len(self.labels) / len(drawn), drawn)

    @cached_property
    def strata(self) -> tuple[Stratum, ...]:
        """The metric's strata, in their order."""
        metric, found = find_metric(self.metric), []
        values = list(part_values(self.metric, self.predictions, self.labels))
        for label in metric.strata:
            parts = tuple(i for i, part in enumerate(metric.parts) if part.label == label)
            members, *of_parts = values[parts[0]][0], *(values[i][1] for i in parts)
            stacked = np.concatenate(of_parts) if len(parts) > 1 else of_parts[0]
            found.append(Stratum(label, parts, members, stacked, self.stands_for))
        return tuple(found)

    @kept
    def cuts(self, least: int) -> tuple[tuple[NDArray[np.intp], Cuts], ...]:
        """Cut the people into cells of alike predictions: who is in each stratum, by position, and its cuts.

        Strata are those of the label, where any metric of `metrics` looks at it: a cell, of at least so many people,
        then serves all of them.
        """
        labels, least = self.labels, least_among(least, self.stands_for)
        if any(find_metric(metric).labelled for metric in self.metrics):
            strata = [np.flatnonzero(labels == label) for label in (0, 1)]
        else:
            strata = [np.arange(len(labels))]
        return tuple((people, cut(self.predictions[:, people], least)) for people in strata if len(people))

    @cached_property
    def found(self) -> dict[Hashable, Any]:
        """What functions that are `kept` have found out about it."""
        return {}
