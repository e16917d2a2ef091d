"""The page of a run of the inference game: its figures and its texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from compliance.mechanisms import MECHANISMS
from fairwall.laws.metrics.metric import METRICS
from sim.games.game import Line
from sim.games.inference.columns import (
    FEW,
    LOADER,
    accuracy_of,
    advantage_of,
    defence_of,
    distinct,
    family_of,
    has_intervals,
    over_splits,
    swept_axis,
    swept_in,
    tables,
)
from sim.games.inference.printed import comparisons, loader_only
from sim.games.inference.scenario import InferenceScenario
from sim.report.cells import paper_figure, scenario_of
from sim.report.drawing import BLACK, DASHES, GREY, MARKERS, Figure, MarkStyle, looks
from sim.report.estimates import FEWEST, INTERVALS, IntervalEstimate
from sim.report.interval_plot import along, side_by_side
from sim.report.notation import number, plural, setting, span, symbol
from sim.report.page import Bar, Card, Page, PageSection, sections, settings
from sim.report.reproduction import counted
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


_ASSUMPTIONS = (
    (
        "The developer holds the protected attribute",
        "Declared: training on one group, and tuning for equal rates, cannot be done without it.",
    ),
    (
        "The adversary's side knowledge",
        "Rows of the same table with their groups, disjoint from the developer's; how models are trained, the defence "
        "included; and black-box access. Not a bit, nor a weight.",
    ),
    ("Advantage", "|P(guess 1 | b = 1) − P(guess 1 | b = 0)|. An adversary that is always wrong knows the bit too."),
    (
        "Intervals",
        "Of accuracy and advantage: clustered over data splits, since victims of one split share their rows; the wider "
        f"ones hold for all attacks of a cell at once. Of other means, over the splits: {INTERVALS}",
    ),
    (
        "Bounds",
        "Theorem 1 says that the gaps are at most W times EO, which needs equal base rates. The corrected bounds add "
        "what unequal ones do. Each is asked of every victim, to the sampling error of its own test rows.",
    ),
)


def page(sweep: Sweep, lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    """Return the page of a run, from its sweep, the lines of `trials.jsonl` and their summary."""
    look = looks(defence_of(sweep, summary))
    few = "" if has_intervals(summary) else f" {FEW} Nothing here is told from chance."
    drawn = [PageSection("figures", "Figures", figures=draw(sweep, lines, summary, look))] if summary else []
    return Page(
        cards=list(_cards(sweep, summary, look)),
        about_cards="The best attack of those played on each defence. Distinguished: by how much likelier “trained on "
        f"group 1” is guessed of a model that was; 0 is a coin, 1 is every model.{few}",
        played=_played(sweep, lines),
        findings=tuple(_findings(sweep, lines, summary)),
        settings=settings(
            sweep,
            {
                "Data": _data,
                "Defence": lambda one: one.developer.defence,
                "λ": _strength,
                "Rehearsal, ρ": lambda one: one.developer.rehearsal,
                "Purity, α": lambda one: one.developer.purity,
                "Victims a split": lambda one: one.developer.victims,
                "Splits": lambda one: one.scenario.trials,
                "Shadow models": lambda one: one.adversary.shadows,
                "Probes at most": lambda one: one.adversary.probes,
                "Models answer with": lambda one: one.adversary.answers,
                "Models see the group": lambda one: "yes" if one.data.include_protected else None,
                "The paper's iterations are": lambda one: (
                    one.developer.iterations if one.developer.defence == "fft-paper" else None
                ),
                "ε of DP-SGD": lambda one: (
                    one.developer.training_epsilon if "dp-sgd" in one.developer.defence else None
                ),
                "Metric": lambda one: METRICS[one.compliance.metric].title if one.developer.lambdas else None,
                "Mechanism": lambda one: MECHANISMS[one.compliance.mechanism].title if one.developer.lambdas else None,
                "Budget of a trial, ε": lambda one: one.epsilon if one.developer.lambdas else None,
            },
        ),
        sections=(*sections(tables(sweep, lines, summary), {}), *drawn),
        assumptions=_ASSUMPTIONS,
    )


def _strength(scenario: InferenceScenario) -> float | str:
    developer = scenario.developer
    if not developer.lambdas:
        return developer.strength
    return f"of {', '.join(map(setting, developer.lambdas))}, chosen by compliance's answers"


def _data(scenario: InferenceScenario) -> str:
    """Return the table's name and the attribute: of a user's file its name or format, never its folder."""
    source, protected = scenario.data.source, scenario.data.protected
    name, _, where = source.partition(":")
    return ", ".join(filter(None, (name if where else PurePath(source).name, protected)))


def _cards(sweep: Sweep, summary: Sequence[Line], look: Mapping[str, MarkStyle]) -> Iterator[Card]:
    attacks: dict[str, list[Line]] = {}
    for name, cell in zip(defence_of(sweep, summary), summary, strict=True):
        if not loader_only(cell):
            attacks.setdefault(name, []).append(cell)
    for name, cells in attacks.items():
        cell = max(cells, key=lambda cell: cell["advantage"])
        found = advantage_of(cell)
        chance = " Of all attacks at once, that is not told from chance." if _is_chance(cell) else ""
        before = "" if cell["defence"] == "none" else f", {number(cell['gap_base'])} before the defence"
        text = (
            f"The adversary distinguishes {found.text(2)} of 1, by {cell['attack']}.{chance} The groups’ accuracies "
            f"differ by {number(cell['gap'])} points{before}."
        )
        alt = f"{found.mean:.2f} of 1 distinguished"
        bar = Bar.on((0.0, 1.0), 0.0, found.mean, ("0: a coin", "1: every model"), alt)
        yield Card("No defence" if name == "none" else f"Defence {name}", text, bar, look[name].colour)


def _is_chance(cell: Line) -> bool:
    low, high = cell["family_low"], cell["family_high"]
    return low is not None and low <= 50 <= high


def _played(sweep: Sweep, lines: Sequence[Line]) -> str:
    data, adversary = sweep.scenario.data, sweep.scenario.adversary
    splits = len({line["split_seed"] for line in lines})
    victims = span({line["victims"] for line in lines}) if lines else "no"
    chosen = " Compliance held the groups of test rows, and the developer chose λ by its answers alone."
    return (
        f"Three separate processes played on {plural(splits, 'split')} of the data. The referee flipped a bit for each "
        f"of {victims} models a split; the developer, which in this game is told the group of its rows "
        f"({data.protected or 'the protected attribute'}), trained each on those of one group and released it as a "
        "black box. The adversary, which holds other rows, "
        f"asked each model about {adversary.probes:,} rows at most and guessed its bit; it never saw a bit, a weight, "
        f"or a row that a model was trained on.{chosen if sweep.scenario.developer.lambdas else ''}"
    )


def _findings(sweep: Sweep, lines: Sequence[Line], summary: Sequence[Line]) -> Iterator[str]:
    if any(map(loader_only, summary)):
        yield f"{LOADER.capitalize()} Nothing below is a finding."
        return
    swept = swept_in(sweep)
    for defence in dict.fromkeys(cell["defence"] for cell in summary):
        best = max((cell for cell in summary if cell["defence"] == defence), key=lambda cell: cell["advantage"])
        at = swept.name(best, ("developer.defence",))
        gap_base, gap, eo_base, eo = (number(best[key]) for key in ("gap_base", "gap", "eo_base", "eo"))
        change = f"The gap went from {gap_base} to {gap} points, EO from {eo_base} to {eo}."
        yield (
            f"Defence “{defence}”{f', {at}' if at else ''}: the strongest attack, {best['attack']}, guessed "
            f"{_right(best)}. {f'The gap was {gap} points, EO {eo}.' if defence == 'none' else change}"
        )
    if rows := comparisons(sweep, lines):
        yield counted(rows)


def _right(cell: Line) -> str:
    found = family_of(cell)
    worth = f", which is worth as much as {number(100 - found.mean)}%" if found.mean < 49.95 else ""
    right = f"{number(found.mean)}% of the bits right{worth}"
    if found.low is None:
        return right
    verdict = "contains 50: not told from chance" if _is_chance(cell) else "excludes 50: that is no chance"
    return f"{right} ({number(found.low)} to {number(found.high)} at 99.9% for all attacks at once, which {verdict})"
