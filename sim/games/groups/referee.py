"""The dealer of the game of groups: it deals how to ask, and takes who is thought to be in which group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import grpc
import numpy as np
from numpy.typing import NDArray

from fairwall.game.v1 import group_game_service_pb2 as wire
from fairwall.game.v1.group_game_service_pb2_grpc import (
    GroupGameServiceServicer,
    add_GroupGameServiceServicer_to_server,
)
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.game import Watch
from sim.games.groups.deal import GroupsDeal
from sim.games.groups.outcome import GroupsOutcome
from sim.games.submissions import take_array
from sim.games.table import Table, Trial


@dataclass
class _GroupsTrial(Trial):
    """A trial of the game of groups."""

    deal: GroupsDeal
    submitted: NDArray[np.uint8] | None = None


@dataclass
class GroupsDealer(GroupGameServiceServicer):
    """Serves GroupGameService, and plays one deal at a time."""

    table: Table = field(repr=False)

    def register(self, server: grpc.Server, watch: Watch) -> None:
        """Serve GroupGameService."""
        add_GroupGameServiceServicer_to_server(watch(self), server)

    def play(self, deal: GroupsDeal, seconds: float) -> GroupsOutcome:
        """Play one deal to its end, as `Dealer` says."""
        trial = _GroupsTrial(deal)
        self.table.play(trial, seconds)
        assert trial.submitted is not None, "a trial that ended has it"
        assert trial.report is not None, "a trial that is over has compliance's report"
        return GroupsOutcome(trial.submitted, trial.report)

    # What the parties call. Names are the protocol's.

    def TakeGroupDeal(
        self, request: wire.TakeGroupDealRequest, context: grpc.ServicerContext
    ) -> Iterator[wire.TakeGroupDealResponse]:
        """Deal to the developer, once compliance serves the trial."""
        trial = self.table.take(_GroupsTrial, request.after_deal_id, lambda trial: trial.served)
        if isinstance(trial, _GroupsTrial):
            yield wire.TakeGroupDealResponse(deal=_developer_deal(trial.deal))
        else:
            yield wire.TakeGroupDealResponse(turn=trial)

    def SubmitGroups(
        self, request: wire.SubmitGroupsRequest, context: grpc.ServicerContext
    ) -> wire.SubmitGroupsResponse:
        """Take the developer's guess."""
        with self.table.changing():
            trial = self.table.playing(_GroupsTrial, request.deal_id)
            if not trial.served:
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            guess = take_array(request.guess, trial.deal.cells.shape, np.uint8)
            if guess.max() >= len(trial.deal.shares):
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.submitted = guess
            return wire.SubmitGroupsResponse()


def _developer_deal(deal: GroupsDeal) -> wire.GroupDeal:
    asked = deal.scenario.groups
    return wire.GroupDeal(
        deal_id=deal.deal_id,
        seed=deal.seed,
        shares=deal.shares,
        epsilon=asked.epsilon,
        batches=asked.batches,
        models=asked.models,
        strategy=asked.strategy,
    )
