"""Figures of models by cell and seed, of a run or published by [LD].

A cell is a data set, protocol, split and epsilon; a seed determines the split of the table.

[LD]: Arcolezi, Makhlouf, Palamidessi, DBSec 2023, and the results in its authors' repository.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from fairwall.errors import UserError
from fairwall.laws.local import CLEAN
from fairwall.tables.reading import header, read
from sim.games.game import Line
from sim.games.release.scenario import CONTROLS, UNIFORM_AT_K_BASED, ReleaseScenario
from sim.scenarios.sweep import Sweep

METRICS = {
    "acc": "acc",
    "f1": "f1",
    "auc": "auc_hard",
    "recall": "recall",
    "SPD": "sp",
    "DI": "di",
    "EOD": "eo",
    "OAD": "oad",
}
"""Keys of a trial's line by the file's columns. [LD]'s code computes its AUC from decisions, not scores."""

RATES = {
    "SP_a_1": "sp_advantaged",
    "SP_a_0": "sp_disadvantaged",
    "EO_a_1": "eo_advantaged",
    "EO_a_0": "eo_disadvantaged",
    "OA_a_1": "oad_advantaged",
    "OA_a_0": "oad_disadvantaged",
}
"""Keys of the groups' rates behind SPD, DI, EOD and OAD, by the file's columns, which are optional."""

OWN = ("auc", "consistent", "leakage_baseline", "leakage_release", "leakage", "leakage_mixture")
"""Further figures of a trial's line, which no file has."""

_SOURCES = {"adult-26k": "adult", "acs-coverage": "ACSCoverage", "lsac-coded": "LSAC"}
_CELL = ("protocol", "split", "epsilon")
_SPLITS = {"k_based": "k-based"}
_PROTOCOLS = {"sue": "rappor"}


class CompareError(UserError):
    """A run and a file that cannot be compared. Its text is one line that says why."""


class ReleaseCell(NamedTuple):
    """The settings that trials of one cell share; a control has no split, and an infinite epsilon."""

    data: str
    protocol: str
    split: str
    epsilon: float


Figures: TypeAlias = Mapping[ReleaseCell, Mapping[int, Mapping[str, float]]]
"""Finite figures by cell, seed and metric, the metric named as in a trial's line."""

_Row: TypeAlias = tuple[ReleaseCell, int, Mapping[str, Any]]


def of_run(sweep: Sweep[ReleaseScenario], lines: Sequence[Line], data_set: Callable[[str], str]) -> Figures:
    """Return the figures of a run's lines; `data_set` returns a table's name from `data.source`."""
    keys = (*METRICS.values(), *RATES.values(), *OWN)

    def cell(line: Line) -> ReleaseCell:
        data = data_set(line.get("data.source", sweep.scenario.data.source))
        return _cell(data, line["protocol"], line["split"], _epsilon(sweep, line))

    rows = ((cell(line), line["split_seed"], {key: line.get(key) for key in keys}) for line in lines)
    return _gathered(rows, lambda cell, seed: f"the run has several trials of {named(cell)} with seed {seed}")


def together(runs: Sequence[Figures]) -> Figures:
    """Return the figures of several runs as one; CompareError where they disagree."""
    if len(runs) == 1:
        return runs[0]
    rows = ((cell, seed, figures) for run in runs for cell, seeds in run.items() for seed, figures in seeds.items())
    return _gathered(rows, lambda cell, seed: f"two runs have other figures of {named(cell)} with seed {seed}")


def published(file: Path) -> Figures:
    """Read a CSV file of published figures, with columns dataset, seed and those of `METRICS`, and perhaps of `RATES`.

    Without the columns protocol, split and epsilon, the models were trained on clean attributes.
    """
    name = str(file)
    there = set(header(file, name))
    keys = METRICS | {rate: key for rate, key in RATES.items() if rate in there}
    columns = [column for column in _CELL if set(_CELL) & there] + ["dataset", "seed", *keys]
    table = read(file, name, columns).to_pylist()

    def rows() -> Iterable[_Row]:
        for number, row in enumerate(table, start=1):
            try:
                cell = _cell(
                    str(row["dataset"]),
                    str(row.get("protocol", CLEAN)),
                    str(row.get("split")),
                    float(row.get("epsilon", "inf")),
                )
                figures = {
                    key: None if row[metric] in (None, "") else float(row[metric]) for metric, key in keys.items()
                }
                yield cell, int(row["seed"]), figures
            except (TypeError, ValueError):
                raise CompareError(f"{name}: row {number}: epsilon, the seed or a figure is no number") from None

    return _gathered(rows(), lambda cell, seed: f"{name}: {named(cell)} has seed {seed} more than once")


def studied(source: str) -> str:
    """Return [LD]'s name of a data set from `data.source`; CompareError if it has none."""
    kind = source.partition(":")[0]
    if kind not in _SOURCES:
        raise CompareError(f"data.source: no figures are published of {source!r}, but of {', '.join(_SOURCES)}")
    return _SOURCES[kind]


def table_name(source: str) -> str:
    """Return a table's name: [LD]'s where it has one, else the file's."""
    kind, _, path = source.partition(":")
    return _SOURCES.get(kind) or Path(path or source).name


def named(cell: ReleaseCell) -> str:
    """Return a cell's name in words."""
    if cell.protocol in CONTROLS:
        return f"{cell.data}, {cell.protocol}"
    return f"{cell.data}, {cell.protocol}, {cell.split}, epsilon {cell.epsilon:,g}"


def _epsilon(sweep: Sweep[ReleaseScenario], line: Line) -> float:
    """Return a line's epsilon; k-based's control spends less, and belongs to the epsilon of k-based."""
    if line["split"] != UNIFORM_AT_K_BASED:
        return float(line["epsilon"])
    return float(line.get("release.epsilon", sweep.scenario.release.epsilon))


def _gathered(rows: Iterable[_Row], twice: Callable[[ReleaseCell, int], str]) -> Figures:
    gathered: dict[ReleaseCell, dict[int, Mapping[str, float]]] = {}
    for cell, seed, row in rows:
        figures = {metric: value for metric, value in row.items() if value is not None and math.isfinite(value)}
        # A control may be in several cells of a sweep; any other second trial has settings that a cell does not name.
        if gathered.setdefault(cell, {}).setdefault(seed, figures) != figures:
            raise CompareError(f"{twice(cell, seed)}; a cell is a data set, protocol, split and epsilon")
    return gathered


def _cell(data: str, protocol: str, split: str, epsilon: float) -> ReleaseCell:
    protocol = protocol.lower()
    if protocol in CONTROLS:
        return ReleaseCell(data, protocol, "", math.inf)
    return ReleaseCell(data, _PROTOCOLS.get(protocol, protocol), _SPLITS.get(split, split), epsilon)
