"""The ledger on a disk: what it charges, what it survives, and whom it tells that it is not the newest copy."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

import psutil
import psycopg
import pytest

from compliance.ledger import Ledger, sqlite
from compliance.ledger.accountant import Budget, Loss, LossKind, Neighbours, Rule, pure
from compliance.ledger.entries import (
    Account,
    Admission,
    BudgetRecord,
    LedgerEntry,
    LedgerError,
    Reply,
    Request,
    ServedData,
    link,
)
from compliance.ledger.head import Head, Seal, SealError, load_key
from compliance.ledger.place import Place, inspect, reading
from compliance.ledger.sqlite import SqliteSession
from compliance.ledger.store import LedgerUnavailable
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1.error_pb2 import REASON_BUDGET_EXHAUSTED, REASON_REQUEST_ID_REUSED, Reason
from tests.support import postgres_server, small_disks

KEY = bytes(32)


EVERY_STORE = pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)
"""What rests with a store is tried on each; what the ledger does by itself on a file alone."""


def test_a_record_s_digest_is_what_it_was_in_older_ledgers() -> None:
    """By no name of the code's: a class that is renamed would make every ledger one that was changed."""
    request = Request("people", "ann", "r", b"d", "sp", "laplace", Neighbours.A_FLIP, pure(0.25))
    entry = LedgerEntry(2, request, Reply(b"answer"), 1.5, "2026-01-01T00:00:00+00:00", b"", b"")
    budget = BudgetRecord(0, "people", "", Neighbours.A_FLIP, Budget(3.0), "2026-01-01T00:00:00+00:00", b"", b"", b"")
    admission = Admission(1, b"policy", (), "2026-01-01T00:00:00+00:00", b"", b"")
    digests = [link(b"before", record).hex()[:16] for record in (budget, admission, entry)]
    assert digests == ["98e088f550d2b281", "7d10ee25155cb491", "3e54dfa136c4ce24"]


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return new_place(getattr(request, "param", "sqlite"), tmp_path / "ledger")


def new_place(store: str, folder: Path) -> Place:
    folder.mkdir()
    return folder / "ledger.sqlite" if store == "sqlite" else postgres_server.shared().new_database()


@pytest.fixture
def path(place: Path) -> Path:
    return place


@pytest.fixture
def seal(tmp_path: Path) -> Seal:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return Seal(folder / "head.json", KEY)


@pytest.fixture
def own(place: Place, seal: Seal) -> Seal:
    """The seal of the people's chain."""
    return seal.of("people" if isinstance(place, str) else "")


def execute(place: Place, *statements: str) -> None:
    """Change a store behind the ledger's back."""
    if isinstance(place, str):
        with psycopg.connect(place, options="-csearch_path=fairwall") as db:
            for statement in statements:
                db.execute(statement.replace("genesis", "lines").replace("x'", "'\\x"))  # type: ignore[arg-type]
        return
    with closing(sqlite3.connect(place)) as file, file:
        for statement in statements:
            file.execute(statement)


@pytest.fixture
def reopen(place: Place, seal: Seal) -> Iterator[Callable[[], Ledger]]:
    """Open the ledger, as often as a test likes, and see to it that all are closed."""
    opened = []

    def open_ledger() -> Ledger:
        opened.append(Ledger(place, seal))
        return opened[-1]

    yield open_ledger
    for ledger in opened:
        ledger.close()


@pytest.fixture
def ledger(reopen: Callable[[], Ledger]) -> Ledger:
    ledger = reopen()
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(3.0))
    for developer in ("ann", "bob"):
        ledger.allocate("people", developer, 2.0)
    return ledger


def request(
    request_id: str = "r",
    *,
    developer: str = "ann",
    digest: bytes = b"digest",
    dataset: str = "people",
    neighbours: Neighbours = Neighbours.A_FLIP,
    loss: Loss | None = None,
) -> Request:
    return Request(dataset, developer, request_id, digest, "sp", "laplace", neighbours, loss or pure(0.5))


def says(answer: bytes, facts: bytes = b"") -> Callable[[tuple[bytes, ...]], Reply]:
    return lambda _: Reply(answer, facts)


def never(_: tuple[bytes, ...]) -> Reply:
    raise AssertionError("an answer was computed for a request that is refused or answered already")


def refusal(call: Callable[[], object]) -> Reason:
    with pytest.raises(Refusal) as refused:
        call()
    return refused.value.reason


def settle_many(ledger: Ledger, count: int, prefix: str = "") -> list[LedgerEntry]:
    return [ledger.settle(request(f"{prefix}{i}", loss=pure(1e-6)), says(b"%d" % i)) for i in range(count)]


# Charges --------------------------------------------------------------------------------------------------------------


@EVERY_STORE
def test_an_entry_says_everything_and_outlives_the_ledger(ledger: Ledger, reopen: Callable[[], Ledger]) -> None:
    asked = request(loss=Loss(0.3, 0.1, LossKind.GAUSSIAN, 2.0), dataset="other", neighbours=Neighbours.USER)
    ledger.set_budget("other", Neighbours.USER, Budget(3.0, 0.5, Rule.ZCDP))
    ledger.allocate("other", "ann", 2.0, 0.2)
    entry = ledger.settle(asked, says(b"answer", b"facts"))
    assert (entry.request, entry.reply) == (asked, Reply(b"answer", b"facts"))
    assert 0 < entry.remaining < 2.0
    ledger.close()
    again = reopen()
    assert again.entries("other") == (entry,)
    assert again.settle(asked, never) == entry
    assert again.standing("other", "ann").remaining == entry.remaining


@EVERY_STORE
def test_a_restarted_ledger_goes_on_where_it_stood(ledger: Ledger, reopen: Callable[[], Ledger]) -> None:
    ledger.settle(request("a", loss=pure(1.5)), says(b"1"))
    ledger.close()
    again = reopen()
    assert (again.standing("people").spent, again.standing("people", "ann").remaining) == (1.5, 0.5)
    assert refusal(lambda: again.settle(request("b", loss=pure(0.6)), never)) == REASON_BUDGET_EXHAUSTED
    assert again.settle(request("b", loss=pure(0.5)), says(b"2")).remaining == 0.0


def test_an_id_belongs_to_its_developer_and_to_one_request(ledger: Ledger) -> None:
    ledger.settle(request(), says(b"ann's"))
    assert refusal(lambda: ledger.settle(request(digest=b"other"), never)) == REASON_REQUEST_ID_REUSED
    assert refusal(lambda: ledger.settle(request(dataset="elsewhere"), never)) == REASON_REQUEST_ID_REUSED
    assert ledger.settle(request(developer="bob"), says(b"bob's")).reply.answer == b"bob's"
    assert ledger.standing("people").spent == 1.0


def test_a_developer_has_no_more_than_its_share_and_all_together_no_more_than_the_budget(ledger: Ledger) -> None:
    ledger.settle(request("a", loss=pure(2.0)), says(b""))
    assert refusal(lambda: ledger.settle(request("b", loss=pure(0.1)), never)) == REASON_BUDGET_EXHAUSTED
    assert ledger.standing("people", "bob").remaining == 1.0
    assert refusal(lambda: ledger.settle(request(developer="bob", loss=pure(1.1)), never)) == REASON_BUDGET_EXHAUSTED
    assert ledger.settle(request(developer="bob", loss=pure(1.0)), says(b"")).remaining == 0.0
    assert ledger.standing("people").spent == 3.0


def test_what_is_left_is_told_as_it_is_after_each_record(ledger: Ledger) -> None:
    def left() -> tuple[float, ...]:
        told = tuple(ledger.standing("people", developer).remaining for developer in ("", "ann", "bob"))
        assert told == tuple(ledger.remaining("people", developer) for developer in ("", "ann", "bob"))
        return told

    assert left() == (3.0, 2.0, 2.0)
    ledger.settle(request(loss=pure(1.5)), says(b""))
    assert left() == (1.5, 0.5, 1.5)
    ledger.allocate("people", "bob", 1.0)
    assert left() == (1.5, 0.5, 1.0)
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(1.75))
    assert left() == (0.25, 0.25, 0.25)


def test_who_is_refused_hears_what_the_stricter_of_two_budgets_would_need(ledger: Ledger) -> None:
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(3.0, 1e-5))
    asked = request(loss=pure(0.5, 1e-6))
    with pytest.raises(Refusal) as refused:
        ledger.settle(asked, never)
    assert (refused.value.error.epsilon_remaining, refused.value.error.epsilon_needed) == (2.0, math.inf)
    ledger.allocate("people", "ann", 2.0, 1e-5)
    assert ledger.settle(asked, says(b"now")).remaining == 1.5


def test_who_has_no_share_gets_nothing(ledger: Ledger) -> None:
    for developer in ("eve", ""):
        asked = request(developer=developer, loss=pure(1e-9))
        assert refusal(lambda asked=asked: ledger.settle(asked, never)) == REASON_BUDGET_EXHAUSTED  # type: ignore[misc]
    assert ledger.standing("people", "eve").remaining == 0.0


def test_unlike_units_are_not_added(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="a loss per record is not added to a budget per a-flip"):
        ledger.settle(request(neighbours=Neighbours.RECORD), never)
    with pytest.raises(LedgerError, match="not by basic per user"):
        ledger.set_budget("people", Neighbours.USER, Budget(3.0))
    with pytest.raises(LedgerError, match="not by zcdp per a-flip"):
        ledger.set_budget("people", Neighbours.A_FLIP, Budget(3.0, 1e-6, Rule.ZCDP))
    assert ledger.standing("people").spent == 0.0


def test_a_data_set_without_a_budget_is_a_mistake(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="has no budget"):
        ledger.settle(request(dataset="other"), never)
    with pytest.raises(LedgerError, match="before a developer's share"):
        ledger.allocate("other", "ann", 1.0)


@EVERY_STORE
def test_terms_are_set_once_and_changes_are_recorded(ledger: Ledger, place: Place) -> None:
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(3.0))
    ledger.allocate("people", "ann", 2.0)
    assert len(inspect(place)[0].records) == 3
    ledger.settle(request(loss=pure(2.0)), says(b""))
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(1.0))
    assert len(inspect(place)[0].records) == 5
    assert ledger.standing("people").remaining == 0.0
    assert refusal(lambda: ledger.settle(request("b", developer="bob"), never)) == REASON_BUDGET_EXHAUSTED


@EVERY_STORE
def test_facts_are_there_for_later_answers_of_the_same_developer(ledger: Ledger, reopen: Callable[[], Ledger]) -> None:
    seen: list[tuple[bytes, ...]] = []

    def look(facts: tuple[bytes, ...]) -> Reply:
        seen.append(facts)
        return Reply(b"", b"n0" if not facts else b"")

    for request_id, developer in (("a", "ann"), ("b", "ann"), ("a", "bob")):
        ledger.settle(request(request_id, developer=developer), look)
    reopen().settle(request("c"), look)
    assert seen == [(), (b"n0",), (), (b"n0",)]


@pytest.mark.check
def test_tight_composition_answers_more_than_the_sum_allows(ledger: Ledger) -> None:
    ledger.set_budget("tight", Neighbours.A_FLIP, Budget(10.0, 1e-6, Rule.TIGHT))
    ledger.allocate("tight", "ann", 10.0, 1e-6)
    for i in range(150):
        ledger.settle(request(str(i), dataset="tight", loss=Loss(0.1, law=LossKind.LAPLACE)), says(b""))
    assert ledger.standing("tight").spent < 0.5 * 150 * 0.1


@EVERY_STORE
def test_an_answer_that_fails_costs_nothing(ledger: Ledger) -> None:
    with pytest.raises(ZeroDivisionError):
        ledger.settle(request(), lambda _: 1 // 0)  # type: ignore[arg-type, return-value]
    assert ledger.standing("people").spent == 0.0
    assert ledger.settle(request(), says(b"now")).reply.answer == b"now"


@EVERY_STORE
def test_threads_and_a_second_service_never_overspend_nor_answer_twice(
    reopen: Callable[[], Ledger], ledger: Ledger
) -> None:
    services = (ledger, reopen())

    def settle(number: int) -> bytes | None:
        try:
            return (
                services[number % 2]
                .settle(request(str(number // 4), loss=pure(0.1)), lambda _: Reply(b"%d" % number))
                .reply.answer
            )
        except Refusal:
            return None

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(settle, range(120)))
    assert ledger.standing("people", "ann").spent == pytest.approx(2.0)
    assert len(ledger.entries("people")) == 20
    for four in zip(*[iter(answers)] * 4, strict=True):
        assert len(set(four)) == 1
    assert ledger.standing("people") == services[1].standing("people")


# The chain and the seal -----------------------------------------------------------------------------------------------


def test_only_the_owner_may_read_the_ledger(ledger: Ledger, path: Path) -> None:
    for each in path.parent.iterdir():
        assert each.stat().st_mode & 0o077 == 0


def test_a_ledger_restored_from_a_backup_is_refused(ledger: Ledger, reopen: Callable[[], Ledger], path: Path) -> None:
    settle_many(ledger, 3)
    ledger.close()
    backup = path.read_bytes()
    ledger = reopen()
    settle_many(ledger, 2, "later")
    ledger.close()
    path.write_bytes(backup)
    with pytest.raises(LedgerError, match="old copy: it ends at record 6, and 8 was sealed: bring back the newest"):
        reopen()


def test_a_ledger_restored_under_a_running_service_is_refused(ledger: Ledger, place: Place, seal: Seal) -> None:
    settle_many(ledger, 2)
    execute(place, "DELETE FROM entries WHERE sequence = 5")
    with pytest.raises(LedgerError, match="replaced while it was in use"):
        ledger.settle(request("more"), never)


def test_a_ledger_that_vanished_is_not_begun_anew(ledger: Ledger, reopen: Callable[[], Ledger], path: Path) -> None:
    ledger.close()
    path.unlink()
    with pytest.raises(LedgerError, match="old copy: it ends at record 0"):
        reopen()


CHANGES = [
    "UPDATE entries SET epsilon = 1e-9 WHERE sequence = 5",
    "DELETE FROM terms WHERE sequence = 3",
    "UPDATE genesis SET chain = x'" + "00" * 32 + "'",
    "UPDATE entries SET released = x'00' WHERE sequence = 5",
    "UPDATE entries SET digest = x'00' WHERE sequence = 5",
    "UPDATE entries SET neighbours = 'record' WHERE sequence = 5",
    "UPDATE entries SET epsilon = -1 WHERE sequence = 5",
    "UPDATE entries SET law = 'none' WHERE sequence = 5",
    "UPDATE entries SET delta = 'x' WHERE sequence = 5",
    "UPDATE terms SET epsilon = 99 WHERE sequence = 1",
    "DELETE FROM entries WHERE sequence = 4",
]


def is_refused(reopen: Callable[[], Ledger], place: Place, change: str) -> None:
    execute(place, change)
    with pytest.raises(LedgerError, match=r"(the chain breaks at record [1-5],|a record was changed) .*bring back"):
        reopen()
    assert inspect(place)[0].fault


def test_a_file_that_was_changed_is_refused(ledger: Ledger, reopen: Callable[[], Ledger], path: Path) -> None:
    settle_many(ledger, 3)
    ledger.close()
    sound = path.read_bytes()
    for change in CHANGES:
        is_refused(reopen, path, change)
        path.write_bytes(sound)


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
@pytest.mark.parametrize("change", [*CHANGES[:3], "UPDATE entries SET delta = 'NaN' WHERE sequence = 5"])
def test_a_database_that_was_changed_is_refused(
    ledger: Ledger, reopen: Callable[[], Ledger], place: Place, change: str
) -> None:
    settle_many(ledger, 3)
    ledger.close()
    is_refused(reopen, place, change)


def forge(place: Place, *statements: str) -> None:
    """Write to a ledger without its key, and chain what is written as anybody can."""
    execute(place, *statements)
    with reading(place) as session:
        (chain,) = session.chains()
        before, anew = session.genesis(chain), []
        assert before is not None
        for record in session.records(chain, 0):
            before = link(before, record)
            table = "entries" if isinstance(record, LedgerEntry) else "terms"
            anew.append(f"UPDATE {table} SET chain = x'{before.hex()}' WHERE sequence = {record.sequence}")  # noqa: S608
    execute(place, *anew)


def raise_budget(place: Place) -> None:
    """Add terms of a million behind the last charge."""
    line = "line, " if isinstance(place, str) else ""
    kept = "dataset, developer, neighbours, rule"
    rest = "delta, data, time, chain, mac"
    forge(
        place,
        f"INSERT INTO terms ({line}sequence, {kept}, epsilon, {rest}) SELECT {line}(SELECT max(sequence) + 1 FROM "  # noqa: S608
        f"entries), {kept}, 1e6, {rest} FROM terms WHERE sequence = 1",
    )


@EVERY_STORE
def test_who_lacks_the_key_raises_no_budget(ledger: Ledger, reopen: Callable[[], Ledger], place: Place) -> None:
    settle_many(ledger, 2)
    raise_budget(place)
    assert not inspect(place)[0].fault  # as far as anybody can see
    for use in (lambda: ledger.settle(request("more"), never), reopen):
        with pytest.raises(LedgerError, match=r"the chain breaks at record 6, .*written without this key"):
            use()  # type: ignore[operator]


@EVERY_STORE
def test_who_lacks_the_key_changes_no_answer_that_is_repeated(ledger: Ledger, place: Place) -> None:
    settle_many(ledger, 2)
    (found,) = inspect(place)
    head = found.books.head
    forge(place, "UPDATE entries SET released = x'00' WHERE sequence = 4")
    # The end of the chain is what a running service knows it by.
    execute(place, f"UPDATE entries SET chain = x'{head.chain.hex()}' WHERE sequence = 5")  # noqa: S608
    with pytest.raises(LedgerError, match="record 4 was changed: bring back"):
        ledger.settle(request("0", loss=pure(1e-6)), never)
    assert ledger.settle(request("more"), says(b"next")).reply.answer == b"next"


# What a name stands for -----------------------------------------------------------------------------------------------

DATA = bytes(range(32))


def test_a_name_stands_for_the_same_data_for_good(reopen: Callable[[], Ledger]) -> None:
    ledger = reopen()
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(3.0), DATA)
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(4.0), DATA)
    for other in (DATA[::-1], DATA[:16] + DATA[:16]):
        with pytest.raises(LedgerError, match="data set people: this name stands for other data"):
            reopen().set_budget("people", Neighbours.A_FLIP, Budget(4.0), other)


@EVERY_STORE
def test_the_same_people_have_one_budget_under_one_name(reopen: Callable[[], Ledger]) -> None:
    ledger = reopen()
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(3.0), DATA)
    with pytest.raises(LedgerError, match="data set again: these people's data are called people"):
        reopen().set_budget("again", Neighbours.A_FLIP, Budget(3.0), DATA[:16] + bytes(16))
    ledger.set_budget("released", Neighbours.ATTRIBUTES, Budget(3.0), DATA)  # another unit: the two are not added
    ledger.set_budget("others", Neighbours.A_FLIP, Budget(3.0), DATA[::-1])


def test_a_name_of_old_is_bound_when_its_data_are_first_told(ledger: Ledger, reopen: Callable[[], Ledger]) -> None:
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(3.0), DATA)
    with pytest.raises(LedgerError, match="other data"):
        reopen().set_budget("people", Neighbours.A_FLIP, Budget(3.0), DATA[::-1])


# Who waits for whom ---------------------------------------------------------------------------------------------------


def test_nobody_else_waits_while_an_answer_is_computed(ledger: Ledger) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(_: tuple[bytes, ...]) -> Reply:
        begun.set()
        assert go.wait(300)
        return Reply(b"slow")

    ledger._turns._room = threading.BoundedSemaphore(2)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(ledger.settle, request("a"), slow)
        assert begun.wait(300)
        assert ledger.settle(request("b", developer="bob"), says(b"fast")).reply.answer == b"fast"
        assert ledger.standing("people").spent == 0.5
        go.set()
        assert waiting.result(20).reply.answer == b"slow"
    assert ledger.standing("people").spent == 1.0


def out_of_turn(ledger: Ledger) -> Ledger:
    """Have a service answer while another one has its developer's turn, as when that was lost with a connection."""
    ledger._store.turn = lambda _: nullcontext()  # type: ignore[method-assign]
    return ledger


@EVERY_STORE
def test_what_another_service_has_charged_meanwhile_counts(ledger: Ledger, reopen: Callable[[], Ledger]) -> None:
    other = out_of_turn(reopen())

    def overtaken(_: tuple[bytes, ...]) -> Reply:
        other.settle(request("b", loss=pure(1.8)), says(b"first"))
        return Reply(b"too late")

    assert refusal(lambda: ledger.settle(request("a"), overtaken)) == REASON_BUDGET_EXHAUSTED
    assert [entry.request.request_id for entry in ledger.entries("people")] == ["b"]


@EVERY_STORE
def test_a_request_that_another_service_has_answered_meanwhile_gets_that_answer(
    ledger: Ledger, reopen: Callable[[], Ledger]
) -> None:
    other = out_of_turn(reopen())

    def overtaken(_: tuple[bytes, ...]) -> Reply:
        other.settle(request(), says(b"first"))
        return Reply(b"second")

    assert ledger.settle(request(), overtaken).reply.answer == b"first"
    assert ledger.standing("people").spent == 0.5


def test_an_answer_uses_the_facts_that_hold_when_it_is_charged(ledger: Ledger, reopen: Callable[[], Ledger]) -> None:
    other, seen = out_of_turn(reopen()), []

    def look(facts: tuple[bytes, ...]) -> Reply:
        if not seen:
            other.settle(request("b"), says(b"", b"n0"))
        seen.append(facts)
        return Reply(b"%d" % len(seen))

    assert ledger.settle(request("a"), look).reply.answer == b"2"
    assert seen == [(), (b"n0",)]


@pytest.mark.parametrize(("place", "charged"), [("sqlite", 0), ("postgres", 1)], indirect=["place"])
def test_a_crash_between_commit_and_seal_is_made_good(
    ledger: Ledger, reopen: Callable[[], Ledger], own: Seal, charged: int
) -> None:
    sealed = own.path.read_bytes()
    entries = settle_many(ledger, charged)
    ledger.close()
    own.path.write_bytes(sealed)
    assert reopen().entries("people") == tuple(entries)
    assert own.read() == Head(3 + charged, entries[-1].chain if entries else own.read().chain)  # type: ignore[union-attr]


def test_an_old_head_is_refused(ledger: Ledger, reopen: Callable[[], Ledger], own: Seal) -> None:
    sealed = own.path.read_bytes()
    settle_many(ledger, 2)
    ledger.close()
    own.path.write_bytes(sealed)
    with pytest.raises(LedgerError, match="not the ledger that was sealed"):
        reopen()


@EVERY_STORE
def test_a_missing_head_is_refused(ledger: Ledger, reopen: Callable[[], Ledger], own: Seal) -> None:
    ledger.close()
    own.path.unlink()
    with pytest.raises(LedgerError, match=r"head is missing: bring .*head.json(\.people)? back"):
        reopen()


def test_another_ledgers_head_is_refused(
    ledger: Ledger, reopen: Callable[[], Ledger], tmp_path: Path, place: Place, own: Seal
) -> None:
    ledger.close()
    elsewhere = new_place("postgres" if isinstance(place, str) else "sqlite", tmp_path / "second")
    other = Seal(own.path.with_name("second"), KEY)
    second = Ledger(elsewhere, other)
    second.set_budget("people", Neighbours.A_FLIP, Budget(3.0))
    for developer in ("ann", "bob"):
        second.allocate("people", developer, 2.0)
    second.close()
    shutil.copy(other.of(second._store.chain_of("people")).path, own.path)
    with pytest.raises(LedgerError, match="not the ledger that was sealed"):
        reopen()


def test_a_forged_head_is_refused(ledger: Ledger, reopen: Callable[[], Ledger], own: Seal) -> None:
    ledger.close()
    for text in ("", "{}", "[1]", '{"sequence": 3, "chain": "00", "seal": "00"}', "\ud800"):
        own.path.write_bytes(text.encode("utf-8", "surrogatepass"))
        with pytest.raises(LedgerError, match="not sealed with this key: put back"):
            reopen()


def test_another_key_is_refused(ledger: Ledger, place: Place, seal: Seal) -> None:
    with pytest.raises(LedgerError, match="written without this key: bring back"):
        Ledger(place, Seal(seal.path, b"\1" * 32))


def test_the_head_is_kept_out_of_the_ledgers_folder(path: Path) -> None:
    with pytest.raises(LedgerError, match="keep the head elsewhere"):
        Ledger(path, Seal(path.parent / "below" / "head", KEY))
    assert not path.exists()


def test_a_key_is_made_once_and_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "key"
    key = load_key(path)
    assert len(key) == 32
    assert load_key(path) == key
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["key"]


def test_a_key_that_is_no_secret_or_no_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    load_key(path)
    path.chmod(0o644)
    with pytest.raises(SealError, match="chmod 600"):
        load_key(path)
    path.chmod(0o600)
    for text in ("", "00", "words"):
        path.write_text(text)
        with pytest.raises(SealError, match="not a key of 32 bytes"):
            load_key(path)


# Files that are no ledgers, disks that fail ---------------------------------------------------------------------------


def test_what_is_no_ledger_is_not_opened(tmp_path: Path) -> None:
    text, other = tmp_path / "text", tmp_path / "other.sqlite"
    text.write_text("not a database, but long enough to be looked at" * 99)
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE t (x)")
    db.close()
    for path, said in ((text, "file is not a database"), (other, "not a ledger")):
        with pytest.raises(LedgerError, match=said) as refused:
            Ledger(path)
        assert str(path) not in [each.path for each in psutil.Process().open_files()], refused
        with pytest.raises(LedgerError, match=said):
            inspect(path)
    with pytest.raises(LedgerError, match="no such file"):
        inspect(tmp_path / "missing")
    with pytest.raises(LedgerUnavailable):
        Ledger(tmp_path / "no" / "folder" / "ledger.sqlite")


def test_another_format_is_refused(ledger: Ledger, reopen: Callable[[], Ledger], path: Path) -> None:
    ledger.close()
    for number in (0, 1, 4):
        with closing(sqlite3.connect(path)) as db:
            db.execute(f"PRAGMA user_version = {number}")
        why = f"of format {number}, and this fairwall reads format 3: .* begin another"
        with pytest.raises(LedgerError, match=why):
            reopen()


def test_a_ledger_of_format_2_becomes_one_of_format_3_and_keeps_all_it_holds(
    ledger: Ledger, reopen: Callable[[], Ledger], path: Path
) -> None:
    entry = ledger.settle(request(), says(b"answer"))
    ledger.close()
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE admissions")
        db.execute("PRAGMA user_version = 2")
    db.close()
    with pytest.raises(LedgerError, match="of format 2: start this fairwall's service, which makes it format 3"):
        inspect(path)
    again = reopen()
    assert again.settle(request(), never) == entry
    again.admit(b"policy", [ServedData("people", ("ann", "bob"), ("sp",))])
    again.close()
    (found,) = inspect(path)
    assert found.fault == ""
    assert isinstance(found.records[-1], Admission)


def served_from(least: int) -> list[ServedData]:
    return [ServedData("people", ("ann", "bob"), ("sp",), least)]


def asked_of(mechanism: str, request_id: str) -> Request:
    return replace(request(request_id, loss=pure(0.1)), mechanism=mechanism)


def test_a_minimum_that_noise_has_counted_on_is_not_lowered(ledger: Ledger, reopen: Callable[[], Ledger]) -> None:
    ledger.admit(b"policy", served_from(20))
    ledger.settle(asked_of("counts", "one"), says(b""), 20)
    ledger.admit(b"lower", served_from(10))  # counts have the same noise for all groups
    ledger.settle(asked_of("laplace", "two"), says(b""), 10)
    ledger.admit(b"higher", served_from(30))
    ledger.admit(b"lower", served_from(10))  # nothing has counted on thirty
    for again in (ledger, reopen()):
        refused = "data.minimum_group: must be at least 10, not 9"
        with pytest.raises(LedgerError, match=refused):
            again.check_budgets([], served_from(9))
        with pytest.raises(LedgerError, match=refused):
            again.admit(b"lower still", served_from(9))
        again.check_budgets([], served_from(10))
    assert ledger.standing("people").spent == pytest.approx(0.2)


def test_an_answer_that_counts_on_larger_groups_than_the_policy_that_holds_is_not_given(ledger: Ledger) -> None:
    ledger.admit(b"first", served_from(20))

    def answer(_: tuple[bytes, ...]) -> Reply:
        ledger.admit(b"second", served_from(5))  # it was let in by the first policy
        return Reply(b"answer")

    with pytest.raises(LedgerUnavailable, match="another policy holds"):
        ledger.settle(asked_of("laplace", "one"), answer, 20)
    assert ledger.entries("people") == ()
    assert ledger.settle(asked_of("laplace", "one"), says(b"anew"), 5).reply.answer == b"anew"


def test_records_of_policies_without_a_minimum_are_as_they_were(ledger: Ledger, path: Path) -> None:
    for least in (1, 20):
        ledger.admit(b"policy", served_from(least))
    ledger.close()
    with sqlite3.connect(path) as db:
        found = [json.loads(served) for (served,) in db.execute("SELECT served FROM admissions ORDER BY sequence")]
    db.close()
    assert found == [[["people", ["ann", "bob"], ["sp"]]], [["people", ["ann", "bob"], ["sp"], 20]]]
    assert [each.served for each in inspect(path)[0].records if isinstance(each, Admission)] == [
        tuple(served_from(least)) for least in (1, 20)
    ]


@EVERY_STORE
def test_a_policy_is_recorded_once_and_who_is_not_in_it_has_no_share(ledger: Ledger, place: Place) -> None:
    ledger.set_budget("other", Neighbours.A_FLIP, Budget(9.0))
    ledger.allocate("other", "bob", 1.0)
    ledger.settle(request(loss=pure(0.5)), says(b""))
    for _ in range(2):
        ledger.admit(b"first", [ServedData("people", ("ann",), ("sp", "eo"))])
    assert ledger.standing("people", "ann").remaining == 1.5
    assert (ledger.standing("people", "bob").remaining, ledger.standing("other", "bob").remaining) == (0.0, 1.0)
    assert refusal(lambda: ledger.settle(request(developer="bob"), never)) == REASON_BUDGET_EXHAUSTED
    ledger.admit(b"second", [ServedData("people", ("ann",), ("sp", "eo"))])
    ledger.admit(b"second", [ServedData("people", ("ann",), ("sp",)), ServedData("other", ())])
    found = [each for each in inspect(place)[0].records if isinstance(each, Admission)]
    assert [(each.policy, [one.dataset for one in each.served]) for each in found] == [
        *((b"first", ["people"]), (b"second", ["people"]), (b"second", ["people", "other"])),
    ]


def test_a_policy_s_record_that_was_changed_breaks_the_chain(
    ledger: Ledger, reopen: Callable[[], Ledger], place: Place
) -> None:
    ledger.admit(b"policy", [ServedData("people", ("ann", "bob"), ("sp",))])
    ledger.close()
    forge(place, "UPDATE admissions SET served = replace(served, 'ann', 'eve')")
    with pytest.raises(LedgerError, match="the chain breaks"):
        reopen()


def test_budgets_are_checked_before_one_is_set(ledger: Ledger, place: Place) -> None:
    def account(name: str, people: bytes, rule: Rule = Rule.BASIC) -> Account:
        return Account(name, Neighbours.A_FLIP, Budget(1.0, 0.0, rule), people * 16 + b"what they say...")

    before = len(inspect(place)[0].records)
    ledger.check_budgets([account("people", b"a"), account("new", b"b")])
    for refused, why in (
        ([account("new", b"a"), account("people", b"b", Rule.ZCDP)], "not by zcdp"),
        ([account("new", b"a"), account("newer", b"a")], "newer: these people's data are called new"),
    ):
        with pytest.raises(LedgerError, match=why):
            ledger.check_budgets(refused)
    assert len(inspect(place)[0].records) == before


@pytest.mark.usefixtures("path")
def test_a_ledger_that_may_not_grow_refuses_and_recovers(ledger: Ledger) -> None:
    pages = ledger._store.db.execute("PRAGMA page_count").fetchone()[0]
    ledger._store.db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LedgerUnavailable, match=r"ledger\.sqlite: database or disk is full"):
        ledger.settle(request(), says(bytes(100_000)))
    assert ledger.standing("people").spent == 0.0
    ledger._store.db.execute("PRAGMA max_page_count = 100000")
    assert ledger.settle(request(), says(b"now")).reply.answer == b"now"


def test_a_ledger_locked_by_somebody_else_refuses_and_recovers(ledger: Ledger, path: Path) -> None:
    ledger._store.db.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerUnavailable, match="database is locked"):
        ledger.settle(request(), never)
    other.close()
    assert ledger.settle(request(), says(b"now")).reply.answer == b"now"


@pytest.mark.usefixtures("path")
def test_a_read_only_ledger_refuses(ledger: Ledger) -> None:
    ledger._store.db.execute("PRAGMA query_only = 1")
    with pytest.raises(LedgerUnavailable, match="readonly"):
        ledger.settle(request(), says(b""))


def test_a_head_that_cannot_be_sealed_keeps_the_answer_back_and_nothing_is_lost(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", fail)
        with pytest.raises(LedgerUnavailable, match="head cannot be sealed"):
            ledger.settle(request("a"), says(b"committed"))
        with pytest.raises(LedgerUnavailable, match="head cannot be sealed"):
            ledger.settle(request("b"), says(b"in vain"))
    assert ledger.settle(request("a"), never).reply.answer == b"committed"
    assert ledger.standing("people").spent == 0.5


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of one mebibyte."""
    with small_disks.small_disk(tmp_path / "disk") as disk:
        yield disk


@pytest.mark.parametrize("head_too", [False, True], ids=["the ledger's disk", "the head's disk too"])
def test_a_full_disk_refuses_says_why_and_loses_nothing(small_disk: Path, tmp_path: Path, head_too: bool) -> None:
    (small_disk / "ledger").mkdir()
    (tmp_path / "elsewhere").mkdir()
    path = small_disk / "ledger" / "ledger.sqlite"
    seal = Seal((small_disk if head_too else tmp_path / "elsewhere") / "head.json", KEY)
    ledger = Ledger(path, seal)
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(100.0))
    ledger.allocate("people", "ann", 100.0)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(200_000))
    answered: dict[str, LedgerEntry] = {}
    refused: list[str] = []
    for i in range(200):
        try:
            answered[str(i)] = ledger.settle(request(str(i)), says(b"%d" % i + bytes(8000)))
        except LedgerUnavailable as error:
            refused.append(str(error))
    assert answered
    assert refused
    assert all("full" in said or "No space left" in said for said in refused)
    assert {entry.request.request_id for entry in ledger.entries("people")} >= set(answered)
    assert ledger.settle(request("0"), never) == answered["0"]
    ballast.unlink()
    entry = ledger.settle(request("later"), says(b"there is space again"))
    ledger.close()
    again = Ledger(path, seal)
    kept = again.entries("people")
    assert again.standing("people").spent == 0.5 * len(kept)
    assert kept[-1] == entry
    assert all(again.settle(one.request, never) == one for one in answered.values())
    again.close()


@pytest.mark.check
def test_many_who_begin_a_ledger_at_once_all_open_it(tmp_path: Path) -> None:
    """SQLite refuses some of those who set how a new file is written, where another does so at that moment."""
    with ThreadPoolExecutor(8) as threads:
        for number in range(100):
            gate = threading.Barrier(8)

            def begin(path: Path, gate: threading.Barrier = gate) -> bytes:
                gate.wait(300)
                with closing(sqlite.connect(path)) as db:
                    return SqliteSession(db).genesis()

            assert len({*threads.map(begin, [tmp_path / f"{number}.sqlite"] * 8)}) == 1
