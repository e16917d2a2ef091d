"""The protected attributes of two groups. This module alone reads them; `groups` reads those of more."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compliance.records.metrics import GroupSums
from fairwall.laws.metric import find_metric, stratum
from fairwall.laws.sensitivity import least_stratum
from fairwall.laws.values import Values, sums_over, values_of

STRATUM_MIN = least_stratum(1)
"""Among fewer people a flip has no neighbour with both groups present, so no noise would protect anybody."""


class RecordsError(ValueError):
    """Records on which the allowed metrics cannot be audited. The text says which rule, never about whom."""


@dataclass(frozen=True)
class Records:
    """A test set as compliance holds it.

    RecordsError if the columns do not fit together, or a group is smaller than that in a stratum that a metric needs,
    or both just as large, where nobody could be in the other one. Checked here, before anybody is admitted, so that no
    later refusal depends on a protected attribute.

    Parameters
    ----------
    labels : ndarray of uint8, shape (people,)
        0 or 1.
    protected : ndarray of uint8, shape (people,)
        1 = advantaged, 0 = disadvantaged.
    metrics : the metrics that these records will be audited for.
    minimum_group : how many people each group has at least in every stratum that these metrics look at. Public, and
        part of what neighbours are: noise counts on it.
    """

    labels: NDArray[np.uint8]
    protected: NDArray[np.uint8] = field(repr=False)
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
        cls,
        labels: NDArray[np.uint8],
        protected: NDArray[np.uint8],
        metrics: tuple[str, ...] = (),
        minimum_group: int = 1,
    ) -> Records:
        """Make the records of people who do not exist, whom no check has to protect."""
        records = object.__new__(cls)
        records.__dict__.update(labels=labels, protected=protected, metrics=metrics, minimum_group=minimum_group)
        return records

    @property
    def people(self) -> int:
        """How many people the test set holds."""
        return len(self.labels)

    def fingerprint(self, key: bytes) -> bytes:
        """Return a digest that says nothing without the key: 16 bytes for whose attributes these are, 16 for all else.

        The first half is the same whichever group is called the advantaged one, and whatever the labels are: what
        audits lose is lost of the attributes.
        """
        whose, what = self.protected ^ self.protected[:1], np.stack([self.labels, self.protected])
        halves = (b"whose" + whose.tobytes(), b"what" + what.tobytes())
        return b"".join(hmac.digest(key, half, hashlib.sha256)[:16] for half in halves)

    def counts(self, metric: str) -> tuple[int, int]:
        """Count the disadvantaged and the advantaged in the metric's stratum: (n0, n1).

        For equalized odds, which has two strata, these are everybody's counts.
        """
        return self._split(stratum(metric, self.labels))

    def exposed(self, metric: str) -> int:
        """Say how many people the metric would look at if all its strata were as small as its smallest.

        Public, since the labels are. Most is given away of the smallest: groups may be as small there as in any other.
        """
        sizes = [int(np.count_nonzero(members)) for members in self._strata(metric)]
        return len(sizes) * min(sizes)

    def smallest_group(self, metric: str) -> int:
        """Count the smallest group in any of the metric's strata. Secret."""
        return min(min(self._split(members)) for members in self._strata(metric))

    def among(self, people: NDArray[np.int64]) -> Records:
        """Take some people's records, by position; they need not be fit to be audited by themselves."""
        return Records(self.labels[people], self.protected[people], ())

    def disadvantaged_in(self, cell_of: NDArray[np.intp], cells: int) -> NDArray[np.float64]:
        """Count the disadvantaged of each cell, shape (cells,); `cell_of` has each person's cell, shape (people,)."""
        return np.bincount(cell_of[self.protected == 0], minlength=cells).astype(np.float64)

    def disadvantaged_sums(self, weights: NDArray[np.int8]) -> NDArray[np.float64]:
        """Add up whole numbers over the disadvantaged, given for each person, shape (sums, people): shape (sums,)."""
        return np.asarray(weights[:, self.protected == 0].sum(axis=1, dtype=np.int64), np.float64)

    def turned(self, people: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Return the protected attributes with those of some people, shape (people,), turned over."""
        return np.where(people, 1 - self.protected, self.protected).astype(np.uint8)

    def group_sums(self, metric: str, predictions: NDArray[Any]) -> tuple[GroupSums, ...]:
        """Add up each model's values over each group, for each of the metric's parts.

        ValueError for predictions that must be 0 or 1 and are not. Depends on nothing protected.

        Parameters
        ----------
        predictions : ndarray, shape (models, people)
            As of `fairwall.laws.values.Values`.

        Returns
        -------
        tuple of GroupSums
            Sums in the order that the protocol fixes, see :func:`fairwall.laws.values.sums_over`; one for each of
            the metric's parts.
        """
        return tuple(self._add_up(members, values) for members, values in values_of(metric, predictions, self.labels))

    def sums_by_label(self, values: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Add up values of everybody, shape (models, people), by label: people, totals, and the same of a=0.

        Shapes are (2,) and (2, models), twice. Of whole numbers sums are exact, whatever the order.
        """
        of_all = [self.labels == label for label in (0, 1)]
        found = list[NDArray[Any]]()
        for chosen in (of_all, [members & (self.protected == 0) for members in of_all]):
            found.append(np.array([np.count_nonzero(members) for members in chosen]))
            found.append(np.array([values[:, members].sum(axis=1, dtype=np.float64) for members in chosen]))
        return tuple(found)

    def sums_of_disadvantaged(self, members: NDArray[np.bool_], values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up some values of the members, shape (k, members), over the disadvantaged among them: shape (k,)."""
        return sums_over(self.protected[members] == 0, values)

    def _add_up(self, members: NDArray[np.bool_], values: Values) -> GroupSums:
        n0, n1 = self._split(members)
        return GroupSums(
            sum1=sums_over(members & (self.protected == 1), values),
            sum0=sums_over(members & (self.protected == 0), values),
            n1=n1,
            n0=n0,
        )

    def _strata(self, metric: str) -> Iterator[NDArray[np.bool_]]:
        for label in find_metric(metric).strata:
            yield np.ones(self.labels.shape, np.bool_) if label is None else self.labels == label

    def _split(self, members: NDArray[np.bool_]) -> tuple[int, int]:
        groups = self.protected[members]
        advantaged = int(np.count_nonzero(groups))
        return len(groups) - advantaged, advantaged
