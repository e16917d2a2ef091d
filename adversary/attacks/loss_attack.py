"""The loss test: a released model's accuracy on each of the two groups.

The first and simplest test of distribution inference: a model is more often right about the group that its training
data held more of. The adversary needs only public rows of both groups and the model's answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairwall.arrays import Bytes, Floats


@dataclass(frozen=True)
class LossTestResult:
    """The accuracy on each group's rows, in [0, 1]; the difference is the accuracy gap."""

    accuracy_advantaged: float
    accuracy_disadvantaged: float


def loss_test(
    predict: Callable[[Floats], Floats], features: Floats, labels: Bytes, disadvantaged_rows: int
) -> LossTestResult:
    """Return a model's accuracies at the threshold 1/2 on a public sample of both groups, the disadvantaged first.

    `predict` is the black box: it maps features, (rows, d), to scores in [0, 1], (rows,).
    """
    if not 0 < disadvantaged_rows < len(labels):
        raise ValueError("the loss test needs rows of both groups")
    right = (predict(features) >= 0.5) == (labels == 1)
    return LossTestResult(
        accuracy_advantaged=float(np.mean(right[disadvantaged_rows:])),
        accuracy_disadvantaged=float(np.mean(right[:disadvantaged_rows])),
    )
