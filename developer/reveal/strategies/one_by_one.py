"""Adaptive queries: one row after another, each chosen by means of the answers before."""

import numpy as np

from developer.reveal.strategies.strategy import StrategyInputs
from fairwall.arrays import Floats, Ints


class OutOfQueries(Exception):
    """The query limit is reached."""


class OneByOne:
    """A sender of single rows, up to the strategy's number of queries."""

    def __init__(self, inputs: StrategyInputs) -> None:
        self._auditor, self._left = inputs.auditor, inputs.queries

    def ask(self, row: Floats) -> float:
        """Return the gap of one row, (n,); raises `OutOfQueries` at the limit."""
        if self._left <= 0:
            raise OutOfQueries
        self._left -= 1
        return float(self._auditor.gaps(row[np.newaxis])[0])


def log_choose(n: Ints | int, k: Ints) -> Floats:
    """Return the natural logarithm of the number of k-subsets of n people."""
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, np.max(n) + 1)))])
    logs: Floats = log_factorial[n] - log_factorial[k] - log_factorial[n - k]
    return logs
