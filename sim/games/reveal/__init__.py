"""The reveal game: the developer requests fairness gaps and guesses the protected attributes behind them."""

from __future__ import annotations

from fairwall.game.v1 import reveal_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_REVEAL
from sim.games.game import Game, later
from sim.games.reveal import columns, deal, replay, scenario, trial

GAME: Game[scenario.RevealScenario, deal.RevealDeal, trial.RevealOutcome] = Game(
    name="reveal",
    wire=GAME_REVEAL,
    scenario=scenario.RevealScenario,
    service=reveal_service_pb2.DESCRIPTOR.services_by_name["RevealService"],
    deal=deal.deal,
    dealer=trial.RevealDealer,
    record=trial.record,
    summarise=trial.summarise,
    outcome=trial.from_messages,
    recompute=replay.comparisons,
    tolerance=0.0,  # sums in a fixed order
    page=later("sim.games.reveal.page", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=replay.captions,
    headline=columns.LEAKAGE,
    redecoding=replay.REDECODING,
)
