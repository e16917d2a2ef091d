"""The models' common sums, by one cube, and each model's residual sum, by another.

A cube's noise grows with the number of different models (`fairwall.laws.noise.linf_ball`), however similar they are. So
the common part of similar models is released separately, and once.

**Release.** Of a stratum's values v_j, public and in [0, 1], take r rows k_1 .. k_r with numbers in [-1, 1], one for
each person, and weights b, and let c_j and D_j be midrange and half-range of the residual of v_j:

    v_j = c_j + sum over i of b_ji k_i + D_j s_j,    |s_j| <= 1.

Over the disadvantaged that adds up to c_j N0 + b_j K + D_j S_j. A flip moves N0 and each of the sums K and S_j by at
most 1. So N0 and K cost (1-x) epsilon with noise from one cube, of r+1 sides, S costs x epsilon with noise from
another, of as many sides as there are different s, and no prior is involved: every model's sum is released, with noise
of a known distribution. Where models agree D_j is small, and so is the noise of the second cube.

**Rows.** With X = U diag(l) W' the models' values less their means, the leading components, W'X, each divided by half
of its range, and b from U. Of r in `RANKS` the one with the least noise on sums is taken; 0 is a cube, with N0
separate.

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

from fairwall.arrays import Floats
from fairwall.laws.choice.posterior import centred_values, directions_of
from fairwall.laws.noise.count_noise import share_of_size
from fairwall.laws.noise.linf_ball import Coordinates, CubeNoise, coordinates
from fairwall.laws.privacy.amounts import least_scale

RANKS = (0, 1, 2, 3, 5, 8, 13, 21, 34)
"""Numbers of common rows that are tried."""

ROUNDED = 2.0**-44
"""Largest float64 error of a person's reassembled value."""

_LEAST_PART = 1e-6
"""Least part of epsilon for either cube; with N0, the first cube gets at least `share_of_size`."""

_NOTHING = CubeNoise(0.0, 1)

_PATIENCE = 2
"""Number of ranks without improvement after which the search stops."""


@dataclass(frozen=True, eq=False)
class LowRankSplit:
    """Common and residual sums of a stratum. Public.

    Parameters
    ----------
    common : each person's contribution to each common sum, in whole grid steps from -1/h to 1/h, shape (r, n).
    weights : b: each model's weight of each common sum, shape (k, r).
    own : coordinates of the residuals, with c and D.
    own_steps : each person's contribution to each residual sum, shape (d, n).
    rounded : the largest error of a person's reassembled value, shape (k,).
    law, own_law : the noise on the common sums (and on N0 if released with them) and on the residual sums; scale 0
        where there are none.
    """

    common: Floats
    weights: Floats
    own: Coordinates
    own_steps: Floats
    rounded: Floats
    law: CubeNoise
    own_law: CubeNoise


def best_split(values: Floats, epsilon: float, step: float, *, size_known: bool) -> LowRankSplit:
    """Return the best split of the values of everybody in a stratum, shape (k, n).

    Epsilon is above 0 and finite, and the grid's step, h, a power of two of at most 1. N0 is released with the common
    sums unless it is known.
    """
    means, left = values.mean(axis=1), values.copy()
    centred = centred_values(values)
    squares, directions = directions_of(centred @ centred.T)
    # A model that repeats or mirrors another shares its noise.
    first = np.unique(coordinates([values], step).place, return_index=True)[1]
    rows, weights = list[Floats](), list[Floats]()
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
    # The grid's rounding of the common rows needs no residual sum.
    halves = np.ptp(left, axis=1) / 2
    little = halves <= _rounding(kept, step)
    left[little] = ((left.min(axis=1) + left.max(axis=1)) / 2)[little, np.newaxis]
    own, sides = coordinates([left], step), rank + (not size_known)
    own_scale = math.inf
    if own.sides:
        own_scale = 1 / (part * epsilon) if sides else least_scale(epsilon)
    return LowRankSplit(
        np.array(rows[:rank]).reshape(rank, values.shape[1]),
        kept,
        own,
        own.of(left),
        np.where(little, halves, halves * step / 2) + ROUNDED,
        CubeNoise(least_scale(epsilon, own_scale), sides) if sides else _NOTHING,
        CubeNoise(own_scale, own.sides) if own.sides else _NOTHING,
    )


def _common(direction: Floats, centred: Floats, step: float) -> tuple[Floats, Floats]:
    """Return a component in whole steps that fill [-1, 1], and each model's weight of it."""
    component = direction @ centred
    low, high = component.min(), component.max()
    half = (high - low) / 2
    row = np.clip(np.rint((component - (low + high) / 2) / half / step), -1 / step, 1 / step)
    return row, direction * half


def _rounding(weights: Floats, step: float) -> Floats:
    """Return the largest error per person from rounded common rows, shape (k,)."""
    off: Floats = np.abs(weights).sum(axis=1) * step / 2 + ROUNDED
    return off


def _noise(
    residuals: Floats, means: Floats, weights: list[Floats], first: NDArray[np.intp], step: float, *, size_known: bool
) -> tuple[float, float]:
    """Return the variance of the noise on a sum, for an epsilon of 1, and x."""
    low, high = residuals.min(axis=1), residuals.max(axis=1)
    halves = (high - low) / 2
    of_models = np.array(weights).reshape(len(weights), len(residuals)).T
    different = int(np.count_nonzero((halves > _rounding(of_models, step))[first]))
    sides, squares = len(weights) + (not size_known), np.square(of_models).sum(axis=1)
    if not size_known:
        squares = squares + (means - (low + high) / 2) ** 2
    common = float(squares.mean()) * CubeNoise(1.0, sides).variance() if sides else 0.0
    own = float(np.square(halves).mean()) * CubeNoise(1.0, different).variance() if different else 0.0
    if not different or not sides:
        return common + own, float(different > 0)
    # Later batches need N0 too, and intervals an accurate one.
    most = 1 - (_LEAST_PART if size_known else share_of_size(different))
    odds = (own / common) ** (1 / 3) if common else math.inf
    part = min(max(odds / (1 + odds) if math.isfinite(odds) else 1.0, _LEAST_PART), most)
    return common / (1 - part) ** 2 + own / part**2, part
