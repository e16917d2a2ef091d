"""Rows of counts by group, of all models together: what each person counts in them. All of it is public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.laws.ball import SCORE_REACH
from fairwall.laws.groups import strata_of


def questions(
    measures: Sequence[wire.Measure], labels: NDArray[np.uint8], predictions: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Say of one model who is looked at by each measure, and who of these is a hit.

    Parameters
    ----------
    measures : none of them the mean score.
    labels, predictions : ndarray, shape (people,)

    Returns
    -------
    base, hits : ndarray of bool, shape (measures, people)
    """
    everybody = np.ones(len(labels), np.bool_)
    positive, negative, chosen = labels == 1, labels == 0, predictions == 1
    of = {
        wire.MEASURE_SELECTION_RATE: (everybody, chosen),
        wire.MEASURE_TRUE_POSITIVE_RATE: (positive, positive & chosen),
        wire.MEASURE_FALSE_POSITIVE_RATE: (negative, negative & chosen),
        wire.MEASURE_ACCURACY: (positive | negative, (positive & chosen) | (negative & ~chosen)),
        wire.MEASURE_SCORING_RATE: (everybody, predictions > np.median(predictions)),
    }
    pairs = [of[measure] for measure in measures]
    shape = (len(pairs), len(labels))
    base, hits = (np.array([pair[side] for pair in pairs], np.bool_).reshape(shape) for side in (0, 1))
    return base, hits


@dataclass(eq=False)
class Part:
    """People whom the measures look at alike, and what each of them counts in each row.

    Parameters
    ----------
    inside : ndarray of bool, shape (people,)
        Who they are.
    looked : of each measure of each model, whether it looks at them.
    steps : list of ndarray, shape (people inside,)
        What each counts: whole numbers from -reach to reach. The first row counts people.
    reaches : of each row.
    row, offset, slope : list
        Of each measure of each model: what it adds up is the offset times the first row and the slope times this one.
    """

    inside: NDArray[np.bool_]
    looked: list[bool] = field(default_factory=list)
    steps: list[NDArray[np.int32]] = field(default_factory=list)
    reaches: list[int] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    offset: list[float] = field(default_factory=list)
    slope: list[float] = field(default_factory=list)
    _places: dict[bytes, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.steps.append(np.ones(np.count_nonzero(self.inside), np.int32))
        self.reaches.append(1)

    @property
    def people(self) -> int:
        """How many they are."""
        return len(self.steps[0])

    def add(self, values: NDArray[np.float64], *, looks: bool) -> None:
        """Add a measure of a model, by what it adds up of each person: of these it `looks` at all, or at nobody."""
        row, offset, slope = (0, 0.0, 0.0) if not looks else self._told(values[self.inside])
        self.looked.append(looks)
        self.row.append(row)
        self.offset.append(offset)
        self.slope.append(slope)

    def _told(self, values: NDArray[np.float64]) -> tuple[int, float, float]:
        least, most = float(values.min()), float(values.max())
        if least == most:
            return 0, least, 0.0
        middle, half = (least + most) / 2, (most - least) / 2
        # Of two values one counts -1 and the other 1; others are rounded before anything is added up.
        reach = 1 if ((values == least) | (values == most)).all() else SCORE_REACH
        told = np.rint((values - middle) / half * reach)
        # A mirror image is the same row; the first person who counts says which is which.
        sign = float(np.sign(told[np.argmax(told != 0)]))
        steps: NDArray[np.int32] = (sign * told).astype(np.int32)
        place = self._places.setdefault(bytes([reach == 1]) + steps.tobytes(), len(self.steps))
        if place == len(self.steps):
            self.steps.append(steps)
            self.reaches.append(reach)
        return place, middle, sign * half / reach

    def counted(self, cell: NDArray[np.intp], groups: int) -> NDArray[np.int64]:
        """Add up each row by group, shape (rows, groups): secret."""
        own = cell[self.inside]
        return np.array([np.bincount(own, row, groups) for row in self.steps], np.int64)


def parts_of(
    measures: Sequence[wire.Measure], labels: NDArray[np.uint8], predictions: NDArray[np.float64]
) -> list[Part]:
    """Part people by which measures look at them, and say what each counts.

    Parameters
    ----------
    measures : at least one.
    labels : ndarray of uint8, shape (people,)
    predictions : ndarray of float64, shape (models, people)
    """
    parts: list[Part] = []
    for model in predictions:
        base, values = _values(measures, labels, model)
        if not parts:  # whom a measure looks at, no model changes
            answers, stratum = strata_of(base)
            parts = [Part(stratum == number) for number in range(len(answers))]
        for place in range(len(measures)):
            for part, answer in zip(parts, answers, strict=True):
                part.add(values[place], looks=bool(answer[place]))
    return parts


def _values(
    measures: Sequence[wire.Measure], labels: NDArray[np.uint8], predictions: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Say whom each measure looks at, and what it adds up of each person, shape (measures, people)."""
    counted = [each for each in measures if each != wire.MEASURE_MEAN_SCORE]
    base, values = np.ones((2, len(measures), len(labels)))
    at = [place for place, each in enumerate(measures) if each != wire.MEASURE_MEAN_SCORE]
    base[at], values[at] = questions(counted, labels, predictions)
    values[[place for place in range(len(measures)) if place not in at]] = predictions
    return base == 1, values
