"""The line of a trial of the game of groups, and what a cell's lines come to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.games.game import Line
from sim.games.groups.deal import GroupsDeal
from sim.games.groups.outcome import GroupsOutcome
from sim.games.groups.scenario import GroupsScenario
from sim.games.summary import mean, sd
from sim.scenarios.scenario import plain
from sim.scenarios.sweep import Cell


def rights(guess: NDArray[np.uint8], cells: NDArray[np.intp], groups: int) -> NDArray[np.float64]:
    """Measure how many of each group's people a guess names right, in percent; NaN of a group that nobody is in.

    ``guess`` and ``cells``, of shape (people,), are each person's group, as it is taken to be and as it is.
    """
    right, people = (np.bincount(cells, weights, groups) for weights in (guess == cells, None))
    return np.where(people > 0, 100.0 * right / np.maximum(people, 1), np.nan)


def leakage(guess: NDArray[np.uint8], cells: NDArray[np.intp]) -> float:
    """Measure the balanced accuracy of a guess, in percent: the mean, over groups that somebody is in, of who is right.

    Of two groups that is the reveal game's. Arrays are as in `rights`.
    """
    right, people = (np.bincount(cells, weights) for weights in (guess == cells, None))
    return 100.0 * float((right[people > 0] / people[people > 0]).mean())


def most(epsilon: float, groups: int) -> float:
    """Return the largest balanced accuracy, in percent, that answers of so much epsilon allow about one person.

    Let p_gh be how probable it is that somebody of group h is taken to be of g. Sizes of groups are public: where the
    person is of g instead, somebody of g is of h, and two changes change it by no more than a factor e^(2 epsilon). So
    p_gg (1 + (k - 1) e^(-2 epsilon)) <= sum_h p_gh, and summed up over g the right side is k: the mean of p_gg is at
    most 1 / (1 + (k - 1) e^(-2 epsilon)).
    """
    return 100.0 / (1 + (groups - 1) * math.exp(-2 * epsilon))


def record(_cell: Cell[GroupsScenario], _trial: int, dealt: GroupsDeal, outcome: GroupsOutcome) -> list[Line]:
    """Score a guess, and write the trial down.

    ``leakage`` is its balanced accuracy in percent over the ``groups`` that somebody is in, of which guessing without
    any answer has ``chance``; ``bound`` is what epsilon allows; ``recovered`` people are taken to be where they are.
    ``right`` is how many of each group are, in percent; null where nobody is in it.
    """
    asked, cells = dealt.scenario.groups, dealt.cells
    groups = len(np.unique(cells))
    of_each = rights(outcome.guess, cells, len(dealt.names)).tolist()
    return [
        {
            "people": len(cells),
            "groups": groups,
            "epsilon": plain(asked.epsilon),
            "strategy": asked.strategy,
            "batches": asked.batches,
            "models": asked.models,
            "leakage": leakage(outcome.guess, cells),
            "chance": 100.0 / groups,
            "bound": most(asked.epsilon, groups),
            "recovered": int((outcome.guess == cells).sum()),
            "right": {name: None if math.isnan(one) else one for name, one in zip(dealt.names, of_each, strict=True)},
            "epsilon_spent": plain(outcome.report.epsilon_spent),
        }
    ]


def summarise(swept: Mapping[str, Any], lines: Sequence[Line]) -> Line:
    """Sum up a cell: means over trials, and of leakage also ``leakage_sd``, None for one trial.

    ``right`` has the same of each group, over the ``trials`` in which somebody is in it.
    """
    return {
        **swept,
        "trials": len(lines),
        **{key: lines[0][key] for key in ("people", "epsilon", "strategy", "batches", "models", "epsilon_spent")},
        **{key: mean(lines, key) for key in ("groups", "leakage", "chance", "bound", "recovered")},
        "leakage_sd": sd(lines, "leakage"),
        "right": {name: _of_group([line["right"] for line in lines], name) for name in lines[0]["right"]},
    }


def _of_group(rights: Sequence[Line], name: str) -> Line:
    trials = sum(one[name] is not None for one in rights)
    return {"trials": trials, "mean": mean(rights, name), "sd": sd(rights, name)}
