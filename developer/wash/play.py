"""The developer in the washing game: it learns the groups, deploys, commits if required, and is audited."""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from developer.reveal.auditor import DealAuditor, Purse
from developer.reveal.logistic_models import Logistic, fit
from developer.reveal.play import no_query_guess
from developer.reveal.strategies import STRATEGIES, PublicTerms, StrategyInputs
from developer.reveal.translation import plays
from developer.service import ReleasedModel, Shelf, within_reach
from developer.wash import shown_decisions
from fairwall.arrays import Bools, Bytes, Floats
from fairwall.client.gaps import Audits, ask
from fairwall.game.v1 import wash_service_pb2 as wire
from fairwall.game.v1.wash_service_pb2_grpc import WashServiceStub
from fairwall.laws.privacy.amounts import part_of
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import Seat, deals, generator
from fairwall.wire.commitment import BYTES, commit
from fairwall.wire.queries import AUDITED

LOG = logging.getLogger(__name__)

METRIC = "sp"

ANSWERS = "answers"
"""The knowledge of a developer that attacks the audit: half of epsilon pays for that, half for the audit itself."""

_SURE = 20.0
"""The log-odds of a person known for certain."""


@dataclass(frozen=True)
class _Fits:
    """A cache of logistic regressions by their data: a run's deals share their training rows and public sample."""

    kept: dict[bytes, Logistic] = field(default_factory=dict)

    def __call__(self, features: Floats, labels: Bytes) -> Logistic:
        """Return the fit of labels to features, cached."""
        what = hashlib.sha256(np.ascontiguousarray(features).data)
        what.update(np.ascontiguousarray(labels).data)
        if what.digest() not in self.kept:
            self.kept[what.digest()] = fit(features, labels)
        return self.kept[what.digest()]


@dataclass(frozen=True, eq=False)
class _Proxy:
    """A group predictor from a public sample: features, (rows, d), the disadvantaged, (rows,), and the fit."""

    sample: Floats
    disadvantaged: Bytes
    predictor: Logistic

    def log_odds(self, features: Floats) -> Floats:
        """Return the log-odds of being disadvantaged, (n,)."""
        return self.predictor.log_odds(features)

    def fair(self, model: Logistic, features: Floats) -> Bytes:
        """Return the decisions, (n,), of the model corrected for the predictor.

        Its log-odds are raised by c times the predictor's log-odds above the sample's base rate, with the c of a grid
        whose gap on the sample is nearest to 0.
        """
        usual = math.log(self.disadvantaged.sum() / (1 - self.disadvantaged).sum())
        grid, told = np.linspace(-1.0, 3.0, 401), self.log_odds(self.sample) - usual
        decided = model.log_odds(self.sample) + grid[:, None] * told > 0
        gaps = shown_decisions.gap(decided.astype(np.float64), self.disadvantaged.astype(np.float64))
        best = grid[int(np.argmin(np.abs(gaps)))]
        return np.asarray(model.log_odds(features) + best * (self.log_odds(features) - usual) > 0, np.uint8)


def play(seat: Seat, shelf: Shelf) -> None:
    """Play every trial of a run; the shelf gets each deal's deployed model."""
    referee, fits = WashServiceStub(seat.referee), _Fits()
    with seat.reach("compliance") as connection:
        audits = Audits(connection)
        for deal, cards in deals(referee.TakeWashDeal, wire.TakeWashDealRequest):
            submitted = _played(referee, audits, shelf, fits, deal, cards)
            referee.SubmitWash(submitted, timeout=CALL_SECONDS)


def _played(
    referee: WashServiceStub,
    audits: Audits,
    shelf: Shelf,
    fits: _Fits,
    deal: wire.WashDeal,
    cards: dict[str, NDArray[Any]],
) -> wire.SubmitWashRequest:
    features = cards["features"].astype(np.float64, copy=False)
    model = fits(cards["training_features"].astype(np.float64), cards["training_labels"].astype(np.uint8))
    scores, rng = model.scores(features), generator(deal.seed)
    sample = cards["sample_features"].astype(np.float64, copy=False)
    disadvantaged = (np.arange(len(sample)) < deal.disadvantaged_rows).astype(np.uint8)
    proxy = _Proxy(sample, disadvantaged, fits(sample, disadvantaged))
    belief = _believed(audits, deal, cards, scores, proxy.log_odds(features), rng)
    exact = math.isinf(deal.epsilon) and bool(np.isin(belief, (0, 1)).all())
    deployed = (scores >= 0.5).astype(np.uint8)

    def shown(bound: Bools) -> Bytes:
        hand = shown_decisions.WashInputs(
            deployed,
            scores,
            fair=lambda: proxy.fair(model, features),
            belief=belief,
            aim=deal.tau if exact else 0.0,
            bound=bound,
            rng=rng,
        )
        return np.where(bound, deployed, shown_decisions.STRATEGIES[deal.strategy](hand))

    nobody, salt, committed = np.zeros(len(features), np.bool_), b"", b""
    decisions = shown(nobody)
    if deal.committed:
        salt = rng.bytes(BYTES)
        committed = commit(decisions, salt)
    customers: list[Floats] = []
    shelf.released.clear()
    shelf.released[deal.deal_id] = ReleasedModel(partial(_decide, model, customers.append), features.shape[1])
    referee.SubmitCommitment(
        wire.SubmitCommitmentRequest(deal_id=deal.deal_id, commitment=committed), timeout=CALL_SECONDS
    )
    next(deals(referee.TakeAuditDeal, wire.TakeAuditDealRequest))
    if deal.evades and not deal.committed:
        asked = {row.tobytes() for rows in customers for row in rows}
        decisions = shown(np.array([row.tobytes() in asked for row in features]))
    epsilon = part_of(deal.epsilon, 2) if deal.knows == ANSWERS else deal.epsilon
    ask(audits, deal.deal_id, AUDITED, METRIC, decisions[np.newaxis], epsilon)
    LOG.info("deal %s: %s, %d decisions shown otherwise", deal.deal_id, deal.strategy, (decisions != deployed).sum())
    return wire.SubmitWashRequest(
        deal_id=deal.deal_id,
        shown=to_message(decisions),
        deployed=to_message(deployed),
        belief=to_message(belief),
        salt=salt,
    )


def _decide(model: Logistic, notice: Callable[[Floats], None], features: Floats) -> Floats:
    """Return decisions about a customer's rows, and record the rows."""
    notice(features)
    return (model.scores(within_reach(features)) >= 0.5).astype(np.float64)


def _believed(
    audits: Audits,
    deal: wire.WashDeal,
    cards: dict[str, NDArray[Any]],
    scores: Floats,
    odds: Floats,
    rng: np.random.Generator,
) -> Floats:
    """Return each person's probability of being disadvantaged, (n,), by the developer's knowledge."""
    if deal.holds_protected:
        return 1.0 - cards["protected"].astype(np.float64)
    if deal.knows == ANSWERS:
        rows = deal.disadvantaged_rows
        usual = math.log(rows / (deal.sample_features.shape[0] - rows))
        told = _told(audits, deal, scores, odds - usual, rng)
        if np.isinf(told).all():
            return (told > 0).astype(np.float64)
        odds = odds + np.clip(told, -_SURE, _SURE)
    return np.asarray(1 / (1 + np.exp(-odds)))


def _told(audits: Audits, deal: wire.WashDeal, scores: Floats, llr: Floats, rng: np.random.Generator) -> Floats:
    """Attack the audit, and return each person's log-odds, (n,), of being disadvantaged, from answers alone."""
    n, epsilon, best = len(scores), part_of(deal.epsilon, 2), STRATEGIES["best"]
    (play,) = plays(METRIC, np.zeros(n, np.uint8))
    purse = Purse(epsilon, deal.mechanism, n + best.size_queries)

    def send(request_id: str, predictions: Floats, spent: float) -> Floats:
        return ask(audits, deal.deal_id, request_id, METRIC, predictions, spent).gaps

    found = best.play(
        StrategyInputs(
            people=n,
            base=lambda: scores,
            prior=lambda: no_query_guess(scores),
            auditor=DealAuditor(send, purse, play, None, lambda: scores),
            rng=rng,
            queries=n,
            perturbation=1.0,
            terms=PublicTerms(METRIC, deal.mechanism, epsilon, deal.batch_delta),
            llr=lambda: llr,
        )
    )
    if found.confidence is None:
        return np.where(found.guess == 0, math.inf, -math.inf)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(found.confidence) - np.log1p(-found.confidence))
