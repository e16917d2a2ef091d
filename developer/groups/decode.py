r"""Who is in which group, by noisy counts and the public shares of groups.

Let x_i be 1 where person i is in a group, of which a share p is, and 0 elsewhere. A stratum s of a table tells
y_s = sum_{i in s} x_i + z_s, with noise of variance r. Of all estimates that are linear in y, the posterior mean of
Gaussian x and z has the least mean squared error,

    p + v S' (v S S' + diag(r))^-1 (y - p S 1),   v = p (1 - p),

where row s of S has a 1 for each person of the stratum. Rows of which each person counts something tell likewise: S has
that. Groups are read one by one: that a person is in one of them
alone is left to the guess, which is the group whose estimate is largest beside its share. For known posteriors that
guess has the largest balanced accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairwall.compliance.v1.group_service_pb2 import GroupRelease
from fairwall.laws.ball import Ball
from fairwall.laws.groups import noise_variance
from fairwall.rpc.arrays import from_message

EXACT = 1e-6
"""The variance that counts without noise are given: strata of several tables add up to the same people."""


def decode(asked: Sequence[tuple[NDArray[np.float64], GroupRelease]], shares: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Guess who is in which group, (people,).

    Parameters
    ----------
    asked : decisions, shape (models, people), and the selection rates' tables that were released of them.
    shares : (groups,), the public ones.
    """
    return read(*told(asked), shares)


def read(
    strata: NDArray[np.float64],
    counts: NDArray[np.float64],
    variances: NDArray[np.float64],
    shares: NDArray[np.float64],
) -> NDArray[np.uint8]:
    """Guess from counts who is in which group, (people,), or (games, people) from those of several games.

    Parameters
    ----------
    strata : (rows, people), what people count in each row.
    counts : (rows, groups), or (games, rows, groups).
    variances : (rows,), of the counts' noise.
    shares : (groups,).
    """
    people, alike = strata.sum(axis=1), strata @ strata.T
    best = np.full((*counts.shape[:-2], strata.shape[1]), -np.inf)
    guess = np.zeros(best.shape, np.uint8)
    for group in np.flatnonzero(shares):
        share, spread = shares[group], shares[group] * (1 - shares[group])
        apart = np.linalg.solve(spread * alike + np.diag(variances), (counts[..., group] - share * people).T)
        score = (1 + spread / share * (strata.T @ apart)).T
        guess[score > best] = group
        best = np.maximum(best, score)
    return guess


def told(
    asked: Sequence[tuple[NDArray[np.float64], GroupRelease]],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Give what people count in each row, its counts, and the variance of their noise, as `read` takes them.

    Of a table that is a 1 for each person of a stratum.
    """
    parts = []
    for decisions, release in asked:
        for table in release.tables:
            hits, counts = from_message(table.hits), from_message(table.counts).astype(np.float64)
            own = decisions[list(table.models)]
            strata = (own[np.newaxis] == hits.T[:, :, np.newaxis]).all(axis=1).astype(np.float64)
            variance = max(noise_variance(table.rate, counts.shape[1]), EXACT)
            parts.append((strata, counts, np.full(len(counts), variance)))
        for part in release.rows:  # of selection rates: everybody is in one
            counts, steps = from_message(part.counts).astype(np.float64), np.ones((len(part.reach), decisions.shape[1]))
            for model, row in enumerate(part.row):
                if row:
                    steps[row] = np.rint((decisions[model] - part.offset[model]) / part.slope[model])
            ball = Ball(part.rate, counts.shape[1], tuple(part.reach))
            parts.append((steps, counts, np.array([max(ball.variance(reach), EXACT) for reach in part.reach])))
    strata, counts, variances = (np.concatenate(each) for each in zip(*parts, strict=True))
    return strata, counts, variances
