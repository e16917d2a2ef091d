"""A trial of the groups game: its outcome, the dealer that takes it, its line, and the summary of a cell's lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from grpc import ServicerContext
from numpy.typing import NDArray

from fairwall.arrays import Bytes, Floats
from fairwall.game.v1 import group_game_service_pb2 as wire
from fairwall.game.v1.group_game_service_pb2_grpc import (
    GroupGameServiceServicer,
    add_GroupGameServiceServicer_to_server,
)
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.game import Line
from sim.games.groups.deal import GroupsDeal, deal
from sim.games.groups.scenario import GroupsScenario
from sim.games.referee import Arrays, TableDealer, deals
from sim.games.submissions import AuditReport, bits_of, drawn_again, report_of, submission_of, take_array
from sim.games.summary import mean, sd
from sim.games.table import Trial, given
from sim.scenarios.scenario import plain
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class GroupsOutcome:
    """The developer's guess, shape (people,), and compliance's report."""

    guess: Bytes
    report: AuditReport


def from_messages(
    cell: Cell[GroupsScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[GroupsDeal, GroupsOutcome]:
    """Return a trial's deal, drawn again, and its outcome from the messages; NotRecorded where a value is missing."""
    request = submission_of(trial, "SubmitGroups")
    dealt = drawn_again(deal, cell, number, trial, secret, lambda dealt: {"groups": dealt.groups.codes})
    return dealt, GroupsOutcome(bits_of(request.guess), report_of(trial))


@dataclass
class _GroupsTrial(Trial):
    deal: GroupsDeal
    submitted: Bytes | None = None


def _group_deal(trial: _GroupsTrial) -> tuple[wire.GroupDeal, Arrays]:
    deal, asked = trial.deal, trial.deal.scenario.groups
    return wire.GroupDeal(
        seed=deal.seed,
        shares=deal.shares,
        epsilon=asked.epsilon,
        batches=asked.batches,
        models=asked.models,
        strategy=asked.strategy,
    ), {}


class GroupsDealer(TableDealer[_GroupsTrial, GroupsDeal, GroupsOutcome], GroupGameServiceServicer):
    """The GroupGameService, for one deal at a time."""

    kind, serve = _GroupsTrial, staticmethod(add_GroupGameServiceServicer_to_server)

    TakeGroupDeal = deals(wire.TakeGroupDealResponse, _group_deal, lambda trial: trial.served)

    def SubmitGroups(self, request: wire.SubmitGroupsRequest, context: ServicerContext) -> wire.SubmitGroupsResponse:
        """Take the developer's guess."""
        with self.turn(request.deal_id, lambda trial: trial.served) as trial:
            guess = take_array(request.guess, trial.deal.cells.shape, np.uint8)
            if guess.max() >= len(trial.deal.shares):
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.submitted = guess
            return wire.SubmitGroupsResponse()

    def outcome(self, trial: _GroupsTrial) -> GroupsOutcome:
        """Return the outcome of a finished trial."""
        return GroupsOutcome(given(trial.submitted), given(trial.report))


def rights(guess: Bytes, cells: NDArray[np.intp], groups: int) -> Floats:
    """Return the percentage of each group guessed right, NaN if empty; arguments are group numbers, (people,)."""
    right, people = (np.bincount(cells, weights, groups) for weights in (guess == cells, None))
    return np.where(people > 0, 100.0 * right / np.maximum(people, 1), np.nan)


def leakage(guess: Bytes, cells: NDArray[np.intp]) -> float:
    """Return a guess's balanced accuracy over the groups that are not empty, in percent, as in the reveal game."""
    right, people = (np.bincount(cells, weights) for weights in (guess == cells, None))
    return 100.0 * float((right[people > 0] / people[people > 0]).mean())


def most(epsilon: float, groups: int) -> float:
    """Return the largest balanced accuracy about one person, in percent, under answers of this epsilon.

    Let p_gh be the probability that a person of group h is guessed to be of g. Sizes of groups are public, so if the
    person is of g instead, somebody else moves from g to h: two changes, a factor of at most e^(2 epsilon). So
    p_gg (1 + (k - 1) e^(-2 epsilon)) <= sum_h p_gh. Summed over g, the right side is k, and the mean of p_gg is at most
    1 / (1 + (k - 1) e^(-2 epsilon)).
    """
    return 100.0 / (1 + (groups - 1) * math.exp(-2 * epsilon))


def record(_cell: Cell[GroupsScenario], _trial: int, dealt: GroupsDeal, outcome: GroupsOutcome) -> list[Line]:
    """Return the trial's line, with the score of the guess.

    `leakage` is the balanced accuracy in percent over the `groups` that are not empty, `chance` that of a guess without
    answers, `bound` the largest that epsilon allows. `recovered` is the number of people guessed right, `right` the
    percentage by group, null for an empty group.
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
    """Return a cell's summary: means over trials; those by group are over trials in which the group is not empty."""
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
