"""What a strategy asks through: it reaches the people whom the metric looks at, spends the budget, and keeps count."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from developer.base_model import accuracy

Ask = Callable[[str, NDArray[np.float64], float], NDArray[np.float64]]
"""How a batch is asked: request id, predictions (models, people), and what to spend on it, to answers (models,)."""


class Purse:
    """Numbers a deal's requests, and shares its budget out among them.

    Evenly: each query, the size query too, may lose as much privacy as any other.

    Parameters
    ----------
    epsilon : float
        The budget of all queries together; may be infinite.
    mechanism : str
        What answers. Of randomised response the first batch buys what all later ones are answered from: it gets all.
    planned : int
        How many queries there will be, size queries included.
    """

    def __init__(self, epsilon: float, mechanism: str, planned: int) -> None:
        self._epsilon = epsilon
        self._at_once = mechanism == "randomized-response"
        self._planned = planned
        self._requests = 0
        self._asked = 0
        self._spent = 0.0

    def take(self, queries: int) -> tuple[str, float]:
        """Give the next request, of so many queries, its id, unique within the deal, and what it may spend."""
        self._requests += 1
        return f"request-{self._requests}", self._share(queries)

    def _share(self, queries: int) -> float:
        if self._at_once or math.isinf(self._epsilon):
            return self._epsilon
        self._asked += queries
        # The last batch takes what is left, so that the shares add up in spite of rounding.
        share = self._epsilon * queries / self._planned if self._asked < self._planned else self._epsilon - self._spent
        self._spent += share
        return share


class DealAuditor:
    """Asks the audit service about one deal, on behalf of a strategy.

    A strategy plays on the people of the metric's stratum alone.

    Parameters
    ----------
    ask : callable
    purse : Purse
    reached : ndarray of bool, shape (n,)
        The metric's stratum.
    labels : ndarray, shape (n,), or None
        None where the developer has none.
    base : callable
        The base model's scores on the test set, shape (n,); may wait for the model to be trained.
    """

    def __init__(
        self,
        ask: Ask,
        purse: Purse,
        reached: NDArray[np.bool_],
        labels: NDArray[np.uint8] | None,
        base: Callable[[], NDArray[np.float64]],
    ) -> None:
        self._send = ask
        self._purse = purse
        self._reached = reached
        self._labels = labels
        self._base = base
        self._accuracies: list[NDArray[np.float64]] = []
        self.size_queries = 0
        self.queries = 0
        self.max_prediction_change = 0.0

    @property
    def accuracy_models(self) -> NDArray[np.float64] | None:
        """Each queried model's accuracy on the test set, shape (queries,), in [0, 1]; None without labels."""
        return np.concatenate(self._accuracies) if self._labels is not None else None

    def size(self, row: NDArray[np.float64]) -> float:
        """Ask the size query, shape (people reached,); everybody else is rejected."""
        self.size_queries += 1
        return float(self._ask(self._everybody(row[np.newaxis], np.zeros(len(self._reached))))[0])

    def gaps(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Ask metric queries, shape (m, people reached); everybody else keeps the base model's score."""
        base = self._base()
        predictions = self._everybody(rows, base)
        self.queries += len(rows)
        self.max_prediction_change = max(self.max_prediction_change, float(np.abs(predictions - base).max()))
        if self._labels is not None:
            self._accuracies.append(accuracy(predictions, self._labels))
        return self._ask(predictions)

    def _everybody(self, rows: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._reached.all():
            return rows
        predictions = np.tile(others, (len(rows), 1))
        predictions[:, self._reached] = rows
        return predictions

    def _ask(self, predictions: NDArray[np.float64]) -> NDArray[np.float64]:
        request_id, epsilon = self._purse.take(len(predictions))
        # NaN is how a mechanism says that it gives no answer; no gap is the guess that says as little.
        return np.nan_to_num(self._send(request_id, predictions, epsilon))
