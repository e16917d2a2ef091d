"""The tables at the end of a run of the disclosure game, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from sim.games.disclosure.report.cells import advantage_of, bound_text, head, linked_of
from sim.games.game import Line
from sim.report.estimates import Estimate
from sim.report.notation import MISSING, number, setting
from sim.report.terminal import Fitted, frame, kept, left_out
from sim.scenarios.sweep import Sweep

_CAPTION = (
    "The secret's prior is 0.50. posterior: what the truth was given after the release; advantage: P(guess 1 | secret "
    "1) − P(guess 1 | secret 0), with its 95% interval; law: the largest by the public law; bound: tanh(ε/2)."
)
_STAR = " *: no bound here, since the secret goes with other people's answers."
_RECORDS = (
    "records: which record is Alice's. prior: one of all; law: one of those with her quasi-identifiers; unique: trials "
    "in which only one has them."
)


def terminal(sweep: Sweep, summary: Sequence[Line]) -> Fitted | Text:
    """Lay out a run's summary for a terminal: the secret, and below it the records."""
    if not summary:
        return Text("No trial finished.", style="dim")
    return Fitted(lambda room: _laid(sweep, summary, room))


def _laid(sweep: Sweep, summary: Sequence[Line], room: int) -> Group:
    star = "" if all(cell["bound_applies"] for cell in summary) else _STAR
    columns = {
        "post-\nerior": [f"{cell['posterior_of_truth']:.2f}" for cell in summary],
        "advantage": [MISSING if cell["advantage"] is None else _bracketed(advantage_of(cell)) for cell in summary],
        "law": [f"{cell['advantage_law']:.2f}" for cell in summary],
        "bound": [bound_text(cell) for cell in summary],
    }
    tables = [_table(sweep, summary, sweep.scenario.scenario.name, _CAPTION + star, columns, room)]
    named = [cell for cell in summary if cell["named"]]
    if named:
        records = {
            "prior": [number(cell["linked_prior"], 2) for cell in named],
            "right": [_bracketed(linked_of(cell)) for cell in named],
            "law": [f"{cell['linked_law']:.2f}" for cell in named],
            "unique": [f"{cell['unique']:.2f}" for cell in named],
        }
        tables.append(_table(sweep, named, None, _RECORDS, records, room))
    return Group(*tables)


def _bracketed(found: Estimate) -> str:
    """Write a number and its interval, shorter than a page does."""
    interval = "" if found.low is None or found.high is None else f" [{found.low:.2f},{found.high:.2f}]"
    return f"{found.mean:.2f}{interval}".replace("-", "−")


def _table(
    sweep: Sweep,
    cells: Sequence[Line],
    title: str | None,
    caption: str,
    columns: Mapping[str, Sequence[str]],
    room: int,
) -> Table:
    axes = sweep.scenario.axes
    keys = [[head(key), *(setting(cell[key]) for cell in cells)] for key in axes]
    shown = kept(keys, columns, ("advantage", "right"), room)
    table = frame(title, caption + left_out(columns, shown))
    for key in axes:
        table.add_column(Text(head(key)), overflow="fold")
    for name in shown:
        table.add_column(Text(name), justify="right", no_wrap=True)
    for row, cell in enumerate(cells):
        numbers = (texts[row] for texts in shown.values())
        table.add_row(*(Text(setting(cell[key])) for key in axes), *map(Text, numbers))
    return table
