"""Texts of the page of a training run."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from developer.training.play import PLAIN, RATES
from developer.training.practice import PRACTICES
from sim.datasets.synthetic import CASE_STUDY
from sim.games.game import Line
from sim.games.training import figures
from sim.games.training.canaries import LEVEL
from sim.games.training.cells import (
    GROUPS,
    PRACTICE,
    Change,
    Placed,
    attribute,
    gap_of,
    kind_of,
    name_of,
    named,
    of_group,
    promised_of,
)
from sim.games.training.columns import ABOVE, tables, verdict
from sim.games.training.scenario import TrainingData, TrainingScenario
from sim.games.training.told_rates import ToldRate, conclusions
from sim.report import page as kit
from sim.report.cells import best_of_each
from sim.report.drawing import MarkStyle, looks
from sim.report.estimates import INTERVALS
from sim.report.notation import count, number, plural, span
from sim.report.page import Bar, Card, Page, Term
from sim.report.reproduction import counted
from sim.scenarios.sweep import Sweep

_METHOD = (
    "Each canary, a record with its label turned over, was trained on if a coin said so. The adversary sees the "
    "model's scores, and guesses about those of which it is surest. Right guesses of all trials count together "
    "(Steinke, Nasr and Jagielski 2023): an epsilon is refuted if so many right ones have a probability of at most "
    f"{LEVEL:.0%} under it. A cell whose promise holds is found above it with that probability at most. Nothing is "
    "proved by a low one: a better adversary may refute more."
)
_ABOUT_RATES = "Root mean square errors over the trials, of the smallest disadvantaged group at each epsilon of A."
_ABOUT_MODELS = (
    "Of each kind of model and promised ε, the most accurate that no other beats both in accuracy and in risk "
    "difference; where there is none, the most accurate. The bar is the absolute risk difference: how far the "
    "groups’ rates of decision 1 are apart."
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
    """Return the page of a run, from its sweep, the lines of `trials.jsonl` and their summary."""
    axes, delta = sweep.scenario.axes, sweep.cells[0].scenario.compliance.delta
    sheets = list(tables(sweep, lines, summary))
    rows: defaultdict[str, Sequence[Any]] = defaultdict(tuple, {one.name: one.rows for one in sheets})
    front: Sequence[Placed] = rows["models"]
    told: Sequence[ToldRate] = [one for _, groups in rows["rates"] for one in groups]
    look = looks(kind_of(axes, one.cell) for one in front)
    drawn = {
        "models": [figures.tradeoff(axes, front, look)] if front else [],
        "groups": [figures.by_group(front)] if front else [],
        "practices": list(figures.practices(axes, rows["practices"])),
        "rates": [figures.rates(told, delta)] if told else [],
        "canaries": [figures.canaries(axes, rows["canaries"])] if rows["canaries"] else [],
    }
    names = dict.fromkeys(one.cell[PRACTICE] for one in rows["practices"] if one.cell[PRACTICE] != PLAIN)
    trades = [f"{name}: {PRACTICES[name].title}. It trades {PRACTICES[name].trades}." for name in names]
    before, after = {"canaries": [_METHOD]}, {"practices": trades}
    return Page(
        cards=(*_model_cards(axes, front, look), *_rate_cards(told)),
        about_cards=_ABOUT_MODELS if front else _ABOUT_RATES,
        played=played(sweep, lines),
        findings=tuple(_findings(axes, rows, told)) if summary else ("No trial finished.",),
        settings=settings(sweep),
        sections=tuple(
            replace(one, before=before.get(one.name, ()), after=after.get(one.name, ()))
            for one in kit.sections(sheets, drawn)
        ),
        assumptions=ASSUMPTIONS,
    )


def _model_cards(axes: Sequence[str], front: Sequence[Placed], look: Mapping[str, MarkStyle]) -> Iterator[Card]:
    for one in best_of_each(
        front,
        # An accountant's result is slightly below the requested epsilon.
        lambda one: (kind_of(axes, one.cell), number(one.epsilon, 2)),
        lambda one: (one.dominated, -one.accuracy.mean),
    ):
        kind, gap = kind_of(axes, one.cell), 100 * one.distance.mean
        promise = "nothing promised" if math.isinf(one.epsilon) else f"ε = {number(one.epsilon)} promised"
        text = (
            f"Right about {100 * one.accuracy.mean:.1f}% of test rows; the groups’ rates of decision 1 differ by "
            f"{gap:.1f} points. {one.verdict.capitalize()}: {one.name}."
        )
        ends = ("0: groups alike", "100 points")
        bar = Bar.on((0.0, 1.0), 0.0, one.distance.mean, ends, f"The groups’ rates differ by {gap:.0f} points")
        yield Card(f"{kind or one.cell['model']}, {promise}", text, bar, look[kind].colour)


def _rate_cards(rates: Sequence[ToldRate]) -> Iterator[Card]:
    for epsilon, look in figures.epsilon_looks(rates).items():
        one = min((one for one in rates if one.epsilon == epsilon and one.group == 0), key=lambda one: one.people)
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
    """Return the description of the game and of each party's data."""
    scenarios = [cell.scenario for cell in sweep.cells]
    people = f" of {span({line['people'] for line in lines})} people" if lines else ""
    sources = " or ".join(dict.fromkeys(PurePath(one.data.source).name for one in scenarios))
    trained = any(one.training.model != RATES for one in scenarios)
    asked = any(one.training.model == RATES for one in scenarios)
    held = any(one.training.holds_protected for one in scenarios)
    told = any(one.told for one in scenarios)
    did = " or ".join(["trained a model"] * trained + ["had the groups' rates of the labels told"] * asked)
    said = [f"The developer was dealt features and labels{people} of {sources}, and {did}."]
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


def settings(sweep: Sweep[TrainingScenario]) -> list[Term]:
    """Return the settings of the run as terms."""
    scenarios = [cell.scenario for cell in sweep.cells]
    attributes = dict.fromkeys(attribute(one.data) for one in scenarios)
    held = "; ".join(f"{name}: {groups}" for name, groups in attributes)
    nobody = not any(one.told or one.training.holds_protected for one in scenarios)
    strength = any(one.training.strength for one in scenarios)
    share = any(one.data.disadvantaged_share is not None for one in scenarios)

    def holds(one: TrainingScenario) -> str | None:
        if one.told or one.training.holds_protected:
            return "the developer" if one.training.holds_protected else "compliance, which tells sums by group"
        return "compliance, and nobody asks it" if nobody else None

    terms = dict(
        kit.settings(
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
                "δ of records": lambda one: one.training.delta if one.private else None,
                "ε of A": lambda one: one.epsilon if one.told else None,
                "δ of A": lambda one: one.compliance.delta if one.told else None,
                "Strength λ of the penalty": lambda one: one.training.strength or ("its own" if strength else None),
                "Share of the disadvantaged": lambda one: (
                    (one.data.disadvantaged_share or "the table's") if share else None
                ),
                "Public rows": lambda one: f"{100 * one.data.public_share:g}%" if one.data.public_share else None,
                "Canaries": lambda one: one.training.canaries or None,
            },
        )
    )
    for of in ("records", "A"):
        if f"δ of {of}" in terms:
            terms[f"ε of {of}"] += f", with δ {terms.pop(f'δ of {of}')}"
    return list(terms.items())


def _encoding(data: TrainingData) -> str:
    if data.source == CASE_STUDY:
        return "ten normal features, as they are drawn"
    dropped = f"; without {', '.join(data.drop)}" if data.drop else ""
    protected, _ = attribute(data)
    return f"categories one-hot, numbers with mean 0 and standard deviation 1; {protected} is no feature{dropped}"


def _findings(axes: Sequence[str], rows: Mapping[str, Sequence[Any]], rates: Sequence[ToldRate]) -> Iterator[str]:
    if front := rows["models"]:
        yield from _models(axes, front)
    yield from conclusions(rates)
    if audited := rows["canaries"]:
        yield _canaries(axes, audited)
    yield from _practices(axes, rows["practices"])
    if printed := rows["printed"]:
        yield counted(printed)


def _models(axes: Sequence[str], front: Sequence[Placed]) -> Iterator[str]:
    for title, some in (
        ("Of models that promise nothing to records", [one for one in front if math.isinf(one.epsilon)]),
        ("Of private models", [one for one in front if not math.isinf(one.epsilon)]),
    ):
        if some:
            best = max(some, key=lambda one: one.accuracy.mean)
            known = math.isinf(best.epsilon) or "training.epsilon" in axes
            promise = "" if known else f" at ε {number(best.epsilon)}"
            yield (
                f"{title}, the most accurate was {best.name}{promise}: accuracy {best.accuracy.text(3)}, risk "
                f"difference {gap_of(best.cell).text(3)}."
            )
    fairest = min(front, key=lambda one: one.distance.mean)
    yield (
        f"The smallest risk difference had {fairest.name}: {gap_of(fairest.cell).text(3)}, with accuracy "
        f"{fairest.accuracy.text(3)}."
    )
    if len(front) > 1:
        on = [one.name for one in front if not one.dominated]
        clear = sum(one.clear for one in front)
        yield (
            f"No other cell's means are at least as good in both for {len(on)} of {plural(len(front), 'cell')}: "
            f"{named(on)}. Of the others, {clear} are clearly dominated, by the 95% intervals."
        )
    apart = [
        (one.name, few, many)
        for one in front
        if (few := of_group(one.cell, "accuracies", 0)) and (many := of_group(one.cell, "accuracies", 1))
    ]
    if apart:
        name, few, many = max(apart, key=lambda one: abs(one[1].mean - one[2].mean))
        yield (
            f"The groups' accuracies are furthest apart in {name}: {few.text(3)} of the {GROUPS[0]}, {many.text(3)} of "
            f"the {GROUPS[1]}."
        )


def _canaries(axes: Sequence[str], cells: Sequence[Line]) -> str:
    broken = [cell for cell in cells if verdict(cell) == ABOVE]
    most = max(broken or cells, key=lambda cell: cell["epsilon_refuted"])
    promised = promised_of(most)
    promise = "nothing was promised" if math.isinf(promised) else f"ε {number(promised)} was promised"
    tail = (
        f"In {plural(len(broken), 'cell')} that is {ABOVE}." if broken else "In no cell is that above what is promised."
    )
    return (
        f"From {most['right']:,} right guesses of {most['guessed']:,} about canaries follows an ε of at least "
        f"{number(most['epsilon_refuted'])} in {name_of(axes, most)}, where {promise}. {tail}"
    )


def _practices(axes: Sequence[str], changed: Sequence[Change]) -> Iterator[str]:
    told = [(one.cell, one.minority, one.accuracy) for one in changed if one.minority and one.accuracy]
    if told:
        cell, minority, accuracy = max(told, key=lambda one: one[1].mean)
        sure = "" if minority.sign else ", which cannot be told from none"
        yield (
            f"Of the practices, {name_of(axes, cell)} did most for the accuracy of the {GROUPS[0]} group: "
            f"{minority.text(3)} more than plain{sure}; for everybody's, {accuracy.text(3)} more."
        )
