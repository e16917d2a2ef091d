"""Adaptive queries: one row after another, each chosen by means of the answers before."""

import numpy as np
from numpy.typing import NDArray

from developer.reveal.strategies.strategy import StrategyInputs


class OutOfQueries(Exception):
    """The query limit is reached."""


class OneByOne:
    """A sender of single rows, up to the strategy's number of queries."""

    def __init__(self, inputs: StrategyInputs) -> None:
        self._auditor, self._left = inputs.auditor, inputs.queries

    def ask(self, row: NDArray[np.float64]) -> float:
        """Return the gap of one row, (n,); raises `OutOfQueries` at the limit."""
        if self._left <= 0:
            raise OutOfQueries
        self._left -= 1
        return float(self._auditor.gaps(row[np.newaxis])[0])


def log_choose(n: NDArray[np.int64] | int, k: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the natural logarithm of the number of k-subsets of n people."""
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, np.max(n) + 1)))])
    logs: NDArray[np.float64] = log_factorial[n] - log_factorial[k] - log_factorial[n - k]
    return logs
