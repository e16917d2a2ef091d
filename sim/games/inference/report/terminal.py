"""The tables at the end of a run of the inference game, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from sim.games.inference.report.cells import Cell, distinct, swept_texts
from sim.games.inference.report.paper_comparison import loader_only, printed_text
from sim.games.inference.report.wording import GUESSES, LOADER, interval
from sim.report.cells import paper_figure, scenario_of
from sim.report.notation import MISSING, symbol
from sim.scenarios.sweep import Sweep

_VICTIMS = (
    "gap: difference of the accuracies on the two groups, EO: equalized odds gap, points; before and after the "
    "defence. ≤5: victims whose gap is at most 5 points."
)


def terminal(sweep: Sweep, summary: Sequence[Cell]) -> Group:
    """Lay out a run's summary for a terminal of 80 columns: the guesses, and below them the victims."""
    keys = list(sweep.scenario.axes)
    guesses, victims = _table(sweep.scenario.scenario.name), _table(None)
    for table in (guesses, victims):
        for key in keys:
            table.add_column(Text(symbol(key)), overflow="fold")
    for head in ("attack", "b right, % (95%)", "all at once", "advantage"):
        guesses.add_column(Text(head), justify="left" if head == "attack" else "right", no_wrap=True)
    for cell in summary:
        family = f"{cell['family_low']:.0f}–{cell['family_high']:.0f}"
        texts = (cell["attack"], interval(cell, 0), family, f"{cell['advantage']:.2f}")
        guesses.add_row(*(Text(text) for text in (*swept_texts(keys, cell), *texts)))
    cells = distinct(sweep, summary)
    columns = {
        "gap\nbefore": [f"{cell['gap_base']:.1f}" for cell in cells],
        "gap": [f"{cell['gap']:.1f}" for cell in cells],
        "EO\nbefore": [f"{cell['eo_base']:.1f}" for cell in cells],
        "EO": [f"{cell['eo']:.1f}" for cell in cells],
        "right\n%": [f"{cell['accuracy']:.1f}" for cell in cells],
        "gap\n≤5": [f"{cell['below_tau']}/{cell['victims']}" for cell in cells],
    }
    scenarios = [scenario_of(sweep, {key: cell[key] for key in keys}) for cell in cells]
    for head, name in (("gap", "gap"), ("EO", "eo"), ("≤5", "below_tau")):
        told = [
            printed_text(paper_figure(scenario), name, scenario, cell)
            for scenario, cell in zip(scenarios, cells, strict=True)
        ]
        if any(told):
            columns[f"paper\n{head}"] = [text or MISSING for text in told]
    for head in columns:
        victims.add_column(Text(head), justify="right", no_wrap=True)
    for row, cell in enumerate(cells):
        victims.add_row(
            *(Text(text) for text in (*swept_texts(keys, cell), *(texts[row] for texts in columns.values())))
        )
    said = [_VICTIMS]
    printed = [text for head, texts in columns.items() if head.startswith("paper") for text in texts]
    if printed:
        said.append("paper: as printed there.")
    if any(text.endswith("*") for text in printed):
        said.append("*: on other data, not tested here.")
    if any(map(loader_only, cells)):
        said.append(f"{'†, ' if any(text.endswith('†') for text in printed) else ''}{LOADER}")
    guesses.caption, victims.caption = Text(GUESSES, style="dim"), Text(" ".join(said), style="dim")
    if not summary:
        return Group(Text("No trial finished.", style="dim"))
    return Group(guesses, Text(), victims)


def _table(title: str | None) -> Table:
    return Table(
        title=None if title is None else Text(title),
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
        caption_justify="left",
    )
