"""People of a table: the table, loaded once, and draws of people that are repeated until one is acceptable."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from sim import datasets
from sim.datasets import EncodedRows
from sim.games.cards import DealError
from sim.scenarios.scenario import ScenarioTable

DRAWS_MAX = 100

_Drawn = TypeVar("_Drawn")


def loaded(data: ScenarioTable) -> EncodedRows:
    """Load the table that a scenario names, cached for the next trials; DataError if it cannot be loaded."""
    return load(data.source, data.drop, tuple(data.roles.items()))


@functools.lru_cache(maxsize=8)
def load(
    source: str, drop: tuple[str, ...], roles: tuple[tuple[str, Any], ...], include_protected: bool = False
) -> EncodedRows:
    """Load a table as `sim.datasets.load` does, cached."""
    return datasets.load(source, drop=drop, include_protected=include_protected, **dict(roles))


def drawn(draw: Callable[[], _Drawn], will_do: Callable[[_Drawn], bool], otherwise: str) -> _Drawn:
    """Draw people, repeatedly until `will_do` accepts; DealError with the text `otherwise` after `DRAWS_MAX` draws.

    Compliance would refuse to load other people; the repetition is part of the sampling design.
    """
    for _ in range(DRAWS_MAX):
        if will_do(people := draw()):
            return people
    raise DealError(otherwise)
