"""The figures of the page of a run of the game of groups: whom the guess names right, group by group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sim.games.game import Line
from sim.games.groups.report.cells import EPSILON, attack_of, leakage_of, name_of, right_of, value_of
from sim.report.dot_plot import Panel, Row, dot_plot
from sim.report.drawing import Figure, Look
from sim.scenarios.sweep import Sweep

_TITLE = "Who is named right, by group"
_CAPTION = (
    "Of each group's people, the percentage that the guess names right, with 95% intervals over the trials; a panel an "
    "epsilon. The last row is the leakage, in which groups count equally."
)
_EQUALLY = "all, equally"
_PANELS = 4
"""So many stand side by side."""


def draw(sweep: Sweep, summary: Sequence[Line], look: Mapping[str, Look]) -> Iterator[Figure]:
    """Draw a run's summary: a figure for each set of groups, in it a panel for each epsilon.

    Parameters
    ----------
    look : mapping of str to Look
        Of each attack.
    """
    sets: dict[tuple[str, ...], list[Line]] = {}
    for cell in summary:
        sets.setdefault(tuple(cell["right"]), []).append(cell)
    axes = [key for key in sweep.scenario.axes if key != EPSILON]
    for number, cells in enumerate(sets.values(), 1):
        varying = [key for key in axes if _values(key, cells) > 1]
        about = ", ".join(value_of(cells[0][key]) for key in axes if _values(key, summary) > _values(key, cells) == 1)
        epsilons = list(dict.fromkeys(cell["epsilon"] for cell in cells))
        for first in range(0, len(epsilons), _PANELS):
            panels = [_panel(cells, varying, epsilon) for epsilon in epsilons[first : first + _PANELS]]
            title = f"{_TITLE}: {about}" if about else _TITLE
            name = f"by-group-{number}-{1 + first // _PANELS}"
            own = {_series(varying, cell): look[attack_of(sweep.scenario.axes, cell)] for cell in cells}
            yield dot_plot(name, title, _CAPTION, panels, level="without answers", alike=True, look=own)


def _panel(cells: Sequence[Line], varying: Sequence[str], epsilon: object) -> Panel:
    """Draw cells of one set of groups at one epsilon, a mark for each setting of what else was swept."""
    named = {(_series(varying, cell), cell["epsilon"]): cell for cell in cells}
    series = {name: _rows(cells[0], named.get((name, epsilon))) for name, _ in named}
    return Panel(f"ε {value_of(epsilon)}", series, level=cells[0]["chance"])


def _series(varying: Sequence[str], cell: Line) -> str:
    return name_of(varying, cell) if varying else ""


def _rows(like: Line, cell: Line | None) -> list[Row]:
    """Give a cell's numbers; those of a cell that was not played are missing."""
    rows: list[Row] = [(group, right_of(cell, group) if cell else None) for group in like["right"]]
    return [*rows, (_EQUALLY, leakage_of(cell) if cell else None)]


def _values(key: str, cells: Sequence[Line]) -> int:
    """Count what a key is set to."""
    return len({str(cell[key]) for cell in cells})
