"""Numbers with their intervals: rows of dots in panels, side by side, and along an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from sim.report.drawing import BLACK, DASHES, GREY, INCHES, MARKERS, Figure, MarkStyle, hollow, legend, on_axes
from sim.report.estimates import IntervalEstimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Row = tuple[str, IntervalEstimate | None]
"""The name of a thing, and its number, if there is one."""

_ASIDE = 0.46
"""Share of a row's height over which its marks are spread."""


@dataclass(frozen=True)
class DotPanel:
    """One number of every row, by series of the same rows in the same order; ``level`` places a dotted line."""

    title: str
    series: Mapping[str, Sequence[Row]]
    level: float | None = None


def dot_plot(
    name: str,
    title: str,
    caption: str,
    panels: Sequence[DotPanel],
    *,
    level: str = "",
    same_scale: bool = False,
    look: Mapping[str, MarkStyle] | None = None,
    together: bool = False,
    broad: float = 2.5,
) -> Figure:
    """Draw panels side by side, at least one, of the same rows and series.

    Parameters
    ----------
    level : the meaning of the dotted line.
    same_scale : whether the panels' numbers are of one kind, and share a scale.
    look : each series' look in other figures of the page; by default black and grey.
    together : whether a row's marks are on one line; else every second series is hollow, to differ without colours.
    broad : width of a panel, in inches.
    """
    names = [row for row, _ in next(iter(panels[0].series.values()))]
    series = list(panels[0].series)
    own = look or {
        told: MarkStyle((BLACK, GREY)[place % 2], MARKERS[place % 7], DASHES[0]) for place, told in enumerate(series)
    }
    marks = [
        _mark(own[told], hollow=own[told].hollow if together else place % 2 == 1) for place, told in enumerate(series)
    ]

    def paint(canvas: Canvas) -> None:
        grid = canvas.subplots(1, len(panels), sharex=same_scale, sharey=True, squeeze=False)[0]
        for axes, panel in zip(grid, panels, strict=True):
            if panel.level is not None:
                axes.axvline(panel.level, color=GREY, lw=0.9, ls=":")
            for place, rows in enumerate(panel.series.values()):
                aside = 0.0 if together else _ASIDE * ((place + 0.5) / len(series) - 0.5)
                for number, (_, found) in enumerate(rows):
                    if found is None:
                        continue
                    low, high = (found.mean if end is None else end for end in (found.low, found.high))
                    axes.plot([low, high], [number + aside] * 2, color=marks[place]["color"], lw=1.2)
                    axes.plot(found.mean, number + aside, **marks[place])
            axes.set_title(panel.title)
        grid[0].set_yticks(range(len(names)), names)
        grid[0].set_ylim(len(names) - 0.5, -0.5)
        several = zip(series, marks, strict=True) if len(series) > 1 else ()
        handles = [Line2D([], [], label=told, **mark) for told, mark in several]
        if level:
            handles.append(Line2D([], [], color=GREY, lw=0.9, ls=":", label=level))
        if handles:
            canvas.legend(handles=handles, loc="outside lower center", ncols=3)

    told = "; ".join(
        f"{panel.title}: "
        + ", ".join(
            f"{row} {of}".strip() + f" {found.mean:.3f}"
            for of, rows in panel.series.items()
            for row, found in rows
            if found
        )
        for panel in panels
    )
    inches = (2.2 + broad * len(panels), 1.3 + (0.2 + 0.11 * (1 if together else len(series))) * len(names))
    return Figure(name, title, caption, f"Chart. {title}. {told}.", paint, inches, wide=broad * len(panels) > 5)


def _mark(look: MarkStyle, *, hollow: bool) -> dict[str, Any]:
    inside = {"mfc": "none"} if hollow else {}
    return {"ls": "", "marker": look.marker, "ms": look.size, "color": look.colour, "mew": 1.3, "zorder": 3} | inside


Rows = Sequence[tuple[str, IntervalEstimate]]
"""The name of each thing, and its number, in percent or percentage points."""


def side_by_side(
    name: str,
    title: str,
    caption: str,
    what: str,
    groups: Mapping[str, Rows],
    *,
    level: tuple[float, str],
    look: Mapping[str, MarkStyle],
) -> Figure:
    """Draw shares with their intervals, group by group, each in its look.

    ``what`` is the label of the vertical axis. ``groups`` are in percent, and have the same things in the same order.
    ``level`` is the value of a dotted line, and its meaning.
    """
    things = [thing for thing, _ in next(iter(groups.values()))]

    def draw(axes: Axes) -> None:
        axes.axhline(level[0], color=GREY, lw=0.9, ls=":")
        for i, (group, rows) in enumerate(groups.items()):
            places = np.arange(len(rows)) + 0.6 * ((i + 0.5) / len(groups) - 0.5)
            _bars(axes, places, rows, ls="", marker=look[group].marker, color=look[group].colour, label=group)
        axes.set_xticks(range(len(things)), things, rotation=20, ha="right")
        axes.set_ylim(-3, 103)
        axes.set_ylabel(what)
        legend(axes, [Line2D([], [], color=GREY, lw=0.9, ls=":", label=level[1])])

    values = "; ".join(
        f"{group}: " + ", ".join(f"{thing} {found.mean:.1f}%" for thing, found in rows)
        for group, rows in groups.items()
    )
    return Figure(name, title, caption, f"Chart. {title}. {values}.", on_axes(draw))


def along(
    name: str,
    title: str,
    caption: str,
    axes_names: tuple[str, str],
    lines: Mapping[str, Rows],
    *,
    printed: Mapping[str, Sequence[tuple[str, float]]] | None = None,
    level: tuple[float, str],
    joined: bool = True,
    top: float | None = None,
    look: Mapping[str, MarkStyle],
) -> Figure:
    """Draw numbers and their intervals place by place, each line in its look, with a paper's figures beside them.

    ``lines`` has (place, number) by label, and ``printed`` a paper's figures likewise; ``joined`` if the places have an
    order. ``level`` is the value of a dotted line, and its meaning; ``top`` is the end of the vertical axis.
    """
    printed = printed or {}
    places = list(dict.fromkeys(place for rows in lines.values() for place, _ in rows))

    def draw(axes: Axes) -> None:
        axes.axhline(level[0], color=GREY, lw=0.9, ls=":")
        width = min(0.11, 0.5 / max(1, len(lines)))
        for i, (label, rows) in enumerate(lines.items()):
            own, aside = look[label], width * (i - (len(lines) - 1) / 2)
            xs = np.array([places.index(place) + aside for place, _ in rows])
            dashes = own.dash if joined else ""
            _bars(axes, xs, rows, ls=dashes, lw=1.6, elinewidth=1.2, marker=own.marker, color=own.colour, label=label)
            for place, value in printed.get(label, ()):
                x = places.index(place) + aside
                axes.plot(x, value, ls="", marker="D", ms=8, mfc="none", mec=own.colour, mew=1.4, zorder=5)
        crowded = max(map(len, places)) > 10 or sum(map(len, places)) > 55
        axes.set_xticks(range(len(places)), places, rotation=20 if crowded else 0, ha="right" if crowded else "center")
        axes.set_xlim(-0.5, len(places) - 0.5)
        axes.set_ylim(bottom=min(0, axes.get_ylim()[0]) if top is None else top - 106, top=top)
        axes.set_xlabel(axes_names[0])
        axes.set_ylabel(axes_names[1])
        more = [hollow("D", "printed in the paper")] if printed else []
        legend(axes, [Line2D([], [], color=GREY, lw=0.9, ls=":", label=level[1]), *more])

    values = "; ".join(
        f"{label}: " + ", ".join(f"{found.mean:.1f} at {place}" for place, found in rows)
        for label, rows in lines.items()
    )
    tall = (INCHES[0], INCHES[1] + 0.1 * len(lines))
    return Figure(name, title, caption, f"Chart. {title}. {values}.", on_axes(draw), tall)


def _bars(axes: Axes, xs: NDArray[np.floating], rows: Rows, **style: Any) -> None:
    """Draw numbers, with a bar over each interval."""
    means = np.array([found.mean for _, found in rows])
    lows, highs = (np.array([getattr(found, end) for _, found in rows], dtype=np.float64) for end in ("low", "high"))
    axes.errorbar(xs, means, np.maximum([means - lows, highs - means], 0), ms=5, capsize=2.5, **style)
