"""Curves over one axis or two, in panels: the common part of all figures of lines and marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from sim.report.drawing import GREY, INCHES, Figure, MarkStyle, key
from sim.report.notation import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


@dataclass(frozen=True)
class Curve:
    """A series of points of one kind.

    ``bars`` are the lengths of the points' error bars, up and down; ``style`` has further properties, as `matplotlib`
    names them. ``label`` is the legend's entry; empty for none.
    """

    points: Sequence[tuple[float, float]]
    look: MarkStyle
    label: str = ""
    joined: bool = True
    bars: Sequence[float] | None = None
    style: Mapping[str, Any] = field(default_factory=dict)

    @property
    def drawn(self) -> dict[str, Any]:
        """Its style, in the panel and in the legend."""
        look = self.look
        inside = {"mfc": "none", "mew": 1.4} if look.hollow else {}
        dash = look.dash if self.joined else ""
        return {"color": look.colour, "marker": look.marker, "ms": look.size, "ls": dash, **inside, **self.style}


@dataclass(frozen=True)
class Level:
    """A horizontal line across a panel. One that is ``beyond`` does not widen the panel's range."""

    at: float
    label: str = ""
    colour: str = GREY
    dash: Any = ":"
    width: float = 0.9
    beyond: bool = False

    @property
    def drawn(self) -> dict[str, Any]:
        """Its style, in the panel and in the legend."""
        return {"color": self.colour, "lw": self.width, "ls": self.dash}


@dataclass(frozen=True)
class Axis:
    """An axis: label, logarithmic or not, ticks by position, and ends."""

    label: str = ""
    log: bool = False
    ticks: Mapping[float, str] | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class LinePanel:
    """The curves and levels of one panel."""

    curves: Sequence[Curve]
    levels: Sequence[Level] = ()
    title: str = ""


def line_plot(
    name: str,
    title: str,
    caption: str,
    alt: str,
    rows: Sequence[Sequence[LinePanel]],
    x: Axis,
    y: Sequence[Axis],
    *,
    inches: tuple[float, float] = INCHES,
    wide: bool = False,
    above: bool = False,
    columns: int = 0,
    more: Sequence[Line2D] = (),
) -> Figure:
    """Draw rows of panels with one common x axis; the panels of a row share a y axis.

    ``y`` has the axis of each row. The legend stands above the panels or below, with ``columns`` entries side by side,
    0 for as many as fit, and ``more`` entries at its end.
    """

    def paint(canvas: Canvas) -> None:
        grid = canvas.subplots(len(rows), len(rows[0]), sharex=True, sharey="row", squeeze=False)
        for axes_row, panels, axis in zip(grid, rows, y, strict=True):
            for axes, panel in zip(axes_row, panels, strict=True):
                _panel(axes, panel)
            for one in axes_row:
                _set(one, "x", x)
                _set(one, "y", axis)
            limits = axes_row[0].get_ylim()
            for axes, panel in zip(axes_row, panels, strict=True):
                _levels(axes, panel, beyond=True)
            axes_row[0].set_ylim(limits)
            axes_row[0].set_ylabel(axis.label)
        for axes in grid[-1]:
            axes.set_xlabel(x.label)
        _legend(canvas, rows, more, above=above, columns=columns)

    return Figure(name, title, caption, alt, paint, inches, wide=wide)


def _panel(axes: Axes, panel: LinePanel) -> None:
    _levels(axes, panel, beyond=False)
    for curve in panel.curves:
        xs, ys = zip(*curve.points, strict=True) if curve.points else ((), ())
        if curve.bars is None:
            axes.plot(xs, ys, **curve.drawn)
        else:
            axes.errorbar(xs, ys, curve.bars, elinewidth=0.8, **curve.drawn)
    axes.set_title(panel.title)


def _levels(axes: Axes, panel: LinePanel, *, beyond: bool) -> None:
    for level in panel.levels:
        if level.beyond is beyond:
            axes.axhline(level.at, zorder=1, **level.drawn)


def _set(axes: Axes, which: str, spec: Axis) -> None:
    axis = getattr(axes, f"{which}axis")
    if spec.log:
        getattr(axes, f"set_{which}scale")("log")
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(lambda value, _: number(value))
        axis.set_minor_locator(NullLocator())
    if spec.ticks is not None:
        axis.set_ticks(list(spec.ticks), list(spec.ticks.values()))
        axes.minorticks_off()
    getattr(axes, f"set_{which}lim")(spec.low, spec.high)


def _legend(
    canvas: Canvas, rows: Sequence[Sequence[LinePanel]], more: Sequence[Line2D], *, above: bool, columns: int
) -> None:
    """Draw the legend, each label once, in the style of its first curve."""
    handles: dict[str, Line2D] = {}
    panels = [panel for row in rows for panel in row]
    for curve in (curve for panel in panels for curve in panel.curves if curve.label):
        handles.setdefault(curve.label, Line2D([], [], label=curve.label, **curve.drawn))
    for level in (level for panel in panels for level in panel.levels if level.label):
        handles.setdefault(level.label, Line2D([], [], label=level.label, **level.drawn))
    if handles or more:
        key(canvas, [*handles.values(), *more], above=above, columns=columns)
