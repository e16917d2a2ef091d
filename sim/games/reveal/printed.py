"""A paper's printed figures about cells of the reveal game, compared with the measured ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sim.games.game import Line
from sim.games.reveal.cells import ReportCell
from sim.games.reveal.scenario import RevealFigure
from sim.report import reproduction
from sim.report.cells import Swept
from sim.report.columns import Sheet
from sim.report.estimates import PERCENT, estimate
from sim.report.notation import number
from sim.report.reproduction import FigureComparison, region
from sim.scenarios.sweep import Sweep

_LEAKAGE, _PEOPLE, _FACTOR = 5.0, 0.025, 2.0
"""Margins within which figures match: leakage in points, people as a share of all, errors as a factor."""

_MARGINS = (
    f"{_LEAKAGE:g} points of leakage, 1 of {1 / _PEOPLE:.0f} people, a factor of {_FACTOR:g} of an average error. "
    "Attribute-Conceal's noise has no mean: our median stands beside its average. Printed errors are not those of the "
    "printed formulas: fairwall papers show AR-51"
)


def table(sweep: Sweep, cells: Sequence[ReportCell]) -> Sheet[FigureComparison]:
    """Return the table of printed figures and ours."""
    played = [{**cell.summary, "lines": cell.trials} for cell in cells]
    rows = reproduction.comparisons(sweep, played, _beside)
    swept = Swept(sweep.scenario.axes, silent=("own",))
    return reproduction.beside_ours(rows, swept.name, _MARGINS)


def _beside(figure: RevealFigure, cell: Line) -> Iterator[FigureComparison]:
    lines = cell["lines"]
    if figure.leakage is not None:
        ours = estimate([line["leakage"] for line in lines], PERCENT)
        yield FigureComparison("leakage, %", f"{figure.leakage:g}", region(figure.leakage, None, _LEAKAGE), ours)
    if figure.recovered is not None:
        ours = estimate([line["recovered"] for line in lines], (0, cell["n"]))
        within = region(figure.recovered, None, _PEOPLE * cell["n"])
        yield FigureComparison("people right", f"{figure.recovered:g}", within, ours)
    # Cauchy noise has no mean: compare the median.
    key = "query_error_median" if cell["mechanism"] == "conceal" else "query_error_mean"
    errors = [line[key] for line in lines if line.get(key)]
    if figure.query_error_mean and errors:
        ours = estimate([math.log(error) for error in errors]).mapped(math.exp)
        ends = "" if ours.low is None or ours.high is None else f"\u00a0({number(ours.low)} to {number(ours.high)})"
        within = (figure.query_error_mean / _FACTOR, figure.query_error_mean * _FACTOR)
        yield FigureComparison(
            "error", number(figure.query_error_mean, 4), within, ours, tally=number(ours.mean) + ends
        )
