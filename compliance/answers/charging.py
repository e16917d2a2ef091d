"""What every account pays by: the ledger of a game, and how much a developer's answers may take of any."""

from __future__ import annotations

from collections.abc import Mapping

from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Neighbours
from compliance.ledger.entries import UNIT_EPSILON, Room

DEVELOPER = "developer"
"""What the one developer of a game is called in its ledger."""


def game_ledger(dataset: str, neighbours: Neighbours, budget: Budget) -> Ledger:
    """Open the ledger of a game's deal, in memory: all of its budget is the developer's."""
    ledger = Ledger()
    ledger.set_budget(dataset, neighbours, budget)
    ledger.allocate(dataset, DEVELOPER, budget.epsilon, budget.delta)
    return ledger


def room_of(developer: str, answers_a_day: Mapping[str, int], epsilon_min: float) -> Room | None:
    """Say how much the ledger keeps for a developer; None for all, of whom no end of new answers is said."""
    answers = answers_a_day.get(developer)
    return None if answers is None else Room(min(epsilon_min, UNIT_EPSILON), answers)
