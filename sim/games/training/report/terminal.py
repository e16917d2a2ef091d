"""The tables at the end of a run of the training game, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from sim.games.game import Line
from sim.games.training.report import canary_audit, printed
from sim.games.training.report.cells import (
    GROUPS,
    accuracy_of,
    axis_columns,
    gap_of,
    models_of,
    of_group,
    promised_of,
    rates_of,
)
from sim.games.training.report.printed import comparisons
from sim.games.training.scenario import TrainingScenario
from sim.report.estimates import Estimate
from sim.report.notation import MISSING, number
from sim.report.terminal import Fitted, fitted, frame, kept, left_out
from sim.scenarios.sweep import Sweep

_MODELS = (
    "gap: the risk difference, advantaged less disadvantaged; few, many: accuracy of the disadvantaged and of the "
    "advantaged group; ε: promised to records."
)
_RATES = "Root mean square errors of the told rates: by the noise, and by which people were drawn."
_CANARIES = "The largest ε that guesses about canaries refute, at 5%, beside the promised one."

_WIDE = 21
"""So much room what tells cells apart may take before columns move together."""

_WIDEST = 80
"""In narrower terminals everything that tells cells apart may be folded."""

_ROOM = 22
"""So many letters what tells cells apart may have without being folded."""


def terminal(sweep: Sweep[TrainingScenario], summary: Sequence[Line]) -> Group:
    """Lay out a run's summary for a terminal."""
    if not summary:
        return Group(Text("No trial finished.", style="dim"))
    return Group(*_tables(sweep, summary))


def _tables(sweep: Sweep[TrainingScenario], summary: Sequence[Line]) -> Iterator[Fitted]:
    axes, title = sweep.scenario.axes, sweep.scenario.scenario.name
    if models := models_of(summary):
        columns = {
            "accuracy": [bracketed(accuracy_of(cell)) for cell in models],
            "gap": [bracketed(gap_of(cell)) for cell in models],
            "few": [_mean(of_group(cell, "accuracies", 0)) for cell in models],
            "many": [_mean(of_group(cell, "accuracies", 1)) for cell in models],
            "ε": [number(promised_of(cell)) for cell in models],
        }
        yield table(axes, models, title, _MODELS, columns)
    if rates := rates_of(summary):
        columns = {
            f"{group}\n{what}": [number(cell[key][place], 2) for cell in rates]
            for place, group in enumerate(GROUPS)
            for what, key in (("noise", "noise_errors"), ("sampling", "sampling_errors"))
        }
        yield table(axes, rates, None if models else title, _RATES, columns)
    if audited := canary_audit.audited(summary):
        columns = {
            "right": [f"{cell['right']:,} of {cell['guessed']:,}" for cell in audited],
            "refuted": [number(cell["epsilon_refuted"]) for cell in audited],
            "promised": [number(promised_of(cell)) for cell in audited],
        }
        yield table(axes, audited, None, _CANARIES, columns)
    if rows := comparisons(sweep, models):
        yield fitted(printed.table(axes, rows))


def bracketed(found: Estimate, digits: int = 3) -> str:
    """Write a number and its interval, shorter than a page does: shares without their 0."""
    numbers = [found.mean] if found.low is None or found.high is None else [found.mean, found.low, found.high]
    mean, *ends = (_short(number, digits) for number in numbers)
    return f"{mean} [{','.join(ends)}]" if ends else mean


def _short(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}".replace("-", "−")
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def _mean(found: Estimate | None) -> str:
    return MISSING if found is None else _short(found.mean, 3)


def table(
    axes: Sequence[str],
    cells: Sequence[Line],
    title: str | None,
    caption: str,
    columns: Mapping[str, Sequence[str]],
) -> Fitted:
    """Lay out cells, a row each: what tells them apart and columns of texts."""
    return Fitted(lambda room: _laid(axes, cells, title, caption, columns, room))


def _laid(
    axes: Sequence[str],
    cells: Sequence[Line],
    title: str | None,
    caption: str,
    columns: Mapping[str, Sequence[str]],
    room: int,
) -> Table:
    told = axis_columns(axes, cells)
    letters = sum(max(map(len, column.texts)) for column in told)
    wide = letters + 2 * len(told) > _WIDE
    main = list(columns)[:2]
    shown = kept(([one.head, *one.texts] for one in told), columns, main, room, 1 if wide else 2)
    laid = frame(title, caption + left_out(columns, shown), padding=(0, 0 if wide else 1, 0, 0))
    for column in told:
        laid.add_column(Text(column.head), overflow="fold", no_wrap=letters <= _ROOM and room >= _WIDEST)
    for name in shown:
        laid.add_column(Text(name), justify="right", no_wrap=True, overflow="fold")
    for row in range(len(cells)):
        texts = (*(column.texts[row] for column in told), *(column[row] for column in shown.values()))
        laid.add_row(*map(Text, texts))
    return laid
