"""The sentences of the training game's page: what was played, how, and what happened."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from developer.training.play import RATES
from sim.datasets.case_study import CASE_STUDY
from sim.games.game import Line
from sim.games.training.report import canary_audit, practices, told_rates
from sim.games.training.report.attribute import attribute
from sim.games.training.report.cells import (
    GROUPS,
    PRACTICE,
    accuracy_of,
    distance_of,
    gap_of,
    models_of,
    name_of,
    of_group,
    promised_of,
    rates_of,
)
from sim.games.training.report.fronts import Placed
from sim.games.training.scenario import TrainingData, TrainingScenario
from sim.report.notation import number, plural, several, span
from sim.report.page import Term
from sim.report.reproduction import Comparison, counted
from sim.scenarios.sweep import Sweep

_NAMED = 6
_ENCODED = "categories one-hot, numbers with mean 0 and standard deviation 1; {attribute} is no feature"


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

    private = [one for one in scenarios if one.private]
    told = [one for one in scenarios if one.told]
    attributes = dict.fromkeys(attribute(one.data) for one in scenarios)
    encodings = dict.fromkeys(_encoding(one.data) for one in scenarios)
    holds = {True: "the developer", False: "compliance, which tells sums by group"}
    fair = [one for one in scenarios if one.told or one.training.holds_protected]
    terms = [
        ("Table", _tables(scenarios)),
        ("Protected attribute A", "; ".join(f"{name}: {groups}" for name, groups in attributes)),
        ("Encoding", "; ".join(encodings)),
        (
            "Who holds A",
            several(holds[one.training.holds_protected] for one in fair) or "compliance, and nobody asks it",
        ),
        ("Models", several(one.training.model for one in scenarios)),
        (
            "Trained on",
            several(f"{one.data.people:,}" if one.data.people else "all that are not tested on" for one in scenarios),
        ),
        ("Tested on", several(f"{100 * one.data.test_share:g}% of the table" for one in scenarios)),
        ("Splits of the table", several(one.scenario.trials for one in scenarios)),
    ]
    if private:
        delta = several(one.training.delta for one in private)
        terms.append(("ε of records", f"{several(one.training.epsilon for one in private)}, with δ {delta}"))
    if told:
        delta = several(one.compliance.delta for one in told)
        terms.append(("ε of A", f"{several(one.epsilon for one in told)}, with δ {delta}"))
    if any(one.training.strength for one in scenarios):
        terms.append(
            (
                "Strength λ of the penalty",
                several(one.training.strength or "its own" for one in scenarios),
            )
        )
    shares = [one.data.disadvantaged_share for one in scenarios]
    if any(share is not None for share in shares):
        terms.append(
            ("Share of the disadvantaged", several("the table's" if share is None else share for share in shares))
        )
    if any(one.data.public_share for one in scenarios):
        terms.append(("Public rows", several(f"{100 * one.data.public_share:g}%" for one in scenarios)))
    if any(one.training.canaries for one in scenarios):
        terms.append(("Canaries", several(one.training.canaries for one in scenarios)))
    return terms


def _encoding(data: TrainingData) -> str:
    if data.source == CASE_STUDY:
        return "ten normal features, as they are drawn"
    dropped = f"; without {', '.join(data.drop)}" if data.drop else ""
    return _ENCODED.format(attribute=attribute(data)[0]) + dropped


def named(cells: Sequence[str]) -> str:
    """List the names of cells, of many the first few."""
    more = f"; and {len(cells) - _NAMED} more" if len(cells) > _NAMED else ""
    return "; ".join(cells[:_NAMED]) + more


def findings(
    sweep: Sweep[TrainingScenario],
    lines: Sequence[Line],
    summary: Sequence[Line],
    front: Sequence[Placed],
    rows: Sequence[Comparison],
) -> Iterator[str]:
    """Say what happened, a finding a paragraph.

    Parameters
    ----------
    sweep : Sweep
    lines : sequence of mapping
        The run's trials.
    summary : sequence of mapping
        What they come to, for each cell; at least one.
    front : sequence of Placed
        The cells with models, by accuracy and risk difference.
    rows : sequence of Comparison
        Printed figures beside ours.
    """
    axes = sweep.scenario.axes
    models = models_of(summary)
    if models:
        yield from _models(axes, models, front)
    if rates := rates_of(summary):
        yield from told_rates.conclusions(told_rates.told_rates(sweep, rates))
    if audited := canary_audit.audited(summary):
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
    broken = [cell for cell in cells if canary_audit.verdict(cell) == canary_audit.ABOVE]
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
    told = [one for one in practices.changes(axes, models, lines) if one.minority is not None]
    if told:
        best = max(told, key=lambda one: one.minority.mean if one.minority else 0.0)
        assert best.minority is not None, "kept where there is one"
        assert best.accuracy is not None, "as above"
        sure = "" if best.minority.sign else ", which cannot be told from none"
        yield (
            f"Of the practices, {name_of(axes, best.cell)} did most for the accuracy of the {GROUPS[0]} group: "
            f"{best.minority.text(3)} more than plain{sure}; for everybody's, {best.accuracy.text(3)} more."
        )
