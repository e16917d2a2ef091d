"""The residual of cells, measured: one weighted sum over the disadvantaged besides the cells' counts.

Cells tell nothing of how z, the disadvantaged, goes with X among the people of one cell, and a prior that expects
chance there is wrong by as much as a gap hides there: scores in three clusters, each a little higher for one group, are
cut into three cells that show no gap at all. The residual of X within cells, L, is small where models are near one
another, and mostly in one direction: of L L' the leading one, d. So w = d'L is a weight for each person, and w'z a sum
that a small part of epsilon measures well enough.

**Weights** are whole numbers of 1/`STEPS`, at most 1 either way, and add up to 0 in each cell, so that the sum repeats
nothing of the counts. The largest are cut off to the level that an eighth of the people have, the crowd; where fewer
have half of the largest in the end, nothing is measured. So the sum reveals of nobody more than the count of a cell of
as many people. A flip moves the sum by 1 at most, and a part x of epsilon costs x epsilon.

**The value of a sum.** z may go with w by a correlation of `CORRELATION`, and w'z is then B = CORRELATION
sqrt(SHARE (1-SHARE) n w'w), with `SHARE` of the people disadvantaged. By u = (X w / w'w) w'z that is an error of the
gaps, unknown to the prior. It is added to the error expected of cells at all of epsilon. Where a part x is spent on the
sum, the sum's noise is added instead, to an error 1/(1-x) times as large. The least of these decides, and is the
expected error when mechanisms are compared: what the prior does not foresee is measured, or counts against cells. With
a fifth more for B, batches of real scores have up to 1.5 times the error (`benchmarks/batch_error.py`), and with a
tenth less likely intervals miss a gap within three clusters of scores in a quarter of draws (`benchmarks/shapes.py`).

**Answers** take from the prior nothing about w'z but that it is about as large as a part of B: z gets g w, with
Var g = c^2 (B / w'w)^2, and the measurement decides among c (`fairwall.laws.posterior.LOOSE`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.cells import discrete_variance
from fairwall.laws.posterior import SHARE

STEPS = 127
"""Number of steps from a weight of 0 to the largest: each fits in one byte."""

PARTS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
"""Parts of epsilon that a sum may take."""

CROWDS = 8
"""A crowd is one part in this many of the people, or the least people of a cell."""

CORRELATION = 0.22
"""Assumed correlation, a standard deviation, of z with the leading direction, for the choice of what to measure."""

_LEAST = 1e-9
"""Residual, relative to the predictions' range, that counts as rounding."""


@dataclass(frozen=True, eq=False)
class Residual:
    """A weighted sum that is measured.

    Parameters
    ----------
    weights : w times `STEPS`, shape (n,).
    scale : of the noise on w'z: its cost is 1 / scale. `STEPS` times that is a float64 as well.
    error : the noise's contribution to the error of a gap, a standard deviation.
    """

    weights: NDArray[np.int8]
    scale: float
    error: float


Blocks: TypeAlias = Callable[[], Iterable[tuple[slice, NDArray[np.float64]]]]
"""Function that yields some people at a time, by position, and their values, shape (m, b)."""


def leading(blocks: Blocks, cell_of: NDArray[np.intp], crowd: int) -> NDArray[np.int8] | None:
    """Return the weights of the leading direction of the cells' residual, times `STEPS`.

    None where there is no residual, or where fewer than `crowd` people have half of the largest weight.

    `blocks`: all n people. `cell_of`: each person's cell, 0 .. cells - 1, shape (n,). `crowd`: the least people with
    half of the largest weight.
    """
    counted = np.bincount(cell_of).astype(np.float64)

    def means(rows: Blocks) -> NDArray[np.float64]:
        sums = [[np.bincount(cell_of[people], row, len(counted)) for row in values] for people, values in rows()]
        return np.asarray(np.sum(sums, axis=0) / np.maximum(counted, 1))

    of_cells, ends, products = means(blocks), list[float](), list[NDArray[np.float64]]()
    for people, values in blocks():
        left = values - of_cells[:, cell_of[people]]
        products.append(left @ left.T)
        ends += [float(values.min()), float(values.max())]
    direction = np.linalg.eigh(np.sum(products, axis=0))[1][:, -1]
    # The sign of a direction is arbitrary, and may differ between machines.
    direction = direction if direction.sum() >= 0 else -direction
    along = np.concatenate([direction @ (values - of_cells[:, cell_of[people]]) for people, values in blocks()])
    place = len(along) - min(crowd, len(along))
    if not (most := float(np.partition(np.abs(along), place)[place])) > _LEAST * max(1.0, max(ends) - min(ends)):
        return None
    along = np.clip(along, -most, most)
    (of_along,) = means(lambda: [(slice(None), along[np.newaxis])])
    along = along - of_along[cell_of]
    along *= STEPS / np.abs(along).max()
    steps = np.trunc(along + 2.0**-20 * np.sign(along))
    # The remainder to a sum of 0 in each cell goes to the people with the largest rounding errors.
    missing = -np.bincount(cell_of, steps, len(counted))
    for sign in (1, -1):
        off = np.where(np.abs(steps + sign) <= STEPS, sign * (along - steps), -np.inf)
        order = np.lexsort((-off, cell_of))
        place = np.arange(len(order)) - np.concatenate([[0], np.cumsum(counted)[:-1]])[cell_of[order]]
        steps[order[place < np.maximum(sign * missing, 0)[cell_of[order]]]] += sign
    return np.asarray(steps, np.int8) if np.count_nonzero(2 * np.abs(steps) >= STEPS) >= crowd else None


def besides_cells(
    values: NDArray[np.float64],
    cell_of: NDArray[np.intp],
    epsilon: float,
    error: float,
    crowd: int,
    stands_for: float = 1.0,
) -> tuple[float, Residual | None]:
    """Return the error of a gap that may hide in cells, and the sum to measure besides; None where none pays.

    `values`, `cell_of`, `crowd`: as for `leading`. `epsilon`: of the whole purchase. `error`: expected of a gap from
    the cells, a standard deviation. `stands_for`: how many people each of these stands for.
    """
    weights = leading(lambda: [(slice(None), values)], cell_of, crowd)
    looked_at = leading(lambda: [(slice(None), values)], cell_of, 1) if weights is None else weights
    if looked_at is None:
        return 0.0, None
    w = looked_at / STEPS
    effects = values @ w / float(w @ w)
    of_one = math.sqrt(float((effects**2).mean())) / (SHARE * (1 - SHARE) * len(w) * stands_for)
    hides = of_one * expected(w) * stands_for
    least, found = math.hypot(error, hides), None
    for part in PARTS if weights is not None else ():
        scale = _short(1 / (part * epsilon))
        noise = of_one * math.sqrt(discrete_variance(STEPS * scale)) / STEPS
        if (both := math.hypot(error / (1 - part), noise)) < least:
            least, found = both, Residual(looked_at, scale, noise)
    return hides, found


def _short(scale: float) -> float:
    """Return a scale of 24 bits, so that `STEPS` times it is a float64 as well."""
    mantissa, exponent = math.frexp(scale)
    return math.ldexp(round(mantissa * 2**24), exponent - 24)


def expected(weights: NDArray[np.float64]) -> float:
    """Return B, the assumed size of w'z: a standard deviation."""
    return CORRELATION * math.sqrt(SHARE * (1 - SHARE) * len(weights) * float(weights @ weights))
