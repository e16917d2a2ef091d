"""The comparison of a release-game run with the figures that [LD] published seed by seed.

A cell is a data set, protocol, split and epsilon; seeds are those that split the table. Under a protocol both sides
drew their own noise, so that only distributions can agree. The mean difference of a metric is compared with its
standard error: s / sqrt(n) of the n paired differences, with n - 1 degrees of freedom, for two seeds or more in common
(what a seed's split does to both sides drops out); else Welch's, with his degrees of freedom, for two seeds or more on
each side; else there are too few.

Few seeds estimate the standard error badly. The tolerance is therefore a Student quantile, as far out as 2, or 3, of
the normal law, times the standard error. Without a protocol nothing is random but the split, and each seed's figures
must be the same but for rounding.

[LD]'s main study has the same sensitive columns throughout; in its appendix each seed draws some. Here a seed draws the
same ones (`sim.datasets.coded.CodedTable.drawing`), so that seeds are paired there too. The files of the two studies
have the same columns and cells: the command says which study a run is for.

[LD]: Arcolezi, Makhlouf, Palamidessi, DBSec 2023, and the results in its authors' repository.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np

from fairwall.errors import UserError
from fairwall.laws.local import CLEAN
from sim.datasets.coded import PREPARED
from sim.games import read
from sim.games.game import Line
from sim.games.release.scenario import ReleaseScenario
from sim.games.release.seeds import (
    METRICS,
    RATES,
    CompareError,
    Figures,
    ReleaseCell,
    named,
    of_run,
    published,
    studied,
    together,
)
from sim.report.notation import number
from sim.runs.trials import read_trials
from sim.scenarios.sweep import Sweep

BARS = (0.12, 0.025)
"""Largest shares of comparisons beyond 2, and beyond 3, standard errors in a run that agrees.

The published seeds compared with themselves have 6.2% beyond 2 on average, and 12.2% at the 95th percentile. Groups'
rates hardly change that: with 10 seeds against the other 10 the eight metrics have 4.4% and 8.8%, with rates 4.4% and
8.7%; with 3 against 17, 7.5% and 13.0%, with rates 7.4% and 11.7%."""

REPRODUCTION_CELLS, REPRODUCTION_SEEDS = 300, 3
"""Fewest cells, and seeds in each, of a reproduction of the study."""

ROUNDING = 1e-12
"""Largest difference that the order of a sum explains."""

DRAWN = (2, 6)
"""Smallest and largest number of sensitive columns that a seed draws in [LD]'s appendix."""

_ERRORS = (2.0, 3.0)


@dataclass(frozen=True)
class CellComparison:
    """The comparison of one metric in one cell, over the seeds in common, or the run's where none are paired.

    ``difference`` is the run's less the published one: of means, or without a protocol the largest of a seed.
    ``tolerances`` are at 2 and at 3 standard errors; None where there are too few seeds.
    """

    cell: ReleaseCell
    metric: str
    seeds: int
    difference: float
    tolerances: tuple[float, float] | None

    @property
    def beyond(self) -> int:
        """Number of standard errors that the difference exceeds: 0, 2 or 3."""
        if self.tolerances is None or abs(self.difference) <= self.tolerances[0]:
            return 0
        return 2 if abs(self.difference) <= self.tolerances[1] else 3


@dataclass(frozen=True)
class Held:
    """A run compared with published figures.

    ``comparisons`` are of every common cell and metric with a figure on both sides, those with too few seeds too. If
    ``exact``, each seed must agree but for rounding, as without a protocol. ``published`` is the number of cells in the
    file, ``left_out`` that of non-finite figures in common cells. ``drawn`` is whether the run drew its sensitive
    columns, as [LD]'s appendix does. ``ours`` and ``theirs`` are all figures of the run, and those of the file's common
    cells. ``otherwise`` has the training settings that differ from [LD]'s, in words.
    """

    comparisons: tuple[CellComparison, ...]
    exact: bool
    published: int
    left_out: int
    drawn: bool
    ours: Figures = field(repr=False)
    theirs: Figures = field(repr=False)
    otherwise: str = ""

    @property
    def compared(self) -> tuple[CellComparison, ...]:
        """The comparisons with enough seeds."""
        return tuple(each for each in self.comparisons if each.tolerances is not None)

    def cells(self, seeds: int = 1) -> int:
        """Return the number of cells compared in at least this many seeds."""
        return len({each.cell for each in self.compared if each.seeds >= seeds})

    def share(self, errors: int) -> float:
        """Return the share of comparisons beyond this many standard errors, in [0, 1]."""
        return sum(each.beyond >= errors for each in self.compared) / len(self.compared)

    @property
    def well(self) -> bool:
        """Whether the run agrees: in every comparison without a protocol, else within the bars."""
        if self.exact:
            return self.share(2) == 0
        return all(self.share(int(errors)) <= bar for errors, bar in zip(_ERRORS, BARS, strict=True))

    @property
    def reproduction(self) -> bool:
        """Whether the comparison covers enough for a statement on the whole study."""
        return self.cells(REPRODUCTION_SEEDS) >= REPRODUCTION_CELLS


Run = tuple[Sweep[ReleaseScenario], Sequence[Line]]


def run_of(folder: Path) -> Run:
    """Read a run's scenario and lines; UserError if it is no run's folder, of another game, or no trial finished."""
    if not (folder / "scenario.toml").is_file():
        raise UserError(f"{folder}: not a run's folder: it has no scenario.toml")
    sweep = read(str(folder / "scenario.toml"))
    if not isinstance(sweep.scenario, ReleaseScenario):
        raise UserError(f"{folder}: the {sweep.game} game has no published figures seed by seed")
    lines = read_trials(folder / "trials.jsonl")
    if not lines:
        raise UserError(f"{folder}: no trial finished")
    return sweep, lines


def compare(runs: Sequence[Run], file: Path) -> Held:
    """Compare the lines of one run or more with a file of published figures, as `seeds.published` reads it.

    Raises DataError if the file cannot be read as a table, or lacks a column; CompareError if its content is invalid, a
    run's data set is none of [LD]'s, runs are of two studies or have different models of the same cell and seed, or
    nothing can be compared.
    """
    otherwise = _as_published([sweep for sweep, _ in runs])
    printed, drawn = published(file), _drawn([sweep for sweep, _ in runs])
    own = together([of_run(sweep, lines, studied) for sweep, lines in runs])
    common = [cell for cell in own if cell in printed]
    if not common:
        raise CompareError(f"{file}: has no cell in common with the run, whose cells are like {named(next(iter(own)))}")
    exact = common[0].protocol == CLEAN
    compared = _seed_by_seed if exact else _in_law
    comparisons = tuple(
        each
        for cell in common
        for metric, key in (METRICS | RATES).items()
        if (each := compared(cell, metric, _by_seed(own[cell], key), _by_seed(printed[cell], key))) is not None
    )
    left_out = sum(_gaps(own[cell]) + _gaps(printed[cell]) for cell in common)
    theirs = {cell: printed[cell] for cell in common}
    held = Held(comparisons, exact, len(printed), left_out, drawn, own, theirs, otherwise)
    if not held.compared:
        why = "has no seed in common with the run" if exact else "the run has too few seeds in each cell to be compared"
        raise CompareError(f"{file}: {why}")
    return held


def _drawn(sweeps: Sequence[Sweep[ReleaseScenario]]) -> bool:
    """Return whether sensitive columns are those of [LD]'s appendix, not its main study; CompareError if of neither."""
    studies = set()
    for cell in chain.from_iterable(sweep.cells for sweep in sweeps):
        data = cell.scenario.data
        known = PREPARED.get(data.source.partition(":")[0])
        if data.candidates or (data.sensitive and known and set(data.sensitive) != set(known.sensitive)):
            raise CompareError("data.sensitive, data.candidates: no figures are published of other columns than theirs")
        if data.sensitive_drawn not in ((), DRAWN):
            raise CompareError(f"data.sensitive_drawn: figures are published of {list(DRAWN)} alone")
        studies.add(bool(data.sensitive_drawn))
    if len(studies) > 1:
        raise CompareError("data.sensitive_drawn: there are cells with and without it, which are two studies")
    return studies.pop()


def _as_published(runs: Iterable[Sweep[ReleaseScenario]]) -> str:
    """Return the training settings that differ from [LD]'s; CompareError if the people differ."""
    otherwise: dict[str, None] = {}
    for one in (cell.scenario for sweep in runs for cell in sweep.cells):
        usual = type(one.data).model_fields["test_share"].default
        for key, played, theirs in (
            ("data.test_share", one.data.test_share, usual),
            ("release.queries_share", one.release.queries_share, 0.0),
        ):
            if played != theirs:
                raise CompareError(f"{key}: figures are published of {theirs:g} alone, not of {played:g}")
        known = PREPARED.get(one.data.source.partition(":")[0])
        for key in ("depth", "rate", "trees"):
            asked = getattr(one.developer, key)
            if known and asked not in (None, theirs := getattr(known.boosting, key)):
                otherwise[f"developer.{key} {asked:g}, published {number(theirs, 4)}"] = None
    return "; ".join(otherwise)


def _seed_by_seed(
    cell: ReleaseCell, metric: str, played: Mapping[int, float], published: Mapping[int, float]
) -> CellComparison | None:
    differences = [played[seed] - published[seed] for seed in played if seed in published]
    if not differences:
        return None
    return CellComparison(cell, metric, len(differences), max(differences, key=abs), (ROUNDING, ROUNDING))


def _in_law(
    cell: ReleaseCell, metric: str, played: Mapping[int, float], published: Mapping[int, float]
) -> CellComparison | None:
    if not played or not published:
        return None
    pairs = [seed for seed in played if seed in published]
    if len(pairs) > 1:
        differences = np.array([played[seed] - published[seed] for seed in pairs])
        error = math.sqrt(differences.var(ddof=1) / len(pairs))
        return CellComparison(cell, metric, len(pairs), float(differences.mean()), _tolerances(error, len(pairs) - 1))
    ours, theirs = (np.array(list(side.values())) for side in (played, published))
    difference = float(ours.mean() - theirs.mean())
    if min(len(ours), len(theirs)) < 2:
        return CellComparison(cell, metric, len(ours), difference, None)
    squares = [side.var(ddof=1) / len(side) for side in (ours, theirs)]
    # Satterthwaite's degrees of freedom; irrelevant where nothing varies.
    below = sum(square**2 / (len(side) - 1) for square, side in zip(squares, (ours, theirs), strict=True))
    degrees = sum(squares) ** 2 / below if below > 0 else 1.0
    return CellComparison(cell, metric, len(ours), difference, _tolerances(math.sqrt(sum(squares)), degrees))


def _tolerances(error: float, degrees: float) -> tuple[float, float]:
    from scipy.special import ndtr, stdtrit

    two, three = (max(ROUNDING, error * float(stdtrit(degrees, ndtr(errors)))) for errors in _ERRORS)
    return two, three


def _by_seed(seeds: Mapping[int, Mapping[str, float]], key: str) -> dict[int, float]:
    return {seed: figures[key] for seed, figures in seeds.items() if key in figures}


def _gaps(seeds: Mapping[int, Mapping[str, float]]) -> int:
    return sum(key not in figures for figures in seeds.values() for key in METRICS.values())
