"""The dealer of the disclosure game: it deals the public facts about Alice, and takes the developer's belief."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grpc import ServicerContext

from developer.disclosure.belief import MODES, SecretBelief
from fairwall.game.v1 import disclosure_service_pb2 as disclosure
from fairwall.game.v1.disclosure_service_pb2_grpc import (
    DisclosureServiceServicer,
    add_DisclosureServiceServicer_to_server,
)
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.dealer import TableDealer, deals
from sim.games.disclosure.deal import DisclosureDeal
from sim.games.disclosure.outcome import DisclosureOutcome, belief_of
from sim.games.referee import Arrays, study_terms_of
from sim.games.table import Trial, given

_NUMBERS = {name: number for number, name in MODES.items()}


@dataclass
class _DisclosureTrial(Trial):
    deal: DisclosureDeal
    submitted: SecretBelief | None = None


def _disclosure_deal(trial: _DisclosureTrial) -> tuple[disclosure.DisclosureDeal, Arrays]:
    deal, known = trial.deal, trial.deal.known
    told: dict[str, Any] = {} if known.takes_part is None else {"takes_part": known.takes_part}
    return disclosure.DisclosureDeal(
        mode=_NUMBERS[known.mode],
        terms=study_terms_of(deal.study),
        cell=deal.cell,
        others=known.others,
        others_yes=known.others_yes,
        rate=known.rate,
        **told,
    ), {}


class DisclosureDealer(TableDealer[_DisclosureTrial, DisclosureDeal, DisclosureOutcome], DisclosureServiceServicer):
    """The DisclosureService, for one deal at a time."""

    kind, serve = _DisclosureTrial, staticmethod(add_DisclosureServiceServicer_to_server)

    TakeDisclosureDeal = deals(disclosure.TakeDisclosureDealResponse, _disclosure_deal, lambda trial: trial.served)

    def SubmitPosterior(
        self, request: disclosure.SubmitPosteriorRequest, context: ServicerContext
    ) -> disclosure.SubmitPosteriorResponse:
        """Take the developer's belief."""
        with self.turn(request.deal_id, lambda trial: trial.served) as trial:
            belief, named = belief_of(request), request.HasField("record")
            people = len(trial.deal.study.answers) if trial.deal.study.records else 0
            in_range = 0 <= belief.posterior <= 1 and belief.candidates <= people
            if not in_range or named != (belief.candidates > 0) or (named and request.record >= people):
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.submitted = belief
            return disclosure.SubmitPosteriorResponse()

    def outcome(self, trial: _DisclosureTrial) -> DisclosureOutcome:
        """Return the outcome of a finished trial."""
        return DisclosureOutcome(given(trial.submitted), given(trial.report))
