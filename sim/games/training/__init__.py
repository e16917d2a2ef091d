"""The training game: the developer, given sums by group, trains a model that is private, fair, or both."""

from __future__ import annotations

from fairwall.game.v1 import training_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_TRAINING
from sim.games.game import Game, later
from sim.games.training import columns, deal, replay, scenario, trial


def _needs(played: scenario.TrainingScenario) -> list[str]:
    extras = {"training": played.network, "synthetic": played.training.practice == "synthetic"}
    return [extra for extra, needed in extras.items() if needed]


GAME: Game[scenario.TrainingScenario, deal.TrainingDeal, trial.TrainingOutcome] = Game(
    name="training",
    wire=GAME_TRAINING,
    scenario=scenario.TrainingScenario,
    service=training_service_pb2.DESCRIPTOR.services_by_name["TrainingService"],
    needs=_needs,  # regressions need nothing; the deal of a network needs PyTorch
    deal=deal.deal,
    dealer=trial.TrainingDealer,
    record=trial.record,
    summarise=trial.summarise,
    outcome=trial.from_messages,
    recompute=lambda _: (replay.told, replay.model, replay.guesses),
    tolerance=1e-9,
    page=later("sim.games.training.page", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=replay.captions,
    headline=columns.ACCURACY,
    frontier=later("sim.games.training.frontier", "frontier"),
)
