"""The developer at the referee's table: it takes a deal, plays its strategy through the audit service, and guesses."""

from __future__ import annotations

import logging
from collections.abc import Callable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from developer.auditor import DealAuditor
from developer.base_model import Model, accuracy, cross_fitted, identity, logistic
from developer.decode import DECODERS
from developer.public_predictor import log_likelihood_ratio
from developer.reveal import STRATEGIES, Hand, Reveal, Terms
from developer.service import Released
from fairwall.compliance.v1.audit_service_pb2_grpc import AuditServiceStub
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceStub
from fairwall.laws.metric import stratum
from fairwall.rpc import channel
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.identity import Credentials
from fairwall.rpc.turns import collect, deals, generator, join
from fairwall.wire.metrics import name_of
from fairwall.wire.precision import from_message

LOG = logging.getLogger(__name__)

Scores = Callable[[], NDArray[np.float64]]


def play(referee: RefereeServiceStub, credentials: Credentials, released: MutableMapping[str, Released]) -> None:
    """Play every trial of a run.

    Parameters
    ----------
    referee : RefereeServiceStub
    credentials : Credentials
    released : mutable mapping of str to Released
        Gets the model of each deal that the adversary is dealt into; ModelService answers from it.
    """
    audit_address = join(referee).counterpart_address
    takes = deals(
        lambda last: referee.TakeDeveloperDeal(game.TakeDeveloperDealRequest(after_deal_id=last), timeout=CALL_SECONDS)
    )
    workshop = Workshop(referee)
    with channel.connect(audit_address, "compliance", credentials) as connection:
        audits = AuditServiceStub(connection)
        for deal, cards in takes:
            features = cards["features"].astype(np.float64, copy=False)
            labels = cards["labels"].astype(np.uint8, copy=False)
            LOG.info("deal %s: %d people, strategy %s", deal.deal_id, len(labels), deal.strategy)
            scores, model = workshop.base_model(deal, features, labels)
            inference = _inference(deal, cards, features, labels)
            referee.SubmitReveal(_reveal(audits, deal, labels, scores, inference), timeout=CALL_SECONDS)
            if deal.release_model:
                released.clear()
                released[deal.deal_id] = Released(model(), features.shape[1])
                referee.ReleaseModel(game.ReleaseModelRequest(deal_id=deal.deal_id), timeout=CALL_SECONDS)


class Workshop:
    """Where base models are trained: in the background, and once for each training table.

    A model is a function of its training table alone, so one that stands already is the one that would be trained.
    """

    def __init__(self, referee: RefereeServiceStub) -> None:
        self._referee = referee
        self._trainer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="train")
        self._trained: tuple[str, Future[Model]] | None = None

    def base_model(
        self, deal: game.DeveloperDeal, features: NDArray[np.float64], labels: NDArray[np.uint8]
    ) -> tuple[Scores, Callable[[], Model]]:
        """Begin to train the deal's base model.

        Returns
        -------
        scores : callable
            The model's scores on the test set, shape (n,); waits for the training.
        model : callable
            The model that would be released; waits for the training.
        """
        if deal.base_model == game.BASE_MODEL_IDENTITY:
            return lambda: identity(features), lambda: identity
        if not deal.training_digest:
            # The test set is the whole table: scored fold by fold, and released as trained on all of it.
            fitted = self._trainer.submit(cross_fitted, features, labels)
            return fitted.result, lambda: logistic(features, labels)
        if self._trained is None or self._trained[0] != deal.training_digest:
            self._trained = (deal.training_digest, self._trainer.submit(self._train, deal.training_digest))
        trained = self._trained[1]
        return cache(lambda: trained.result()(features)), trained.result

    def _train(self, digest: str) -> Model:
        parts = self._referee.GetTrainingTable(
            game.GetTrainingTableRequest(training_digest=digest), timeout=CALL_SECONDS
        )
        table = collect(next(parts).table, parts)
        LOG.info("training the base model on %d rows", len(table["labels"]))
        return logistic(table["features"].astype(np.float64, copy=False), table["labels"].astype(np.uint8, copy=False))


def no_query_guess(scores: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Guess without asking: the half with the lower scores is disadvantaged.

    Every answer's worth is measured against this. It needs no group size, and among two groups of one kind each it is
    right about half of each; where h0 scores the disadvantaged lower, it is right about more.

    Parameters
    ----------
    scores : ndarray, shape (n,)

    Returns
    -------
    ndarray of uint8
        Shape (n,), 1 = advantaged. Ties are broken by position.
    """
    guess = np.ones(len(scores), np.uint8)
    guess[np.argsort(scores, kind="stable")[: len(scores) // 2]] = 0
    return guess


def _inference(
    deal: game.DeveloperDeal, cards: dict[str, NDArray[Any]], features: NDArray[np.float64], labels: NDArray[np.uint8]
) -> Scores | None:
    """Say what features and labels tell about groups, by the public sample; None where none was dealt."""
    if not deal.public_disadvantaged_rows:
        return None
    sample = np.column_stack([cards["public_features"], cards["public_labels"]])
    people = np.column_stack([features, labels])
    return cache(lambda: log_likelihood_ratio(sample, deal.public_disadvantaged_rows, people))


def _queries(count: game.QueryCount, people: int) -> int:
    match count.WhichOneof("count"):
        case "fixed":
            return count.fixed
        case "at_most":
            return count.at_most
        case _:
            return people - count.people_less


def _reveal(
    audits: AuditServiceStub,
    deal: game.DeveloperDeal,
    labels: NDArray[np.uint8],
    scores: Scores,
    inference: Scores | None,
) -> game.SubmitRevealRequest:
    """Play the deal's strategy and write down the guess."""
    metric = name_of(deal.metric)
    reached = stratum(metric, labels)
    people = int(reached.sum())
    strategy = STRATEGIES[deal.strategy]
    queries = _queries(deal.queries, people)
    terms = Terms(
        metric=metric,
        mechanism=deal.mechanism,
        epsilon=deal.epsilon,
        delta=deal.batch_delta,
        precision=from_message(deal.precision),
        n0=deal.disadvantaged if deal.HasField("disadvantaged") else None,
    )

    def baseline() -> NDArray[np.uint8]:
        return no_query_guess(scores()) if inference is None else (inference() <= 0).astype(np.uint8)

    auditor = DealAuditor(
        audits,
        deal_id=deal.deal_id,
        metric=metric,
        epsilon=deal.epsilon,
        mechanism=deal.mechanism,
        planned=queries + strategy.size_queries,
        reached=reached,
        labels=labels,
        base=scores,
    )
    reveal = strategy.play(
        Hand(
            people=people,
            base=lambda: scores()[reached],
            prior=lambda: baseline()[reached],
            auditor=auditor,
            rng=generator(deal.seed),
            queries=queries,
            perturbation=deal.perturbation,
            decode=DECODERS[deal.decoder] if deal.decoder else None,
            terms=terms,
            llr=(lambda: inference()[reached]) if inference is not None else None,
            labels=labels[reached],
        )
    )
    return _submission(deal.deal_id, auditor, reveal, reached, labels, scores(), baseline())


def _submission(
    deal_id: str,
    auditor: DealAuditor,
    reveal: Reveal,
    reached: NDArray[np.bool_],
    labels: NDArray[np.uint8],
    scores: NDArray[np.float64],
    baseline: NDArray[np.uint8],
) -> game.SubmitRevealRequest:
    """Speak about everybody: whom the metric does not look at keeps the guess made without a query."""

    def spread(values: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
        whole = others.copy()
        whole[reached] = values
        return whole

    nobody, alone = np.zeros(len(scores)), reveal.from_answers
    return game.SubmitRevealRequest(
        deal_id=deal_id,
        baseline=to_message(baseline),
        guess=to_message(spread(reveal.guess, baseline)),
        targeted=to_message(spread(reveal.targeted, nobody).astype(np.uint8)),
        polarity_known=reveal.polarity_known,
        reconstruction=to_message(spread(reveal.reconstruction, nobody)) if reveal.reconstruction is not None else None,
        queries=auditor.queries,
        size_queries=auditor.size_queries,
        max_prediction_change=auditor.max_prediction_change,
        accuracy_base=float(accuracy(scores, labels)),
        accuracy_models=to_message(auditor.accuracy_models),
        guess_from_answers=to_message(spread(alone, no_query_guess(scores))) if alone is not None else None,
    )
