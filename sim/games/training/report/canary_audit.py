"""What an outsider's guesses about canaries say of the epsilon that was promised."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sim.games.game import Line
from sim.games.training.canaries import LEVEL
from sim.games.training.report.cells import cell_table, name_of, promised_of
from sim.report.dot_plot import Panel, dot_plot
from sim.report.drawing import Figure
from sim.report.estimates import Estimate
from sim.report.notation import number
from sim.report.page import Section
from sim.report.tables import Column

BELOW = "below what is promised"
ABOVE = "above what is promised: something is broken"
NOTHING = "nothing is promised"

METHOD = (
    "Each canary, a record with its label turned over, was trained on if a coin said so. The adversary sees the "
    "model's scores, and guesses about those of which it is surest. Right guesses of all trials count together "
    "(Steinke, Nasr and Jagielski 2023): an epsilon is refuted if so many right ones have a probability of at most "
    f"{LEVEL:.0%} under it. A cell whose promise holds is found above it with that probability at most. Nothing is "
    "proved by a low one: a better adversary may refute more."
)


def audited(summary: Sequence[Line]) -> list[Line]:
    """Keep the cells with canaries."""
    return [cell for cell in summary if "canaries" in cell]


def verdict(cell: Line) -> str:
    """Hold what is refuted against what is promised."""
    promised = promised_of(cell)
    if math.isinf(promised):
        return NOTHING
    return ABOVE if cell["epsilon_refuted"] > promised else BELOW


def section(axes: Sequence[str], cells: Sequence[Line]) -> Section:
    """Tell of the canaries of cells that have some, at least one."""
    columns = [
        Column("canaries", [f"{cell['canaries']:,}" for cell in cells]),
        Column("guessed", [f"{cell['guessed']:,}" for cell in cells]),
        Column("right", [f"{cell['right']:,}" for cell in cells]),
        Column("ε refuted", [number(cell["epsilon_refuted"]) for cell in cells]),
        Column("ε promised", [number(promised_of(cell)) for cell in cells]),
        Column("verdict", [verdict(cell) for cell in cells], numeric=False),
    ]
    return Section(
        "canaries",
        "Canaries",
        before=(METHOD,),
        table=cell_table(axes, cells, columns, ("Counts over all trials of a cell.",)),
        figures=(_figure(axes, cells),),
    )


def _figure(axes: Sequence[str], cells: Sequence[Line]) -> Figure:
    def rows(values: Sequence[float]) -> list[tuple[str, Estimate | None]]:
        return [
            (name_of(axes, cell), None if math.isinf(value) else Estimate(value))
            for cell, value in zip(cells, values, strict=True)
        ]

    series = {
        "refuted": rows([cell["epsilon_refuted"] for cell in cells]),
        "promised": rows([promised_of(cell) for cell in cells]),
    }
    caption = "Filled circles: the largest ε that the guesses refute. Hollow squares: what was promised, if anything."
    return dot_plot("canaries", "ε that canaries refute, and ε promised", caption, [Panel("ε", series, level=0.0)])
