"""The figures of the inference game's page."""

from __future__ import annotations

from collections.abc import Sequence

from sim.games.inference.report.cells import Cell, distinct, lines_of, name_of, swept_number
from sim.games.inference.report.paper_comparison import comparisons
from sim.games.inference.scenario import InferenceFigure
from sim.report.cells import Trial, paper_figure, scenario_of
from sim.report.drawing import Figure
from sim.report.estimates import Estimate, estimate
from sim.report.interval_plot import along, intervals
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
    groups: dict[str, list[tuple[str, float, float, float]]] = {}
    for cell in summary:
        bars = cell["accuracy_b"], cell["accuracy_b_low"], cell["accuracy_b_high"]
        if axis is None:
            groups.setdefault(name_of(keys, cell), []).append((cell["attack"], *bars))
        else:
            several = [name_of(rest, cell)] if rest else []
            groups.setdefault(", ".join([*several, cell["attack"]]), []).append((setting(cell[axis]), *bars))
    guess = (
        intervals("accuracy-b", title, what, groups)
        if axis is None
        else along(
            "accuracy-b",
            f"{title}, along {symbol(axis)}",
            "With 95% intervals over data splits. As far from the dotted line on either side is as much known.",
            (symbol(axis), what),
            groups,
            level=(50, "50%: a coin"),
            top=103,
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
    lines: dict[str, list[tuple[str, float, float, float]]] = {}
    printed: dict[str, list[tuple[str, float]]] = {}
    for cell in cells:
        place = name_of(keys, cell) if axis is None else setting(cell[axis])
        figure = paper_figure(scenario_of(sweep, {key: cell[key] for key in keys}))
        for what, key in _DRAWN.items():
            line = f"{name_of(rest, cell)}, {what}" if several else what
            found = estimate([own[key] for own in lines_of(sweep, cell, trials)])
            lines.setdefault(line, []).append((place, *_bars(found)))
            if (value := _printed(figure, key)) is not None:
                printed.setdefault(line, []).append((place, value))
    seen = "Means over the splits, with 95% intervals." if max(c["splits"] for c in cells) > 1 else "One split."
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


def _bars(found: Estimate) -> tuple[float, float, float]:
    # A gap is neither below 0 nor above 100 points, whatever a t interval says.
    half = found.half or 0.0
    return found.mean, max(found.mean - half, 0.0), min(found.mean + half, 100.0)
