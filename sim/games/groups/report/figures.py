"""The figures of the page of a run of the game of groups: the percentage guessed right, group by group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sim.games.game import Line
from sim.games.groups.report.columns import attack_of, leakage_of, right_of, set_of
from sim.report.cells import Swept
from sim.report.dot_plot import DotPanel, Row, dot_plot
from sim.report.drawing import Figure, MarkStyle
from sim.report.notation import setting

_TITLE = "Who is named right, by group"
_CAPTION = (
    "Of each group's people, the percentage that the guess names right, with 95% intervals over the trials; a panel an "
    "epsilon. The last row is the leakage, in which groups count equally."
)
_PANELS = 4
"""Largest number of panels side by side."""


def draw(swept: Swept, summary: Sequence[Line], look: Mapping[str, MarkStyle]) -> Iterator[Figure]:
    """Yield a figure per set of groups, with a panel per epsilon and a mark per attack; `look` is by attack."""
    sets: dict[tuple[str, ...], list[Line]] = {}
    for cell in summary:
        sets.setdefault(tuple(cell["right"]), []).append(cell)
    for number, (groups, cells) in enumerate(sets.items(), 1):
        attacks = {(attack_of(swept, cell), cell["epsilon"]): cell for cell in cells}
        epsilons = list(dict.fromkeys(epsilon for _, epsilon in attacks))
        about = set_of(swept, cells[0])
        title = f"{_TITLE}: {about}" if about else _TITLE
        for first in range(0, len(epsilons), _PANELS):
            panels = [
                DotPanel(
                    f"ε {setting(epsilon)}",
                    {attack: list(_rows(groups, attacks.get((attack, epsilon)))) for attack, _ in attacks},
                    level=cells[0]["chance"],
                )
                for epsilon in epsilons[first : first + _PANELS]
            ]
            name = f"by-group-{number}-{1 + first // _PANELS}"
            yield dot_plot(name, title, _CAPTION, panels, level="without answers", same_scale=True, look=look)


def _rows(groups: Sequence[str], cell: Line | None) -> Iterator[Row]:
    """Yield a cell's rows; without numbers where this attack was not played at this epsilon."""
    yield from ((group, right_of(cell, group) if cell else None) for group in groups)
    yield "all, equally", leakage_of(cell) if cell else None
