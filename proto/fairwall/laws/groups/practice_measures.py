"""By-group measures used in practice: balanced accuracy, odds ratios, standardised differences, calibration.

All of it is a function f of counts that were released with noise z of a known distribution, so it costs nothing.
The exact counts are the released ones less the noise, and none is below 0.

**Intervals of quotients** of two sums are Fieller's (`fairwall.laws.groups.group_tables.Share`), and exact: treatment
equality FN / FP is u / (1 - u) of the share u = FN / (FN + FP), and calibration is the share of positives in a band.

**Other intervals.** For any fixed set Z that holds the noise with 95%, the values f(released - z), z in Z, hold
the exact one with at least 95%: the exact one is that of the actual noise. Here Z is the ball in the l1 norm, over the
counts of the compared groups, that holds 95% of simulated noise, and f's ends in it are those among the simulated z.
That is proved but for the simulation, and wider than needed. So it is used where a count that f divides by is lost in
its noise, and else the middle 95% of f(released - z), z simulated: for a linear f they hold the exact value with just
95%, and for these f as often as is measured, groups of three people included
(`tests/unit/compliance/test_group_practice.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bools, Floats, Ints
from fairwall.laws.groups.group_counts import balanced
from fairwall.laws.groups.group_tables import NoisyRows, NoisyTable, Share, _joining, _quantile
from fairwall.laws.noise.quantiles import LEVEL

CLEAR = 1.0
"""Number of noise deviations below which a count is lost in its noise."""

_DRAWS = 4_000
_NUMBERS = 1 << 23
"""Most numbers simulated at once."""


@dataclass(frozen=True, eq=False)
class MeasureCounts:
    """Rows of counts by group that were released together, and their noise.

    `released`: shape (rows, groups). `noise`: simulated, of all rows jointly, shape (rows, draws, groups); one draw of
    zeros where there is none. `merged`: as of `Share`, shape (groups,).
    """

    released: Floats
    noise: Floats
    merged: Ints

    def joined(self, groups: NDArray[np.intp], count: int) -> MeasureCounts:
        """Join groups, as `fairwall.laws.groups.group_tables.merged_share` does."""
        into = _joining(groups, count)
        return MeasureCounts(self.released @ into, self.noise @ into, (self.merged @ into).astype(np.int64))

    def combined(self, weights: NDArray[np.floating[Any]]) -> MeasureCounts:
        """Return weighted sums of the rows; weights have the shape (sums, rows)."""
        return MeasureCounts(weights @ self.released, np.tensordot(weights, self.noise, 1), self.merged)

    def share(self, top: int, rest: int) -> Share:
        """Return one row over its sum with another, by their indices."""
        bottom, noise = self.released[top] + self.released[rest], self.noise[top] + self.noise[rest]
        total = float(bottom.sum())
        everybody = float(self.released[top].sum()) / total if total and self.noise.any() else math.nan
        return Share(self.released[top], bottom, self.noise[top], noise, everybody, self.merged)

    @property
    def estimate(self) -> Floats:
        """The counts, cut off at 0."""
        return np.maximum(self.released, 0.0)

    @property
    def draws(self) -> Floats:
        """Simulated exact counts, shape (rows, draws, groups)."""
        return np.maximum(self.released[:, np.newaxis] - self.noise, 0.0)


def counts_of_tables(tables: Sequence[tuple[NoisyTable, Floats]]) -> MeasureCounts:
    """Return weighted sums of each table's strata; the weights beside it have the shape (its rows, strata)."""
    groups = tables[0][0].counts.shape[1]
    noise = [
        np.tensordot(weights, _noise_of_strata(place, table.rate, *table.counts.shape), 1)
        for place, (table, weights) in enumerate(tables)
    ]
    released = np.concatenate([weights @ table.counts for table, weights in tables])
    least = min(each.shape[1] for each in noise)
    return MeasureCounts(released, np.concatenate([each[:, :least] for each in noise]), np.ones(groups, np.int64))


def counts_of_rows(parts: Sequence[NoisyRows], measures: Sequence[int]) -> MeasureCounts:
    """Return, for each measure in turn, the number of people it looks at and its sum, from all parts of the people."""
    each = list(measures)
    told = [_told(part, each, place) for place, part in enumerate(parts)]
    released, noise = (sum(pair[side] for pair in told) for side in (0, 1))
    return MeasureCounts(np.asarray(released), np.asarray(noise), np.ones(parts[0].counts.shape[1], np.int64))


def _told(part: NoisyRows, measures: list[int], place: int) -> tuple[Floats, Floats]:
    """Return one part's counts for `counts_of_rows`, and their noise, which measures of one row share."""
    rows = part.row[measures]
    distinct = np.unique(rows[rows > 0])
    reaches = [part.ball.reaches[row] for row in distinct]
    drawn = part.ball.simulated(np.random.default_rng(place), _DRAWS, *reaches).astype(np.float64)
    own = np.where(rows > 0, 1 + np.searchsorted(distinct, rows), 0)

    def of(people: Floats, counted: Floats) -> Floats:
        column = (-1, *(1,) * people.ndim)
        looked, offset, slope = (
            each[measures].astype(np.float64).reshape(column) for each in (part.looked, part.offset, part.slope)
        )
        both = np.stack([looked * people, looked * (offset * people + slope * counted)], axis=1)
        return both.reshape(-1, *people.shape)

    return of(part.counts[0], part.counts[rows]), of(drawn[0], drawn[own])


@lru_cache(maxsize=2)
def _noise_of_strata(place: int, rate: float, strata: int, groups: int) -> Floats:
    """Simulate the noise of each stratum of a table, shape (strata, draws, groups), the same each time."""
    draws = 1 if math.isinf(rate) else min(max(_NUMBERS // (strata * groups), 500), _DRAWS)
    noise = balanced(np.random.default_rng(place), rate, strata * draws, groups)
    return noise.reshape(strata, draws, groups).astype(np.float64)


@dataclass(frozen=True, eq=False)
class GroupEstimate:
    """A number for each group and the ends of its interval, all of shape (groups,).

    NaN is undefined, 0 over 0. The ends are then NaN too, unless the value is undefined because of noise only: then
    they span all possible values.
    """

    value: Floats
    low: Floats
    high: Floats


def balanced_accuracy(counts: MeasureCounts) -> GroupEstimate:
    """Return (TPR + 1 - FPR) / 2 of each group, in [0, 1] (Brodersen et al. 2010).

    The four rows of `counts`: people with the label 1, selected ones among them, and the same for the label 0.
    """

    def of(rows: Floats) -> Floats:
        positives, hits, negatives, alarms = rows
        return (np.minimum(_over(hits, positives), 1.0) + 1 - np.minimum(_over(alarms, negatives), 1.0)) / 2

    value = of(counts.estimate)
    clear = _clear(counts.released[[0, 2]], counts.noise[[0, 2]])
    return _clipped(_interval(value, of(counts.draws), np.abs(counts.noise).sum(axis=0), clear), 0.0, 1.0)


def treatment_equality(counts: MeasureCounts) -> GroupEstimate:
    """Return each group's false negatives over false positives (Berk et al. 2018); rows as of `balanced_accuracy`."""
    errors = counts.combined(np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]))
    low, high = errors.share(0, 1).interval()
    return GroupEstimate(_over(*errors.estimate), _over(low, 1 - low), _over(high, 1 - high))


def common_odds_ratio(counts: MeasureCounts, reference: int) -> GroupEstimate:
    """Return the odds ratio common to all segments, sum(a d / n) / sum(b c / n) (Mantel and Haenszel 1959).

    In each segment a and b are the group's hits and others, c and d those of the reference, and n is their sum. For one
    segment it is the sample odds ratio, a d / (b c).

    `counts`: rows are hits of each segment, and then others of each segment, in the same order. `reference`: the group
    that all are compared with, itself included, which has 1.
    """

    def of(rows: Floats) -> Floats:
        a, b = np.split(rows, 2)
        c, d = a[..., [reference]], b[..., [reference]]
        n = a + b + c + d
        return _over(np.nan_to_num(_over(a * d, n)).sum(axis=0), np.nan_to_num(_over(b * c, n)).sum(axis=0))

    clear = _clear(counts.released.sum(axis=0, keepdims=True), counts.noise.sum(axis=0, keepdims=True))
    norms = np.abs(counts.noise).sum(axis=0)
    both = norms + norms[:, [reference]]
    return _clipped(_interval(of(counts.estimate), of(counts.draws), both, clear & clear[reference]), 0.0, math.inf)


def ratios_however_filled(counts: MeasureCounts, may_be: Bools, compared: Bools) -> tuple[GroupEstimate, GroupEstimate]:
    """Return bounds on impact ratios over all assignments of people of unknown groups to known ones.

    With h hits and o others of a group, and h', o' of all others who may belong to it, its rate is from h / (h + o +
    o') to (h + h') / (h + h' + o). Its ratio is smallest where all possible members without a hit are counted in it,
    and all possible hits in the group that can have the largest rate. No person is needed for both, so this bound is
    attained. The largest ratio is over the largest of the others' least rates: attained where two groups are compared;
    beyond that only a bound, since one person lowers the rate of one group alone.

    The two estimates are in [0, 1]; NaN for groups that are not compared, where fewer than two are, and where nobody is
    a hit. The exact ratio of these people lies between the first's low end and the second's high end with 95%, noise
    included, for any assignment.

    `counts`: two rows: hits, and others. `may_be`: whether somebody counted in the row's group may belong to the
    column's, shape (groups, groups). `compared`: mask of the groups compared, shape (groups,).
    """
    elsewhere = (may_be & ~np.eye(len(may_be), dtype=np.bool_)).astype(np.float64)

    def of(rows: Floats, *, smallest: bool) -> Floats:
        (hits, others), (more_hits, more_others) = rows, rows @ elsewhere
        least = _over(hits, hits + others + more_others)
        most = _over(hits + more_hits, hits + more_hits + others)
        own, theirs = (least, most) if smallest else (most, least)
        among = np.where(compared, np.nan_to_num(theirs), -1.0)
        second, first = (np.sort(among, axis=-1)[..., [place]] for place in (-2, -1))
        largest = np.where(among == first, second, first)  # of the other groups
        return np.where(compared & (largest >= 0), np.minimum(_over(own, largest), 1.0), np.nan)

    if compared.sum() < 2:
        nothing = np.full(len(compared), np.nan)
        return GroupEstimate(nothing, nothing, nothing), GroupEstimate(nothing, nothing, nothing)
    people = counts.combined(np.ones((1, 2)))
    clear = np.broadcast_to(_clear(people.released, people.noise)[compared].all(), compared.shape)
    norms = np.broadcast_to(np.abs(counts.noise).sum(axis=(0, 2))[:, np.newaxis], counts.noise.shape[1:])
    least, most = (
        _interval(of(counts.estimate, smallest=smallest), of(counts.draws, smallest=smallest), norms, clear)
        for smallest in (True, False)
    )
    return _clipped(least, 0.0, 1.0), _clipped(most, 0.0, 1.0)


def standardised_difference(share: Share, reference: int, deviation: float) -> GroupEstimate:
    """Return each group's mean less that of the reference, over the deviation of all people's values.

    Fair lending takes the deviation of everybody, which is public here: the developer knows the predictions.

    `share`: means in [0, 1]. `deviation`: of everybody's values, on the same scale, above 0.
    """
    value, drawn = ((each - each[..., [reference]]) / deviation for each in (share.estimate, share.draws))
    norms = np.abs(share.top_noise) + np.abs(share.bottom_noise)
    clear = _clear(share.bottom[np.newaxis], share.bottom_noise[np.newaxis])
    found = _interval(value, drawn, norms + norms[:, [reference]], clear & clear[reference])
    return _clipped(found, -1 / deviation, 1 / deviation)


def _over(top: Floats, bottom: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(top / bottom)


def _clear(released: Floats, noise: Floats) -> Bools:
    """Return, for each group, whether all rows are well above their noise."""
    return np.asarray((released > CLEAR * noise.std(axis=1)).all(axis=0))


def _interval(value: Floats, drawn: Floats, norms: Floats, clear: Bools) -> GroupEstimate:
    """Return the middle of the draws, shape (draws, groups), where counts are clear; else their ends in the ball."""
    if len(drawn) == 1:
        return GroupEstimate(value, value, value)
    low, high = np.empty_like(value), np.empty_like(value)
    missed = (1 - LEVEL) / 2
    for group, own in enumerate(drawn.T):
        inside = own if clear[group] else own[norms[:, group] <= _quantile(norms[:, group], LEVEL)]
        ordered = np.sort(inside)
        skipped = math.floor((missed - 3 * math.sqrt(missed / len(own))) * len(own)) if clear[group] else 0
        unknown = int(np.isnan(inside).sum())  # they sort last, and may be anything
        low[group] = ordered[skipped - unknown] if skipped >= unknown else -math.inf
        high[group] = ordered[len(ordered) - 1 - skipped] if skipped >= unknown else math.inf
        if unknown == len(inside):
            low[group] = high[group] = math.nan
    return GroupEstimate(value, np.fmin(low, value), np.fmax(high, value))


def _clipped(estimate: GroupEstimate, least: float, most: float) -> GroupEstimate:
    return GroupEstimate(estimate.value, np.clip(estimate.low, least, most), np.clip(estimate.high, least, most))
