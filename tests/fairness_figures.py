"""The fairness figures of `fairwall.laws.group_rates`, under the names that the LDP paper's result files have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.group_rates import group_rates


def fairness_figures(
    decisions: NDArray[np.uint8], labels: NDArray[np.uint8], group: NDArray[np.uint8]
) -> dict[str, float]:
    """Measure all of them.

    Parameters
    ----------
    decisions, labels, group : ndarray of uint8, shape (n,), each 0 or 1

    Returns
    -------
    dict of str to float
        By name; NaN where a group has nobody to measure, ``DI`` infinite or NaN where it divides by 0.
    """
    figures: dict[str, float] = {}
    for name, metric in (("SP", "sp"), ("EO", "eo"), ("OA", "oad")):
        advantaged, disadvantaged = group_rates(metric, decisions, labels, group)
        figures |= {f"{name}_a_1": advantaged, f"{name}_a_0": disadvantaged, f"{name}D": advantaged - disadvantaged}
    with np.errstate(divide="ignore", invalid="ignore"):
        figures["DI"] = float(np.float64(figures["SP_a_0"]) / figures["SP_a_1"])
    return figures
