"""The account of a deal: what it may spend, and every answer it has bought.

A retry never buys a second noise sample: under one request id there is one answer, and it is stored before it is given.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.accountant import Budget
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2


@dataclass(frozen=True)
class Answers:
    """The answers to one batch: without noise, shape (models,), and as released."""

    exact: NDArray[np.float64]
    released: NDArray[np.float64]


@dataclass(frozen=True)
class Entry:
    """One batch that was charged and answered."""

    request_id: str
    digest: bytes
    metric: str
    answers: Answers
    charge: float
    remaining: float


class Account:
    """The account of one deal.

    Parameters
    ----------
    limit : float
        The privacy budget, in epsilon; may be infinite.
    """

    def __init__(self, limit: float) -> None:
        self._lock = threading.Lock()
        self._budget = Budget(limit)
        self._entries: dict[str, Entry] = {}

    @property
    def spent(self) -> float:
        """What has been charged, in epsilon."""
        return self._budget.spent

    @property
    def remaining(self) -> float:
        """What is left, in epsilon."""
        return self._budget.remaining

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every batch answered, in the order of the charges."""
        with self._lock:
            return tuple(self._entries.values())

    def settle(
        self, request_id: str, digest: bytes, metric: str, charge: float, answer: Callable[[], Answers]
    ) -> Entry:
        """Charge a batch and store its answer, or find the answer that this request has bought already.

        Parameters
        ----------
        request_id : str
        digest : bytes
            Of everything that was asked.
        metric : str
        charge : float
            In epsilon.
        answer : callable
            Computes the answers; called at most once a request id.

        Raises
        ------
        Refusal
            ``REQUEST_ID_REUSED`` if the id stands for another request, ``BUDGET_EXHAUSTED`` if the remainder does not
            cover the charge. Nothing is charged then.
        """
        with self._lock:
            known = self._entries.get(request_id)
            if known is not None:
                if known.digest != digest:
                    raise Refusal(error_pb2.REASON_REQUEST_ID_REUSED)
                return known
            if not self._budget.affords(charge):
                raise Refusal(error_pb2.REASON_BUDGET_EXHAUSTED)
            answers = answer()
            self._budget = self._budget.charge(charge)
            entry = Entry(request_id, digest, metric, answers, charge, self._budget.remaining)
            self._entries[request_id] = entry
            return entry
