"""Statistics of practice by group beyond rates, each from models of one ordinary request of counts by group."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.client.by_group import ByGroup, told
from fairwall.client.predictions import PredictionBatch, in_order, is_missing, numbers, unfit
from fairwall.client.rows import common, labels_of
from fairwall.laws.groups.group_tables import UNDEFINED, compared
from fairwall.laws.groups.practice_measures import (
    GroupEstimate,
    MeasureCounts,
    common_odds_ratio,
    standardised_difference,
)

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: rows about people."""

_ALIKE = 1e-9
"""Values whose difference is a smaller share of the bounds' distance are equal, up to float64 rounding."""

Count = Callable[..., ByGroup]
"""The type of `AuditClient.count_by_group`."""


@dataclass(frozen=True)
class ByQuantile:
    """Selection rates by group at quantiles of a score.

    Parameters
    ----------
    counts : ByGroup
        The purchased counts: a model for each threshold.
    thresholds : tuple of float
        Scores at or above a threshold are selected; increasing.
    quantiles : tuple of float
        The share of the people below each threshold.
    """

    counts: ByGroup
    thresholds: tuple[float, ...] = field(repr=False)
    quantiles: tuple[float, ...]

    def records(self, over: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return a record for each threshold and group: `ByGroup.records`, with ``quantile`` and ``threshold``.

        ``selection_rate_ratio`` is the adverse impact ratio of the people at or above the quantile: the group's
        selection rate over the most favoured group's, in [0, 1] (29 CFR 1607.4(D)).
        """
        found = self.counts.records(over)
        return [
            {
                "quantile": self.quantiles[record["model"]],
                "threshold": self.thresholds[record["model"]],
                **{name: value for name, value in record.items() if name != "model"},
            }
            for record in found
        ]

    def calibration(self, over: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return a record for each band of scores and group: the share of people with the label 1, in [0, 1].

        A band is from a threshold, ``from``, up to the next one, ``below``. ``positives`` is positives / people of the
        band, with an interval, ``_low`` and ``_high``, as of `ByGroup.frame` (calibration within groups: Kleinberg,
        Mullainathan and Raghavan 2017). For a calibrated score it lies in the band, for each group. ValueError if the
        rates were bought without ``labels=True``.
        """
        bands, joined = len(self.thresholds) + 1, self.counts.joined(over)
        asked = [
            (measure, model)
            for measure in ("true_positive_rate", "false_positive_rate")
            for model in range(len(self.thresholds))
        ]
        # Rows are people and hits in turn: everybody with a label, and then those above each threshold.
        steps = np.zeros((bands, 2 * (bands - 1)))
        steps[0, 0] = 1
        steps[np.arange(1, bands), 2 * np.arange(bands - 1) + 1] = 1
        steps[:-1] -= steps[1:] * (np.arange(steps.shape[1]) % 2)
        both = self.counts.counts(asked, over).combined(np.kron(np.eye(2), steps))
        ends = [-math.inf, *self.thresholds, math.inf]
        records = []
        for band in range(bands):
            share = both.share(band, bands + band)
            columns = told("positives", GroupEstimate(share.estimate, *share.interval()))
            band_of = {"from": ends[band], "below": ends[band + 1]}
            records += [{**band_of, **record} for record in joined.records(columns)]
        return records


@dataclass(frozen=True)
class BySegment:
    """Selection rates by group within public segments, the control features of Fairlearn's `MetricFrame`.

    Parameters
    ----------
    counts : ByGroup
        The purchased counts: a model of the selected people of each segment, and then one of the others of each
        segment.
    segments : tuple of str
    """

    counts: ByGroup
    segments: tuple[str, ...]

    def records(self, over: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return a record for each segment and group: the selection rate there, and the groups' comparison.

        Columns are ``segment``, and those of selection rates as of `ByGroup.frame`.
        """
        joined, both = self.counts.joined(over), self._counts(over)
        records = []
        for place, segment in enumerate(self.segments):
            share = both.share(place, len(self.segments) + place)
            columns = told("selection_rate", GroupEstimate(share.estimate, *share.interval()))
            beside = compared(share, joined.compared)
            columns |= {f"selection_rate_{name}": column for name, column in vars(beside).items()}
            records += [{"segment": segment, **record} for record in joined.records(columns)]
        return records

    def common_odds_ratio(
        self, over: Sequence[str] | None = None, reference: str | Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return a record for each group, with the odds ratio of selection that is common to the segments.

        ``common_odds_ratio`` is sum(a d / n) / sum(b c / n) over segments, from 0 to infinity (Mantel and Haenszel
        1959), with ``_low`` and ``_high``; see `fairwall.laws.groups.practice_measures.common_odds_ratio`. The
        reference is as of `ByGroup.practice`.
        """
        joined, both = self.counts.joined(over), self._counts(over)
        sizes = both.combined(np.kron(np.eye(2), np.ones(len(self.segments))))
        place = joined.reference(sizes.share(0, 1).estimate, reference)
        return joined.records(
            {"compared": joined.compared}
            | joined.beside("common_odds_ratio", place, lambda other: common_odds_ratio(both, other))
        )

    def _counts(self, over: Sequence[str] | None) -> MeasureCounts:
        models = 2 * len(self.segments)
        found = self.counts.counts([("selection_rate", model) for model in range(models)], over)
        return found.combined(np.eye(2 * models)[1::2])


def by_quantile(
    count: Count, scores: Any, by: Any, epsilon: float, quantiles: int, options: Mapping[str, Any], *, labels: bool
) -> ByQuantile:
    """Buy counts at quantiles of a score; see `AuditClient.by_quantile`."""
    values = _one(scores, "scores")
    if quantiles < 2:
        raise ValueError(f"quantiles must be at least 2, not {quantiles}")
    ends = np.unique(np.quantile(values, np.arange(1, quantiles) / quantiles))
    thresholds = ends[ends > values.min()]
    if not len(thresholds):
        raise ValueError(
            "scores: so many are alike that no threshold parts the people: ask for more quantiles, or by other scores"
        )
    above = values >= thresholds[:, np.newaxis]
    measures = ("selection_rate", *(("true_positive_rate", "false_positive_rate") if labels else ()))
    bought = count(_labelled(above, labels_of(scores)), by, epsilon, measures=measures, **options)
    return ByQuantile(bought, tuple(thresholds.tolist()), tuple((1 - above.mean(axis=1)).tolist()))


def by_segment(
    count: Count, decisions: Any, segments: Any, by: Any, epsilon: float, options: Mapping[str, Any]
) -> BySegment:
    """Buy counts by segment; see `AuditClient.by_segment`."""
    segments = in_order(segments, "segments")
    values, column = _one(decisions, "decisions"), np.asarray(segments, dtype=object)
    if not np.isin(values, (0, 1)).all():
        raise ValueError("decisions must be 0 or 1; make them of scores, as by scores >= 0.5, or ask by_quantile")
    if column.shape != values.shape:
        raise ValueError(f"segments of shape {column.shape} are not one for each of {len(values)} decisions")
    labels = common({"decisions": decisions, "segments": segments})
    if lacking := sum(map(is_missing, column)):
        raise ValueError(f"segments: some people have none, {lacking:,}; make one for them, such as 'none'")
    names = np.array([str(value) for value in column])
    every = np.unique(names)
    inside = names == every[:, np.newaxis]
    models = np.concatenate([inside & (values == 1), inside & (values == 0)])
    bought = count(_labelled(models, labels), by, epsilon, measures=("selection_rate",), **options)
    return BySegment(bought, tuple(every.tolist()))


def standardised_differences(
    count: Count,
    values: Any,
    by: Any,
    epsilon: float,
    bounds: tuple[float, float] | None,
    reference: str | Sequence[str] | None,
    options: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Buy means and compare them; see `AuditClient.standardised_difference`."""
    low, high = bounds or (0.0, 1.0)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"bounds must be two numbers, the lower one first, not {bounds}")
    given = _one(values, "values")
    outside = int(((given < low) | (given > high)).sum())
    if outside and bounds is None:
        raise ValueError(
            f"values: {outside} of {len(given)} lie outside [0, 1], all from {given.min():g} to {given.max():g}: pass "
            "bounds=(least, most) that hold them, such as a policy's prices; those beyond are clipped, and counted"
        )
    scaled = (np.clip(given, low, high) - low) / (high - low)
    if np.ptp(scaled) < _ALIKE:
        clipped = f", {outside} of them clipped to the bounds {low:g} to {high:g}" if outside else ""
        raise ValueError(f"values: all {len(given)} are alike{clipped}; a difference over no deviation is {UNDEFINED}")
    deviation = float(scaled.std())
    bought = count(_labelled(scaled[np.newaxis], labels_of(values)), by, epsilon, measures=("mean_score",), **options)
    joined, share = bought.joined(None), bought.share("mean_score")
    means = told("mean", GroupEstimate(share.estimate, *share.interval()))
    place = joined.reference(share.estimate, reference)
    return joined.records(
        {name: low + (high - low) * mean for name, mean in means.items()}
        | {"clipped": np.full(len(joined.values), outside), "compared": joined.compared}
        | joined.beside(
            "standardised_difference", place, lambda other: standardised_difference(share, other, deviation)
        )
    )


def _one(given: Any, what: str) -> NDArray[Any]:
    """Return one number a person, shape (people,)."""
    values = numbers(given, what)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"{what}: must be of one model, and have the shape (people,), not {values.shape}")
    if missing := int(np.isnan(values.astype(np.float64)).sum()):
        raise unfit(what, f"{missing:,} of {len(values):,} are missing")
    return values


def _labelled(models: NDArray[Any], labels: Any) -> NDArray[Any] | PredictionBatch:
    """Return models with their people labelled as the Series behind the models are."""
    return models if labels is None else replace(PredictionBatch.of(models), labels=labels)
