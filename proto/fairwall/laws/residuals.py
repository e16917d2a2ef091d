r"""What cells cannot tell, measured: one weighted sum over the disadvantaged besides their counts.

Cells tell nothing of how z, who is disadvantaged, goes with X among the people of one cell, and a prior that expects
chance there is wrong by as much as a gap hides there: scores in three clusters, each a little higher for one group, are
cut into three cells that show no gap at all. What is left of X within cells, L, is small where models are near one
another, and mostly in one direction: of L L' the leading one, d. So w = d'L is a weight for each person, and w'z a sum
that a small part of epsilon measures well enough.

**Weights** are whole numbers of 1/`STEPS`, at most 1 either way, and add up to 0 in each cell, so that the sum tells
nothing that the counts tell. The largest are cut off to what an eighth of the people have, the crowd; where fewer have
half of the largest in the end, nothing is measured. So the sum gives away of nobody more than the count of a cell of so
many does. A flip moves the sum by 1 at most, and a part x of epsilon costs x epsilon.

**What a sum is worth.** z may go with w by a correlation of `CORRELATION`, and w'z is then B = CORRELATION
sqrt(SHARE (1-SHARE) n w'w), with `SHARE` of the people disadvantaged. By u = (X w / w'w) w'z that is an error of the
gaps, of which the prior knows nothing. It is taken to come on top of the error that is expected of cells at all of
epsilon. Where a part x is spent on the sum, noise on it comes on top instead, of an error 1/(1-x) times as large. The
least of these decides, and is what is expected when mechanisms are compared: what the prior does not foresee is
measured, or counts against cells. With a fifth more for B, batches of real scores have up to 1.5 times the error
(`benchmarks/batch_error.py`), and with a tenth less likely intervals miss a gap within three clusters of scores in a
quarter of draws (`benchmarks/shapes.py`).

**Answers** take from the prior nothing about w'z but that it is about as large as a part of B: z has g w besides, with
Var g = c^2 (B / w'w)^2, and what was measured decides among c (`fairwall.laws.posterior.LOOSE`).
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
"""How many steps there are from a weight of 0 to the largest: each stands in one byte."""

PARTS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
"""What part of epsilon a sum may take."""

CROWDS = 8
"""A crowd is this part of the people, or as many as a cell holds at least."""

CORRELATION = 0.22
"""Of who is disadvantaged with the leading direction, where it is chosen what to measure: a standard deviation."""

_LEAST = 1e-9
"""Less than this of what predictions differ by is rounding."""


@dataclass(frozen=True, eq=False)
class Residual:
    """A weighted sum that is measured.

    Parameters
    ----------
    weights : ndarray of int8
        w times `STEPS`, shape (n,).
    scale : of the noise on w'z: its cost is 1 / scale. `STEPS` times that is a float64 as well.
    error : what the noise adds to the error of a gap, a standard deviation.
    """

    weights: NDArray[np.int8]
    scale: float
    error: float


Blocks: TypeAlias = Callable[[], Iterable[tuple[slice, NDArray[np.float64]]]]
"""Gives some people at a time, by position, and their values, shape (m, b)."""


def leading(blocks: Blocks, cell_of: NDArray[np.intp], crowd: int) -> NDArray[np.int8] | None:
    """Return the weights of the leading direction of what cells leave, times `STEPS`.

    None where they leave nothing, or where somebody stands out.

    Parameters
    ----------
    blocks : all n people.
    cell_of : ndarray of intp
        Each person's cell, 0 .. cells - 1, shape (n,).
    crowd : how many people have half of the largest weight at least.
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
    # A direction has no sign, and another machine may find the other one.
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
    # What is missing for a sum of 0 in each cell goes to those who are farthest from their own weight.
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
    """Return how large an error of a gap may hide in cells, and what is measured besides; None where it does not pay.

    Parameters
    ----------
    values, cell_of, crowd : as for `leading`
    epsilon : of the whole purchase.
    error : what is expected of a gap from the cells, a standard deviation.
    stands_for : how many people each of these stands for.
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
    """Return B, how large w'z is taken to be: a standard deviation."""
    return CORRELATION * math.sqrt(SHARE * (1 - SHARE) * len(weights) * float(weights @ weights))
