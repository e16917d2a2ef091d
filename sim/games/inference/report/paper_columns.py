"""The paper's figures in the inference game's tables: beside ours on the page, and in columns of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sim.games.game import Line
from sim.games.inference.report.paper_comparison import RULE, Comparison, comparisons, printed_text
from sim.report.cells import Swept, paper_figure, scenario_of
from sim.report.columns import Measure, Table
from sim.scenarios.sweep import Sweep

_COLUMNS: tuple[Measure[Comparison], ...] = (
    Measure("figure", of=lambda row: row.what, words=True),
    Measure("paper", of=lambda row: row.printed),
    Measure("ours", of=lambda row: row.measured),
    Measure("verdict", of=lambda row: row.verdict, words=True),
    Measure("where it is printed", of=lambda row: row.source, words=True),
)


def beside(sweep: Sweep, swept: Swept, lines: Sequence[Line], cells: Sequence[Line]) -> Table[Comparison]:
    """Lay out the paper's figures beside ours."""

    def name(row: Comparison) -> str:
        cell = next(cell for cell in cells if all(cell[key] == value for key, value in row.swept.items()))
        return swept.name(cell) or str(cell["defence"])

    rows, key = comparisons(sweep, lines), Measure("cell", of=name)
    return Table(
        "paper", "The paper's figures, beside ours", Swept(()), rows, _COLUMNS, (RULE,), keys=(key,), linked=False
    )


def columns(sweep: Sweep) -> list[Measure[Line]]:
    """Give the paper's figures as the terminal has them."""

    def printed(key: str, cell: Line) -> str | None:
        scenario = scenario_of(sweep, {key: cell[key] for key in sweep.scenario.axes})
        return printed_text(paper_figure(scenario), key, scenario, cell)

    heads = {"gap": "gap", "eo": "EO", "below_tau": "≤5"}
    return [
        Measure(f"paper {key}", of=partial(printed, key), short=f"paper\n{head}", on_page=False)
        for key, head in heads.items()
    ]


def marks(sweep: Sweep, cells: Sequence[Line], loader: str) -> str:
    """Say what these columns are, and what their marks mean; ``loader`` is said of a † if there is one."""
    texts = [text for one in columns(sweep) for cell in cells if (text := one.value(cell))]
    said = ["paper: as printed there."] if texts else []
    if any(text.endswith("*") for text in texts):
        said.append("*: on other data, not tested here.")
    if loader:
        said.append(f"{'†, ' if any(text.endswith('†') for text in texts) else ''}{loader}")
    return " ".join(said)
