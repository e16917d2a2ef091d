"""The games, a folder each, and what they share: the table, the referee, cards and submissions.

A game is a :class:`sim.games.game.Game`; a new one costs a folder here and a row in ``GAMES``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sim.games.game import Game
from sim.games.inference import INFERENCE
from sim.games.reveal import REVEAL
from sim.scenarios import sweep as sweeps
from sim.scenarios.scenario import Scenario
from sim.scenarios.sweep import Sweep

GAMES: dict[str, Game[Any, Any, Any]] = {game.name: game for game in (REVEAL, INFERENCE)}
"""Every game by its name, as ``scenario.game`` has it."""


def read(name_or_file: str, settings: Sequence[str] = (), cells_max: int | None = None) -> Sweep:
    """Read a scenario of any game, see :func:`sim.scenarios.sweep.read`."""
    return sweeps.read(name_or_file, settings, _kinds(), cells_max)


def lay_out(values: Mapping[str, Any], origin: str, cells_max: int | None = None) -> Sweep:
    """Validate a scenario of any game, see :func:`sim.scenarios.sweep.lay_out`."""
    return sweeps.lay_out(values, origin, _kinds(), cells_max)


def at_replay_size(whole: Sweep) -> Sweep:
    """Give a sweep as small as its table ``replay`` says, see :func:`sim.scenarios.sweep.at_replay_size`."""
    return sweeps.at_replay_size(whole, _kinds())


def _kinds() -> dict[str, type[Scenario]]:
    return {name: game.scenario for name, game in GAMES.items()}
