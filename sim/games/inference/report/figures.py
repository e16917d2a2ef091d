"""The figures of the inference game's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sim.games.inference.report.cells import Cell, accuracy_of, distinct, has_intervals, lines_of, name_of, swept_axis
from sim.games.inference.report.paper_comparison import comparisons
from sim.games.inference.scenario import InferenceFigure
from sim.report.cells import Trial, paper_figure, scenario_of
from sim.report.drawing import BLACK, DASHES, GREY, MARKERS, Figure, Look, looks
from sim.report.estimates import FEWEST, PERCENT, Estimate, estimate
from sim.report.interval_plot import along, side_by_side
from sim.report.notation import setting, symbol
from sim.scenarios.sweep import Sweep

_DRAWN = {"gap before": "gap_base", "gap": "gap", "EO before": "eo_base", "EO": "eo"}


_QUANTITIES = {
    "gap before": Look(GREY, MARKERS[0], DASHES[1]),
    "gap": Look(BLACK, MARKERS[0], DASHES[0]),
    "EO before": Look(GREY, MARKERS[1], DASHES[3]),
    "EO": Look(BLACK, MARKERS[1], DASHES[2]),
}
"""Without a colour, since colours tell defences apart."""


def draw(
    sweep: Sweep, summary: Sequence[Cell], trials: Sequence[Trial], look: Mapping[str, Look]
) -> tuple[Figure, ...]:
    """Draw accuracy at guessing b by attack and defence, and gap and EO, along the swept number if there is one.

    Parameters
    ----------
    look : mapping of str to Look
        Of each defence, as `cells.defence_of` names it.
    """
    if not summary:
        return ()
    keys = list(sweep.scenario.axes)
    axis = swept_axis(keys, summary)
    rest = [key for key in keys if key != axis]
    title, what = "Accuracy at guessing b", "b right, %"
    groups: dict[str, list[tuple[str, Estimate]]] = {}
    for cell in summary:
        right = accuracy_of(cell)
        if axis is None:
            groups.setdefault(name_of(keys, cell), []).append((cell["attack"], right))
        else:
            several = [name_of(rest, cell)] if rest else []
            groups.setdefault(", ".join([*several, cell["attack"]]), []).append((setting(cell[axis]), right))
    over = "With 95% intervals over data splits. " if has_intervals(summary) else ""
    caption = f"{over}As far from the dotted line on either side is as much known."
    coin = (50.0, "50%: a coin")
    guess = (
        side_by_side("accuracy-b", title, caption, what, groups, level=coin, look=look)
        if axis is None
        else along(
            "accuracy-b",
            f"{title}, along {symbol(axis)}",
            caption,
            (symbol(axis), what),
            groups,
            level=coin,
            top=103,
            look=_attacks(summary, rest, look),
        )
    )
    return (guess, _gap_figure(sweep, summary, trials, axis, look))


def _attacks(summary: Sequence[Cell], rest: Sequence[str], look: Mapping[str, Look]) -> dict[str, Look]:
    """Give each defence's attacks its colour, and marks and dashes of their own."""
    of = looks(cell["attack"] for cell in summary)
    if not rest:
        return of
    named = {(name_of(rest, cell), cell["attack"]) for cell in summary}
    return {f"{name}, {attack}": replace(of[attack], colour=look[name].colour) for name, attack in named}


def _gap_figure(
    sweep: Sweep, summary: Sequence[Cell], trials: Sequence[Trial], axis: str | None, look: Mapping[str, Look]
) -> Figure:
    keys = list(sweep.scenario.axes)
    rest = [key for key in keys if key != axis]
    # Before any defence is what it was without one.
    cells = distinct(sweep, summary)
    if axis is not None:
        cells = [cell for cell in cells if cell["defence"] != "none"] or cells
    several = axis is not None and len({name_of(rest, cell) for cell in cells}) > 1
    lines: dict[str, list[tuple[str, Estimate]]] = {}
    printed: dict[str, list[tuple[str, float]]] = {}
    drawn: dict[str, Look] = {}
    for cell in cells:
        place = name_of(keys, cell) if axis is None else setting(cell[axis])
        figure = paper_figure(scenario_of(sweep, {key: cell[key] for key in keys}))
        for what, key in _DRAWN.items():
            line = f"{name_of(rest, cell)}, {what}" if several else what
            own_colour = look[name_of(rest, cell)].colour if several else _QUANTITIES[what].colour
            drawn[line] = replace(_QUANTITIES[what], colour=own_colour)
            found = estimate([own[key] for own in lines_of(sweep, cell, trials)], PERCENT)
            lines.setdefault(line, []).append((place, found))
            if (value := _printed(figure, key)) is not None:
                printed.setdefault(line, []).append((place, value))
    seen = f"Means over the splits{', with 95% intervals' if max(c['splits'] for c in cells) >= FEWEST else ''}."
    if printed:
        others = dict.fromkeys(
            row.verdict for row in comparisons(sweep, trials) if row.verdict.startswith("not tested")
        )
        seen += " Hollow diamonds are the paper's figures" + (f": {', '.join(others)}." if others else ".")
    return along(
        "gap-eo",
        f"Gap and EO, along {symbol(axis)}" if axis else "Gap and EO, before and after the defence",
        seen,
        (symbol(axis) if axis else "", "points"),
        lines,
        printed=printed,
        level=(5, "5 points: the paper's τ"),
        joined=axis is not None,
        look=drawn,
    )


def _printed(figure: InferenceFigure | None, key: str) -> float | None:
    value: float | None = None if figure is None else getattr(figure, key)
    return value
