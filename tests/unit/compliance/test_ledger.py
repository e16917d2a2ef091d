"""The ledger of a deal, in memory: one answer a request, stored before it is given, and no more spent than there is."""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from compliance.ledger import Ledger
from compliance.ledger.accountant import FREE, Budget, Loss, Neighbours, pure
from compliance.ledger.entries import LedgerEntry, LedgerError, Reply, Request
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1.error_pb2 import REASON_BUDGET_EXHAUSTED, Reason


class Account:
    """One developer on one data set."""

    def __init__(self, limit: float) -> None:
        self.ledger = Ledger()
        self.ledger.set_budget("deal", Neighbours.A_FLIP, Budget(limit))
        self.ledger.allocate("deal", "developer", limit)

    def settle(
        self, request_id: str, digest: bytes, loss: float | Loss, answer: Callable[[tuple[bytes, ...]], Reply]
    ) -> LedgerEntry:
        charge = loss if isinstance(loss, Loss) else pure(loss)
        request = Request("deal", "developer", request_id, digest, "sp", "laplace", Neighbours.A_FLIP, charge)
        return self.ledger.settle(request, answer)

    @property
    def spent(self) -> float:
        return self.ledger.standing("deal").spent

    @property
    def remaining(self) -> float:
        return self.ledger.standing("deal", "developer").remaining

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        return self.ledger.entries("deal")


class Noise:
    """Answers differently every time that it is asked, and counts how often it was."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, _facts: tuple[bytes, ...]) -> Reply:
        self.asked += 1
        return Reply(str(self.asked).encode())


def never(_facts: tuple[bytes, ...]) -> Reply:
    raise AssertionError("an answer was computed for a request that is refused")


def refusal(call: Callable[[], object]) -> Reason:
    with pytest.raises(Refusal) as refused:
        call()
    return refused.value.reason


def test_a_charge_is_taken_off_and_the_answer_kept() -> None:
    account, noise = Account(2.0), Noise()
    entry = account.settle("r", b"digest", 0.5, noise)
    assert (entry.request.request_id, entry.request.metric, entry.remaining) == ("r", "sp", 1.5)
    assert (account.spent, account.remaining) == (0.5, 1.5)
    assert account.entries == (entry,)


def test_the_same_request_gets_the_stored_answer_for_nothing() -> None:
    account, noise = Account(2.0), Noise()
    first = account.settle("r", b"digest", 2.0, noise)
    assert account.remaining == 0.0
    assert account.settle("r", b"digest", 2.0, noise) == first
    assert noise.asked == 1
    assert account.spent == 2.0


def test_what_cannot_be_paid_is_not_answered_nor_charged_and_its_id_stays_free() -> None:
    account = Account(1.0)
    assert refusal(lambda: account.settle("r", b"digest", 1.001, never)) == REASON_BUDGET_EXHAUSTED
    assert (account.spent, account.remaining, account.entries) == (0.0, 1.0, ())
    assert account.settle("r", b"other", 1.0, Noise()).remaining == 0.0
    assert refusal(lambda: account.settle("s", b"digest", 1e-6, never)) == REASON_BUDGET_EXHAUSTED


def test_an_unlimited_account_takes_every_charge() -> None:
    account = Account(math.inf)
    for request_id, charge in (("a", 1.0), ("b", math.inf), ("c", math.inf), ("d", 1e308)):
        assert account.settle(request_id, b"", charge, Noise()).remaining == math.inf
    assert account.spent == math.inf


def test_entries_stand_in_the_order_of_their_charges() -> None:
    account = Account(9.0)
    for request_id in ("c", "a", "b", "a"):
        account.settle(request_id, b"", 1.0, Noise())
    assert [entry.request.request_id for entry in account.entries] == ["c", "a", "b"]
    assert [entry.remaining for entry in account.entries] == [8.0, 7.0, 6.0]


@pytest.mark.parametrize("ids", [["r"] * 16, [str(number) for number in range(16)]], ids=["one request", "many"])
def test_threads_neither_overspend_nor_buy_an_answer_twice(ids: list[str]) -> None:
    account, noise = Account(4.0), Noise()
    gate = threading.Barrier(len(ids), timeout=300)

    def settle(request_id: str) -> bool:
        gate.wait()
        try:
            account.settle(request_id, b"", 1.0, noise)
        except Refusal:
            return False
        return True

    with ThreadPoolExecutor(len(ids)) as threads:
        settled = list(threads.map(settle, ids))
    one = len(set(ids)) == 1
    assert settled.count(True) == (16 if one else 4)
    assert noise.asked == account.spent == (1 if one else 4)


def test_what_was_paid_for_before_is_answered_for_nothing_and_stored() -> None:
    account, noise = Account(1.0), Noise()
    account.settle("first", b"", 1.0, noise)
    again = account.settle("again", b"", FREE, noise)
    assert (again.remaining, account.spent, account.remaining) == (0.0, 1.0, 0.0)
    assert account.settle("again", b"", FREE, noise) == again
    assert noise.asked == 2


def test_what_costs_nothing_releases_nothing_new() -> None:
    """A mechanism that buys anew for nothing is found out: nobody hears of the answer, and nothing is stored."""
    account = Account(1.0)
    account.settle("first", b"", 1.0, lambda _: Reply(b"answer", b"facts"))
    with pytest.raises(LedgerError, match="an answer that costs nothing has released anew"):
        account.settle("free", b"", FREE, lambda _: Reply(b"answer", b"further facts"))
    assert [entry.request.request_id for entry in account.entries] == ["first"]
    assert account.ledger.facts("deal", "developer") == (b"facts",)


def test_nothing_is_free_without_an_account() -> None:
    ledger = Ledger()
    ledger.set_budget("deal", Neighbours.A_FLIP, Budget(1.0))
    request = Request("deal", "nobody", "r", b"", "sp", "laplace", Neighbours.A_FLIP, FREE)
    assert refusal(lambda: ledger.settle(request, never)) == REASON_BUDGET_EXHAUSTED


def test_of_a_transaction_that_fails_nothing_is_left() -> None:
    account = Account(2.0)
    first = account.settle("first", b"digest", 0.5, Noise())
    another = dataclasses.replace(first, request=dataclasses.replace(first.request, request_id="r"))
    store, heads = account.ledger._store, []
    with suppress(OSError), store.session(None) as session:
        heads.append(session.head(""))
        session.append("", another)
        assert session.find("developer", "r") is not None
        raise OSError
    with store.session(None) as session:
        heads.append(session.head(""))
        assert session.find("developer", "r") is None
        assert session.find("developer", "first") is not None
    assert heads[0] == heads[1]
    assert account.settle("r", b"digest", 0.5, Noise()).remaining == 1.0
