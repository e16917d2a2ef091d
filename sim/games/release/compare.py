"""A run of the release game against the figures that [LD] published seed by seed.

A cell is a data set, protocol, split and epsilon; seeds are those that split the table. Under a protocol both sides
drew noise of their own, so that only laws can agree. The mean difference of a metric is held against its standard
error:

==============================  ======================================================================================
two seeds or more in common     s / sqrt(n), with s the standard deviation of the n differences, n - 1 degrees of
                                freedom: what a seed's split does to both sides drops out
else, two or more on each side  Welch's, with his degrees of freedom
else                            none: too few to compare
==============================  ======================================================================================

Few seeds know their standard error badly. The tolerance is therefore Student's: the quantile that lies as far out as 2,
or 3, of the normal law, times the standard error. Without a protocol nothing is random but the split, and each seed's
figures must be the same but for rounding.

[LD]'s main study has the same sensitive columns throughout; in its appendix each seed draws some. Here a seed draws the
same ones (`sim.datasets.coded.CodedTable.drawing`), so that seeds are paired there too. The files of the two studies
have the same columns and cells, so that nothing in a file tells which it is: the command says which one the run is for.

[LD]: Arcolezi, Makhlouf, Palamidessi, DBSec 2023, and the results in its authors' repository.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fairwall.errors import UserError
from fairwall.laws.local import CLEAN
from fairwall.tables.reading import header, read
from sim.datasets.coded import PREPARED
from sim.games.game import Line
from sim.games.release.scenario import ReleaseScenario
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
"""What a trial's line calls each of the file's figures. [LD]'s code gives its AUC decisions, not scores."""

RATES = {
    "SP_a_1": "sp_advantaged",
    "SP_a_0": "sp_disadvantaged",
    "EO_a_1": "eo_advantaged",
    "EO_a_0": "eo_disadvantaged",
    "OA_a_1": "oad_advantaged",
    "OA_a_0": "oad_disadvantaged",
}
"""The same of the groups' rates that SPD, DI, EOD and OAD are made of; compared where file and run have them."""

_FIGURES = METRICS | RATES

BARS = (0.12, 0.025)
"""The most comparisons that may lie beyond 2, and beyond 3, standard errors.

The published seeds held against themselves have 6.2% beyond 2 on average, and 12.2% at the 95th percentile. Groups'
rates do not move that: with 10 seeds against the other 10 the eight metrics have 4.4% and 8.8%, with rates 4.4% and
8.7%; with 3 against 17, 7.5% and 13.0%, with rates 7.4% and 11.7%.
"""

REPRODUCTION_CELLS, REPRODUCTION_SEEDS = 300, 3
"""So many cells with so many seeds each count as a reproduction."""

ROUNDING = 1e-12
"""A smaller difference is the order of a sum."""

DRAWN = (2, 6)
"""The least and the most sensitive columns in [LD]'s appendix."""

_ERRORS = (2.0, 3.0)
_SOURCES = {"adult-26k": "adult", "acs-coverage": "ACSCoverage", "lsac-coded": "LSAC"}
_CELL = ("protocol", "split", "epsilon")
_SPLITS = {"k_based": "k-based"}
_PROTOCOLS = {"sue": "rappor"}


class CompareError(UserError):
    """A run and a file that cannot be compared. Its text is one line that says why."""


class ReleaseCell(NamedTuple):
    """What trials have in common; without a protocol there is no split, and epsilon is infinite."""

    data: str
    protocol: str
    split: str
    epsilon: float


Figures: TypeAlias = Mapping[ReleaseCell, Mapping[int, Mapping[str, float]]]
"""Finite figures by cell, seed and metric."""


@dataclass(frozen=True)
class Comparison:
    """One metric of one cell.

    Attributes
    ----------
    seeds : those in common, or of the run where none are paired.
    difference : the run's less the published one: of means, or of the seed where it is largest without a protocol.
    tolerances : at 2 and at 3 standard errors; None where there are too few seeds.
    """

    cell: ReleaseCell
    metric: str
    seeds: int
    difference: float
    tolerances: tuple[float, float] | None

    @property
    def beyond(self) -> int:
        """How many standard errors it is beyond: 0, 2 or 3."""
        if self.tolerances is None or abs(self.difference) <= self.tolerances[0]:
            return 0
        return 2 if abs(self.difference) <= self.tolerances[1] else 3


@dataclass(frozen=True)
class Held:
    """A run held against published figures.

    Attributes
    ----------
    comparisons : of every common cell and metric that has a figure on both sides, those with too few seeds too.
    exact : whether each seed must agree but for rounding, as it must without a protocol.
    published : how many cells the file has.
    left_out : how many figures of the common cells are no finite number.
    drawn : whether the run drew its sensitive columns, as [LD]'s appendix does.
    """

    comparisons: tuple[Comparison, ...]
    exact: bool
    published: int
    left_out: int
    drawn: bool = False

    @property
    def compared(self) -> tuple[Comparison, ...]:
        """Those with enough seeds."""
        return tuple(each for each in self.comparisons if each.tolerances is not None)

    def cells(self, seeds: int = 1) -> int:
        """Count the cells compared in so many seeds at least."""
        return len({each.cell for each in self.compared if each.seeds >= seeds})

    def share(self, errors: int) -> float:
        """Give the share of comparisons beyond so many standard errors, in [0, 1]."""
        return sum(each.beyond >= errors for each in self.compared) / len(self.compared)

    @property
    def well(self) -> bool:
        """Whether all agree without a protocol; else, whether no more than the bars allow do not."""
        if self.exact:
            return self.share(2) == 0
        return all(self.share(int(errors)) <= bar for errors, bar in zip(_ERRORS, BARS, strict=True))

    @property
    def reproduction(self) -> bool:
        """Whether it is enough to speak of the whole study."""
        return self.cells(REPRODUCTION_SEEDS) >= REPRODUCTION_CELLS


def compare(sweep: Sweep[ReleaseScenario], lines: Sequence[Line], file: Path) -> Held:
    """Hold a run's lines against a file of published figures.

    Parameters
    ----------
    sweep, lines
        The run's.
    file : Path
        CSV with the columns dataset, protocol, split, epsilon, seed, acc, f1, auc, recall, SPD, DI, EOD and OAD; one
        without protocol, split and epsilon is of models trained on clean attributes. It may have `RATES` as well.

    Raises
    ------
    DataError
        If the file cannot be read as a table, or lacks a column.
    CompareError
        If it holds something else, the run's data set is none of [LD]'s, or nothing can be compared.
    """
    published, gaps = _published(file)
    drawn = _drawn(sweep)
    own, own_gaps = _of_run(sweep, lines)
    common = [cell for cell in own if cell in published]
    if not common:
        raise CompareError(
            f"{file}: has no cell in common with the run, whose cells are like {_named(next(iter(own)))}"
        )
    exact = common[0].protocol == CLEAN
    compared = _seed_by_seed if exact else _in_law
    comparisons = tuple(
        each
        for cell in common
        for metric in _FIGURES
        if (each := compared(cell, metric, _by_seed(own[cell], metric), _by_seed(published[cell], metric))) is not None
    )
    held = Held(comparisons, exact, len(published), sum(gaps[cell] + own_gaps[cell] for cell in common), drawn)
    if not held.compared:
        why = "has no seed in common with the run" if exact else "the run has too few seeds in each cell to be compared"
        raise CompareError(f"{file}: {why}")
    return held


def _drawn(sweep: Sweep[ReleaseScenario]) -> bool:
    """Say whether the run's sensitive columns are those of [LD]'s appendix, and not of its main study.

    Raises
    ------
    CompareError
        If they are of neither.
    """
    studies = set()
    for cell in sweep.cells:
        data = cell.scenario.data
        known = PREPARED.get(data.source.partition(":")[0])
        if data.candidates or (data.sensitive and known and set(data.sensitive) != set(known.sensitive)):
            raise CompareError("data.sensitive, data.candidates: no figures are published of other columns than theirs")
        if data.sensitive_drawn not in ((), DRAWN):
            raise CompareError(f"data.sensitive_drawn: figures are published of {list(DRAWN)} alone")
        studies.add(bool(data.sensitive_drawn))
    if len(studies) > 1:
        raise CompareError("data.sensitive_drawn: the run has cells with and without it, which are two studies")
    return studies.pop()


def _seed_by_seed(
    cell: ReleaseCell, metric: str, own: Mapping[int, float], published: Mapping[int, float]
) -> Comparison | None:
    differences = [own[seed] - published[seed] for seed in own if seed in published]
    if not differences:
        return None
    return Comparison(cell, metric, len(differences), max(differences, key=abs), (ROUNDING, ROUNDING))


def _in_law(
    cell: ReleaseCell, metric: str, own: Mapping[int, float], published: Mapping[int, float]
) -> Comparison | None:
    if not own or not published:
        return None
    pairs = [seed for seed in own if seed in published]
    if len(pairs) > 1:
        differences = np.array([own[seed] - published[seed] for seed in pairs])
        error = math.sqrt(differences.var(ddof=1) / len(pairs))
        return Comparison(cell, metric, len(pairs), float(differences.mean()), _tolerances(error, len(pairs) - 1))
    ours, theirs = (np.array(list(side.values())) for side in (own, published))
    difference = float(ours.mean() - theirs.mean())
    if min(len(ours), len(theirs)) < 2:
        return Comparison(cell, metric, len(ours), difference, None)
    squares = [side.var(ddof=1) / len(side) for side in (ours, theirs)]
    # Satterthwaite's; where nothing varies, nothing depends on it.
    below = sum(square**2 / (len(side) - 1) for square, side in zip(squares, (ours, theirs), strict=True))
    degrees = sum(squares) ** 2 / below if below > 0 else 1.0
    return Comparison(cell, metric, len(ours), difference, _tolerances(math.sqrt(sum(squares)), degrees))


def _tolerances(error: float, degrees: float) -> tuple[float, float]:
    from scipy.special import ndtr, stdtrit

    two, three = (max(ROUNDING, error * float(stdtrit(degrees, ndtr(errors)))) for errors in _ERRORS)
    return two, three


def _by_seed(seeds: Mapping[int, Mapping[str, float]], metric: str) -> dict[int, float]:
    return {seed: figures[metric] for seed, figures in seeds.items() if metric in figures}


def _of_run(sweep: Sweep[ReleaseScenario], lines: Sequence[Line]) -> tuple[Figures, dict[ReleaseCell, int]]:
    def rows() -> Iterable[_Row]:
        for line in lines:
            data = _data_set(line.get("data.source", sweep.scenario.data.source))
            cell = _cell(data, line["protocol"], line["split"], float(line["epsilon"]))
            figures = {metric: line[key] for metric, key in _FIGURES.items() if key in line}
            yield cell, line["split_seed"], figures

    return _gathered(rows(), lambda cell, seed: f"the run has several trials of {_named(cell)} with seed {seed}")


def _published(file: Path) -> tuple[Figures, dict[ReleaseCell, int]]:
    name = str(file)
    there = set(header(file, name))
    metrics = [*METRICS, *(rate for rate in RATES if rate in there)]
    columns = [column for column in _CELL if set(_CELL) & there] + ["dataset", "seed", *metrics]
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
                figures = {metric: None if row[metric] in (None, "") else float(row[metric]) for metric in metrics}
                yield cell, int(row["seed"]), figures
            except (TypeError, ValueError):
                raise CompareError(f"{name}: row {number}: epsilon, the seed or a figure is no number") from None

    return _gathered(rows(), lambda cell, seed: f"{name}: {_named(cell)} has seed {seed} more than once")


_Row: TypeAlias = tuple[ReleaseCell, int, Mapping[str, Any]]


def _gathered(rows: Iterable[_Row], twice: Callable[[ReleaseCell, int], str]) -> tuple[Figures, dict[ReleaseCell, int]]:
    """Sort finite figures by cell and seed, and count those that are not."""
    gathered: dict[ReleaseCell, dict[int, Mapping[str, float]]] = {}
    gaps: dict[ReleaseCell, int] = {}
    for cell, seed, row in rows:
        figures = {metric: value for metric, value in row.items() if value is not None and math.isfinite(value)}
        seeds = gathered.setdefault(cell, {})
        # A control may stand in several cells of a sweep; elsewhere a second trial is of something that is not told.
        if seed in seeds and seeds[seed] != figures:
            raise CompareError(f"{twice(cell, seed)}; a cell is a data set, protocol, split and epsilon")
        if seed not in seeds:
            gaps[cell] = gaps.get(cell, 0) + len(row) - len(figures)
        seeds[seed] = figures
    return gathered, gaps


def _cell(data: str, protocol: str, split: str, epsilon: float) -> ReleaseCell:
    protocol = protocol.lower()
    if protocol == CLEAN:
        return ReleaseCell(data, CLEAN, "", math.inf)
    return ReleaseCell(data, _PROTOCOLS.get(protocol, protocol), _SPLITS.get(split, split), epsilon)


def _data_set(source: str) -> str:
    kind = source.partition(":")[0]
    if kind not in _SOURCES:
        raise CompareError(f"data.source: no figures are published of {source!r}, but of {', '.join(_SOURCES)}")
    return _SOURCES[kind]


def _named(cell: ReleaseCell) -> str:
    if cell.protocol == CLEAN:
        return f"{cell.data}, {CLEAN}"
    return f"{cell.data}, {cell.protocol}, {cell.split}, epsilon {cell.epsilon:g}"
