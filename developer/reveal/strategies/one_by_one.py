"""Asking one question after another, each chosen by what the answers before it leave possible."""

import numpy as np
from numpy.typing import NDArray

from developer.reveal.strategies.strategy import Hand


class OutOfQueries(Exception):
    """There is no answer left to ask for."""


class OneByOne:
    """Asks about single rows, as many as the hand's queries allow."""

    def __init__(self, hand: Hand) -> None:
        self._auditor, self._left = hand.auditor, hand.queries

    def ask(self, row: NDArray[np.float64]) -> float:
        """Ask about one row, (n,)."""
        if self._left <= 0:
            raise OutOfQueries
        self._left -= 1
        return float(self._auditor.gaps(row[np.newaxis])[0])


def log_choose(n: NDArray[np.int64] | int, k: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give the logarithm of how many sets of k people there are among n."""
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, np.max(n) + 1)))])
    logs: NDArray[np.float64] = log_factorial[n] - log_factorial[k] - log_factorial[n - k]
    return logs
