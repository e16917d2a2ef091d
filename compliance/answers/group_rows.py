"""Rows of counts by group for all models, and their noise.

The number that each person adds to each row is public. The samplers are exact, of the distributions in
`fairwall.laws.groups.group_counts` and `fairwall.laws.noise.row_noise`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compliance.noise.sampling import Noise
from fairwall.arrays import Bools, Bytes, Floats, Ints
from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.laws.groups.group_counts import noise_rate, strata_of
from fairwall.laws.noise.row_noise import SCORE_REACH, Ball, row_rate


def questions(measures: Sequence[wire.Measure], labels: Bytes, predictions: Floats) -> tuple[Bools, Bools]:
    """Return (base, hits) for one model, shape (measures, people): who each measure reads, and who of these is a hit.

    No measure may be the mean score.
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
class RowPart:
    """People whom the same measures read, and the number that each of them adds to each row.

    `inside`: membership, shape (people,). `looked`: for each measure of each model, whether it reads these people.
    `steps`: for each row, each member's number, shape (people inside,): integers from -reach to reach. Row 0 counts
    people. `row`, `offset`, `slope`: for each measure of each model: its sum is offset * row 0 + slope * this row.
    """

    inside: Bools
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
        """Number of people in this part."""
        return len(self.steps[0])

    def add(self, values: Floats, *, looks: bool) -> None:
        """Add a measure of a model by its value for each person; `looks` if it reads this part."""
        row, offset, slope = (0, 0.0, 0.0) if not looks else self._told(values[self.inside])
        self.looked.append(looks)
        self.row.append(row)
        self.offset.append(offset)
        self.slope.append(slope)

    def _told(self, values: Floats) -> tuple[int, float, float]:
        least, most = float(values.min()), float(values.max())
        if least == most:
            return 0, least, 0.0
        middle, half = (least + most) / 2, (most - least) / 2
        # Two values count -1 and 1; more values are rounded before anything is summed.
        reach = 1 if ((values == least) | (values == most)).all() else SCORE_REACH
        told = np.rint((values - middle) / half * reach)
        # A row and its negative are the same row: the first nonzero person's sign decides.
        sign = float(np.sign(told[np.argmax(told != 0)]))
        steps: NDArray[np.int32] = (sign * told).astype(np.int32)
        place = self._places.setdefault(bytes([reach == 1]) + steps.tobytes(), len(self.steps))
        if place == len(self.steps):
            self.steps.append(steps)
            self.reaches.append(reach)
        return place, middle, sign * half / reach

    def counted(self, cell: NDArray[np.intp], groups: int) -> Ints:
        """Return each row's sums by group, shape (rows, groups): secret."""
        own = cell[self.inside]
        return np.array([np.bincount(own, row, groups) for row in self.steps], np.int64)


def parts_of(measures: Sequence[wire.Measure], labels: Bytes, predictions: Floats) -> list[RowPart]:
    """Split people by the measures that read them, and return each part with its rows; at least one measure."""
    parts: list[RowPart] = []
    for model in predictions:
        base, values = _values(measures, labels, model)
        if not parts:  # the people that a measure reads do not depend on the model
            answers, stratum = strata_of(base)
            parts = [RowPart(stratum == number) for number in range(len(answers))]
        for place in range(len(measures)):
            for part, answer in zip(parts, answers, strict=True):
                part.add(values[place], looks=bool(answer[place]))
    return parts


def _values(measures: Sequence[wire.Measure], labels: Bytes, predictions: Floats) -> tuple[Bools, Floats]:
    """Return who each measure reads, and its value for each person, shape (measures, people)."""
    counted = [each for each in measures if each != wire.MEASURE_MEAN_SCORE]
    base, values = np.ones((2, len(measures), len(labels)))
    at = [place for place, each in enumerate(measures) if each != wire.MEASURE_MEAN_SCORE]
    base[at], values[at] = questions(counted, labels, predictions)
    values[[place for place in range(len(measures)) if place not in at]] = predictions
    return base == 1, values


def balanced_noise(noise: Noise, rate: float, rows: int, groups: int) -> Ints:
    """Draw integer noise of shape (rows, groups) whose rows sum to 0, exactly by its distribution.

    All numbers of a row but the last are Laplace noise, and the last makes the sum 0; the row is kept with probability
    e^(-rate |last|), or drawn again. The number of repeats depends on the draws alone.

    `rate`: from `noise_rate`; infinite for no noise. `groups`: at least two.
    """
    drawn = np.zeros((rows, groups), np.int64)
    missing = np.arange(0 if math.isinf(rate) else rows)
    while len(missing):
        # Noise of scale 1 on a grid of the rate: its multiples, and so the exponents, are exact in float64.
        free = noise.laplace(np.zeros(len(missing) * (groups - 1)), 1.0, rate).reshape(len(missing), groups - 1)
        steps = np.rint(free / rate).astype(np.int64)
        last = -steps.sum(axis=1)
        kept = noise.bernoulli_exp(rate * np.abs(last))
        drawn[missing[kept]] = np.column_stack([steps, last])[kept]
        missing = missing[~kept]
    return drawn


def ball_noise(noise: Noise, ball: Ball, times: int = 1) -> Ints:
    """Draw a ball's noise `times` times, shape (times, rows, groups).

    The number of repeated draws depends on the ball, which is public, and on the draws.
    """
    drawn = np.zeros((times, len(ball.reaches), ball.groups), np.int64)
    if math.isinf(ball.rate):
        return drawn
    limits = _sizes(noise, ball, times)[:, np.newaxis] * np.array(ball.reaches)
    for limit in np.unique(limits[limits > 0]).tolist():
        here = limits == limit
        drawn[here] = _rows(noise, limit, int(here.sum()), ball.groups)
    return drawn


def _sizes(noise: Noise, ball: Ball, times: int) -> Ints:
    """Draw T, the size of the ball, `times` times."""
    drawn = np.full(times, -1)
    while (missing := np.flatnonzero(drawn < 0)).size:
        apart = noise.laplace(np.zeros(missing.size), ball.scale, 1.0)
        sizes = ball.middle + np.rint(apart).astype(np.int64)
        exponents = np.array([ball.exponent(size) for size in np.maximum(sizes, 0).tolist()])
        kept = noise.bernoulli_exp(exponents) & (sizes >= 0)
        drawn[missing[kept]] = sizes[kept]
    return drawn


def _rows(noise: Noise, limit: int, rows: int, groups: int) -> Ints:
    """Draw rows that sum to 0 uniformly from all whose half l1 norm is at most `limit`."""
    rate = noise_rate(row_rate(limit, groups))
    drawn = np.zeros((rows, groups), np.int64)
    missing = np.arange(rows)
    while missing.size:
        tried = balanced_noise(noise, rate, missing.size, groups)
        beyond = np.abs(tried).sum(axis=1) // 2 - limit
        kept = noise.bernoulli_exp(2 * rate * np.maximum(-beyond, 0)) & (beyond <= 0)
        drawn[missing[kept]] = tried[kept]
        missing = missing[~kept]
    return drawn
