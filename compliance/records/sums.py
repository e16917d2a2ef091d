"""Sums of predictions that the developer does not see: of uploaded models, and of tables in an engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compliance.records.people import Records
from fairwall.arrays import Floats, Ints
from fairwall.laws.metrics.metric import MetricPart, find_metric
from fairwall.laws.metrics.values import are_decisions
from fairwall.laws.noise.linf_ball import Coordinates

GRID = 2**24
"""Steps per unit: a score is rounded to a multiple of 1 / GRID."""


@dataclass(frozen=True)
class StratumSums:
    """Sums of a stratum's values, all models of one part after those of the other, each shape (k,).

    The developer sees no prediction, so all is secret except the number of `people`: the `totals`, the number of
    disadvantaged, `n0`, and the totals over the disadvantaged, `sum0`. So coordinates are the same whatever models
    predict.
    """

    label: int | None
    parts: tuple[int, ...]
    people: int
    n0: int = field(repr=False)
    totals: Floats = field(repr=False)
    sum0: Floats = field(repr=False)

    @property
    def by_sums(self) -> bool:
        """Whether coordinates follow from sums, see `fairwall.laws.choice.public_batch.Stratum.by_sums`."""
        return True

    def coordinates(self, step: float) -> Coordinates:
        """Return the values as coordinates, see `laws.noise.linf_ball.coordinates`: one for each model, from 0 to 1.

        Scores were not rounded to whole steps before summing; sums are rounded instead. Of two sums that differ by less
        than 1/h - 1 steps the rounded ones differ by 1/h at most: scores are moved by (1 + 2h) times less.
        """
        k = len(self.totals)
        half = np.full(k, 0.5)
        return Coordinates(half, half * (1 + 2 * step), np.arange(k), np.arange(k), np.ones(k), step)


@dataclass(frozen=True)
class TableSums:
    """Sums of predictions that the developer does not see; the first axis is the label, 0 or 1. All of it is secret.

    Parameters
    ----------
    people : number of people with the label, shape (2,). Public.
    total : sums of predictions over all people of the label, shape (2, models).
    n0 : number of disadvantaged among them, shape (2,).
    sum0 : sums over the disadvantaged, shape (2, models).
    are_decisions : whether every prediction is 0 or 1.
    digest : of all ids and predictions, whatever the order of rows; empty for uploaded models.
    """

    people: Ints
    total: Floats = field(repr=False)
    n0: Ints = field(repr=False)
    sum0: Floats = field(repr=False)
    are_decisions: bool
    digest: bytes = field(repr=False)

    @classmethod
    def of(cls, records: Records, scores: NDArray[Any]) -> TableSums:
        """Return sums of everybody's scores, shape (models, people), as an engine computes them."""
        decided = scores.dtype == np.bool_
        steps = scores if decided else np.rint(scores * GRID)
        people, total, n0, sum0 = records.sums_by_label(steps)
        of_one = 1.0 if decided else 1 / GRID
        return cls(people, total * of_one, n0, sum0 * of_one, decided or are_decisions(steps * of_one), b"")

    @property
    def models(self) -> int:
        """Number of models."""
        return int(self.total.shape[1])

    def strata(self, metric: str) -> tuple[StratumSums, ...]:
        """Return the sums of a metric's parts in each of its strata, in their order."""
        found = find_metric(metric)
        of_parts = [self._of_part(part) for part in found.parts]
        strata = []
        for label in found.strata:
            parts = tuple(i for i, part in enumerate(found.parts) if part.label == label)
            people, n0 = (int(of.sum() if label is None else of[label]) for of in (self.people, self.n0))
            joined = (np.concatenate(each) for each in zip(*(of_parts[i] for i in parts), strict=True))
            strata.append(StratumSums(label, parts, people, n0, *joined))
        return tuple(strata)

    def _of_part(self, part: MetricPart) -> tuple[Floats, Floats]:
        """Return totals of a part's values over everybody and over the disadvantaged, shape (models,) each."""
        totals = sums = np.zeros(self.models)
        for label in (0, 1) if part.label is None else (part.label,):
            total, sum0, n, n0 = self.total[label], self.sum0[label], self.people[label], self.n0[label]
            if label == 0 and part.value == "hit":
                continue
            if label == 0 and part.value == "correct":
                total, sum0 = n - total, n0 - sum0
            totals, sums = totals + total, sums + sum0
        return totals, sums
