"""The developer in the reveal game: it takes a deal, plays its strategy through the audit service, and guesses."""

from __future__ import annotations

import logging
from collections.abc import Callable, MutableMapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from developer.reveal.auditor import Ask, DealAuditor, Purse
from developer.reveal.decode import DECODERS
from developer.reveal.hidden import LOOKS, HiddenAudits
from developer.reveal.logistic_models import accuracy, cross_fitted, identity, log_likelihood_ratio, logistic
from developer.reveal.strategies import STRATEGIES, PublicTerms, Reveal, StrategyInputs
from developer.reveal.translation import Play, plays
from developer.service import Audited, ReleasedModel, Shelf
from fairwall.arrays import Bools, Bytes, Floats
from fairwall.client.gaps import Audits, ask
from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.game.v1 import reveal_service_pb2 as game
from fairwall.game.v1.reveal_service_pb2_grpc import RevealServiceStub
from fairwall.laws.metrics.metric import find_metric, strata_of
from fairwall.laws.privacy.exposure import NO_LIMIT, Limit
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import Seat, collect, deals, generator
from fairwall.wire.metrics import name_of
from fairwall.wire.numbers import from_message
from fairwall.wire.v1.array_pb2 import Array

LOG = logging.getLogger(__name__)

Scores = Callable[[], Floats]
_T = TypeVar("_T", bound=np.generic)

_IDENTITY = ReleasedModel(identity, 1)


@dataclass(frozen=True, eq=False)
class _TestSet:
    """The people of a deal, and the means to have models audited on them.

    labels : (n,); None where the developer was not given them.
    scores : returns the base model's scores, (n,); waits for its training.
    looks : number of metric queries spent on seeing the features.
    """

    features: Floats
    labels: Bytes | None
    scores: Scores
    ask: Ask
    purse: Purse
    looks: int = 0

    def plays(self, metric: str, perturbation: float) -> tuple[Play, ...]:
        """Return the plays of a metric; a metric queried without labels needs none."""
        labels = np.zeros(len(self.features), np.uint8) if self.labels is None else self.labels
        # Two strata near the base model are separated by its scores; elsewhere the scores may still be in the making.
        near = perturbation < 1 and len(find_metric(metric).strata) > 1
        return plays(metric, labels, perturbation, self.scores() if near else None)


def play(seat: Seat, shelf: Shelf) -> None:
    """Play every trial; the shelf gets released models, and the pending audits of a hidden test set."""
    referee = RevealServiceStub(seat.referee)
    workshop = Workshop(referee)
    with seat.reach("compliance") as connection:
        audits = Audits(connection)
        for deal, cards in deals(referee.TakeDeveloperDeal, game.TakeDeveloperDealRequest):
            if deal.HasField("features"):
                test_set, model = _given(audits, deal, cards, workshop)
            else:
                test_set, model = _seen(audits, deal, shelf.audited, workshop)
            LOG.info("deal %s: %d people, strategy %s", deal.deal_id, len(test_set.features), deal.strategy)
            inference = _inference(deal, cards, test_set)
            referee.SubmitReveal(_reveal(deal, test_set, inference), timeout=CALL_SECONDS)
            if deal.release_model:
                shelf.released.clear()
                shelf.released[deal.deal_id] = model()
                referee.ReleaseModel(game.ReleaseModelRequest(deal_id=deal.deal_id), timeout=CALL_SECONDS)


class Workshop:
    """A background trainer of base models, one per training table, on which alone a model depends."""

    def __init__(self, referee: RevealServiceStub) -> None:
        self._referee = referee
        self._trainer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="train")
        self._trained: tuple[str, Future[ReleasedModel]] | None = None

    def base_model(
        self, deal: game.DeveloperDeal, features: Floats, labels: Bytes
    ) -> tuple[Scores, Callable[[], ReleasedModel]]:
        """Begin to train a deal's base model; return functions that wait for its scores, (n,), and for the model."""
        if deal.base_model == game.BASE_MODEL_IDENTITY:
            return lambda: identity(features), lambda: _IDENTITY
        if not deal.training_digest:
            # The test set is the whole table: scored fold by fold, and released as trained on all of it.
            fitted = self._trainer.submit(cross_fitted, features, labels)
            return fitted.result, lambda: ReleasedModel(logistic(features, labels), features.shape[1])
        model = self.model(deal)
        return cache(lambda: model().model(features)), model

    def model(self, deal: game.DeveloperDeal) -> Callable[[], ReleasedModel]:
        """Begin to train a base model that needs no test set; the returned function waits for the training."""
        if deal.base_model == game.BASE_MODEL_IDENTITY:
            return lambda: _IDENTITY
        if self._trained is None or self._trained[0] != deal.training_digest:
            self._trained = (deal.training_digest, self._trainer.submit(self._train, deal.training_digest))
        return self._trained[1].result

    def _train(self, digest: str) -> ReleasedModel:
        parts = self._referee.GetTrainingTable(
            game.GetTrainingTableRequest(training_digest=digest), timeout=CALL_SECONDS
        )
        table = collect(next(parts).table, parts)
        LOG.info("training the base model on %d rows", len(table["labels"]))
        features, labels = table["features"].astype(np.float64, copy=False), table["labels"]
        return ReleasedModel(logistic(features, labels.astype(np.uint8, copy=False)), features.shape[1])


def no_query_guess(scores: Floats) -> Bytes:
    """Return a guess without any query, (n,), 1 = advantaged: the lower-scored half is disadvantaged, ties by position.

    Every answer's value is measured against this guess. It needs no group size; where h0 ignores groups it is right
    about half of each group, and where h0 scores the disadvantaged lower, about more.
    """
    guess = np.ones(len(scores), np.uint8)
    guess[np.argsort(scores, kind="stable")[: len(scores) // 2]] = 0
    return guess


def _given(
    audits: Audits, deal: game.DeveloperDeal, cards: dict[str, NDArray[Any]], workshop: Workshop
) -> tuple[_TestSet, Callable[[], ReleasedModel]]:
    """Return the test set that was dealt, and a function for the model to release."""
    features = cards["features"].astype(np.float64, copy=False)
    labels = cards["labels"].astype(np.uint8, copy=False)
    scores, model = workshop.base_model(deal, features, labels)
    metric = name_of(deal.metric)

    def send(request_id: str, predictions: Floats, epsilon: float) -> Floats:
        return ask(audits, deal.deal_id, request_id, metric, predictions, epsilon).gaps

    strata = [int(inside.sum()) for inside in strata_of(metric, labels)]
    return _TestSet(features, labels, scores, send, _purse(deal, strata, 0)), model


def _seen(
    audits: Audits,
    deal: game.DeveloperDeal,
    audited: MutableMapping[tuple[str, str], Audited],
    workshop: Workshop,
) -> tuple[_TestSet, Callable[[], ReleasedModel]]:
    """Return the test set that compliance keeps, seen through an audit, and a function for the model to release."""
    model = workshop.model(deal)
    terms = audits.GetTerms(audit.GetTermsRequest(deal_id=deal.deal_id), timeout=CALL_SECONDS)
    purse = _purse(deal, [terms.people], LOOKS)
    hidden = HiddenAudits(audits, audited, deal.deal_id, name_of(deal.metric), model().features)
    features, scores = hidden.look(model(), *purse.take("look", LOOKS))
    return _TestSet(features, None, lambda: scores, hidden.ask, purse, LOOKS), model


def _purse(deal: game.DeveloperDeal, strata: Sequence[int], looks: int) -> Purse:
    """Return a purse for the queries about each stratum."""
    sizes = 0 if deal.disadvantaged else STRATEGIES[deal.strategy].size_queries
    planned = looks + len(strata) * sizes
    if deal.queries.WhichOneof("count") == "people_less":
        planned += sum(_queries(deal.queries, people) for people in strata)
    else:
        planned += _queries(deal.queries, 0)
    return Purse(deal.epsilon, deal.mechanism, planned)


def _inference(deal: game.DeveloperDeal, cards: dict[str, NDArray[Any]], test_set: _TestSet) -> Scores | None:
    """Return the log-likelihood ratios by features, and labels if any, from the public sample; None without one."""
    if not deal.public_disadvantaged_rows:
        return None
    sample, people = cards["public_features"], test_set.features
    if test_set.labels is not None:
        sample = np.column_stack([sample, cards["public_labels"]])
        people = np.column_stack([people, test_set.labels])
    return cache(lambda: log_likelihood_ratio(sample, deal.public_disadvantaged_rows, people))


def _queries(count: game.QueryCount, people: int, used: int = 0, plays: int = 1) -> int:
    """Return the number of queries of one play about `people` people, with `plays` plays left."""
    # `used` counts queries sent or renounced: a renounced query is no longer planned, so nothing pays for it.
    match count.WhichOneof("count"):
        case "fixed":
            return max((count.fixed - used) // plays, 1)
        case "at_most":
            return max((count.at_most - used) // plays, 1)
        case _:
            return people - count.people_less


def _reveal(deal: game.DeveloperDeal, test_set: _TestSet, inference: Scores | None) -> game.SubmitRevealRequest:
    """Play the deal's strategy and return the guess to submit."""
    metric = name_of(deal.metric)
    labels, scores = test_set.labels, test_set.scores

    @cache
    def baseline() -> Bytes:
        return no_query_guess(scores()) if inference is None else (inference() <= 0).astype(np.uint8)

    parts: list[tuple[Play, DealAuditor, Reveal]] = []
    games = test_set.plays(metric, deal.perturbation)
    test_set.purse.plan(sum(play.needs_reference for play in games))
    for play in games:
        people = int(play.reached.sum())
        # The deal has one size for each play: both go by the metric's strata.
        n0 = deal.disadvantaged[len(parts)] if deal.disadvantaged else None
        auditor = DealAuditor(test_set.ask, test_set.purse, play, labels, scores, n0)
        used = sum(earlier.queries + earlier.given_up for _, earlier, _ in parts)
        hand = StrategyInputs(
            people=people,
            base=partial(_base_weights, play, scores),
            prior=partial(_of, baseline, play.reached),
            auditor=auditor,
            rng=generator(deal.seed),
            queries=_queries(deal.queries, people, used, len(games) - len(parts)),
            perturbation=deal.perturbation,
            decode=DECODERS[deal.decoder] if deal.decoder else None,
            terms=PublicTerms(
                metric=metric,
                mechanism=deal.mechanism,
                epsilon=deal.epsilon,
                delta=deal.batch_delta,
                limit=Limit(deal.reveal_max) if deal.HasField("reveal_max") else NO_LIMIT,
                precision=play.precision(from_message(deal.precision)),
                n0=n0,
                first=n0 is not None and not test_set.looks and not parts,
            ),
            llr=partial(_of, inference, play.reached) if inference is not None else None,
            labels=labels[play.reached] if labels is not None else None,
        )
        parts.append((play, auditor, STRATEGIES[deal.strategy].play(hand)))
    return _submission(deal.deal_id, test_set, parts, baseline())


def _base_weights(play: Play, scores: Scores) -> Floats:
    return play.base_weights(scores())


def _of(values: Callable[[], NDArray[_T]], reached: Bools) -> NDArray[_T]:
    return values()[reached]


def _submission(
    deal_id: str, test_set: _TestSet, parts: Sequence[tuple[Play, DealAuditor, Reveal]], baseline: Bytes
) -> game.SubmitRevealRequest:
    """Return the submission about everybody: people whom the metric does not count keep the prior guess."""
    scores, labels = test_set.scores(), test_set.labels
    auditors = [auditor for _, auditor, _ in parts]

    def spread(pick: Callable[[Reveal], NDArray[Any] | None], others: NDArray[Any]) -> Array | None:
        whole = others.copy()
        for play, _, reveal in parts:
            picked = pick(reveal)
            if picked is None:
                return None
            whole[play.reached] = picked
        return to_message(whole)

    nobody = np.zeros(len(scores))
    accuracies = [auditor.accuracy_models for auditor in auditors if auditor.accuracy_models is not None]
    return game.SubmitRevealRequest(
        deal_id=deal_id,
        baseline=to_message(baseline),
        guess=spread(lambda reveal: reveal.guess, baseline),
        targeted=spread(lambda reveal: reveal.targeted, nobody.astype(np.uint8)),
        polarity_known=all(reveal.polarity_known for _, _, reveal in parts),
        reconstruction=spread(lambda reveal: reveal.reconstruction, nobody),
        queries=test_set.looks + sum(auditor.queries for auditor in auditors),
        size_queries=sum(auditor.size_queries for auditor in auditors),
        max_prediction_change=max(auditor.max_prediction_change for auditor in auditors),
        accuracy_base=float(accuracy(scores, labels)) if labels is not None else None,
        accuracy_models=to_message(np.concatenate(accuracies)) if accuracies else None,
        guess_from_answers=spread(lambda reveal: reveal.from_answers, no_query_guess(scores)),
        confidence=spread(lambda reveal: reveal.confidence, nobody + 0.5),
    )
