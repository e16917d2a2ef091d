"""Basic composition: charges against one data set add up, and their sum stays within a limit.

Pure arithmetic; making a charge and its answer one durable transaction is the ledger's work. All charges of one
budget are in the same unit (pure epsilon under one neighbour relation).
"""

import math
from dataclasses import dataclass

# So that epsilon/(m+1) and m * epsilon/(m+1) fit into epsilon in spite of rounding. It is relative to the limit and
# granted once, not per charge: a thousand charges gain no more by it than one.
TOLERANCE = 1e-9


class BudgetExceededError(Exception):
    """A charge does not fit into what remains of the budget."""


@dataclass(frozen=True)
class Budget:
    """A privacy budget and what was charged to it.

    Parameters
    ----------
    limit
        The most that may be charged in all, at least 0; infinite for no limit.
    charges
        What was charged so far, in order, each above 0.

    Raises
    ------
    ValueError
        For a limit below 0, a charge not above 0, or NaN in either.
    BudgetExceededError
        For charges beyond the limit.
    """

    limit: float
    charges: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.limit >= 0:
            raise ValueError("a budget's limit must be at least 0")
        if not all(charge > 0 for charge in self.charges):
            raise ValueError("a charge must be above 0")
        if self.spent > self.limit * (1 + TOLERANCE):
            raise BudgetExceededError("the charge exceeds what remains of the privacy budget")

    @property
    def spent(self) -> float:
        """The sum of all charges, rounded once."""
        try:
            return math.fsum(self.charges)
        except OverflowError:
            return math.inf

    @property
    def remaining(self) -> float:
        """What can still be charged, at least 0; infinite where there is no limit, even after an infinite charge."""
        return math.inf if math.isinf(self.limit) else max(0.0, self.limit - self.spent)

    def charge(self, amount: float) -> "Budget":
        """Return the budget after one more charge.

        Parameters
        ----------
        amount
            Above 0; infinite only where there is no limit.

        Raises
        ------
        ValueError
            For a charge that is not above 0, or NaN.
        BudgetExceededError
            For a charge that does not fit. This budget is unchanged.
        """
        return Budget(self.limit, (*self.charges, amount))

    def affords(self, amount: float) -> bool:
        """Return whether `charge` would accept the amount. Raises ValueError for one not above 0, or NaN."""
        try:
            self.charge(amount)
        except BudgetExceededError:
            return False
        return True
