"""The disclosure game: what a study's release tells of one person, with her in the study and without her."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairwall.game.v1 import disclosure_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_DISCLOSURE
from sim.games.disclosure import captions, deal, outcome, recompute, record, referee, scenario
from sim.games.disclosure.report import columns
from sim.games.game import Game, Line
from sim.scenarios.sweep import Sweep

if TYPE_CHECKING:
    from sim.report.page import Page


def _page(sweep: Sweep, lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    from sim.games.disclosure.report.words import page  # brings the drawing library

    return page(sweep, lines, summary)


GAME: Game[scenario.DisclosureScenario, deal.DisclosureDeal, outcome.DisclosureOutcome] = Game(
    name="disclosure",
    wire=GAME_DISCLOSURE,
    scenario=scenario.DisclosureScenario,
    service=disclosure_service_pb2.DESCRIPTOR.services_by_name["DisclosureService"],
    require=lambda: None,
    deal=deal.deal,
    dealer=referee.DisclosureDealer,
    record=record.record,
    summarise=record.summarise,
    outcome=outcome.from_messages,
    recompute=lambda _: (recompute.compare,),
    tolerance=1e-9,
    page=_page,
    tables=columns.tables,
    captions=captions.captions,
    headline=columns.POSTERIOR,
)
