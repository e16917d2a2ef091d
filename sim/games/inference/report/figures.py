"""The figures of the inference game's page."""

from __future__ import annotations

from collections.abc import Sequence

from sim.games.inference.report.cells import Cell, accuracy_of, distinct, has_intervals, lines_of, name_of, swept_number
from sim.games.inference.report.paper_comparison import comparisons
from sim.games.inference.scenario import InferenceFigure
from sim.report.cells import Trial, paper_figure, scenario_of
from sim.report.drawing import Figure
from sim.report.estimates import FEWEST, PERCENT, Estimate, estimate
from sim.report.interval_plot import along, side_by_side
from sim.report.notation import setting, symbol
from sim.scenarios.sweep import Sweep

_DRAWN = {"gap before": "gap_base", "gap": "gap", "EO before": "eo_base", "EO": "eo"}


def draw(sweep: Sweep, summary: Sequence[Cell], trials: Sequence[Trial]) -> tuple[Figure, ...]:
    """Draw accuracy at guessing b by attack and defence, and gap and EO, along the swept number if there is one."""
    if not summary:
        return ()
    keys = list(sweep.scenario.axes)
    axis = _axis(sweep, summary)
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
    enough = has_intervals(summary)
    over = "With 95% intervals over data splits." if enough else f"Fewer than {FEWEST} data splits give no interval."
    caption = f"{over} As far from the dotted line on either side is as much known."
    coin = (50.0, "50%: a coin")
    guess = (
        side_by_side("accuracy-b", title, caption, what, groups, level=coin)
        if axis is None
        else along(
            "accuracy-b", f"{title}, along {symbol(axis)}", caption, (symbol(axis), what), groups, level=coin, top=103
        )
    )
    return (guess, _gap_figure(sweep, summary, trials, axis))


def _axis(sweep: Sweep, summary: Sequence[Cell]) -> str | None:
    """Find a swept number that takes several values whatever the others are."""
    keys: Sequence[str] = sweep.scenario.axes
    for axis in keys:
        places: dict[tuple[str, ...], set[float | None]] = {}
        for cell in summary:
            rest = tuple(setting(cell[key]) for key in keys if key != axis)
            places.setdefault(rest, set()).add(swept_number(cell[axis]))
        if all(len(values) > 2 and None not in values for values in places.values()):
            return axis
    return None


def _gap_figure(sweep: Sweep, summary: Sequence[Cell], trials: Sequence[Trial], axis: str | None) -> Figure:
    keys = list(sweep.scenario.axes)
    rest = [key for key in keys if key != axis]
    # Before any defence is what it was without one.
    cells = distinct(sweep, summary)
    if axis is not None:
        cells = [cell for cell in cells if cell["defence"] != "none"] or cells
    several = axis is not None and len({name_of(rest, cell) for cell in cells}) > 1
    lines: dict[str, list[tuple[str, Estimate]]] = {}
    printed: dict[str, list[tuple[str, float]]] = {}
    for cell in cells:
        place = name_of(keys, cell) if axis is None else setting(cell[axis])
        figure = paper_figure(scenario_of(sweep, {key: cell[key] for key in keys}))
        for what, key in _DRAWN.items():
            line = f"{name_of(rest, cell)}, {what}" if several else what
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
    )


def _printed(figure: InferenceFigure | None, key: str) -> float | None:
    value: float | None = None if figure is None else getattr(figure, key)
    return value
