"""Another decoder on recorded answers: its compatibility with a deal's strategy, and the score of its guess."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from developer.reveal.strategies import STRATEGIES, takes
from fairwall.game.v1 import reveal_service_pb2 as game
from fairwall.rpc.arrays import from_message
from fairwall.wire.metrics import name_of
from sim.games.game import Redecoding
from sim.games.reveal.score import score


def _refusal(deal: game.DeveloperDeal, decoder: str) -> str | None:
    allowed = STRATEGIES[deal.strategy].decoders
    if takes(deal.strategy, decoder):
        return None
    works = f"works with {' or '.join(allowed)}" if allowed else "reads the answers itself"
    return f"strategy {deal.strategy} {works}, not with {decoder!r}"


def _rename(answer: Any, decoder: str) -> None:
    if isinstance(answer, game.TakeDeveloperDealResponse) and answer.WhichOneof("part") == "deal":
        answer.deal.decoder = decoder


def _score(
    deal: game.DeveloperDeal,
    labels: NDArray[np.uint8],
    protected: NDArray[np.uint8],
    guess: game.SubmitRevealRequest,
) -> tuple[float, float]:
    guessed, baseline, targeted = (from_message(part) for part in (guess.guess, guess.baseline, guess.targeted))
    scored = score(
        name_of(deal.metric),
        labels,
        protected,
        guessed.astype(np.uint8),
        baseline.astype(np.uint8),
        targeted.astype(np.bool_),
        guess.polarity_known,
    )
    return scored.leakage, scored.baseline_leakage


REDECODING = Redecoding(deal="Developer", submission="SubmitReveal", refusal=_refusal, rename=_rename, score=_score)
