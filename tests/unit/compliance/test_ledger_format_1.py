"""A SQLite ledger of format 1, which had no HMACs, becomes one of today's: all of it, or nothing changes."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from compliance.ledger import Ledger, sqlite
from compliance.ledger.accountant import Budget, Neighbours, pure
from compliance.ledger.entries import LedgerError, Reply, Request
from compliance.ledger.head import Head, Seal, load_key
from compliance.ledger.place import inspect
from compliance.ledger.store import LedgerUnavailable

SCHEMA = """
    CREATE TABLE genesis (chain BLOB NOT NULL);
    CREATE TABLE terms (sequence INTEGER PRIMARY KEY, dataset TEXT NOT NULL, developer TEXT NOT NULL,
       neighbours TEXT NOT NULL, rule TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, time REAL NOT NULL,
       chain BLOB NOT NULL);
    CREATE TABLE entries (sequence INTEGER PRIMARY KEY, dataset TEXT NOT NULL, developer TEXT NOT NULL,
       request_id TEXT NOT NULL, digest BLOB NOT NULL, metric TEXT NOT NULL, mechanism TEXT NOT NULL,
       neighbours TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, law TEXT NOT NULL,
       multiplier REAL NOT NULL, released BLOB NOT NULL, facts BLOB NOT NULL, remaining REAL NOT NULL,
       time REAL NOT NULL, chain BLOB NOT NULL, UNIQUE (developer, request_id));
    PRAGMA application_id = 1180126276;
    PRAGMA user_version = 1;
"""
"""As the services wrote it, up to the one that gave records their HMACs."""

GENESIS = b"g" * 32
RECORDS = (
    ("Terms", 1, "people", "", "a-flip", "basic", 4.0, 0.0, 1.5),
    ("Terms", 2, "people", "ann", "a-flip", "basic", 3.0, 0.0, 2.5),
    *(
        *[("Entry", 3, "people", "ann", "one", b"d", "sp", "test", "a-flip", 0.25, 0.0, "any", 0.0)],
        *[("Entry", 4, "people", "ann", "two", b"d", "sp", "test", "a-flip", 0.5, 0.0, "any", 0.0)],
    ),
)
ANSWERS = {"one": b"the first", "two": b"the second"}


def columns(record: tuple[object, ...]) -> tuple[object, ...]:
    """What a row had but for its digest."""
    if record[0] == "Terms":
        return record[1:]
    left = 2.75 if record[1] == 3 else 2.25
    return (*record[1:], ANSWERS[str(record[4])], b'{"old": [1.0]}', left, 3.5)


def heads() -> list[Head]:
    """Where the chain ends after each record."""
    found = [Head(0, GENESIS)]
    for record in RECORDS:
        values = [value.hex() if isinstance(value, bytes) else value for value in columns(record)]
        text = json.dumps([record[0], *values])
        found.append(Head(len(found), hashlib.sha256(found[-1].chain + text.encode()).digest()))
    return found


@pytest.fixture
def seal(tmp_path: Path) -> Seal:
    (tmp_path / "seal").mkdir()
    return Seal(tmp_path / "seal" / "head", load_key(tmp_path / "seal.key"))


@pytest.fixture
def path(tmp_path: Path, seal: Seal) -> Path:
    """A ledger whose last service was killed: its file is beside a log that was not carried over."""
    (tmp_path / "ledger").mkdir()
    (tmp_path / "written").mkdir()
    seal.begin(heads()[-1])
    with closing(sqlite3.connect(tmp_path / "written" / "ledger.sqlite", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(SCHEMA)
        db.execute("INSERT INTO genesis VALUES (?)", (GENESIS,))
        for record, head in zip(RECORDS, heads()[1:], strict=True):
            row = (*columns(record), head.chain)
            table = "terms" if record[0] == "Terms" else "entries"
            db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
        for file in (tmp_path / "written").iterdir():
            if not file.name.endswith("-shm"):
                shutil.copy(file, tmp_path / "ledger")
    return tmp_path / "ledger" / "ledger.sqlite"


def request(name: str) -> Request:
    loss = pure({"one": 0.25, "two": 0.5}.get(name, 1.0))
    return Request("people", "ann", name, b"d", "sp", "test", Neighbours.A_FLIP, loss)


def require_all(path: Path, seal: Seal) -> None:
    """Demand that all is there that was, and that it goes on from there."""
    with closing(Ledger(path, seal)) as ledger:
        ledger.set_budget("people", Neighbours.A_FLIP, Budget(4.0), data=b"whose" * 10)
        assert ledger.standing("people", "ann").remaining == 2.25
        for name, answer in ANSWERS.items():
            entry = ledger.settle(request(name), lambda _: pytest.fail("it has an answer"))
            assert (entry.reply.answer, entry.time) == (answer, 3.5)
        ledger.settle(request("three"), lambda _: Reply(b"new"))
        assert ledger.standing("people", "ann").remaining == 1.25
    (found,) = inspect(path, seal.derived("records"))
    assert found.fault == ""
    assert found.books.head == seal.read()
    assert [record.time for record in found.records[:4]] == [1.5, 2.5, 3.5, 3.5]


def test_what_was_charged_counts_and_what_was_answered_is_answered_again(path: Path, seal: Seal) -> None:
    with pytest.raises(LedgerError, match="of format 1: start this fairwall's service, which makes it format 3"):
        inspect(path)
    require_all(path, seal)
    assert not path.with_name("ledger.sqlite.new").exists()


def test_a_last_record_that_was_not_sealed_any_more_counts(path: Path, seal: Seal) -> None:
    seal.begin(heads()[-2])
    require_all(path, seal)


@pytest.mark.parametrize("sealed", [False, True])
def test_who_dies_before_its_file_is_there_begins_again(
    path: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch, sealed: bool
) -> None:
    def begin_and_die(self: Seal, head: Head, sound: Any = Seal.begin) -> None:
        if sealed:
            sound(self, head)
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(Seal, "begin", begin_and_die)
        with pytest.raises(KeyboardInterrupt):
            Ledger(path, seal)
    assert (seal.read() in heads()) != sealed
    require_all(path, seal)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE entries SET epsilon = 0.125 WHERE sequence = 3", "the chain breaks at record 3"),
        ("DELETE FROM entries", "it ends at record 2, and record 4 of a ledger was sealed"),
        ("UPDATE genesis SET chain = x'00'", "the chain breaks at record 1"),
        ("UPDATE entries SET law = 'none' WHERE sequence = 4", "a record was changed"),
    ],
)
def test_what_was_changed_is_refused_and_left_as_it_is(path: Path, seal: Seal, statement: str, said: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)
    sealed = seal.read()
    for _ in range(2):
        with pytest.raises(LedgerError, match=said) as refused:
            Ledger(path, seal)
        assert str(refused.value).startswith(f"{path}: ")
    assert seal.read() == sealed


def test_without_its_head_and_its_key_nobody_knows_who_wrote_it(path: Path, seal: Seal, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="of format 1"):
        Ledger(path)
    with pytest.raises(LedgerError, match="not sealed with this key"):
        Ledger(path, Seal(seal.path, b"k" * 32))
    head = seal.path.rename(tmp_path / "away")
    with pytest.raises(LedgerError, match="the sealed head is missing"):
        Ledger(path, seal)
    head.rename(seal.path)
    require_all(path, seal)


def test_while_an_older_service_uses_it_it_is_left_alone(
    path: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as older:
        older.execute("SELECT * FROM terms").fetchall()
        with pytest.raises(LedgerUnavailable, match="database is locked"):
            Ledger(path, seal)
        older.execute("SELECT * FROM terms").fetchall()
    require_all(path, seal)


def test_services_that_start_at_once_write_it_anew_once(path: Path, seal: Seal) -> None:
    begin, failed = threading.Barrier(4), []

    def start(number: int) -> None:
        begin.wait()
        try:
            with closing(Ledger(path, seal)) as ledger:
                ledger.settle(request(f"new {number}"), lambda _: Reply(b"answer")) if number < 2 else None
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=start, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with closing(Ledger(path, seal)) as ledger:
        assert ledger.standing("people", "ann").remaining == 0.25
