"""Of predictions that who asks does not see nothing leaves but through noise: no width, no price, no probability."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from compliance.answers.audits import game_case, values_of
from compliance.answers.charging import DEVELOPER
from compliance.ledger.accountant import Budget
from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.counts import SummedQuestion, UnseenPredictions
from compliance.mechanisms.cube import BY_SUMS
from compliance.mechanisms.mechanism import BatchQuestion
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from compliance.records.sums import TableSums
from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.laws.metrics.metric import METRICS
from fairwall.laws.noise.quantiles import LEVEL
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

N, MODELS = 60, 3
RNG = np.random.default_rng(7)
LABELS = np.repeat(np.array([0, 1], np.uint8), [25, 35])
PROTECTED = (RNG.random(N) < 0.7).astype(np.uint8)
PAGE = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()

ROWS: dict[str, Callable[[float], np.ndarray]] = {
    "one person's income in a pattern": lambda income: np.outer([1, 0.5, 0.2], np.arange(N) % 3 / 2) * income,
    "the same of everybody": lambda income: np.full((MODELS, N), income),
    "decisions": lambda income: np.arange(N) % 7 < np.array([[1], [2], [3]]) + (income > 0.5),
    "one model in all places": lambda income: np.tile(np.arange(N) % 2 * income, (MODELS, 1)),
}


class Told:
    """Noise that gives the same noisy numbers, whatever they hide."""

    def __init__(self) -> None:
        self._draw = np.random.default_rng(0)

    def laplace(self, values: np.ndarray, scale: float, step: float) -> np.ndarray:  # noqa: ARG002
        return np.round(self._draw.uniform(5, 20, len(values)))

    def cube(self, values: np.ndarray, scale: float, step: float, least: int = 0) -> np.ndarray:  # noqa: ARG002
        return self._draw.uniform(5, 20, len(values))


def records(metric: str) -> Records:
    return Records(LABELS, PROTECTED, (metric,), 5)


def unseen(metric: str, rows: np.ndarray) -> UnseenPredictions:
    return UnseenPredictions(len(rows), lambda: TableSums.of(records(metric), rows))


def asked(metric: str, rows: np.ndarray, *, seen: bool) -> BatchQuestion:
    if seen:
        return BatchQuestion(metric, rows, records(metric))
    return SummedQuestion.of(metric, unseen(metric, rows), records(metric))


def told(metric: str, mechanism: str, rows: np.ndarray, *, seen: bool = False) -> bytes:
    """All that is released, as bytes."""
    released = BY_SUMS[mechanism].release(asked(metric, rows, seen=seen), {}, 1.0, 0.0, Told())  # type: ignore[arg-type]
    ends = () if released.low is None else (released.low, released.high)
    return b"".join(np.asarray(each).tobytes() for each in (released.values, *ends, *released.facts.values()))


@pytest.mark.parametrize("mechanism", BY_SUMS)
@pytest.mark.parametrize("kind", ROWS)
def test_what_is_released_is_a_function_of_noisy_numbers(kind: str, mechanism: str) -> None:
    """The broken twin is an answer about predictions that are seen: it adds exact totals up."""
    twins = 0
    for metric in ("sp", "abs_fpr", "eodds_max", "oad", "di", "ppv"):
        if METRICS[metric].binary and kind != "decisions":
            continue
        low, high = ROWS[kind](0.31), ROWS[kind](0.87)
        assert told(metric, mechanism, low) == told(metric, mechanism, high), metric
        twins += told(metric, mechanism, low, seen=True) != told(metric, mechanism, high, seen=True)
    assert twins >= 3


@pytest.mark.parametrize("mechanism", ["recommended", "cube", "counts", "cells", "randomized-response"])
def test_what_is_charged_and_said_besides_depends_on_the_number_of_models(mechanism: str) -> None:
    """Nothing is answered for nothing, whatever an account has bought: that would depend on predictions."""
    said = []
    for income in (0.31, 0.87):
        case = game_case("d", records("sp"), MECHANISMS[mechanism], Budget(30.0), 0.0, 5, b"s" * 32)
        case.answer(DEVELOPER, "seen", b"", "sp", RNG.random((5, N)), 2.0)
        batch = unseen("sp", ROWS["decisions"](income))
        entry = case.answer(DEVELOPER, "r", b"", "sp", batch, 1.0)
        said.append((entry.request.mechanism, entry.request.loss, case.probability_above(entry, batch, 0.1).shape))
    assert said[0] == said[1]
    assert said[0][1].epsilon == 1.0


def test_nobody_is_scored_before_the_charge_is_covered() -> None:
    case = game_case("d", records("sp"), MECHANISMS["recommended"], Budget(1.0), 0.0, 5, b"s" * 32)
    scored = []

    def sums() -> TableSums:
        scored.append(1)
        return TableSums.of(records("sp"), ROWS["decisions"](0.3))

    first = case.answer(DEVELOPER, "r", b"", "sp", UnseenPredictions(MODELS, sums), 1.0)
    assert values_of(case.answer(DEVELOPER, "r", b"", "sp", UnseenPredictions(MODELS, sums), 1.0)) == pytest.approx(
        values_of(first), abs=0
    )
    with pytest.raises(Refusal) as refused:
        case.answer(DEVELOPER, "s", b"", "sp", UnseenPredictions(MODELS, sums), 1.0)
    assert refused.value.reason == error_pb2.REASON_BUDGET_EXHAUSTED
    assert len(scored) == 1


@pytest.mark.check
@pytest.mark.parametrize("mechanism", BY_SUMS)
@pytest.mark.parametrize("metric", ["sp", "abs_eo", "di"])
def test_an_interval_holds_the_gap_and_the_answer(mechanism: str, metric: str) -> None:
    """Of 100 draws, three models each: 1 in 10^7 runs is so far below the level of one."""
    rows = np.vstack([RNG.random(N) < 0.4, PROTECTED == 1, RNG.random(N)]).astype(np.float64)
    question, held = asked(metric, rows, seen=False), []
    exact = BatchQuestion(metric, rows, records(metric)).gaps()
    for draw in range(100):
        released = BY_SUMS[mechanism].release(question, {}, 1.0, 0.0, Seeded(np.random.default_rng(draw)))
        assert released.low is not None
        assert released.high is not None
        held.append((released.low - 1e-6 <= exact) & (exact <= released.high + 1e-6))
        assert ((released.low <= released.values) & (released.values <= released.high)).all()
    assert (np.mean(held, axis=0) > LEVEL - 5.2 * np.sqrt(LEVEL * (1 - LEVEL) / 100)).all()


def test_intervals_count_the_noise_on_totals() -> None:
    """A twin that forgets it has narrower intervals, most of all where the group is nearly everybody."""
    few = Records(np.zeros(N, np.uint8), (np.arange(N) < 8).astype(np.uint8), ("sp",), 5)
    rows = np.zeros((1, N))
    question = SummedQuestion.of("sp", UnseenPredictions(1, lambda: TableSums.of(few, rows)), few)
    widths = []
    for seen in (False, True):
        one = BatchQuestion("sp", (np.arange(N) % 2)[np.newaxis] * 1.0, few) if seen else question
        released = BY_SUMS["counts"].release(one, {}, 5.0, 0.0, Seeded(np.random.default_rng(1)))
        assert released.low is not None
        assert released.high is not None
        widths.append(float((released.high - released.low)[0]))
    assert widths[0] > 1.15 * widths[1]


def test_the_page_sorts_every_field_of_an_answer_for_each_way_of_asking() -> None:
    """Public to who asks, noisy, or not there: a new field is sorted, or this fails."""
    (table,) = re.findall(r"\| field \| predictions \| search \| sealed, table \|\n\|[-|]+\n((?:\|.*\|\n)+)", PAGE)
    rows = {
        field: [cell.strip() for cell in line.split("|")[2:5]]
        for line in table.splitlines()
        for field in line.split("|")[1].strip(" `").split("`, `")
    }
    assert rows.keys() == {field.name for field in audit.AuditResponse.DESCRIPTOR.fields}
    assert {sort for sorts in rows.values() for sort in sorts} == {"public", "noisy", "–"}
