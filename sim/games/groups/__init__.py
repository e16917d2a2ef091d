"""The game of groups: the reveal game for any number of groups, with noisy counts by group as the answers."""

from __future__ import annotations

from fairwall.game.v1 import group_game_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_GROUPS
from sim.games.game import Game, later
from sim.games.groups import columns, deal, replay, scenario, trial

GAME: Game[scenario.GroupsScenario, deal.GroupsDeal, trial.GroupsOutcome] = Game(
    name="groups",
    wire=GAME_GROUPS,
    scenario=scenario.GroupsScenario,
    service=group_game_service_pb2.DESCRIPTOR.services_by_name["GroupGameService"],
    deal=deal.deal,
    dealer=trial.GroupsDealer,
    record=trial.record,
    summarise=trial.summarise,
    outcome=trial.from_messages,
    recompute=lambda _: (replay.compare,),
    tolerance=0.0,  # means of whole numbers' quotients
    page=later("sim.games.groups.page", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=replay.captions,
    headline=columns.LEAKAGE,
)
