"""The games, a folder each, and what they share: the table, the referee, cards and submissions.

A game is a :class:`sim.games.game.Game`; a new one costs a folder here and a row in ``MODULES``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

from sim.games.game import Game
from sim.scenarios import sweep as sweeps
from sim.scenarios.scenario import Scenario
from sim.scenarios.sweep import Sweep

MODULES = {
    "reveal": "sim.games.reveal",
    "inference": "sim.games.inference",
    "release": "sim.games.release",
    "disclosure": "sim.games.disclosure",
    "training": "sim.games.training",
    "groups": "sim.games.groups",
}
"""Where each game is, by its name as ``scenario.game`` has it: the module's ``GAME``."""

_T = TypeVar("_T")


class _ByName(Mapping[str, _T]):
    """Something of each game, by the game's name.

    It is found when it is looked up: a process imports the game that it plays, not all there are.
    """

    def __init__(self, find: Callable[[str], _T]) -> None:
        self._find = find

    def __getitem__(self, name: str) -> _T:
        if name not in MODULES:
            raise KeyError(name)
        return self._find(name)

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


GAMES: Mapping[str, Game[Any, Any, Any]] = _ByName(lambda name: import_module(MODULES[name]).GAME)
"""Every game by its name."""

_KINDS: Mapping[str, type[Scenario]] = _ByName(lambda name: GAMES[name].scenario)


def read(name_or_file: str, settings: Sequence[str] = (), cells_max: int | None = None) -> Sweep:
    """Read a scenario of any game, see :func:`sim.scenarios.sweep.read`."""
    return sweeps.read(name_or_file, settings, _KINDS, cells_max)


def lay_out(values: Mapping[str, Any], origin: str, cells_max: int | None = None) -> Sweep:
    """Validate a scenario of any game, see :func:`sim.scenarios.sweep.lay_out`."""
    return sweeps.lay_out(values, origin, _KINDS, cells_max)


def at_replay_size(whole: Sweep) -> Sweep:
    """Give a sweep as small as its table ``replay`` says, see :func:`sim.scenarios.sweep.at_replay_size`."""
    return sweeps.at_replay_size(whole, _KINDS)
