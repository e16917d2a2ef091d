r"""The cube on a few sums that a whole batch shares: models that agree need not each have noise of their own.

**Release.** Any public numbers k_i in [-1, 1], one for each person, have a sum over the disadvantaged people that a
flip moves by at most 1. So r such sums and N0 cost epsilon together with noise from one cube (`fairwall.laws.cube`),
whose deviation grows with r, not with the number of models m. Which sums tell most of u = X z is public: X is.

**Which.** Of X, the models' values less their means, X X' = U diag(l) U', the leading components are W = U'X, one
number for each person and direction. As they are, divided by their largest size, they fill [-1, 1] badly: a Gaussian's
deviation is a third of it, and noise weighs three times as much. Cut off at a multiple w of their deviation,

    k = max(-1, min(1, W / (w deviation))),

they say nearly the same of z and lie farther from 0. Contenders are the first r components for several r and w, and
the models' own coordinates (`fairwall.laws.cube.coordinates`), which are best where there are few models or no
structure. As for cells, nobody looks at A: the least `fairwall.laws.posterior.predicted_error` is taken.

**Answers** are the posterior mean given these sums, `fairwall.laws.posterior`: what the sums leave open is taken to be
as chance and the models' common structure have it, which moves answers towards no gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.cube import CubeNoise, coordinates
from fairwall.laws.posterior import SHARE, centred_values, directions_of, predicted_error, structures, variances_told

RANKS = (1, 2, 3, 5, 8, 13, 21, 34)
"""How many components are tried."""

WIDTHS = (0.7, 1.5, math.inf)
"""Where they are cut off, in deviations; infinite for nowhere."""

COORDINATES_MAX = 64
"""Up to so many models their own coordinates contend: beyond, their noise hides everything."""


_LEAST_NOISE = 1e-9


@dataclass(frozen=True, eq=False)
class Measurement:
    """What is measured of a batch, and the error to expect of a gap. Public.

    That is what each person counts in each sum, in whole steps of the grid, shape (r, n): from -1/h to 1/h. The first
    sum is N0 where that is not known.
    """

    steps: NDArray[np.float64]
    error: float


def best_measurement(values: NDArray[np.float64], epsilon: float, step: float, *, size_known: bool) -> Measurement:
    """Choose the sums that promise the least error, of the values of everybody in a stratum, shape (m, n).

    Epsilon is above 0 and finite, and the grid's step, h, a power of two of at most 1.
    """
    m, n = values.shape
    centred = centred_values(values)
    squares, directions = directions_of(centred @ centred.T)
    size = np.full((0 if size_known else 1, n), 1 / step)
    best = Measurement(size, math.inf)
    if not len(squares):
        return best
    spread, priors = SHARE * (1 - SHARE), structures(squares, m, SHARE, n)
    for rows, ranks in _contenders(values, directions.T @ centred, step):
        steps = np.concatenate([size, rows])
        people = steps * step
        cross, gram = directions.T @ (centred @ people.T), people @ people.T
        for rank in ranks:
            sides = rank + len(size)
            noise = posterior_noise(CubeNoise(1 / epsilon, sides), n)
            covariance = spread * gram[:sides, :sides] + noise * np.eye(sides)
            variances = variances_told(squares, _told(cross[:, :sides], covariance), priors)
            error = predicted_error([variance / m for variance in variances], 0.0 if size_known else noise, n)
            if error < best.error:
                best = Measurement(steps[:sides], error)
    return best


def posterior_noise(law: CubeNoise, people: int) -> float:
    """Return the variance that a posterior takes noise on a sum to have: never so little that digits are lost."""
    return max(law.variance(), _LEAST_NOISE * people)


def _contenders(
    values: NDArray[np.float64], components: NDArray[np.float64], step: float
) -> Iterator[tuple[NDArray[np.float64], list[int]]]:
    """Yield rows in whole steps, and how many of the first of them contend."""
    own = coordinates(values, step).steps
    if 0 < len(own) <= COORDINATES_MAX:
        yield own, [len(own)]
    leading = components[: RANKS[-1]]
    ranks = [rank for rank in RANKS if rank <= len(leading)]
    for width in WIDTHS if ranks else ():
        if math.isinf(width):
            least, most = leading.min(axis=1, keepdims=True), leading.max(axis=1, keepdims=True)
            rows = (leading - (least + most) / 2) / ((most - least) / 2)
        else:
            rows = leading / (width * leading.std(axis=1, keepdims=True))
        yield np.clip(np.rint(rows / step), -1 / step, 1 / step), ranks


def _told(cross: NDArray[np.float64], covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return C times the inverse of the root of D, shape (directions, sums)."""
    from scipy.linalg import solve_triangular  # loading it takes a while

    told: NDArray[np.float64] = solve_triangular(np.linalg.cholesky(covariance), cross.T, lower=True).T
    return told
