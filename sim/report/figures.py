"""The report's figures, as SVG that stands in the page itself."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from fairwall.laws.bounding import metric_range
from sim.report.answers import until_known
from sim.report.cells import ReportCell
from sim.report.notation import MECHANISMS, as_float, number, setting, symbol

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which colour-blind readers can tell apart; yellow is too light on white paper.
_BLACK, _GREY = "#000000", "#6b6b6b"
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", _BLACK)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES = ("-", (0, (5, 1.5)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2, 2, 2)), (0, (2, 1)), "-.")

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
_INCHES = (5.4, 3.9)
_MANY = 3
"""Beyond so many lines a figure shows no single trials; and so many mechanisms have a figure each."""
_FEW = 5
"""Fewer answers than this are no picture."""
_BESIDE = 36
"""How many letters a legend's entry may have for two to stand side by side."""
_LEAST_ERROR = 1e-6
"""Smaller errors are rounding: they do not decide the scale of a figure."""
_METADATA = ("Creator", "Date", "Format", "Type")
"""What is left out of the drawings: nothing that changes from day to day, and no addresses."""


@dataclass(frozen=True)
class Figure:
    """A figure of the page.

    Parameters
    ----------
    name : str
        Unique in the page; every id of the drawing starts with it.
    title, caption : str
        What it shows, and what to see in it.
    alt : str
        For readers who cannot see it.
    svg : str
    """

    name: str
    title: str
    caption: str
    alt: str
    svg: str


def draw_figures(cells: Sequence[ReportCell]) -> tuple[Figure, ...]:
    """Draw every figure that the cells have data for."""
    return (*_known_figures(cells), *_leakage_figures(cells), *_error_figures(cells), *_trace_figures(cells))


# Answers until everybody was known.


def _known_figures(cells: Sequence[ReportCell]) -> Iterator[Figure]:
    rows = until_known(cells)
    if len(rows) < 2:
        return
    printed = any(row.printed is not None for row in rows)
    places = np.arange(len(rows))

    def draw(axes: Axes) -> None:
        for place, row in zip(places, rows, strict=True):
            enough = row.fewest is not None
            answers = row.fewest if row.fewest is not None else row.tried
            axes.plot([row.bound, answers], [place, place], color="#bdbdbd", lw=1.2, zorder=1)
            axes.plot(row.bound, place, ls="", marker="|", ms=10, mew=1.6, color=_BLACK)
            axes.plot(answers, place, ls="", marker="o" if enough else ">", ms=6, color=_COLOURS[0 if enough else 1])
            if row.printed is not None:
                axes.plot(row.printed, place, ls="", marker="D", ms=8, mfc="none", mec=_BLACK, mew=1.4, zorder=5)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: number(value))
        axes.set_yticks(places, [_label(row.played) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(False, axis="y")
        axes.set_xlabel("answers, size query included")
        extra = [
            Line2D([], [], ls="", marker="o", ms=6, color=_COLOURS[0], label="enough in every trial"),
            Line2D([], [], ls="", marker="|", ms=10, mew=1.6, color=_BLACK, label="least ever"),
        ]
        if any(row.fewest is None for row in rows):
            extra.append(Line2D([], [], ls="", marker=">", ms=6, color=_COLOURS[1], label="not enough"))
        if printed:
            extra.append(_hollow("D", "printed in the paper, m"))
        _legend(axes, extra)

    title = "Answers until everybody was known"
    caption = (
        "On a logarithmic axis. Dots: the fewest answers with which everybody was known in every trial; where the "
        "strategy stops by itself, the most that a trial took. Ticks: log2 C(n, n₀) over the bits of an answer, which "
        "nothing can undercut."
    )
    values = "; ".join(
        f"{_label(row.played)}: {f'more than {row.tried}' if row.fewest is None else row.fewest}, at least {row.bound}"
        for row in rows
    )
    inches = (_INCHES[0], 1.5 + 0.26 * len(rows))
    yield Figure("known", title, caption, f"Dot chart. {title}. {values}.", _svg("known", draw, inches))


def intervals(
    name: str, title: str, what: str, groups: Mapping[str, Sequence[tuple[str, float, float, float]]]
) -> Figure:
    """Draw a number and its interval for each of some things, group by group, beside 50.

    Parameters
    ----------
    groups : mapping of str to sequence of (what it is, value, low, high)
        In percent; all groups have the same things in the same order.
    """
    things = [thing for thing, *_ in next(iter(groups.values()))]

    def draw(axes: Axes) -> None:
        axes.axhline(50, color=_GREY, lw=0.9, ls=":")
        for i, (group, rows) in enumerate(groups.items()):
            places = np.arange(len(rows)) + 0.6 * ((i + 0.5) / len(groups) - 0.5)
            values = np.array([[value, low, high] for _, value, low, high in rows])
            reach = np.stack([values[:, 0] - values[:, 1], values[:, 2] - values[:, 0]])
            axes.errorbar(
                places,
                values[:, 0],
                np.maximum(reach, 0),
                ls="",
                marker=_MARKERS[i % 7],
                ms=5,
                capsize=2.5,
                color=_COLOURS[i % 7],
                label=group,
            )
        axes.set_xticks(range(len(things)), things, rotation=20, ha="right")
        axes.set_ylim(-3, 103)
        axes.set_ylabel(what)
        _legend(axes, [Line2D([], [], color=_GREY, lw=0.9, ls=":", label="50%: a coin")])

    values = "; ".join(
        f"{group}: " + ", ".join(f"{thing} {value:.1f}%" for thing, value, *_ in rows) for group, rows in groups.items()
    )
    caption = "With 95% intervals over data splits. As far from the dotted line on either side is as much known."
    return Figure(name, title, caption, f"Chart. {title}. {values}.", _svg(name, draw))


def along(
    name: str,
    title: str,
    caption: str,
    axes_names: tuple[str, str],
    lines: Mapping[str, Sequence[tuple[str, float, float, float]]],
    *,
    printed: Mapping[str, Sequence[tuple[str, float]]] | None = None,
    level: tuple[float, str] | None = None,
    joined: bool = True,
    top: float | None = None,
) -> Figure:
    """Draw numbers and their intervals place by place, evenly spaced, and a paper's figures beside them.

    Parameters
    ----------
    axes_names : tuple of str
        What is along, and what is up.
    lines : mapping of str to sequence of (place, value, low, high)
    printed : mapping of str to sequence of (place, value), optional
        By the line that they belong to.
    level : (value, what it is), optional
        A dotted line.
    joined : bool
        Whether the places have an order, so that a line may join them.
    top : float, optional
        Where the upward axis ends.
    """
    printed = printed or {}
    places = list(dict.fromkeys(place for rows in lines.values() for place, *_ in rows))

    def draw(axes: Axes) -> None:
        if level is not None:
            axes.axhline(level[0], color=_GREY, lw=0.9, ls=":")
        width = min(0.11, 0.5 / max(1, len(lines)))
        for i, (label, rows) in enumerate(lines.items()):
            colour, aside = _COLOURS[i % 7], width * (i - (len(lines) - 1) / 2)
            xs = [places.index(place) + aside for place, *_ in rows]
            values = np.array([row[1:] for row in rows])
            reach = np.stack([values[:, 0] - values[:, 1], values[:, 2] - values[:, 0]])
            axes.errorbar(
                xs,
                values[:, 0],
                np.maximum(reach, 0),
                ls=_DASHES[i % 7] if joined else "",
                lw=1.6,
                elinewidth=1.2,
                marker=_MARKERS[i % 7],
                ms=5,
                capsize=2.5,
                color=colour,
                label=label,
            )
            for place, value in printed.get(label, ()):
                x = places.index(place) + aside
                axes.plot(x, value, ls="", marker="D", ms=8, mfc="none", mec=colour, mew=1.4, zorder=5)
        crowded = max(map(len, places)) > 10 or sum(map(len, places)) > 55
        axes.set_xticks(range(len(places)), places, rotation=20 if crowded else 0, ha="right" if crowded else "center")
        axes.set_xlim(-0.5, len(places) - 0.5)
        axes.set_ylim(bottom=min(0, axes.get_ylim()[0]) if top is None else top - 106, top=top)
        axes.set_xlabel(axes_names[0])
        axes.set_ylabel(axes_names[1])
        extra = [] if level is None else [Line2D([], [], color=_GREY, lw=0.9, ls=":", label=level[1])]
        if printed:
            extra.append(_hollow("D", "printed in the paper"))
        _legend(axes, extra)

    values = "; ".join(
        f"{label}: " + ", ".join(f"{value:.1f} at {place}" for place, value, *_ in rows)
        for label, rows in lines.items()
    )
    tall = (_INCHES[0], _INCHES[1] + 0.1 * len(lines))
    return Figure(name, title, caption, f"Chart. {title}. {values}.", _svg(name, draw, tall))


# Leakage against the number of queries.


def _leakage_figures(cells: Sequence[ReportCell]) -> Iterator[Figure]:
    # Strategies that stop once they know everybody have no curve: the figure above is theirs.
    cells = [cell for cell in cells if cell.scenario.queries != "needed"]
    axis = _leakage_axis(cells)
    if axis is None:
        return
    if all(cell.targeted == 1 for cell in cells):
        yield from _target_figures(cells, axis)
        return
    lowest = min(50.0, *(trial["leakage"] for cell in cells for trial in cell.trials))
    mechanisms = dict.fromkeys(cell.mechanism for cell in cells)
    # A figure for each mechanism; where these are many, one for each way to attack, with a line for each mechanism.
    many = len(mechanisms) > _MANY
    alike = _lines(cells, without=(axis, "compliance.mechanism")) if many else _by_mechanism(cells)
    for i, (label, group) in enumerate(alike.items(), start=1):
        lines = _drawable(group, axis, _by_mechanism if many else _every_line(axis))
        if lines:
            ours = [cell for line in lines.values() for cell in line]
            if not many:
                label = MECHANISMS[ours[0].mechanism] if any(cell.noisy for cell in ours) else "exact answers"
            yield _leakage_figure(f"leakage-{i}", axis, label, lines, lowest)


def _by_mechanism(cells: Iterable[ReportCell]) -> dict[str, list[ReportCell]]:
    lines: dict[str, list[ReportCell]] = {}
    for cell in cells:
        lines.setdefault(MECHANISMS[cell.mechanism], []).append(cell)
    return lines


def _every_line(axis: str) -> Callable[[Iterable[ReportCell]], dict[str, list[ReportCell]]]:
    return lambda cells: _lines(cells, without=(axis, "compliance.mechanism"))


def _drawable(
    cells: Iterable[ReportCell], axis: str, lines: Callable[[Iterable[ReportCell]], dict[str, list[ReportCell]]]
) -> dict[str, list[ReportCell]]:
    """Group into lines those cells that make lines: at least two places each."""
    groups = lines(cell for cell in cells if _finite(cell, axis)).values()
    long = [cell for line in groups if len({_place(cell, axis) for cell in line}) > 1 for cell in line]
    return lines(long)


def _leakage_axis(cells: Sequence[ReportCell]) -> str | None:
    """Choose what leakage is drawn against: the varying number that leaves the fewest lines, queries before others."""
    if not cells:
        return None
    keys = dict.fromkeys(("developer.queries", *cells[0].swept))
    varying = [key for key in keys if len({_place(cell, key) for cell in cells if _finite(cell, key)}) > 1]
    return min(varying, key=lambda key: len(_lines(cells, without=(key, "compliance.mechanism"))), default=None)


def _place(cell: ReportCell, key: str) -> float:
    return float(cell.queries) if key == "developer.queries" else as_float(cell.swept[key])


def _finite(cell: ReportCell, key: str) -> bool:
    return math.isfinite(_place(cell, key))


def _lines(cells: Iterable[ReportCell], without: Sequence[str]) -> dict[str, list[ReportCell]]:
    """Group cells into lines: alike in every swept value except some. What differs between lines names them."""
    cells = list(cells)
    keys = [key for key in (cells[0].swept if cells else ()) if key not in without]
    told_apart = [key for key in keys if len({setting(cell.swept[key]) for cell in cells}) > 1]
    lines: dict[str, list[ReportCell]] = {}
    for cell in cells:
        label = _label({key: setting(cell.swept[key]) for key in told_apart})
        lines.setdefault(label or "mean over trials", []).append(cell)
    return lines


def _label(told: Mapping[str, str]) -> str:
    """Name a line. Names of strategies speak for themselves; a strategy's own decoder needs no name."""
    told = {key: text for key, text in told.items() if text != "own"}
    if "developer.strategy" not in told:
        return ", ".join(f"{symbol(key)} = {text}" for key, text in told.items())
    named = ("developer.strategy", "developer.decoder")
    return ", ".join(dict.fromkeys(text if key in named else f"{symbol(key)} = {text}" for key, text in told.items()))


def _leakage_figure(name: str, axis: str, of: str, lines: Mapping[str, Sequence[ReportCell]], lowest: float) -> Figure:
    cells = [cell for line in lines.values() for cell in line]
    single = len(lines) <= _MANY
    alone = len(lines) == 1 and all("leakage_answers" in cell.summary for cell in cells)
    logarithmic = axis == "compliance.epsilon"
    places = sorted({_place(cell, axis) for cell in cells})
    paper = any(cell.paper is not None and cell.paper.leakage is not None for cell in cells)
    what = "number of metric queries, m" if axis == "developer.queries" else symbol(axis)

    features = all("leakage_features" in cell.summary for cell in cells)
    unasked = "features alone" if features else "no query asked"

    def draw(axes: Axes) -> None:
        axes.axhline(50, color=_GREY, lw=0.9, ls=":")
        baseline = [np.mean([c.baseline.mean for c in cells if _place(c, axis) == place]) for place in places]
        axes.plot(places, baseline, color=_BLACK, lw=1.3, ls=(0, (6, 3)), label=unasked)
        if logarithmic:
            axes.set_xscale("log")
        for i, (label, line) in enumerate(lines.items()):
            colour, marker = _COLOURS[i % 7], _MARKERS[i % 7]
            beside = [_beside(_place(cell, axis), i, len(lines), places, logarithmic) for cell in line]
            for x, cell in zip(beside, line, strict=True):
                trials = [trial["leakage"] for trial in cell.trials] if single else []
                axes.plot([x] * len(trials), trials, ls="", marker=marker, ms=3.5, mew=0, color=colour, alpha=0.28)
                if cell.paper is not None and cell.paper.leakage is not None:
                    axes.plot(x, cell.paper.leakage, ls="", marker="D", ms=8, mfc="none", mec=colour, mew=1.4, zorder=5)
            means = [cell.leakage.mean for cell in line]
            axes.plot(beside, means, color=colour, lw=1.8, ls=_DASHES[i % 7], marker=marker, ms=5.5, label=label)
            if alone:
                answers = [cell.summary["leakage_answers"] for cell in line]
                axes.plot(
                    beside, answers, color=_COLOURS[2], lw=1.3, ls="--", marker="^", ms=4.5, label="answers alone"
                )
        axes.set_ylim(math.floor((lowest - 3) / 5) * 5, 103)
        axes.set_xlabel(what)
        axes.set_ylabel("leakage, %")
        if logarithmic or len(places) <= 12:
            axes.set_xticks(places, [number(place, 6) for place in places])
            axes.minorticks_off()
        extra = [Line2D([], [], color=_GREY, lw=0.9, ls=":", label="50%: a coin")]
        if paper:
            extra.append(_hollow("D", "printed in the paper"))
        _legend(axes, extra)

    heading = f"Leakage against {'queries' if axis == 'developer.queries' else what}, {of}"
    seen = ("Light marks are single trials, lines their means. " if single else "Lines are means over trials. ") + (
        "Only leakage above the dashed line shows that answers gave something away."
    )
    printed = " Hollow diamonds are the paper's printed figures." if paper else ""
    apart = " Lines are set a little apart to be seen." if len(lines) > 1 else ""
    values = "; ".join(
        f"{label}: " + ", ".join(f"{cell.leakage.mean:.1f}% at {number(_place(cell, axis), 6)}" for cell in line)
        for label, line in lines.items()
    )
    alt = f"Line chart. {heading}. Mean leakage, {values}."
    return Figure(name, heading, seen + printed + apart, alt, _svg(name, draw))


def _beside(place: float, line: int, lines: int, places: Sequence[float], logarithmic: bool) -> float:
    """Set the marks of a line a little beside their place, so that no line hides another."""
    step = 0.02 * (line - (lines - 1) / 2)
    if logarithmic:
        return place * math.exp(step * math.log(places[-1] / places[0]))
    return place + step * (places[-1] - places[0])


def _target_figures(cells: Sequence[ReportCell], axis: str) -> Iterator[Figure]:
    """Draw how often the one person aimed at is guessed right; others keep their guess, and so does leakage."""
    told = [cell for cell in cells if "targeted_balanced" in cell.summary]
    lines = _drawable(told, axis, _by_mechanism)
    if not lines:
        return
    places = sorted({_place(cell, axis) for line in lines.values() for cell in line})
    logarithmic = axis == "compliance.epsilon"

    def right(cell: ReportCell) -> float:
        return 100.0 * float(cell.summary["targeted_balanced"])

    def draw(axes: Axes) -> None:
        axes.axhline(50, color=_GREY, lw=0.9, ls=":")
        if logarithmic:
            axes.set_xscale("log")
        for i, (label, line) in enumerate(lines.items()):
            beside = [_beside(_place(cell, axis), i, len(lines), places, logarithmic) for cell in line]
            style: dict[str, Any] = {"color": _COLOURS[i % 7], "ls": _DASHES[i % 7], "marker": _MARKERS[i % 7]}
            axes.plot(beside, list(map(right, line)), lw=1.8, ms=5.5, label=label, **style)
        axes.set_ylim(min(45.0, *(right(cell) - 3 for line in lines.values() for cell in line)), 103)
        axes.set_xlabel(symbol(axis))
        axes.set_ylabel("target right, either group, %")
        axes.set_xticks(places, [number(place, 6) for place in places])
        axes.minorticks_off()
        _legend(axes, [Line2D([], [], color=_GREY, lw=0.9, ls=":", label="50%: a coin")])

    title = "How often the person aimed at is guessed right"
    caption = (
        "The mean of the shares of either group that are guessed right, so that naming the larger group for everybody "
        "is worth 50%. Lines are set a little apart to be seen."
    )
    values = "; ".join(
        f"{label}: " + ", ".join(f"{right(cell):.1f}% at {number(_place(cell, axis), 6)}" for cell in line)
        for label, line in lines.items()
    )
    yield Figure("target", title, caption, f"Line chart. {title}, {values}.", _svg("target", draw))


# The error of the answers against epsilon.


def _error_figures(cells: Sequence[ReportCell]) -> Iterator[Figure]:
    noisy = [cell for cell in cells if cell.noisy and _median(cell) > 0]
    places = sorted({cell.epsilon for cell in noisy})
    if len(places) < 2:
        return
    lines = _lines(noisy, without=("compliance.epsilon", "compliance.mechanism"))
    grouped: dict[str, list[ReportCell]] = {}
    colours = dict(zip(dict.fromkeys(cell.mechanism for cell in noisy), _COLOURS, strict=False))
    for mechanism, (label, line) in itertools.product(colours, lines.items()):
        for cell in (cell for cell in line if cell.mechanism == mechanism):
            named = [MECHANISMS[cell.mechanism]] if len(colours) > 1 or len(lines) == 1 else []
            name = ", ".join([*named, *([label] if len(lines) > 1 else [])])
            grouped.setdefault(name, []).append(cell)
    paper = any(cell.paper is not None and cell.paper.query_error_mean for cell in noisy)

    def draw(axes: Axes) -> None:
        seen: dict[str, int] = {}
        for label, line in grouped.items():
            mechanism = line[0].mechanism
            i = seen[mechanism] = seen.get(mechanism, -1) + 1
            # Colours tell mechanisms apart; where there is one alone, its lines.
            colour, marker = colours[mechanism] if len(colours) > 1 else _COLOURS[i % 7], _MARKERS[i % 7]
            ordered = sorted(line, key=lambda cell: cell.epsilon)
            for cell in ordered:
                medians = [
                    trial["query_error_median"] for trial in cell.trials if trial["query_error_median"] is not None
                ]
                axes.plot(
                    [cell.epsilon] * len(medians), medians, ls="", marker=marker, ms=3, mew=0, color=colour, alpha=0.22
                )
                if cell.paper is not None and cell.paper.query_error_mean:
                    printed = cell.paper.query_error_mean
                    axes.plot(cell.epsilon, printed, ls="", marker=marker, ms=8, mfc="none", mec=colour, mew=1.4)
            medians = [_median(cell) for cell in ordered]
            epsilons = [cell.epsilon for cell in ordered]
            axes.plot(epsilons, medians, color=colour, lw=1.8, ls=_DASHES[i % 7], marker=marker, ms=5.5, label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(bottom=max(axes.get_ylim()[0], _LEAST_ERROR))
        axes.axhline(1, color=_GREY, lw=0.9, ls=":")
        axes.set_xticks(places, [number(place, 6) for place in places])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda value, _: number(value))
        axes.set_xlabel("privacy budget of a trial, ε")
        axes.set_ylabel("error of an answer, median")
        extra = [Line2D([], [], color=_GREY, lw=0.9, ls=":", label="1: the widest possible gap")]
        if paper:
            extra.append(_hollow("o", "the paper's printed average"))
        _legend(axes, extra)

    tall = (_INCHES[0], _INCHES[1] + 0.19 * max(0, len(grouped) - 4))
    title = "Error of the answers against the privacy budget"
    caption = "Median size of the error, on logarithmic axes. Light marks are single trials, lines their medians." + (
        " An error of 1 is as large as a gap can be: answers above the dotted line say nothing."
        + (" Hollow marks are the paper's printed averages, in the colour and shape of their cell." if paper else "")
    )
    values = "; ".join(
        f"{label}: " + ", ".join(f"{number(_median(cell))} at ε = {number(cell.epsilon, 6)}" for cell in line)
        for label, line in grouped.items()
    )
    yield Figure("error", title, caption, f"Line chart. {title}. Median errors, {values}.", _svg("error", draw, tall))


def _median(cell: ReportCell) -> float:
    return float(cell.summary.get("query_error_median", math.nan))


# One trial: its answers and the vector that was reconstructed from them.


def _trace_figures(cells: Sequence[ReportCell]) -> Iterator[Figure]:
    traced = [cell for cell in cells if cell.trace]
    noisy = _telling(cell for cell in traced if cell.noisy)
    exact = _telling(cell for cell in traced if not cell.noisy)
    chosen = noisy or exact
    if chosen is not None and chosen.trace is not None and len(chosen.trace["exact"]) >= _FEW:
        yield _answers_figure(chosen)
    for name, cell in (("reconstruction-exact", exact), ("reconstruction-noisy", noisy)):
        # Other metrics speak about some of the people alone, and a trace does not say about whom.
        if cell is not None and cell.summary["metric"] == "sp" and cell.trace and "reconstruction" in cell.trace:
            yield _reconstruction_figure(name, cell)


def _telling(cells: Iterable[ReportCell]) -> ReportCell | None:
    """Choose the cell with the largest budget and the most queries; the first of several."""
    return max(cells, key=lambda cell: (cell.epsilon, cell.queries), default=None)


def _cell_words(cell: ReportCell) -> str:
    """Name a cell in a caption."""
    said = {"developer.queries", "compliance.epsilon", "compliance.mechanism"}
    noise = f"{MECHANISMS[cell.mechanism]}, ε = {number(cell.epsilon, 6)}" if cell.noisy else "exact answers"
    rest = [f"{symbol(key)} = {setting(value)}" for key, value in cell.swept.items() if key not in said]
    return ", ".join([noise, f"m = {cell.queries:,}", *rest, "first trial"])


def _answers_figure(cell: ReportCell) -> Figure:
    assert cell.trace is not None, "chosen for it"
    # An answer that is no number was refused: no point stands for it.
    exact, released = (np.array(cell.trace[key], dtype=np.float64) for key in ("exact", "released"))
    places = np.arange(1, len(exact) + 1)
    name = str(cell.summary["metric"])
    kind = name.removeprefix("abs_").upper().replace("_", " ")
    metric = f"|{kind}|" if name.startswith("abs_") else kind
    lowest, highest = metric_range(name)
    impossible = (released < lowest) | (released > highest)

    def draw(axes: Axes) -> None:
        if cell.noisy:
            axes.vlines(places, exact, released, color="#bdbdbd", lw=0.8)
            axes.plot(places, released, ls="", marker="s", ms=4, color=_COLOURS[1], label="released, with noise")
            axes.plot(places, exact, ls="", marker="o", ms=4, color=_COLOURS[0], label="exact")
            if np.abs(released).max() > 3:
                axes.set_yscale("symlog", linthresh=1)
                axes.yaxis.set_major_formatter(lambda value, _: number(value))
            if impossible.any() and math.isfinite(highest):
                axes.axhspan(lowest, highest, color="#f1f1f1", lw=0, zorder=0, label="gaps that are possible")
        else:
            axes.plot(places, exact, ls="", marker="o", ms=4, color=_COLOURS[0], label="released, which is exact")
        axes.set_xlabel("query")
        axes.set_ylabel(f"answer, {metric}")
        _legend(axes, [])

    shown = f" The first {len(exact)} of {cell.queries:,} answers." if cell.queries > len(exact) else ""
    if cell.noisy:
        off = int((np.abs(released - exact) > np.abs(exact)).sum())
        outside = int(impossible.sum())
        seen = f"{off} of {len(exact)} released answers are off by more than the gap itself" + (
            f", and {outside} lie outside the grey band, where no gap can be." if outside else "."
        )
    else:
        least, most = number(float(exact.min())), number(float(exact.max()))
        seen = f"All answers lie between {least} and {most}."
    title = "Answered queries"
    caption = f"{_cell_words(cell)}. {seen}{shown}"
    return Figure("answers", title, _capital(caption), f"Scatter chart. {title}: {caption}", _svg("answers", draw))


def _reconstruction_figure(name: str, cell: ReportCell) -> Figure:
    assert cell.trace is not None, "chosen for it"
    true, found = np.array(cell.trace["s"]), np.array(cell.trace["reconstruction"])
    first = cell.trials[0]
    height = 1 / first["n0"] + 1 / first["n1"]
    threshold = height / 2
    wrong = (found > threshold) != (true > threshold)
    places = np.arange(1, len(true) + 1)

    def draw(axes: Axes) -> None:
        if np.abs(found).max() > 5 * height:
            axes.set_yscale("symlog", linthresh=height)
            axes.yaxis.set_major_formatter(lambda value, _: number(value))
        axes.vlines(places, 0, true, color="#9a9a9a", lw=1.6)
        axes.plot(places, true, ls="", marker="_", ms=5, color="#7a7a7a", label="true")
        axes.axhline(threshold, color=_GREY, lw=0.9, ls=":", label="threshold")
        right = ~wrong
        axes.plot(
            places[right], found[right], ls="", marker="o", ms=3.8, color=_COLOURS[0], label="reconstructed, right"
        )
        if wrong.any():
            axes.plot(places[wrong], found[wrong], ls="", marker="X", ms=5.5, mew=0, color=_COLOURS[1], label="wrong")
        axes.set_xlabel("person")
        axes.set_ylabel("s")
        _legend(axes, [])

    people = first["n"]
    shown = f"the first {len(true)} of {people:,} people" if people > len(true) else f"all {people:,} people"
    marked = (
        f"An orange cross is a person put into the wrong group: {int(wrong.sum())} of {shown}."
        if wrong.any()
        else f"{_capital(shown)} are put into the right group."
    )
    title = "Reconstructed s, " + ("from noisy answers" if cell.noisy else "from exact answers")
    caption = f"{_cell_words(cell)}. Stems are the truth: high for the disadvantaged, 0 for the advantaged. {marked}"
    return Figure(name, title, _capital(caption), f"Stem chart. {title}: {caption}", _svg(name, draw))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# Drawing.


def _hollow(marker: str, label: str) -> Line2D:
    return Line2D([], [], ls="", marker=marker, ms=7, mfc="none", mec=_BLACK, mew=1.3, label=label)


def _legend(axes: Axes, extra: Sequence[Line2D]) -> None:
    handles = [*axes.get_legend_handles_labels()[0], *extra]
    figure = axes.get_figure()
    assert isinstance(figure, Canvas), "it is on one"
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    beside = len(handles) > 1 and longest <= _BESIDE
    figure.legend(handles=handles, loc="outside lower center", ncols=2 if beside else 1, columnspacing=1.4)


def _svg(name: str, draw: Callable[[Axes], None], inches: tuple[float, float] = _INCHES) -> str:
    """Draw on new axes and return the SVG element: the same bytes for the same figure, with ids of its own."""
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
        canvas = Canvas(figsize=inches, layout="constrained")
        draw(canvas.add_subplot())
        file = io.StringIO()
        canvas.savefig(file, format="svg", metadata=dict.fromkeys(_METADATA), transparent=True)
    text = file.getvalue()
    text = text[text.index("<svg") :]
    for mark in ('id="', 'href="#', "url(#"):
        text = text.replace(mark, f"{mark}{name}-")
    return text
