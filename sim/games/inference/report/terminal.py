"""The tables at the end of a run of the inference game, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from sim.games.inference.report.cells import Cell, accuracy_of, distinct, family_of, has_intervals, swept_texts
from sim.games.inference.report.paper_comparison import loader_only, printed_text
from sim.games.inference.report.wording import LOADER, guesses_note
from sim.report.cells import paper_figure, scenario_of
from sim.report.notation import MISSING, symbol
from sim.report.terminal import frame
from sim.scenarios.sweep import Sweep

_VICTIMS = (
    "gap: difference of the accuracies on the two groups, EO: equalized odds gap, points; before and after the "
    "defence. ≤5: victims whose gap is at most 5 points."
)


def terminal(sweep: Sweep, summary: Sequence[Cell]) -> Group:
    """Lay out a run's summary for a terminal of 80 columns: the guesses, and below them the victims."""
    if not summary:
        return Group(Text("No trial finished.", style="dim"))
    return Group(_guesses(sweep, summary), Text(), _victims(sweep, distinct(sweep, summary)))


def _guesses(sweep: Sweep, summary: Sequence[Cell]) -> Table:
    columns = {"b right, %": [accuracy_of(cell).text(1, ends=0) for cell in summary]}
    if has_intervals(summary):
        columns = {
            "b right, % (95%)": columns.pop("b right, %"),
            "all at once": [family_of(cell).ends(0) for cell in summary],
        }
    columns["advantage"] = [f"{cell['advantage']:.2f}" for cell in summary]
    table = _table(sweep, sweep.scenario.scenario.name, guesses_note(summary))
    table.add_column(Text("attack"), no_wrap=True)
    return _filled(table, sweep, summary, [[cell["attack"]] for cell in summary], columns)


def _victims(sweep: Sweep, cells: Sequence[Cell]) -> Table:
    columns = {
        "gap\nbefore": [f"{cell['gap_base']:.1f}" for cell in cells],
        "gap": [f"{cell['gap']:.1f}" for cell in cells],
        "EO\nbefore": [f"{cell['eo_base']:.1f}" for cell in cells],
        "EO": [f"{cell['eo']:.1f}" for cell in cells],
        "right\n%": [f"{cell['accuracy']:.1f}" for cell in cells],
        "gap\n≤5": [f"{cell['below_tau']}/{cell['victims']}" for cell in cells],
    }
    scenarios = [scenario_of(sweep, {key: cell[key] for key in sweep.scenario.axes}) for cell in cells]
    for head, name in (("gap", "gap"), ("EO", "eo"), ("≤5", "below_tau")):
        told = [
            printed_text(paper_figure(scenario), name, scenario, cell)
            for scenario, cell in zip(scenarios, cells, strict=True)
        ]
        if any(told):
            columns[f"paper\n{head}"] = [text or MISSING for text in told]
    said = [_VICTIMS]
    printed = [text for head, texts in columns.items() if head.startswith("paper") for text in texts]
    if printed:
        said.append("paper: as printed there.")
    if any(text.endswith("*") for text in printed):
        said.append("*: on other data, not tested here.")
    if any(map(loader_only, cells)):
        said.append(f"{'†, ' if any(text.endswith('†') for text in printed) else ''}{LOADER}")
    return _filled(_table(sweep, None, " ".join(said)), sweep, cells, [[] for _ in cells], columns)


def _table(sweep: Sweep, title: str | None, caption: str) -> Table:
    table = frame(title, caption)
    for key in sweep.scenario.axes:
        table.add_column(Text(symbol(key)), overflow="fold")
    return table


def _filled(
    table: Table,
    sweep: Sweep,
    cells: Sequence[Cell],
    words: Sequence[Sequence[str]],
    columns: Mapping[str, Sequence[str]],
) -> Table:
    """Fill a table's rows: swept values, words, and columns of numbers."""
    for head in columns:
        table.add_column(Text(head), justify="right", no_wrap=True)
    for row, cell in enumerate(cells):
        numbers = (texts[row] for texts in columns.values())
        table.add_row(*map(Text, (*swept_texts(list(sweep.scenario.axes), cell), *words[row], *numbers)))
    return table
