"""The protected attributes of two groups. This module alone reads them; `groups` reads those of more."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compliance.records.metrics import MetricSums
from fairwall.arrays import Bools, Bytes, Floats, Ints
from fairwall.laws.metrics.metric import find_metric, stratum
from fairwall.laws.metrics.sensitivity import least_stratum
from fairwall.laws.metrics.values import Values, sums_over, values_of

STRATUM_MIN = least_stratum(1)
"""Smallest stratum: with fewer people a flip has no neighbour with both groups, so no noise would protect anybody."""


class RecordsError(ValueError):
    """Records on which the allowed metrics cannot be audited. The text names the rule, never a person or group."""


@dataclass(frozen=True)
class Records:
    """A test set as compliance holds it.

    RecordsError if the columns do not fit together, or if in a stratum of a metric a group is smaller than the minimum,
    or both have just the minimum, so that nobody could be in the other one. Checked here, before anybody is admitted,
    so that no later refusal depends on a protected attribute.

    `labels`: 0 or 1, shape (people,). `protected`: 1 = advantaged, 0 = disadvantaged, shape (people,). `metrics`: those
    that these records will be audited for. `minimum_group`: least number of people of each group in every stratum of
    these metrics. Public, and part of the definition of neighbours: noise counts on it.
    """

    labels: Bytes
    protected: Bytes = field(repr=False)
    metrics: tuple[str, ...]
    minimum_group: int = 1

    def __post_init__(self) -> None:
        if self.labels.ndim != 1 or self.labels.shape != self.protected.shape:
            raise RecordsError("labels and protected attributes are not one value a person each")
        for column in (self.labels, self.protected):
            if not np.isin(column, (0, 1)).all():
                raise RecordsError("a label or protected attribute is neither 0 nor 1")
        for metric in self.metrics:
            for members in self._strata(metric):
                smallest = min(self._split(members))
                if smallest < self.minimum_group or members.sum() < least_stratum(self.minimum_group):
                    raise RecordsError(
                        f"metric {metric}: a group is too small to be audited: leave the metric out, or bring more data"
                    )

    @classmethod
    def imagined(
        cls, labels: Bytes, protected: Bytes, metrics: tuple[str, ...] = (), minimum_group: int = 1
    ) -> Records:
        """Return records of simulated people, whom no check has to protect."""
        records = object.__new__(cls)
        records.__dict__.update(labels=labels, protected=protected, metrics=metrics, minimum_group=minimum_group)
        return records

    @property
    def people(self) -> int:
        """Number of people in the test set."""
        return len(self.labels)

    def fingerprint(self, key: bytes) -> bytes:
        """Return a digest that reveals nothing without the key: 16 bytes for the groups, 16 for everything else.

        The first half, for whose attributes these are, is the same whichever group is called the advantaged one, and
        whatever the labels are: audits lose privacy of the attributes.
        """
        whose, what = self.protected ^ self.protected[:1], np.stack([self.labels, self.protected])
        halves = (b"whose" + whose.tobytes(), b"what" + what.tobytes())
        return b"".join(hmac.digest(key, half, hashlib.sha256)[:16] for half in halves)

    def counts(self, metric: str) -> tuple[int, int]:
        """Return the numbers of disadvantaged and advantaged people in the metric's stratum: (n0, n1).

        For equalized odds, which has two strata, these are everybody's counts.
        """
        return self._split(stratum(metric, self.labels))

    def exposed(self, metric: str) -> int:
        """Return the number of people the metric would read if all its strata were as small as its smallest.

        Public, since the labels are. An answer reveals most about the smallest stratum, whose groups may be as small as
        in any other.
        """
        sizes = [int(np.count_nonzero(members)) for members in self._strata(metric)]
        return len(sizes) * min(sizes)

    def smallest_group(self, metric: str) -> int:
        """Return the size of the smallest group in any of the metric's strata. Secret."""
        return min(min(self._split(members)) for members in self._strata(metric))

    def among(self, people: Ints) -> Records:
        """Return some people's records, by position; they need not be fit for audits by themselves."""
        return Records(self.labels[people], self.protected[people], ())

    def disadvantaged_in(self, cell_of: NDArray[np.intp], cells: int) -> Floats:
        """Return the number of disadvantaged in each cell, shape (cells,), from each person's cell, shape (people,)."""
        return np.bincount(cell_of[self.protected == 0], minlength=cells).astype(np.float64)

    def disadvantaged_sums(self, weights: NDArray[np.int8]) -> Floats:
        """Return sums over the disadvantaged, shape (sums,), of integer weights, shape (sums, people)."""
        return np.asarray(weights[:, self.protected == 0].sum(axis=1, dtype=np.int64), np.float64)

    def turned(self, people: Bools) -> Bytes:
        """Return the protected attributes with those of some people, shape (people,), flipped."""
        return np.where(people, 1 - self.protected, self.protected).astype(np.uint8)

    def group_sums(self, metric: str, predictions: NDArray[Any]) -> tuple[MetricSums, ...]:
        """Return each model's sums over each group, for each of the metric's parts.

        Sums are in the order that the protocol fixes, see :func:`fairwall.laws.metrics.values.sums_over`. ValueError
        for predictions that must be 0 or 1 and are not, which depends on nothing protected.

        `predictions`: shape (models, people), see `fairwall.laws.metrics.values.Values`.
        """
        return tuple(self._add_up(members, values) for members, values in values_of(metric, predictions, self.labels))

    def sums_by_label(self, values: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Return sums of everybody's values, shape (models, people), by label: people, totals, and the same for a=0.

        Shapes are (2,) and (2, models), twice. Sums of whole numbers are exact, whatever the order.
        """
        of_all = [self.labels == label for label in (0, 1)]
        found = list[NDArray[Any]]()
        for chosen in (of_all, [members & (self.protected == 0) for members in of_all]):
            found.append(np.array([np.count_nonzero(members) for members in chosen]))
            found.append(np.array([values[:, members].sum(axis=1, dtype=np.float64) for members in chosen]))
        return tuple(found)

    def sums_of_disadvantaged(self, members: Bools, values: Floats) -> Floats:
        """Return sums over the disadvantaged members, shape (k,), of members' values, shape (k, members)."""
        return sums_over(self.protected[members] == 0, values)

    def _add_up(self, members: Bools, values: Values) -> MetricSums:
        n0, n1 = self._split(members)
        return MetricSums(
            sum1=sums_over(members & (self.protected == 1), values),
            sum0=sums_over(members & (self.protected == 0), values),
            n1=n1,
            n0=n0,
        )

    def _strata(self, metric: str) -> Iterator[Bools]:
        for label in find_metric(metric).strata:
            yield np.ones(self.labels.shape, np.bool_) if label is None else self.labels == label

    def _split(self, members: Bools) -> tuple[int, int]:
        groups = self.protected[members]
        advantaged = int(np.count_nonzero(groups))
        return len(groups) - advantaged, advantaged
