"""Mechanisms that tell more than their names promise, as functions of rows, attributes and draws.

Test subjects: `searched` is to find out what is wrong with each, and `best` does not know.
"""

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.metrics.sensitivity import global_sensitivity

EPSILON, STEP = 100.0, 0.02


def exact_gaps(rows: NDArray[np.float64], z: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the gaps, (m,), of rows (m, n) if those of z, (n,), are disadvantaged."""
    gaps: NDArray[np.float64] = rows[:, ~z].mean(axis=1) - rows[:, z].mean(axis=1)
    return gaps


def repeats_for_nothing(
    rows: NDArray[np.float64], z: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Broken: Laplace noise for as many queries as are different, and fresh noise on each repeat."""
    scale = global_sensitivity("sp", z.size) * len(np.unique(rows, axis=0)) / EPSILON
    return exact_gaps(rows, z) + rng.laplace(0.0, scale, len(rows))


def rounds_by_who_is_in(
    rows: NDArray[np.float64], z: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Broken: two decimals, rounded down from a place within a step that depends on who is disadvantaged."""
    del rng
    place = (np.flatnonzero(z).sum() % 7) / 7
    rounded: NDArray[np.float64] = (np.floor(exact_gaps(rows, z) / STEP + place) - place) * STEP
    return rounded
