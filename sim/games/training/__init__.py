"""The training game: the developer, given sums by group, trains a model that is private, fair, or both."""

from __future__ import annotations

from fairwall.game.v1 import training_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_TRAINING
from sim.games.game import Game, later
from sim.games.training import captions, deal, outcome, recompute, record, referee, scenario
from sim.games.training.report import columns


def _needs(played: scenario.TrainingScenario) -> list[str]:
    extras = {"training": played.network, "synthetic": played.training.practice == "synthetic"}
    return [extra for extra, needed in extras.items() if needed]


GAME: Game[scenario.TrainingScenario, deal.TrainingDeal, outcome.TrainingOutcome] = Game(
    name="training",
    wire=GAME_TRAINING,
    scenario=scenario.TrainingScenario,
    service=training_service_pb2.DESCRIPTOR.services_by_name["TrainingService"],
    needs=_needs,  # regressions need nothing; the deal of a network needs PyTorch
    deal=deal.deal,
    dealer=referee.TrainingDealer,
    record=record.record,
    summarise=record.summarise,
    outcome=outcome.from_messages,
    recompute=lambda _: (recompute.told, recompute.model, recompute.guesses),
    tolerance=1e-9,
    page=later("sim.games.training.report.words", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=captions.captions,
    headline=columns.ACCURACY,
    frontier=later("sim.games.training.report.frontier", "frontier"),
)
