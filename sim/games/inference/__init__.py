"""The distribution-inference game, in which an outsider is to tell which group a model was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairwall.game.v1 import inference_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_INFERENCE
from fairwall.learning.backend import require_pytorch
from sim.games.game import Game, Line
from sim.games.inference import captions, deal, outcome, recompute, record, referee, scenario
from sim.games.inference.report import columns
from sim.scenarios.sweep import Sweep

if TYPE_CHECKING:
    from sim.report.page import Page


def _page(sweep: Sweep, lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    from sim.games.inference.report.words import page  # brings the drawing library

    return page(sweep, lines, summary)


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
    recompute=recompute.comparisons,
    tolerance=1e-9,  # logarithms and products of matrices differ in their last bits between processors
    page=_page,
    tables=columns.tables,
    captions=captions.captions,
    headline=columns.ADVANTAGE,
)
