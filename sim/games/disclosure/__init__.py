"""The disclosure game: a study's release reveals a secret about one person, whether or not she is in the study."""

from __future__ import annotations

from fairwall.game.v1 import disclosure_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_DISCLOSURE
from sim.games.disclosure import columns, deal, replay, scenario, trial
from sim.games.game import Game, later

GAME: Game[scenario.DisclosureScenario, deal.DisclosureDeal, trial.DisclosureOutcome] = Game(
    name="disclosure",
    wire=GAME_DISCLOSURE,
    scenario=scenario.DisclosureScenario,
    service=disclosure_service_pb2.DESCRIPTOR.services_by_name["DisclosureService"],
    deal=deal.deal,
    dealer=trial.DisclosureDealer,
    record=trial.record,
    summarise=trial.summarise,
    outcome=trial.from_messages,
    recompute=lambda _: (replay.compare,),
    tolerance=1e-9,
    page=later("sim.games.disclosure.page", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=replay.captions,
    headline=columns.POSTERIOR,
)
