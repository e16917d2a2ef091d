"""The dealer of the curator game: it deals, keeps the commitment, and sends the developer the verdict."""

from __future__ import annotations

from dataclasses import dataclass

from grpc import ServicerContext

from fairwall.game.v1 import curator_service_pb2 as wire
from fairwall.game.v1.curator_service_pb2_grpc import CuratorServiceServicer, add_CuratorServiceServicer_to_server
from fairwall.laws.commitment import Commitment, CommitmentError, rows_of
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.curator.deal import CuratorDeal
from sim.games.curator.outcome import CuratorOutcome, answered, commitment_of, opening
from sim.games.curator.regulator import Answered, Opening, judge
from sim.games.dealer import TableDealer, deals
from sim.games.referee import Arrays
from sim.games.table import Trial, given


@dataclass
class _CuratorTrial(Trial):
    deal: CuratorDeal
    submitted: Answered | None = None
    commitment: Commitment | None = None
    opening: Opening | None = None
    verdict: wire.Verdict = wire.VERDICT_UNSPECIFIED

    @property
    def admits(self) -> bool:
        """Whether the developer may make requests: compliance serves, and has committed if the scenario requires it."""
        return self.served and (self.commitment is not None or not self.deal.scenario.committed)

    @property
    def over(self) -> bool:
        return super().over and self.verdict != wire.VERDICT_UNSPECIFIED


def _curator_deal(trial: _CuratorTrial) -> tuple[wire.CuratorDeal, Arrays]:
    scenario = trial.deal.scenario
    return wire.CuratorDeal(
        seed=trial.deal.seed,
        people=scenario.data.people,
        requests=scenario.curator.requests,
        epsilon=scenario.share_of_epsilon,
        commitment=None if trial.commitment is None else wire.Commitment(**vars(trial.commitment)),
    ), {}


class CuratorDealer(TableDealer[_CuratorTrial, CuratorDeal, CuratorOutcome], CuratorServiceServicer):
    """The CuratorService, for one deal at a time."""

    kind, serve = _CuratorTrial, staticmethod(add_CuratorServiceServicer_to_server)

    TakeCuratorDeal = deals(wire.TakeCuratorDealResponse, _curator_deal, lambda trial: trial.admits)

    # Called by the parties.

    def ReleaseCommitment(
        self, request: wire.ReleaseCommitmentRequest, context: ServicerContext
    ) -> wire.ReleaseCommitmentResponse:
        """Take compliance's commitment, which cannot be changed afterwards."""
        with self.turn(request.deal_id, lambda _: True) as trial:
            commitment = commitment_of(request.commitment)
            try:
                commitment.require(rows_of(trial.deal.compliance.labels))
            except CommitmentError:
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID) from None
            if trial.commitment not in (None, commitment):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.commitment = commitment
            return wire.ReleaseCommitmentResponse()

    def SubmitAnswers(self, request: wire.SubmitAnswersRequest, context: ServicerContext) -> wire.SubmitAnswersResponse:
        """Take the developer's answers, and reply with the verdict once compliance has opened and reported."""
        with self.turn(request.deal_id, lambda trial: trial.admits) as trial:
            trial.submitted = trial.submitted or answered(request, trial.deal)
        if not self.table.wait(lambda: trial.opening is not None and trial.report is not None):
            return wire.SubmitAnswersResponse()
        found = judge(trial.deal, given(trial.submitted), trial.commitment, given(trial.opening))
        with self.table.changing():
            trial.verdict = wire.VERDICT_ACCUSED if found.accused else wire.VERDICT_CLEAR
            return wire.SubmitAnswersResponse(verdict=trial.verdict)

    def SubmitOpening(self, request: wire.SubmitOpeningRequest, context: ServicerContext) -> wire.SubmitOpeningResponse:
        """Take compliance's opening, once no more requests are answered."""
        with self.turn(request.deal_id, lambda trial: trial.ended) as trial:
            trial.opening = opening(request, trial.deal)
            return wire.SubmitOpeningResponse()

    def outcome(self, trial: _CuratorTrial) -> CuratorOutcome:
        """Return the outcome of a finished trial."""
        return CuratorOutcome(given(trial.submitted), trial.commitment, given(trial.opening), given(trial.report))
