"""The figures of the reveal game's report."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D

from compliance.mechanisms import MECHANISMS
from fairwall.laws.mechanisms.calibration import metric_range
from fairwall.laws.privacy.exposure import one_person
from sim.games.reveal.cells import ReportCell, best_attacks, rank, until_known
from sim.report.drawing import (
    BLACK,
    COLOURS,
    DASHES,
    GREY,
    INCHES,
    MARKERS,
    Figure,
    MarkStyle,
    hollow,
    legend,
    looks,
    on_axes,
)
from sim.report.line_plot import Axis, Curve, Level, LinePanel, line_plot
from sim.report.notation import as_float, number, setting, symbol

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_ERROR = 1e-6
"""Largest error that counts as rounding, and does not decide the scale of a figure."""


def curves_of(cells: Iterable[ReportCell], without: Sequence[str]) -> dict[str, list[ReportCell]]:
    """Group cells into lines of equal swept values, some keys excepted. A line's name has the values that differ."""
    cells = list(cells)
    keys = [key for key in (cells[0].swept if cells else ()) if key not in without]
    told_apart = [key for key in keys if len({setting(cell.swept[key]) for cell in cells}) > 1]
    lines: dict[str, list[ReportCell]] = {}
    for cell in cells:
        label = label_of({key: setting(cell.swept[key]) for key in told_apart})
        lines.setdefault(label or "mean over trials", []).append(cell)
    return lines


def by_mechanism(cells: Iterable[ReportCell]) -> dict[str, list[ReportCell]]:
    """Group cells into one line per mechanism, by its title."""
    lines: dict[str, list[ReportCell]] = {}
    for cell in cells:
        lines.setdefault(MECHANISMS[cell.mechanism].title, []).append(cell)
    return lines


def label_of(values: Mapping[str, str]) -> str:
    """Return the name of a line. Strategies are named without their key, and a strategy's usual decoder not at all."""
    values = {key: text for key, text in values.items() if text != "own"}
    if "developer.strategy" not in values:
        return ", ".join(f"{symbol(key)} = {text}" for key, text in values.items())
    named = ("developer.strategy", "developer.decoder")
    return ", ".join(dict.fromkeys(text if key in named else f"{symbol(key)} = {text}" for key, text in values.items()))


def values_of(lines: Mapping[str, Iterable[ReportCell]], tell: Callable[[ReportCell], str]) -> str:
    """Return every cell's value in words, line by line, for readers who cannot see the figure."""
    return "; ".join(f"{label}: {', '.join(map(tell, line))}" for label, line in lines.items())


def ticks_at(places: Iterable[float]) -> dict[float, str]:
    """Return axis labels by place."""
    return {place: number(place, 6) for place in places}


def people_shown(drawn: int, people: int) -> str:
    """Return in words how many of the people a figure shows."""
    return f"the first {drawn} of {people:,} people" if people > drawn else f"all {people:,} people"


def median_error(cell: ReportCell) -> float | None:
    """Return the median error of a cell's answers; None where they are not numbers."""
    error = cell.summary.get("query_error_median")
    return None if error is None else float(error)


def capital(text: str) -> str:
    """Return a text with its first letter as a capital."""
    return text[:1].upper() + text[1:]


_MANY = 3
"""Most lines of a figure that also shows single trials, and most mechanisms with a figure each."""
_COIN = Level(50, "50%: a coin")


def leakage_figures(cells: Sequence[ReportCell], look: Mapping[str, MarkStyle]) -> Iterator[Figure]:
    """Draw leakage against a varying number, or the accuracy about the one person aimed at."""
    # Strategies that stop once they know everybody are drawn by `known_figures`.
    cells = [cell for cell in cells if cell.scenario.queries != "needed"]
    axis = _leakage_axis(cells)
    if axis is None:
        return
    if all(cell.targeted == 1 for cell in cells):
        yield from _target_figures(cells, axis, look)
        return
    lowest = min(50.0, *(trial["leakage"] for cell in cells for trial in cell.trials))
    mechanisms = dict.fromkeys(cell.mechanism for cell in cells)
    # One figure per mechanism; with many mechanisms, one per attack, with a line per mechanism.
    many = len(mechanisms) > _MANY
    alike = curves_of(cells, without=(axis, "compliance.mechanism")) if many else by_mechanism(cells)
    for i, (label, group) in enumerate(alike.items(), start=1):
        lines = _drawable(group, axis, by_mechanism if many else _every_line(axis))
        if lines:
            ours = [cell for line in lines.values() for cell in line]
            if not many:
                label = MECHANISMS[ours[0].mechanism].title if any(cell.noisy for cell in ours) else "exact answers"
            yield _leakage_figure(f"leakage-{i}", axis, label, lines, lowest, look)


def _every_line(axis: str) -> Callable[[Iterable[ReportCell]], dict[str, list[ReportCell]]]:
    return lambda cells: curves_of(cells, without=(axis, "compliance.mechanism"))


def _drawable(
    cells: Iterable[ReportCell], axis: str, lines: Callable[[Iterable[ReportCell]], dict[str, list[ReportCell]]]
) -> dict[str, list[ReportCell]]:
    """Group cells into lines, leaving out lines with a single place."""
    groups = lines(cell for cell in cells if _finite(cell, axis)).values()
    long = [cell for line in groups if len({_place(cell, axis) for cell in line}) > 1 for cell in line]
    return lines(long)


def _leakage_axis(cells: Sequence[ReportCell]) -> str | None:
    """Return the varying number that leaves the fewest lines, queries before others."""
    if not cells:
        return None
    keys = dict.fromkeys(("developer.queries", *cells[0].swept))
    varying = [key for key in keys if len({_place(cell, key) for cell in cells if _finite(cell, key)}) > 1]
    return min(varying, key=lambda key: len(curves_of(cells, without=(key, "compliance.mechanism"))), default=None)


def _place(cell: ReportCell, key: str) -> float:
    return float(cell.queries) if key == "developer.queries" else as_float(cell.swept[key])


def _finite(cell: ReportCell, key: str) -> bool:
    return math.isfinite(_place(cell, key))


def _styles(lines: Mapping[str, Sequence[ReportCell]], look: Mapping[str, MarkStyle]) -> dict[str, MarkStyle]:
    """Return each line's look: the colour is its mechanism's, marks and dashes distinguish a mechanism's lines."""
    mechanisms = {label: line[0].mechanism for label, line in lines.items()}
    if len(set(mechanisms.values())) == len(lines):
        return {label: look[mechanism] for label, mechanism in mechanisms.items()}
    return {
        label: MarkStyle(look[mechanism].colour, MARKERS[i % 7], DASHES[i % 7])
        for i, (label, mechanism) in enumerate(mechanisms.items())
    }


def _leakage_figure(
    name: str,
    axis: str,
    of: str,
    lines: Mapping[str, Sequence[ReportCell]],
    lowest: float,
    look: Mapping[str, MarkStyle],
) -> Figure:
    cells = [cell for line in lines.values() for cell in line]
    single = len(lines) <= _MANY
    alone = len(lines) == 1 and all("leakage_answers" in cell.summary for cell in cells)
    places = sorted({_place(cell, axis) for cell in cells})
    paper = any(cell.printed("leakage") is not None for cell in cells)
    what = "number of metric queries, m" if axis == "developer.queries" else symbol(axis)
    features = all("leakage_features" in cell.summary for cell in cells)
    styles = _styles(lines, look)
    baseline = [(x, float(np.mean([c.baseline.mean for c in cells if _place(c, axis) == x]))) for x in places]
    unasked = "features alone" if features else "no query asked"
    curves = [Curve(baseline, MarkStyle(BLACK, "", (0, (6, 3))), unasked, style={"lw": 1.3})]
    for i, (label, line) in enumerate(lines.items()):
        own = styles[label]
        beside = [_beside(_place(cell, axis), i, len(lines), places, axis) for cell in line]
        for x, cell in zip(beside, line, strict=True):
            trials = [(x, trial["leakage"]) for trial in cell.trials if single]
            curves.append(Curve(trials, replace(own, size=3.5), joined=False, style={"mew": 0, "alpha": 0.28}))
            if (printed := cell.printed("leakage")) is not None:
                mark = MarkStyle(own.colour, "D", hollow=True, size=8)
                curves.append(Curve([(x, printed)], mark, joined=False, style={"zorder": 5}))
        means = [(x, cell.leakage.mean) for x, cell in zip(beside, line, strict=True)]
        curves.append(Curve(means, replace(own, size=5.5), label, style={"lw": 1.8}))
        if alone:
            answers = [(x, cell.summary["leakage_answers"]) for x, cell in zip(beside, line, strict=True)]
            curves.append(
                Curve(answers, MarkStyle(COLOURS[2], "^", "--", size=4.5), "answers alone", style={"lw": 1.3})
            )

    heading = f"Leakage against {'queries' if axis == 'developer.queries' else what}, {of}"
    seen = ("Light marks are single trials, lines their means. " if single else "Lines are means over trials. ") + (
        "Only leakage above the dashed line shows that answers gave something away."
    )
    hollow_ones = " Hollow diamonds are the paper's printed figures." if paper else ""
    apart = " Lines are set a little apart to be seen." if len(lines) > 1 else ""
    values = values_of(lines, lambda cell: f"{cell.leakage.mean:.1f}% at {number(_place(cell, axis), 6)}")
    few = axis == "compliance.epsilon" or len(places) <= 12
    return line_plot(
        name,
        heading,
        seen + hollow_ones + apart,
        f"Line chart. {heading}. Mean leakage, {values}.",
        [[LinePanel(curves, [_COIN])]],
        Axis(what, log=axis == "compliance.epsilon", ticks=ticks_at(places) if few else None),
        [Axis("leakage, %", low=math.floor((lowest - 3) / 5) * 5, high=103)],
        more=[hollow("D", "printed in the paper")] if paper else [],
    )


def _beside(place: float, line: int, lines: int, places: Sequence[float], axis: str) -> float:
    """Shift a mark of a line sideways, so that no line hides another."""
    step = 0.02 * (line - (lines - 1) / 2)
    if axis == "compliance.epsilon":
        return place * math.exp(step * math.log(places[-1] / places[0]))
    return place + step * (places[-1] - places[0])


def _target_figures(cells: Sequence[ReportCell], axis: str, look: Mapping[str, MarkStyle]) -> Iterator[Figure]:
    """Draw the accuracy about the one person aimed at; other people's guesses, and so leakage, do not change."""
    # If the person was always of one group, there is no mean over both groups.
    balanced = any("targeted_balanced" in cell.summary for cell in cells)
    key = "targeted_balanced" if balanced else "targeted_rate"
    lines = _drawable([cell for cell in cells if key in cell.summary], axis, by_mechanism)
    if not lines:
        return
    places = sorted({_place(cell, axis) for line in lines.values() for cell in line})

    def right(cell: ReportCell) -> float:
        return 100.0 * float(cell.summary[key])

    curves = []
    for i, (label, line) in enumerate(lines.items()):
        points = [(_beside(_place(cell, axis), i, len(lines), places, axis), right(cell)) for cell in line]
        curves.append(Curve(points, replace(look[line[0].mechanism], size=5.5), label, style={"lw": 1.8}))
    title = "How often the person aimed at is guessed right"
    what = (
        "The mean of the shares of either group that are guessed right, so that naming the larger group for everybody "
        "is worth 50%."
        if balanced
        else "The share of the trials in which that person’s group is guessed right; in all of them it was the same."
    )
    lowest = min(45.0, *(right(cell) - 3 for line in lines.values() for cell in line))
    values = values_of(lines, lambda cell: f"{right(cell):.1f}% at {number(_place(cell, axis), 6)}")
    yield line_plot(
        "target",
        title,
        f"{what} Lines are set a little apart to be seen.",
        f"Line chart. {title}, {values}.",
        [[LinePanel(curves, [_COIN] if balanced else [])]],
        Axis(symbol(axis), log=axis == "compliance.epsilon", ticks=ticks_at(places)),
        [Axis(f"target right, {'either group, %' if balanced else '% of trials'}", low=lowest, high=103)],
    )


_PANELS = 3
_EVEN = Curve([(0, 0), (100, 100)], MarkStyle(GREY, "", (0, (1, 1))), "as sure as it is right", style={"lw": 0.9})


def confidence_figures(cells: Sequence[ReportCell], look: Mapping[str, MarkStyle]) -> Iterator[Figure]:
    """Draw the best attack of each mechanism, a panel for each of the greatest epsilons."""
    told = [cell for cell in best_attacks(cells) if cell.noisy and cell.sure is not None and cell.sure.curve()]
    epsilons = sorted({cell.epsilon for cell in told})[-_PANELS:]
    if not epsilons:
        return
    shown = [cell for cell in told if cell.epsilon in epsilons]
    title = "How sure the attack was of each person, and how often it was right"
    caption = (
        "The probability that a person is disadvantaged as the best attack of those played has it by the answers "
        "alone, and as it was, each group counting as much as the other, with 95% intervals. Above or below the lines "
        "of the guarantee nobody can be right about anybody, not even who knows how large both groups are."
    )
    panels = [
        LinePanel(
            [_EVEN, *(_curve(cell, look) for cell in shown if cell.epsilon == epsilon)],
            [
                Level(100 * one_person(epsilon), "guarantee, e^(2ε)/(1+e^(2ε))", dash="-"),
                Level(100 - 100 * one_person(epsilon), dash="-"),
            ],
            f"ε = {number(epsilon, 6)}",
        )
        for epsilon in epsilons
    ]
    values = "; ".join(
        f"{cell.noise}: {', '.join(f'{100 * right:.0f}% at {100 * said:.0f}%' for said, right, _ in cell.sure.curve())}"
        for cell in shown
        if cell.sure is not None
    )
    x, y = Axis("disadvantaged, says the attack, %", low=-2, high=102), Axis("disadvantaged, %", low=-2, high=102)
    inches = (2.1 + 2.6 * len(panels), 3.9)
    alt = f"Line chart. {title}. {values}."
    yield line_plot("confidence", title, caption, alt, [panels], x, [y], inches=inches, wide=len(panels) > 1)


def _curve(cell: ReportCell, look: Mapping[str, MarkStyle]) -> Curve:
    assert cell.sure is not None, "chosen for it"
    points = cell.sure.curve()
    bars = [100 * 1.96 * error * right * (1 - right) for _, right, error in points]
    label = MECHANISMS[cell.mechanism].title
    return Curve([(100 * said, 100 * right) for said, right, _ in points], look[cell.mechanism], label, bars=bars)


def tradeoff_figures(cells: Sequence[ReportCell], look: Mapping[str, MarkStyle]) -> Iterator[Figure]:
    """Draw the best attack's leakage against the median error of an answer."""
    points = [cell for cell in best_attacks(cells) if median_error(cell) is not None and cell.targeted > 1]
    told = [error for cell in points if (error := median_error(cell)) is not None and error > LEAST_ERROR]
    if len(points) < 2 or not told:
        return
    # An error of 0 is drawn to the left of all others on the logarithmic axis.
    nothing = min(told) / 4
    least = min(max(median_error(cell) or 0.0, nothing) for cell in points)
    lines = by_mechanism(points)
    baseline = float(np.mean([cell.baseline.mean for cell in points]))

    def draw(axes: Axes) -> None:
        axes.set_xscale("log")
        axes.axhline(50, color=GREY, lw=0.9, ls=":")
        axes.axhline(baseline, color=BLACK, lw=1.1, ls=(0, (6, 3)), label="before asking")
        for label, line in lines.items():
            style = look[line[0].mechanism]
            ordered = sorted(line, key=lambda cell: cell.epsilon)
            places = [max(median_error(cell) or 0.0, nothing) for cell in ordered]
            leaked = [cell.leakage.mean for cell in ordered]
            axes.plot(
                places, leaked, color=style.colour, marker=style.marker, ls=style.dash, lw=1.2, ms=7,
                label=label,
            )  # fmt: skip
            # Labels on all points would overlap where everybody is known.
            ends = zip((places[0], places[-1]), (leaked[0], leaked[-1]), (ordered[0], ordered[-1]), strict=True)
            for place, leakage, cell in ends:
                axes.annotate(
                    "exact" if not cell.noisy else number(cell.epsilon, 6), (place, leakage),
                    textcoords="offset points", xytext=(6, 5), fontsize=8, color=style.colour,
                )  # fmt: skip
        low = min(50.0, *(cell.leakage.mean for cell in points))
        axes.set_ylim(math.floor((low - 3) / 5) * 5, 104)
        axes.margins(x=0.12)
        axes.minorticks_off()
        axes.xaxis.set_major_formatter(lambda value, _: number(value))
        if least < nothing * 2:
            axes.set_xticks([nothing, *(tick for tick in axes.get_xticks() if nothing * 2 < tick < axes.get_xlim()[1])])
            axes.xaxis.set_major_formatter(lambda value, _: "0" if value <= nothing else number(value))
        axes.set_xlabel("error of an answer, median")
        axes.set_ylabel("leakage of the best attack, %")
        legend(axes, [Line2D([], [], color=GREY, lw=0.9, ls=":", label="50%: a coin")])

    title = "What an answer is worth, and what it gives away"
    caption = (
        "A point for each mechanism and ε, the least and greatest of which stand beside it: the best attack of those "
        "played. Down and to the left is better: less given away, answers that are closer."
    )
    values = values_of(
        lines,
        lambda cell: f"{cell.leakage.mean:.1f}% at error {number(median_error(cell))} (ε = {number(cell.epsilon, 6)})",
    )
    yield Figure("tradeoff", title, caption, f"Scatter chart. {title}. {values}.", on_axes(draw), (9.0, 4.6), wide=True)


def error_figures(cells: Sequence[ReportCell], look: Mapping[str, MarkStyle]) -> Iterator[Figure]:
    """Draw the median errors of the answers against epsilon."""
    noisy = [cell for cell in cells if cell.noisy and _median(cell) >= 0]
    places = sorted({cell.epsilon for cell in noisy})
    if len(places) < 2 or not any(_median(cell) for cell in noisy):
        return
    # Zero, and errors due to rounding, are drawn at the end of the logarithmic axis.
    rounded = any(_median(cell) < LEAST_ERROR for cell in noisy)
    lines = curves_of(noisy, without=("compliance.epsilon", "compliance.mechanism"))
    grouped: dict[str, list[ReportCell]] = {}
    mechanisms = dict.fromkeys(cell.mechanism for cell in noisy)
    for mechanism, (label, line) in itertools.product(mechanisms, lines.items()):
        for cell in (cell for cell in line if cell.mechanism == mechanism):
            named = [MECHANISMS[cell.mechanism].title] if len(mechanisms) > 1 or len(lines) == 1 else []
            name = ", ".join([*named, *([label] if len(lines) > 1 else [])])
            grouped.setdefault(name, []).append(cell)
    paper = any(cell.printed("query_error_mean") for cell in noisy)

    def draw(axes: Axes) -> None:
        seen: dict[str, int] = {}
        for label, line in grouped.items():
            mechanism = line[0].mechanism
            i = seen[mechanism] = seen.get(mechanism, -1) + 1
            # Colour by mechanism, as everywhere on the page; marks and dashes by line.
            own = look[mechanism]
            colour = own.colour
            marker, dash = (MARKERS[i % 7], DASHES[i % 7]) if i else (own.marker, own.dash)
            ordered = sorted(line, key=lambda cell: cell.epsilon)
            for cell in ordered:
                medians = [
                    max(trial["query_error_median"], LEAST_ERROR)
                    for trial in cell.trials
                    if trial["query_error_median"] is not None
                ]
                axes.plot(
                    [cell.epsilon] * len(medians), medians, ls="", marker=marker, ms=3, mew=0, color=colour, alpha=0.22
                )
                if printed := cell.printed("query_error_mean"):
                    axes.plot(cell.epsilon, printed, ls="", marker=marker, ms=8, mfc="none", mec=colour, mew=1.4)
            medians = [max(_median(cell), LEAST_ERROR) for cell in ordered]
            epsilons = [cell.epsilon for cell in ordered]
            axes.plot(epsilons, medians, color=colour, lw=1.8, ls=dash, marker=marker, ms=5.5, label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        if rounded:
            axes.set_ylim(bottom=LEAST_ERROR / 3)
        axes.axhline(1, color=GREY, lw=0.9, ls=":")
        axes.set_xticks(places, list(ticks_at(places).values()))
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda value, _: number(value) if value >= 2 * LEAST_ERROR else _least(value))
        axes.set_xlabel("privacy budget of a trial, ε")
        axes.set_ylabel("error of an answer, median")
        extra = [Line2D([], [], color=GREY, lw=0.9, ls=":", label="1: the widest possible gap")]
        if paper:
            extra.append(hollow("o", "the paper's printed average"))
        legend(axes, extra)

    tall = (INCHES[0], INCHES[1] + 0.19 * max(0, len(grouped) - 4))
    title = "Error of the answers against the privacy budget"
    caption = "Median size of the error, on logarithmic axes. Light marks are single trials, lines their medians." + (
        " An error of 1 is as large as a gap can be: answers above the dotted line say nothing."
        + (f" Errors below {number(LEAST_ERROR)} stand at {number(LEAST_ERROR)}: rounding." if rounded else "")
        + (" Hollow marks are the paper's printed averages, in the colour and shape of their cell." if paper else "")
    )
    values = values_of(grouped, lambda cell: f"{number(_median(cell))} at ε = {number(cell.epsilon, 6)}")
    yield Figure("error", title, caption, f"Line chart. {title}. Median errors, {values}.", on_axes(draw), tall)


def _least(value: float) -> str:
    return f"≤ {number(LEAST_ERROR)}" if value >= LEAST_ERROR / 2 else ""


def _median(cell: ReportCell) -> float:
    return float(cell.summary.get("query_error_median", math.nan))


_FEW = 5
"""Fewest answers for a figure."""


def trace_figures(cells: Sequence[ReportCell]) -> Iterator[Figure]:
    """Draw the first answers of one trial, and the vectors that were reconstructed with and without noise."""
    traced = [cell for cell in cells if cell.trace]
    noisy = _telling(cell for cell in traced if cell.noisy)
    exact = _telling(cell for cell in traced if not cell.noisy)
    chosen = noisy or exact
    if chosen is not None and chosen.trace is not None and len(chosen.trace["exact"]) >= _FEW:
        yield _answers_figure(chosen)
    for name, cell in (("reconstruction-exact", exact), ("reconstruction-noisy", noisy)):
        # Other metrics are about some of the people only, and a trace does not record which.
        if cell is not None and cell.summary["metric"] == "sp" and cell.trace and "reconstruction" in cell.trace:
            yield _reconstruction_figure(name, cell)


def _telling(cells: Iterable[ReportCell]) -> ReportCell | None:
    """Return the cell with the largest budget and the most queries; the first of several."""
    return max(cells, key=lambda cell: (cell.epsilon, cell.queries), default=None)


def cell_words(cell: ReportCell) -> str:
    """Return a cell's description for a caption."""
    said = {"developer.queries", "compliance.epsilon", "compliance.mechanism"}
    rest = [f"{symbol(key)} = {setting(value)}" for key, value in cell.swept.items() if key not in said]
    return ", ".join([cell.noise, f"m = {cell.queries:,}", *rest, "first trial"])


def _answers_figure(cell: ReportCell) -> Figure:
    assert cell.trace is not None, "chosen for it"
    # A refused answer is NaN, and has no point.
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
            axes.plot(places, released, ls="", marker="s", ms=4, color=COLOURS[1], label="released, with noise")
            axes.plot(places, exact, ls="", marker="o", ms=4, color=COLOURS[0], label="exact")
            if np.abs(released).max() > 3:
                axes.set_yscale("symlog", linthresh=1)
                axes.yaxis.set_major_formatter(lambda value, _: number(value))
            if impossible.any() and math.isfinite(highest):
                axes.axhspan(lowest, highest, color="#f1f1f1", lw=0, zorder=0, label="gaps that are possible")
        else:
            axes.plot(places, exact, ls="", marker="o", ms=4, color=COLOURS[0], label="released, which is exact")
        axes.set_xlabel("query")
        axes.set_ylabel(f"answer, {metric}")
        legend(axes, [])

    shown = f" The first {len(exact)} of {cell.queries:,} answers." if cell.queries > len(exact) else ""
    if cell.noisy:
        off = int((np.abs(released - exact) > np.abs(exact)).sum())
        outside = int(impossible.sum())
        seen = f"{off} of {len(exact)} released answers are off by more than the gap itself" + (
            f", and {outside} {'lies' if outside == 1 else 'lie'} outside the grey band, where no gap can be."
            if outside
            else "."
        )
    else:
        least, most = number(float(exact.min())), number(float(exact.max()))
        seen = f"All answers lie between {least} and {most}."
    title = "Answered queries"
    caption = f"{cell_words(cell)}. {seen}{shown}"
    return Figure("answers", title, capital(caption), f"Scatter chart. {title}: {caption}", on_axes(draw))


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
        axes.axhline(threshold, color=GREY, lw=0.9, ls=":", label="threshold")
        right = ~wrong
        axes.plot(
            places[right], found[right], ls="", marker="o", ms=3.8, color=COLOURS[0], label="reconstructed, right"
        )
        if wrong.any():
            axes.plot(places[wrong], found[wrong], ls="", marker="X", ms=5.5, mew=0, color=COLOURS[1], label="wrong")
        axes.set_xlabel("person")
        axes.set_ylabel("s")
        legend(axes, [])

    shown = people_shown(len(true), first["n"])
    marked = (
        f"An orange cross is a person put into the wrong group: {int(wrong.sum())} of {shown}."
        if wrong.any()
        else f"{capital(shown)} are put into the right group."
    )
    title = "Reconstructed s, " + ("from noisy answers" if cell.noisy else "from exact answers")
    caption = f"{cell_words(cell)}. Stems are the truth: high for the disadvantaged, 0 for the advantaged. {marked}"
    return Figure(name, title, capital(caption), f"Stem chart. {title}: {caption}", on_axes(draw))


_ACROSS = 20
"""Number of people in a row."""


def people_figures(cells: Sequence[ReportCell]) -> Iterator[Figure]:
    """Draw the people of two first trials, as the best attack guessed them: from exact answers, and from noisy ones."""
    traced = [cell for cell in cells if cell.trace and "guess" in cell.trace and cell.targeted > 1]
    for name, noisy in (("people-exact", False), ("people-noisy", True)):
        alike = [cell for cell in traced if cell.noisy is noisy]
        if alike:
            yield _figure(name, min(alike, key=rank))


def _figure(name: str, cell: ReportCell) -> Figure:
    assert cell.trace is not None, "chosen for it"
    group, guess = np.array(cell.trace["group"]), np.array(cell.trace["guess"])
    across, down = np.arange(len(group)) % _ACROSS, np.arange(len(group)) // _ACROSS
    wrong = guess != group

    def draw(axes: Axes) -> None:
        for value, label, marker in ((1, "advantaged", "o"), (0, "disadvantaged", "s")):
            own, colour = group == value, COLOURS[0 if value else 1]
            axes.plot(across[own], down[own], ls="", marker=marker, ms=8, mew=0, color=colour, label=label)
        axes.plot(
            across[wrong], down[wrong], ls="", marker="o", ms=13, mfc="none", mec=BLACK, mew=1.5, label="guessed wrong"
        )
        axes.set_xlim(-0.9, _ACROSS - 0.1)
        axes.set_ylim(down.max() + 0.9, -0.9)
        axes.set_axis_off()
        legend(axes, [])

    shown = people_shown(len(group), int(cell.trials[0]["n"]))
    title = "Who was found out, " + ("from noisy answers" if cell.noisy else "from exact answers")
    said = f"{cell_words(cell)}. {int(wrong.sum())} of {shown} {'is' if wrong.sum() == 1 else 'are'} guessed wrong."
    small = f"{int((wrong & (group == 0)).sum())} of the {int((group == 0).sum())} disadvantaged"
    caption = capital(f"{said} A ring is a wrong guess: of {small}, and else of the advantaged.")
    inches = (5.4, 0.9 + 0.36 * (int(down.max()) + 1))
    return Figure(name, title, caption, f"Grid of people. {title}: {caption}", on_axes(draw), inches)


def known_figures(cells: Sequence[ReportCell]) -> Iterator[Figure]:
    """Draw the fewest answers with which everybody was known, by strategy, and the theoretical minimum."""
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
            axes.plot(row.bound, place, ls="", marker="|", ms=10, mew=1.6, color=BLACK)
            axes.plot(answers, place, ls="", marker="o" if enough else ">", ms=6, color=COLOURS[0 if enough else 1])
            if row.printed is not None:
                axes.plot(row.printed, place, ls="", marker="D", ms=8, mfc="none", mec=BLACK, mew=1.4, zorder=5)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: number(value))
        axes.set_yticks(places, [label_of(row.played) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(False, axis="y")
        axes.set_xlabel("answers, size query included")
        extra = [
            Line2D([], [], ls="", marker="o", ms=6, color=COLOURS[0], label="enough in every trial"),
            Line2D([], [], ls="", marker="|", ms=10, mew=1.6, color=BLACK, label="least ever"),
        ]
        if any(row.fewest is None for row in rows):
            extra.append(Line2D([], [], ls="", marker=">", ms=6, color=COLOURS[1], label="not enough"))
        if printed:
            extra.append(hollow("D", "printed in the paper, m"))
        legend(axes, extra)

    title = "Answers until everybody was known"
    caption = (
        "On a logarithmic axis. Dots: the fewest answers with which everybody was known in every trial; where the "
        "strategy stops by itself, the most that a trial took. Ticks: log2 C(n, n₀) over the bits of an answer, which "
        "nothing can undercut."
    )
    values = "; ".join(
        f"{label_of(row.played)}: {f'more than {row.tried}' if row.fewest is None else row.fewest}, "
        f"at least {row.bound}"
        for row in rows
    )
    inches = (INCHES[0], 1.5 + 0.26 * len(rows))
    yield Figure("known", title, caption, f"Dot chart. {title}. {values}.", on_axes(draw), inches)


def draw_figures(cells: Sequence[ReportCell]) -> tuple[Figure, ...]:
    """Draw every figure that the cells have data for."""
    look = looks(cell.mechanism for cell in cells)
    return (
        *tradeoff_figures(cells, look),
        *people_figures(cells),
        *known_figures(cells),
        *leakage_figures(cells, look),
        *confidence_figures(cells, look),
        *error_figures(cells, look),
        *trace_figures(cells),
    )
