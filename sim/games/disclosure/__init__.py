"""The disclosure game: a study's release reveals a secret about one person, whether or not she is in the study."""

from __future__ import annotations

from fairwall.game.v1 import disclosure_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_DISCLOSURE
from sim.games.disclosure import captions, deal, outcome, recompute, record, referee, scenario
from sim.games.disclosure.report import columns
from sim.games.game import Game, later

GAME: Game[scenario.DisclosureScenario, deal.DisclosureDeal, outcome.DisclosureOutcome] = Game(
    name="disclosure",
    wire=GAME_DISCLOSURE,
    scenario=scenario.DisclosureScenario,
    service=disclosure_service_pb2.DESCRIPTOR.services_by_name["DisclosureService"],
    deal=deal.deal,
    dealer=referee.DisclosureDealer,
    record=record.record,
    summarise=record.summarise,
    outcome=outcome.from_messages,
    recompute=lambda _: (recompute.compare,),
    tolerance=1e-9,
    page=later("sim.games.disclosure.report.words", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=captions.captions,
    headline=columns.POSTERIOR,
)
