"""What predictions add up to that who asks does not see: of models that are handed over, and of tables in an engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compliance.records.people import Records
from fairwall.laws.cube import Coordinates
from fairwall.laws.metric import Part, find_metric
from fairwall.laws.values import are_decisions

GRID = 2**24
"""A score is rounded to a multiple of 1 / GRID."""


@dataclass(frozen=True)
class StratumSums:
    """What a stratum's values add up to, all models of one part after those of the other, each shape (k,).

    Who asks sees no prediction, so that all is secret but how many `people` there are: their `totals`, how many of them
    are disadvantaged, `n0`, and the totals over those, `sum0`. So coordinates are the same whatever models predict.
    """

    label: int | None
    parts: tuple[int, ...]
    people: int
    n0: int = field(repr=False)
    totals: NDArray[np.float64] = field(repr=False)
    sum0: NDArray[np.float64] = field(repr=False)

    @property
    def by_sums(self) -> bool:
        """Whether coordinates follow from sums: as `fairwall.laws.batch.Stratum.by_sums`."""
        return True

    def coordinates(self, step: float) -> Coordinates:
        """Return the values as coordinates, as of `fairwall.laws.cube.coordinates`: each model has one, from 0 to 1.

        Nobody's score was rounded to whole steps before it was added up, and sums are instead. Of two sums that differ
        by less than 1/h - 1 steps what is rounded differs by 1/h at most: scores are moved by (1 + 2h) times less.
        """
        k = len(self.totals)
        half = np.full(k, 0.5)
        return Coordinates(half, half * (1 + 2 * step), np.arange(k), np.arange(k), np.ones(k), step)


@dataclass(frozen=True)
class TableSums:
    """What predictions that who asks does not see add up to; the first axis is the label, 0 or 1. All of it is secret.

    Parameters
    ----------
    people : ndarray of int64, shape (2,)
        How many have the label. Public.
    total : ndarray of float64, shape (2, models)
        Of predictions over all people of the label.
    n0 : ndarray of int64, shape (2,)
        How many of them are disadvantaged.
    sum0 : ndarray of float64, shape (2, models)
        The total over these.
    are_decisions : whether every prediction is 0 or 1.
    digest : of all ids and predictions, whatever the order of rows; empty of models that are handed over.
    """

    people: NDArray[np.int64]
    total: NDArray[np.float64] = field(repr=False)
    n0: NDArray[np.int64] = field(repr=False)
    sum0: NDArray[np.float64] = field(repr=False)
    are_decisions: bool
    digest: bytes = field(repr=False)

    @classmethod
    def of(cls, records: Records, scores: NDArray[Any]) -> TableSums:
        """Add up scores of everybody, shape (models, people), as an engine does."""
        decided = scores.dtype == np.bool_
        steps = scores if decided else np.rint(scores * GRID)
        people, total, n0, sum0 = records.sums_by_label(steps)
        of_one = 1.0 if decided else 1 / GRID
        return cls(people, total * of_one, n0, sum0 * of_one, decided or are_decisions(steps * of_one), b"")

    @property
    def models(self) -> int:
        """How many models there are."""
        return int(self.total.shape[1])

    def strata(self, metric: str) -> tuple[StratumSums, ...]:
        """Return what a metric's parts add up to in each of its strata, in their order."""
        found = find_metric(metric)
        of_parts = [self._of_part(part) for part in found.parts]
        strata = []
        for label in found.strata:
            parts = tuple(i for i, part in enumerate(found.parts) if part.label == label)
            people, n0 = (int(of.sum() if label is None else of[label]) for of in (self.people, self.n0))
            joined = (np.concatenate(each) for each in zip(*(of_parts[i] for i in parts), strict=True))
            strata.append(StratumSums(label, parts, people, n0, *joined))
        return tuple(strata)

    def _of_part(self, part: Part) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the total of a part's values and the disadvantaged's, shape (models,)."""
        totals = sums = np.zeros(self.models)
        for label in (0, 1) if part.label is None else (part.label,):
            total, sum0, n, n0 = self.total[label], self.sum0[label], self.people[label], self.n0[label]
            if label == 0 and part.value == "hit":
                continue
            if label == 0 and part.value == "correct":
                total, sum0 = n - total, n0 - sum0
            totals, sums = totals + total, sums + sum0
        return totals, sums
