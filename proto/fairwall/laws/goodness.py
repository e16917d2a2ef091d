"""Test whether a sample looks like the population that it is shown for: five tests of goodness of fit.

The regulator has other people of the same table, as many as the sample has, and compares features, label and group.
Tests of one column each (Kolmogorov and Smirnov's) are corrected for the number of columns; those of all columns
together (Wasserstein's distance summed over columns, the maximum mean discrepancy with a Gaussian kernel of the median
distance, the energy distance) compare with permutations of both. Pearson's chi-squared test is of the four cells of
label and group, by which a sample is picked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.05
TESTS = ("ks", "chi2", "wasserstein", "mmd", "energy")

CORRECTED = LEVEL / len(TESTS)
"""P-value below which one test rejects a sample, so that all five reject at most 5% of honest samples."""

_PERMUTATIONS = 199


def p_values(sample: NDArray[np.float64], others: NDArray[np.float64], rng: np.random.Generator) -> dict[str, float]:
    """Return each test's p-value for two tables of shape (rows, columns); the last two columns are label and group."""
    from scipy.spatial.distance import pdist, squareform
    from scipy.stats import chi2_contingency, ks_2samp

    both = np.concatenate([sample, others])
    varied = both[:, both.std(axis=0) > 0]
    scaled = varied / varied.std(axis=0)
    columns = varied.shape[1]
    each = [ks_2samp(one[: len(sample)], one[len(sample) :], method="asymp").pvalue for one in varied.T]
    cells = (2 * both[:, -2] + both[:, -1]).astype(np.intp)
    table = np.array([np.bincount(part, minlength=4) for part in (cells[: len(sample)], cells[len(sample) :])])
    squares = squareform(pdist(scaled, "sqeuclidean"))
    inside = np.zeros((_PERMUTATIONS + 1, len(both)))
    inside[0, : len(sample)] = 1
    for row in inside[1:]:
        row[rng.permutation(len(both))[: len(sample)]] = 1
    signs = inside / len(sample) - (1 - inside) / len(others)

    def of_kernel(kernel: NDArray[np.float64]) -> float:
        return _permuted(np.einsum("ij,ij->i", signs @ kernel, signs))

    return {
        "ks": min(1.0, columns * float(min(each))),
        "chi2": float(chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue),
        "wasserstein": _permuted(np.sum([_wasserstein(signs, column) for column in scaled.T], axis=0)),
        "mmd": of_kernel(np.exp(-squares / np.median(squares))),
        "energy": of_kernel(-np.sqrt(squares)),
    }


def _wasserstein(signs: NDArray[np.float64], column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Wasserstein distance of a column for each split; for two values, the difference of means."""
    if len(np.unique(column)) == 2:
        return np.abs(signs @ column)
    order = np.argsort(column)
    return np.abs(np.cumsum(signs[:, order], axis=1)[:, :-1]) @ np.diff(column[order])


def _permuted(distances: NDArray[np.float64]) -> float:
    """Return the share of all distances that are at least the first."""
    return float((distances >= distances[0] - 1e-12).mean())
