"""The release game: compliance releases sensitive attributes sanitised, for a developer to train on."""

from __future__ import annotations

from developer.release.training import require_lightgbm
from fairwall.game.v1 import release_game_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_RELEASE
from sim.games.game import Game, later
from sim.games.release import columns, deal, replay, scenario, trial

GAME: Game[scenario.ReleaseScenario, deal.ReleaseDeal, trial.ReleaseOutcome] = Game(
    name="release",
    wire=GAME_RELEASE,
    scenario=scenario.ReleaseScenario,
    service=release_game_service_pb2.DESCRIPTOR.services_by_name["ReleaseGameService"],
    require=require_lightgbm,
    needs=lambda _: ("release",),
    deal=deal.deal,
    dealer=trial.ReleaseDealer,
    record=trial.record,
    summarise=trial.summarise,
    outcome=trial.from_messages,
    recompute=lambda _: (replay.compare,),
    tolerance=1e-12,
    page=later("sim.games.release.page", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=replay.captions,
    headline=columns.MEASURES["leakage"],
)
