"""The dealer of the inference game: it deals rows and bits, and takes models and guesses. It scores nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import grpc
import numpy as np
from numpy.typing import NDArray

from fairwall.game.v1 import inference_service_pb2 as inference
from fairwall.game.v1.inference_service_pb2_grpc import InferenceServiceServicer, add_InferenceServiceServicer_to_server
from fairwall.rpc.arrays import chunks_of, header_of
from fairwall.rpc.errors import Refusal
from fairwall.wire.metrics import number_of
from fairwall.wire.v1 import array_pb2, error_pb2
from sim.games.game import Watch
from sim.games.inference.deal import InferenceDeal
from sim.games.inference.outcome import InferenceOutcome, Models
from sim.games.referee import check_queries
from sim.games.submissions import take_array, take_guess
from sim.games.table import Table, Trial


@dataclass
class _InferenceTrial(Trial):
    """A trial of the inference game."""

    deal: InferenceDeal
    models_request: inference.SubmitModelsRequest | None = None
    models: Models | None = None
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


@dataclass
class InferenceDealer(InferenceServiceServicer):
    """Serves InferenceService, and plays one deal at a time.

    Attributes
    ----------
    table : the run's: where it deals compliance in, that is another referee's to do.
    """

    table: Table = field(repr=False)

    def register(self, server: grpc.Server, watch: Watch) -> None:
        """Serve InferenceService."""
        add_InferenceServiceServicer_to_server(watch(self), server)

    def play(self, deal: InferenceDeal, seconds: float) -> InferenceOutcome:
        """Play one deal to its end.

        Raises
        ------
        TrialFailed
            If the parties do not finish within so many seconds, contradict one another, or the run was aborted.
        """
        trial = _InferenceTrial(deal)
        self.table.play(trial, seconds)
        assert trial.models is not None, "guesses come after models"
        assert trial.guesses is not None, "a trial that is over has guesses"
        if trial.report is not None:
            check_queries(trial.models.queries, trial.report)
        return InferenceOutcome(trial.models, trial.guesses, trial.report)

    # What the parties call. Names are the protocol's.

    def TakeTrainingDeal(
        self, request: inference.TakeTrainingDealRequest, context: grpc.ServicerContext
    ) -> Iterator[inference.TakeTrainingDealResponse]:
        """Deal to the developer, once compliance serves the trial, if it is dealt in."""
        response = inference.TakeTrainingDealResponse
        trial = self.table.take(_InferenceTrial, request.after_deal_id, lambda trial: trial.opened)
        if not isinstance(trial, _InferenceTrial):
            yield response(turn=trial)
            return
        deal = trial.deal
        yield response(deal=_training_deal(deal))
        yield from (response(bits_chunk=chunk) for chunk in chunks_of(deal.bits))
        yield from (response(features_chunk=chunk) for chunk in chunks_of(deal.developer.features))
        yield from (response(labels_chunk=chunk) for chunk in chunks_of(deal.developer.labels))
        yield from (response(groups_chunk=chunk) for chunk in chunks_of(deal.developer.groups))
        yield from (response(test_features_chunk=chunk) for chunk in chunks_of(deal.test.features))
        if deal.audited is not None:
            yield from (response(audited_features_chunk=chunk) for chunk in chunks_of(deal.audited.features))

    def SubmitModels(
        self, request: inference.SubmitModelsRequest, context: grpc.ServicerContext
    ) -> inference.SubmitModelsResponse:
        """Take what the developer's models predict; from now on they answer the adversary."""
        with self.table.changing():
            trial = self.table.playing(_InferenceTrial, request.deal_id)
            # The adversary is told lambda and asks these models: they may be sent again, but not changed.
            if not trial.opened or (trial.models_request or request) != request:
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            deal = trial.deal
            test, members = (len(deal.bits), len(deal.test.labels)), (len(deal.bits), deal.member_rows)
            if request.strength not in (deal.strengths or (deal.scenario.developer.strength,)):
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.models = Models(
                scores=_scores(request.scores, test),
                base_scores=_scores(request.base_scores, test),
                member_scores=_scores(request.member_scores, members),
                base_member_scores=_scores(request.base_member_scores, members),
                strength=request.strength,
                queries=request.queries,
            )
            trial.models_request = request
            return inference.SubmitModelsResponse()

    def TakeAttackDeal(
        self, request: inference.TakeAttackDealRequest, context: grpc.ServicerContext
    ) -> Iterator[inference.TakeAttackDealResponse]:
        """Deal to the adversary, once the models answer."""
        response = inference.TakeAttackDealResponse
        trial = self.table.take(_InferenceTrial, request.after_deal_id, lambda trial: trial.models is not None)
        if not isinstance(trial, _InferenceTrial):
            yield response(turn=trial)
            return
        assert trial.models is not None, "just waited for"
        rows = trial.deal.adversary
        yield response(deal=_attack_deal(trial.deal, trial.models.strength))
        yield from (response(features_chunk=chunk) for chunk in chunks_of(rows.features))
        yield from (response(labels_chunk=chunk) for chunk in chunks_of(rows.labels))
        yield from (response(groups_chunk=chunk) for chunk in chunks_of(rows.groups))

    def SubmitGuesses(
        self, request: inference.SubmitGuessesRequest, context: grpc.ServicerContext
    ) -> inference.SubmitGuessesResponse:
        """Take the adversary's guesses."""
        with self.table.changing():
            trial = self.table.playing(_InferenceTrial, request.deal_id)
            if trial.models is None:
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            shape = (len(trial.deal.scenario.adversary.attack), len(trial.deal.bits))
            guesses = take_guess(request.guesses, shape)
            # They may be sent again too; once they are in, the trial has ended.
            if trial.guesses is not None and not np.array_equal(trial.guesses, guesses):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.guesses = guesses
            return inference.SubmitGuessesResponse()


_ITERATIONS = {"steps": inference.ITERATIONS_STEPS, "epochs": inference.ITERATIONS_EPOCHS}


def training_of(deal: InferenceDeal, strength: float) -> inference.Training:
    """Say how a deal's models are trained, as far as that is public."""
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


def _training_deal(deal: InferenceDeal) -> inference.TrainingDeal:
    return inference.TrainingDeal(
        deal_id=deal.deal_id,
        seed=deal.seeds["developer"],
        training=training_of(deal, deal.scenario.developer.strength),
        holds_protected=True,
        labels_only=deal.scenario.adversary.answers == "labels",
        member_rows=deal.member_rows,
        strengths=deal.strengths,
        metric=number_of(deal.scenario.compliance.metric),
        audit_epsilon=deal.scenario.epsilon,
        audited_features=header_of(deal.audited.features) if deal.audited is not None else None,
        bits=header_of(deal.bits),
        features=header_of(deal.developer.features),
        labels=header_of(deal.developer.labels),
        groups=header_of(deal.developer.groups),
        test_features=header_of(deal.test.features),
    )


def _attack_deal(deal: InferenceDeal, strength: float) -> inference.AttackDeal:
    adversary, rows = deal.scenario.adversary, deal.adversary
    return inference.AttackDeal(
        deal_id=deal.deal_id,
        seed=deal.seeds["adversary"],
        attacks=adversary.attack,
        models=len(deal.bits),
        probes=adversary.probes,
        shadows=adversary.shadows,
        labels_only=adversary.answers == "labels",
        training=training_of(deal, strength),
        adapts=adversary.adapts,
        features=header_of(rows.features),
        labels=header_of(rows.labels),
        groups=header_of(rows.groups),
    )


def _scores(message: array_pb2.Array, shape: tuple[int, int]) -> NDArray[np.float64]:
    scores = take_array(message, shape, np.float32).astype(np.float64)
    if not ((scores >= 0) & (scores <= 1)).all():  # NaN is neither
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return scores
