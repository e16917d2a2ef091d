"""The curator game: compliance may break its promises about answers, and a regulator opens some of the answers."""

from __future__ import annotations

from fairwall.game.v1 import curator_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_CURATOR
from sim.games.curator import captions, deal, outcome, recompute, record, referee, scenario
from sim.games.curator.report import columns
from sim.games.game import Game, later

GAME: Game[scenario.CuratorScenario, deal.CuratorDeal, outcome.CuratorOutcome] = Game(
    name="curator",
    wire=GAME_CURATOR,
    scenario=scenario.CuratorScenario,
    service=curator_service_pb2.DESCRIPTOR.services_by_name["CuratorService"],
    deal=deal.deal,
    dealer=referee.CuratorDealer,
    record=record.record,
    summarise=record.summarise,
    outcome=outcome.from_messages,
    recompute=lambda _: (recompute.compare,),
    told=recompute.told,
    tolerance=1e-9,
    page=later("sim.games.curator.report.words", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=captions.captions,
    headline=columns.MOVED,
)
