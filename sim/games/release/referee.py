"""The dealer of the release game: it deals people to train on, and takes the developer's guesses about them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from grpc import ServicerContext
from numpy.typing import NDArray

from fairwall.game.v1 import release_game_service_pb2 as release
from fairwall.game.v1.release_game_service_pb2_grpc import (
    ReleaseGameServiceServicer,
    add_ReleaseGameServiceServicer_to_server,
)
from fairwall.laws.utility import RATED, UTILITIES
from fairwall.rpc.errors import Refusal
from fairwall.wire.metrics import number_of
from fairwall.wire.v1 import error_pb2
from sim.games.dealer import TableDealer, deals
from sim.games.referee import Arrays, check_queries, terms_of
from sim.games.release.deal import ReleaseDeal
from sim.games.release.outcome import ReleaseOutcome, SubmittedGuesses
from sim.games.release.scenario import CONSTANT
from sim.games.submissions import take_guess
from sim.games.table import Trial, TrialFailed, given


@dataclass
class _ReleaseTrial(Trial):
    deal: ReleaseDeal
    submitted: SubmittedGuesses | None = None


def _mixture(request: release.SubmitBeliefsRequest, deal: ReleaseDeal) -> NDArray[np.uint8] | None:
    """Decode the guess from release and queries; Refusal unless it comes exactly where there are queries."""
    there = request.HasField("from_mixture")
    if there != (deal.release.queried is not None):
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return take_guess(request.from_mixture, (len(deal.labels),)) if there else None


def _release_deal(trial: _ReleaseTrial) -> tuple[release.ReleaseDeal, Arrays]:
    deal, scenario, boosting = trial.deal, trial.deal.scenario, trial.deal.boosting
    constant = deal.release.protocol == CONSTANT
    without = release.TRAINING_INPUT_CONSTANT if constant else release.TRAINING_INPUT_DROPPED
    return release.ReleaseDeal(
        input=release.TRAINING_INPUT_RELEASED if deal.releases else without,
        terms=terms_of(deal.release),
        boosting=release.Boosting(seed=deal.seed, depth=boosting.depth, rate=boosting.rate, trees=boosting.trees),
        metrics=[number_of(metric) for metric in scenario.metrics],
        audit_epsilon=scenario.epsilon / len(scenario.metrics),
        searches=scenario.release.asked == "searched",
    ), {"features": deal.features, "labels": deal.labels}


class ReleaseDealer(TableDealer[_ReleaseTrial, ReleaseDeal, ReleaseOutcome], ReleaseGameServiceServicer):
    """The ReleaseGameService, for one deal at a time."""

    kind, serve = _ReleaseTrial, staticmethod(add_ReleaseGameServiceServicer_to_server)

    TakeReleaseDeal = deals(release.TakeReleaseDealResponse, _release_deal, lambda trial: trial.served)

    def SubmitBeliefs(
        self, request: release.SubmitBeliefsRequest, context: ServicerContext
    ) -> release.SubmitBeliefsResponse:
        """Take the developer's guesses."""
        with self.turn(request.deal_id, lambda trial: trial.served) as trial:
            people = (len(trial.deal.labels),)
            if not 0 <= request.consistent <= 1:
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.submitted = SubmittedGuesses(
                from_release=take_guess(request.from_release, people),
                from_everything=take_guess(request.from_everything, people),
                consistent=request.consistent,
                queries=request.queries,
                from_mixture=_mixture(request, trial.deal),
            )
            return release.SubmitBeliefsResponse()

    def outcome(self, trial: _ReleaseTrial) -> ReleaseOutcome:
        """Return the outcome of a finished trial; TrialFailed if numbers of queries differ or figures are missing."""
        beliefs, report = given(trial.submitted), given(trial.report)
        check_queries(beliefs.queries, report)
        if (len(report.utilities), len(report.group_rates)) != (len(UTILITIES), 2 * len(RATED)):
            raise TrialFailed(
                "compliance reports no figures of a model: the developer handed none over, or they are lost"
            )
        return ReleaseOutcome(beliefs, report)
