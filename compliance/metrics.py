"""Fairness metrics as pure functions of group sums and counts; the attributes themselves never come here.

`METRICS` and `stratum` are public (`fairwall.laws.metric`); how the sums are taken is too (`sums_over`), so that a
developer can replay an exact answer bit for bit.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.metric import METRICS, Metric, find_metric, stratum, sums_over

__all__ = ["METRICS", "GroupSums", "Metric", "gaps", "stratum", "sums_over"]


@dataclass(frozen=True, eq=False)
class GroupSums:
    """What a metric needs to know of a stratum. Secret.

    Parameters
    ----------
    sum1, sum0
        Sums of each model's predictions over the stratum's advantaged and disadvantaged people, shape (m,), float64,
        taken with `sums_over`.
    n1, n0
        How many advantaged and disadvantaged people the stratum has.
    """

    sum1: NDArray[np.float64]
    sum0: NDArray[np.float64]
    n1: int
    n0: int


def gaps(metric: str, groups: GroupSums) -> NDArray[np.float64]:
    """Return the gap of each model: advantaged minus disadvantaged mean, or its absolute value.

    Two divisions and then one subtraction, in float64: the protocol fixes the bits.

    Parameters
    ----------
    metric
        A key of `METRICS`.
    groups
        Sums and counts of the metric's own stratum.

    Returns
    -------
    NDArray[np.float64]
        Shape (m,), in [-1, 1], or [0, 1] for an absolute metric.

    Raises
    ------
    ValueError
        For an unknown metric, an empty group, or sums of unlike shapes. The text does not tell which group.
    """
    absolute = find_metric(metric).absolute
    if not (groups.n1 >= 1 and groups.n0 >= 1):
        raise ValueError("a group of the metric's stratum is empty")
    if groups.sum1.ndim != 1 or groups.sum1.shape != groups.sum0.shape:
        raise ValueError("the two groups' sums must be vectors of one length")
    gap: NDArray[np.float64] = groups.sum1 / groups.n1 - groups.sum0 / groups.n0
    return np.abs(gap) if absolute else gap
