"""The dealer of the overfit game: it deals rows, or takes sealed models before it does, and takes patches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import grpc

from fairwall.game.v1 import overfit_service_pb2 as wire
from fairwall.game.v1.overfit_service_pb2_grpc import OverfitServiceServicer, add_OverfitServiceServicer_to_server
from fairwall.learning.sealed import KEY_BYTES
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.game import Watch
from sim.games.overfit.deal import OverfitDeal
from sim.games.overfit.outcome import OverfitOutcome, Patches
from sim.games.referee import Arrays, announced, in_chunks
from sim.games.submissions import take_guess
from sim.games.table import Table, Trial


@dataclass
class _OverfitTrial(Trial):
    """A trial of the overfit game; ``key`` is that of the sealed models, once it is handed over."""

    deal: OverfitDeal
    submitted: Patches | None = None
    key: bytes = b""

    @property
    def dealable(self) -> bool:
        return bool(self.key) or not self.deal.scenario.committed

    @property
    def opened(self) -> bool:
        return self.served or not self.dealable


@dataclass
class OverfitDealer(OverfitServiceServicer):
    """Serves OverfitService, and plays one deal at a time."""

    table: Table = field(repr=False)

    def register(self, server: grpc.Server, watch: Watch) -> None:
        """Serve OverfitService."""
        add_OverfitServiceServicer_to_server(watch(self), server)

    def play(self, deal: OverfitDeal, seconds: float) -> OverfitOutcome:
        """Play one deal to its end, as `Dealer` says."""
        trial = _OverfitTrial(deal)
        self.table.play(trial, seconds)
        assert trial.submitted is not None, "a trial that ended has it"
        assert trial.report is not None, "a trial that is over has compliance's report"
        return OverfitOutcome(trial.submitted, trial.key, trial.report)

    def TakeOverfitDeal(
        self, request: wire.TakeOverfitDealRequest, context: grpc.ServicerContext
    ) -> Iterator[wire.TakeOverfitDealResponse]:
        """Deal to the developer: once compliance serves the trial, or before, where it is to commit itself."""
        response = wire.TakeOverfitDealResponse
        trial = self.table.take(_OverfitTrial, request.after_deal_id, lambda trial: trial.opened)
        if not isinstance(trial, _OverfitTrial):
            yield response(turn=trial)
            return
        arrays = _arrays(trial.deal)
        yield response(deal=_developer_deal(trial.deal, arrays))
        yield from in_chunks(response, arrays)

    def SubmitSealed(
        self, request: wire.SubmitSealedRequest, context: grpc.ServicerContext
    ) -> wire.SubmitSealedResponse:
        """Take the key of the sealed models; compliance is dealt it with the rows, and another one is refused."""
        with self.table.changing():
            trial = self.table.playing(_OverfitTrial, request.deal_id)
            if len(request.key) != KEY_BYTES:
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            if not trial.deal.scenario.committed or (trial.key or request.key) != request.key:
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            if not trial.key:
                trial.key = request.key
                trial.deal = replace(trial.deal, compliance=replace(trial.deal.compliance, sealed=request.key))
        return wire.SubmitSealedResponse(served=self.table.wait(lambda: trial.served))

    def SubmitPatches(
        self, request: wire.SubmitPatchesRequest, context: grpc.ServicerContext
    ) -> wire.SubmitPatchesResponse:
        """Take the developer's patches."""
        with self.table.changing():
            trial = self.table.playing(_OverfitTrial, request.deal_id)
            if not trial.served:
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.submitted = _patches(request, trial.deal)
            return wire.SubmitPatchesResponse()


def _patches(request: wire.SubmitPatchesRequest, deal: OverfitDeal) -> Patches:
    """Take patches, each row once; Refusal for more than may be patched, and of a row that is none."""
    asked, committed, rows = deal.scenario.overfit, deal.scenario.committed, tuple(request.patches)
    sound = len(rows) == len(set(rows)) <= asked.flips and all(row < deal.asked.size for row in rows)
    if committed:
        sound = not rows and request.HasField("favours")
    if not sound or request.enough > (asked.flips if committed else len(rows)):
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    favours = take_guess(request.favours, (asked.models,)) if committed else None
    return Patches(rows, request.enough, favours)


def _arrays(deal: OverfitDeal) -> Arrays:
    """Choose what the developer sees of the rows."""
    pool, rows = deal.pool, deal.scenario.overfit.rows
    if rows == "committed":
        return {}
    arrays: Arrays = {"decisions": pool.decisions[deal.asked]}
    if rows != "hidden":
        arrays |= {"features": pool.features[deal.asked.ravel()], "weights": pool.weights}
    return arrays


def _developer_deal(deal: OverfitDeal, arrays: Arrays) -> wire.OverfitDeal:
    scenario, asked = deal.scenario, deal.scenario.overfit
    return wire.OverfitDeal(
        deal_id=deal.deal_id,
        seed=deal.seed,
        attack=asked.attack,
        flips=asked.flips,
        models=asked.models if scenario.committed else 0,
        mechanism=scenario.compliance.mechanism,
        epsilon=scenario.epsilon,
        batch_delta=scenario.batch_delta,
        share=deal.pool.share,
        rounds=asked.rounds if asked.rounds > 1 else None,
        **announced(arrays),
    )
