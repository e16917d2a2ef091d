"""The reveal game: the developer asks for fairness gaps and guesses the protected attributes behind them."""

from __future__ import annotations

from fairwall.game.v1 import reveal_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_REVEAL
from sim.games.game import Game
from sim.games.reveal import captions, deal, outcome, recompute, record, referee, scenario

REVEAL: Game[scenario.RevealScenario, deal.RevealDeal, outcome.RevealOutcome] = Game(
    name="reveal",
    wire=GAME_REVEAL,
    scenario=scenario.RevealScenario,
    service=reveal_service_pb2.DESCRIPTOR.services_by_name["RevealService"],
    require=lambda: None,
    deal=deal.deal,
    dealer=referee.RevealDealer,
    record=record.record,
    summarise=record.summarise,
    outcome=outcome.from_messages,
    recompute=recompute.comparisons,
    tolerance=0.0,  # sums in a fixed order
    captions=captions.captions,
)
