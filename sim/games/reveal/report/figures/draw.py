"""The figures of the reveal game's report."""

from __future__ import annotations

from collections.abc import Sequence

from sim.games.reveal.report.cells import ReportCell
from sim.games.reveal.report.figures.answer_errors import error_figures
from sim.games.reveal.report.figures.leakage import leakage_figures
from sim.games.reveal.report.figures.trace import trace_figures
from sim.games.reveal.report.figures.until_known import known_figures
from sim.report.drawing import Figure


def draw_figures(cells: Sequence[ReportCell]) -> tuple[Figure, ...]:
    """Draw every figure that the cells have data for."""
    return (*known_figures(cells), *leakage_figures(cells), *error_figures(cells), *trace_figures(cells))
