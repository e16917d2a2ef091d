"""The dealer of the training game: it deals rows and canaries, and takes models and guesses. It scores nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from grpc import ServicerContext
from numpy.typing import NDArray

from developer.training.play import RATES, ModelSubmission
from fairwall.game.v1 import training_service_pb2 as training
from fairwall.game.v1.training_service_pb2_grpc import TrainingServiceServicer, add_TrainingServiceServicer_to_server
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.dealer import TableDealer, deals
from sim.games.referee import Arrays, statistics_terms_of
from sim.games.submissions import take_array
from sim.games.table import Trial, given
from sim.games.training.deal import TrainingDeal
from sim.games.training.outcome import TrainingOutcome, submission_of


@dataclass
class _TrainingTrial(Trial):
    deal: TrainingDeal
    request: training.SubmitModelRequest | None = None
    model: ModelSubmission | None = None
    guesses: NDArray[np.uint8] | None = None

    @property
    def attackable(self) -> bool:
        """Whether the adversary may guess: the model answers, and there are canaries."""
        return self.model is not None and len(self.deal.inside) > 0

    @property
    def attacked(self) -> bool:
        """Whether the adversary is done, or not in the game."""
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


def _model_deal(trial: _TrainingTrial) -> tuple[training.ModelDeal, Arrays]:
    deal = trial.deal
    purse = deal.compliance.statistics if deal.compliance is not None else None
    told = training.ModelDeal(
        seed=deal.seed,
        terms=deal.terms,
        holds_protected=deal.scenario.training.holds_protected,
        statistics=None if purse is None else statistics_terms_of(purse),
        public_rows=deal.public_rows,
        columns=deal.columns,
    )
    return told, deal.dealt


def _canary_deal(trial: _TrainingTrial) -> tuple[training.CanaryDeal, Arrays]:
    canaries = trial.deal.canaries
    return training.CanaryDeal(terms=trial.deal.terms), {"features": canaries.features, "labels": canaries.labels}


def _taken(deal: TrainingDeal, request: training.SubmitModelRequest) -> ModelSubmission:
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


class TrainingDealer(TableDealer[_TrainingTrial, TrainingDeal, TrainingOutcome], TrainingServiceServicer):
    """The TrainingService, for one deal at a time."""

    kind, serve = _TrainingTrial, staticmethod(add_TrainingServiceServicer_to_server)

    TakeModelDeal = deals(training.TakeModelDealResponse, _model_deal, lambda trial: trial.opened)
    TakeCanaryDeal = deals(training.TakeCanaryDealResponse, _canary_deal, lambda trial: trial.attackable)

    def SubmitModel(
        self, request: training.SubmitModelRequest, context: ServicerContext
    ) -> training.SubmitModelResponse:
        """Take the model's decisions and promises; from now on the model answers the adversary."""
        # The adversary queries this model: it may be sent again, but not changed.
        with self.turn(request.deal_id, lambda trial: trial.opened and trial.request in (None, request)) as trial:
            trial.model = _taken(trial.deal, request)
            trial.request = request
            return training.SubmitModelResponse()

    def SubmitCanaries(
        self, request: training.SubmitCanariesRequest, context: ServicerContext
    ) -> training.SubmitCanariesResponse:
        """Take the adversary's guesses."""
        with self.turn(request.deal_id, lambda trial: trial.attackable) as trial:
            guesses = take_array(request.guesses, trial.deal.inside.shape, np.uint8)
            if not (guesses <= 2).all():
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            if trial.guesses is not None and not np.array_equal(trial.guesses, guesses):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.guesses = guesses
            return training.SubmitCanariesResponse()

    def outcome(self, trial: _TrainingTrial) -> TrainingOutcome:
        """Return the outcome of a finished trial."""
        return TrainingOutcome(given(trial.model), trial.guesses, trial.report)
