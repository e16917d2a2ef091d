"""The loss test: how often a released model is right about each of the two groups.

The first and simplest test of distribution inference: a model is more often right about the group that its training
data held more of. The adversary needs nothing but public rows of both groups and the model's answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class LossTest:
    """The share of right decisions on each group's rows, in [0, 1]. Their difference is the accuracy gap."""

    accuracy_advantaged: float
    accuracy_disadvantaged: float


def loss_test(
    predict: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    features: NDArray[np.float64],
    labels: NDArray[np.uint8],
    disadvantaged_rows: int,
) -> LossTest:
    """Ask the model about a public sample of each group, and count where it is right at the threshold 1/2.

    Parameters
    ----------
    predict : the black box: features, shape (rows, d), to scores in [0, 1], shape (rows,).
    features : ndarray, shape (rows, d)
    labels : ndarray of 0 or 1, shape (rows,)
    disadvantaged_rows : how many of the first rows are of the disadvantaged group; at least one row of each group.
    """
    if not 0 < disadvantaged_rows < len(labels):
        raise ValueError("the loss test needs rows of both groups")
    right = (predict(features) >= 0.5) == (labels == 1)
    return LossTest(
        accuracy_advantaged=float(np.mean(right[disadvantaged_rows:])),
        accuracy_disadvantaged=float(np.mean(right[:disadvantaged_rows])),
    )
