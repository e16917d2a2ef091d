"""A sweep: a scenario file and further settings, read into one validated scenario and its cells.

A typo in a key is an error that names the key; a value that cannot be played is an error before any process starts. The
game's own scenario class defines the keys.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeAlias, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticUndefined
from typing_extensions import TypeVar

from fairwall import toml
from fairwall.errors import NotOneOf, UserError, did_you_mean, nearest
from fairwall.laws.metrics.answer_precision import DECIMALS_MAX
from fairwall.laws.metrics.metric import NotAMetric
from fairwall.plugins import Plugin, in_use
from sim.scenarios.scenario import (
    FaultsSection,
    InjectedFault,
    Scenario,
    ScenarioKeys,
    as_values,
    common_problems,
    grids_of,
)

_NEVER_SWEPT = "scenario.secret"
"""The key that is the same for every cell of a run."""

_NO_MATTER = ("scenario", "faults", "compliance.noise")
"""Tables and keys that no printed figure depends on: numbers of trials, seeds and faults."""

SHIPPED = Path(__file__).parent

CELLS_MAX = 10_000
"""Most cells that are played without ``--force``."""

S = TypeVar("S", bound=Scenario, default=Any)

Kinds: TypeAlias = Mapping[str, type[Scenario]]
"""The scenario class of each game, by its name in ``scenario.game``."""


class ScenarioError(UserError):
    """A scenario that cannot be played. Its text is one line that names the key and what would be right."""


@dataclass(frozen=True)
class Cell(Generic[S]):
    """One combination of a sweep: the swept values by dotted key, and the scenario with these values."""

    swept: Mapping[str, Any]
    scenario: S


@dataclass(frozen=True)
class Sweep(Generic[S]):
    """A scenario ready to be played: the whole file as validated, and its cells."""

    scenario: S
    cells: tuple[Cell[S], ...]
    notes: tuple[str, ...] = field(default=(), compare=False)
    """Side effects of the settings, a line each."""

    @property
    def game(self) -> str:
        """The game's name."""
        return self.scenario.scenario.game

    @property
    def digest(self) -> str:
        """SHA-256 of the scenario without its seed, equal for two runs of the same scenario."""
        return hashlib.sha256(self._text).hexdigest()

    def name_for_parties(self, secret: bytes) -> str:
        """Return the scenario's name for the parties, in hexadecimal: HMAC-SHA-256 with the run's secret.

        From a plain digest a party could find out secrets, such as the number of disadvantaged people, by trial and
        error.
        """
        return hmac.digest(secret, b"scenario\0" + self._text, hashlib.sha256).hex()

    @property
    def _text(self) -> bytes:
        values = as_values(self.scenario)
        values.pop("replay")
        values["scenario"].pop("seed", None)
        for grid in grids_of(values["sweep"]):
            grid.pop("scenario.seed", None)
        return json.dumps(values, sort_keys=True).encode()


def plugins_of(sweep: Sweep, *others: str) -> list[Plugin]:
    """Return the plug-ins that a scenario names, and others by their names."""

    def strings(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value.partition(":")[0]  # a data set's format, and its path
        elif isinstance(value, dict | list | tuple):
            for item in value.values() if isinstance(value, dict) else value:
                yield from strings(item)

    return in_use({*strings(as_values(sweep.scenario)), *others})


def shipped() -> dict[str, Path]:
    """Return the scenarios that come with fairwall, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.toml"))}


def minutes() -> dict[str, float]:
    """Return the measured minutes of shipped scenarios, by name: see ``benchmarks/minutes.py``."""
    import tomllib

    table: dict[str, float] = tomllib.loads((SHIPPED / "measured" / "minutes.toml").read_text(encoding="utf-8"))
    return table


def read(name_or_file: str, settings: Sequence[str], kinds: Kinds, cells_max: int | None = None) -> Sweep:
    """Read a scenario: a shipped one by its name, or a TOML file.

    A setting is ``dotted.key=value``, the value in TOML or a bare string. Setting a swept key replaces that axis; a
    list sweeps. A `ScenarioError` of one line names the file, the key and what is wrong.
    """
    path = shipped().get(name_or_file, Path(name_or_file))
    values = _load(path, name_or_file)
    keys = _Keys.of(values, path.name, kinds, settings)
    _bind_copied(values, path, keys)
    given = dict(_setting(setting) for setting in settings)
    notes = []
    for key, value in given.items():
        _require(values, key, "--set", keys)
        goes_with = () if _own(values, key) == [value] else keys.kind.chosen_with.get(key, ())
        for also, swept in goes_with:
            if also not in given and (had := _let_go(values, also, keys, swept=swept)):
                notes.append(f"{also}: as {_text(value)} has it, in place of {had} in {path.name}; --set keeps that")
        _bind_figures(values, key, keys)
        _put(values, key, value, keys)
    return replace(lay_out(values, path.name, kinds, cells_max), notes=tuple(notes))


def at_replay_size(whole: Sweep, kinds: Kinds) -> Sweep:
    """Return a sweep of the same scenario, reduced by its table ``replay``."""
    name = whole.scenario.scenario.name
    values = as_values(whole.scenario)
    return lay_out(_small(values, name, _Keys.of(values, name, kinds)), f"{name}: replay", kinds)


def lay_out(values: Mapping[str, Any], origin: str, kinds: Kinds, cells_max: int | None = None) -> Sweep:
    """Validate the values that a TOML file holds, and lay out its cells. A `ScenarioError` begins with the origin."""
    keys = _Keys.of(values, origin, kinds)
    values = {**values, "sweep": _spelled(values.get("sweep", {}))}
    grids = grids_of(values["sweep"])
    for grid in grids:
        if not isinstance(grid, dict):
            raise ScenarioError(f"{origin}: sweep: must be a table of dotted keys and lists, or several")
        for key, choices in grid.items():
            _require(values, key, origin, keys)
            if key == _NEVER_SWEPT:
                raise ScenarioError(f"{origin}: sweep.{key}: cannot be swept: a run has one secret")
            if not isinstance(choices, list) or not choices:
                raise ScenarioError(f"{origin}: sweep.{key}: must be a list with at least one value")
        if grid.keys() != grids[0].keys():
            raise ScenarioError(f"{origin}: sweep: several grids must sweep the same keys")
    if cells_max is not None and (count := cells_of(grids)) > cells_max:
        raise ScenarioError(f"{origin}: sweep: has {count:,} cells; more than {cells_max:,} need --force")
    first = next(_combinations(grids))
    _check_base(values, first, origin, keys)
    cells: dict[str, Cell] = {}
    shared: Any = None
    for swept in _combinations(grids):
        # The sweep is validated once and shared: with every cell, time grows with the square of their number.
        scenario = _validated(_merged(values if shared is None else {**values, "sweep": {}}, swept), origin, keys)
        # The validated values: an infinite value is "inf" however the file writes it.
        plain = as_values(scenario)
        shared = scenario.sweep if shared is None else shared
        scenario = scenario.model_copy(update={"sweep": shared})
        cell = Cell({key: _at(plain, key) for key in scenario.axes}, scenario)
        # Two grids may share a combination, once the key that distinguished them is set.
        cells.setdefault(json.dumps(cell.swept), cell)
    # The swept keys of the whole file take their first value where the section leaves them out.
    whole = next(iter(cells.values())).scenario
    if whole.replay:
        # The values are checked where they are used: a key that was set besides may not go with them.
        _small(values, origin, keys)
    return Sweep(whole, tuple(cells.values()))


@dataclass(frozen=True)
class _Keys:
    """The dotted keys of one game's scenarios.

    A key in ``lists`` has a list as its value, so setting it to a list sweeps nothing. Only a key that this game lacks
    is searched in the other games' classes, ``kinds``.
    """

    game: str
    kind: type[Scenario]
    known: tuple[str, ...]
    lists: frozenset[str]
    kinds: Kinds

    @classmethod
    def of(cls, values: Mapping[str, Any], origin: str, kinds: Kinds, settings: Sequence[str] = ()) -> _Keys:
        """Return the keys of the game that a file names; refuse a file that names none."""
        section = values.get("scenario")
        if not isinstance(section, dict):
            raise ScenarioError(f"{origin}: scenario: {'is missing' if section is None else 'must be a table'}")
        game = section.get("game")
        for setting in settings:
            key, _, text = setting.partition("=")
            game = text.strip().strip("\"'") if key.strip() == "scenario.game" else game
        if game is None:
            raise ScenarioError(f"{origin}: scenario.game: is missing")
        if not isinstance(game, str) or game not in kinds:
            hint = did_you_mean(nearest(str(game), kinds))
            raise ScenarioError(f"{origin}: scenario.game: must be one of {', '.join(kinds)}, not {game!r}{hint}")
        own = _fields(kinds[game])
        lists = frozenset(key for key, field in own.items() if get_origin(field.annotation) is tuple)
        return cls(game, kinds[game], tuple(own), lists, kinds)

    def unknown(self, key: str) -> str:
        """Return the error text for a key that the game lacks."""
        for name, kind in self.kinds.items():
            if key in _fields(kind):
                return f"{_named(key)}: is a key of the {name} game, not of the {self.game} game"
        # A key in a list of tables has a number, and is set nowhere else.
        bare = re.sub(r"\.\d+", "", key)
        return f"{_named(key)}: unknown key{_hint(bare, self.known if bare == key else _of_entries(self.kind))}"


def _fields(kind: type[Scenario]) -> dict[str, FieldInfo]:
    """Return a scenario class's dotted keys that may be set."""
    sections = {name: field.annotation for name, field in kind.model_fields.items()} | {"faults": FaultsSection}
    return {
        f"{section}.{field.alias or name}": field
        for section, keys in sections.items()
        if isinstance(keys, type) and issubclass(keys, ScenarioKeys)
        for name, field in keys.model_fields.items()
    }


def _of_entries(kind: type[Scenario]) -> list[str]:
    """Return the keys in a scenario class's lists of tables: printed figures and faults."""
    figure = get_args(kind.model_fields["paper"].annotation)[0]
    return [
        *(f"paper.{name}" for name in figure.model_fields),
        *(f"faults.at.{name}" for name in InjectedFault.model_fields),
    ]


def _small(values: Mapping[str, Any], origin: str, keys: _Keys) -> dict[str, Any]:
    """Return the values with the table ``replay`` applied and left out; refuse an unknown key."""
    small = copy.deepcopy({name: section for name, section in values.items() if name != "replay"})
    for key, value in values["replay"].items():
        _require(small, key, f"{origin}: replay", keys)
        _bind_figures(small, key, keys)
        _put(small, key, value, keys)
    return small


def _check_base(values: Mapping[str, Any], first: Mapping[str, Any], origin: str, keys: _Keys) -> None:
    """Refuse a table's value that no file may hold, even where the sweep replaces it."""
    for key in first:
        section, _, field = key.partition(".")
        if field in values.get(section, {}):
            _typed(_merged(values, {**first, key: values[section][field]}), origin, keys)


def _merged(values: Mapping[str, Any], swept: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's tables with swept values."""
    merged = {name: dict(section) if isinstance(section, dict) else section for name, section in values.items()}
    for key, value in swept.items():
        section, _, field = key.partition(".")
        merged.setdefault(section, {})[field] = value
    return merged


def cells_of(grids: Sequence[Mapping[str, Sequence[Any]]]) -> int:
    """Return the number of cells of a sweep's grids without laying them out; shared cells are counted twice."""
    return sum(math.prod(len(choices) for choices in grid.values()) for grid in grids)


def _spelled(value: Any) -> Any:
    """Write an infinite number in a sweep as files and results do: "inf"."""
    if isinstance(value, dict):
        return {key: _spelled(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_spelled(item) for item in value]
    return "inf" if value == math.inf else value


def _combinations(grids: Sequence[Mapping[str, Sequence[Any]]]) -> Iterator[dict[str, Any]]:
    for grid in grids:
        for combination in itertools.product(*(grid[key] for key in grids[0])):
            yield dict(zip(grids[0], combination, strict=True))


def _at(values: Mapping[str, Any], key: str) -> Any:
    section, _, field = key.partition(".")
    return values[section][field]


def _load(path: Path, name: str) -> dict[str, Any]:
    try:
        return toml.read(path)
    except (FileNotFoundError, IsADirectoryError):
        hint = did_you_mean(nearest(name, shipped())) or "; `fairwall list` names the shipped ones"
        raise ScenarioError(f"no scenario or file {name!r}{hint}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    except toml.TomlError as error:
        raise ScenarioError(f"{path}: not valid TOML: {error}") from None


def _setting(setting: str) -> tuple[str, Any]:
    """Return a setting's dotted key and value."""
    key, equals, text = setting.partition("=")
    if not equals:
        raise ScenarioError(f"--set {_named(setting)}: must be dotted.key=value")
    try:
        return key.strip(), toml.loads(f"value = {text}")["value"]
    except toml.TomlError:
        return key.strip(), text.strip()


def _put(values: dict[str, Any], key: str, value: Any, keys: _Keys) -> None:
    """Set a known key; a list sweeps it, unless its value is a list by nature."""
    section, _, field = key.partition(".")
    values.setdefault("sweep", {})
    grids = grids_of(values["sweep"])
    if not all(isinstance(grid, dict) for grid in grids):
        raise ScenarioError("sweep: must be a table of dotted keys and lists, or several")
    sweeps = isinstance(value, list) and key not in keys.lists
    for grid in grids:
        if sweeps:
            grid[key] = value
        else:
            grid.pop(key, None)
    if not sweeps:
        values.setdefault(section, {})[field] = value


def _let_go(values: dict[str, Any], key: str, keys: _Keys, *, swept: bool) -> str:
    """Reset a key to its default, and return the file's value as text; a swept key is kept unless `swept`."""
    section, _, name = key.partition(".")
    grids = [grid for grid in grids_of(values.get("sweep", {})) if isinstance(grid, dict) and key in grid]
    had = _own(values, key)
    if not isinstance(values.get(section, {}), dict) or not had or (grids and not swept):
        return ""
    _bind_figures(values, key, keys)
    values.get(section, {}).pop(name, None)
    for grid in grids:
        del grid[key]
    return ", ".join(dict.fromkeys(map(_text, had)))


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _bind_figures(values: dict[str, Any], key: str, keys: _Keys, played: Sequence[Any] | None = None) -> None:
    """Restrict printed figures to a key's value as the file plays it (or `played`), before the key changes."""
    figures = values.get("paper")
    if not _matters(key) or not isinstance(figures, list):
        return
    played = _played(values, key, keys) if played is None else played
    values["paper"] = [
        {**figure, "where": {key: played, **figure["where"]}}
        if isinstance(figure, dict) and isinstance(figure.get("where"), dict)
        else figure
        for figure in figures
    ]


_original = cache(toml.read)


def _bind_copied(values: dict[str, Any], path: Path, keys: _Keys) -> None:
    """Restrict figures copied from a shipped scenario to that scenario's values, since a copy may play others."""
    figures = values.get("paper")
    if path in shipped().values() or not isinstance(figures, list):
        return
    originals = [_original(other) for other in shipped().values()]
    played = [
        {key: _played(original, key, keys) for key in keys.known}
        for original in originals
        if any(figure in figures for figure in original.get("paper", ()))
    ]
    unlike = [{key: own for key, own in each.items() if _played(values, key, keys) != own} for each in played]
    # Several scenarios may have a figure: the copy is of the most similar one.
    for key, own in min(unlike, key=lambda differing: sum(map(_matters, differing)), default={}).items():
        _bind_figures(values, key, keys, own)


def _played(values: Mapping[str, Any], key: str, keys: _Keys) -> list[Any]:
    """Return the values with which a file plays a key: its own, or else the default if there is one."""
    section, _, name = key.partition(".")
    field = keys.kind.model_fields.get(section)
    default = getattr(field and field.default, name, _fields(keys.kind)[key].default)
    own = _own(values, key) or [value for value in (default,) if value not in (None, PydanticUndefined)]
    return list(_spelled(own))


def _matters(key: str) -> bool:
    return key.partition(".")[0] not in _NO_MATTER and key not in _NO_MATTER


def _own(values: Mapping[str, Any], key: str) -> list[Any]:
    """Return the values that a file has for a key, in its sweep or else in its table."""
    section, _, field = key.partition(".")
    swept = [grid[key] for grid in grids_of(values.get("sweep", {})) if isinstance(grid, dict) and key in grid]
    if swept:
        return [value for choices in swept if isinstance(choices, list) for value in choices]
    table = values.get(section, {})
    return [table[field]] if isinstance(table, dict) and field in table else []


def _require(values: Mapping[str, Any], key: str, origin: str, keys: _Keys) -> None:
    """Refuse a dotted key that the game lacks, or whose section is no table."""
    section = key.partition(".")[0]
    if key not in keys.known:
        raise ScenarioError(f"{origin}: {keys.unknown(key)}")
    if not isinstance(values.get(section, {}), dict):
        raise ScenarioError(f"{origin}: {section}: must be a table")


def _named(key: str) -> str:
    """Return a key, or its `repr` where the key is not printable on one line."""
    return key if key.isprintable() else repr(key)


def _hint(key: str, known: Iterable[str]) -> str:
    """Suggest keys of the same name in other tables, or else the most similar key, with its table or without."""
    by_name: dict[str, list[str]] = {}
    for other in known:
        by_name.setdefault(other.rpartition(".")[2], []).append(other)
    name = key.rpartition(".")[2]
    if name in by_name:
        return did_you_mean(by_name[name])
    return did_you_mean(nearest(key, known) or [other for near in nearest(name, by_name) for other in by_name[near]])


def _typed(values: Mapping[str, Any], origin: str, keys: _Keys) -> Scenario:
    try:
        return keys.kind.model_validate(values)
    except ValidationError as error:
        raise ScenarioError(f"{origin}: {_first(error, keys)}") from None


def _validated(values: Mapping[str, Any], origin: str, keys: _Keys) -> Scenario:
    scenario = _typed(values, origin, keys)
    for problem in itertools.chain(common_problems(scenario), scenario.problems()):
        raise ScenarioError(f"{origin}: {problem}")
    return scenario


def _first(error: ValidationError, keys: _Keys) -> str:
    """Return pydantic's first error, in one line."""
    problem, *others = error.errors(include_url=False)
    # A key within a section, or within a list's entry; the rest of the location is pydantic's own.
    depth = 3 if problem["loc"][0] == "paper" else 4 if problem["loc"][:2] == ("faults", "at") else 2
    key = ".".join(str(part) for part in problem["loc"][:depth])
    match problem["type"]:
        case "extra_forbidden" if "." in key:
            return keys.unknown(key)
        case "extra_forbidden":
            for game, kind in keys.kinds.items():
                if any(other.startswith(f"{key}.") for other in _fields(kind)):
                    return f"{_named(key)}: is a table of the {game} game, not of the {keys.game} game"
            return f"{_named(key)}: unknown key{_hint(key, [*keys.kind.model_fields, *keys.known])}"
        case "missing":
            return f"{_named(key)}: is missing"
        case "value_error":
            said = problem["ctx"]["error"]
        case _:
            if key == "developer.queries":
                said = 'must be an integer of at least 1, "n", "n-1" or "needed"'
            elif key == "compliance.precision":
                said = f'must be "float64", "float32" or a number of decimals from 0 to {DECIMALS_MAX}'
            else:
                said = "must " + re.sub(r"^\w+ should ", "", problem["msg"])
    # Where a value may be of several types, each type has its own error.
    names = [name for each in (problem, *others) if each["input"] == problem["input"] for name in _names(each)]
    hint = did_you_mean(nearest(problem["input"], names)) if isinstance(problem["input"], str) else ""
    if problem["type"] == "value_error" and isinstance(said, NotAMetric):
        hint = said.hint(problem["input"])
    return f"{_named(key)}: {said}, not {problem['input']!r}{hint}"


def _names(problem: ErrorDetails) -> Iterable[str]:
    """Return the names that a value must be one of, if any."""
    match problem["type"]:
        case "literal_error":
            return re.findall(r"'([^']*)'", problem["ctx"]["expected"])
        case "value_error" if isinstance(problem["ctx"]["error"], NotOneOf):
            return problem["ctx"]["error"].names
    return ()
