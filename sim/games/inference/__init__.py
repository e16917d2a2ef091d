"""The distribution-inference game: an outsider guesses on which of two groups a model was trained."""

from __future__ import annotations

from fairwall.game.v1 import inference_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_INFERENCE
from fairwall.learning.backend import require_pytorch
from sim.games.game import Game, later
from sim.games.inference import columns, deal, replay, scenario, trial

GAME: Game[scenario.InferenceScenario, deal.InferenceDeal, trial.InferenceOutcome] = Game(
    name="inference",
    wire=GAME_INFERENCE,
    scenario=scenario.InferenceScenario,
    service=inference_service_pb2.DESCRIPTOR.services_by_name["InferenceService"],
    require=require_pytorch,
    needs=lambda _: ("training",),
    deal=deal.deal,
    dealer=trial.InferenceDealer,
    record=trial.record,
    summarise=trial.summarise,
    outcome=trial.from_messages,
    recompute=lambda _: (replay.compare,),
    tolerance=1e-9,  # logarithms and products of matrices differ in their last bits between processors
    page=later("sim.games.inference.page", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=replay.captions,
    headline=columns.ADVANTAGE,
)
