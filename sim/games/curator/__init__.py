"""The curator game: compliance may break its promises about answers, and a regulator opens some of the answers."""

from __future__ import annotations

from fairwall.game.v1 import curator_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_CURATOR
from sim.games.curator import columns, deal, replay, scenario, trial
from sim.games.game import Game, later

GAME: Game[scenario.CuratorScenario, deal.CuratorDeal, trial.CuratorOutcome] = Game(
    name="curator",
    wire=GAME_CURATOR,
    scenario=scenario.CuratorScenario,
    service=curator_service_pb2.DESCRIPTOR.services_by_name["CuratorService"],
    deal=deal.deal,
    dealer=trial.CuratorDealer,
    record=trial.record,
    summarise=trial.summarise,
    outcome=trial.from_messages,
    recompute=lambda _: (replay.compare,),
    told=replay.told,
    tolerance=1e-9,
    page=later("sim.games.curator.page", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=replay.captions,
    headline=columns.MOVED,
)
