"""The reveal game: the developer requests fairness gaps and guesses the protected attributes behind them."""

from __future__ import annotations

from fairwall.game.v1 import reveal_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_REVEAL
from sim.games.game import Game, later
from sim.games.reveal import captions, deal, outcome, recompute, record, redecoding, referee, scenario
from sim.games.reveal.report import columns

GAME: Game[scenario.RevealScenario, deal.RevealDeal, outcome.RevealOutcome] = Game(
    name="reveal",
    wire=GAME_REVEAL,
    scenario=scenario.RevealScenario,
    service=reveal_service_pb2.DESCRIPTOR.services_by_name["RevealService"],
    deal=deal.deal,
    dealer=referee.RevealDealer,
    record=record.record,
    summarise=record.summarise,
    outcome=outcome.from_messages,
    recompute=recompute.comparisons,
    tolerance=0.0,  # sums in a fixed order
    page=later("sim.games.reveal.report.words", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=captions.captions,
    headline=columns.LEAKAGE,
    redecoding=redecoding.REDECODING,
)
