"""The overfit game: a developer patches its model on the audited rows alone, and the population gains nothing."""

from __future__ import annotations

from fairwall.game.v1 import overfit_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_OVERFIT
from sim.games.game import Game, later
from sim.games.overfit import columns, deal, replay, scenario, trial

GAME: Game[scenario.OverfitScenario, deal.OverfitDeal, trial.OverfitOutcome] = Game(
    name="overfit",
    wire=GAME_OVERFIT,
    scenario=scenario.OverfitScenario,
    service=overfit_service_pb2.DESCRIPTOR.services_by_name["OverfitService"],
    deal=deal.deal,
    dealer=trial.OverfitDealer,
    record=trial.record,
    summarise=trial.summarise,
    outcome=trial.from_messages,
    recompute=lambda _: (replay.compare,),
    tolerance=1e-9,
    page=later("sim.games.overfit.page", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=replay.captions,
    headline=columns.OVERFIT,
)
