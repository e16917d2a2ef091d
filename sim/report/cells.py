"""The settings of a run's cells, and a paper's printed figures for them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sim.report.notation import MISSING, as_float, setting, symbol
from sim.report.tables import PrintedColumn
from sim.scenarios.scenario import PaperFigure, Scenario, ScenarioTable, as_values
from sim.scenarios.sweep import Sweep

T = TypeVar("T")

Trial = Mapping[str, Any]
"""A line of ``trials.jsonl``."""


def scenario_of(sweep: Sweep, swept: Mapping[str, Any]) -> Any:
    """Return the scenario of the cell with these swept values."""
    return next(cell.scenario for cell in sweep.cells if all(cell.swept[key] == swept[key] for key in cell.swept))


def paper_figure(scenario: Scenario) -> Any:
    """Return a paper's printed figures for a cell: the first entry whose every condition the cell's scenario meets.

    This is the one rule for tables and figures. Settings changed from a file or a shipped scenario became conditions
    when it was read (`sim.scenarios.sweep.read`); figures measured on other data, according to an entry's ``data``,
    apply to no cell.
    """
    values = as_values(scenario)

    def fails(key: str, wanted: object) -> bool:
        section, _, field = key.partition(".")
        there = values.get(section, {}).get(field)
        if key == "data.source":
            # A user's file in a known format counts as that data set, whatever its name.
            there, wanted = (str(source).partition(":")[0] for source in (there, wanted))
        # "inf" may also be written as TOML's inf, and 25 equals 25.0.
        several = wanted if isinstance(wanted, list) else []
        return all(there != one and as_float(there) != as_float(one) for one in (wanted, *several))

    def stands(figure: PaperFigure) -> bool:
        failed = {key for key, wanted in figure.where.items() if fails(key, wanted)}
        if figure.data is None:
            return not failed
        data = values["data"]
        played = f"{data['source'].partition(':')[0]}, {data.get('protected')}"
        # Data other than the file's may be those that the figure was measured on.
        moved = failed <= _DATA if failed & {"data.source", "data.protected"} else not failed
        return moved and figure.data.casefold() == played.casefold()

    return next(filter(stands, scenario.paper), None)


_DATA = {f"data.{role}" for role in ("source", *ScenarioTable(source="any").roles)}


@dataclass(frozen=True)
class Swept:
    """The swept keys that distinguish a run's cells, and their notation in a game's report.

    Attributes
    ----------
    heads : names of keys in this report, where not their symbols.
    write, brief : write a cell's value of a key, ``brief`` for the terminal.
    silent : texts that a cell's name leaves out.
    told : keys that a cell's name includes even before words.
    """

    axes: Sequence[str]
    heads: Mapping[str, str] = field(default_factory=dict)
    write: Callable[[Mapping[str, Any], str], str] = lambda cell, key: setting(cell[key])
    brief: Callable[[Mapping[str, Any], str], str] | None = None
    silent: Collection[str] = (MISSING,)
    told: Collection[str] = ()

    def head(self, key: str) -> str:
        """Return the name of a key."""
        return self.heads.get(key) or symbol(key)

    def name(self, cell: Mapping[str, Any], without: Collection[str] = ()) -> str:
        """Return a short name of a cell: its words, and its numbers after their keys."""
        told = {key: self.write(cell, key) for key in self.axes if key not in without}
        return ", ".join(
            text if is_word(cell[key]) and key not in self.told else f"{self.head(key)} {text}"
            for key, text in told.items()
            if text not in self.silent
        )

    def columns(self, cells: Sequence[Mapping[str, Any]]) -> list[PrintedColumn]:
        """Return the columns that distinguish cells."""
        return [
            PrintedColumn(
                self.head(key),
                [self.write(cell, key) for cell in cells],
                numeric=not any(math.isnan(as_float(cell[key])) for cell in cells),
            )
            for key in self.axes
        ]

    def link(self, cell: Mapping[str, Any]) -> str:
        """Return the id of the page's part that lists a cell's trials."""
        return trials_id({key: cell[key] for key in self.axes})


def is_word(value: object) -> bool:
    """Return whether a swept value is a word, or a list of words."""
    first = next(iter(value), None) if isinstance(value, list | tuple) else value
    return isinstance(first, str) and first != "inf"


def trials_id(swept: Mapping[str, Any]) -> str:
    """Return the id of the page's part that lists a cell's trials."""
    return f"trials-{hashlib.sha256(json.dumps(dict(swept), sort_keys=True).encode()).hexdigest()[:12]}"


def best_of_each(cells: Iterable[T], kind: Callable[[T], Hashable], rank: Callable[[T], Any]) -> list[T]:
    """Return the first in rank of each kind of cell, with kinds in order of first occurrence."""
    alike: dict[Hashable, list[T]] = {}
    for cell in cells:
        alike.setdefault(kind(cell), []).append(cell)
    return [min(group, key=rank) for group in alike.values()]
