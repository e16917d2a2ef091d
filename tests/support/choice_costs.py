"""What choices cost a data set and how likely each is, in closed form: the mechanisms that choose are held to it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.mechanisms.selection import SparseVectorNoise, permute_and_flip_exponents, sparse_vector, unsigned
from fairwall.laws.metrics.sensitivity import global_sensitivity, local_sensitivity


def sparse_vector_loss(law: SparseVectorNoise, change: float) -> float:
    """Return what a law costs neighbours between whom no gap moves by more than the change.

    The supremum over batches of any size, whatever the threshold; a batch of few models costs less.
    """
    if change == 0:
        return 0.0
    if law.positives is None or not (law.threshold_scale and law.query_scale):
        return math.inf
    return change / law.threshold_scale + 2 * law.positives * change / law.query_scale


def sparse_vector_gap_loss(metric: str, n0: int, n1: int, positives: int, epsilon: float) -> float:
    """Return what asking for a metric's absolute gaps costs a data set with these counts: at most epsilon.

    Parameters
    ----------
    metric
        A key of `fairwall.laws.metrics.metric.METRICS` with one stratum.
    n0, n1
        Disadvantaged and advantaged people in the stratum, each at least 1.
    positives, epsilon
        As for `sparse_vector`.
    """
    asked = unsigned(metric)
    law = sparse_vector(0.0, global_sensitivity(asked, n0 + n1), positives, epsilon)
    return sparse_vector_loss(law, local_sensitivity(asked, n0, n1))


def permute_and_flip_loss(change: float, sensitivity: float, queries: int, epsilon: float) -> float:
    """Return what a choice among so many models costs neighbours between whom no score moves by more than the change.

    Exact over all scores: one falls by the change, which all others rise by. A single model is always chosen.
    """
    if queries == 1 or change == 0:
        return 0.0
    return float(permute_and_flip_exponents(np.array([0.0, -2 * change]), sensitivity, epsilon)[1])


def permute_and_flip_gap_loss(metric: str, n0: int, n1: int, queries: int, epsilon: float) -> float:
    """Return what choosing by a metric's absolute gaps costs a data set with these counts: at most epsilon.

    Parameters
    ----------
    metric
        A key of `fairwall.laws.metrics.metric.METRICS` with one stratum.
    n0, n1
        Disadvantaged and advantaged people in the stratum, each at least 1.
    queries
        m, the models to choose from.
    epsilon
        Above 0.
    """
    asked = unsigned(metric)
    change, sensitivity = local_sensitivity(asked, n0, n1), global_sensitivity(asked, n0 + n1)
    return permute_and_flip_loss(change, sensitivity, queries, epsilon)


def permute_and_flip_probabilities(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each model's probability to be chosen, shape (m,): exact but for rounding."""
    accepts = np.exp(-exponents)
    # Exact for polynomials of degree 2 nodes - 1; the integrand's degree is m - 1.
    nodes, weights = np.polynomial.legendre.leggauss(accepts.size // 2 + 1)
    fails = 1 - np.outer(accepts, (nodes + 1) / 2)
    others = np.array([np.prod(np.delete(fails, i, axis=0), axis=0) for i in range(accepts.size)])
    probabilities: NDArray[np.float64] = accepts * np.sum(others * weights / 2, axis=1)
    return probabilities
