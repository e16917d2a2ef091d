"""What each fairness metric is: whom it looks at and whether its sign is kept.

h is a prediction in [0, 1], y the public label, a = 1 the advantaged and a = 0 the disadvantaged group.
Every gap is advantaged minus disadvantaged.

===========  ===============================================  ==========================================
key          definition                                       Fairlearn (0/1 predictions, two groups)
===========  ===============================================  ==========================================
``sp``       mean of h over a=1, minus mean of h over a=0     none with a sign
``abs_sp``   absolute value of ``sp``                         ``demographic_parity_difference``
``eo``       as ``sp``, among the people with y = 1           none with a sign
``abs_eo``   absolute value of ``eo``                         ``equal_opportunity_difference``
===========  ===============================================  ==========================================

Source: Hamman, Chen, Dutta, FAccT 2023, definitions 2.1 and 2.2.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Metric:
    """A group fairness metric, as far as it is public.

    Parameters
    ----------
    name
        The key in `METRICS`, in scenario files and in reports.
    absolute
        Whether the gap loses its sign. This changes the sensitivity.
    label
        The label that puts a person into the metric's stratum; None for everybody.
    """

    name: str
    absolute: bool
    label: int | None


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("sp", absolute=False, label=None),
        Metric("abs_sp", absolute=True, label=None),
        Metric("eo", absolute=False, label=1),
        Metric("abs_eo", absolute=True, label=1),
    )
}


def find_metric(metric: str) -> Metric:
    """Return the metric with this key.

    Raises
    ------
    ValueError
        For a key that is not in `METRICS`.
    """
    if metric not in METRICS:
        raise ValueError(f"unknown metric {metric!r}, choose one of: {', '.join(METRICS)}")
    return METRICS[metric]


def stratum(metric: str, labels: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return whom a metric looks at.

    Parameters
    ----------
    metric
        A key of `METRICS`.
    labels
        The public labels, shape (n,), each 0 or 1.

    Returns
    -------
    NDArray[np.bool_]
        Shape (n,), True for the members of the stratum.

    Raises
    ------
    ValueError
        For an unknown metric.
    """
    label = find_metric(metric).label
    return np.ones(labels.shape, dtype=np.bool_) if label is None else labels == label


def sums_over(members: NDArray[np.bool_], predictions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add up each model's predictions over some people, in the one order that the protocol fixes.

    The order is numpy's pairwise sum over a model's members in their own order, laid out contiguously. The layout
    matters: ``predictions[:, members]`` comes out of numpy column by column, and adding that up along the rows gives
    other last bits. BLAS products differ by CPU and are not used.

    Parameters
    ----------
    members
        Whom to add up, shape (n,).
    predictions
        Shape (m, n), m models' predictions for n people, each in [0, 1].

    Returns
    -------
    NDArray[np.float64]
        Shape (m,).
    """
    rows = np.ascontiguousarray(np.compress(members, predictions, axis=1), dtype=np.float64)
    total: NDArray[np.float64] = np.add.reduce(rows, axis=1)
    return total
