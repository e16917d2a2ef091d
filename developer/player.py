"""The developer at the referee's table: it takes a deal, plays its strategy through the audit service, and guesses."""

from __future__ import annotations

import logging
from collections.abc import Callable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from developer.auditor import Ask, DealAuditor, Purse
from developer.base_model import accuracy, cross_fitted, identity, logistic
from developer.client import ask
from developer.decode import DECODERS
from developer.hidden import LOOKS, HiddenAudits
from developer.public_predictor import log_likelihood_ratio
from developer.reveal import STRATEGIES, Hand, Reveal, Terms
from developer.service import Audited, Released
from fairwall.compliance.v1 import audit_service_pb2 as audit
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

_IDENTITY = Released(identity, 1)


@dataclass(frozen=True, eq=False)
class _TestSet:
    """The people whom a deal is about, and how to have models audited on them.

    Attributes
    ----------
    features : shape (n, d).
    labels : shape (n,); None where the developer was not given them.
    scores : the base model's, shape (n,); waits for its training.
    ask : how a batch is asked.
    purse : what is left for it.
    looks : how many metric queries it took to see the features.
    """

    features: NDArray[np.float64]
    labels: NDArray[np.uint8] | None
    scores: Scores
    ask: Ask
    purse: Purse
    looks: int = 0

    def reached(self, metric: str) -> NDArray[np.bool_]:
        """Whom a metric looks at, shape (n,); without labels that is everybody."""
        return np.ones(len(self.features), np.bool_) if self.labels is None else stratum(metric, self.labels)


def play(
    referee: RefereeServiceStub,
    credentials: Credentials,
    released: MutableMapping[str, Released],
    audited: MutableMapping[tuple[str, str], Audited],
) -> None:
    """Play every trial of a run.

    Parameters
    ----------
    referee : RefereeServiceStub
    credentials : Credentials
    released : mutable mapping of str to Released
        Gets the model of each deal that the adversary is dealt into; ModelService answers from it.
    audited : mutable mapping of (str, str) to Audited
        Gets the requests in which compliance asks for models' scores, while they are under way; likewise.
    """
    audit_address = join(referee).counterpart_address
    takes = deals(
        lambda last: referee.TakeDeveloperDeal(game.TakeDeveloperDealRequest(after_deal_id=last), timeout=CALL_SECONDS)
    )
    workshop = Workshop(referee)
    with channel.connect(audit_address, "compliance", credentials) as connection:
        audits = AuditServiceStub(connection)
        for deal, cards in takes:
            if deal.HasField("features"):
                test_set, model = _given(audits, deal, cards, workshop)
            else:
                test_set, model = _seen(audits, deal, audited, workshop)
            LOG.info("deal %s: %d people, strategy %s", deal.deal_id, len(test_set.features), deal.strategy)
            inference = _inference(deal, cards, test_set)
            referee.SubmitReveal(_reveal(deal, test_set, inference), timeout=CALL_SECONDS)
            if deal.release_model:
                released.clear()
                released[deal.deal_id] = model()
                referee.ReleaseModel(game.ReleaseModelRequest(deal_id=deal.deal_id), timeout=CALL_SECONDS)


class Workshop:
    """Where base models are trained: in the background, and once for each training table.

    A model is a function of its training table alone, so one that stands already is the one that would be trained.
    """

    def __init__(self, referee: RefereeServiceStub) -> None:
        self._referee = referee
        self._trainer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="train")
        self._trained: tuple[str, Future[Released]] | None = None

    def base_model(
        self, deal: game.DeveloperDeal, features: NDArray[np.float64], labels: NDArray[np.uint8]
    ) -> tuple[Scores, Callable[[], Released]]:
        """Begin to train the base model of a deal with a test set.

        Returns
        -------
        scores : callable
            The model's scores on the test set, shape (n,); waits for the training.
        model : callable
            The model that would be released; waits for the training.
        """
        if deal.base_model == game.BASE_MODEL_IDENTITY:
            return lambda: identity(features), lambda: _IDENTITY
        if not deal.training_digest:
            # The test set is the whole table: scored fold by fold, and released as trained on all of it.
            fitted = self._trainer.submit(cross_fitted, features, labels)
            return fitted.result, lambda: Released(logistic(features, labels), features.shape[1])
        model = self.model(deal)
        return cache(lambda: model().model(features)), model

    def model(self, deal: game.DeveloperDeal) -> Callable[[], Released]:
        """Begin to train a base model that needs no test set; the result waits for the training."""
        if deal.base_model == game.BASE_MODEL_IDENTITY:
            return lambda: _IDENTITY
        if self._trained is None or self._trained[0] != deal.training_digest:
            self._trained = (deal.training_digest, self._trainer.submit(self._train, deal.training_digest))
        return self._trained[1].result

    def _train(self, digest: str) -> Released:
        parts = self._referee.GetTrainingTable(
            game.GetTrainingTableRequest(training_digest=digest), timeout=CALL_SECONDS
        )
        table = collect(next(parts).table, parts)
        LOG.info("training the base model on %d rows", len(table["labels"]))
        features, labels = table["features"].astype(np.float64, copy=False), table["labels"]
        return Released(logistic(features, labels.astype(np.uint8, copy=False)), features.shape[1])


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


def _given(
    audits: AuditServiceStub, deal: game.DeveloperDeal, cards: dict[str, NDArray[Any]], workshop: Workshop
) -> tuple[_TestSet, Callable[[], Released]]:
    """Take the test set that was dealt; the model that would be released comes with it."""
    features = cards["features"].astype(np.float64, copy=False)
    labels = cards["labels"].astype(np.uint8, copy=False)
    scores, model = workshop.base_model(deal, features, labels)
    metric = name_of(deal.metric)

    def send(request_id: str, predictions: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
        return ask(audits, deal.deal_id, request_id, metric, predictions, epsilon).gaps

    people = int(stratum(metric, labels).sum())
    return _TestSet(features, labels, scores, send, _purse(deal, people, 0)), model


def _seen(
    audits: AuditServiceStub,
    deal: game.DeveloperDeal,
    audited: MutableMapping[tuple[str, str], Audited],
    workshop: Workshop,
) -> tuple[_TestSet, Callable[[], Released]]:
    """Get to see the test set that compliance keeps; likewise."""
    model = workshop.model(deal)
    terms = audits.GetTerms(audit.GetTermsRequest(deal_id=deal.deal_id), timeout=CALL_SECONDS)
    purse = _purse(deal, terms.people, LOOKS)
    hidden = HiddenAudits(audits, audited, deal.deal_id, name_of(deal.metric), model().features)
    features, scores = hidden.look(model(), *purse.take(LOOKS))
    return _TestSet(features, None, lambda: scores, hidden.ask, purse, LOOKS), model


def _purse(deal: game.DeveloperDeal, people: int, looks: int) -> Purse:
    planned = looks + STRATEGIES[deal.strategy].size_queries + _queries(deal.queries, people)
    return Purse(deal.epsilon, deal.mechanism, planned)


def _inference(deal: game.DeveloperDeal, cards: dict[str, NDArray[Any]], test_set: _TestSet) -> Scores | None:
    """Say what features, and labels where there are any, tell about groups, by the public sample; None without one."""
    if not deal.public_disadvantaged_rows:
        return None
    sample, people = cards["public_features"], test_set.features
    if test_set.labels is not None:
        sample = np.column_stack([sample, cards["public_labels"]])
        people = np.column_stack([people, test_set.labels])
    return cache(lambda: log_likelihood_ratio(sample, deal.public_disadvantaged_rows, people))


def _queries(count: game.QueryCount, people: int) -> int:
    match count.WhichOneof("count"):
        case "fixed":
            return count.fixed
        case "at_most":
            return count.at_most
        case _:
            return people - count.people_less


def _reveal(deal: game.DeveloperDeal, test_set: _TestSet, inference: Scores | None) -> game.SubmitRevealRequest:
    """Play the deal's strategy and write down the guess."""
    metric = name_of(deal.metric)
    labels, scores, reached = test_set.labels, test_set.scores, test_set.reached(metric)
    people = int(reached.sum())
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

    auditor = DealAuditor(test_set.ask, test_set.purse, reached, labels, scores)
    reveal = STRATEGIES[deal.strategy].play(
        Hand(
            people=people,
            base=lambda: scores()[reached],
            prior=lambda: baseline()[reached],
            auditor=auditor,
            rng=generator(deal.seed),
            queries=_queries(deal.queries, people),
            perturbation=deal.perturbation,
            decode=DECODERS[deal.decoder] if deal.decoder else None,
            terms=terms,
            llr=(lambda: inference()[reached]) if inference is not None else None,
            labels=labels[reached] if labels is not None else None,
        )
    )
    return _submission(deal.deal_id, test_set, auditor, reveal, reached, baseline())


def _submission(
    deal_id: str,
    test_set: _TestSet,
    auditor: DealAuditor,
    reveal: Reveal,
    reached: NDArray[np.bool_],
    baseline: NDArray[np.uint8],
) -> game.SubmitRevealRequest:
    """Speak about everybody: whom the metric does not look at keeps the guess made without a query."""

    def spread(values: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
        whole = others.copy()
        whole[reached] = values
        return whole

    scores, labels, accuracies = test_set.scores(), test_set.labels, auditor.accuracy_models
    nobody, alone = np.zeros(len(scores)), reveal.from_answers
    return game.SubmitRevealRequest(
        deal_id=deal_id,
        baseline=to_message(baseline),
        guess=to_message(spread(reveal.guess, baseline)),
        targeted=to_message(spread(reveal.targeted, nobody).astype(np.uint8)),
        polarity_known=reveal.polarity_known,
        reconstruction=to_message(spread(reveal.reconstruction, nobody)) if reveal.reconstruction is not None else None,
        queries=test_set.looks + auditor.queries,
        size_queries=auditor.size_queries,
        max_prediction_change=auditor.max_prediction_change,
        accuracy_base=float(accuracy(scores, labels)) if labels is not None else None,
        accuracy_models=to_message(accuracies) if accuracies is not None else None,
        guess_from_answers=to_message(spread(alone, no_query_guess(scores))) if alone is not None else None,
    )
