"""Fairness metrics as pure functions of group sums and counts; the attributes themselves never come here.

`METRICS`, `stratum` and formulas are public (`fairwall.laws.metrics.metric`), and so are the sums and their order
(`fairwall.laws.metrics.values`): a developer can replay an exact answer bit for bit. A mechanism that adds its noise to
sums and counts gets every metric from them, with the same formulas.
"""

from collections.abc import Sequence

from fairwall.arrays import Floats
from fairwall.laws.metrics.metric import METRICS, Metric, MetricSums, find_metric, stratum

__all__ = ["METRICS", "Metric", "MetricSums", "gaps", "stratum"]


def gaps(metric: str, parts: Sequence[MetricSums]) -> Floats:
    """Return the metric of each model, shape (m,).

    In [-1, 1], or [0, 1] for an absolute metric, [0, 2] for ``eodds_sum``; for ``di`` at least 0, infinite or NaN where
    it divides by 0. ValueError for an unknown metric, too few or too many parts, an empty group, or sums of different
    shapes. The text does not tell which group.

    `parts`: sums and counts for each of the metric's `parts`, in their order.
    """
    found = find_metric(metric)
    if len(parts) != len(found.parts):
        raise ValueError(f"metric {metric} has {len(found.parts)} parts, not {len(parts)}")
    for part in parts:
        if not (part.n1 > 0 and part.n0 > 0):
            raise ValueError("a group of the metric's stratum is empty")
        if part.sum1.ndim != 1 or not part.sum1.shape == part.sum0.shape == parts[0].sum1.shape:
            raise ValueError("the groups' sums must be vectors of one length")
    if found.formula is not None:
        return found.formula(*parts)
    return found.of_gaps([_difference_of_means(part) for part in parts])


def _difference_of_means(part: MetricSums) -> Floats:
    # Two divisions and then one subtraction, in float64: the protocol fixes the bits.
    return part.sum1 / part.n1 - part.sum0 / part.n0
