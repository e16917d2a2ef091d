"""The figures of the release game's page: utility, fairness and guesses along epsilon, a line for each protocol."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairwall.laws.local import LOCAL_LAWS
from sim.games.game import Line
from sim.games.release.report.figures_of import FIGURES, CellFigure
from sim.games.release.scenario import CONTROLS, ReleaseScenario
from sim.report.drawing import COLOURS, DASHES, MARKERS, Figure, legend, svg
from sim.report.notation import setting
from sim.scenarios.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_EPSILON, _PROTOCOL = "release.epsilon", "release.protocol"
_DRAWN = ("acc", "f1", "sp", "di", "eo", "oad", "leakage_release", "leakage")

_Series = Mapping[str, Sequence[tuple[float, float]]]


def draw(sweep: Sweep[ReleaseScenario], summary: Sequence[Line]) -> tuple[Figure, ...]:
    """Draw each figure along epsilon where it is swept; controls are level lines."""
    if _EPSILON not in sweep.scenario.axes:
        return ()
    drawn = []
    for figure in FIGURES:
        if figure.key in _DRAWN:
            series, levels = _split(sweep, summary, figure)
            if series:
                drawn.append(_figure(figure, series, levels))
    return tuple(drawn)


def _split(
    sweep: Sweep[ReleaseScenario], summary: Sequence[Line], figure: CellFigure
) -> tuple[_Series, Mapping[str, float]]:
    """Part the cells into lines along epsilon, by what else is swept, and level controls."""
    series: dict[str, list[tuple[float, float]]] = {}
    levels: dict[str, float] = {}
    others = [key for key in sweep.scenario.axes if key not in (_EPSILON, _PROTOCOL)]
    for cell in summary:
        value = cell.get(figure.key)
        if value is None:
            continue
        protocol = cell.get(_PROTOCOL, sweep.scenario.release.protocol)
        epsilon = float(cell[_EPSILON])
        if protocol in CONTROLS or math.isinf(epsilon):
            levels[str(protocol)] = figure.scale * value
        else:
            name = ", ".join([LOCAL_LAWS[protocol].title, *(setting(cell[key]) for key in others)])
            series.setdefault(name, []).append((epsilon, figure.scale * value))
    return {name: sorted(points) for name, points in series.items()}, levels


def _figure(figure: CellFigure, series: _Series, levels: Mapping[str, float]) -> Figure:
    def lines(axes: Axes) -> None:
        for place, (name, points) in enumerate(series.items()):
            axes.plot(
                [epsilon for epsilon, _ in points],
                [value for _, value in points],
                marker=MARKERS[place % len(MARKERS)],
                color=COLOURS[place % len(COLOURS)],
                ls=DASHES[(place // len(COLOURS)) % len(DASHES)],
                ms=4,
                lw=1.3,
                label=name,
            )
        for place, (name, level) in enumerate(levels.items()):
            axes.axhline(level, color="#6b6b6b", lw=1, ls=DASHES[1 + place % 3], label=name)
        axes.set_xscale("log")
        axes.set_xlabel("ε")
        axes.set_ylabel(figure.head)
        legend(axes, ())

    name = f"along-epsilon-{figure.key.replace('_', '-')}"
    caption = "Means over trials. Level lines are controls, which have no epsilon."
    alt = "; ".join(f"{line}: {points[0][1]:.2f} to {points[-1][1]:.2f}" for line, points in series.items())
    return Figure(name, f"{figure.head}, along ε", caption, alt, svg(name, lines))
