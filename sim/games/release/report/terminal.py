"""The table at the end of a run of the release game, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sim.games.game import Line
from sim.games.release.report.figures_of import shown, text_of
from sim.games.release.scenario import UNIFORM_AT_K_BASED
from sim.report.notation import setting, symbol
from sim.report.terminal import Fitted, frame, kept, left_out
from sim.scenarios.sweep import Sweep

_CAPTION = (
    "Means over trials, of the model on clean test rows; SPD, EOD and OAD: advantaged less disadvantaged, points; DI: "
    "disadvantaged over advantaged. guess: who is advantaged, of those trained on, guessed from the release alone and "
    "with features and labels (mix: and queries about them), % right"
)
_NAMES = ("release.protocol", "release.split", "release.epsilon")
"""What is swept and short enough for one line a cell."""

_WIDE = 80
_FOLDED = 8
"""So many letters what is swept besides gets at least."""

_STARRED = {UNIFORM_AT_K_BASED: "uniform*"}
_STAR = "\n* at the epsilon that k-based gives the protected column"


def terminal(sweep: Sweep, summary: Sequence[Line]) -> Fitted | Text:
    """Lay out a run's summary for a terminal."""
    if not summary:
        return Text("No trial finished.", style="dim")
    return Fitted(lambda room: _laid(sweep, summary, room))


def _laid(sweep: Sweep, summary: Sequence[Line], room: int) -> Table:
    figures = [figure for figure in shown(summary) if figure.in_terminal]
    columns = {figure.short: [text_of(figure, cell) for cell in summary] for figure in figures}
    axes = sweep.scenario.axes
    keys = [[_head(key), *(_STARRED.get(cell[key], setting(cell[key])) for cell in summary)] for key in axes]
    # What may take several lines is no reason to leave a column out.
    fixed = [texts for key, texts in zip(axes, keys, strict=True) if key in _NAMES]
    left = room - sum(_FOLDED + 2 for key in axes if key not in _NAMES)
    fitting = kept(fixed, columns, ("acc", "guess\nalone", "guess\nall"), left)
    table = frame(sweep.scenario.scenario.name, _caption(sweep, summary) + left_out(columns, fitting))
    for key in axes:
        table.add_column(Text(_head(key)), overflow="fold", no_wrap=key in _NAMES and room >= _WIDE)
    for head in fitting:
        table.add_column(Text(head), justify="right", no_wrap=True)
    for row in range(len(summary)):
        table.add_row(*(Text(texts[row + 1]) for texts in keys), *(Text(texts[row]) for texts in fitting.values()))
    return table


def _caption(sweep: Sweep, summary: Sequence[Line]) -> str:
    known = sorted(cell["leakage_baseline"] for cell in summary)
    low, high = f"{known[0]:.1f}", f"{known[-1]:.1f}"
    commoner = f"; calling everybody by the commoner group: {low if low == high else f'{low} to {high}'}."
    starred = any(cell.scenario.release.split in _STARRED for cell in sweep.cells)
    return _CAPTION + commoner + (_STAR if starred else "")


def _head(key: str) -> str:
    return "ε" if key == "release.epsilon" else symbol(key).replace(" ", "\n")
