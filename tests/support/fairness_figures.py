"""Each group's rates under a model's decisions, and the fairness figures made of them, under [LD]'s names.

| figures                | definition                                         | key in ``METRICS`` |
|------------------------|----------------------------------------------------|--------------------|
| ``SP_a_1``, ``SP_a_0`` | share of decisions 1 in the group                  | ``sp``             |
| ``SPD``, ``DI``        | ``SP_a_1 - SP_a_0``, ``SP_a_0 / SP_a_1``           | ``sp``, ``di``     |
| ``EO_a_1``, ``EO_a_0`` | the same among the people with label 1             | ``eo``             |
| ``EOD``                | ``EO_a_1 - EO_a_0``                                | ``eo``             |
| ``OA_a_1``, ``OA_a_0`` | share of decisions in the group that are the label | ``oad``            |
| ``OAD``                | ``OA_a_1 - OA_a_0``                                | ``oad``            |

[LD]: Arcolezi, Makhlouf, Palamidessi, DBSec 2023, section 3.1; the names of the rates are those of its result files.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.metrics.values import part_values, sums_over


def group_rates(
    metric: str, decisions: NDArray[np.uint8], labels: NDArray[np.uint8], group: NDArray[np.uint8]
) -> tuple[float, float]:
    """Measure what a gap is the difference of.

    Parameters
    ----------
    metric : str
        A key of `fairwall.laws.metrics.metric.METRICS` with one part: ``sp``, ``eo``, ``fpr``, ``oad`` or ``di``.
    decisions, labels, group : ndarray of uint8, shape (n,), each 0 or 1
        1 in ``group`` is the advantaged one.

    Returns
    -------
    tuple of float
        Of the advantaged and of the disadvantaged, each in [0, 1]; NaN for a group of which nobody is in the metric's
        stratum.

    Raises
    ------
    ValueError
        For an unknown metric or one of two parts.
    """
    values = list(part_values(metric, decisions[None].astype(np.float64), labels))
    if len(values) != 1:
        raise ValueError(f"metric {metric} is no comparison of one rate a group")
    ((members, value),) = values
    rates = []
    for which in (1, 0):
        chosen = members & (group == which)
        many = np.count_nonzero(chosen)
        rates.append(float(sums_over(chosen, value)[0]) / many if many else float("nan"))
    return rates[0], rates[1]


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
