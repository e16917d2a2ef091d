"""The dealer of the game of the curator: it deals, holds the commitment, and tells the developer the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import grpc

from fairwall.game.v1 import curator_service_pb2 as wire
from fairwall.game.v1.curator_service_pb2_grpc import CuratorServiceServicer, add_CuratorServiceServicer_to_server
from fairwall.laws.commitment import Commitment, CommitmentError
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.curator.deal import CuratorDeal
from sim.games.curator.outcome import CuratorOutcome, commitment_of, require_commitment, take_answered, take_opening
from sim.games.curator.regulator import Answered, Opening, judge
from sim.games.game import Watch
from sim.games.table import Table, Trial


@dataclass
class _CuratorTrial(Trial):
    """A trial of the game of the curator."""

    deal: CuratorDeal
    submitted: Answered | None = None
    commitment: Commitment | None = None
    opening: Opening | None = None
    verdict: wire.Verdict = wire.VERDICT_UNSPECIFIED

    @property
    def admits(self) -> bool:
        """Whether the developer may ask: compliance serves, and has committed where it is to."""
        return self.served and (self.commitment is not None or not self.deal.scenario.committed)

    @property
    def over(self) -> bool:
        """Whether everybody is done, and the developer was told the verdict."""
        return super().over and self.verdict != wire.VERDICT_UNSPECIFIED


@dataclass
class CuratorDealer(CuratorServiceServicer):
    """Serves CuratorService, and plays one deal at a time."""

    table: Table = field(repr=False)

    def register(self, server: grpc.Server, watch: Watch) -> None:
        """Serve CuratorService."""
        add_CuratorServiceServicer_to_server(watch(self), server)

    def play(self, deal: CuratorDeal, seconds: float) -> CuratorOutcome:
        """Play one deal to its end, as `Dealer` says."""
        trial = _CuratorTrial(deal)
        self.table.play(trial, seconds)
        assert trial.submitted is not None, "a trial that ended has it"
        assert trial.opening is not None, "a trial with a verdict has it"
        assert trial.report is not None, "a trial that is over has compliance's report"
        return CuratorOutcome(trial.submitted, trial.commitment, trial.opening, trial.report)

    # What the parties call. Names are the protocol's.

    def ReleaseCommitment(
        self, request: wire.ReleaseCommitmentRequest, context: grpc.ServicerContext
    ) -> wire.ReleaseCommitmentResponse:
        """Take compliance's commitment, once and for all."""
        with self.table.changing():
            trial = self.table.playing(_CuratorTrial, request.deal_id)
            commitment = commitment_of(request.commitment)
            try:
                require_commitment(commitment, trial.deal)
            except CommitmentError:
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID) from None
            if trial.commitment not in (None, commitment):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.commitment = commitment
            return wire.ReleaseCommitmentResponse()

    def TakeCuratorDeal(
        self, request: wire.TakeCuratorDealRequest, context: grpc.ServicerContext
    ) -> Iterator[wire.TakeCuratorDealResponse]:
        """Deal to the developer, once it is admitted."""
        trial = self.table.take(_CuratorTrial, request.after_deal_id, lambda trial: trial.admits)
        if isinstance(trial, _CuratorTrial):
            yield wire.TakeCuratorDealResponse(deal=_developer_deal(trial))
        else:
            yield wire.TakeCuratorDealResponse(turn=trial)

    def SubmitAnswers(
        self, request: wire.SubmitAnswersRequest, context: grpc.ServicerContext
    ) -> wire.SubmitAnswersResponse:
        """Take what the developer was answered, and tell it the verdict, once compliance has opened and reported."""
        with self.table.changing():
            trial = self.table.playing(_CuratorTrial, request.deal_id)
            if not trial.admits:
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            if trial.submitted is None:
                trial.submitted = take_answered(request, trial.deal)
        if not self.table.wait(lambda: trial.opening is not None and trial.report is not None):
            return wire.SubmitAnswersResponse()
        assert trial.opening is not None, "just waited for"
        found = judge(trial.deal, trial.submitted, trial.commitment, trial.opening)
        with self.table.changing():
            trial.verdict = wire.VERDICT_ACCUSED if found.accused else wire.VERDICT_CLEAR
            return wire.SubmitAnswersResponse(verdict=trial.verdict)

    def SubmitOpening(
        self, request: wire.SubmitOpeningRequest, context: grpc.ServicerContext
    ) -> wire.SubmitOpeningResponse:
        """Take what compliance opens, once nothing is answered any more."""
        with self.table.changing():
            trial = self.table.playing(_CuratorTrial, request.deal_id)
            if not trial.ended:
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.opening = take_opening(request, trial.deal)
            return wire.SubmitOpeningResponse()


def _developer_deal(trial: _CuratorTrial) -> wire.CuratorDeal:
    scenario = trial.deal.scenario
    return wire.CuratorDeal(
        deal_id=trial.deal.deal_id,
        seed=trial.deal.seed,
        people=scenario.data.people,
        requests=scenario.curator.requests,
        epsilon=scenario.share_of_epsilon,
        commitment=None if trial.commitment is None else wire.Commitment(**vars(trial.commitment)),
    )
