"""A game in one file: the referee flips a coin, compliance is dealt in and reports, and nobody is asked anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
import numpy as np
from pydantic import Field

from fairwall.game.v1 import reveal_service_pb2 as wire
from fairwall.game.v1.referee_service_pb2 import GAME_REVEAL
from fairwall.game.v1.reveal_service_pb2_grpc import RevealServiceServicer, add_RevealServiceServicer_to_server
from sim.games.cards import ComplianceCards, party_seed
from sim.games.game import Game, Line, Watch
from sim.games.submissions import report_of
from sim.games.table import GameTable, Trial
from sim.report.page import Page
from sim.scenarios.scenario import Scenario, ScenarioKeys
from sim.scenarios.sweep import Cell, Sweep


class Coin(ScenarioKeys):
    bias: float = Field(default=0.5, ge=0, le=1)


class CoinScenario(Scenario):
    coin: Coin = Coin()

    def steps(self) -> tuple[str, ...]:
        return ("ServeTrial", "SubmitAuditReport")


@dataclass(frozen=True, eq=False)
class CoinDeal:
    deal_id: str
    scenario: CoinScenario
    compliance: ComplianceCards
    heads: bool
    left_out: tuple[()] = ()


class CoinTrial(Trial):
    ended = property(lambda self: self.served)  # type: ignore[assignment]
    missing = "compliance"  # type: ignore[assignment]


@dataclass
class CoinDealer(RevealServiceServicer):
    """Has the parties of the reveal game wait until the run is over."""

    table: GameTable = field(repr=False)

    def register(self, server: grpc.Server, watch: Watch) -> None:
        add_RevealServiceServicer_to_server(watch(self), server)

    def play(self, deal: CoinDeal, seconds: float) -> float:
        trial = CoinTrial(deal)
        self.table.play(trial, seconds)
        assert trial.report is not None
        return trial.report.epsilon_spent

    def TakeDeveloperDeal(self, _request: Any, _context: Any) -> Iterator[Any]:  # noqa: N802
        yield wire.TakeDeveloperDealResponse(turn=self.table.take(CoinTrial, "", lambda _: False))

    def TakeAdversaryDeal(self, _request: Any, _context: Any) -> Iterator[Any]:  # noqa: N802
        yield wire.TakeAdversaryDealResponse(turn=self.table.take(CoinTrial, "", lambda _: False))


def deal(cell: Cell[CoinScenario], trial: int, deal_id: str, secret: bytes) -> CoinDeal:
    own = party_seed(secret, cell.scenario.scenario.seed + trial, "referee")
    groups = np.arange(6, dtype=np.uint8) % 2
    heads = bool(np.random.default_rng([*own]).random() < cell.scenario.coin.bias)
    return CoinDeal(deal_id, cell.scenario, ComplianceCards(groups, groups[::-1].copy(), own), heads)


def summarise(swept: Mapping[str, Any], lines: Sequence[Line]) -> Line:
    return {**swept, "trials": len(lines), "heads": sum(line["heads"] for line in lines)}


def page(sweep: Sweep[CoinScenario], lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    return Page("A coin was flipped.", [f"Heads: {cell['heads']}." for cell in summary], (), (), ())


GAME: Game[CoinScenario, CoinDeal, float] = Game(
    name="coin",
    wire=GAME_REVEAL,
    scenario=CoinScenario,
    service=wire.DESCRIPTOR.services_by_name["RevealService"],
    deal=deal,
    dealer=CoinDealer,
    record=lambda _cell, _trial, dealt, spent: [{"heads": dealt.heads, "epsilon_spent": spent}],
    summarise=summarise,
    outcome=lambda cell, trial, told, secret: (deal(cell, trial, told.deal_id, secret), report_of(told).epsilon_spent),
    recompute=lambda _session: (),
    tolerance=0.0,
    page=page,
    tables=lambda _sweep, _lines, _summary: (),
    captions=dict,
)
