"""The dealer of the release game: it deals people to train on, and takes what the developer believes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import grpc
import numpy as np
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
from sim.games.game import Watch
from sim.games.referee import Arrays, announced, check_queries, in_chunks, terms_of
from sim.games.release.deal import ReleaseDeal
from sim.games.release.outcome import Beliefs, ReleaseOutcome
from sim.games.release.scenario import CONSTANT
from sim.games.submissions import take_guess
from sim.games.table import Table, Trial, TrialFailed


@dataclass
class _ReleaseTrial(Trial):
    """A trial of the release game."""

    deal: ReleaseDeal
    beliefs: Beliefs | None = None

    @property
    def ended(self) -> bool:
        return self.beliefs is not None

    @property
    def missing(self) -> str:
        return "developer" if self.served and self.beliefs is None else "compliance"


@dataclass
class ReleaseDealer(ReleaseGameServiceServicer):
    """Serves ReleaseGameService, and plays one deal at a time."""

    table: Table = field(repr=False)

    def register(self, server: grpc.Server, watch: Watch) -> None:
        """Serve ReleaseGameService."""
        add_ReleaseGameServiceServicer_to_server(watch(self), server)

    def play(self, deal: ReleaseDeal, seconds: float) -> ReleaseOutcome:
        """Play one deal to its end, as `Dealer` says."""
        trial = _ReleaseTrial(deal)
        self.table.play(trial, seconds)
        assert trial.beliefs is not None, "a trial that ended has them"
        assert trial.report is not None, "a trial that is over has compliance's report"
        check_queries(trial.beliefs.queries, trial.report)
        measured = len(trial.report.utilities), len(trial.report.group_rates)
        if measured != (len(UTILITIES), 2 * len(RATED)):
            raise TrialFailed(
                "compliance reports no figures of a model: the developer handed none over, or they are lost"
            )
        return ReleaseOutcome(trial.beliefs, trial.report)

    # What the parties call. Names are the protocol's.

    def TakeReleaseDeal(
        self, request: release.TakeReleaseDealRequest, context: grpc.ServicerContext
    ) -> Iterator[release.TakeReleaseDealResponse]:
        """Deal to the developer, once compliance serves the trial."""
        response = release.TakeReleaseDealResponse
        trial = self.table.take(_ReleaseTrial, request.after_deal_id, lambda trial: trial.served)
        if not isinstance(trial, _ReleaseTrial):
            yield response(turn=trial)
            return
        arrays: Arrays = {"features": trial.deal.features, "labels": trial.deal.labels}
        yield response(deal=_developer_deal(trial.deal, arrays))
        yield from in_chunks(response, arrays)

    def SubmitBeliefs(
        self, request: release.SubmitBeliefsRequest, context: grpc.ServicerContext
    ) -> release.SubmitBeliefsResponse:
        """Take what the developer believes."""
        with self.table.changing():
            trial = self.table.playing(_ReleaseTrial, request.deal_id)
            if not trial.served:
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            people = (len(trial.deal.labels),)
            if not 0 <= request.consistent <= 1:
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.beliefs = Beliefs(
                from_release=take_guess(request.from_release, people),
                from_everything=take_guess(request.from_everything, people),
                consistent=request.consistent,
                queries=request.queries,
                from_mixture=_mixture(request, trial.deal),
            )
            return release.SubmitBeliefsResponse()


def _mixture(request: release.SubmitBeliefsRequest, deal: ReleaseDeal) -> NDArray[np.uint8] | None:
    """Take the guess from release and queries, which goes with them."""
    there = request.HasField("from_mixture")
    if there != (deal.release.queried is not None):
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return take_guess(request.from_mixture, (len(deal.labels),)) if there else None


def _developer_deal(deal: ReleaseDeal, arrays: Arrays) -> release.ReleaseDeal:
    scenario, boosting = deal.scenario, deal.boosting
    constant = deal.release.protocol == CONSTANT
    without = release.TRAINING_INPUT_CONSTANT if constant else release.TRAINING_INPUT_DROPPED
    return release.ReleaseDeal(
        deal_id=deal.deal_id,
        input=release.TRAINING_INPUT_RELEASED if deal.releases else without,
        terms=terms_of(deal.release),
        boosting=release.Boosting(seed=deal.seed, depth=boosting.depth, rate=boosting.rate, trees=boosting.trees),
        metrics=[number_of(metric) for metric in scenario.metrics],
        audit_epsilon=scenario.epsilon / len(scenario.metrics),
        **announced(arrays),
    )
