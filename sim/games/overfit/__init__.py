"""The overfit game: a developer patches its model on the audited rows alone, and the population gains nothing."""

from __future__ import annotations

from fairwall.game.v1 import overfit_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_OVERFIT
from sim.games.game import Game, later
from sim.games.overfit import captions, deal, outcome, recompute, record, referee, scenario
from sim.games.overfit.report import columns

GAME: Game[scenario.OverfitScenario, deal.OverfitDeal, outcome.OverfitOutcome] = Game(
    name="overfit",
    wire=GAME_OVERFIT,
    scenario=scenario.OverfitScenario,
    service=overfit_service_pb2.DESCRIPTOR.services_by_name["OverfitService"],
    deal=deal.deal,
    dealer=referee.OverfitDealer,
    record=record.record,
    summarise=record.summarise,
    outcome=outcome.from_messages,
    recompute=lambda _: (recompute.compare,),
    tolerance=1e-9,
    page=later("sim.games.overfit.report.words", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=captions.captions,
    headline=columns.OVERFIT,
)
