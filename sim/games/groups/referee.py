"""The dealer of the game of groups: it deals the developer's strategy, and takes its guess at everybody's group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from grpc import ServicerContext
from numpy.typing import NDArray

from fairwall.game.v1 import group_game_service_pb2 as wire
from fairwall.game.v1.group_game_service_pb2_grpc import (
    GroupGameServiceServicer,
    add_GroupGameServiceServicer_to_server,
)
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.dealer import TableDealer, deals
from sim.games.groups.deal import GroupsDeal
from sim.games.groups.outcome import GroupsOutcome
from sim.games.referee import Arrays
from sim.games.submissions import take_array
from sim.games.table import Trial, given


@dataclass
class _GroupsTrial(Trial):
    deal: GroupsDeal
    submitted: NDArray[np.uint8] | None = None


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
