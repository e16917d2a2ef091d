r"""Guesses of who is in which group, from noisy counts and the groups' public shares.

Let x_i be 1 where person i is in a group of share p, and 0 elsewhere. A stratum s of a table gives y_s = sum_{i in s}
x_i + z_s, with noise of variance r. Of all estimates that are linear in y, the posterior mean of Gaussian x and z has
the least mean squared error,

    p + v S' (v S S' + diag(r))^-1 (y - p S 1),   v = p (1 - p),

where row s of S has a 1 for each person of the stratum. Where people have other weights in a row, S has these. Groups
are read one by one; only the guess uses that a person is in one group alone: it is the group whose estimate is largest
relative to its share. For known posteriors that guess has the largest balanced accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairwall.arrays import Bytes, Floats
from fairwall.compliance.v1.group_service_pb2 import GroupRelease
from fairwall.laws.groups.group_counts import noise_variance
from fairwall.laws.noise.row_noise import Ball
from fairwall.rpc.arrays import from_message

EXACT = 1e-6
"""Variance assumed for counts without noise: strata of several tables add up to the same people."""


def decode(releases: Sequence[tuple[Floats, GroupRelease]], shares: Floats) -> Bytes:
    """Return a guess of each person's group, (people,), from decisions, (models, people), and their released tables."""
    return read(*told(releases), shares)


def read(strata: Floats, counts: Floats, variances: Floats, shares: Floats) -> Bytes:
    """Return a guess of each person's group from counts, (people,), or (games, people) for several games.

    strata : (rows, people), each person's weight in each row.
    counts : (rows, groups), or (games, rows, groups), with the noise's variances, (rows,).
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


def told(releases: Sequence[tuple[Floats, GroupRelease]]) -> tuple[Floats, Floats, Floats]:
    """Return each row's weights of people (1 in a table's stratum), its counts, and their noise's variance."""
    parts = []
    for decisions, release in releases:
        for table in release.tables:
            hits, counts = from_message(table.hits), from_message(table.counts).astype(np.float64)
            own = decisions[list(table.models)]
            strata = (own[np.newaxis] == hits.T[:, :, np.newaxis]).all(axis=1).astype(np.float64)
            variance = max(noise_variance(table.rate, counts.shape[1]), EXACT)
            parts.append((strata, counts, np.full(len(counts), variance)))
        for part in release.rows:  # rows of selection rates count everybody
            counts, steps = from_message(part.counts).astype(np.float64), np.ones((len(part.reach), decisions.shape[1]))
            for model, row in enumerate(part.row):
                if row:
                    steps[row] = np.rint((decisions[model] - part.offset[model]) / part.slope[model])
            ball = Ball(part.rate, counts.shape[1], tuple(part.reach))
            parts.append((steps, counts, np.array([max(ball.variance(reach), EXACT) for reach in part.reach])))
    strata, counts, variances = (np.concatenate(each) for each in zip(*parts, strict=True))
    return strata, counts, variances
