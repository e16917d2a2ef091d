"""The dealer of the washing game: it hands each party its own channel, and what the customer saw to compliance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import grpc
import numpy as np
from numpy.typing import NDArray

from compliance.games.wash import Verdict
from fairwall.game.v1 import wash_service_pb2 as wire
from fairwall.game.v1.referee_service_pb2 import Turn
from fairwall.game.v1.wash_service_pb2_grpc import WashServiceServicer, add_WashServiceServicer_to_server
from fairwall.rpc.errors import Refusal
from fairwall.wire.commitment import BYTES
from fairwall.wire.v1 import error_pb2
from sim.games.game import Watch
from sim.games.referee import Arrays, announced, in_chunks
from sim.games.submissions import take_guess, take_numbers
from sim.games.table import Table, Trial
from sim.games.wash.deal import WashDeal
from sim.games.wash.outcome import WashOutcome


@dataclass
class _WashTrial(Trial):
    """A trial of the washing game; what was committed to and seen may be sent again, and not changed."""

    deal: WashDeal
    commitment: bytes | None = None
    seen: NDArray[np.uint8] | None = None
    submitted: wire.SubmitWashRequest | None = None
    verdict: Verdict | None = None

    @property
    def checked(self) -> bool:
        """Whether the customer has reported, if it is to."""
        return self.commitment is not None and (self.seen is not None or not len(self.deal.checked))

    @property
    def over(self) -> bool:
        return super().over and self.verdict is not None

    @property
    def missing(self) -> str:
        return "adversary" if self.commitment is not None and not self.checked else super().missing


@dataclass
class WashDealer(WashServiceServicer):
    """Serves WashService, and plays one deal at a time."""

    table: Table = field(repr=False)

    def register(self, server: grpc.Server, watch: Watch) -> None:
        """Serve WashService."""
        add_WashServiceServicer_to_server(watch(self), server)

    def play(self, deal: WashDeal, seconds: float) -> WashOutcome:
        """Play one deal to its end, as `Dealer` says."""
        trial = _WashTrial(deal)
        self.table.play(trial, seconds)
        assert trial.submitted is not None, "a trial that ended has it"
        assert trial.verdict is not None, "a trial that is over has it"
        assert trial.report is not None, "a trial that is over has compliance's report"
        return WashOutcome.of(trial.submitted, trial.verdict, trial.report)

    # What the parties call. Names are the protocol's.

    def TakeWashDeal(
        self, request: wire.TakeWashDealRequest, context: grpc.ServicerContext
    ) -> Iterator[wire.TakeWashDealResponse]:
        """Deal to the developer, once compliance serves the trial."""
        trial = self.table.take(_WashTrial, request.after_deal_id, lambda trial: trial.served)
        yield from _dealt(wire.TakeWashDealResponse, trial, _wash_deal)

    def SubmitCommitment(
        self, request: wire.SubmitCommitmentRequest, context: grpc.ServicerContext
    ) -> wire.SubmitCommitmentResponse:
        """Take the developer's commitment; from now on customers ask."""
        with self.table.changing():
            trial = self._served(request.deal_id)
            if len(request.commitment) != (BYTES if trial.deal.scenario.wash.committed else 0):
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            if trial.commitment not in (None, request.commitment):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.commitment = request.commitment
            return wire.SubmitCommitmentResponse()

    def TakeCheckDeal(
        self, request: wire.TakeCheckDealRequest, context: grpc.ServicerContext
    ) -> Iterator[wire.TakeCheckDealResponse]:
        """Deal to the customer, once the deployed model answers, if rows are checked."""
        trial = self.table.take(
            _WashTrial,
            request.after_deal_id,
            lambda trial: trial.commitment is not None and len(trial.deal.checked) > 0,
        )
        yield from _dealt(wire.TakeCheckDealResponse, trial, _check_deal)

    def SubmitSighting(
        self, request: wire.SubmitSightingRequest, context: grpc.ServicerContext
    ) -> wire.SubmitSightingResponse:
        """Take what the customer saw."""
        with self.table.changing():
            trial = self._served(request.deal_id)
            if trial.commitment is None or not len(trial.deal.checked):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            seen = take_guess(request.seen, trial.deal.checked.shape)
            if trial.seen is not None and not np.array_equal(trial.seen, seen):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.seen = seen
            return wire.SubmitSightingResponse()

    def TakeAuditDeal(
        self, request: wire.TakeAuditDealRequest, context: grpc.ServicerContext
    ) -> Iterator[wire.TakeAuditDealResponse]:
        """Tell the developer to have its model audited, once the customer has asked."""
        trial = self.table.take(_WashTrial, request.after_deal_id, lambda trial: trial.checked)
        yield from _dealt(wire.TakeAuditDealResponse, trial, lambda _: (wire.AuditDeal, {}, {}))

    def SubmitWash(self, request: wire.SubmitWashRequest, context: grpc.ServicerContext) -> wire.SubmitWashResponse:
        """Take what the developer did."""
        with self.table.changing():
            trial = self._served(request.deal_id)
            if not trial.checked:
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            people = (len(trial.deal.features),)
            for decisions in (request.shown, request.deployed):
                take_guess(decisions, people)
            belief = take_numbers(request.belief, *people)
            salts = (BYTES if trial.deal.scenario.wash.committed else 0,)
            if not ((belief >= 0) & (belief <= 1)).all() or len(request.salt) not in salts:
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.submitted = request
            return wire.SubmitWashResponse()

    def TakeSightingDeal(
        self, request: wire.TakeSightingDealRequest, context: grpc.ServicerContext
    ) -> Iterator[wire.TakeSightingDealResponse]:
        """Tell compliance what the customer saw, once the audit is over."""
        trial = self.table.take(_WashTrial, request.after_deal_id, lambda trial: trial.ended)
        yield from _dealt(wire.TakeSightingDealResponse, trial, _sighting_deal)

    def SubmitVerdict(
        self, request: wire.SubmitVerdictRequest, context: grpc.ServicerContext
    ) -> wire.SubmitVerdictResponse:
        """Take compliance's verdict."""
        with self.table.changing():
            trial = self._served(request.deal_id)
            if not trial.ended:
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            if request.contradictions > len(trial.deal.checked):
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.verdict = Verdict(request.contradictions, request.broken, request.accused)
            return wire.SubmitVerdictResponse()

    def _served(self, deal_id: str) -> _WashTrial:
        trial = self.table.playing(_WashTrial, deal_id)
        if not trial.served:
            raise Refusal(error_pb2.REASON_OUT_OF_TURN)
        return trial


_Told: TypeAlias = tuple[Any, dict[str, Any], Arrays]
"""A deal's message, its fields, and the arrays that it announces."""


def _dealt(response: Any, trial: _WashTrial | Turn, cards: Callable[[_WashTrial], _Told]) -> Iterator[Any]:
    """Send a party's cards, or that there are none now."""
    if not isinstance(trial, _WashTrial):
        yield response(turn=trial)
        return
    message, fields, arrays = cards(trial)
    yield response(deal=message(deal_id=trial.deal.deal_id, **fields, **announced(arrays)))
    yield from in_chunks(response, arrays)


def _wash_deal(trial: _WashTrial) -> _Told:
    deal, scenario = trial.deal, trial.deal.scenario
    asked, known = scenario.wash, deal.known
    given = asked.knows == "given"
    arrays: Arrays = {
        "features": deal.features,
        "training_features": known.training_features,
        "training_labels": known.training_labels,
        "sample_features": known.sample_features,
        **({"protected": deal.compliance.protected} if given else {}),
    }
    fields = {
        **{key: getattr(asked, key) for key in ("strategy", "knows", "evades", "committed", "tau")},
        "seed": deal.seeds["developer"],
        "mechanism": scenario.compliance.mechanism,
        "epsilon": scenario.epsilon,
        "batch_delta": scenario.batch_delta,
        "disadvantaged_rows": known.disadvantaged,
        "holds_protected": given,
    }
    return wire.WashDeal, fields, arrays


def _check_deal(trial: _WashTrial) -> _Told:
    deal = trial.deal
    fields = {"seed": deal.seeds["adversary"], "wrong": deal.scenario.wash.wrong}
    return wire.CheckDeal, fields, {"features": deal.features[deal.checked]}


def _sighting_deal(trial: _WashTrial) -> _Told:
    assert trial.submitted is not None, "the trial has ended"
    fields = {
        **{key: getattr(trial.deal.scenario.wash, key) for key in ("wrong", "alarm", "committed")},
        "rows": trial.deal.checked.tolist(),
        "commitment": trial.commitment,
        "salt": trial.submitted.salt,
    }
    return wire.SightingDeal, fields, {"seen": np.empty(0, np.uint8) if trial.seen is None else trial.seen}
