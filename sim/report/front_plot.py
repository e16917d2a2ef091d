"""Points with intervals both ways; the undominated points stand out and are joined: a Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from sim.report.drawing import BLACK, GREY, MARKERS, Figure, MarkStyle, hollow, on_axes
from sim.report.estimates import IntervalEstimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = (*MARKERS, "<", ">", "p", "h", "*")
"""Enough marks for the eight models, and for the ten practices."""

_INCHES = (6.6, 5.2)
_LIGHT = "#8f8f8f"
"""Colour of dominated points: lighter than text, and still visible on paper."""

_LIGHTER = "#bdbdbd"
"""Colour of dominated points' intervals."""

_LABELLED = 14
"""Most points that all get a label; of more, only those on the front do."""


_PLACES = (
    *((4, 3, "left", "bottom"), (4, -3, "left", "top"), (-4, 3, "right", "bottom"), (-4, -3, "right", "top")),
    *((6, 0, "left", "center"), (-6, 0, "right", "center"), (0, 6, "center", "bottom"), (0, -6, "center", "top")),
    *((9, 12, "left", "bottom"), (9, -12, "left", "top"), (-9, 12, "right", "bottom"), (-9, -12, "right", "top")),
    *((14, 22, "left", "bottom"), (14, -22, "left", "top"), (-14, 22, "right", "bottom"), (-14, -22, "right", "top")),
    *((24, 36, "left", "bottom"), (24, -36, "left", "top"), (-24, 36, "right", "bottom"), (-24, -36, "right", "top")),
)
"""Places for a label, best first: offset right and up, in typographic points, and alignment. The first are beside the
cross of the point's intervals, then on it, then further away."""

_MARK = 4
"""Half of a mark's width with some room, in pixels of the canvas."""

_SAMPLES = 20
"""Samples per segment of a line that labels must not cover."""

_NEAR = 8
"""Number of the first places where a label needs no line to its point."""


@dataclass(frozen=True)
class Point:
    """A point: less is better across, more is better up.

    ``label`` is written beside it, where there is room; ``said`` describes it for readers who cannot see it.
    """

    across: IntervalEstimate
    up: IntervalEstimate
    label: str
    said: str
    look: MarkStyle
    dominated: bool


@dataclass(frozen=True)
class StepLine:
    """A stepped line: the best of these points up to each place across."""

    points: Sequence[Point]
    dash: Any
    label: str = ""
    marker: str = ""


def front_plot(
    name: str,
    title: str,
    caption: str,
    axes_names: tuple[str, str],
    points: Sequence[Point],
    fronts: Sequence[StepLine],
    key: Mapping[str, MarkStyle],
) -> Figure:
    """Draw points, at least one, and fronts.

    ``axes_names`` are those of the horizontal and the vertical axis; ``key`` has the looks of the legend's entries.
    """
    crowded = len(points) > _LABELLED
    handles = [
        Line2D([], [], ls="", marker=own.marker, ms=6, color=own.colour, label=kind) for kind, own in key.items()
    ]
    handles += [
        Line2D([], [], color=BLACK, ls=front.dash, lw=1.4, marker=front.marker, ms=6, label=front.label)
        for front in fronts
        if front.label
    ]
    if any(point.dominated for point in points):
        grey = hollow("o", "dominated")
        grey.set_color(_LIGHT)
        grey.set_markeredgecolor(_LIGHT)
        handles.append(grey)

    def paint(axes: Axes) -> None:
        for point in points:
            _cross(axes, point)
        lines = [_step(axes, front) for front in fronts]
        axes.set_xlabel(axes_names[0])
        axes.set_ylabel(axes_names[1])
        axes.margins(0.08)
        # No value is below 0; leave room there for half a mark.
        right = axes.get_xlim()[1]
        axes.set_xlim(max(axes.get_xlim()[0], -0.015 * right), right)
        canvas = axes.get_figure()
        if handles and canvas is not None:
            canvas.legend(handles=handles, loc="outside lower center", ncols=min(5, len(handles)), columnspacing=1.4)
        # Points on the front choose their places first.
        shown = [point for point in sorted(points, key=lambda one: one.dominated) if not (crowded and point.dominated)]
        _set_labels(axes, shown, lines)

    if crowded:
        caption += f" Of {len(points)} cells, those on the front are named where there is room."
    alt = f"Chart. {title}. {'; '.join(point.said for point in points)}."
    return Figure(name, title, caption, alt, on_axes(paint), _INCHES)


def _cross(axes: Axes, point: Point) -> None:
    own = point.look.colour
    colour, bars = (own if own != BLACK else _LIGHT, _LIGHTER) if point.dominated else (own, GREY)
    style: dict[str, Any] = {"color": colour, "ecolor": bars, "zorder": 2 if point.dominated else 4}
    axes.errorbar(
        [point.across.mean],
        [point.up.mean],
        xerr=_sides(point.across),
        yerr=_sides(point.up),
        ls="",
        elinewidth=0.6,
        marker=point.look.marker,
        ms=6,
        mfc="none" if point.dominated else colour,
        mew=1.2,
        **style,
    )


def _sides(estimate: IntervalEstimate) -> list[list[float]] | None:
    if estimate.low is None or estimate.high is None:
        return None
    return [[max(estimate.mean - estimate.low, 0)], [max(estimate.high - estimate.mean, 0)]]


def _step(axes: Axes, front: StepLine) -> Line2D:
    steps: list[tuple[float, float]] = []
    for point in sorted(front.points, key=lambda one: (one.across.mean, -one.up.mean)):
        if not steps or point.up.mean > steps[-1][1]:
            steps.append((point.across.mean, point.up.mean))
    style: dict[str, Any] = {"color": BLACK, "lw": 1.4, "ls": front.dash, "zorder": 3}
    (line,) = axes.plot(*zip(*steps, strict=True), drawstyle="steps-post", **style)
    return line


def _set_labels(axes: Axes, points: Sequence[Point], lines: Sequence[Line2D]) -> None:
    """Write each point's label in the first place beside it that is free of points, lines and other labels.

    Call it when everything else is drawn, since it computes the layout. The first points choose first; a label without
    a free place is left out.
    """
    canvas = axes.get_figure()
    assert isinstance(canvas, Canvas), "it is on one"
    canvas.draw_without_rendering()
    frame = axes.get_window_extent()
    places = [(point.across.mean, point.up.mean) for point in points]
    taken = [Bbox([[x - _MARK, y - _MARK], [x + _MARK, y + _MARK]]) for x, y in map(axes.transData.transform, places)]
    for line in lines:
        path = line.get_path()
        if np.shape(path.vertices)[0] > 1:
            along = axes.transData.transform(path.interpolated(_SAMPLES).vertices)
            taken += [Bbox([[x - 1, y - 1], [x + 1, y + 1]]) for x, y in along]
    for point, at in zip(points, places, strict=True):
        colour = GREY if point.dominated else BLACK
        for place, (right, up, across, upright) in enumerate(_PLACES):
            text = axes.annotate(
                point.label,
                at,
                (right, up),
                textcoords="offset points",
                ha=across,
                va=upright,
                fontsize=8,
                color=colour,
                arrowprops={"arrowstyle": "-", "lw": 0.5, "color": colour} if place >= _NEAR else None,
                zorder=6,
            )
            # Allow for wider letters: pages use the reader's own font.
            box = text.get_window_extent().expanded(1.06, 1.0)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()
    # Labels are already placed in this layout, which must not change because of them.
    for written in axes.texts:
        written.set_in_layout(False)
