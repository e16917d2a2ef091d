"""Noise on counts by group: exact samplers of the distributions in `fairwall.laws.groups` and `fairwall.laws.ball`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from compliance.noise.sampling import Noise
from fairwall.laws.ball import Ball, row_rate
from fairwall.laws.groups import noise_rate


def balanced_noise(noise: Noise, rate: float, rows: int, groups: int) -> NDArray[np.int64]:
    """Draw integer noise of shape (rows, groups) whose rows sum to 0, exactly by its distribution.

    All numbers of a row but the last are Laplace noise, and the last makes the sum 0; the row is kept with probability
    e^(-rate |last|), or drawn again. The number of repeats depends on the draws alone.

    `rate`: from `noise_rate`; infinite for no noise. `groups`: at least two.
    """
    drawn = np.zeros((rows, groups), np.int64)
    missing = np.arange(0 if math.isinf(rate) else rows)
    while len(missing):
        # Noise of scale 1 on a grid of the rate: its multiples, and so the exponents, are exact in float64.
        free = noise.laplace(np.zeros(len(missing) * (groups - 1)), 1.0, rate).reshape(len(missing), groups - 1)
        steps = np.rint(free / rate).astype(np.int64)
        last = -steps.sum(axis=1)
        kept = noise.bernoulli_exp(rate * np.abs(last))
        drawn[missing[kept]] = np.column_stack([steps, last])[kept]
        missing = missing[~kept]
    return drawn


def ball_noise(noise: Noise, ball: Ball, times: int = 1) -> NDArray[np.int64]:
    """Draw a ball's noise `times` times, shape (times, rows, groups).

    The number of repeated draws depends on the ball, which is public, and on the draws.
    """
    drawn = np.zeros((times, len(ball.reaches), ball.groups), np.int64)
    if math.isinf(ball.rate):
        return drawn
    limits = _sizes(noise, ball, times)[:, np.newaxis] * np.array(ball.reaches)
    for limit in np.unique(limits[limits > 0]).tolist():
        here = limits == limit
        drawn[here] = _rows(noise, limit, int(here.sum()), ball.groups)
    return drawn


def _sizes(noise: Noise, ball: Ball, times: int) -> NDArray[np.int64]:
    """Draw T, the size of the ball, `times` times."""
    drawn = np.full(times, -1)
    while (missing := np.flatnonzero(drawn < 0)).size:
        apart = noise.laplace(np.zeros(missing.size), ball.scale, 1.0)
        sizes = ball.middle + np.rint(apart).astype(np.int64)
        exponents = np.array([ball.exponent(size) for size in np.maximum(sizes, 0).tolist()])
        kept = noise.bernoulli_exp(exponents) & (sizes >= 0)
        drawn[missing[kept]] = sizes[kept]
    return drawn


def _rows(noise: Noise, limit: int, rows: int, groups: int) -> NDArray[np.int64]:
    """Draw rows that sum to 0 uniformly from all whose half l1 norm is at most `limit`."""
    rate = noise_rate(row_rate(limit, groups))
    drawn = np.zeros((rows, groups), np.int64)
    missing = np.arange(rows)
    while missing.size:
        tried = balanced_noise(noise, rate, missing.size, groups)
        beyond = np.abs(tried).sum(axis=1) // 2 - limit
        kept = noise.bernoulli_exp(2 * rate * np.maximum(-beyond, 0)) & (beyond <= 0)
        drawn[missing[kept]] = tried[kept]
        missing = missing[~kept]
    return drawn
