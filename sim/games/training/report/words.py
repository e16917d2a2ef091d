"""What the page of a run of the training game says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from developer.training.play import PLAIN, RATES
from developer.training.practice import PRACTICES
from sim.datasets.case_study import CASE_STUDY
from sim.games.game import Line
from sim.games.training.canaries import LEVEL
from sim.games.training.report import figures
from sim.games.training.report.attribute import attribute
from sim.games.training.report.cells import (
    GROUPS,
    PRACTICE,
    accuracy_of,
    distance_of,
    gap_of,
    kind_of,
    models_of,
    name_of,
    of_group,
    promised_of,
    rates_of,
)
from sim.games.training.report.columns import ABOVE, tables, verdict
from sim.games.training.report.fronts import Placed, placed
from sim.games.training.report.practices import changes
from sim.games.training.report.printed import comparisons
from sim.games.training.report.told_rates import conclusions, told_rates
from sim.games.training.scenario import TrainingData, TrainingScenario
from sim.report import page as kit
from sim.report.cells import best_of_each
from sim.report.drawing import Figure, Look, looks
from sim.report.estimates import INTERVALS
from sim.report.notation import count, number, plural, several, span
from sim.report.page import Bar, Card, Page, Section, Term
from sim.report.reproduction import Comparison, counted
from sim.scenarios.sweep import Sweep

_NAMED = 6
_ENCODED = "categories one-hot, numbers with mean 0 and standard deviation 1; {attribute} is no feature"
_METHOD = (
    "Each canary, a record with its label turned over, was trained on if a coin said so. The adversary sees the "
    "model's scores, and guesses about those of which it is surest. Right guesses of all trials count together "
    "(Steinke, Nasr and Jagielski 2023): an epsilon is refuted if so many right ones have a probability of at most "
    f"{LEVEL:.0%} under it. A cell whose promise holds is found above it with that probability at most. Nothing is "
    "proved by a low one: a better adversary may refute more."
)
ASSUMPTIONS: tuple[Term, ...] = (
    (
        "ε of records",
        "What a private model promises, by the steps that were really taken: two tables of which one has a record "
        "more, its group included. Everything that read private rows is in it, sums by group that compliance told "
        "too. How many records there are is public. Layers, steps and strengths were chosen on Adult by hand, which "
        "is not accounted for. “∞”: nothing is promised.",
    ),
    (
        "ε of A",
        "What compliance charged to its ledger: two tables in which one person's protected attribute differs. It is "
        "about what was told of A alone, and is never added to the ε of records. Where the developer holds A, nobody "
        "is asked.",
    ),
    (
        "What is not private",
        "Features and labels of those trained on are the developer's. Test rows' labels and groups are the referee's "
        "alone: it scores, exactly. Where decisions depend on the group, a row's decision is that of its own group.",
    ),
    (
        "Risk difference",
        "The advantaged group's rate of decision 1 less the disadvantaged one's, on the test rows. The absolute "
        "value is that of the mean.",
    ),
    (
        "Splits",
        "A trial is one split of the table. All cells are played on the same splits: compare them trial by trial.",
    ),
    ("Intervals", INTERVALS),
)


def page(sweep: Sweep[TrainingScenario], lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    """Make the page of a run, from its sweep, the lines of ``trials.jsonl`` and what they come to."""
    axes, models = sweep.scenario.axes, models_of(summary)
    front = placed(axes, models, private=False)
    rows = comparisons(sweep, models)
    look = looks(kind_of(axes, cell) for cell in models)
    return Page(
        cards=(*_model_cards(axes, front, look), *_rate_cards(sweep, rates_of(summary))),
        about_cards=_about_cards(models),
        played=played(sweep, lines),
        findings=tuple(_findings(sweep, lines, summary, front, rows)) if summary else ("No trial finished.",),
        settings=settings(sweep),
        sections=tuple(_sections(sweep, lines, summary, front, look)),
        assumptions=ASSUMPTIONS,
    )


def _sections(
    sweep: Sweep[TrainingScenario],
    lines: Sequence[Line],
    summary: Sequence[Line],
    front: Sequence[Placed],
    look: Mapping[str, Look],
) -> Iterator[Section]:
    axes, delta = sweep.scenario.axes, sweep.cells[0].scenario.compliance.delta
    told = {table.name: table for table in tables(sweep, lines, summary)}
    drawn: dict[str, Callable[[Any], Iterable[Figure]]] = {
        "models": lambda _: [figures.tradeoff(axes, front, look)],
        "groups": lambda cells: [figures.by_group(axes, cells, front)],
        "practices": lambda changed: figures.practices(axes, changed),
        "rates": lambda _: [figures.rates(told_rates(sweep, rates_of(summary)), delta)],
        "canaries": lambda cells: [figures.canaries(axes, cells)],
    }
    names = [one.cell[PRACTICE] for one in told["practices"].rows] if "practices" in told else []
    trades = [
        f"{name}: {PRACTICES[name].title}. It trades {PRACTICES[name].trades}."
        for name in dict.fromkeys(names)
        if name != PLAIN
    ]
    own = {name: [*draw(told[name].rows)] for name, draw in drawn.items() if name in told}
    for section in kit.sections(told.values(), own):
        before = [_METHOD] if section.name == "canaries" else []
        yield replace(section, before=before, after=trades if section.name == "practices" else [])


def _about_cards(models: Sequence[Line]) -> str:
    """Say what the cards leave unsaid."""
    if not models:
        return "Root mean square errors over the trials, of the smallest disadvantaged group at each epsilon of A."
    return (
        "Of each kind of model and promised ε, the most accurate that no other beats both in accuracy and in risk "
        "difference; where there is none, the most accurate. The bar is the absolute risk difference: how far the "
        "groups’ rates of decision 1 are apart."
    )


def _model_cards(axes: Sequence[str], front: Sequence[Placed], look: Mapping[str, Look]) -> Iterator[Card]:
    """Write a card for each kind of model and each epsilon that records are promised."""
    for best in best_of_each(
        front,
        # Accountants end a little below what they were asked for.
        lambda one: (kind_of(axes, one.cell), number(promised_of(one.cell), 2)),
        lambda one: (one.dominated, -one.accuracy.mean),
    ):
        kind = kind_of(axes, best.cell)
        yield _model_card(kind, promised_of(best.cell), best, look[kind].colour)


def _model_card(kind: str, epsilon: float, one: Placed, colour: str) -> Card:
    gap = distance_of(one.cell)
    promise = "nothing promised" if epsilon == float("inf") else f"ε = {number(epsilon)} promised"
    text = (
        f"Right about {100 * accuracy_of(one.cell).mean:.1f}% of test rows; the groups’ rates of decision 1 differ by "
        f"{100 * gap.mean:.1f} points. {one.verdict.capitalize()}: {one.name}."
    )
    ends = ("0: groups alike", "100 points")
    bar = Bar.on((0.0, 1.0), 0.0, gap.mean, ends, f"The groups’ rates differ by {100 * gap.mean:.0f} points")
    return Card(f"{kind or one.cell['model']}, {promise}", text, bar, colour)


def _rate_cards(sweep: Sweep[TrainingScenario], cells: Sequence[Line]) -> Iterator[Card]:
    """Write a card for each epsilon of A at which groups' rates were told, of the smallest group."""
    told = told_rates(sweep, cells)
    for epsilon, look in figures.epsilon_looks(told).items():
        one = min((one for one in told if one.epsilon == epsilon and one.group == 0), key=lambda one: one.people)
        larger = "noise" if one.noise_is_larger else "sampling"
        text = (
            f"The rate of the {GROUPS[0]} group of {count(one.people)} people is told with noise of "
            f"{number(one.noise, 2)}; which people were drawn makes {number(one.sampling, 2)}. The larger error is "
            f"{larger}."
        )
        alt = f"An error of {number(one.noise, 2)} by noise"
        bar = Bar.on((0.0, 1.0), 0.0, one.noise, ("0", "1: the rate is lost"), alt)
        yield Card(f"ε of A = {number(epsilon)}", text, bar, look.colour)


def played(sweep: Sweep[TrainingScenario], lines: Sequence[Line]) -> str:
    """Say what was played, and who held what."""
    scenarios = [cell.scenario for cell in sweep.cells]
    people = f" of {span({line['people'] for line in lines})} people" if lines else ""
    said = [f"The developer was dealt features and labels{people} of {_tables(scenarios)}, and {_did(scenarios)}."]
    held, told = (
        any(of) for of in ([one.training.holds_protected for one in scenarios], [one.told for one in scenarios])
    )
    if held:
        said.append(
            f"It {'also ' if not told else ''}held the protected attribute A{' in some cells' if told else ''}."
        )
    if told:
        where = " where it did not" if held else ""
        said.append(
            f"Compliance held the protected attribute A{where}, and told the developer sums of rows by group, with "
            "Gaussian noise, of which it charged each to its ledger."
        )
    if any(one.training.canaries for one in scenarios):
        said.append("An adversary outside asked the model, and guessed which canaries it was trained on.")
    return " ".join(said)


def _tables(scenarios: Sequence[TrainingScenario]) -> str:
    return " or ".join(dict.fromkeys(PurePath(one.data.source).name for one in scenarios))


def _did(scenarios: Sequence[TrainingScenario]) -> str:
    trained = any(one.training.model != RATES for one in scenarios)
    asked = any(one.training.model == RATES for one in scenarios)
    return " or ".join(["trained a model"] * trained + ["had the groups' rates of the labels told"] * asked)


def settings(sweep: Sweep[TrainingScenario]) -> list[Term]:
    """Say how it was played."""
    scenarios = [cell.scenario for cell in sweep.cells]
    attributes = dict.fromkeys(attribute(one.data) for one in scenarios)
    held = "; ".join(f"{name}: {groups}" for name, groups in attributes)
    nobody = not any(one.told or one.training.holds_protected for one in scenarios)
    strength = any(one.training.strength for one in scenarios)
    share = any(one.data.disadvantaged_share is not None for one in scenarios)
    private, told = (
        f", with δ {several(deltas)}"
        for deltas in (
            [one.training.delta for one in scenarios if one.private],
            [one.compliance.delta for one in scenarios if one.told],
        )
    )

    def holds(one: TrainingScenario) -> str | None:
        if one.told or one.training.holds_protected:
            return "the developer" if one.training.holds_protected else "compliance, which tells sums by group"
        return "compliance, and nobody asks it" if nobody else None

    terms = kit.settings(
        sweep,
        {
            "Table": lambda one: PurePath(one.data.source).name,
            "Protected attribute A": lambda _: held,
            "Encoding": lambda one: _encoding(one.data),
            "Who holds A": holds,
            "Models": lambda one: one.training.model,
            "Trained on": lambda one: f"{one.data.people:,}" if one.data.people else "all that are not tested on",
            "Tested on": lambda one: f"{100 * one.data.test_share:g}% of the table",
            "Splits of the table": lambda one: one.scenario.trials,
            "ε of records": lambda one: one.training.epsilon if one.private else None,
            "ε of A": lambda one: one.epsilon if one.told else None,
            "Strength λ of the penalty": lambda one: one.training.strength or ("its own" if strength else None),
            "Share of the disadvantaged": lambda one: (
                (one.data.disadvantaged_share or "the table's") if share else None
            ),
            "Public rows": lambda one: f"{100 * one.data.public_share:g}%" if one.data.public_share else None,
            "Canaries": lambda one: one.training.canaries or None,
        },
    )
    deltas = {"ε of records": private, "ε of A": told}
    return [(term, f"{text}{deltas.get(term, '')}") for term, text in terms]


def _encoding(data: TrainingData) -> str:
    if data.source == CASE_STUDY:
        return "ten normal features, as they are drawn"
    dropped = f"; without {', '.join(data.drop)}" if data.drop else ""
    return _ENCODED.format(attribute=attribute(data)[0]) + dropped


def named(cells: Sequence[str]) -> str:
    """List the names of cells, of many the first few."""
    more = f"; and {len(cells) - _NAMED} more" if len(cells) > _NAMED else ""
    return "; ".join(cells[:_NAMED]) + more


def _findings(
    sweep: Sweep[TrainingScenario],
    lines: Sequence[Line],
    summary: Sequence[Line],
    front: Sequence[Placed],
    rows: Sequence[Comparison],
) -> Iterator[str]:
    """Say what happened, a finding a paragraph."""
    axes = sweep.scenario.axes
    models = models_of(summary)
    if models:
        yield from _models(axes, models, front)
    if rates := rates_of(summary):
        yield from conclusions(told_rates(sweep, rates))
    if audited := [cell for cell in summary if "canaries" in cell]:
        yield _canaries(axes, audited)
    if PRACTICE in axes and models:
        yield from _practices(axes, models, lines)
    if rows:
        yield counted(rows)


def _models(axes: Sequence[str], models: Sequence[Line], front: Sequence[Placed]) -> Iterator[str]:
    for title, cells in (
        ("Of models that promise nothing to records", [cell for cell in models if math.isinf(promised_of(cell))]),
        ("Of private models", [cell for cell in models if not math.isinf(promised_of(cell))]),
    ):
        if cells:
            best = max(cells, key=lambda cell: cell["accuracy"])
            known = math.isinf(promised_of(best)) or "training.epsilon" in axes
            promise = "" if known else f" at ε {number(promised_of(best))}"
            yield (
                f"{title}, the most accurate was {name_of(axes, best)}{promise}: accuracy "
                f"{accuracy_of(best).text(3)}, risk difference {gap_of(best).text(3)}."
            )
    fairest = min(models, key=lambda cell: distance_of(cell).mean)
    yield (
        f"The smallest risk difference had {name_of(axes, fairest)}: {gap_of(fairest).text(3)}, with accuracy "
        f"{accuracy_of(fairest).text(3)}."
    )
    if len(front) > 1:
        on = [one.name for one in front if not one.dominated]
        clear = sum(one.clear for one in front)
        yield (
            f"No other cell's means are at least as good in both for {len(on)} of {plural(len(front), 'cell')}: "
            f"{named(on)}. Of the others, {clear} are clearly dominated, by the 95% intervals."
        )
    yield from _apart(axes, models)


def _apart(axes: Sequence[str], models: Sequence[Line]) -> Iterator[str]:
    """Say where the groups' accuracies are furthest apart."""
    pairs = [(cell, of_group(cell, "accuracies", 0), of_group(cell, "accuracies", 1)) for cell in models]
    known = [(cell, few, many) for cell, few, many in pairs if few is not None and many is not None]
    if known:
        cell, few, many = max(known, key=lambda one: abs(one[1].mean - one[2].mean))
        yield (
            f"The groups' accuracies are furthest apart in {name_of(axes, cell)}: {few.text(3)} of the {GROUPS[0]}, "
            f"{many.text(3)} of the {GROUPS[1]}."
        )


def _canaries(axes: Sequence[str], cells: Sequence[Line]) -> str:
    broken = [cell for cell in cells if verdict(cell) == ABOVE]
    most = max(broken or cells, key=lambda cell: cell["epsilon_refuted"])
    promised = promised_of(most)
    promise = "nothing was promised" if math.isinf(promised) else f"ε {number(promised)} was promised"
    tail = (
        f" In {plural(len(broken), 'cell')} that is above what is promised: something is broken."
        if broken
        else " In no cell is that above what is promised."
    )
    return (
        f"From {most['right']:,} right guesses of {most['guessed']:,} about canaries follows an ε of at least "
        f"{number(most['epsilon_refuted'])} in {name_of(axes, most)}, where {promise}.{tail}"
    )


def _practices(axes: Sequence[str], models: Sequence[Line], lines: Sequence[Line]) -> Iterator[str]:
    told = [one for one in changes(axes, models, lines) if one.minority is not None]
    if told:
        best = max(told, key=lambda one: one.minority.mean if one.minority else 0.0)
        assert best.minority is not None, "kept where there is one"
        assert best.accuracy is not None, "as above"
        sure = "" if best.minority.sign else ", which cannot be told from none"
        yield (
            f"Of the practices, {name_of(axes, best.cell)} did most for the accuracy of the {GROUPS[0]} group: "
            f"{best.minority.text(3)} more than plain{sure}; for everybody's, {best.accuracy.text(3)} more."
        )
