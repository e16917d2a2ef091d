"""The figure of a run in which one epsilon is shared out to a release and to queries: the guesses along the share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sim.games.game import Line
from sim.games.release.report.figures_of import FIGURES
from sim.games.release.scenario import QUERIES_SHARE
from sim.report.drawing import BLACK, COLOURS, DASHES, GREY, MARKERS, Figure, canvas_svg
from sim.report.notation import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_EPSILON = "release.epsilon"

_GUESSES = {
    "leakage_release": "release alone",
    "leakage": "and features, labels",
    "leakage_mixture": "and queries",
}
_PANEL = (2.5, 2.6)


def along_shares(summary: Sequence[Line]) -> tuple[Figure, ...]:
    """Draw who is guessed right along the share of epsilon that buys queries: a panel for each epsilon.

    Parameters
    ----------
    summary : sequence of mapping
        A run's cells, in which `QUERIES_SHARE` is swept. Controls, in which nothing is guessed, are left out.
    """
    panels: dict[float, list[Line]] = {}
    for cell in summary:
        epsilon = float(cell.get(_EPSILON, "nan"))
        if epsilon != float("inf") and any(cell.get(key) is not None for key in _GUESSES):
            panels.setdefault(epsilon, []).append(cell)
    if not panels:
        return ()

    def paint(canvas: Canvas) -> None:
        grid = canvas.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (epsilon, cells) in zip(grid, panels.items(), strict=True):
            _panel(axes, cells)
            axes.set_title("" if epsilon != epsilon else f"ε = {number(epsilon)}")
            axes.set_xlabel("share for queries")
        grid[0].set_ylabel("guessed right, %")
        handles, labels = grid[0].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=8, columnspacing=1.0)

    inches = (0.5 + _PANEL[0] * max(2, len(panels)), 0.5 + _PANEL[1])
    caption = (
        "Who is advantaged of those trained on, guessed right; means over trials, of all protocols. At share 0 nothing "
        "is asked, at 1 nothing is released."
    )
    svg = canvas_svg("along-shares", paint, inches)
    return (Figure("along-shares", "Guesses along the share", caption, _alt(panels), svg, wide=len(panels) > 2),)


def _panel(axes: Axes, cells: Sequence[Line]) -> None:
    for place, (key, label) in enumerate(_GUESSES.items()):
        points = _points(cells, key)
        axes.plot(
            list(points),
            list(points.values()),
            color=COLOURS[place],
            marker=MARKERS[place],
            ls=DASHES[place],
            label=label,
        )
    level = sum(cell["leakage_baseline"] for cell in cells) / len(cells)
    axes.axhline(level, color=GREY, lw=1.1, label="commoner group for all")
    axes.tick_params(colors=BLACK, labelsize=8)


def _points(cells: Sequence[Line], key: str) -> Mapping[float, float]:
    """Give a guess's mean by share."""
    by_share: dict[float, list[float]] = {}
    for cell in cells:
        if cell.get(key) is not None:
            by_share.setdefault(float(cell[QUERIES_SHARE]), []).append(cell[key])
    return {share: sum(values) / len(values) for share, values in sorted(by_share.items())}


def _alt(panels: Mapping[float, Sequence[Line]]) -> str:
    heads = {figure.key: figure.head for figure in FIGURES}
    said = []
    for epsilon, cells in panels.items():
        for key in _GUESSES:
            points = _points(cells, key)
            if points:
                ends = f"{next(iter(points.values())):.1f} to {list(points.values())[-1]:.1f}"
                said.append(f"epsilon {number(epsilon)}, {heads[key]}: {ends}")
    return "; ".join(said)
