"""Fairness metrics as pure functions of group sums and counts; the attributes themselves never come here.

`METRICS`, `part_values` and `stratum` are public (`fairwall.laws.metric`); how the sums are taken is too
(`sums_over`), so that a developer can replay an exact answer bit for bit. A mechanism that adds its noise to sums and
counts gets every metric from them, with the same formulas.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.metric import METRICS, Metric, MetricError, find_metric, part_values, stratum, sums_over

__all__ = ["METRICS", "GroupSums", "Metric", "gaps", "part_values", "stratum", "sums_over"]


@dataclass(frozen=True, eq=False)
class GroupSums:
    """What a metric needs to know of one of its parts. Secret.

    Parameters
    ----------
    sum1, sum0
        Sums of each model's values over the stratum's advantaged and disadvantaged people, shape (m,), float64,
        taken with `sums_over`.
    n1, n0
        How many advantaged and disadvantaged people the stratum has; need not be whole where they are estimates.
    """

    sum1: NDArray[np.float64]
    sum0: NDArray[np.float64]
    n1: float
    n0: float


def gaps(metric: str, parts: Sequence[GroupSums]) -> NDArray[np.float64]:
    """Return what a metric says of each model.

    Parameters
    ----------
    metric
        A key of `METRICS`.
    parts
        Sums and counts for each of the metric's `parts`, in their order.

    Returns
    -------
    NDArray[np.float64]
        Shape (m,): in [-1, 1], or [0, 1] for an absolute metric, [0, 2] for ``eodds_sum``; for ``di`` at least 0,
        infinite or NaN where it divides by 0.

    Raises
    ------
    ValueError
        For an unknown metric, too few or too many parts, an empty group, or sums of unlike shapes. The text does not
        tell which group.
    """
    found = find_metric(metric)
    if len(parts) != len(found.parts):
        raise ValueError(f"metric {metric} has {len(found.parts)} parts, not {len(parts)}")
    for part in parts:
        if not (part.n1 > 0 and part.n0 > 0):
            raise ValueError("a group of the metric's stratum is empty")
        if part.sum1.ndim != 1 or not part.sum1.shape == part.sum0.shape == parts[0].sum1.shape:
            raise ValueError("the groups' sums must be vectors of one length")
    gap = _difference_of_means(*parts) if found.of_means else _FORMULAS[metric](*parts)
    return np.abs(gap) if found.absolute else gap


def equalized_odds_max(qualified: GroupSums, unqualified: GroupSums) -> NDArray[np.float64]:
    """Equalized odds, the larger of abs EO and abs FPR gap. Fairlearn: `equalized_odds_difference`."""
    return np.maximum(np.abs(_difference_of_means(qualified)), np.abs(_difference_of_means(unqualified)))


def equalized_odds_sum(qualified: GroupSums, unqualified: GroupSums) -> NDArray[np.float64]:
    """Equalized odds, abs EO plus abs FPR gap. Fairlearn: twice ``equalized_odds_difference(agg="mean")``."""
    return np.abs(_difference_of_means(qualified)) + np.abs(_difference_of_means(unqualified))


def predictive_parity(hits: GroupSums, positives: GroupSums) -> NDArray[np.float64]:
    """PPV gap: P(y=1 | h=1, a=1) - P(y=1 | h=1, a=0). Fairlearn: the group difference of a MetricFrame of precision.

    0 where a group has nobody with h = 1: refusing would tell something about that group. Fairlearn takes that group's
    precision for 0 instead, which doubles how far one person can move the gap.
    """
    defined = (positives.sum1 > 0) & (positives.sum0 > 0)
    precision1 = hits.sum1 / np.where(defined, positives.sum1, 1.0)
    precision0 = hits.sum0 / np.where(defined, positives.sum0, 1.0)
    return np.where(defined, precision1 - precision0, 0.0)


def disparate_impact(predictions: GroupSums) -> NDArray[np.float64]:
    """DI: P(h=1 | a=0) / P(h=1 | a=1). Fairlearn: `demographic_parity_ratio` is the smaller of it and its inverse."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return (predictions.sum0 / predictions.n0) / (predictions.sum1 / predictions.n1)


def _difference_of_means(part: GroupSums) -> NDArray[np.float64]:
    # Two divisions and then one subtraction, in float64: the protocol fixes the bits.
    return part.sum1 / part.n1 - part.sum0 / part.n0


_FORMULAS: dict[str, Callable[..., NDArray[np.float64]]] = {
    "eodds_max": equalized_odds_max,
    "eodds_sum": equalized_odds_sum,
    "ppv": predictive_parity,
    "di": disparate_impact,
}
"""The metrics that are no difference of means, by name."""

for _metric in METRICS.values():
    if not _metric.of_means and _metric.name not in _FORMULAS:
        raise MetricError(f"metric {_metric.name}: its formula is missing in _FORMULAS (compliance.records.metrics)")
