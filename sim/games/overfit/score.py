"""Scores of the overfit game: the gaps of a patched model, and a bound on the information in the answers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms import find_mechanism
from fairwall.laws.overfitting import entropy, told_by_counts, told_by_private
from fairwall.learning.sealed import sealed_decisions, votes
from sim.games.overfit.deal import OverfitDeal
from sim.games.overfit.outcome import OverfitOutcome
from sim.games.submissions import AuditRecord


def gap(decisions: NDArray[np.uint8], protected: NDArray[np.uint8]) -> float:
    """Return the advantaged's acceptance rate less the disadvantaged's; both groups must have rows."""
    return float(decisions[protected == 1].mean() - decisions[protected == 0].mean())


class Patched:
    """A trial's model with the first `count` patches of the developer."""

    def __init__(self, dealt: OverfitDeal, outcome: OverfitOutcome) -> None:
        self._pool, self._asked, self._patches = dealt.pool, dealt.asked.ravel(), outcome.patches
        self._votes: dict[bytes, NDArray[np.int64]] = {}
        self._key = outcome.key

    def decisions(self, rows: NDArray[np.intp], count: int) -> NDArray[np.uint8]:
        """Return the model's decisions on rows of the pool, given by number: (rows,)."""
        own = self._pool.decisions[rows]
        if self._patches.favours is None:
            patched = self._asked[list(self._patches.rows[:count])]
            return np.where(np.isin(self._pool.alike[rows], self._pool.alike[patched]), 1 - own, own)
        # The vote threshold that turns at most `count` of the audited rows.
        rejected = np.sort(self._voted(self._asked)[self._pool.decisions[self._asked] == 0])[::-1]
        above = rejected[count] if count < len(rejected) else -1
        return np.where(self._voted(rows) > above, 1, own).astype(np.uint8)

    def _voted(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        assert self._patches.favours is not None, "of sealed models"
        if (named := rows.tobytes()) not in self._votes:
            decided = sealed_decisions(self._key, self._pool.features[rows], len(self._patches.favours))
            self._votes[named] = votes(decided, self._patches.favours)
        return self._votes[named]


def shares(cells: NDArray[np.intp], protected: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of the pool's rows in each cell, and of disadvantaged rows among them: (cells,) each."""
    return np.bincount(cells), np.bincount(cells[protected == 0], minlength=int(cells.max()) + 1)


def told(dealt: OverfitDeal, audits: Iterable[AuditRecord], spent: float) -> float:
    """Return a bound, in nats, on the answers' information about A of the verdict's rows, given the developer's view.

    `spent` is the epsilon of all answers. Fresh rows of the verdict are in no answer: 0 nats.
    """
    batches = [(len(audit.exact), audit.epsilon) for audit in audits]
    if not batches or dealt.scenario.overfit.rows == "fresh":
        return 0.0
    sizes, few = shares(dealt.cells, dealt.pool.protected)
    seen = dealt.cells[dealt.audited]
    probable = few[seen] / sizes[seen]
    mechanism = dealt.scenario.compliance.mechanism
    bounds = [float(entropy(probable).sum())]
    if find_mechanism(mechanism).guarantee == "pure":
        bounds.append(told_by_private(probable, spent))
    if mechanism == "counts":
        bounds.append(told_by_counts(probable, batches))
    return min(bounds)
