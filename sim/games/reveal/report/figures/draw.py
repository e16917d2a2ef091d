"""The figures of the reveal game's report."""

from __future__ import annotations

from collections.abc import Sequence

from sim.games.reveal.report.cells import ReportCell
from sim.games.reveal.report.figures.answer_errors import error_figures
from sim.games.reveal.report.figures.confidence import confidence_figures
from sim.games.reveal.report.figures.leakage import leakage_figures
from sim.games.reveal.report.figures.people import people_figures
from sim.games.reveal.report.figures.trace import trace_figures
from sim.games.reveal.report.figures.tradeoff import tradeoff_figures
from sim.games.reveal.report.figures.until_known import known_figures
from sim.report.drawing import Figure, looks


def draw_figures(cells: Sequence[ReportCell]) -> tuple[Figure, ...]:
    """Draw every figure that the cells have data for."""
    look = looks(cell.mechanism for cell in cells)
    return (
        *tradeoff_figures(cells, look),
        *people_figures(cells),
        *known_figures(cells),
        *leakage_figures(cells, look),
        *confidence_figures(cells, look),
        *error_figures(cells, look),
        *trace_figures(cells),
    )
