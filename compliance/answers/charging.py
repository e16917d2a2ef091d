"""The ledger of a game, and the ledger storage of a developer's answers."""

from __future__ import annotations

from collections.abc import Mapping

from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Neighbours
from compliance.ledger.entries import UNIT_EPSILON, Room

DEVELOPER = "developer"
"""Name of a game's only developer in its ledger."""


def game_ledger(dataset: str, neighbours: Neighbours, budget: Budget) -> Ledger:
    """Open a deal's ledger in memory; the developer gets the whole budget."""
    ledger = Ledger()
    ledger.set_budget(dataset, neighbours, budget)
    ledger.allocate(dataset, DEVELOPER, budget.epsilon, budget.delta)
    return ledger


def room_of(developer: str, answers_a_day: Mapping[str, int], epsilon_min: float) -> Room | None:
    """Return the storage that the ledger keeps for a developer; None for no limit."""
    answers = answers_a_day.get(developer)
    return None if answers is None else Room(min(epsilon_min, UNIT_EPSILON), answers)
