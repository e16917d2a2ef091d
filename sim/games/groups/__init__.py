"""The game of groups: the reveal game for any number of groups, with noisy counts by group as the answers."""

from __future__ import annotations

from fairwall.game.v1 import group_game_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_GROUPS
from sim.games.game import Game, later
from sim.games.groups import captions, deal, outcome, recompute, record, referee, scenario
from sim.games.groups.report import columns

GAME: Game[scenario.GroupsScenario, deal.GroupsDeal, outcome.GroupsOutcome] = Game(
    name="groups",
    wire=GAME_GROUPS,
    scenario=scenario.GroupsScenario,
    service=group_game_service_pb2.DESCRIPTOR.services_by_name["GroupGameService"],
    deal=deal.deal,
    dealer=referee.GroupsDealer,
    record=record.record,
    summarise=record.summarise,
    outcome=outcome.from_messages,
    recompute=lambda _: (recompute.compare,),
    tolerance=0.0,  # means of whole numbers' quotients
    page=later("sim.games.groups.report.words", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=captions.captions,
    headline=columns.LEAKAGE,
)
