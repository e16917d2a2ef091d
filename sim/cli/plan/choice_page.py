"""The page that `fairwall plan audit --html` writes: a slider for the half-width, and the epsilon that it needs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairwall.laws.choice.prediction import SHRUNK
from fairwall.laws.privacy.exposure import odds
from sim.planning.audit import Bought, EpsilonChoices
from sim.report.drawing import BLACK, COLOURS, Figure, MarkStyle
from sim.report.line_plot import Axis, Curve, Level, LinePanel, line_plot
from sim.report.notation import MISSING, number, plural
from sim.report.page import PageSection, scripted
from sim.report.tables import PageTable, PrintedColumn

_CARDS = ("The least ε that is enough", "Everybody, at once", "One person, aimed at")
_WARNING = (
    "For compliance: how near answers are depends on how many people each group has. Keep this page where the "
    "protected attributes are."
)
_FARTHER = "a gap that only one of several models has may be missed by more"
_TICKS = {epsilon: f"{epsilon:g}" for epsilon in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)}
_EPSILON = Axis("ε of the batch", log=True, ticks=_TICKS)


def render(choices: EpsilonChoices, name: str) -> str:
    """Return the page about a table of this name: the same bytes for the same choices."""
    batch = choices.batch
    rows = [choices.least(width) for width in choices.widths]
    told = {
        "positions": [[number(w, 6), -1 if row is None else row] for w, row in zip(choices.widths, rows, strict=True)],
        "answers": [*(_answer(choices, one) for one in choices.bought), _no_answer(choices)],
    }
    delta = f", δ = {number(batch.delta)}" if batch.delta else ""
    near = [_near(choices)] if any(one.reach or one.median_error for one in choices.bought) else []
    return scripted(
        "choice.html.j2",
        "choice.js",
        told,
        name=name,
        about=f"What ε buys, and gives away, in one batch of {plural(batch.queries, 'model')}: metric {batch.metric}, "
        f"{batch.people:,} people, mechanism {batch.mechanism}{delta}.",
        warning=_WARNING,
        titles=_CARDS,
        start=choices.widths.index(choices.start),
        last=len(choices.widths) - 1,
        measured=[PageSection("charts", "By epsilon", figures=[*near, _risk(choices)]), _grid(choices)],
    )


def _answer(choices: EpsilonChoices, one: Bought) -> list[tuple[str, str]]:
    plain = one.mechanism.removesuffix(SHRUNK)
    near = f"95 of 100 answers by {plain} are within {number(one.reach)} of the true gap, whatever that is."
    if _is_moved(one):
        near += f" Answered by {one.mechanism}, which moves them towards no gap: {_FARTHER}."
    if one.median_error is not None:
        near += f" Half of the answers are within {number(one.median_error, 2)}."
    return [(f"ε = {number(one.epsilon, 6)}", near), _everybody(choices, one), _one_person(choices, one)]


def _everybody(choices: EpsilonChoices, one: Bought) -> tuple[str, str]:
    if one.revealed is None or one.unlimited is None:
        return MISSING, f"No attack on {one.mechanism} is known here."
    said = (
        "Counting both groups equally, however large: at most the mean of the shares of both that the best attack "
        "known here names right, which spends the whole ε on finding out who is who. Guessing gives 50%."
    )
    kept = f"{_hundred(choices.batch.reveal_max)}%"
    limit = f" Without the policy's limit of {kept} it would be {_hundred(one.unlimited)}%."
    return f"{_hundred(one.revealed)}% right", said + (limit if _is_limited(one) else "")


def _one_person(choices: EpsilonChoices, one: Bought) -> tuple[str, str]:
    unless = f", but for a probability of {number(choices.batch.delta)}" if choices.batch.delta else ""
    said = (
        "No attack on one person is right more often where the sizes of both groups are known. Guessing is right in "
        f"50. Odds on a person's group change by e^(2ε), {number(odds(one.epsilon))} times, at most{unless}."
    )
    return f"{_hundred(one.one_person)} right in 100", said


def _no_answer(choices: EpsilonChoices) -> list[tuple[str, str]]:
    reached = min(((one.reach, one.epsilon) for one in choices.bought if one.reach is not None), default=None)
    most = "no ε of this page keeps 95 of 100 answers from being off by the metric's whole range"
    if reached is not None:
        most = f"the nearest of this page is {number(reached[0])}, at ε = {number(reached[1], 6)}"
    return [
        (
            "none",
            f"Not so near, whatever the true gap: {most}. Fewer models, more people or another mechanism may help.",
        )
    ] + [(MISSING, "")] * 2


def _grid(choices: EpsilonChoices) -> PageSection:
    bought = choices.bought
    columns = [
        PrintedColumn("ε", [number(one.epsilon, 6) for one in bought]),
        PrintedColumn(
            "half-width",
            [MISSING if one.reach is None else number(one.reach) for one in bought],
            about="95 of 100 answers are within it of the true gap of the test set, whatever that is: as fairwall "
            "plan audit tells it, of counts as they are where they are moved towards no gap. A dash: nothing short of "
            "the metric's whole range.",
            stays=True,
        ),
        PrintedColumn(
            "median error",
            [number(one.median_error, 2) for one in bought],
            about="Half of the answers are nearer than that: simulated, from public numbers alone.",
        ),
        PrintedColumn(
            "everybody: both groups equally, %",
            [_share(one.revealed) for one in bought],
            about="Balanced accuracy, in percent, of the best attack known here with the whole batch, for groups of 5 "
            "to 50% of the people; 50 is guessing. No bound: somebody may find a better attack. Several batches tell "
            "more.",
            stays=True,
        ),
        PrintedColumn(
            "without reveal_max",
            [_share(one.unlimited) for one in bought],
            about="The same if the policy had no audit.reveal_max.",
        ),
        PrintedColumn(
            "one person: right in 100",
            [_share(one.one_person) for one in bought],
            about="e^(2ε)/(1 + e^(2ε)), in percent: a bound for every attack on one person of whom nothing else is "
            "known but how large both groups are.",
        ),
        PrintedColumn(
            "odds times",
            [number(odds(one.epsilon)) for one in bought],
            about="e^(2ε): by so much at most an answer changes what somebody would bet on one person's group.",
        ),
        PrintedColumn("mechanism", [one.mechanism for one in bought], numeric=False),
    ]
    if not any(map(_is_limited, bought)):
        del columns[4]
    return PageSection("grid", "Every epsilon that was looked at", table=PageTable(columns))


def _near(choices: EpsilonChoices) -> Figure:
    reaches = [(one.epsilon, one.reach) for one in choices.bought if one.reach is not None]
    medians = [(one.epsilon, one.median_error) for one in choices.bought if one.median_error]
    curves = [
        _line(reaches, 0, "95 of 100 answers are nearer, whatever the true gap"),
        _line(medians, 1, "half of the answers are nearer"),
        *(_mark(i, one.epsilon, one.reach) for i, one in enumerate(choices.bought) if one.reach is not None),
    ]
    title = "How near answers are"
    caption = "Both axes are logarithmic. The ring is at the ε that the slider leads to."
    if any(map(_is_moved, choices.bought)):
        caption += f" The 95 are of counts as they are. Where these are moved towards no gap, {_FARTHER}."
    told = [near for _, near in (*reaches, *medians)]
    steps = [float(f"{step}e{power}") for power in range(-9, 2) for step in (1, 2, 5)]
    low, high = (max(step for step in steps if step <= min(told)), min(step for step in steps if step >= max(told)))
    ticks = {step: number(step) for step in steps if low <= step <= high}
    y = Axis("half-width", log=True, ticks=ticks, low=low / 1.1, high=1.1 * high)
    return line_plot("near", title, caption, _alt(title, reaches), [[LinePanel(curves)]], _EPSILON, [y])


def _risk(choices: EpsilonChoices) -> Figure:
    bought = choices.bought
    known = [(one.epsilon, 100 * one.revealed) for one in bought if one.revealed is not None]
    unlimited = [(one.epsilon, 100 * one.unlimited) for one in bought if one.unlimited is not None]
    curves = [
        _line(known, 0, "everybody, at once: best attack known"),
        *([_line(unlimited, 2, "the same without reveal_max")] if any(map(_is_limited, bought)) else []),
        _line([(one.epsilon, 100 * one.one_person) for one in bought], 1, "one person, aimed at: no attack does more"),
        *(_mark(i, *point) for i, point in enumerate(known) if len(known) == len(bought)),
        *(_mark(i, one.epsilon, 100 * one.one_person) for i, one in enumerate(bought)),
    ]
    title = "What is given away"
    caption = (
        "Of everybody, balanced accuracy: the mean of the shares of both groups that are named right. Of one person, "
        "how often an attack is right. By one batch: several tell more."
    )
    panel = LinePanel(curves, [Level(50.0, "guessing")])
    y = Axis("right, %", low=48, high=102)
    return line_plot("risk", title, caption, _alt(title, known), [[panel]], _EPSILON, [y])


def _line(points: Sequence[tuple[float, float]], which: int, label: str) -> Curve:
    return Curve(points, MarkStyle(COLOURS[which], "", ("-", (0, (5, 1.5)), (0, (1, 1)))[which]), label)


def _mark(place: int, x: float, y: float) -> Curve:
    return Curve([(x, y)], MarkStyle(BLACK, "o", hollow=True, size=11), joined=False, style={"gid": f"mark-{place}"})


def _alt(title: str, points: Sequence[tuple[float, float]]) -> str:
    return f"Chart. {title}, by ε: " + ", ".join(f"{number(y)} at {number(x)}" for x, y in points[::4]) + "."


def _is_moved(one: Bought) -> bool:
    return one.mechanism.endswith(SHRUNK)


def _is_limited(one: Bought) -> bool:
    return _share(one.revealed) != _share(one.unlimited)


def _share(share: float | None) -> str:
    return MISSING if share is None else f"{100 * share:.1f}"


def _hundred(share: float) -> str:
    """Return a share as a whole percentage, rounded up."""
    return str(math.ceil(round(100 * share, 6)))
