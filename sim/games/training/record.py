"""The line of a training trial, and the summary of a cell's lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from developer.training.play import RATES
from sim.games.game import Line
from sim.games.summary import sd
from sim.games.training.canaries import epsilon_refuted
from sim.games.training.deal import TrainingDeal
from sim.games.training.outcome import TrainingOutcome
from sim.games.training.scenario import TrainingScenario
from sim.report.estimates import SHARE, IntervalEstimate, estimate
from sim.scenarios.scenario import plain
from sim.scenarios.sweep import Cell


def record(_cell: Cell[TrainingScenario], _trial: int, dealt: TrainingDeal, outcome: TrainingOutcome) -> list[Line]:
    """Return the trial's line, with the scores of the model's decisions on the test rows.

    `gap` is the advantaged group's rate of decision 1 less the disadvantaged one's (risk difference); `accuracies`,
    `positives` (rates of decision 1) and `false_positives` are pairs, the disadvantaged first. `promised` is the
    epsilon promised to records, `epsilon_spent` compliance's charge for flips of A. Where only rates were requested,
    `noise_errors` are the told rates less those of the people trained on, and `sampling_errors` these less the whole
    table's.
    """
    asked, model = dealt.scenario.training, outcome.model
    sizes = [int((dealt.private.protected == group).sum()) for group in (0, 1)]
    return [
        {
            "model": asked.model,
            "practice": asked.practice,
            "holds_protected": asked.holds_protected,
            "people": sum(sizes),
            "sizes": sizes,
            "test_people": len(dealt.test.labels),
            "promised": plain(model.epsilon),
            "promised_delta": model.delta,
            "promised_groups": [plain(epsilon) for epsilon in model.group_epsilons] or None,
            "steps": [[step.what, plain(step.epsilon), step.delta, step.of] for step in model.steps],
            "asked": model.asked,
            "epsilon_spent": None if outcome.report is None else plain(outcome.report.epsilon_spent),
            **(_rates(dealt, outcome) if asked.model == RATES else _decisions(dealt, outcome)),
            **({} if outcome.guesses is None else _canaries(dealt.inside, outcome.guesses)),
        }
    ]


def _decisions(dealt: TrainingDeal, outcome: TrainingOutcome) -> dict[str, Any]:
    test, table = dealt.test, outcome.model.decisions
    # Where decisions depend on the group, a row gets that of its group.
    decided = table[0] if len(table) == 1 else np.where(test.protected == 1, table[1], table[0])
    right = decided == test.labels
    groups = [test.protected == group for group in (0, 1)]
    positives = [float(decided[group].mean()) for group in groups]
    return {
        "accuracy": float(right.mean()),
        "gap": positives[1] - positives[0],
        "accuracies": [float(right[group].mean()) for group in groups],
        "positives": positives,
        "false_positives": [_rate(decided, group & (test.labels == 0)) for group in groups],
        "true_positives": [_rate(decided, group & (test.labels == 1)) for group in groups],
    }


def _rate(decided: NDArray[np.uint8], of: NDArray[np.bool_]) -> float | None:
    return float(decided[of].mean()) if of.any() else None


def _rates(dealt: TrainingDeal, outcome: TrainingOutcome) -> dict[str, Any]:
    people = dealt.private
    exact = [float(people.labels[people.protected == group].mean()) for group in (0, 1)]
    return {
        "rates": exact,
        "noise_errors": [told - rate for told, rate in zip(outcome.model.rates, exact, strict=True)],
        "sampling_errors": [rate - base for rate, base in zip(exact, dealt.base_rates, strict=True)],
    }


def _canaries(inside: NDArray[np.uint8], guesses: NDArray[np.uint8]) -> dict[str, Any]:
    guessed = guesses != 2
    return {
        "canaries": len(guessed),
        "guessed": int(guessed.sum()),
        "right": int((guesses == inside)[guessed].sum()),
    }


_MEANS = ("accuracy", "gap")
_PAIRS = ("accuracies", "positives", "false_positives", "true_positives")


def summarise(swept: Mapping[str, Any], lines: Sequence[Line]) -> Line:
    """Return the summary of a cell.

    Means over the trials, with 95% intervals as `accuracy_low` and so on from five trials on, and standard deviations
    as `accuracy_sd`; pairs of means by group, with intervals. Errors of rates are root mean squares. Counts of canaries
    are over all trials, with the largest epsilon that they refute.
    """
    first = lines[0]
    cell: dict[str, Any] = dict(swept)
    cell |= {key: first[key] for key in ("model", "practice", "holds_protected", "people", "sizes")}
    cell["trials"] = len(lines)
    cell |= {key: first[key] for key in ("promised_delta", "promised_groups", "steps", "asked", "epsilon_spent")}
    # Accountants are deterministic, but batches' rates follow the number of people, which canaries may change.
    cell["promised"] = max((line["promised"] for line in lines), key=float)
    for key in _MEANS if "accuracy" in first else ():
        found = estimate([line[key] for line in lines], SHARE if key == "accuracy" else _SIGNED)
        cell |= {key: found.mean, f"{key}_low": found.low, f"{key}_high": found.high}
        cell[f"{key}_sd"] = sd(lines, key)
    for key in _PAIRS if "accuracy" in first else ():
        pair = [_share([line[key][group] for line in lines]) for group in (0, 1)]
        cell[key] = [None if one is None else one.mean for one in pair]
        cell |= {f"{key}_{end}": [getattr(one, end, None) for one in pair] for end in ("low", "high")}
    if "rates" in first:
        for key in ("noise_errors", "sampling_errors"):
            cell[key] = [float(np.sqrt(np.mean(np.square([line[key][group] for line in lines])))) for group in (0, 1)]
        cell["rates"] = [float(np.mean([line["rates"][group] for line in lines])) for group in (0, 1)]
    if "canaries" in first:
        cell |= {key: sum(line[key] for line in lines) for key in ("canaries", "guessed", "right")}
        cell["epsilon_refuted"] = epsilon_refuted(
            cell["canaries"], cell["guessed"], cell["right"], first["promised_delta"]
        )
    return cell


_SIGNED = (-1.0, 1.0)


def _share(values: Sequence[float | None]) -> IntervalEstimate | None:
    there = [value for value in values if value is not None]
    return estimate(there, SHARE) if there else None
