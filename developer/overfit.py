"""The developer in the overfit game: it infers who is disadvantaged, and patches the audited decisions.

The decisions to flip so that an audited gap falls follow from each row's probability q_i of being disadvantaged. Let
N0 = sum q_i and N1 = n - N0 be the assumed sizes. Accepting a rejected row lowers the gap by q/N0 - (1-q)/N1 in
expectation, and rejecting an accepted one by the opposite. The f largest of these are the best f patches where N0 and
N1 are right, since each patch moves a sum of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from developer.reveal.auditor import DealAuditor, Purse
from developer.reveal.strategies import STRATEGIES, PublicTerms, StrategyInputs
from developer.reveal.translation import plays
from developer.service import Shelf
from fairwall.arrays import Bytes, Floats
from fairwall.client.gaps import Audits, ask, ask_models
from fairwall.game.v1 import overfit_service_pb2 as wire
from fairwall.game.v1.overfit_service_pb2_grpc import OverfitServiceStub
from fairwall.laws.privacy.amounts import part_of
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import Seat, deals, generator
from fairwall.wire.queries import request_id, round_of

LOG = logging.getLogger(__name__)

_METRIC = "sp"
_BEST = STRATEGIES["best"]

_SURE = 700.0
"""Log-odds at which a probability is 0 or 1 in float64, and its exponential is finite."""

ATTACKS = {
    "features": "by what X says of A, by a public predictor; nothing is asked",
    "answers": "by what answers about models of the developer's choice say of A, X unseen",
    "both": "by answers and X together",
    "majority": "by the votes of sealed random models, each for whom its answer favours (Blum and Hardt, ICML 2015)",
}
"""The attacks, and the evidence that each patches by."""

STEP = 0.25
"""Log-odds are rounded to multiples of this, so that many rows of a table are equal to the attack, and the scorer knows
their exact frequency of disadvantage."""


def hints(features: Floats, weights: Floats) -> Floats:
    """Return the log-odds, (rows,), of being disadvantaged by public weights, (d + 1,), in multiples of `STEP`."""
    odds: Floats = np.rint((features @ weights[:-1] + weights[-1]) / STEP) * STEP
    return odds


def lowering(decisions: Bytes, probable: Floats, flips: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], int]:
    """Return the patches that lower the gap most, at most `flips`, and how many of them bring it nearest to 0.

    `probable`, (rows,), is each row's probability of being disadvantaged; `rng` breaks ties.
    """
    n0 = float(np.clip(probable.sum(), 1, len(probable) - 1))
    share0, share1 = probable / n0, (1 - probable) / (len(probable) - n0)
    fall = np.where(decisions == 0, 1.0, -1.0) * (share0 - share1)
    chosen = np.lexsort((rng.random(len(fall)), -fall))[:flips]
    gap = float((decisions * (share1 - share0)).sum())
    left = gap - np.concatenate([[0.0], np.cumsum(fall[chosen])])
    return chosen, int(np.abs(left).argmin())


def play(seat: Seat, _shelf: Shelf) -> None:
    """Play every trial of a run."""
    referee = OverfitServiceStub(seat.referee)
    with seat.reach("compliance") as connection:
        audits = Audits(connection)
        for deal, cards in deals(referee.TakeOverfitDeal, wire.TakeOverfitDealRequest):
            LOG.info("deal %s: attack %s", deal.deal_id, deal.attack)
            patched = _majority(referee, audits, deal) if deal.models else _patched(audits, deal, cards)
            referee.SubmitPatches(patched, timeout=CALL_SECONDS)


def _patched(audits: Audits, deal: wire.OverfitDeal, cards: dict[str, NDArray[Any]]) -> wire.SubmitPatchesRequest:
    """Return the patches, by row number, all chosen after the last round, when most is known."""
    rng, rows, numbers = generator(deal.seed), cards["decisions"].astype(np.uint8), count(1)
    decisions, anew = rows.ravel(), rows.ndim > 1
    odds = np.full(len(decisions), np.log(deal.share / (1 - deal.share)))
    if deal.attack != "answers":
        odds = hints(cards["features"].astype(np.float64), cards["weights"].astype(np.float64))
    # Rows that stay are in every round, which begins with the log-odds of the round before.
    rounds = np.broadcast_to(np.arange(rows.size).reshape(rows.shape), (deal.rounds or 1, rows.shape[-1]))
    for number, own in enumerate(rounds if deal.attack != "features" else (), 1):
        case = round_of(deal.deal_id, number if anew else 1)
        odds[own] = _asked(audits, deal, case, decisions[own], odds[own], numbers, rng)
    patches, enough = lowering(decisions, 1 / (1 + np.exp(-odds)), deal.flips, rng)
    return wire.SubmitPatchesRequest(deal_id=deal.deal_id, patches=patches.tolist(), enough=enough)


def _asked(
    audits: Audits,
    deal: wire.OverfitDeal,
    case: str,
    decisions: Bytes,
    odds: Floats,
    numbers: Iterator[int],
    rng: np.random.Generator,
) -> Floats:
    """Return each row's log-odds, (rows,), of being disadvantaged after a round of the reveal game's best strategy."""
    epsilon = part_of(deal.epsilon, deal.rounds or 1)
    people, nobody = len(decisions), np.zeros(len(decisions), np.uint8)
    scores, llr = decisions.astype(np.float64), odds - np.log(deal.share / (1 - deal.share))

    def send(request: str, predictions: Floats, epsilon: float) -> Floats:
        return ask(audits, case, request, _METRIC, predictions, epsilon).gaps

    purse = Purse(epsilon, deal.mechanism, people + _BEST.size_queries, numbers)
    (whole,) = plays(_METRIC, nobody, 1.0, None)
    hand = StrategyInputs(
        people=people,
        base=lambda: scores,
        prior=lambda: (llr <= 0).astype(np.uint8),
        auditor=DealAuditor(send, purse, whole, None, lambda: scores),
        rng=rng,
        queries=people,
        perturbation=1.0,
        terms=PublicTerms(_METRIC, deal.mechanism, epsilon, deal.batch_delta),
        llr=lambda: llr,
    )
    found = _BEST.play(hand)
    if found.confidence is None:
        return np.where(found.guess == 0, _SURE, -_SURE)
    # The answers' evidence at even odds, and all other evidence.
    alone = np.clip(found.confidence, 1e-9, 1 - 1e-9)
    return np.clip(np.log(alone / (1 - alone)) + odds, -_SURE, _SURE)


def _majority(referee: OverfitServiceStub, audits: Audits, deal: wire.OverfitDeal) -> wire.SubmitPatchesRequest:
    """Commit to random models, have them audited, and let each vote for or against the people it accepts."""
    # A model that by chance accepts more of the disadvantaged has a gap below 0, and votes for the people it accepts.
    key = generator(deal.seed).bytes(32)
    while not referee.SubmitSealed(
        wire.SubmitSealedRequest(deal_id=deal.deal_id, key=key), timeout=CALL_SECONDS
    ).served:
        pass
    answer = ask_models(audits, deal.deal_id, request_id("metric", 1), _METRIC, deal.models, deal.epsilon)
    favours = (np.nan_to_num(answer.gaps) < 0).astype(np.uint8)
    return wire.SubmitPatchesRequest(deal_id=deal.deal_id, enough=deal.flips, favours=to_message(favours))
