"""An audit case: the records of one deal, the terms on which they are audited, and the account that pays."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compliance.ledger import Account, Answers
from compliance.mechanisms.mechanism import Mechanism
from compliance.metrics import gaps
from compliance.records import Records


@dataclass(frozen=True)
class Case:
    """An open audit case.

    Parameters
    ----------
    records : Records
    mechanism : Mechanism
    epsilon : float
        The whole budget; may be infinite.
    queries_max : int
        The largest number of models in one batch.
    seed : bytes or None
        The seed of the noise; None draws it from the operating system.
    """

    records: Records
    mechanism: Mechanism
    epsilon: float
    queries_max: int
    seed: bytes | None = field(repr=False)
    account: Account = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "account", Account(self.epsilon))

    def answer(self, request_id: str, metric: str, predictions: NDArray[np.float64], epsilon: float) -> Answers:
        """Compute a batch's answers.

        The noise of a seeded case is a pseudo-random function of the seed and the request id: it does not depend on the
        order in which requests happen to arrive.
        """
        n0, n1 = self.records.counts(metric)
        exact = gaps(metric, self.records.group_sums(metric, predictions))
        released = self.mechanism.release(exact, metric, n0, n1, epsilon, self._generator(request_id))
        return Answers(exact, released)

    def _generator(self, request_id: str) -> np.random.Generator:
        if self.seed is None:
            return np.random.default_rng()
        key = hmac.digest(self.seed, request_id.encode(), hashlib.sha256)
        return np.random.default_rng(int.from_bytes(key, "big"))
