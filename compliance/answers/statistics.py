"""People who are trained on: compliance adds up what a developer sends of them by group, with noise, at a cost.

**Sensitivity.** An answer is, for both groups, the sum of their rows r, of norm 1 at most, and their sizes. If one
person's A flips, (r, 1) moves from one group to the other: the answer moves by sqrt(2) |(r, 1)| <= 2. If one record is
added or removed, it moves by |(r, 1)| <= sqrt(2).

**Composition.** Every telling is Gaussian noise on a vector, with a multiplier of its own. They compose exactly
(`Rule.TIGHT`), however what is asked depends on what was told before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compliance.answers.charging import game_ledger
from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Law, Loss, Neighbours, Rule
from compliance.ledger.entries import Entry, Reply, Request
from compliance.noise.sampling import GAUSSIAN_FINENESS, ROUNDING_STEPS, noise_for, step_for
from fairwall.laws.gaussian import gaussian_epsilon

SENSITIVITY = 2.0
"""l2 sensitivity of an answer to one person's A, in the ledger's unit."""

_GRID = 1 + 2.0**-20
"""Far more noise than what the grid changes of a Gaussian law, see `fairwall.laws.gaussian`."""


@dataclass(frozen=True, eq=False)
class Cohort:
    """The protected attributes of the people who are trained on, and the ledger that pays for sums by group.

    Parameters
    ----------
    dataset : what the ledger calls them.
    protected : ndarray of uint8, shape (people,)
        1 is advantaged.
    ledger : has a budget for the data set, and the developer's share of it.
    delta : of that budget.
    seed : the seed of the noise; None draws it from the operating system.
    """

    dataset: str
    protected: NDArray[np.uint8] = field(repr=False)
    ledger: Ledger = field(repr=False)
    delta: float
    seed: bytes | None = field(repr=False)

    @property
    def spent(self) -> float:
        """What was spent of the budget, in epsilon."""
        return self.ledger.standing(self.dataset).spent

    def answer(
        self, developer: str, request_id: str, digest: bytes, rows: NDArray[np.float64], multiplier: float
    ) -> Entry:
        """Charge sums and make them, or find what this request has bought already: it is never drawn twice.

        Refusal, LedgerError or LedgerUnavailable as `Ledger.settle`.
        """
        request = Request(
            self.dataset,
            developer,
            request_id,
            digest,
            "sums",
            "gaussian",
            Neighbours.A_FLIP,
            self.loss(multiplier),
        )
        return self.ledger.settle(request, lambda _: Reply(self.summed(request_id, rows, multiplier).tobytes(), b""))

    def loss(self, multiplier: float) -> Loss:
        """Say what sums cost: Gaussian noise of so many sensitivities, in epsilon at the budget's delta."""
        return Loss(gaussian_epsilon(multiplier, self.delta), self.delta, Law.GAUSSIAN, multiplier)

    def sums(self, entry: Entry) -> NDArray[np.float64]:
        """Read what was told: shape (2, width + 1)."""
        return np.frombuffer(entry.reply.answer, np.float64).reshape(2, -1)

    def exact(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up, without noise: shape (2, width + 1)."""
        # A column in one piece: numpy adds it up in pairs, and errs by far less than the grid's step (`step_for`).
        ones = np.column_stack([rows, np.ones(len(rows))])
        return np.stack([np.ascontiguousarray(ones[self.protected == group].T).sum(axis=1) for group in (0, 1)])

    def summed(self, request_id: str, rows: NDArray[np.float64], multiplier: float) -> NDArray[np.float64]:
        """Add up, and draw the noise: where there is a seed, a function of it and the request alone.

        Parameters
        ----------
        rows : ndarray, shape (people, width)
            Each of norm 1 at most.
        multiplier : the noise's standard deviation over `SENSITIVITY`, above 0.
        """
        exact = self.exact(rows)
        step = step_for(multiplier * SENSITIVITY, GAUSSIAN_FINENESS, float(max(len(rows), 1)))
        # Rounding moves each number of two neighbours' answers apart by so much more.
        sigma = multiplier * _GRID * (SENSITIVITY + ROUNDING_STEPS * step * math.sqrt(exact.size))
        noise = noise_for(self.seed, request_id)
        return noise.gaussian(exact.reshape(-1), sigma, step).reshape(exact.shape)


def game_cohort(dataset: str, protected: NDArray[np.uint8], epsilon: float, delta: float, seed: bytes | None) -> Cohort:
    """Open a game's cohort, of a budget of (epsilon, delta): its ledger is in memory."""
    ledger = game_ledger(dataset, Neighbours.A_FLIP, Budget(epsilon, delta, Rule.TIGHT))
    return Cohort(dataset, protected, ledger, delta, seed)
