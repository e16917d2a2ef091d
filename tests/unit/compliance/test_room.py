"""What the ledger keeps for a developer is bounded by what the developer has paid, and by the day."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compliance import ledger as ledgers
from compliance.answers import audits as cases
from compliance.answers.audits import AuditCase
from compliance.answers.groups import GroupCase
from compliance.ledger import Ledger
from compliance.ledger.accountant import FREE, Budget, Loss, Neighbours, pure
from compliance.ledger.entries import UNIT_BYTES, LedgerEntry, Reply, Request, Room
from compliance.mechanisms import MECHANISMS
from compliance.records.groups import Attribute, Grouped
from compliance.records.people import Records
from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.laws.choice.cell_purchases import PURCHASES_MAX
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1.error_pb2 import REASON_EPSILON_INVALID, REASON_QUOTA_EXHAUSTED

PEOPLE = 90
ROOM = Room(0.001, 10_000)


def opened(path: Path | None = None) -> Ledger:
    """Two developers on two data sets."""
    ledger = Ledger(path)
    for dataset in ("loans", "other"):
        ledger.set_budget(dataset, Neighbours.A_FLIP, Budget(100.0))
        for developer in ("alice", "bob"):
            ledger.allocate(dataset, developer, 100.0)
    return ledger


def buy(
    ledger: Ledger,
    name: str,
    loss: float | Loss = FREE,
    *,
    size: int = 24,
    developer: str = "alice",
    dataset: str = "loans",
    room: Room = ROOM,
) -> LedgerEntry:
    charge = loss if isinstance(loss, Loss) else pure(loss)
    request = Request(dataset, developer, name, name.encode(), "sp", "cells", Neighbours.A_FLIP, charge)
    return ledger.settle(request, lambda _: Reply(bytes(24), bytes(size - 24)), room=room)


def refused(call: Callable[[], object]) -> Any:
    with pytest.raises(Refusal) as caught:
        call()
    return caught.value.error


def test_answers_that_cost_nothing_are_as_many_as_least_epsilons_were_paid() -> None:
    ledger = opened()
    buy(ledger, "paid", 0.004)
    free = [buy(ledger, f"free {number}") for number in range(3)]
    assert refused(lambda: buy(ledger, "one more")).reason == REASON_QUOTA_EXHAUSTED
    assert len(ledger.entries("loans")) == 4
    # What was bought is given again, others have room of their own, and who pays has more.
    assert buy(ledger, "free 0") == free[0]
    assert ledger.stored(free[0].request, ROOM) is None
    assert ledger.stored(free[0].request, Room(0.001, 3)) == free[0]
    for account in ({"developer": "bob"}, {"dataset": "other"}):
        buy(ledger, f"first {account}", 0.002, **account)
        buy(ledger, f"second {account}", **account)
        assert refused(lambda account=account: buy(ledger, "third", **account)).reason == REASON_QUOTA_EXHAUSTED  # type: ignore[misc]
    buy(ledger, "paid again", 0.002)
    buy(ledger, "one more")


def test_an_answer_at_the_least_epsilon_is_sold_however_often() -> None:
    ledger = opened()
    for number in range(100):
        buy(ledger, f"{number}", 0.001)


def test_a_charge_whose_facts_exceed_what_its_epsilon_brings_is_refused_with_the_epsilon_that_would() -> None:
    ledger = opened()
    error = refused(lambda: buy(ledger, "large", 0.001, size=2 * UNIT_BYTES))
    assert (error.reason, error.epsilon_min) == (REASON_EPSILON_INVALID, pytest.approx(0.003))
    assert ledger.standing("loans").spent == 0
    assert ledger.entries("loans") == ()
    buy(ledger, "large", error.epsilon_min, size=2 * UNIT_BYTES)
    # What one charge has left over another may use.
    buy(ledger, "dear", 0.1)
    buy(ledger, "larger", 0.001, size=90 * UNIT_BYTES)
    assert refused(lambda: buy(ledger, "largest", 0.001, size=20 * UNIT_BYTES)).epsilon_min == pytest.approx(0.012)


def test_new_answers_of_a_day_are_counted_whatever_they_are_about_and_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, room = time.time(), Room(0.001, 3)
    path = tmp_path / "ledger.sqlite"
    ledger = opened(path)
    for hour, (name, dataset) in enumerate((("a", "loans"), ("b", "other"), ("c", "loans"))):
        monkeypatch.setattr(ledgers.time, "time", lambda hour=hour: now + 3600 * hour)
        buy(ledger, name, 0.5, dataset=dataset, room=room)
    unknown = Request("loans", "alice", "d", b"d", "sp", "cells", Neighbours.A_FLIP, FREE)
    for again in (ledger, Ledger(path)):
        for ask_anew in (
            lambda ledger=again: buy(ledger, "d", 0.5, room=room),
            lambda ledger=again: buy(ledger, "d", 0.5, dataset="other", room=room),
            lambda ledger=again: ledger.stored(unknown, room),
        ):
            assert refused(ask_anew).reason == REASON_QUOTA_EXHAUSTED
        assert buy(again, "a", 0.5, room=room).request.request_id == "a"
        buy(again, f"bob {again is ledger}", 0.5, developer="bob", room=room)
    assert ledger.standing("loans", "alice").spent == 1.0
    monkeypatch.setattr(ledgers.time, "time", lambda: now + 86_400 + 60)
    buy(ledger, "d", 0.5, room=room)
    assert refused(lambda: buy(ledger, "e", 0.5, room=room)).reason == REASON_QUOTA_EXHAUSTED


def test_a_clock_that_was_years_ahead_keeps_nobody_out_once_it_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    now, ledger, room = time.time(), opened(), Room(0.001, 2)
    monkeypatch.setattr(ledgers.time, "time", lambda: now + 1e9)
    buy(ledger, "a", 0.5, room=room), buy(ledger, "b", 0.5, room=room)
    monkeypatch.setattr(ledgers.time, "time", lambda: now)
    buy(ledger, "c", 0.5, room=room), buy(ledger, "d", 0.5, room=room)
    assert refused(lambda: buy(ledger, "e", 0.5, room=room)).reason == REASON_QUOTA_EXHAUSTED


# Facts ---------------------------------------------------------------------------------------------------------------


def records(seed: int, people: int = PEOPLE) -> Records:
    """People whose labels are the same whatever the seed, and whose groups are not."""
    protected = (np.random.default_rng(seed).random(people) < 0.25 + 0.1 * seed).astype(np.uint8)
    return Records((np.arange(people) % 3 > 0).astype(np.uint8), protected, ("sp", "eo"))


def case_of(mechanism: str, seed: int = 1, people: int = PEOPLE) -> AuditCase:
    limits = {"alice": 10_000, "bob": 10_000}
    return AuditCase(
        "loans", records(seed, people), MECHANISMS[mechanism], opened(), 400, epsilon_min=0.001, answers_a_day=limits
    )


def ask(case: AuditCase, name: str, epsilon: float, models: int = 2, developer: str = "alice") -> LedgerEntry:
    predictions = np.random.default_rng(models).random((models, case.people))
    return case.answer(developer, name, name.encode(), "eo", predictions, epsilon)


@pytest.mark.few(1)
@pytest.mark.parametrize("mechanism", ["cells", "randomized-response", "cube", "low-rank"])
def test_the_size_of_what_is_kept_tells_nothing_of_the_groups_or_the_noise(mechanism: str) -> None:
    sizes = set()
    for seed in (1, 2, 4, 1, 1):
        case = case_of(mechanism, seed)
        kept = [ask(case, f"r{number}", epsilon).reply for number, epsilon in enumerate((0.5, 1.0, 0.25))]
        sizes.add(tuple((len(each.answer), len(each.facts)) for each in kept))
    assert len(sizes) == 1


def test_facts_are_read_as_they_were_written() -> None:
    facts = {"a": np.array([[0.1, -3.0]]), "b": np.array([7], np.uint16), "c": np.empty(0)}
    read = cases.facts_of((cases._encode(facts),))
    for name, values in facts.items():
        assert (read[name].dtype, read[name].tolist()) == (values.dtype, values.tolist())


def work(call: Callable[[], object]) -> int:
    """How many functions a call takes: a measure of its work that no load of the machine changes."""
    count = 0

    def look(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.check
def test_what_one_developer_has_bought_is_no_work_for_others_and_little_for_itself() -> None:
    case = case_of("cells")
    ask(case, "first", 0.5, developer="bob")
    ask(case, "first a", 0.5)
    before = work(lambda: ask(case, "before", 0.6, developer="bob"))
    of_few = 0
    for number in range(125):
        if number == PURCHASES_MAX:
            of_few = work(lambda: ask(case, "few", 0.4))
        ask(case, f"tiny {number}", 0.501 + number * 1e-6)
    # Not the same: the budget is shared, and different charges to it are added up exactly.
    assert work(lambda: ask(case, "after", 0.7, developer="bob")) < 1.6 * before
    # All of it is read, four times as much, and no more of it is put together.
    assert work(lambda: ask(case, "many", 0.4)) < 4 * of_few


@pytest.mark.slow(seconds=20)
def test_an_answer_takes_little_longer_after_many_purchases_than_after_one() -> None:
    """In the processor's time of this process alone, which no load changes; facts as text take 30 times."""
    case = case_of("cells", people=10_000)

    def seconds(name: str) -> float:
        began = time.process_time()
        ask(case, name, 0.4, models=1)
        return time.process_time() - began

    ask(case, "first", 0.5)
    before = min(seconds(f"before {number}") for number in range(5))
    for number in range(100):
        ask(case, f"tiny {number}", 0.501 + number * 1e-6, models=1)
    assert min(seconds(f"after {number}") for number in range(5)) < 8 * before


@pytest.mark.check
def test_what_is_ordinary_has_room() -> None:
    case = case_of("cells", people=10_000)
    ask(case, "batch", 1.0, models=400)
    assert [ask(case, f"free {number}", 1.0).request.loss for number in range(5)] == [FREE] * 5
    ask(case, "tiny", 0.01)
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, 5, 10_000), rng.integers(0, 2, 10_000)]).astype(np.uint8)
    people = Grouped((Attribute("race", tuple("abcde")), Attribute("sex", ("f", "m"))), codes, case.records.labels)
    grouped = GroupCase(case, people, 0.02)
    header = wire.ByGroupHeader(deal_id="loans", request_id="g", by=["race", "sex"], measures=[1, 2, 3], epsilon=0.3)
    grouped.answer("bob", "g", b"g", header, (rng.random((4, 10_000)) > 0.5).astype(float))


@pytest.mark.check
def test_a_table_by_group_that_is_larger_than_its_epsilon_allows_is_refused() -> None:
    case = case_of("counts", people=10_000)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 200, (1, 10_000)).astype(np.uint8)
    people = Grouped((Attribute("town", tuple(map(str, range(200)))),), codes, case.records.labels)
    grouped = GroupCase(case, people, 0.02)
    header = wire.ByGroupHeader(deal_id="loans", request_id="g", by=["town"], measures=[1, 2], epsilon=0.001)
    decisions = (rng.random((6, 10_000)) > 0.5).astype(float)
    error = refused(lambda: grouped.answer("alice", "g", b"g", header, decisions))
    assert error.reason == REASON_EPSILON_INVALID
    assert case.ledger.standing("loans").spent == 0
    header.epsilon = error.epsilon_min
    assert grouped.answer("alice", "g", b"g", header, decisions).request.loss.epsilon == error.epsilon_min
