"""The reveal game: the developer asks for fairness gaps and guesses the protected attributes behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairwall.game.v1 import reveal_service_pb2
from fairwall.game.v1.referee_service_pb2 import GAME_REVEAL
from sim.games.game import Game, Line
from sim.games.reveal import captions, deal, outcome, recompute, record, redecoding, referee, scenario
from sim.report.columns import Measure
from sim.scenarios.sweep import Sweep

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sim.report.page import Page


def _page(sweep: Sweep, lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    from sim.games.reveal.report.page import page  # brings the drawing library

    return page(sweep, lines, summary)


def _terminal(sweep: Sweep, lines: Sequence[Line], summary: Sequence[Line]) -> RenderableType:
    from rich.console import Group

    from sim.games.reveal.report import printed
    from sim.games.reveal.report.cells import report_cells
    from sim.games.reveal.report.terminal import terminal
    from sim.report.terminal import fitted

    table = printed.table(sweep, report_cells(sweep, lines, summary))
    return Group(terminal(sweep, summary), *([fitted(table)] if table.rows else []))


GAME: Game[scenario.RevealScenario, deal.RevealDeal, outcome.RevealOutcome] = Game(
    name="reveal",
    wire=GAME_REVEAL,
    scenario=scenario.RevealScenario,
    service=reveal_service_pb2.DESCRIPTOR.services_by_name["RevealService"],
    require=lambda: None,
    deal=deal.deal,
    dealer=referee.RevealDealer,
    record=record.record,
    summarise=record.summarise,
    outcome=outcome.from_messages,
    recompute=recompute.comparisons,
    tolerance=0.0,  # sums in a fixed order
    page=_page,
    terminal=_terminal,
    captions=captions.captions,
    headline=Measure(
        "leakage",
        unit="%",
        about="how right the developer is about who is of which group, both groups counted equally",
        scale=(50.0, 100.0),
    ),
    redecoding=redecoding.REDECODING,
)
