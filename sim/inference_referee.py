"""The referee of the inference game: it deals rows and bits, and takes models and guesses. It scores nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import grpc
import numpy as np
from numpy.typing import NDArray

from fairwall.game.v1 import inference_service_pb2 as inference
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1.inference_service_pb2_grpc import InferenceServiceServicer
from fairwall.rpc.arrays import ArrayError, chunks_of, from_message, header_of
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import array_pb2, error_pb2
from sim.games.inference import MEMBERS_MOST, InferenceDeal, InferenceOutcome
from sim.referee import TrialFailed

_WAIT_SECONDS = 5.0


@dataclass
class _Trial:
    """What has happened to the deal on the table so far."""

    deal: InferenceDeal
    models: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None = None
    guesses: NDArray[np.uint8] | None = None


@dataclass
class InferenceReferee(InferenceServiceServicer):
    """Serves InferenceService, and plays one deal at a time."""

    _changed: threading.Condition = field(default_factory=threading.Condition, repr=False)
    _trial: _Trial | None = None
    _over: bool = False
    _failure: str | None = None

    def play(self, deal: InferenceDeal, seconds: float) -> InferenceOutcome:
        """Play one deal to its end.

        Raises
        ------
        TrialFailed
            If the parties do not finish within so many seconds, or the run was aborted.
        """
        with self._changed:
            trial = self._trial = _Trial(deal)
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: self._failure or trial.guesses is not None, seconds)
            if self._failure is not None:
                raise TrialFailed(self._failure)
            if not done:
                late = "developer" if trial.models is None else "adversary"
                raise TrialFailed(f"{late} did not finish the trial within {seconds:g} s")
            assert trial.models is not None, "guesses come after models"
            assert trial.guesses is not None, "just waited for"
            return InferenceOutcome(*trial.models, trial.guesses)

    def finish(self) -> None:
        """Tell every party that the run is over, and let go of every call that waits."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def abort(self, reason: str) -> None:
        """End the trial that is being played, and the run, for a reason."""
        with self._changed:
            self._failure = self._failure or reason
            self._changed.notify_all()

    # What the parties call. Names are the protocol's.

    def TakeTrainingDeal(
        self, request: inference.TakeTrainingDealRequest, context: grpc.ServicerContext
    ) -> Iterator[inference.TakeTrainingDealResponse]:
        """Deal to the developer."""
        response = inference.TakeTrainingDealResponse
        trial = self._await(request.after_deal_id, lambda _: True)
        if not isinstance(trial, _Trial):
            yield response(turn=trial)
            return
        deal = trial.deal
        yield response(deal=_training_deal(deal))
        yield from (response(bits_chunk=chunk) for chunk in chunks_of(deal.bits))
        yield from (response(features_chunk=chunk) for chunk in chunks_of(deal.developer.features))
        yield from (response(labels_chunk=chunk) for chunk in chunks_of(deal.developer.labels))
        yield from (response(groups_chunk=chunk) for chunk in chunks_of(deal.developer.groups))
        yield from (response(test_features_chunk=chunk) for chunk in chunks_of(deal.test.features))

    def SubmitModels(
        self, request: inference.SubmitModelsRequest, context: grpc.ServicerContext
    ) -> inference.SubmitModelsResponse:
        """Take what the developer's models predict; from now on they answer the adversary."""
        with self._changed:
            trial = self._playing(request.deal_id)
            victims, test = len(trial.deal.bits), len(trial.deal.test.labels)
            members = min(MEMBERS_MOST, len(trial.deal.developer.labels))
            trial.models = (
                _scores(request.scores, (victims, test)),
                _scores(request.base_scores, (victims, test)),
                _scores(request.member_scores, (victims, members)),
                _scores(request.base_member_scores, (victims, members)),
            )
            self._changed.notify_all()
            return inference.SubmitModelsResponse()

    def TakeAttackDeal(
        self, request: inference.TakeAttackDealRequest, context: grpc.ServicerContext
    ) -> Iterator[inference.TakeAttackDealResponse]:
        """Deal to the adversary, once the models answer."""
        response = inference.TakeAttackDealResponse
        trial = self._await(request.after_deal_id, lambda trial: trial.models is not None)
        if not isinstance(trial, _Trial):
            yield response(turn=trial)
            return
        rows = trial.deal.adversary
        yield response(deal=_attack_deal(trial.deal))
        yield from (response(features_chunk=chunk) for chunk in chunks_of(rows.features))
        yield from (response(labels_chunk=chunk) for chunk in chunks_of(rows.labels))
        yield from (response(groups_chunk=chunk) for chunk in chunks_of(rows.groups))

    def SubmitGuesses(
        self, request: inference.SubmitGuessesRequest, context: grpc.ServicerContext
    ) -> inference.SubmitGuessesResponse:
        """Take the adversary's guesses."""
        with self._changed:
            trial = self._playing(request.deal_id)
            if trial.models is None:
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            shape = (len(trial.deal.scenario.adversary.attack), len(trial.deal.bits))
            guesses = _array(request.guesses, shape, np.uint8)
            if not np.isin(guesses, (0, 1)).all():
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.guesses = guesses.astype(np.uint8, copy=False)
            self._changed.notify_all()
            return inference.SubmitGuessesResponse()

    def _await(self, after: str, ready: Callable[[_Trial], bool]) -> _Trial | game.Turn:
        """Wait for a deal that the party has not taken yet; say WAIT or OVER where there is none."""
        found: _Trial | None = None

        def look() -> bool:
            nonlocal found
            trial = self._trial
            found = trial if trial is not None and trial.deal.deal_id != after and ready(trial) else None
            return found is not None or self._over

        with self._changed:
            self._changed.wait_for(look, _WAIT_SECONDS)
            if found is not None:
                return found
            return game.TURN_OVER if self._over else game.TURN_WAIT

    def _playing(self, deal_id: str) -> _Trial:
        if self._trial is None or self._trial.deal.deal_id != deal_id:
            raise Refusal(error_pb2.REASON_OUT_OF_TURN)
        return self._trial


def _training(deal: InferenceDeal) -> inference.Training:
    developer = deal.scenario.developer
    return inference.Training(
        defence=developer.defence,
        strength=developer.strength,
        rehearsal=developer.rehearsal,
        purity=developer.purity,
        epsilon=developer.training_epsilon,
        delta=developer.training_delta,
        rows=developer.rows,
        other_rows=developer.other_rows,
        steps=developer.steps,
        tune_steps=developer.tune_steps,
    )


def _training_deal(deal: InferenceDeal) -> inference.TrainingDeal:
    return inference.TrainingDeal(
        deal_id=deal.deal_id,
        seed=deal.seeds["developer"],
        training=_training(deal),
        bits=header_of(deal.bits),
        features=header_of(deal.developer.features),
        labels=header_of(deal.developer.labels),
        groups=header_of(deal.developer.groups),
        test_features=header_of(deal.test.features),
    )


def _attack_deal(deal: InferenceDeal) -> inference.AttackDeal:
    adversary, rows = deal.scenario.adversary, deal.adversary
    return inference.AttackDeal(
        deal_id=deal.deal_id,
        seed=deal.seeds["adversary"],
        attacks=adversary.attack,
        models=len(deal.bits),
        probes=adversary.probes,
        shadows=adversary.shadows,
        labels_only=adversary.answers == "labels",
        training=_training(deal),
        adapts=adversary.adapts,
        features=header_of(rows.features),
        labels=header_of(rows.labels),
        groups=header_of(rows.groups),
    )


def _scores(message: array_pb2.Array, shape: tuple[int, int]) -> NDArray[np.float64]:
    scores = _array(message, shape, np.float32).astype(np.float64)
    if not ((scores >= 0) & (scores <= 1)).all():  # NaN is neither
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return scores


def _array(message: array_pb2.Array, shape: tuple[int, int], kind: type[np.generic]) -> NDArray[np.generic]:
    try:
        values = from_message(message)
    except ArrayError:
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID) from None
    if values.dtype != kind or values.shape != shape:
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return values
