"""Sums by group over mTLS: drawn and charged once, within the budget, of rows that are bounded, for the developer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import grpc
import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.answers.statistics import (
    MULTIPLIER_MAX,
    MULTIPLIER_MIN,
    WIDTH_MAX,
    Cohort,
    StatisticsService,
    game_cohort,
)
from fairwall.compliance.v1 import statistics_service_pb2 as wire
from fairwall.compliance.v1.statistics_service_pb2_grpc import (
    StatisticsServiceStub,
    add_StatisticsServiceServicer_to_server,
)
from fairwall.laws.noise.gaussian import gaussian_epsilon
from fairwall.rpc.arrays import from_message, header_of
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2 as error
from tests.contract.refused import refusal

PROTECTED = np.array([0, 1, 1, 0, 1], dtype=np.uint8)
ROWS = np.array([[0.6, 0.8], [1.0, 0.0], [0.0, 0.0], [-0.5, 0.5], [0.1, -0.2]])
EPSILON, DELTA, MULTIPLIER = 1.0, 1e-5, 6.0


def opened(protected: NDArray[np.uint8] = PROTECTED, seed: bytes | None = b"seed") -> Cohort:
    return game_cohort("deal", protected, EPSILON, DELTA, seed)


@pytest.fixture
def cohorts() -> dict[str, Cohort]:
    return {"deal": opened()}


@pytest.fixture
def address(serve: Any, credentials: Any, cohorts: dict[str, Cohort]) -> str:
    def register(server: Any) -> None:
        add_StatisticsServiceServicer_to_server(StatisticsService(cohorts), server)

    found: str = serve(register, credentials["compliance"])
    return found


@pytest.fixture
def statistics(address: str, dial: Any, credentials: Any) -> StatisticsServiceStub:
    return StatisticsServiceStub(dial(address, "compliance", credentials["developer"]))


Parts = Sequence[wire.SumByGroupRequest]


def parts(rows: NDArray[Any] = ROWS, request_id: str = "r", multiplier: float = MULTIPLIER, **header: Any) -> Parts:
    fields = {"request_id": request_id, "deal_id": "deal", "multiplier": multiplier, "rows": header_of(rows), **header}
    first = wire.SumByGroupRequest(header=wire.SumsHeader(**fields))
    return first, wire.SumByGroupRequest(rows_chunk=rows.tobytes())


def ask(statistics: StatisticsServiceStub, asked: Parts) -> wire.SumByGroupResponse:
    answer: wire.SumByGroupResponse = statistics.SumByGroup(iter(asked), timeout=300)
    return answer


def test_sums_are_drawn_and_charged_once(statistics: StatisticsServiceStub, cohorts: dict[str, Cohort]) -> None:
    first = ask(statistics, parts())
    assert from_message(first.sums).shape == (2, 3)
    assert first.epsilon_charged == gaussian_epsilon(MULTIPLIER, DELTA)
    assert first.epsilon_remaining == pytest.approx(EPSILON - first.epsilon_charged, abs=1e-3)
    assert ask(statistics, parts()) == first
    assert cohorts["deal"].spent == pytest.approx(first.epsilon_charged, abs=1e-3)
    # Other noise, under another id, and another charge; in one composition, which is less than the sum.
    second = ask(statistics, parts(request_id="other"))
    assert not np.any(from_message(second.sums) == from_message(first.sums))
    assert second.epsilon_charged == first.epsilon_charged
    assert first.epsilon_charged < cohorts["deal"].spent < 2 * first.epsilon_charged


def test_without_much_noise_they_are_the_groups_sums_and_sizes(
    statistics: StatisticsServiceStub, cohorts: dict[str, Cohort]
) -> None:
    cohorts["deal"] = game_cohort("deal", PROTECTED, math.inf, DELTA, None)
    told = from_message(ask(statistics, parts(multiplier=MULTIPLIER_MIN)).sums)
    exact = [[*ROWS[group == PROTECTED].sum(axis=0), np.count_nonzero(group == PROTECTED)] for group in (0, 1)]
    assert np.allclose(told, exact, rtol=0, atol=2e-3 * 7)  # 12 numbers: beyond 7 deviations in 3e-11 of the runs


@pytest.mark.parametrize("rows", [ROWS + 1e-9, ROWS[:, :1], -ROWS], ids=["a crumb more", "a column less", "negated"])
def test_other_rows_under_a_used_id_are_refused(
    statistics: StatisticsServiceStub, cohorts: dict[str, Cohort], rows: NDArray[np.float64]
) -> None:
    ask(statistics, parts(ROWS * 0.9))
    spent = cohorts["deal"].spent
    assert refusal(lambda: ask(statistics, parts(rows * 0.9))) == error.REASON_REQUEST_ID_REUSED
    assert refusal(lambda: ask(statistics, parts(ROWS * 0.9, multiplier=7.0))) == error.REASON_REQUEST_ID_REUSED
    assert cohorts["deal"].spent == spent


def test_what_the_budget_does_not_cover_is_refused_and_costs_nothing(
    statistics: StatisticsServiceStub, cohorts: dict[str, Cohort]
) -> None:
    assert refusal(lambda: ask(statistics, parts(multiplier=2.0))) == error.REASON_BUDGET_EXHAUSTED
    assert cohorts["deal"].spent == 0
    told = 0
    while cohorts["deal"].spent + 0.2 < EPSILON:
        ask(statistics, parts(request_id=f"r{told}"))
        told += 1
    spent = cohorts["deal"].spent
    assert told > 1
    assert refusal(lambda: ask(statistics, parts(request_id="one more"))) == error.REASON_BUDGET_EXHAUSTED
    # What was bought is told all the same.
    assert ask(statistics, parts(request_id="r0")).epsilon_charged == gaussian_epsilon(MULTIPLIER, DELTA)
    assert cohorts["deal"].spent == spent
    # Gaussian losses compose whatever their multipliers: much noise is still within the budget.
    ask(statistics, parts(request_id="r", multiplier=50.0))
    together = (told / MULTIPLIER**2 + 1 / 50.0**2) ** -0.5
    assert cohorts["deal"].spent == pytest.approx(gaussian_epsilon(together, DELTA), rel=1e-4)
    assert spent < cohorts["deal"].spent < EPSILON


def changed(at: tuple[int, int], value: float) -> NDArray[np.float64]:
    rows = ROWS.copy()
    rows[at] = value
    return rows


def of_shape(*shape: int) -> Parts:
    header = header_of(ROWS)
    del header.shape[:]
    header.shape.extend(shape)
    first, *rest = parts()
    first.header.rows.CopyFrom(header)
    return first, *rest


NOT_A_MULTIPLIER = (0.0, -1.0, math.nan, math.inf, -math.inf, 5e-324, MULTIPLIER_MIN / 2, MULTIPLIER_MAX * 2)
REFUSED: dict[str, tuple[Parts, error.Reason]] = {
    "no message": ((), error.REASON_REQUEST_MALFORMED),
    "no header": (parts()[1:], error.REASON_REQUEST_MALFORMED),
    "two headers": ((parts()[0], *parts()), error.REASON_REQUEST_MALFORMED),
    "an empty message": ((wire.SumByGroupRequest(),), error.REASON_REQUEST_MALFORMED),
    "no rows": (parts()[:1], error.REASON_REQUEST_MALFORMED),
    "too many bytes": ((*parts(), parts()[1]), error.REASON_REQUEST_MALFORMED),
    "another deal": (parts(deal_id="other"), error.REASON_DEAL_UNKNOWN),
    "no request id": (parts(request_id=""), error.REASON_REQUEST_ID_INVALID),
    "a request id too long": (parts(request_id="r" * 65), error.REASON_REQUEST_ID_INVALID),
    **{
        f"a multiplier of {number}": (parts(multiplier=number), error.REASON_EPSILON_INVALID)
        for number in NOT_A_MULTIPLIER
    },
    "a row longer than 1": (parts(changed((0, 0), 0.61)), error.REASON_ROWS_TOO_LONG),
    "a row longer than rounding makes it": (parts(changed((1, 0), 1 + 1e-8)), error.REASON_ROWS_TOO_LONG),
    "a row longer than any number": (parts(changed((1, 0), 1e300)), error.REASON_ROWS_TOO_LONG),
    "a NaN": (parts(changed((2, 1), math.nan)), error.REASON_FEATURES_NOT_FINITE),
    "an infinity": (parts(changed((2, 1), -math.inf)), error.REASON_FEATURES_NOT_FINITE),
    "a person too few": (parts(ROWS[:-1]), error.REASON_FEATURES_SHAPE),
    "a person too many": (parts(np.vstack([ROWS, ROWS[:1]])), error.REASON_FEATURES_SHAPE),
    "no column": (parts(ROWS[:, :0]), error.REASON_FEATURES_SHAPE),
    "too wide": (parts(np.zeros((5, WIDTH_MAX + 1))), error.REASON_FEATURES_SHAPE),
    "one axis": (of_shape(10), error.REASON_FEATURES_SHAPE),
    "three axes": (of_shape(5, 2, 1), error.REASON_FEATURES_SHAPE),
    "columns without end": (of_shape(5, 2**64 - 1), error.REASON_FEATURES_SHAPE),
    "no shape": (of_shape(), error.REASON_FEATURES_SHAPE),
    "single precision": (parts(ROWS.astype(np.float32)), error.REASON_REQUEST_MALFORMED),
    "bits": (parts(np.ones((5, 2), np.uint8)), error.REASON_REQUEST_MALFORMED),
}
WORLDS = [np.array(bits, dtype=np.uint8) for bits in product((0, 1), repeat=len(PROTECTED))]


def test_what_makes_no_sense_is_refused_for_a_closed_reason_and_costs_nothing(
    statistics: StatisticsServiceStub, cohorts: dict[str, Cohort]
) -> None:
    for what, (asked, reason) in REFUSED.items():
        assert refusal(lambda asked=asked: ask(statistics, asked)) == reason, what  # type: ignore[misc]
        assert cohorts["deal"].spent == 0, what
    # The id was not used up.
    assert ask(statistics, parts()).epsilon_charged > 0


class Careful(StatisticsService):
    """Broken: it refuses rows of a group that nobody is in."""

    def SumByGroup(  # noqa: N802
        self, request_iterator: Iterator[wire.SumByGroupRequest], context: Any
    ) -> wire.SumByGroupResponse:
        if len(set(self._cohorts["deal"].protected.tolist())) < 2:
            raise Refusal(error.REASON_FEATURES_SHAPE)
        return super().SumByGroup(request_iterator, context)


def outcomes(statistics: StatisticsServiceStub, cohorts: dict[str, Cohort], asked: Parts) -> set[Any]:
    """How a request fares, whatever the people's attributes are: its refusal, or the charge and the answer's shape."""
    seen: set[Any] = set()
    for protected in WORLDS:
        cohorts["deal"] = opened(protected)
        try:
            answer = ask(statistics, asked)
        except grpc.RpcError:
            seen.add(refusal(lambda: ask(statistics, asked)))
        else:
            seen.add((answer.epsilon_charged, answer.epsilon_remaining, from_message(answer.sums).shape))
    return seen


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "name", ["a row longer than 1", "a NaN", "a person too few", "a multiplier of 0.0", "sound", "spent"]
)
def test_refusals_and_charges_are_the_same_whatever_the_attributes(
    statistics: StatisticsServiceStub, cohorts: dict[str, Cohort], name: str
) -> None:
    asked = {"sound": parts(), "spent": parts(multiplier=1.0)}.get(name) or REFUSED[name][0]
    assert len(outcomes(statistics, cohorts, asked)) == 1


def test_a_service_that_refuses_by_the_attributes_is_found_out(
    serve: Any, dial: Any, credentials: Any, cohorts: dict[str, Cohort]
) -> None:
    def register(server: Any) -> None:
        add_StatisticsServiceServicer_to_server(Careful(cohorts), server)

    address = serve(register, credentials["compliance"])
    broken = StatisticsServiceStub(dial(address, "compliance", credentials["developer"]))
    assert len(outcomes(broken, cohorts, parts())) == 2
