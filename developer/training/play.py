"""The developer in the training game: it trains the model that the deal names, and submits it."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from developer.service import ReleasedModel, Shelf, within_reach
from developer.training.groups import GroupAdder, held_sums
from developer.training.model import TrainingBudget, TrainingSet, TrainingStep
from developer.training.models import askings, chosen, train, train_told
from developer.training.network import Network
from developer.training.regression import Regression
from fairwall.arrays import Bytes, Floats
from fairwall.compliance.v1 import statistics_service_pb2 as wire
from fairwall.compliance.v1.statistics_service_pb2_grpc import StatisticsServiceStub
from fairwall.game.v1 import training_service_pb2 as training
from fairwall.game.v1.training_service_pb2_grpc import TrainingServiceStub
from fairwall.laws.noise.gaussian import gaussian_multiplier
from fairwall.rpc.arrays import chunks_of, from_message, header_of, to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import Seat, deals

if TYPE_CHECKING:
    from developer.training.practice import Decider

LOG = logging.getLogger(__name__)

SUBMIT_SECONDS = 300.0

RATES = "rates"
"""Stands in place of a model where only the groups' rates of the labels are requested."""

PLAIN = "plain"
"""The practice of a model that `developer.training.models` trains."""

_SLACK = 1 - 1e-3
"""Part of the purse that is spent, so that compliance's sum, rounded upwards, is still within it."""


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Features (rows, d), labels (rows,), and the protected attribute (rows,) where the developer holds it."""

    features: Floats
    labels: Bytes
    protected: Bytes | None

    def take(self, part: slice) -> TrainingRows:
        """Return a part of the rows."""
        groups = None if self.protected is None else self.protected[part]
        return TrainingRows(self.features[part], self.labels[part], groups)


class ModelScorer(Protocol):
    """A model with scores."""

    def scores(self, features: Floats) -> Floats:
        """Return the probability of label 1, shape (rows,), in [0, 1], for features of shape (rows, d)."""


@dataclass(frozen=True, eq=False)
class ModelSubmission:
    """The developer's report about its model.

    Attributes
    ----------
    scores : (test rows,), in [0, 1]; empty where there is no model.
    decisions : (1 or 2, test rows), 0 or 1: one row per group where decisions depend on it.
    epsilon, delta : the guarantee of each record; infinite for none.
    group_epsilons : the guarantee of each group, where these differ.
    steps : the steps that read private rows.
    asked : number of requests to compliance.
    rates : (2,), only where there is no model.
    """

    scores: NDArray[np.float32]
    decisions: Bytes
    epsilon: float
    delta: float
    group_epsilons: tuple[float, ...] = ()
    steps: tuple[TrainingStep, ...] = ()
    asked: int = 0
    rates: tuple[float, ...] = ()


def play(seat: Seat, shelf: Shelf) -> None:
    """Play every trial of a run; the shelf gets each deal's model."""
    referee = TrainingServiceStub(seat.referee)
    # Nothing is sent to compliance where the deal allows no request.
    with seat.reach("compliance") as connection:
        compliance = StatisticsServiceStub(connection)
        for deal, cards in deals(referee.TakeModelDeal, training.TakeModelDealRequest):
            LOG.info("deal %s: %s, practice %s", deal.deal_id, deal.terms.model, deal.terms.practice)
            asked = GroupSumClient(compliance, deal) if deal.HasField("statistics") else None
            model, said = made(deal, cards, asked)
            shelf.released.clear()
            if model is not None:
                shelf.released[deal.deal_id] = _black_box(model, cards["features"].shape[1])
            referee.SubmitModel(_message(deal.deal_id, said), timeout=SUBMIT_SECONDS)


class GroupSumClient:
    """A client of compliance for sums by group, whose noise spends the deal's purse evenly."""

    def __init__(self, compliance: StatisticsServiceStub, deal: training.ModelDeal) -> None:
        self._compliance, self._deal = compliance, deal
        self.count = 0

    def sums(self, times: int) -> GroupAdder:
        """Return a `GroupAdder` that spreads the budget over `times` requests."""
        multiplier = flip_multiplier(self._deal.statistics.epsilon, self._deal.statistics.delta, times)
        return GroupAdder(lambda rows: self._ask(rows, multiplier), record_multiplier(multiplier))

    def _ask(self, rows: Floats, multiplier: float) -> Floats:
        self.count += 1
        # A norm of 1 may come out above 1 by rounding.
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows / np.maximum(lengths, 1.0)

        def parts() -> Iterator[wire.SumByGroupRequest]:
            header = wire.SumsHeader(
                request_id=f"sums-{self.count}",
                deal_id=self._deal.deal_id,
                multiplier=multiplier,
                rows=header_of(rows),
            )
            yield wire.SumByGroupRequest(header=header)
            yield from (wire.SumByGroupRequest(rows_chunk=chunk) for chunk in chunks_of(rows))

        answer: wire.SumByGroupResponse = self._compliance.SumByGroup(parts(), timeout=CALL_SECONDS)
        return from_message(answer.sums).astype(np.float64, copy=False)


def flip_multiplier(epsilon: float, delta: float, times: int) -> float:
    """Return the noise of each of `times` answers, over the sensitivity to one flip of A, that spends a purse."""
    return gaussian_multiplier(epsilon * _SLACK, delta) * math.sqrt(times)


def record_multiplier(multiplier: float) -> float:
    """Return that noise over the sensitivity to one record: sqrt(2), where the sensitivity to a flip is 2."""
    return multiplier * math.sqrt(2)


def made(
    deal: training.ModelDeal, cards: dict[str, NDArray[np.generic]], client: GroupSumClient | None
) -> tuple[ModelScorer | None, ModelSubmission]:
    """Train a deal's model, or request the rates; ``cards`` are the deal's arrays by name."""
    terms, seed = deal.terms, int.from_bytes(deal.seed[:8], "big")
    rows = TrainingRows(
        cards["features"].astype(np.float64, copy=False),
        cards["labels"].astype(np.uint8, copy=False),
        cards["protected"].astype(np.uint8, copy=False) if "protected" in cards else None,
    )
    private = rows.take(slice(int(deal.public_rows), None))
    people, protected = TrainingSet(private.features, private.labels), private.protected
    if terms.model == RATES:
        if client is not None:
            return None, _rates(client.sums(1), people.labels, client)
        assert protected is not None, "the referee deals it, or terms to ask for it"
        return None, _rates(held_sums(protected, 0.0, np.random.default_rng(seed)), people.labels, None)
    if terms.practice != PLAIN:
        tested = cards["test_features"].astype(np.float64, copy=False)
        return _practised(deal, private, rows.take(slice(int(deal.public_rows))), tested, client)
    settings = settings_of(terms)
    if client is not None and settings.strength > 0:
        model = train_told(people, settings, seed, client.sums(askings(settings)))
    else:
        model = train(people, settings, seed, protected)
    scores = model.scores(cards["test_features"].astype(np.float64, copy=False)).astype(np.float32)
    spent = model.spent
    return model, ModelSubmission(
        scores=scores,
        decisions=(scores >= 0.5).astype(np.uint8)[None],
        epsilon=math.inf if spent is None else spent.epsilon,
        delta=0.0 if spent is None else spent.delta,
        steps=model.steps,
        asked=0 if client is None else client.count,
    )


def _practised(
    deal: training.ModelDeal, private: TrainingRows, public: TrainingRows, tested: Floats, client: GroupSumClient | None
) -> tuple[ModelScorer, ModelSubmission]:
    from developer.training.practice import PRACTICES, PracticeTask  # imported only by the deals that need it

    terms, seed = deal.terms, int.from_bytes(deal.seed[:8], "big")
    settings, practice = settings_of(terms), PRACTICES[terms.practice]
    assert isinstance(settings, Network), "practices are of the private network"
    task = PracticeTask(
        people=TrainingSet(private.features, private.labels),
        seed=seed,
        budget=TrainingBudget(terms.epsilon, terms.delta, terms.statistics_share),
        settings=settings,
        protected=private.protected,
        public=TrainingSet(public.features, public.labels) if practice.public else None,
        sums=None if client is None else client.sums(1),
        columns=tuple(deal.columns),
        public_protected=public.protected if practice.public else None,
    )
    done = practice.train(task)
    rng = np.random.default_rng([seed, 2])
    return done.model, ModelSubmission(
        scores=done.model.scores(tested).astype(np.float32),
        decisions=_decided(done.model, tested, rng),
        epsilon=done.spent.epsilon,
        delta=done.spent.delta,
        group_epsilons=() if done.by_group is None else tuple(spent.epsilon for spent in done.by_group),
        steps=done.steps,
        asked=0 if client is None else client.count,
    )


def _decided(model: Decider, rows: Floats, rng: np.random.Generator) -> Bytes:
    """Return decisions, drawn where the model is random: once for each group a row may be of, with the same draws."""
    lots = rng.random(len(rows))
    of_groups = np.stack([model.decisions(rows, np.full(len(rows), group, np.uint8)) for group in (0, 1)])
    decisions = (lots < of_groups).astype(np.uint8)
    return decisions[:1] if np.array_equal(of_groups[0], of_groups[1]) else decisions


def settings_of(terms: training.ModelTerms) -> Network | Regression:
    """Return the settings of a deal's model."""
    return chosen(
        terms.model,
        TrainingBudget(terms.epsilon, terms.delta, terms.statistics_share),
        terms.strength or None,
        terms.steps or None,
        terms.batch or None,
    )


def _rates(sums: GroupAdder, labels: Bytes, client: GroupSumClient | None) -> ModelSubmission:
    nothing = np.empty(0, np.float32)
    rates = sums.rates(labels.astype(np.float64)).rate
    return ModelSubmission(
        nothing, nothing.astype(np.uint8)[None], math.inf, 0.0, asked=0 if client is None else client.count, rates=rates
    )


def _black_box(model: ModelScorer, features: int) -> ReleasedModel:
    return ReleasedModel(lambda rows: model.scores(within_reach(rows)), features)


def _message(deal_id: str, submission: ModelSubmission) -> training.SubmitModelRequest:
    return training.SubmitModelRequest(
        deal_id=deal_id,
        scores=to_message(submission.scores),
        decisions=to_message(submission.decisions),
        epsilon=submission.epsilon,
        delta=submission.delta,
        group_epsilons=submission.group_epsilons,
        steps=[training.PrivateStep(what=s.what, epsilon=s.epsilon, delta=s.delta, of=s.of) for s in submission.steps],
        asked=submission.asked,
        rates=submission.rates,
    )
