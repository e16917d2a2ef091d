"""The ledger in a PostgreSQL database: what only a server can do to it, and several services that share it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psycopg
import pytest

from compliance.ledger import Ledger
from compliance.ledger import postgres as store
from compliance.ledger.accountant import Budget, Neighbours, pure
from compliance.ledger.copies import back_up, restore
from compliance.ledger.entries import BudgetRecord, LedgerEntry, LedgerError, Reply, Request, Room, ServedData
from compliance.ledger.head import Head, Seal, SealError
from compliance.ledger.head_table import SealTable
from compliance.ledger.place import inspect
from compliance.ledger.store import LedgerUnavailable
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1.error_pb2 import REASON_QUOTA_EXHAUSTED, REASON_REQUEST_ID_REUSED
from tests.support import postgres_server, small_disks

KEY = bytes(32)
DATA = ("people", "others")


@pytest.fixture
def url() -> str:
    return postgres_server.shared().new_database()


@pytest.fixture(scope="module")
def server() -> Iterator[postgres_server.Server]:
    """A server of this module's own, which tests may stop, and start otherwise."""
    server = postgres_server.begin()
    yield server
    postgres_server.remove(server)


@pytest.fixture
def seal(tmp_path: Path) -> Seal:
    return Seal(tmp_path / "head", KEY)


@pytest.fixture
def reopen(url: str, seal: Seal) -> Iterator[Callable[[], Ledger]]:
    opened = []

    def open_ledger() -> Ledger:
        opened.append(Ledger(url, seal))
        return opened[-1]

    yield open_ledger
    for ledger in opened:
        ledger.close()


@pytest.fixture
def ledger(reopen: Callable[[], Ledger]) -> Ledger:
    ledger = reopen()
    for name in DATA:
        ledger.set_budget(name, Neighbours.A_FLIP, Budget(3.0))
        ledger.allocate(name, "ann", 2.0)
        ledger.allocate(name, "bob", 2.0)
    return ledger


def request(request_id: str = "r", dataset: str = "people", developer: str = "ann", digest: bytes = b"d") -> Request:
    return Request(dataset, developer, request_id, digest, "sp", "laplace", Neighbours.A_FLIP, pure(0.25))


def says(answer: bytes) -> Callable[[tuple[bytes, ...]], Reply]:
    return lambda _: Reply(answer)


def never(_: tuple[bytes, ...]) -> Reply:
    raise AssertionError("an answer was computed for a request that is refused or answered already")


def run(url: str, statement: str) -> Any:
    with psycopg.connect(url, autocommit=True) as db:
        return db.execute(statement).fetchone() if statement.startswith("SELECT") else db.execute(statement)  # type: ignore[arg-type]


# Chains ---------------------------------------------------------------------------------------------------------------


def test_each_data_set_has_a_chain_and_a_seal_of_its_own(ledger: Ledger, url: str, seal: Seal) -> None:
    ledger.settle(request(), says(b"a"))
    ledger.settle(request("s", "others"), says(b"b"))
    ledger.settle(request("t", "others"), says(b"c"))
    found = {each.chain: each for each in inspect(url, seal.derived("records"))}
    assert {name: len(each.records) for name, each in found.items()} == {"people": 4, "others": 5}
    assert {each.fault for each in found.values()} == {""}
    assert {name: seal.of(name).read() for name in DATA} == {name: found[name].books.head for name in DATA}
    assert not seal.path.exists()


def test_data_sets_do_not_wait_for_one_another(ledger: Ledger) -> None:
    with ledger._held("people"), ThreadPoolExecutor(1) as threads:
        assert threads.submit(ledger.settle, request("s", "others"), says(b"b")).result(20).reply.answer == b"b"


@pytest.mark.check
def test_who_holds_all_chains_holds_each_of_them(ledger: Ledger, reopen: Callable[[], Ledger]) -> None:
    other, answered = reopen(), threading.Event()

    def ask() -> None:
        other.settle(request("s", "others"), says(b"b"))
        answered.set()

    with ThreadPoolExecutor(1) as threads:
        with ledger._all_held():
            threads.submit(ask)
            assert not answered.wait(0.2)
        assert answered.wait(20)


def test_an_id_is_one_request_of_its_developer_on_all_data_sets(ledger: Ledger, reopen: Callable[[], Ledger]) -> None:
    ledger.settle(request(), says(b"a"))
    for each in (ledger, reopen()):
        with pytest.raises(Refusal) as refused:
            each.settle(request(dataset="others"), never)
        assert refused.value.reason == REASON_REQUEST_ID_REUSED
    assert ledger.settle(request(dataset="others", developer="bob"), says(b"b")).reply.answer == b"b"


@pytest.mark.check
def test_the_answers_of_a_day_are_those_on_all_data_sets_by_all_services(
    ledger: Ledger, reopen: Callable[[], Ledger]
) -> None:
    other, room = reopen(), Room(0.001, 3)
    ledger.settle(request("a"), says(b""), room=room)
    other.settle(request("b", "others"), says(b""), room=room)
    ledger.settle(request("c", "others"), says(b""), room=room)
    for each in (ledger, other):
        with pytest.raises(Refusal) as refused:
            each.settle(request("d"), never, room=room)
        assert refused.value.reason == REASON_QUOTA_EXHAUSTED
    assert ledger.settle(request("d", developer="bob"), says(b""), room=room)


@pytest.mark.check
def test_a_day_is_full_while_an_answer_is_computed(ledger: Ledger, reopen: Callable[[], Ledger]) -> None:
    """Its turn was lost, and another service has answered the developer about other people meanwhile."""
    other, room = reopen(), Room(0.001, 1)
    other._store.turn = lambda _: nullcontext()  # type: ignore[method-assign]

    def overtaken(_: tuple[bytes, ...]) -> Reply:
        other.settle(request("b", "others"), says(b""), room=room)
        return Reply(b"too late")

    with pytest.raises(Refusal) as refused:
        ledger.settle(request("a"), overtaken, room=room)
    assert refused.value.reason == REASON_QUOTA_EXHAUSTED
    assert ledger.entries("people") == ()


@pytest.mark.check
def test_an_id_is_not_used_for_two_data_sets_at_once(ledger: Ledger, reopen: Callable[[], Ledger]) -> None:
    """Nor where the developer's turn was lost: nobody holds both chains."""
    other = reopen()
    other._store.turn = lambda _: nullcontext()  # type: ignore[method-assign]

    def overtaken(_: tuple[bytes, ...]) -> Reply:
        other.settle(request(dataset="others"), says(b"first"))
        return Reply(b"second")

    with pytest.raises(LedgerUnavailable, match="another service wrote it at the same time: send the request again"):
        ledger.settle(request(), overtaken)
    with pytest.raises(Refusal) as refused:
        ledger.settle(request(), never)
    assert refused.value.reason == REASON_REQUEST_ID_REUSED
    assert [ledger.standing(name).spent for name in DATA] == [0.0, 0.25]


@pytest.mark.check
def test_what_another_service_set_and_admitted_holds(ledger: Ledger, reopen: Callable[[], Ledger]) -> None:
    other = reopen()
    ledger.set_budget("new", Neighbours.A_FLIP, Budget(1.0))
    ledger.allocate("new", "ann", 1.0)
    assert other.standing("new", "ann").remaining == 1.0
    assert other.settle(request("n", "new"), says(b"n")).reply.answer == b"n"
    ledger.admit(b"policy", [ServedData("people", ("ann",)), ServedData("others", ())])
    assert [other.standing(name, "bob").remaining for name in DATA] == [0.0, 0.0]
    for name in (*DATA, "new"):
        with other._held(name) as held:
            assert held.books.admission is not None
            assert held.books.admission.policy == b"policy"


def test_a_data_set_that_has_not_begun_has_nothing(ledger: Ledger) -> None:
    assert (ledger.standing("none").budget, ledger.facts("none", "ann"), ledger.entries("none")) == (None, (), ())
    assert ledger.remaining("none", "ann") == 0.0
    with pytest.raises(LedgerError, match="it has no budget: set one"):
        ledger.settle(request("n", "none"), never)
    with pytest.raises(LedgerError, match="set its budget before"):
        ledger.allocate("none", "ann", 1.0)


def test_a_crash_before_a_new_chain_is_sealed_is_made_good(
    ledger: Ledger, reopen: Callable[[], Ledger], monkeypatch: pytest.MonkeyPatch, seal: Seal
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(Seal, "write", die)
        with pytest.raises(Killed):
            ledger.set_budget("new", Neighbours.A_FLIP, Budget(1.0))
    assert seal.of("new").read() is None
    again = reopen()
    again.set_budget("new", Neighbours.A_FLIP, Budget(1.0))
    assert again.standing("new").remaining == 1.0


def test_an_answer_that_another_service_did_not_seal_leaves_once_it_is_sealed(
    ledger: Ledger, reopen: Callable[[], Ledger], monkeypatch: pytest.MonkeyPatch, seal: Seal
) -> None:
    """It is looked up without holding the chain, where it is as good as any; but a failover could still lose it."""
    other = reopen()
    other.standing("people")

    def die(*_: object) -> None:
        raise OSError("the head's disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(Seal, "write", die)
        for _ in range(2):
            with pytest.raises(LedgerUnavailable, match="the head's disk is gone"):
                ledger.settle(request(), says(b"a"))
        with pytest.raises(LedgerUnavailable, match="the head's disk is gone"):
            other.settle(request(), never)
    assert other.settle(request(), never).reply.answer == b"a"
    (found,) = (each for each in inspect(other._store._url) if each.chain == "people")  # type: ignore[attr-defined]
    assert seal.of("people").read() == found.books.head


@pytest.mark.check
def test_who_lost_its_chain_while_it_sealed_takes_no_seal_back(
    ledger: Ledger, reopen: Callable[[], Ledger], monkeypatch: pytest.MonkeyPatch, seal: Seal, url: str
) -> None:
    """Else an old copy would pass for the newest, and what was charged since would be sold again."""
    other, write = reopen(), Seal.write

    def held_up(self: Seal, head: Head) -> None:
        monkeypatch.setattr(Seal, "write", write)
        postgres_server.end_connections(url)
        for number in range(3):
            other.settle(request(str(number)), says(b""))
        write(self, head)

    monkeypatch.setattr(Seal, "write", held_up)
    with pytest.raises(LedgerUnavailable, match="another service went on with this chain"):
        ledger.settle(request(), says(b"a"))
    (people,) = [each for each in inspect(url, seal.derived("records")) if each.chain == "people"]
    assert seal.of("people").read() == people.books.head
    assert ledger.settle(request(), never).reply.answer == b"a"


@pytest.mark.parametrize("kind", ["file", "table"])
def test_a_seal_that_comes_too_late_is_refused(kind: str, seal: Seal, url: str) -> None:
    place = seal if kind == "file" else SealTable(url, KEY).of("people")
    for number in range(1, 6):
        place.write(Head(number, b"%d" % number))
    for late in (Head(3, b"3"), Head(4, b"4"), Head(5, b"another")):
        with pytest.raises(OSError, match="another service went on with this chain"):
            place.write(late)
        assert place.read() == Head(5, b"5")
    for next_one in (Head(5, b"5"), Head(6, b"6")):
        place.write(next_one)
        assert place.read() == next_one
    if isinstance(place, SealTable):
        with place._open() as db:
            db.close()


@pytest.mark.check
def test_a_head_in_a_table_that_was_changed_is_refused(url: str) -> None:
    place, other = SealTable(url, KEY).of("people"), SealTable(url, b"another").of("people")
    place.write(Head(5, b"5"))
    assert (place.read(), place.of("others").read(), other.read()) == (Head(5, b"5"), None, None)
    run(url, "UPDATE fairwall_heads.heads SET sequence = 4")
    with pytest.raises(SealError, match="not sealed with this key: put back"):
        place.read()
    for each in (place, other):
        with each._open() as db:
            db.close()


@pytest.mark.check
def test_services_that_begin_a_database_at_once_all_open_it(url: str, seal: Seal) -> None:
    gate = threading.Barrier(6)

    def begin(_: int) -> float:
        gate.wait(60)
        ledger = Ledger(url, seal)
        ledger.set_budget("people", Neighbours.A_FLIP, Budget(3.0))
        left = ledger.standing("people").remaining
        ledger.close()
        return left

    with ThreadPoolExecutor(6) as threads:
        assert set(threads.map(begin, range(6))) == {3.0}
    assert len(inspect(url)[0].records) == 1


# Turns ----------------------------------------------------------------------------------------------------------------


def test_one_answer_of_a_developer_is_computed_at_a_time_by_all_services(
    ledger: Ledger, reopen: Callable[[], Ledger]
) -> None:
    other, under_way, most = reopen(), [0], [0]

    def slow(_: tuple[bytes, ...]) -> Reply:
        under_way[0] += 1
        most[0] = max(most[0], under_way[0])
        time.sleep(0.05)
        under_way[0] -= 1
        return Reply(b"")

    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit((ledger, other)[i % 2].settle, request(str(i)), slow) for i in range(4)]
        assert all(isinstance(each.result(60), LedgerEntry) for each in asked)
    assert most == [1]


@pytest.mark.check
def test_a_turn_ends_with_its_connection(ledger: Ledger, reopen: Callable[[], Ledger], url: str) -> None:
    other, begun, go = reopen(), threading.Event(), threading.Event()

    def dying(_: tuple[bytes, ...]) -> Reply:
        begun.set()
        assert go.wait(60)
        return Reply(b"late")

    with ThreadPoolExecutor(1) as threads:
        late = threads.submit(ledger.settle, request("a"), dying)
        assert begun.wait(60)
        postgres_server.end_connections(url)  # the service is not heard of any more
        assert other.settle(request("b"), says(b"b")).reply.answer == b"b"
        go.set()
        assert late.result(60).reply.answer == b"late"
    assert ledger.standing("people").spent == 0.5


# What a server does ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arrives", [False, True], ids=["the commit is lost", "its confirmation is lost"])
def test_an_answer_leaves_only_if_its_record_is_there(
    ledger: Ledger, url: str, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    sound = psycopg.Connection.execute
    cut = [True]

    def execute(db: psycopg.Connection[Any], statement: Any, *given: Any, **named: Any) -> Any:
        if statement == "COMMIT" and wrote(db) and cut.pop():
            if arrives:
                sound(db, statement)
            postgres_server.end_connections(url)
        return sound(db, statement, *given, **named)

    def wrote(db: psycopg.Connection[Any]) -> bool:
        (number,) = sound(db, "SELECT pg_current_xact_id_if_assigned() IS NOT NULL").fetchone() or (False,)
        return bool(cut) and number

    with monkeypatch.context() as broken:
        broken.setattr(psycopg.Connection, "execute", execute)
        with pytest.raises(LedgerUnavailable):
            ledger.settle(request(), says(b"first"))
    assert ledger.settle(request(), never if arrives else says(b"second")).reply.answer == (
        b"first" if arrives else b"second"
    )
    assert ledger.standing("people").spent == 0.25


@pytest.mark.parametrize("method", ["read", "write"], ids=["looks at the seal", "seals"])
def test_a_service_that_is_held_up_while_others_go_on_takes_theirs_for_no_other_ledger_and_unseals_nothing(
    ledger: Ledger, reopen: Callable[[], Ledger], url: str, seal: Seal, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """It has lost its connection, and with it the chain that it holds as it thinks."""
    other, sound, stopped = reopen(), getattr(Seal, method), [True]

    def held_up(own: Seal, *given: Any) -> Any:
        if stopped and stopped.pop():
            postgres_server.end_connections(url)
            for name in ("b", "c"):
                other.settle(request(name), says(name.encode()))
        return sound(own, *given)

    with ledger._held("people") as held:
        ledger._append(held, record_of_a_share(held.books.head.sequence + 1))
    with monkeypatch.context() as patched:
        patched.setattr(Seal, method, held_up)
        with pytest.raises(LedgerUnavailable):
            ledger.settle(request("a"), says(b"in vain"))
    assert stopped == []
    (end,) = (found.books.head for found in inspect(url) if found.chain == "people")
    assert seal.of("people").read() == end
    assert ledger.settle(request("b"), never).reply.answer == b"b"
    assert ledger.settle(request("a"), says(b"a")).reply.answer == b"a"


def record_of_a_share(number: int) -> BudgetRecord:
    return BudgetRecord(number, "people", "cat", Neighbours.A_FLIP, Budget(1.0), time.time(), b"")


@pytest.mark.check
def test_a_server_that_was_restarted_is_found_again(server: postgres_server.Server, seal: Seal) -> None:
    ledger = Ledger(server.new_database(), seal)
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(3.0))
    ledger.allocate("people", "ann", 2.0)
    entry = ledger.settle(request("a"), says(b"a"))
    server.stop()  # at once, as in a crash
    with pytest.raises(LedgerUnavailable) as unavailable:
        ledger.settle(request("b"), never)
    assert "\n" not in str(unavailable.value)
    server.start()
    assert ledger.settle(request("a"), never) == entry
    assert ledger.settle(request("b"), says(b"b")).reply.answer == b"b"
    ledger.close()


@pytest.mark.check
def test_a_server_that_may_lose_what_it_committed_is_refused(server: postgres_server.Server, seal: Seal) -> None:
    for setting, value, why in (
        ("synchronous_commit", "off", "synchronous_commit is off: a charge that is answered could be lost"),
        ("synchronous_commit", "local", "synchronous_commit is local: .*turn it on"),
        ("default_transaction_read_only", "on", "only to be read"),
    ):
        url = server.new_database()
        run(url, f"ALTER ROLE fairwall IN DATABASE {url.split('/')[3].partition('?')[0]} SET {setting} = '{value}'")
        with pytest.raises(LedgerUnavailable, match=why):
            Ledger(url, seal)
    server.stop()
    server.settings = {"fsync": "off"}
    server.start()
    with pytest.raises(LedgerUnavailable, match="fsync is off"):
        Ledger(server.url(), seal)
    server.stop()
    server.settings = {}
    server.start()


@pytest.mark.check
def test_a_standby_is_refused_and_one_that_lags_is_when_it_is_promoted(tmp_path: Path) -> None:
    primary = postgres_server.begin()
    standby = primary.standby()
    try:
        ledger = Ledger(primary.url(), Seal(tmp_path / "head", KEY))
        ledger.set_budget("people", Neighbours.A_FLIP, Budget(3.0))
        ledger.allocate("people", "ann", 2.0)
        standby.start()
        standby.wait_for(primary)
        with pytest.raises(LedgerUnavailable, match="it is a standby, which is only to be read: name the primary"):
            Ledger(standby.url(), Seal(tmp_path / "head", KEY))
        standby.stop()
        ledger.settle(request(), says(b"which the standby has never heard of"))
        ledger.close()
        primary.stop()
        standby.promote()
        with pytest.raises(LedgerError, match="old copy: it ends at record 2, and 3 was sealed: bring back the newest"):
            Ledger(standby.url(), Seal(tmp_path / "head", KEY))
    finally:
        postgres_server.remove(standby)
        postgres_server.remove(primary)


@pytest.mark.check
def test_a_full_disk_of_the_server_refuses_says_why_and_loses_nothing(tmp_path: Path) -> None:
    server = postgres_server.begin()
    try:
        with small_disks.small_disk(server.folder / "disk", "17m", server.folder.stat().st_uid) as disk:
            run(server.url(), f"CREATE TABLESPACE small LOCATION '{disk}'")
            run(server.url(), "CREATE DATABASE small TABLESPACE small")
            ledger = Ledger(server.url("small"), Seal(tmp_path / "head", KEY))
            ledger.set_budget("people", Neighbours.A_FLIP, Budget(1000.0))
            ledger.allocate("people", "ann", 1000.0)
            ballast = disk / "ballast"
            ballast.write_bytes(bytes(3 << 20))
            answered, refused = {}, []
            for i in range(60):
                try:
                    answered[str(i)] = ledger.settle(request(str(i)), lambda _: Reply(os.urandom(500_000)))
                except LedgerUnavailable as error:
                    refused.append(str(error))
            assert answered
            assert refused
            assert all("No space left" in said for said in refused)
            ballast.unlink()
            assert ledger.standing("people").spent == 0.25 * len(answered)
            assert all(ledger.settle(request(name), never) == entry for name, entry in answered.items())
            ledger.close()
            server.stop()
    finally:
        postgres_server.remove(server)


@pytest.mark.check
def test_a_lock_that_nobody_lets_go_refuses_and_recovers(ledger: Ledger, url: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(store, "_SECONDS", 1)
    ledger._store.close()  # so that the next connection is made for this second
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", (store._number("chain", "people"),))
        with pytest.raises(LedgerUnavailable, match="lock timeout"):
            ledger.settle(request(), says(b"in vain"))
        assert ledger.settle(request("s", "others"), says(b"s")).reply.answer == b"s"
    assert ledger.settle(request(), says(b"now")).reply.answer == b"now"


# Bad input ---------------------------------------------------------------------------------------------------------


def refused(place: str, seal: Seal) -> str:
    with pytest.raises((LedgerError, LedgerUnavailable)) as error:
        Ledger(place, seal)
    said = str(error.value)
    assert "\n" not in said
    return said


def test_an_address_that_is_wrong_is_one_line(seal: Seal, url: str) -> None:
    socket = url.partition("host=")[2]
    assert "Connection refused" in refused("postgresql://ann@127.0.0.1:9/ledger", seal)
    assert 'database "none" does not exist' in refused(f"postgresql://fairwall@/none?host={socket}", seal)
    assert 'role "eve" does not exist' in refused(f"postgresql://eve@/postgres?host={socket}", seal)
    assert "no such file" in refused(f"postgresql://ann@/ledger?host={socket}/none", seal).lower()
    assert "it is no address of a database" in refused("postgresql://ann@host:port/ledger", seal)
    assert 'invalid URI query parameter: "color"' in refused(url + "&color=blue", seal)


def test_a_password_in_the_address_is_refused_and_not_shown(seal: Seal) -> None:
    for address in ("postgresql://ann:s3cret@host/ledger", "postgresql://ann@host/ledger?password=s3cret"):
        said = refused(address, seal)
        assert "it has a password in it: write it to a file for its owner alone, and say ?passfile=/its/path" in said
        assert "s3cret" not in said


@pytest.mark.check
def test_a_wrong_password_is_one_line_without_it(server: postgres_server.Server, tmp_path: Path) -> None:
    run(server.url(), "ALTER ROLE fairwall PASSWORD 'right'")
    access = server.data / "pg_hba.conf"
    trusting = access.read_text()
    access.write_text("local all all scram-sha-256\n")
    server.stop()
    server.start()
    passfile = tmp_path / "password"
    passfile.write_text("*:*:*:*:wrong-s3cret\n")
    passfile.chmod(0o600)
    said = refused(f"{server.url()}&passfile={passfile}", Seal(tmp_path / "head", KEY))
    assert "password authentication failed" in said
    assert "s3cret" not in said
    passfile.write_text("*:*:*:*:right\n")
    Ledger(f"{server.url()}&passfile={passfile}", Seal(tmp_path / "head", KEY)).close()
    access.write_text(trusting)
    server.stop()
    server.start()


def test_another_format_is_refused(ledger: Ledger, url: str, seal: Seal) -> None:
    ledger.close()
    run(url, "UPDATE fairwall.format SET format = 2")
    assert "it is of format 2, and this fairwall reads format 1" in refused(url, seal)
    with pytest.raises(LedgerError, match="of format 2"):
        inspect(url)


def test_the_database_of_another_deployment_is_refused(ledger: Ledger, url: str, tmp_path: Path) -> None:
    ledger.settle(request(), says(b"a"))
    ledger.close()
    assert "written without this key" in refused(url, Seal(tmp_path / "another", b"\1" * 32))
    # With this one's key, but not its seal: a clone, of which nobody knows whether it is the newest.
    assert "the sealed head is missing" in refused(url, Seal(tmp_path / "another", KEY))


def test_what_is_no_ledger_is_not_read(url: str) -> None:
    with pytest.raises(LedgerError, match="it is not a ledger: name the service's database"):
        inspect(url)


@pytest.mark.check
def test_a_user_who_may_not_write_is_refused(ledger: Ledger, url: str, seal: Seal) -> None:
    ledger.close()
    run(url, "CREATE ROLE reader LOGIN")
    run(url, "GRANT USAGE ON SCHEMA fairwall TO reader")
    run(url, "GRANT SELECT ON ALL TABLES IN SCHEMA fairwall TO reader")
    try:
        reader = Ledger(url.replace("fairwall@", "reader@"), seal)  # it may give again what was bought
        with pytest.raises(LedgerUnavailable, match="permission denied for table entries"):
            reader.settle(request(), says(b"a"))
        with pytest.raises(LedgerUnavailable, match="permission denied for table probe"):
            reader.check()
        reader.close()
    finally:
        run(url, "DROP OWNED BY reader")
        run(url, "DROP ROLE reader")


# Old copies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "why"),
    [
        ("DELETE FROM fairwall.entries WHERE sequence > 4", "old copy: it ends at record 4, and 5 was sealed"),
        ("DELETE FROM fairwall.entries", "old copy: it ends at record 3, and 5 was sealed"),
    ],
)
def test_a_restored_database_is_refused(
    ledger: Ledger, reopen: Callable[[], Ledger], url: str, loss: str, why: str
) -> None:
    for name in ("a", "b"):
        ledger.settle(request(name), says(b""))
    run(url, loss)
    with pytest.raises(LedgerError, match="replaced while it was in use"):
        ledger.settle(request("c"), never)
    with pytest.raises(LedgerError, match=why):
        reopen()


@pytest.mark.check
@pytest.mark.parametrize("loss", ["DROP SCHEMA fairwall CASCADE", "TRUNCATE fairwall.lines, fairwall.terms"])
def test_a_data_set_that_is_gone_is_not_begun_anew(
    ledger: Ledger, reopen: Callable[[], Ledger], url: str, loss: str
) -> None:
    ledger.close()
    run(url, loss)
    again = reopen()
    with pytest.raises(LedgerError, match="old copy: it ends at record 0, and 3 was sealed"):
        again.set_budget("people", Neighbours.A_FLIP, Budget(3.0))
    again.set_budget("new", Neighbours.A_FLIP, Budget(3.0))


# Copies ---------------------------------------------------------------------------------------------------------------


@pytest.mark.check
def test_a_copy_of_each_data_set_is_put_back_and_what_is_missing_is_charged(
    ledger: Ledger, reopen: Callable[[], Ledger], url: str, seal: Seal, tmp_path: Path
) -> None:
    first = ledger.settle(request("a"), says(b"a"))
    copies = dict(zip(sorted(DATA), back_up(url, tmp_path / "backups", seal), strict=True))
    assert {name: path.name for name, (path, _) in copies.items()} == {
        "others": "ledger-others-000003.sqlite",
        "people": "ledger-people-000004.sqlite",
    }
    copy, end = copies["people"]
    (found,) = inspect(copy, seal.derived("records"))
    assert (found.books.head, found.chain) == (end, "")
    with pytest.raises(LedgerError, match="data set people: is there, and is never overwritten"):
        restore(copy, url, seal, {})
    ledger.settle(request("b"), says(b"b"))
    ledger.close()
    run(url, "DROP SCHEMA fairwall CASCADE")
    assert restore(copies["others"][0], url, seal, {}) == copies["others"][1]
    with pytest.raises(
        LedgerError, match=r"it is an old copy: it ends at record 4, and 5 was sealed: .*--lost people="
    ):
        restore(copy, url, seal, {})
    restore(copy, url, seal, {"people": pure(0.25)})
    again = reopen()
    assert again.settle(request("a"), never) == first
    assert again.standing("people").spent == 0.5
    assert again.standing("people", "ann").spent == 0.25
    assert again.settle(request("c", "others"), says(b"c")).reply.answer == b"c"


@pytest.mark.check
def test_a_file_of_several_data_sets_is_not_put_in_a_database(url: str, seal: Seal, tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()
    path, own = tmp_path / "ledger" / "ledger.sqlite", Seal(tmp_path / "own", KEY)
    ledger = Ledger(path, own)
    for name in DATA:
        ledger.set_budget(name, Neighbours.A_FLIP, Budget(3.0))
    ((copy, _),) = back_up(path, tmp_path / "backups", own)
    ledger.close()
    with pytest.raises(LedgerError, match="it is of 2 data sets, and a database keeps each by itself"):
        restore(copy, url, seal, {})
