"""The washing game: a developer has one model audited and deploys another, which a customer's reports may reveal."""

from __future__ import annotations

from fairwall.game.v1 import wash_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_WASH
from sim.games.game import Game, later
from sim.games.wash import columns, deal, replay, scenario, trial

GAME: Game[scenario.WashScenario, deal.WashDeal, trial.WashOutcome] = Game(
    name="wash",
    wire=GAME_WASH,
    scenario=scenario.WashScenario,
    service=wash_service_pb2.DESCRIPTOR.services_by_name["WashService"],
    deal=deal.deal,
    dealer=trial.WashDealer,
    record=trial.record,
    summarise=trial.summarise,
    outcome=trial.from_messages,
    recompute=lambda _: (replay.compare,),
    tolerance=0.0,  # means of whole numbers' quotients
    page=later("sim.games.wash.page", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=replay.captions,
    headline=columns.WON,
)
