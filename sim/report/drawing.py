"""The drawing of figures: colours, style, legends, and the SVG in the page itself."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib import style
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.text import Text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which colour-blind readers can tell apart, without yellow, which is too light on white paper.
BLACK, GREY = "#000000", "#6b6b6b"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (5, 1.5)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2, 2, 2)), (0, (2, 1)), "-.")

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.handlelength": 2.6,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
}
_PAGE_COLOURS = {
    BLACK: "var(--ink)",
    GREY: "var(--soft)",
    "#e4e4e4": "var(--grid)",
    "#bdbdbd": "var(--faint)",
    "#9a9a9a": "var(--faint)",
    "#7a7a7a": "var(--soft)",
    "#f1f1f1": "var(--card)",
}
"""CSS variables of the page for colours of the drawings: a dark page has others."""

FORMATS = ("pdf", "svg", "png")
"""File formats of figures for papers."""
INCHES = (5.4, 3.9)
"""Default width and height of a figure, in inches."""
_WIDEST, _NARROW = 6.0, 4.2
"""Width, in inches, above which a figure is also drawn for narrow screens, and its width there."""
_LEAST_HEIGHT = 0.75
"""Least height of a figure for a paper, relative to its height on the page."""
_BESIDE = 36
"""Most letters of a legend's entry for two entries to fit side by side."""
_METADATA = ("Creator", "Date", "Format", "Type")
"""Metadata left out of the drawings: nothing may change from day to day, and no addresses."""


@dataclass(frozen=True)
class MarkStyle:
    """The style of one kind of thing in all figures of a page."""

    colour: str
    marker: str
    dash: Any = "-"
    hollow: bool = False
    size: float = 6


def looks(kinds: Iterable[str]) -> dict[str, MarkStyle]:
    """Return a different look for each kind, in order; after seven, colours repeat with other marks and dashes."""
    return {
        kind: MarkStyle(COLOURS[i % 7], MARKERS[(i + i // 7) % 7], DASHES[(i + i // 7) % 7])
        for i, kind in enumerate(dict.fromkeys(kinds))
    }


@dataclass(frozen=True)
class Figure:
    """A figure of the page.

    Attributes
    ----------
    name : unique in the page; every id of the drawing starts with it.
    title, caption : its subject, and what to see in it.
    alt : description for readers who cannot see it.
    draw : draws it on an empty canvas of any size.
    inches : width and height on the page.
    wide : whether it takes the page's whole width.
    """

    name: str
    title: str
    caption: str
    alt: str
    draw: Callable[[Canvas], None]
    inches: tuple[float, float] = INCHES
    wide: bool = False

    @cached_property
    def svg(self) -> str:
        """The figure as an SVG element for the page."""
        return canvas_svg(self.name, self.draw, self.inches)

    def save(self, file: Path) -> None:
        """Write it for a paper, one or two columns wide, by `proto/fairwall/paper.mplstyle`, in one of `FORMATS`."""
        with style.context([_STYLE, "fairwall.paper"]), matplotlib.rc_context({"svg.hashsalt": self.name}):
            column, high = matplotlib.rcParams["figure.figsize"]
            wide = column * (2 if self.inches[0] > _WIDEST else 1)
            scale = wide / self.inches[0]
            # Letters shrink less than the figure, so the figure stays higher.
            tall = max(high, max(scale, _LEAST_HEIGHT) * self.inches[1])
            canvas = Canvas(figsize=(wide, tall), layout="constrained")
            self.draw(canvas)
            _fit(canvas, scale)
            # A date would make a different file of the same figure each day.
            dated = {".pdf": "CreationDate", ".svg": "Date"}.get(file.suffix)
            canvas.savefig(file, metadata={dated: None} if dated else None)


def _fit(canvas: Canvas, scale: float) -> None:
    """Scale marks and lines from page size, and limit text to the style sheet's font size."""
    for line in canvas.findobj(Line2D):
        line.set(markersize=scale * line.get_markersize(), markeredgewidth=scale * line.get_markeredgewidth())
        line.set_linewidth(scale * line.get_linewidth())
    for bars in canvas.findobj(LineCollection):
        bars.set_linewidth(np.multiply(scale, bars.get_linewidth()).tolist())
    most = matplotlib.rcParams["font.size"]
    for text in canvas.findobj(Text):
        text.set_fontsize(min(text.get_fontsize(), most))


def on_axes(draw: Callable[[Axes], None]) -> Callable[[Canvas], None]:
    """Return a drawer on a canvas that has a single pair of axes."""
    return lambda canvas: draw(canvas.add_subplot())


def hollow(marker: str, label: str) -> Line2D:
    """Return a legend's entry for hollow marks."""
    return Line2D([], [], ls="", marker=marker, ms=7, mfc="none", mec=BLACK, mew=1.3, label=label)


def legend(axes: Axes, extra: Sequence[Line2D]) -> None:
    """Draw a legend of the axes' labels and more entries below them."""
    figure = axes.get_figure()
    assert isinstance(figure, Canvas), "it is on one"
    key(figure, [*axes.get_legend_handles_labels()[0], *extra])


def key(canvas: Canvas, handles: Sequence[Any], *, above: bool = False, columns: int = 0) -> None:
    """Draw a legend below or above all axes, with ``columns`` entries side by side, or else two where they fit."""
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    beside = len(handles) > 1 and longest <= _BESIDE * min(1.0, canvas.get_figwidth() / INCHES[0])
    place: Any = f"outside {'upper' if above else 'lower'} center"
    size = 8 if above else 9
    canvas.legend(handles=handles, loc=place, ncols=columns or (2 if beside else 1), columnspacing=1.4, fontsize=size)


def canvas_svg(name: str, draw: Callable[[Canvas], None], inches: tuple[float, float] = INCHES) -> str:
    """Draw on a new canvas and return the SVG: the same bytes for the same figure, with ids that start with its name.

    A figure too wide for a narrow screen is drawn twice, in two elements: the page shows one of them.
    """
    whole = _svg(name, draw, Canvas(figsize=inches, layout="constrained"))
    if inches[0] <= _WIDEST:
        return whole
    narrow = _svg(f"{name}-narrow", draw, _Narrow(figsize=(_NARROW, inches[1]), layout="constrained"))
    return whole.replace("<svg", '<svg class="wide"', 1) + narrow.replace("<svg", '<svg class="narrow"', 1)


class _Narrow(Canvas):
    """A canvas for narrow screens: panels side by side are stacked instead."""

    def subplots(  # type: ignore[override]
        self, rows: int = 1, columns: int = 1, *, sharex: bool = False, sharey: bool | str = False, squeeze: bool = True
    ) -> Any:
        """Stack the panels column by column, each with its own ticks; shared axes stay shared."""
        self.set_figheight(self.get_figheight() * columns)
        grid = super().subplots(rows * columns, 1, squeeze=False).reshape(columns, rows).T
        for row in grid:
            for axes in row:
                if sharex and axes is not grid[0, 0]:
                    axes.sharex(grid[0, 0])
                first = grid[0, 0] if sharey is True else row[0]
                if sharey and axes is not first:
                    axes.sharey(first)
        return grid[0] if squeeze and rows == 1 else grid

    def legend(self, *args: Any, **options: Any) -> Any:
        """Draw a legend with at most two entries side by side."""
        return super().legend(*args, **options | {"ncols": min(2, options.get("ncols", 1))})


def _svg(name: str, draw: Callable[[Canvas], None], canvas: Canvas) -> str:
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
        draw(canvas)
        file = io.StringIO()
        canvas.savefig(file, format="svg", metadata=dict.fromkeys(_METADATA), transparent=True)
    text = file.getvalue()
    text = text[text.index("<svg") :]
    for mark in ('id="', 'href="#', "url(#"):
        text = text.replace(mark, f"{mark}{name}-")
    for colour, variable in _PAGE_COLOURS.items():
        text = text.replace(f": {colour}", f": {variable}")
    return text
