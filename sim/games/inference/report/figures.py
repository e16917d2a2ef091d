"""The figures of the inference game's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sim.games.game import Line
from sim.games.inference.report.columns import accuracy_of, distinct, has_intervals, over_splits, swept_axis, swept_in
from sim.report.cells import paper_figure, scenario_of
from sim.report.drawing import BLACK, DASHES, GREY, MARKERS, Figure, MarkStyle, looks
from sim.report.estimates import FEWEST, IntervalEstimate
from sim.report.interval_plot import along, side_by_side
from sim.report.notation import setting, symbol
from sim.scenarios.sweep import Sweep

_DRAWN = {
    "gap before": ("gap_base", MarkStyle(GREY, MARKERS[0], DASHES[1])),
    "gap": ("gap", MarkStyle(BLACK, MARKERS[0], DASHES[0])),
    "EO before": ("eo_base", MarkStyle(GREY, MARKERS[1], DASHES[3])),
    "EO": ("eo", MarkStyle(BLACK, MARKERS[1], DASHES[2])),
}
"""Key and look of each drawn figure: no colours, since these distinguish defences."""

_Lines = dict[str, list[tuple[str, IntervalEstimate]]]


def draw(
    sweep: Sweep, lines: Sequence[Line], summary: Sequence[Line], look: Mapping[str, MarkStyle]
) -> tuple[Figure, ...]:
    """Draw accuracy at guessing b, and gap and EO, along the swept number if any; `look` is by `columns.defence_of`."""
    axis = swept_axis(sweep.scenario.axes, summary)
    return _accuracy(sweep, axis, summary, look), _gaps(sweep, axis, lines, summary, look)


def _name(sweep: Sweep, axis: str | None, cell: Line) -> str:
    """Return a line's name apart from the axis; empty where only the axis is swept."""
    return swept_in(sweep).name(cell, [axis] if axis else ()) or ("" if axis else str(cell["defence"]))


def _accuracy(sweep: Sweep, axis: str | None, summary: Sequence[Line], look: Mapping[str, MarkStyle]) -> Figure:
    over = "With 95% intervals over data splits. " if has_intervals(summary) else ""
    caption = f"{over}As far from the dotted line on either side is as much known."
    title, what, coin = "Accuracy at guessing b", "b right, %", (50.0, "50%: a coin")
    groups: _Lines = {}
    drawn: dict[str, MarkStyle] = {}
    of = looks(cell["attack"] for cell in summary)
    for cell in summary:
        name, attack = _name(sweep, axis, cell), cell["attack"]
        line = name if axis is None else ", ".join(filter(None, (name, attack)))
        place = attack if axis is None else setting(cell[axis])
        groups.setdefault(line, []).append((place, accuracy_of(cell)))
        # Colour by defence, marks and dashes by attack.
        drawn[line] = replace(of[attack], colour=look[name].colour) if name else of[attack]
    if axis is None:
        return side_by_side("accuracy-b", title, caption, what, groups, level=coin, look=look)
    title, places = f"{title}, along {symbol(axis)}", (symbol(axis), what)
    return along("accuracy-b", title, caption, places, groups, level=coin, top=103, look=drawn)


def _gaps(
    sweep: Sweep, axis: str | None, trials: Sequence[Line], summary: Sequence[Line], look: Mapping[str, MarkStyle]
) -> Figure:
    cells = distinct(sweep, trials, summary)
    # "Before" equals no defence, which would be drawn twice.
    if axis is not None:
        cells = [cell for cell in cells if cell["defence"] != "none"] or cells
    several = axis is not None and len({_name(sweep, axis, cell) for cell in cells}) > 1
    lines: _Lines = {}
    printed: dict[str, list[tuple[str, float]]] = {}
    drawn: dict[str, MarkStyle] = {}
    for cell in cells:
        name = _name(sweep, axis, cell)
        place = name if axis is None else setting(cell[axis])
        figure = paper_figure(scenario_of(sweep, {key: cell[key] for key in sweep.scenario.axes}))
        for what, (key, own) in _DRAWN.items():
            line = f"{name}, {what}" if several else what
            drawn[line] = replace(own, colour=look[name].colour) if several else own
            lines.setdefault(line, []).append((place, over_splits(key)(cell)))
            if (value := getattr(figure, key, None)) is not None:
                printed.setdefault(line, []).append((place, value))
    seen = f"Means over the splits{', with 95% intervals' if max(c['splits'] for c in cells) >= FEWEST else ''}."
    if printed:
        seen += " Hollow diamonds are the paper's figures."
    title = f"Gap and EO, along {symbol(axis)}" if axis else "Gap and EO, before and after the defence"
    places, tau = (symbol(axis) if axis else "", "points"), (5, "5 points: the paper's τ")
    joined = axis is not None
    return along("gap-eo", title, seen, places, lines, printed=printed, level=tau, joined=joined, look=drawn)
