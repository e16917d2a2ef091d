"""The dealer of the overfit game: it takes sealed models where there are any, deals rows, and takes patches."""

from __future__ import annotations

from dataclasses import dataclass, replace

from grpc import ServicerContext

from fairwall.game.v1 import overfit_service_pb2 as wire
from fairwall.game.v1.overfit_service_pb2_grpc import OverfitServiceServicer, add_OverfitServiceServicer_to_server
from fairwall.learning.sealed import KEY_BYTES
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.dealer import TableDealer, deals
from sim.games.overfit.deal import OverfitDeal
from sim.games.overfit.outcome import OverfitOutcome, Patches
from sim.games.referee import Arrays
from sim.games.submissions import take_guess
from sim.games.table import Trial, given


@dataclass
class _OverfitTrial(Trial):
    """State of a trial; `key` is that of the sealed models, once it is handed over."""

    deal: OverfitDeal
    submitted: Patches | None = None
    key: bytes = b""

    @property
    def dealable(self) -> bool:
        return bool(self.key) or not self.deal.scenario.committed

    @property
    def opened(self) -> bool:
        return self.served or not self.dealable


def _patches(request: wire.SubmitPatchesRequest, deal: OverfitDeal) -> Patches:
    """Decode patches; Refusal for too many, a repeated row, or an unknown row."""
    asked, committed, rows = deal.scenario.overfit, deal.scenario.committed, tuple(request.patches)
    sound = len(rows) == len(set(rows)) <= asked.flips and all(row < deal.asked.size for row in rows)
    if committed:
        sound = not rows and request.HasField("favours")
    if not sound or request.enough > (asked.flips if committed else len(rows)):
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    favours = take_guess(request.favours, (asked.models,)) if committed else None
    return Patches(rows, request.enough, favours)


def _arrays(deal: OverfitDeal) -> Arrays:
    pool, rows = deal.pool, deal.scenario.overfit.rows
    if rows == "committed":
        return {}
    arrays: Arrays = {"decisions": pool.decisions[deal.asked]}
    if rows != "hidden":
        arrays |= {"features": pool.features[deal.asked.ravel()], "weights": pool.weights}
    return arrays


def _overfit_deal(trial: _OverfitTrial) -> tuple[wire.OverfitDeal, Arrays]:
    deal, scenario, asked = trial.deal, trial.deal.scenario, trial.deal.scenario.overfit
    return wire.OverfitDeal(
        seed=deal.seed,
        attack=asked.attack,
        flips=asked.flips,
        models=asked.models if scenario.committed else 0,
        mechanism=scenario.compliance.mechanism,
        epsilon=scenario.epsilon,
        batch_delta=scenario.batch_delta,
        share=deal.pool.share,
        rounds=asked.rounds if asked.rounds > 1 else None,
    ), _arrays(deal)


class OverfitDealer(TableDealer[_OverfitTrial, OverfitDeal, OverfitOutcome], OverfitServiceServicer):
    """The OverfitService, for one deal at a time."""

    kind, serve = _OverfitTrial, staticmethod(add_OverfitServiceServicer_to_server)

    # Dealt once compliance serves, or before, where the developer must commit itself.
    TakeOverfitDeal = deals(wire.TakeOverfitDealResponse, _overfit_deal, lambda trial: trial.opened)

    def SubmitSealed(self, request: wire.SubmitSealedRequest, context: ServicerContext) -> wire.SubmitSealedResponse:
        """Take the key of the sealed models, which is dealt to compliance with the rows; a different key is refused."""
        with self.turn(request.deal_id, lambda _: True) as trial:
            if len(request.key) != KEY_BYTES:
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            if not trial.deal.scenario.committed or (trial.key or request.key) != request.key:
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            if not trial.key:
                trial.key = request.key
                trial.deal = replace(trial.deal, compliance=replace(trial.deal.compliance, sealed=request.key))
        return wire.SubmitSealedResponse(served=self.table.wait(lambda: trial.served))

    def SubmitPatches(self, request: wire.SubmitPatchesRequest, context: ServicerContext) -> wire.SubmitPatchesResponse:
        """Take the developer's patches."""
        with self.turn(request.deal_id, lambda trial: trial.served) as trial:
            trial.submitted = _patches(request, trial.deal)
            return wire.SubmitPatchesResponse()

    def outcome(self, trial: _OverfitTrial) -> OverfitOutcome:
        """Return the outcome of a finished trial."""
        return OverfitOutcome(given(trial.submitted), trial.key, given(trial.report))
