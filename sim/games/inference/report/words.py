"""Texts of the page of an inference run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from compliance.mechanisms import MECHANISMS
from fairwall.laws.metric import METRICS
from sim.games.game import Line
from sim.games.inference.report.columns import (
    FEW,
    LOADER,
    advantage_of,
    defence_of,
    family_of,
    has_intervals,
    swept_in,
    tables,
)
from sim.games.inference.report.figures import draw
from sim.games.inference.report.printed import comparisons, loader_only
from sim.games.inference.scenario import InferenceScenario
from sim.report.drawing import MarkStyle, looks
from sim.report.estimates import INTERVALS
from sim.report.notation import number, plural, setting, span
from sim.report.page import Bar, Card, Page, PageSection, sections, settings
from sim.report.reproduction import counted
from sim.scenarios.sweep import Sweep

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
