"""The table at the end of a run of the release game, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sim.games.game import Line
from sim.games.release.report.figures_of import shown, text_of
from sim.games.release.scenario import UNIFORM_AT_K_BASED
from sim.report.notation import setting, symbol
from sim.report.terminal import frame
from sim.scenarios.sweep import Sweep

_CAPTION = (
    "Means over trials, of the model on clean test rows; SPD, EOD and OAD: advantaged less disadvantaged, points; DI: "
    "disadvantaged over advantaged. guess: who is advantaged, of those trained on, guessed from the release alone and "
    "with features and labels (mix: and queries about them), % right"
)
_NAMES = ("release.protocol", "release.split", "release.epsilon")
"""What is swept and short enough for one line a cell."""

_STARRED = {UNIFORM_AT_K_BASED: "uniform*"}
_STAR = "\n* at the epsilon that k-based gives the protected column"


def terminal(sweep: Sweep, summary: Sequence[Line]) -> Table | Text:
    """Lay out a run's summary for a terminal of 80 columns."""
    if not summary:
        return Text("No trial finished.", style="dim")
    table = frame(sweep.scenario.scenario.name, _caption(sweep, summary))
    axes = sweep.scenario.axes
    for key in axes:
        table.add_column(Text(_head(key)), no_wrap=key in _NAMES, overflow="fold")
    figures = [figure for figure in shown(summary) if figure.in_terminal]
    for figure in figures:
        table.add_column(Text(figure.short), justify="right", no_wrap=True)
    for cell in summary:
        texts = (text_of(figure, cell) for figure in figures)
        table.add_row(*(Text(_STARRED.get(cell[key], setting(cell[key]))) for key in axes), *map(Text, texts))
    return table


def _caption(sweep: Sweep, summary: Sequence[Line]) -> str:
    known = sorted(cell["leakage_baseline"] for cell in summary)
    low, high = f"{known[0]:.1f}", f"{known[-1]:.1f}"
    commoner = f"; calling everybody by the commoner group: {low if low == high else f'{low} to {high}'}."
    starred = any(cell.scenario.release.split in _STARRED for cell in sweep.cells)
    return _CAPTION + commoner + (_STAR if starred else "")


def _head(key: str) -> str:
    return "ε" if key == "release.epsilon" else symbol(key).replace(" ", "\n")
