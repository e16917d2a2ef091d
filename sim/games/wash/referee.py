"""The dealer of the washing game: it deals to each party, and passes the customer's report to compliance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from grpc import ServicerContext
from numpy.typing import NDArray

from compliance.games.wash import WashVerdict
from fairwall.game.v1 import wash_service_pb2 as wire
from fairwall.game.v1.wash_service_pb2_grpc import WashServiceServicer, add_WashServiceServicer_to_server
from fairwall.rpc.errors import Refusal
from fairwall.wire.commitment import BYTES
from fairwall.wire.v1 import error_pb2
from sim.games.dealer import TableDealer, deals
from sim.games.referee import Arrays
from sim.games.submissions import take_guess, take_numbers
from sim.games.table import Trial, given
from sim.games.wash.deal import WashDeal
from sim.games.wash.outcome import WashOutcome


@dataclass
class _WashTrial(Trial):
    """State of a trial; a commitment or a report may be sent again, but not changed."""

    deal: WashDeal
    commitment: bytes | None = None
    seen: NDArray[np.uint8] | None = None
    submitted: wire.SubmitWashRequest | None = None
    verdict: WashVerdict | None = None

    @property
    def asked(self) -> bool:
        """Whether the customer may check: the deployed model answers, and there are rows to check."""
        return self.commitment is not None and len(self.deal.checked) > 0

    @property
    def checked(self) -> bool:
        """Whether the customer has reported, where it must."""
        return self.commitment is not None and (self.seen is not None or not self.asked)

    @property
    def over(self) -> bool:
        return super().over and self.verdict is not None

    @property
    def missing(self) -> str:
        return "adversary" if self.commitment is not None and not self.checked else super().missing


def _wash_deal(trial: _WashTrial) -> tuple[wire.WashDeal, Arrays]:
    deal, scenario = trial.deal, trial.deal.scenario
    asked, known = scenario.wash, deal.known
    told_groups = asked.knows == "given"
    told: dict[str, Any] = {key: getattr(asked, key) for key in ("strategy", "knows", "evades", "committed", "tau")}
    return wire.WashDeal(
        **told,
        seed=deal.seeds["developer"],
        mechanism=scenario.compliance.mechanism,
        epsilon=scenario.epsilon,
        batch_delta=scenario.batch_delta,
        disadvantaged_rows=known.disadvantaged,
        holds_protected=told_groups,
    ), {
        "features": deal.features,
        "training_features": known.training_features,
        "training_labels": known.training_labels,
        "sample_features": known.sample_features,
        **({"protected": deal.compliance.protected} if told_groups else {}),
    }


def _check_deal(trial: _WashTrial) -> tuple[wire.CheckDeal, Arrays]:
    deal = trial.deal
    told = wire.CheckDeal(seed=deal.seeds["adversary"], wrong=deal.scenario.wash.wrong)
    return told, {"features": deal.features[deal.checked]}


def _audit_deal(_: _WashTrial) -> tuple[wire.AuditDeal, Arrays]:
    return wire.AuditDeal(), {}


def _sighting_deal(trial: _WashTrial) -> tuple[wire.SightingDeal, Arrays]:
    asked, salt = trial.deal.scenario.wash, given(trial.submitted).salt
    told = wire.SightingDeal(wrong=asked.wrong, alarm=asked.alarm, committed=asked.committed, salt=salt)
    told.rows.extend(trial.deal.checked.tolist())
    told.commitment = given(trial.commitment)
    return told, {"seen": np.empty(0, np.uint8) if trial.seen is None else trial.seen}


class WashDealer(TableDealer[_WashTrial, WashDeal, WashOutcome], WashServiceServicer):
    """The WashService, for one deal at a time."""

    kind, serve = _WashTrial, staticmethod(add_WashServiceServicer_to_server)

    TakeWashDeal = deals(wire.TakeWashDealResponse, _wash_deal, lambda trial: trial.served)
    TakeCheckDeal = deals(wire.TakeCheckDealResponse, _check_deal, lambda trial: trial.asked)
    TakeAuditDeal = deals(wire.TakeAuditDealResponse, _audit_deal, lambda trial: trial.checked)
    TakeSightingDeal = deals(wire.TakeSightingDealResponse, _sighting_deal, lambda trial: trial.ended)

    # Called by the parties. Method names are the protocol's.

    def SubmitCommitment(
        self, request: wire.SubmitCommitmentRequest, context: ServicerContext
    ) -> wire.SubmitCommitmentResponse:
        """Take the developer's commitment, or an empty one; the customer's checks can begin."""
        with self.turn(request.deal_id, lambda trial: trial.served) as trial:
            if len(request.commitment) != (BYTES if trial.deal.scenario.wash.committed else 0):
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            if trial.commitment not in (None, request.commitment):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.commitment = request.commitment
            return wire.SubmitCommitmentResponse()

    def SubmitSighting(
        self, request: wire.SubmitSightingRequest, context: ServicerContext
    ) -> wire.SubmitSightingResponse:
        """Take the customer's report."""
        with self.turn(request.deal_id, lambda trial: trial.asked) as trial:
            seen = take_guess(request.seen, trial.deal.checked.shape)
            if trial.seen is not None and not np.array_equal(trial.seen, seen):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.seen = seen
            return wire.SubmitSightingResponse()

    def SubmitWash(self, request: wire.SubmitWashRequest, context: ServicerContext) -> wire.SubmitWashResponse:
        """Take the developer's shown and deployed decisions, its belief and its salt."""
        with self.turn(request.deal_id, lambda trial: trial.checked) as trial:
            people = (len(trial.deal.features),)
            for decisions in (request.shown, request.deployed):
                take_guess(decisions, people)
            belief = take_numbers(request.belief, *people)
            salts = (BYTES if trial.deal.scenario.wash.committed else 0,)
            if not ((belief >= 0) & (belief <= 1)).all() or len(request.salt) not in salts:
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.submitted = request
            return wire.SubmitWashResponse()

    def SubmitVerdict(self, request: wire.SubmitVerdictRequest, context: ServicerContext) -> wire.SubmitVerdictResponse:
        """Take compliance's verdict."""
        with self.turn(request.deal_id, lambda trial: trial.ended) as trial:
            if request.contradictions > len(trial.deal.checked):
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.verdict = WashVerdict(request.contradictions, request.broken, request.accused)
            return wire.SubmitVerdictResponse()

    def outcome(self, trial: _WashTrial) -> WashOutcome:
        """Return the outcome of a finished trial."""
        return WashOutcome.of(given(trial.submitted), given(trial.verdict), given(trial.report))
