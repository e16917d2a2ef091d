"""The dealer of the disclosure game: it deals what is known of Alice, and takes what the developer believes of her."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import grpc

from developer.disclosure.belief import MODES, Belief
from fairwall.game.v1 import disclosure_service_pb2 as disclosure
from fairwall.game.v1.disclosure_service_pb2_grpc import (
    DisclosureServiceServicer,
    add_DisclosureServiceServicer_to_server,
)
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.disclosure.deal import DisclosureDeal
from sim.games.disclosure.outcome import DisclosureOutcome, belief_of
from sim.games.game import Watch
from sim.games.referee import study_terms_of
from sim.games.table import Table, Trial

_NUMBERS = {name: number for number, name in MODES.items()}


@dataclass
class _DisclosureTrial(Trial):
    """A trial of the disclosure game."""

    deal: DisclosureDeal
    submitted: Belief | None = None


@dataclass
class DisclosureDealer(DisclosureServiceServicer):
    """Serves DisclosureService, and plays one deal at a time."""

    table: Table = field(repr=False)

    def register(self, server: grpc.Server, watch: Watch) -> None:
        """Serve DisclosureService."""
        add_DisclosureServiceServicer_to_server(watch(self), server)

    def play(self, deal: DisclosureDeal, seconds: float) -> DisclosureOutcome:
        """Play one deal to its end, as `Dealer` says."""
        trial = _DisclosureTrial(deal)
        self.table.play(trial, seconds)
        assert trial.submitted is not None, "a trial that ended has it"
        assert trial.report is not None, "a trial that is over has compliance's report"
        return DisclosureOutcome(trial.submitted, trial.report)

    # What the parties call. Names are the protocol's.

    def TakeDisclosureDeal(
        self, request: disclosure.TakeDisclosureDealRequest, context: grpc.ServicerContext
    ) -> Iterator[disclosure.TakeDisclosureDealResponse]:
        """Deal to the developer, once compliance serves the trial."""
        trial = self.table.take(_DisclosureTrial, request.after_deal_id, lambda trial: trial.served)
        if isinstance(trial, _DisclosureTrial):
            yield disclosure.TakeDisclosureDealResponse(deal=_developer_deal(trial.deal))
        else:
            yield disclosure.TakeDisclosureDealResponse(turn=trial)

    def SubmitPosterior(
        self, request: disclosure.SubmitPosteriorRequest, context: grpc.ServicerContext
    ) -> disclosure.SubmitPosteriorResponse:
        """Take what the developer believes."""
        with self.table.changing():
            trial = self.table.playing(_DisclosureTrial, request.deal_id)
            if not trial.served:
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            belief, named = belief_of(request), request.HasField("record")
            people = len(trial.deal.study.answers) if trial.deal.study.records else 0
            in_range = 0 <= belief.posterior <= 1 and belief.candidates <= people
            if not in_range or named != (belief.candidates > 0) or (named and request.record >= people):
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.submitted = belief
            return disclosure.SubmitPosteriorResponse()


def _developer_deal(deal: DisclosureDeal) -> disclosure.DisclosureDeal:
    known = deal.known
    told = {} if known.takes_part is None else {"takes_part": known.takes_part}
    return disclosure.DisclosureDeal(
        deal_id=deal.deal_id,
        mode=_NUMBERS[known.mode],
        terms=study_terms_of(deal.study),
        cell=deal.cell,
        others=known.others,
        others_yes=known.others_yes,
        rate=known.rate,
        **told,
    )
