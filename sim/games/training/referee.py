"""The dealer of the training game: it deals rows and canaries, and takes models and guesses. It scores nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray

from developer.training.play import RATES, Submission
from fairwall.game.v1 import training_service_pb2 as training
from fairwall.game.v1.training_service_pb2_grpc import TrainingServiceServicer, add_TrainingServiceServicer_to_server
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.game import Watch
from sim.games.referee import Arrays, announced, in_chunks, statistics_terms_of
from sim.games.submissions import take_array
from sim.games.table import Table, Trial
from sim.games.training.deal import TrainingDeal
from sim.games.training.outcome import TrainingOutcome, submission_of


@dataclass
class _TrainingTrial(Trial):
    """A trial of the training game."""

    deal: TrainingDeal
    request: training.SubmitModelRequest | None = None
    model: Submission | None = None
    guesses: NDArray[np.uint8] | None = None

    @property
    def attacked(self) -> bool:
        """Whether the adversary is done, if it is dealt in."""
        return self.guesses is not None or not len(self.deal.inside)

    @property
    def ended(self) -> bool:
        return self.model is not None and self.attacked

    @property
    def missing(self) -> str:
        if not self.opened:
            return "compliance"
        if self.model is None:
            return "developer"
        return "compliance" if self.attacked else "adversary"


@dataclass
class TrainingDealer(TrainingServiceServicer):
    """Serves TrainingService, and plays one deal at a time."""

    table: Table = field(repr=False)

    def register(self, server: grpc.Server, watch: Watch) -> None:
        """Serve TrainingService."""
        add_TrainingServiceServicer_to_server(watch(self), server)

    def play(self, deal: TrainingDeal, seconds: float) -> TrainingOutcome:
        """Play one deal to its end, as `Dealer` says."""
        trial = _TrainingTrial(deal)
        self.table.play(trial, seconds)
        assert trial.model is not None, "a trial that ended has it"
        return TrainingOutcome(trial.model, trial.guesses, trial.report)

    # What the parties call. Names are the protocol's.

    def TakeModelDeal(
        self, request: training.TakeModelDealRequest, context: grpc.ServicerContext
    ) -> Iterator[training.TakeModelDealResponse]:
        """Deal to the developer, once compliance serves the trial, if it is dealt in."""
        response: Any = training.TakeModelDealResponse
        trial = self.table.take(_TrainingTrial, request.after_deal_id, lambda trial: trial.opened)
        if not isinstance(trial, _TrainingTrial):
            yield response(turn=trial)
            return
        yield response(deal=_model_deal(trial.deal))
        yield from in_chunks(response, trial.deal.dealt)

    def SubmitModel(
        self, request: training.SubmitModelRequest, context: grpc.ServicerContext
    ) -> training.SubmitModelResponse:
        """Take what the developer's model decides and promises; from now on it answers the adversary."""
        with self.table.changing():
            trial = self.table.playing(_TrainingTrial, request.deal_id)
            # The adversary asks this model: it may be sent again, but not changed.
            if not trial.opened or (trial.request or request) != request:
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.model = _taken(trial.deal, request)
            trial.request = request
            return training.SubmitModelResponse()

    def TakeCanaryDeal(
        self, request: training.TakeCanaryDealRequest, context: grpc.ServicerContext
    ) -> Iterator[training.TakeCanaryDealResponse]:
        """Deal to the adversary, once the model answers, where there are canaries."""
        response: Any = training.TakeCanaryDealResponse
        trial = self.table.take(
            _TrainingTrial, request.after_deal_id, lambda trial: trial.model is not None and len(trial.deal.inside) > 0
        )
        if not isinstance(trial, _TrainingTrial):
            yield response(turn=trial)
            return
        deal = trial.deal
        arrays: Arrays = {"features": deal.canaries.features, "labels": deal.canaries.labels}
        yield response(deal=training.CanaryDeal(deal_id=deal.deal_id, terms=deal.terms, **announced(arrays)))
        yield from in_chunks(response, arrays)

    def SubmitCanaries(
        self, request: training.SubmitCanariesRequest, context: grpc.ServicerContext
    ) -> training.SubmitCanariesResponse:
        """Take the adversary's guesses."""
        with self.table.changing():
            trial = self.table.playing(_TrainingTrial, request.deal_id)
            if trial.model is None or not len(trial.deal.inside):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            guesses = take_array(request.guesses, trial.deal.inside.shape, np.uint8)
            if not (guesses <= 2).all():
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            if trial.guesses is not None and not np.array_equal(trial.guesses, guesses):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.guesses = guesses
            return training.SubmitCanariesResponse()


def _model_deal(deal: TrainingDeal) -> training.ModelDeal:
    purse = deal.compliance.statistics if deal.compliance is not None else None
    return training.ModelDeal(
        deal_id=deal.deal_id,
        seed=deal.seed,
        terms=deal.terms,
        holds_protected=deal.scenario.training.holds_protected,
        statistics=None if purse is None else statistics_terms_of(purse),
        public_rows=deal.public_rows,
        columns=deal.columns,
        **announced(deal.dealt),
    )


def _taken(deal: TrainingDeal, request: training.SubmitModelRequest) -> Submission:
    """Take what fits the deal, or refuse it."""
    model = deal.scenario.training.model != RATES
    rows = len(deal.test.labels) if model else 0
    scores = take_array(request.scores, (rows,), np.float32)
    decisions = take_array(request.decisions, (None, rows), np.uint8)
    numbers = (request.epsilon, request.delta, *request.group_epsilons)
    in_order = (
        ((scores >= 0) & (scores <= 1)).all()
        and (decisions <= 1).all()
        and len(decisions) in (1, 2)
        and all(number >= 0 for number in numbers)
        and request.delta < 1
        and len(request.group_epsilons) in (0, 2)
        and all(step.epsilon >= 0 and 0 <= step.delta < 1 for step in request.steps)
        and len(request.rates) == (0 if model else 2)
        and all(0 <= rate <= 1 for rate in request.rates)
    )
    if not in_order:
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return submission_of(request)
