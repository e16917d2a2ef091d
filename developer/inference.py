"""The developer in the inference game: it trains models on the groups that the deal names, and releases them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from developer.service import ReleasedModel, Shelf, within_reach
from fairwall.arrays import Bytes, Floats
from fairwall.client.gaps import Audits, ask
from fairwall.game.v1 import inference_service_pb2 as inference
from fairwall.game.v1.inference_service_pb2_grpc import InferenceServiceStub
from fairwall.learning.defences import DEFENCES, DefenceTask, TrainingSplit
from fairwall.learning.defences.split import Progress
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.fairness import TAU
from fairwall.rpc.arrays import to_message
from fairwall.rpc.turns import Seat, deals, generator
from fairwall.wire.metrics import name_of
from fairwall.wire.training import settings_of

LOG = logging.getLogger(__name__)

SUBMIT_SECONDS = 300.0

Tuned = Callable[[float], Ensemble]
"""A function that tunes the deal's models with a lambda."""


def play(seat: Seat, shelf: Shelf) -> None:
    """Play every trial of a run; the shelf gets each deal's models."""
    referee = InferenceServiceStub(seat.referee)
    # Nothing is sent to compliance unless lambda is to be chosen.
    with seat.reach("compliance") as connection:
        audits = Audits(connection)
        for deal, cards in deals(referee.TakeTrainingDeal, inference.TakeTrainingDealRequest):
            bits = cards["bits"].astype(np.uint8, copy=False)
            split = TrainingSplit(
                cards["features"].astype(np.float64, copy=False),
                cards["labels"].astype(np.uint8, copy=False),
                cards["groups"].astype(np.uint8, copy=False),
            )
            LOG.info("deal %s: %d models, defence %s", deal.deal_id, len(bits), deal.training.defence)
            seeds = generator(deal.seed).integers(2**62, size=len(bits)).tolist()
            base, tuned = train(split, bits, seeds, deal.training)
            if deal.strengths:
                models, strength, queries = _choose(audits, deal, cards["audited_features"], tuned)
            else:
                models, strength, queries = tuned(deal.training.strength), deal.training.strength, 0
            shelf.released.clear()
            shelf.released[deal.deal_id] = _black_boxes(models, split.features.shape[1], labels_only=deal.labels_only)
            test, members = cards["test_features"], split.features[: deal.member_rows]
            referee.SubmitModels(
                inference.SubmitModelsRequest(
                    deal_id=deal.deal_id,
                    scores=to_message(models.scores(test).astype(np.float32)),
                    base_scores=to_message(base.scores(test).astype(np.float32)),
                    member_scores=to_message(models.scores(members).astype(np.float32)),
                    base_member_scores=to_message(base.scores(members).astype(np.float32)),
                    strength=strength,
                    queries=queries,
                ),
                timeout=SUBMIT_SECONDS,
            )


def train(split: TrainingSplit, bits: Bytes, seeds: list[int], training: inference.Training) -> tuple[Ensemble, Tuned]:
    """Train the part of the deal's models that does not depend on lambda, with progress in the log.

    Returns models without a defence, for the record, and a function that tunes the models to release.
    """
    settings, none, defence = settings_of(training), DEFENCES["none"], DEFENCES[training.defence]
    base = none.train(DefenceTask(split, bits, seeds, settings, _progress("training none")))
    # Most defences begin with these very models.
    start = base
    if defence.train is not none.train:
        start = defence.train(DefenceTask(split, bits, seeds, settings, _progress(f"training {training.defence}")))

    def tuned(strength: float) -> Ensemble:
        progress = _progress(f"tuning {training.defence}, lambda {strength:g}")
        return defence.tune(start, DefenceTask(split, bits, seeds, replace(settings, strength=strength), progress))

    return base, tuned


def _progress(what: str) -> Progress:
    """Return a callback that logs every tenth of the progress."""
    said = 0

    def on_step(done: int, total: int) -> None:
        nonlocal said
        tenth = 10 * done // total
        if tenth > said:
            said = tenth
            LOG.info("%s: %d%%", what, 10 * tenth)

    return on_step


def _choose(
    audits: Audits, deal: inference.TrainingDeal, features: NDArray[Any], tuned: Tuned
) -> tuple[Ensemble, float, int]:
    """Return the models, lambda and query count, chosen by compliance's answers about one batch of all candidates."""
    # The smallest lambda is chosen whose models' mean answer is at most tau, or else the one with the smallest mean.
    # Using the answers costs no further privacy.
    strengths = sorted(deal.strengths)
    candidates = [tuned(strength) for strength in strengths]
    decisions = np.concatenate([(models.scores(features) >= 0.5).astype(np.uint8) for models in candidates])
    answer = ask(audits, deal.deal_id, "lambda", name_of(deal.metric), decisions, deal.audit_epsilon)
    means = answer.gaps.reshape(len(strengths), -1).mean(axis=1)
    LOG.info("lambda: %s", ", ".join(f"{s:g}: {mean:.3f}" for s, mean in zip(strengths, means, strict=True)))
    chosen = int(np.argmax(means <= TAU)) if (means <= TAU).any() else int(np.argmin(means))
    return candidates[chosen], strengths[chosen], len(decisions)


def _black_boxes(models: Ensemble, features: int, *, labels_only: bool) -> ReleasedModel:
    first, *others = (partial(_answer, models.take([k]), labels_only) for k in range(models.models))
    return ReleasedModel(first, features, tuple(others))


def _answer(model: Ensemble, labels_only: bool, features: Floats) -> Floats:
    scores: Floats = model.scores(within_reach(features))[0]
    return (scores >= 0.5).astype(np.float64) if labels_only else scores
