"""The release game: compliance releases sensitive attributes sanitised, for a developer to train on."""

from __future__ import annotations

from developer.release.training import require_lightgbm
from fairwall.game.v1 import release_game_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_RELEASE
from sim.games.game import Game, later
from sim.games.release import captions, deal, outcome, recompute, record, referee, scenario
from sim.games.release.report import columns

GAME: Game[scenario.ReleaseScenario, deal.ReleaseDeal, outcome.ReleaseOutcome] = Game(
    name="release",
    wire=GAME_RELEASE,
    scenario=scenario.ReleaseScenario,
    service=release_game_service_pb2.DESCRIPTOR.services_by_name["ReleaseGameService"],
    require=require_lightgbm,
    needs=lambda _: ("release",),
    deal=deal.deal,
    dealer=referee.ReleaseDealer,
    record=record.record,
    summarise=record.summarise,
    outcome=outcome.from_messages,
    recompute=lambda _: (recompute.compare,),
    tolerance=1e-12,
    page=later("sim.games.release.report.words", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=captions.captions,
    headline=columns.MEASURES["leakage"],
)
