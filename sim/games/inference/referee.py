"""The dealer of the inference game: it deals rows and bits, and takes models and guesses. It scores nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from grpc import ServicerContext
from numpy.typing import NDArray

from fairwall.game.v1 import inference_service_pb2 as inference
from fairwall.game.v1.inference_service_pb2_grpc import InferenceServiceServicer, add_InferenceServiceServicer_to_server
from fairwall.rpc.errors import Refusal
from fairwall.wire.metrics import number_of
from fairwall.wire.v1 import array_pb2, error_pb2
from sim.games.dealer import TableDealer, deals
from sim.games.inference.deal import DrawnPeople, InferenceDeal
from sim.games.inference.outcome import InferenceOutcome, SubmittedModels
from sim.games.referee import Arrays, check_queries
from sim.games.submissions import take_array, take_guess
from sim.games.table import Trial, given


@dataclass
class _InferenceTrial(Trial):
    deal: InferenceDeal
    request: inference.SubmitModelsRequest | None = None
    models: SubmittedModels | None = None
    guesses: NDArray[np.uint8] | None = None

    @property
    def ended(self) -> bool:
        return self.guesses is not None

    @property
    def missing(self) -> str:
        if self.deal.compliance is not None and not self.served:
            return "compliance"
        if self.models is None:
            return "developer"
        return "adversary" if self.guesses is None else "compliance"


def _arrays(rows: DrawnPeople) -> Arrays:
    return {"features": rows.features, "labels": rows.labels, "groups": rows.groups}


_ITERATIONS = {"steps": inference.ITERATIONS_STEPS, "epochs": inference.ITERATIONS_EPOCHS}


def training_of(deal: InferenceDeal, strength: float) -> inference.Training:
    """Return the public settings of the training of a deal's models."""
    developer = deal.scenario.developer
    return inference.Training(
        defence=developer.defence,
        strength=strength,
        rehearsal=developer.rehearsal,
        purity=developer.purity,
        epsilon=developer.training_epsilon,
        delta=developer.training_delta,
        rows=developer.rows,
        other_rows=developer.other_rows,
        steps=developer.steps,
        tune_steps=developer.tune_steps,
        adaptive_clipping=developer.adaptive_clipping,
        iterations=_ITERATIONS[developer.iterations],
        small_table=deal.table_rows <= developer.small_table,
    )


def _training_deal(trial: _InferenceTrial) -> tuple[inference.TrainingDeal, Arrays]:
    deal = trial.deal
    told = inference.TrainingDeal(
        seed=deal.seeds["developer"],
        training=training_of(deal, deal.scenario.developer.strength),
        holds_protected=True,
        labels_only=deal.scenario.adversary.answers == "labels",
        member_rows=deal.member_rows,
        strengths=deal.scenario.developer.lambdas,
        metric=number_of(deal.scenario.compliance.metric),
        audit_epsilon=deal.scenario.epsilon,
    )
    arrays = {"bits": deal.bits, **_arrays(deal.developer), "test_features": deal.test.features}
    return told, arrays if deal.audited is None else {**arrays, "audited_features": deal.audited.features}


def _attack_deal(trial: _InferenceTrial) -> tuple[inference.AttackDeal, Arrays]:
    deal, adversary = trial.deal, trial.deal.scenario.adversary
    told = inference.AttackDeal(
        seed=deal.seeds["adversary"],
        attacks=adversary.attack,
        models=len(deal.bits),
        probes=adversary.probes,
        shadows=adversary.shadows,
        labels_only=adversary.answers == "labels",
        training=training_of(deal, given(trial.models).strength),
        adapts=adversary.adapts,
    )
    return told, _arrays(deal.adversary)


def _scores(message: array_pb2.Array, shape: tuple[int, int]) -> NDArray[np.float64]:
    scores = take_array(message, shape, np.float32).astype(np.float64)
    if not ((scores >= 0) & (scores <= 1)).all():  # NaN is neither
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return scores


class InferenceDealer(TableDealer[_InferenceTrial, InferenceDeal, InferenceOutcome], InferenceServiceServicer):
    """The InferenceService, for one deal at a time; compliance's cards are dealt by `sim.games.referee`."""

    kind, serve = _InferenceTrial, staticmethod(add_InferenceServiceServicer_to_server)

    TakeTrainingDeal = deals(inference.TakeTrainingDealResponse, _training_deal, lambda trial: trial.opened)
    TakeAttackDeal = deals(inference.TakeAttackDealResponse, _attack_deal, lambda trial: trial.models is not None)

    def SubmitModels(
        self, request: inference.SubmitModelsRequest, context: ServicerContext
    ) -> inference.SubmitModelsResponse:
        """Take the scores of the developer's models, which from now on answer the adversary."""
        # The adversary learns lambda and queries these models: they may be sent again, but not changed.
        with self.turn(request.deal_id, lambda trial: trial.opened and trial.request in (None, request)) as trial:
            deal, developer = trial.deal, trial.deal.scenario.developer
            test, members = (len(deal.bits), len(deal.test.labels)), (len(deal.bits), deal.member_rows)
            if request.strength not in (developer.lambdas or (developer.strength,)):
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.models = SubmittedModels(
                scores=_scores(request.scores, test),
                base_scores=_scores(request.base_scores, test),
                member_scores=_scores(request.member_scores, members),
                base_member_scores=_scores(request.base_member_scores, members),
                strength=request.strength,
                queries=request.queries,
            )
            trial.request = request
            return inference.SubmitModelsResponse()

    def SubmitGuesses(
        self, request: inference.SubmitGuessesRequest, context: ServicerContext
    ) -> inference.SubmitGuessesResponse:
        """Take the adversary's guesses."""
        with self.turn(request.deal_id, lambda trial: trial.models is not None) as trial:
            shape = (len(trial.deal.scenario.adversary.attack), len(trial.deal.bits))
            guesses = take_guess(request.guesses, shape)
            # Guesses may be sent again, too, but not changed; the trial has ended.
            if trial.guesses is not None and not np.array_equal(trial.guesses, guesses):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.guesses = guesses
            return inference.SubmitGuessesResponse()

    def outcome(self, trial: _InferenceTrial) -> InferenceOutcome:
        """Return the outcome of a finished trial; TrialFailed if the numbers of queries disagree."""
        models = given(trial.models)
        if trial.report is not None:
            check_queries(models.queries, trial.report)
        return InferenceOutcome(models, given(trial.guesses), trial.report)
