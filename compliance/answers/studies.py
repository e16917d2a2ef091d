"""A study whose table compliance releases: noisy counts of answers by cell, or the records without names."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compliance.answers.charging import game_ledger
from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Loss, Neighbours
from compliance.ledger.entries import LedgerEntry, Reply, Request
from compliance.noise.sampling import noise_for
from fairwall.arrays import Bytes, Floats
from fairwall.laws.privacy.amounts import least_scale


@dataclass(frozen=True, eq=False)
class Study:
    """The people of a study, and the ledger that pays for releases.

    A count of the people in a cell who answered yes moves by at most 1 if one person joins, leaves or answers
    otherwise, and no other count moves: each gets two-sided geometric noise of scale 1/epsilon, and all of them
    together are epsilon-private. Exact records have no such promise, and cost infinitely much.

    Parameters
    ----------
    dataset : the people's name in the ledger.
    cells : shape (people,), from 0 to ``width`` less 1.
    answers : shape (people,); 1 is yes.
    width : number of cells.
    records : whether the records are released, in their order, rather than counts.
    ledger : holds a budget for the data set, and the developer's share of it.
    seed : of the noise; None draws it from the operating system.
    """

    dataset: str
    cells: NDArray[np.intp] = field(repr=False)
    answers: Bytes = field(repr=False)
    width: int
    records: bool
    ledger: Ledger = field(repr=False)
    seed: bytes | None = field(repr=False)

    @property
    def spent(self) -> float:
        """Epsilon spent of the budget."""
        return self.ledger.standing(self.dataset).spent

    def answer(self, developer: str, request_id: str, digest: bytes, epsilon: float) -> LedgerEntry:
        """Charge a table and draw it, or return the stored one of the same request: it is never drawn twice.

        Refusal, LedgerError or LedgerUnavailable as `Ledger.settle`.
        """
        what = "records" if self.records else "geometric"
        request = Request(
            self.dataset, developer, request_id, digest, "table", what, Neighbours.RECORD, self.loss(epsilon)
        )
        return self.ledger.settle(request, lambda _: Reply(self.tabulated(request_id, epsilon).tobytes(), b""))

    def loss(self, epsilon: float) -> Loss:
        """Return the loss of a table bought for `epsilon`: infinite for records."""
        return Loss(math.inf if self.records else epsilon)

    def table(self, entry: LedgerEntry) -> Floats:
        """Return what was released: shape (cells,), or (people, 2) for records."""
        stored = np.frombuffer(entry.reply.answer, np.float64)
        return stored.reshape(-1, 2) if self.records else stored

    def tabulated(self, request_id: str, epsilon: float) -> Floats:
        """Draw a table: with a seed, a function of the seed and the request alone."""
        if self.records:
            return np.column_stack([self.cells, self.answers]).astype(np.float64)
        counts = np.bincount(self.cells[self.answers == 1], minlength=self.width).astype(np.float64)
        return noise_for(self.seed, request_id).laplace(counts, least_scale(epsilon), 1.0)


def game_study(
    dataset: str,
    cells: NDArray[np.intp],
    answers: Bytes,
    width: int,
    epsilon: float,
    seed: bytes | None,
    *,
    records: bool,
) -> Study:
    """Open a game's study with a budget of epsilon, in a ledger in memory."""
    ledger = game_ledger(dataset, Neighbours.RECORD, Budget(epsilon))
    return Study(dataset, cells, answers, width, records, ledger, seed)
