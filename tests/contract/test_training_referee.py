"""The training game's dealer over mTLS, played by hand: who is dealt what and when, and which submissions it takes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import grpc
import numpy as np
import pytest

from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1 import training_service_pb2 as training
from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceStub, add_RefereeServiceServicer_to_server
from fairwall.game.v1.training_service_pb2_grpc import TrainingServiceStub
from fairwall.rpc.arrays import to_message
from fairwall.rpc.turns import collect
from fairwall.wire.v1 import error_pb2 as error
from sim import games
from sim.games import table as tables
from sim.games.referee import Referee
from sim.games.training.deal import TrainingDeal, deal
from sim.games.training.trial import TrainingDealer, TrainingOutcome
from tests.contract.received import leaks
from tests.contract.refused import refusal


def dealt(*, canaries: int = 6, model: str = "fair-lr", holds: bool = False) -> TrainingDeal:
    values = {
        "scenario": {"name": "hand-played", "game": "training", "seed": 3},
        "data": {"source": "german", "protected": "sex", "people": 100},
        "compliance": {"mechanism": "gaussian", "epsilon": 1.0, "delta": 1e-5},
        "training": {"model": model, "canaries": canaries, "holds_protected": holds},
    }
    return deal(games.lay_out(values, "hand-played").cells[0], 0, "deal-1")


@dataclass
class Seats:
    dealer: TrainingDealer
    compliance: RefereeServiceStub
    developer: TrainingServiceStub
    adversary: TrainingServiceStub

    def compliances(self) -> list[Any]:
        return list(self.compliance.TakeComplianceDeal(game.TakeComplianceDealRequest(), timeout=300))

    def developers(self, after: str = "") -> list[Any]:
        return list(self.developer.TakeModelDeal(training.TakeModelDealRequest(after_deal_id=after), timeout=300))

    def adversaries(self, after: str = "") -> list[Any]:
        return list(self.adversary.TakeCanaryDeal(training.TakeCanaryDealRequest(after_deal_id=after), timeout=300))

    def serve(self) -> None:
        self.compliance.ServeTrial(game.ServeTrialRequest(deal_id="deal-1"), timeout=300)

    def submit(self, request: training.SubmitModelRequest) -> None:
        self.developer.SubmitModel(request, timeout=300)

    def guess(self, guesses: Any, deal_id: str = "deal-1") -> None:
        request = training.SubmitCanariesRequest(deal_id=deal_id, guesses=to_message(np.asarray(guesses)))
        self.adversary.SubmitCanaries(request, timeout=300)

    def report(self) -> None:
        self.compliance.SubmitAuditReport(
            game.SubmitAuditReportRequest(deal_id="deal-1", epsilon_spent=0.5), timeout=300
        )


@pytest.fixture
def seats(serve: Any, dial: Any, credentials: Any, monkeypatch: pytest.MonkeyPatch) -> Seats:
    monkeypatch.setattr(tables, "_WAIT_SECONDS", 0.05)
    table = tables.GameTable()
    referee, dealer = Referee("run-1", "digest", game.GAME_TRAINING, table), TrainingDealer(table)

    def register(server: grpc.Server) -> None:
        add_RefereeServiceServicer_to_server(referee, server)
        dealer.register(server, lambda servicer: servicer)

    address = serve(register, credentials["referee"])
    doors = {name: dial(address, "referee", credentials[name]) for name in ("compliance", "developer", "adversary")}
    return Seats(
        dealer,
        RefereeServiceStub(doors["compliance"]),
        TrainingServiceStub(doors["developer"]),
        TrainingServiceStub(doors["adversary"]),
    )


Play = Callable[[TrainingDeal], Future[TrainingOutcome]]


@pytest.fixture
def play(seats: Seats) -> Iterator[Play]:
    """Have the dealer play a deal; what comes of it."""
    with ThreadPoolExecutor(1) as runner:

        def start(cards: TrainingDeal) -> Future[TrainingOutcome]:
            future = runner.submit(seats.dealer.play, cards, 20.0)
            while seats.dealer.table._trial is None:
                time.sleep(0.001)
            return future

        yield start
        seats.dealer.table.abort("the test is over")


def waits(parts: list[Any]) -> bool:
    return len(parts) == 1 and bool(parts[0].turn == game.TURN_WAIT)


def sound(cards: TrainingDeal, **more: Any) -> training.SubmitModelRequest:
    rows = len(cards.test.labels)
    fields = {
        "deal_id": "deal-1",
        "scores": to_message(np.full(rows, 0.5, np.float32)),
        "decisions": to_message(np.ones((1, rows), np.uint8)),
        "epsilon": math.inf,
        **more,
    }
    return training.SubmitModelRequest(**fields)


def test_each_party_is_dealt_in_in_its_turn_and_gets_its_own_cards_alone(seats: Seats, play: Play) -> None:
    cards = dealt()
    future = play(cards)
    assert waits(seats.developers())
    assert waits(seats.adversaries())
    assert refusal(lambda: seats.submit(sound(cards))) == error.REASON_OUT_OF_TURN, "compliance does not serve yet"
    groups = seats.compliances()
    assert np.array_equal(collect(groups[0].deal, groups[1:])["protected"], cards.people.protected)
    seats.serve()
    got = seats.developers()
    arrays = collect(got[0].deal, got[1:])
    assert sorted(arrays) == ["features", "labels", "test_features"]
    assert np.array_equal(arrays["features"], cards.people.features)
    assert np.array_equal(arrays["labels"], cards.people.labels)
    assert np.array_equal(arrays["test_features"], cards.test.features)
    assert (got[0].deal.statistics.epsilon, got[0].deal.holds_protected) == (1.0, False)
    for column in (cards.people.protected, cards.test.protected, cards.test.labels):
        assert not leaks(got, column)
    assert waits(seats.adversaries())
    assert refusal(lambda: seats.guess(np.zeros(6, np.uint8))) == error.REASON_OUT_OF_TURN, "there is no model yet"
    seats.submit(sound(cards))
    told = seats.adversaries()
    arrays = collect(told[0].deal, told[1:])
    assert sorted(arrays) == ["features", "labels"]
    assert np.array_equal(arrays["features"], cards.canaries.features)
    assert np.array_equal(arrays["labels"], cards.canaries.labels)
    seats.guess(np.array([0, 1, 2, 0, 1, 2], np.uint8))
    seats.report()
    came = future.result(10)
    assert came.report is not None
    assert came.report.epsilon_spent == 0.5
    assert came.guesses is not None
    assert came.guesses.tolist() == [0, 1, 2, 0, 1, 2]


def test_a_developer_that_holds_the_groups_is_dealt_them_and_asks_nobody(seats: Seats, play: Play) -> None:
    cards = dealt(canaries=0, holds=True)
    future = play(cards)
    got = seats.developers()
    assert got[0].deal.holds_protected
    assert not got[0].deal.HasField("statistics")
    assert np.array_equal(collect(got[0].deal, got[1:])["protected"], cards.people.protected)
    assert waits(seats.compliances())
    assert refusal(lambda: seats.guess(np.zeros(0, np.uint8))) == error.REASON_OUT_OF_TURN, "there are no canaries"
    seats.submit(sound(cards))
    came = future.result(10)
    assert (came.guesses, came.report) == (None, None)
    assert waits(seats.adversaries())


def bad(**more: Any) -> Mapping[str, Any]:
    return more


ROWS = 200
STEP = training.PrivateStep
NOT_TAKEN: dict[str, Mapping[str, Any]] = {
    "a row too few": bad(scores=to_message(np.zeros(ROWS - 1, np.float32))),
    "double precision": bad(scores=to_message(np.zeros(ROWS))),
    "a score above 1": bad(scores=to_message(np.full(ROWS, 1.5, np.float32))),
    "a score that is NaN": bad(scores=to_message(np.full(ROWS, np.nan, np.float32))),
    "no decisions": bad(decisions=to_message(np.zeros((0, ROWS), np.uint8))),
    "three rows of decisions": bad(decisions=to_message(np.zeros((3, ROWS), np.uint8))),
    "one axis of decisions": bad(decisions=to_message(np.zeros(ROWS, np.uint8))),
    "a decision of 2": bad(decisions=to_message(np.full((1, ROWS), 2, np.uint8))),
    "epsilon below 0": bad(epsilon=-1.0),
    "delta of 1": bad(delta=1.0),
    "delta below 0": bad(delta=-1e-9),
    "one group's epsilon": bad(group_epsilons=[1.0]),
    "a group's epsilon that is NaN": bad(group_epsilons=[1.0, math.nan]),
    "a step below 0": bad(steps=[STEP(what="w", epsilon=-1.0)]),
    "a step's delta of 1": bad(steps=[STEP(what="w", epsilon=1.0, delta=1.0)]),
    "rates of a model": bad(rates=[0.5, 0.5]),
}


def test_a_submission_that_does_not_fit_is_refused_and_one_that_was_taken_is_not_changed(
    seats: Seats, play: Play
) -> None:
    cards = dealt(canaries=6, model="lr")
    assert len(cards.test.labels) == ROWS
    future = play(cards)
    for name, change in NOT_TAKEN.items():
        assert refusal(lambda change=change: seats.submit(sound(cards, **change))) == error.REASON_SUBMISSION_INVALID, (
            name
        )  # type: ignore[misc]
    assert refusal(lambda: seats.submit(sound(cards, deal_id="deal-2"))) == error.REASON_OUT_OF_TURN
    seats.submit(sound(cards, group_epsilons=[1.0, math.inf]))
    seats.submit(sound(cards, group_epsilons=[1.0, math.inf]))
    assert refusal(lambda: seats.submit(sound(cards))) == error.REASON_OUT_OF_TURN
    for guesses in (np.zeros(5, np.uint8), np.full(6, 3, np.uint8), np.zeros(6), np.zeros((1, 6), np.uint8)):
        assert refusal(lambda guesses=guesses: seats.guess(guesses)) == error.REASON_SUBMISSION_INVALID  # type: ignore[misc]
    seats.guess(np.full(6, 2, np.uint8))
    came = future.result(10)
    assert came.model.group_epsilons == (1.0, math.inf)


def test_rates_are_two_numbers_and_no_model(seats: Seats, play: Play) -> None:
    cards = dealt(canaries=0, model="rates")
    play(cards)
    seats.serve()
    nothing = {"scores": to_message(np.empty(0, np.float32)), "decisions": to_message(np.empty((1, 0), np.uint8))}
    for rates in ((), (0.5,), (0.5, 1.5), (0.5, math.nan), (0.1, 0.2, 0.3)):
        asked = sound(cards, **nothing, rates=rates)
        assert refusal(lambda asked=asked: seats.submit(asked)) == error.REASON_SUBMISSION_INVALID  # type: ignore[misc]
    assert refusal(lambda: seats.submit(sound(cards, rates=(0.5, 0.5)))) == error.REASON_SUBMISSION_INVALID
    seats.submit(sound(cards, **nothing, rates=(0.25, 0.75)))
    assert refusal(lambda: seats.submit(sound(cards, **nothing, rates=(0.25, 0.5)))) == error.REASON_OUT_OF_TURN
