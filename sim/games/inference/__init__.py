"""The distribution-inference game: an outsider guesses on which of two groups a model was trained."""

from __future__ import annotations

from fairwall.game.v1 import inference_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_INFERENCE
from fairwall.learning.backend import require_pytorch
from sim.games.game import Game, later
from sim.games.inference import captions, deal, outcome, recompute, record, referee, scenario
from sim.games.inference.report import columns

GAME: Game[scenario.InferenceScenario, deal.InferenceDeal, outcome.InferenceOutcome] = Game(
    name="inference",
    wire=GAME_INFERENCE,
    scenario=scenario.InferenceScenario,
    service=inference_service_pb2.DESCRIPTOR.services_by_name["InferenceService"],
    require=require_pytorch,
    needs=lambda _: ("training",),
    deal=deal.deal,
    dealer=referee.InferenceDealer,
    record=record.record,
    summarise=record.summarise,
    outcome=outcome.from_messages,
    recompute=lambda _: (recompute.compare,),
    tolerance=1e-9,  # logarithms and products of matrices differ in their last bits between processors
    page=later("sim.games.inference.report.words", "page"),  # brings the drawing library
    tables=columns.tables,
    captions=captions.captions,
    headline=columns.ADVANTAGE,
)
