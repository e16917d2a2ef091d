"""A sweep: a scenario file, with what is set besides, read into one validated scenario and its cells.

A typo in a key is an error that names the key; a value that cannot be played is an error before any process starts.
"""

from __future__ import annotations

import copy
import difflib
import hashlib
import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairwall.laws.precision import DECIMALS_MAX
from sim.scenarios.checks import problems
from sim.scenarios.scenario import FaultsSection, Scenario, as_values, grids_of

SHIPPED = Path(__file__).parent

_LISTS = frozenset(
    {
        *("scenario.require", "data.drop", "adversary.attack", "developer.knows", "developer.lambdas"),
        *("faults.kinds", "faults.links", "faults.parties", "faults.at"),
    }
)
"""Keys whose value is a list by nature: setting them to a list sweeps nothing."""


class ScenarioError(ValueError):
    """A scenario that cannot be played. Its text is one line that names the key and what would be right."""


@dataclass(frozen=True)
class Cell:
    """One combination of a sweep: the swept values by dotted key, and the scenario with them in place."""

    swept: Mapping[str, Any]
    scenario: Scenario


@dataclass(frozen=True)
class Sweep:
    """A scenario ready to be played: the whole file as validated, and its cells."""

    scenario: Scenario
    cells: tuple[Cell, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of the scenario without its seed: what the parties may know of it."""
        values = as_values(self.scenario)
        values.pop("replay")
        values["scenario"].pop("seed", None)
        for grid in grids_of(values["sweep"]):
            grid.pop("scenario.seed", None)
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def shipped() -> dict[str, Path]:
    """List the scenarios that come with fairwall, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.toml"))}


def read(name_or_file: str, settings: Sequence[str] = ()) -> Sweep:
    """Read a scenario.

    Parameters
    ----------
    name_or_file : str
        A shipped scenario's name or the path of a TOML file.
    settings : sequence of str
        ``dotted.key=value``, the value in TOML or a bare string. Setting a swept key replaces that axis; a list sweeps.

    Raises
    ------
    ScenarioError
        With one line that names the file, the key and what is wrong.
    """
    path = shipped().get(name_or_file, Path(name_or_file))
    values = _load(path, name_or_file)
    for setting in settings:
        _set(values, setting)
    return lay_out(values, path.name)


def at_replay_size(whole: Sweep) -> Sweep:
    """Give a plan of the same scenario as small as its table ``replay`` says."""
    name = whole.scenario.scenario.name
    return lay_out(_small(as_values(whole.scenario), name), f"{name}: replay")


def _small(values: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Set what the table ``replay`` says, and leave the table out.

    Raises
    ------
    ScenarioError
        If it names a key that there is not.
    """
    small = copy.deepcopy({name: section for name, section in values.items() if name != "replay"})
    for key, value in values["replay"].items():
        _section_of(small, key, f"{origin}: replay")
        _put(small, key, value)
    return small


def lay_out(values: Mapping[str, Any], origin: str) -> Sweep:
    """Validate a scenario's values and lay out its cells.

    Parameters
    ----------
    values : mapping
        What the TOML file holds.
    origin : str
        Named at the start of an error.

    Raises
    ------
    ScenarioError
    """
    values = {**values, "sweep": _spelled(values.get("sweep", {}))}
    grids = grids_of(values["sweep"])
    for grid in grids:
        if not isinstance(grid, dict):
            raise ScenarioError(f"{origin}: sweep: must be a table of dotted keys and lists, or several")
        for key, choices in grid.items():
            _section_of(values, key, origin)
            if not isinstance(choices, list) or not choices:
                raise ScenarioError(f"{origin}: sweep.{key}: must be a list with at least one value")
        if grid.keys() != grids[0].keys():
            raise ScenarioError(f"{origin}: sweep: several grids must sweep the same keys")
    cells: list[Cell] = []
    for swept in _combinations(grids):
        merged = {name: dict(section) if isinstance(section, dict) else section for name, section in values.items()}
        for key, value in swept.items():
            section, _, field = key.partition(".")
            merged.setdefault(section, {})[field] = value
        scenario = _validate(merged, origin)
        # As validated: an infinite value is "inf" however the file writes it.
        plain = as_values(scenario)
        cell = Cell({key: _at(plain, key) for key in scenario.axes}, scenario)
        # Two grids may share a combination, once a key that told them apart is set.
        if cell.swept not in [other.swept for other in cells]:
            cells.append(cell)
    if cells[0].scenario.replay:
        # The values are looked at where they are used: a key that was set besides may not go with them.
        _small(values, origin)
    # The swept keys of the whole file take their first value where the section leaves them out.
    return Sweep(cells[0].scenario, tuple(cells))


def _spelled(value: Any) -> Any:
    """Spell an infinite number in a sweep as files and results do: "inf"."""
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
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError):
        near = difflib.get_close_matches(name, shipped(), n=1)
        hint = f"; did you mean {near[0]}?" if near else "; `fairwall list` names the shipped ones"
        raise ScenarioError(f"no scenario or file {name!r}{hint}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    except (ValueError, RecursionError) as error:  # a number too long, brackets too deep
        raise ScenarioError(f"{path}: not valid TOML: {error}") from None


def _set(values: dict[str, Any], setting: str) -> None:
    key, equals, text = setting.partition("=")
    key = key.strip()
    if not equals:
        raise ScenarioError(f"--set {_named(setting)}: must be dotted.key=value")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        value = text.strip()
    _section_of(values, key, "--set")
    _put(values, key, value)


def _put(values: dict[str, Any], key: str, value: Any) -> None:
    """Set a known key; a list sweeps it, unless it is one by nature."""
    section, _, field = key.partition(".")
    values.setdefault("sweep", {})
    grids = grids_of(values["sweep"])
    if not all(isinstance(grid, dict) for grid in grids):
        raise ScenarioError("sweep: must be a table of dotted keys and lists, or several")
    sweeps = isinstance(value, list) and key not in _LISTS
    for grid in grids:
        if sweeps:
            grid[key] = value
        else:
            grid.pop(key, None)
    if not sweeps:
        values.setdefault(section, {})[field] = value


def _section_of(values: Mapping[str, Any], key: str, origin: str) -> tuple[str, str]:
    """Split a dotted key and check that the schema has it."""
    section, _, field = key.partition(".")
    known = _keys()
    if key not in known:
        raise ScenarioError(f"{origin}: {_named(key)}: unknown key{_hint(key, known)}")
    if not isinstance(values.get(section, {}), dict):
        raise ScenarioError(f"{origin}: {section}: must be a table")
    return section, field


def _keys() -> list[str]:
    names = ("scenario", "data", "compliance", "developer", "adversary")
    sections: dict[str, Any] = {name: Scenario.model_fields[name].annotation for name in names}
    return [
        f"{section}.{field.alias or name}"
        for section, keys in (sections | {"faults": FaultsSection}).items()
        for name, field in keys.model_fields.items()
    ]


def _named(key: str) -> str:
    """Write a key on one line, whatever it holds."""
    return key if key.isprintable() else repr(key)


def _hint(key: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _validate(values: Mapping[str, Any], origin: str) -> Scenario:
    try:
        scenario = Scenario.model_validate(values)
    except ValidationError as error:
        raise ScenarioError(f"{origin}: {_first(error)}") from None
    for problem in problems(scenario):
        raise ScenarioError(f"{origin}: {problem}")
    return scenario


def _first(error: ValidationError) -> str:
    """Say the first thing that pydantic found, in one line."""
    problem = error.errors(include_url=False)[0]
    # A key within a section, or one within a list's entry; what follows is pydantic's own.
    depth = 3 if problem["loc"][0] == "paper" else 4 if problem["loc"][:2] == ("faults", "at") else 2
    key = _named(".".join(str(part) for part in problem["loc"][:depth]))
    match problem["type"]:
        case "extra_forbidden":
            known = _keys() if "." in key else list(Scenario.model_fields)
            return f"{key}: unknown key{_hint(key, known)}"
        case "missing":
            return f"{key}: is missing"
        case "value_error":
            return f"{key}: {problem['ctx']['error']}, not {problem['input']!r}"
        case _:
            if key == "developer.queries":
                ways = 'an integer of at least 1, "n", "n-1" or "needed"'
                return f"{key}: must be {ways}, not {problem['input']!r}"
            if key == "compliance.precision":
                ways = f'"float64", "float32" or a number of decimals from 0 to {DECIMALS_MAX}'
                return f"{key}: must be {ways}, not {problem['input']!r}"
            message = re.sub(r"^\w+ should ", "", problem["msg"])
            return f"{key}: must {message}, not {problem['input']!r}"
