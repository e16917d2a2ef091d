r"""A sample of rows that pretends to represent all: honest, or picked so that its groups get label 1 about as often.

The picked sample follows the law nearest to the rows' own in Kullback-Leibler divergence, among all with a gap of the
groups' rates of at most ``passes``: the hardest to detect by a sample. By the chain rule the divergence is that of the
four cells of group and label, plus the mean over cells of that within each cell. The gap depends on cells alone, so the
second part is 0: within a cell rows are drawn at random (arXiv 2507.20708 projects so, too). Groups keep their shares
in the sample, and with the disadvantaged group's rate q0, the advantaged group's q1 and the rows' own p0 and p1, it
remains to minimise n0 KL(q0, p0) + n1 KL(q1, p1): over whole counts, by trying them all.

A cheat with the rows' features may draw several samples and keep the one nearest to all rows by the energy distance: an
honest sample is farther from them, and so tests of all columns together flag it more often.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from compliance.records.people import Records


def picked(records: Records, rows: int, passes: float | None, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the numbers, from 0, of `rows` rows drawn without replacement; empty for 0.

    ValueError if no such sample of these rows exists.

    `passes`: the largest gap in labels, advantaged less disadvantaged, that the sample may have; None draws it
    honestly.
    """
    if passes is None or rows == 0:
        return rng.choice(records.people, rows, replace=False).astype(np.float64)
    labels, protected = records.labels, records.protected
    members = [np.flatnonzero((protected == group) & (labels == label)) for group in (0, 1) for label in (0, 1)]
    counts = cells(np.array([len(one) for one in members]), rows, passes)
    drawn = [rng.choice(one, count, replace=False) for one, count in zip(members, counts.tolist(), strict=True)]
    return rng.permutation(np.concatenate(drawn)).astype(np.float64)


def nearest(draw: Callable[[], NDArray[np.float64]], rows: NDArray[np.float64], draws: int) -> NDArray[np.float64]:
    """Return, of `draws` samples, the one nearest to all rows by the energy distance.

    `draw`: draws a sample: the numbers of its rows. `rows`: known values of each row, shape (rows, columns); columns
    are scaled by their standard deviations. `draws`: at least 1.
    """
    from scipy.spatial.distance import cdist, pdist

    varied = rows[:, rows.std(axis=0) > 0]
    scaled = varied / varied.std(axis=0)
    # In parts: all distances at once may exceed memory.
    parts = np.array_split(scaled, 1 + len(rows) // 500)
    from_all = np.concatenate([cdist(part, scaled).mean(axis=1) for part in parts])

    def distance(sample: NDArray[np.float64]) -> float:
        chosen = sample.astype(np.intp)
        return float(2 * from_all[chosen].mean() - 2 * pdist(scaled[chosen]).sum() / len(chosen) ** 2)

    return min((draw() for _ in range(draws)), key=distance)


def cells(there: NDArray[np.int64], rows: int, passes: float) -> NDArray[np.int64]:
    """Return the number of rows of each cell in the nearest sample that passes.

    ``there`` has the numbers of all rows, shape (4,): disadvantaged with label 0 and 1, then advantaged. ValueError if
    no sample of this size passes.
    """
    (out0, in0), (out1, in1) = there.reshape(2, 2).tolist()
    n0 = round(rows * (out0 + in0) / there.sum())
    n1 = rows - n0
    x1 = np.arange(n1 + 1)
    # For each count of the advantaged the least count of the disadvantaged that passes; larger ones are farther away.
    least = np.ceil(n0 * (x1 / max(n1, 1) - passes) - 1e-9)
    x0 = np.maximum(least, round(n0 * in0 / max(out0 + in0, 1))).astype(np.int64)
    fits = (x0 <= min(n0, in0)) & (n0 - x0 <= out0) & (x1 <= in1) & (n1 - x1 <= out1)
    if not fits.any() or min(n0, n1) == 0:
        raise ValueError("no sample of so many rows passes")
    apart = _divergence(x0, n0, in0 / (out0 + in0)) + _divergence(x1, n1, in1 / (out1 + in1))
    best = int(np.argmin(np.where(fits, apart, np.inf)))
    return np.array([n0 - x0[best], x0[best], n1 - x1[best], x1[best]])


def _divergence(hits: NDArray[np.int64], of: int, rate: float) -> NDArray[np.float64]:
    """Return n KL(x/n, rate) for each number of hits."""
    from scipy.special import rel_entr

    return np.asarray(rel_entr(hits, of * rate) + rel_entr(of - hits, of * (1 - rate)))
