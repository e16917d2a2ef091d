"""Rows of dots with their intervals: a row per thing, a panel per number, a mark per series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.lines import Line2D

from sim.report.drawing import BLACK, DASHES, GREY, MARKERS, Figure, MarkStyle
from sim.report.estimates import IntervalEstimate

if TYPE_CHECKING:
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
