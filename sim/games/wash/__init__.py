"""The washing game: a developer has one model audited and deploys another, which a customer's reports may reveal."""

from __future__ import annotations

from fairwall.game.v1 import wash_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_WASH
from sim.games.game import Game, later
from sim.games.wash import captions, deal, outcome, recompute, record, referee, scenario
from sim.games.wash.report import columns

GAME: Game[scenario.WashScenario, deal.WashDeal, outcome.WashOutcome] = Game(
    name="wash",
    wire=GAME_WASH,
    scenario=scenario.WashScenario,
    service=wash_service_pb2.DESCRIPTOR.services_by_name["WashService"],
    deal=deal.deal,
    dealer=referee.WashDealer,
    record=record.record,
    summarise=record.summarise,
    outcome=outcome.from_messages,
    recompute=lambda _: (recompute.compare,),
    tolerance=0.0,  # means of whole numbers' quotients
    page=later("sim.games.wash.report.words", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=captions.captions,
    headline=columns.WON,
)
