"""Columns of the tables of a training run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from sim.games.game import Line
from sim.games.training import printed
from sim.games.training.canaries import LEVEL
from sim.games.training.cells import (
    GROUPS,
    MEANS,
    PRACTICE,
    Change,
    Placed,
    changes,
    gap_of,
    models_of,
    of_group,
    placed,
    promised_of,
    rates_of,
    swept_in,
)
from sim.games.training.told_rates import ToldRate, told_rates
from sim.report.columns import Measure, Sheet
from sim.report.notation import MISSING, as_float, count, number
from sim.scenarios.sweep import Sweep

BELOW = "below what is promised"
ABOVE = "above what is promised: something is broken"
NOTHING = "nothing is promised"

_SWEPT = {
    "training.holds_protected": "A: held by the developer, or told to it by compliance in noisy sums by group; "
    f"{MISSING}: not used.",
    "training.strength": "λ: the weight of a fair model's penalty; own: the model's own one, or it has none.",
}
RATES = {"accuracies": "accuracy", "false_positives": "false-positive rate", "positives": "decided 1"}


def verdict(cell: Line) -> str:
    """Return the comparison of the epsilon that canaries refute with the promised one."""
    promised = promised_of(cell)
    if math.isinf(promised):
        return NOTHING
    return ABOVE if cell["epsilon_refuted"] > promised else BELOW


def _promised_text(one: Placed) -> str:
    both = one.cell["promised_groups"]
    groups = f" ({number(both[0])}, {number(both[1])})" if both else ""
    return f"{number(one.epsilon)}{groups}"


def _spent_text(one: Placed) -> str | None:
    spent = one.cell["epsilon_spent"]
    return None if spent is None else number(as_float(spent))


_RIGHT = "share of the test rows that the model is right about"
ACCURACY: Measure[Line] = Measure("accuracy", about=_RIGHT, scale=(0.5, 1.0))
PROMISED: Measure[Placed] = Measure(
    "promised",
    "ε of records",
    of=_promised_text,
    about="what the model promises each record that it was trained on; ∞ is nothing",
)
FEW, MANY = (
    Measure[Placed](
        f"accuracy of the {group}",
        of=partial(lambda place, one: of_group(one.cell, "accuracies", place), place),
        digits=3,
        short=short,
        bare=True,
        kept=True,
        on_page=False,
        about=f"accuracy of the {group} group",
    )
    for place, (group, short) in enumerate(zip(GROUPS, ("few", "many"), strict=True))
)
EPSILON: Measure[Placed] = Measure(
    "ε", of=lambda one: one.epsilon, short="ε", kept=True, on_page=False, about="promised to records"
)
MODELS: tuple[Measure[Placed], ...] = (
    Measure("trials", of=lambda one: one.cell["trials"]),
    Measure("accuracy", of=lambda one: one.accuracy, digits=3, short="accuracy", main=True, about=_RIGHT),
    Measure(
        "gap",
        "risk difference",
        of=lambda one: gap_of(one.cell),
        digits=3,
        short="gap",
        main=True,
        about="the advantaged group’s rate of decision 1 less the disadvantaged one’s; 0 is equal",
    ),
    FEW,
    MANY,
    EPSILON,
    PROMISED,
    Measure(
        "epsilon_spent",
        "ε of A spent",
        of=_spent_text,
        about="what compliance’s answers about A, the protected attribute, cost",
    ),
    Measure(
        "verdict",
        "of accuracy and |risk difference|",
        of=lambda one: one.verdict,
        words=True,
        about="on the front: no other cell is at least as good in both; a cell is one combination of settings",
    ),
)
BY_GROUP: tuple[Measure[Line], ...] = tuple(
    Measure(key, name, of=partial(of_group, key=key, group=place), digits=3, group=told)
    for key, told in RATES.items()
    for place, name in enumerate(GROUPS)
)
Told = tuple[Line, Sequence[ToldRate]]
"""A cell, and its groups' told rates."""

TOLD: tuple[Measure[Told], ...] = tuple(
    Measure(
        name,
        title,
        of=partial(lambda write, place, row: write(row[1][place]), write, place),
        group=group,
        short=f"{group}\n{name}" if name in ("noise", "sampling") else "",
        kept=group == GROUPS[0],
    )
    for place, group in enumerate(GROUPS)
    for name, title, write in (
        ("people", "", lambda one: count(one.people)),
        ("rate", "", lambda one: f"{one.rate:.3f}"),
        ("noise", "", lambda one: number(one.noise, 2)),
        ("noise_law", "by its law", lambda one: number(one.noise_law, 2) if one.noise_law else MISSING),
        ("sampling", "", lambda one: number(one.sampling, 2)),
        ("sampling_law", "by its law", lambda one: number(one.sampling_law, 2)),
    )
)
CANARIES: tuple[Measure[Line], ...] = (
    *(Measure(key, digits=0) for key in ("canaries", "guessed", "right")),
    Measure("guesses", of=lambda cell: f"{cell['right']:,} of {cell['guessed']:,}", short="right", on_page=False),
    Measure("epsilon_refuted", "ε refuted", short="refuted"),
    Measure("promised", "ε promised", of=promised_of, short="promised"),
    Measure("verdict", of=verdict, words=True),
)


def _promised(group: int, one: Change) -> float:
    both = one.cell["promised_groups"]
    return as_float(both[group]) if both else promised_of(one.cell)


PRACTICES: tuple[Measure[Change], ...] = (
    Measure("accuracy", of=lambda one: one.cell["accuracy"], digits=3),
    Measure("of the disadvantaged", of=lambda one: one.cell["accuracies"][0]),
    Measure("risk difference", of=lambda one: one.cell["gap"], digits=3),
    Measure("accuracy", of=lambda one: one.accuracy, digits=3, group="less plain"),
    Measure("of the disadvantaged", of=lambda one: one.minority, digits=3, group="less plain"),
    Measure("|risk difference|", of=lambda one: one.distance, digits=3, group="less plain"),
    Measure("everybody", of=lambda one: promised_of(one.cell), group="ε promised to"),
    *(Measure(name, of=partial(_promised, place), group="ε promised to") for place, name in enumerate(GROUPS)),
)
STEPS: tuple[Measure[Sequence[Any]], ...] = (
    Measure("ε", of=lambda row: number(row[2])),
    Measure("δ", of=lambda row: number(row[3])),
    Measure("whose records", of=lambda row: row[4], words=True),
    Measure("step", of=lambda row: row[1], words=True),
)

_BY_GROUP = (
    "Means over the trials, on test rows, with 95% intervals where there are five trials or more. A false positive is "
    "decision 1 for a row of label 0. Trained on in the first trial of the first cell: {sizes}."
)
_TOLD = (
    "Root mean squares over the trials. Noise: the told rate less that of the people trained on; by its law c/n to "
    "first order, at most 1. Sampling: their rate less that of the whole table; by its law √(r(1−r)/n), of people "
    "drawn one by one: a table of which a large part is trained on errs less. Cells share their trials' draws, so that "
    "errors of one kind are too large or too small together."
)
_PRACTICES = (
    "Less plain: differences to plain training where all else is the same, trial by trial on the same splits of the "
    "table, with 95% intervals. The absolute risk difference is each trial's. What everybody is promised is the weaker "
    "of two groups' promises."
)
_STEPS = (
    "Steps that read private rows and promise something, each with what it costs by itself, in the first trial. "
    "Together they cost what is promised, which may be less than the sum: an accountant composes them."
)


def swept_notes(axes: Sequence[str]) -> tuple[str, ...]:
    """Return the notes on columns of swept keys that need an explanation."""
    return tuple(note for key, note in _SWEPT.items() if key in axes)


def tables(sweep: Sweep, lines: Sequence[Line], summary: Sequence[Line]) -> Iterator[Sheet[Any]]:
    """Yield the tables of models, the paper's figures, groups, practices, told rates and canaries."""
    axes, models = sweep.scenario.axes, models_of(summary)
    swept = swept_in(axes)
    if models:
        notes = [
            "Means over the trials, with 95% intervals. " + MEANS.format(what="accuracy and absolute risk difference")
        ]
        if any(cell["promised_groups"] for cell in models):
            notes.append(
                "ε of records in brackets: of the disadvantaged and of the advantaged group, where they are promised "
                "different ones."
            )
        front, told = placed(axes, models, private=False), [*notes, *swept_notes(axes)]
        yield Sheet("models", "The models", swept, front, MODELS, told, cell=lambda one: one.cell)
    if rows := printed.comparisons(sweep, models):
        yield printed.table(axes, rows)
    if models:
        sizes = " and ".join(f"{count(size)} {name}" for size, name in zip(models[0]["sizes"], GROUPS, strict=True))
        yield Sheet("groups", "By group", swept, models, BY_GROUP, [_BY_GROUP.format(sizes=sizes)])
    if models and PRACTICE in axes:
        changed, heading = changes(axes, models, lines), "Practices, against plain training"
        yield Sheet("practices", heading, swept, changed, PRACTICES, [_PRACTICES], cell=lambda one: one.cell)
        steps = [(cell, *step) for cell in models for step in cell["steps"] or [["none", None, None, MISSING]]]
        yield Sheet("steps", "What read private rows", swept, steps, STEPS, [_STEPS], cell=lambda row: row[0])
    if asked := rates_of(summary):
        rates = [(cell, told_rates(sweep, [cell])) for cell in asked]
        caption = "Root mean square errors of the told rates: by the noise, and by which people were drawn."
        heading = "Rates of the groups, as told"
        yield Sheet("rates", heading, swept, rates, TOLD, [_TOLD], caption, cell=lambda row: row[0])
    if audited := [cell for cell in summary if "canaries" in cell]:
        notes = ["Counts over all trials of a cell."]
        caption = f"The largest ε that guesses about canaries refute, at {LEVEL:.0%}, beside the promised one."
        yield Sheet("canaries", "Canaries", swept, audited, CANARIES, notes, caption)
