r"""Sums that models have in common, by one cube, and what is left of each model, by another.

A cube's noise grows with the number of different models (`fairwall.laws.cube`), and hides models that are near one
another as well as any others. So what they have in common is released for itself, and once.

**Release.** Of a stratum's values v_j, public and in [0, 1], take r rows k_1 .. k_r with numbers in [-1, 1], one for
each person, and weights b, and let c_j and D_j be midrange and half-range of what they leave of v_j:

    v_j = c_j + sum over i of b_ji k_i + D_j s_j,    |s_j| <= 1.

Over the disadvantaged that adds up to c_j N0 + b_j K + D_j S_j. A flip moves N0 and each of the sums K and S_j by 1 at
most. So N0 and K cost (1-x) epsilon with noise from one cube, of r+1 sides, S costs x epsilon with noise from another,
of as many sides as there are different s, and nothing is left to a prior: every model's sum is released, with noise of
a known law. Where models agree D_j is small, and so is what m sides cost.

**Which.** With X = U diag(l) W' the models' values less their means, the leading components, W'X, each divided by the
half of its range, and b from U. Of r in `RANKS` the one with the least noise on sums is taken; 0 is a cube, and N0
apart.

**x.** With a and b the mean squares, over all models, of what a unit of either cube's noise adds, noise has a variance
of

    a / (1-x)^2 + b / x^2,    least at x / (1-x) = (b/a)^(1/3):    (a^(1/3) + b^(1/3))^3.

An error of N0 adds (mean v_j - c_j)^2 as much as one of v_j's own sum (`compliance.intervals.inversion`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.counts import share_of_size
from fairwall.laws.cube import Coordinates, CubeNoise, coordinates
from fairwall.laws.decimals import least_scale
from fairwall.laws.posterior import centred_values, directions_of

RANKS = (0, 1, 2, 3, 5, 8, 13, 21, 34)
"""How many common rows are tried."""

ROUNDED = 2.0**-44
"""By how much float64 may have a person's value wrong that is put together again."""

_LEAST_PART = 1e-6
"""What part of epsilon either kind of sums has at least; with N0, no less than a cube gives to that apart."""

_NOTHING = CubeNoise(0.0, 1)

_PATIENCE = 2
"""After so many numbers of rows that are no better, more are not tried."""


@dataclass(frozen=True, eq=False)
class Split:
    """What is measured of a stratum. Public.

    Parameters
    ----------
    common : ndarray of float64
        What each person counts in each common sum, in whole steps of the grid, shape (r, n): from -1/h to 1/h.
    weights : ndarray of float64
        b: what each model has of each, shape (k, r).
    own : of what is left, with c and D.
    own_steps : ndarray of float64
        What each person counts in each of these, shape (d, n).
    rounded : ndarray of float64
        How far a person's value, put together again, may be off, shape (k,).
    law, own_law : the noise on the common sums, and on N0 where that is released with them, and on the own sums; of
        scale 0 where there are none.
    """

    common: NDArray[np.float64]
    weights: NDArray[np.float64]
    own: Coordinates
    own_steps: NDArray[np.float64]
    rounded: NDArray[np.float64]
    law: CubeNoise
    own_law: CubeNoise


def best_split(values: NDArray[np.float64], epsilon: float, step: float, *, size_known: bool) -> Split:
    """Choose what to measure of the values of everybody in a stratum, shape (k, n).

    Epsilon is above 0 and finite, and the grid's step, h, a power of two of at most 1. N0 is released with the common
    sums unless it is known.
    """
    means, left = values.mean(axis=1), values.copy()
    centred = centred_values(values)
    squares, directions = directions_of(centred @ centred.T)
    # A model that repeats another, or mirrors it, has no noise of its own.
    first = np.unique(coordinates([values], step).place, return_index=True)[1]
    rows, weights = list[NDArray[np.float64]](), list[NDArray[np.float64]]()
    least, found, since = math.inf, (0, left.copy(), 1.0), 0
    for rank in range(min(RANKS[-1], len(squares)) + 1):
        if rank:
            row, of_models = _common(directions[:, rank - 1], centred, step)
            rows.append(row)
            weights.append(of_models)
            left -= np.outer(of_models, row * step)
        if rank in RANKS:
            error, part = _noise(left, means, weights, first, step, size_known=size_known)
            since += 1
            if error < least:
                least, found, since = error, (rank, left.copy(), part), 0
            if since > _PATIENCE:
                break
    rank, left, part = found
    kept = np.array(weights[:rank]).reshape(rank, len(values)).T
    # What the grid has rounded off the common rows is no sum of its own.
    halves = np.ptp(left, axis=1) / 2
    little = halves <= _rounding(kept, step)
    left[little] = ((left.min(axis=1) + left.max(axis=1)) / 2)[little, np.newaxis]
    own, sides = coordinates([left], step), rank + (not size_known)
    own_scale = math.inf
    if own.sides:
        own_scale = 1 / (part * epsilon) if sides else least_scale(epsilon)
    return Split(
        np.array(rows[:rank]).reshape(rank, values.shape[1]),
        kept,
        own,
        own.of(left),
        np.where(little, halves, halves * step / 2) + ROUNDED,
        CubeNoise(least_scale(epsilon, own_scale), sides) if sides else _NOTHING,
        CubeNoise(own_scale, own.sides) if own.sides else _NOTHING,
    )


def _common(
    direction: NDArray[np.float64], centred: NDArray[np.float64], step: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a component in whole steps that fill [-1, 1], and what each model has of it."""
    component = direction @ centred
    low, high = component.min(), component.max()
    half = (high - low) / 2
    row = np.clip(np.rint((component - (low + high) / 2) / half / step), -1 / step, 1 / step)
    return row, direction * half


def _rounding(weights: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Return how far a person may be off by common rows that are rounded, shape (k,)."""
    off: NDArray[np.float64] = np.abs(weights).sum(axis=1) * step / 2 + ROUNDED
    return off


def _noise(
    left: NDArray[np.float64],
    means: NDArray[np.float64],
    weights: list[NDArray[np.float64]],
    first: NDArray[np.intp],
    step: float,
    *,
    size_known: bool,
) -> tuple[float, float]:
    """Return the variance of the noise on a sum, for an epsilon of 1, and x."""
    low, high = left.min(axis=1), left.max(axis=1)
    halves = (high - low) / 2
    of_models = np.array(weights).reshape(len(weights), len(left)).T
    different = int(np.count_nonzero((halves > _rounding(of_models, step))[first]))
    sides, squares = len(weights) + (not size_known), np.square(of_models).sum(axis=1)
    if not size_known:
        squares = squares + (means - (low + high) / 2) ** 2
    common = float(squares.mean()) * CubeNoise(1.0, sides).variance() if sides else 0.0
    own = float(np.square(halves).mean()) * CubeNoise(1.0, different).variance() if different else 0.0
    if not different or not sides:
        return common + own, float(different > 0)
    # Later batches need N0 too, and intervals a good one.
    most = 1 - (_LEAST_PART if size_known else share_of_size(different))
    odds = (own / common) ** (1 / 3) if common else math.inf
    part = min(max(odds / (1 + odds) if math.isfinite(odds) else 1.0, _LEAST_PART), most)
    return common / (1 - part) ** 2 + own / part**2, part
