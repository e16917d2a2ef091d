"""A paper's printed figures about models, compared with the measured ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sim.games.game import Line
from sim.games.training.cells import GROUPS, accuracy_of, gap_of, name_of, of_group
from sim.games.training.scenario import TrainingFigure, TrainingScenario
from sim.report import reproduction
from sim.report.columns import Sheet
from sim.report.estimates import IntervalEstimate
from sim.report.reproduction import FigureComparison, region
from sim.scenarios.sweep import Sweep

_ACCURACY, _RATE = 1.0, 0.02
"""Margins within which figures match: accuracies in points, risk differences and other rates absolute."""

_MARGINS = (
    f"{_ACCURACY:g} point of accuracy, {_RATE:g} of a risk difference or a rate. The margin is for what a paper does "
    "not print: which rows it tested on, which moves an accuracy on a fifth of Adult by 0.7 points and a risk "
    "difference by 0.015 (95% of the time), and how it prepared the table"
)


def comparisons(sweep: Sweep[TrainingScenario], cells: Sequence[Line]) -> list[FigureComparison]:
    """Return the comparisons of a paper's figures with the cells that they are about."""
    return reproduction.comparisons(sweep, cells, _beside)


def table(axes: Sequence[str], rows: Sequence[FigureComparison]) -> Sheet[FigureComparison]:
    """Return the table of printed figures and ours."""
    return reproduction.beside_ours(rows, lambda cell: name_of(axes, cell), _MARGINS)


def _beside(figure: TrainingFigure, cell: Line) -> Iterator[FigureComparison]:
    percent = accuracy_of(cell).mapped(lambda share: 100 * share)
    yield from _compared("accuracy, %", figure.accuracy, figure.accuracy_sd, _ACCURACY, percent, 1)
    yield from _compared("risk difference", figure.gap, figure.gap_sd, _RATE, gap_of(cell))
    for place, group in enumerate(GROUPS):
        for what, printed, margin, key in (
            ("accuracy", figure.group_accuracy, _ACCURACY / 100, "accuracies"),
            ("false positives", figure.group_fpr, _RATE, "false_positives"),
        ):
            own = None if printed is None else printed[place]
            yield from _compared(f"{what} of the {group}", own, None, margin, of_group(cell, key, place))


def _compared(
    what: str, printed: float | None, sd: float | None, margin: float, ours: IntervalEstimate | None, digits: int = 3
) -> Iterator[FigureComparison]:
    if printed is not None and ours is not None:
        spread = "" if sd is None else f" ± {sd:g}"
        yield FigureComparison(what, f"{printed:g}{spread}", region(printed, sd, margin), ours, digits)
