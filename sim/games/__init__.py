"""The games, a folder and a row in `MODULES` each, and the code they share: table, referee, cards, submissions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from fairwall.plugins import Plugin, Registry, named_in, recall
from sim.games.game import Game
from sim.scenarios import sweep as sweeps
from sim.scenarios.scenario import Scenario
from sim.scenarios.sweep import Sweep


def _checked(plugin: Plugin, game: Any) -> Game[Any, Any, Any]:
    plugin.require(isinstance(game, Game), "is no Game")
    checked: Game[Any, Any, Any] = game
    return checked


MODULES: Registry[str | Game[Any, Any, Any]] = Registry(
    "games",
    {
        "reveal": "sim.games.reveal",
        "inference": "sim.games.inference",
        "release": "sim.games.release",
        "disclosure": "sim.games.disclosure",
        "training": "sim.games.training",
        "groups": "sim.games.groups",
        "wash": "sim.games.wash",
        "overfit": "sim.games.overfit",
        "curator": "sim.games.curator",
    },
    _checked,
)
"""Location of each game by its name in `scenario.game`: the module that holds `GAME`, or a plug-in's `Game` itself."""

_T = TypeVar("_T")


class _ByName(Mapping[str, _T]):
    """Values by game name, looked up on access so that a process imports only the game that it plays."""

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


def _game(name: str) -> Game[Any, Any, Any]:
    found = MODULES[name]
    game: Game[Any, Any, Any] = import_module(found).GAME if isinstance(found, str) else found
    return game


GAMES: Mapping[str, Game[Any, Any, Any]] = _ByName(_game)
"""Every game by its name."""

_KINDS: Mapping[str, type[Scenario]] = _ByName(lambda name: GAMES[name].scenario)


def read(name_or_file: str, settings: Sequence[str] = (), cells_max: int | None = None) -> Sweep:
    """Read a scenario of any game, see `sim.scenarios.sweep.read`; a played one does not need its parties' plug-ins."""
    place = Path(name_or_file)
    if place.name == "scenario.toml" and (played := place.parent / "result.json").exists():
        recall(named_in(played.read_bytes()))
    return sweeps.read(name_or_file, settings, _KINDS, cells_max)


def lay_out(values: Mapping[str, Any], origin: str, cells_max: int | None = None) -> Sweep:
    """Validate a scenario of any game, see `sim.scenarios.sweep.lay_out`."""
    return sweeps.lay_out(values, origin, _KINDS, cells_max)


def at_replay_size(whole: Sweep) -> Sweep:
    """Return the sweep reduced to the size in its `replay` table, see `sim.scenarios.sweep.at_replay_size`."""
    return sweeps.at_replay_size(whole, _KINDS)
