"""The tables at the end of a run of the inference game, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from sim.games.inference.report.cells import Cell, accuracy_of, distinct, family_of, has_intervals, swept_texts
from sim.games.inference.report.paper_comparison import loader_only, printed_text
from sim.games.inference.report.wording import FEW, LOADER, guesses_note
from sim.report.cells import paper_figure, scenario_of
from sim.report.notation import MISSING, symbol
from sim.report.terminal import Fitted, frame, kept, left_out
from sim.scenarios.sweep import Sweep

_VICTIMS = (
    "gap: difference of the accuracies on the two groups, EO: equalized odds gap, points; before and after the "
    "defence. ≤5: victims whose gap is at most 5 points."
)


def terminal(sweep: Sweep, summary: Sequence[Cell]) -> Fitted | Text:
    """Lay out a run's summary for a terminal: the guesses, and below them the victims."""
    if not summary:
        return Text("No trial finished.", style="dim")
    cells = distinct(sweep, summary)
    return Fitted(lambda room: Group(_guesses(sweep, summary, room), Text(), _victims(sweep, cells, room)))


def _guesses(sweep: Sweep, summary: Sequence[Cell], room: int) -> Table:
    columns = {"b right, %": [accuracy_of(cell).text(1, ends=0) for cell in summary]}
    if has_intervals(summary):
        columns = {
            "b right, % (95%)": columns.pop("b right, %"),
            "all at once": [family_of(cell).ends(0) for cell in summary],
        }
    columns["advantage"] = [f"{cell['advantage']:.2f}" for cell in summary]
    few = "" if has_intervals(summary) else f" {FEW}"
    name = sweep.scenario.scenario.name
    attacks = [[cell["attack"]] for cell in summary]
    main = next(iter(columns))
    return _table(sweep, name, guesses_note(summary) + few, summary, attacks, columns, (main, "advantage"), room)


def _victims(sweep: Sweep, cells: Sequence[Cell], room: int) -> Table:
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
    return _table(sweep, None, " ".join(said), cells, [[] for _ in cells], columns, ("gap",), room)


def _table(
    sweep: Sweep,
    title: str | None,
    caption: str,
    cells: Sequence[Cell],
    attacks: Sequence[Sequence[str]],
    columns: Mapping[str, Sequence[str]],
    main: Sequence[str],
    room: int,
) -> Table:
    """Lay out rows of swept values, attacks, and as many columns of numbers as there is room for."""
    axes = list(sweep.scenario.axes)
    heads = [*map(symbol, axes), *(["attack"] if attacks[0] else [])]
    told = [(*swept_texts(axes, cell), *attack) for cell, attack in zip(cells, attacks, strict=True)]
    shown = kept(zip(*(heads, *told), strict=True), columns, main, room)
    table = frame(title, caption + left_out(columns, shown))
    for head in heads:
        table.add_column(Text(head), overflow="fold")
    for head in shown:
        table.add_column(Text(head), justify="right", no_wrap=True)
    for row, words in enumerate(told):
        table.add_row(*map(Text, (*words, *(texts[row] for texts in shown.values()))))
    return table
