"""Accuracy against risk difference, a point a cell: what no other cell beats stands out, and is joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.lines import Line2D

from sim.games.training.report.cells import kind_of, name_of, value_text
from sim.games.training.report.fronts import Placed
from sim.report.drawing import BLACK, DASHES, GREY, MARKERS, Figure, Look, hollow, svg
from sim.report.estimates import Estimate
from sim.report.labels import Label, set_labels
from sim.report.notation import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES = (6.6, 5.2)
_MARKS = (*MARKERS, "<", ">", "p", "h", "*")
"""Enough for the eight models, and for the ten practices."""

_LIGHT = "#8f8f8f"
"""Of what is dominated: lighter than text, and still seen on paper."""

_LIGHTER = "#bdbdbd"
"""Of its intervals."""

_LABELLED = 14
"""Of more cells than this, only those on the front get a label."""

_X, _Y = "risk difference, as an absolute value: less is fairer", "accuracy"


def tradeoff(axes_keys: Sequence[str], cells: Sequence[Placed], look: Mapping[str, Look]) -> Figure:
    """Draw accuracy against risk difference, a mark for each value of the first swept word.

    Parameters
    ----------
    axes_keys : sequence of str
        The swept keys.
    cells : sequence of Placed
        At least one; by accuracy and risk difference alone.
    look : mapping of str to Look
        Of each kind of cell, as `cells.kind_of` names it.
    """
    kinds = list(dict.fromkeys(kind_of(axes_keys, one.cell) for one in cells))
    rest = [key for key in axes_keys if not kinds[0] or value_text(cells[0].cell, key) != kinds[0]]

    def paint(axes: Axes) -> None:
        for one in cells:
            own = look[kind_of(axes_keys, one.cell)]
            _cross(axes, one, own.marker, own.colour)
        line = _join(axes, [one for one in cells if not one.dominated], DASHES[1])
        _frame(axes)
        _key(
            axes,
            [_filled(look[kind], kind) for kind in kinds if kind],
            dominated=any(one.dominated for one in cells),
        )
        _label(axes, {id(one): name_of(rest, one.cell) for one in cells}, cells, [line])

    title = "Accuracy against risk difference"
    caption = (
        "A point a cell, with 95% intervals where there are five trials or more. Up and to the left is better. "
        "Filled: no other cell's means are at least as good in both; the stepped line is the best accuracy up to "
        f"each risk difference. Hollow: dominated.{_crowd(cells)}"
    )
    return Figure("tradeoff", title, caption, _alt(title, cells), svg("tradeoff", paint, _INCHES))


def frontier_figure(of: str, cells: Sequence[Placed]) -> Figure:
    """Draw the front over accuracy, risk difference and epsilon, a line for each epsilon.

    Parameters
    ----------
    of : str
        Whose accuracy.
    cells : sequence of Placed
        At least one; by accuracy, risk difference and epsilon.
    """
    levels = sorted({one.epsilon for one in cells})
    marks = {level: _MARKS[place % len(_MARKS)] for place, level in enumerate(levels)}

    def paint(axes: Axes) -> None:
        for one in cells:
            _cross(axes, one, marks[one.epsilon])
        handles, lines = [], []
        for place, level in enumerate(levels):
            within = [one for one in cells if one.epsilon <= level]
            dashes = DASHES[(place + 1) % 7]
            lines.append(_join(axes, within, dashes))
            told = "nothing promised" if level == float("inf") else f"ε at most {number(level)}"
            handles.append(Line2D([], [], color=BLACK, ls=dashes, lw=1.4, marker=marks[level], ms=6, label=told))
        _frame(axes)
        _key(axes, handles, dominated=any(one.dominated for one in cells))
        _label(axes, {id(one): one.name for one in cells}, cells, lines)

    whose = "accuracy" if of == "overall" else f"the {of} group's accuracy"
    title = f"The front over {whose}, risk difference and ε"
    caption = (
        "A point a cell, with 95% intervals where there are five trials or more; the mark is the ε promised to "
        "records. A stepped line is the best accuracy up to each risk difference among cells that promise its ε or a "
        f"smaller one. Grey and hollow: dominated in all three.{_crowd(cells)}"
    )
    name = f"frontier-{of}"
    return Figure(name, title, caption, _alt(title, cells), svg(name, paint, _INCHES))


def _cross(axes: Axes, one: Placed, mark: str, colour: str = "") -> None:
    colour, bars = (colour or _LIGHT, _LIGHTER) if one.dominated else (colour or BLACK, GREY)
    style: dict[str, Any] = {"color": colour, "ecolor": bars, "zorder": 2 if one.dominated else 4}
    axes.errorbar(
        [one.distance.mean],
        [one.accuracy.mean],
        xerr=_sides(one.distance),
        yerr=_sides(one.accuracy),
        ls="",
        elinewidth=0.6,
        marker=mark,
        ms=6,
        mfc="none" if one.dominated else colour,
        mew=1.2,
        **style,
    )


def _sides(found: Estimate) -> list[list[float]] | None:
    if found.low is None or found.high is None:
        return None
    return [[max(found.mean - found.low, 0)], [max(found.high - found.mean, 0)]]


def _join(axes: Axes, cells: Sequence[Placed], dashes: Any) -> Line2D:
    """Draw the best accuracy up to each risk difference: a stepped line."""
    steps: list[tuple[float, float]] = []
    for one in sorted(cells, key=lambda one: (one.distance.mean, -one.accuracy.mean)):
        if not steps or one.accuracy.mean > steps[-1][1]:
            steps.append((one.distance.mean, one.accuracy.mean))
    (line,) = axes.plot(*zip(*steps, strict=True), drawstyle="steps-post", color=BLACK, lw=1.4, ls=dashes, zorder=3)
    return line


def _frame(axes: Axes) -> None:
    axes.set_xlabel(_X)
    axes.set_ylabel(_Y)
    axes.margins(0.08)
    # Nothing is below 0, where room is left for half a mark.
    right = axes.get_xlim()[1]
    axes.set_xlim(max(axes.get_xlim()[0], -0.015 * right), right)


def _key(axes: Axes, handles: Sequence[Line2D], *, dominated: bool) -> None:
    shown = list(handles)
    if dominated:
        grey = hollow("o", "dominated")
        grey.set_color(_LIGHT)
        grey.set_markeredgecolor(_LIGHT)
        shown.append(grey)
    canvas = axes.get_figure()
    if shown and canvas is not None:
        canvas.legend(handles=shown, loc="outside lower center", ncols=min(5, len(shown)), columnspacing=1.4)


def _filled(look: Look, label: str) -> Line2D:
    return Line2D([], [], ls="", marker=look.marker, ms=6, color=look.colour, label=label)


def _label(axes: Axes, texts: Mapping[int, str], cells: Sequence[Placed], lines: Sequence[Line2D]) -> None:
    # Those on the front choose their places first.
    ordered = sorted(cells, key=lambda one: one.dominated)
    shown = ordered if len(cells) <= _LABELLED else [one for one in ordered if not one.dominated]
    labels = [
        Label(one.distance.mean, one.accuracy.mean, texts[id(one)], GREY if one.dominated else BLACK) for one in shown
    ]
    set_labels(axes, labels, lines)


def _crowd(cells: Sequence[Placed]) -> str:
    return (
        f" Of {len(cells)} cells, those on the front are named where there is room." if len(cells) > _LABELLED else ""
    )


def _alt(title: str, cells: Sequence[Placed]) -> str:
    told = "; ".join(
        f"{one.name}: accuracy {one.accuracy.mean:.3f}, risk difference {one.distance.mean:.3f}, {one.verdict}"
        for one in cells
    )
    return f"Chart. {title}. {told}."
