"""Copies of a ledger: whole as of one moment, and put back as they were or not at all."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from compliance.ledger import Ledger, copies, sqlite
from compliance.ledger.accountant import Budget, Loss, Neighbours, pure
from compliance.ledger.copies import back_up, restore, sealed
from compliance.ledger.entries import LedgerError, Reply, Request, ServedData
from compliance.ledger.head import Seal, load_key
from compliance.ledger.place import inspect
from compliance.ledger.store import LedgerUnavailable


@pytest.fixture
def seal(tmp_path: Path) -> Seal:
    (tmp_path / "seal").mkdir()
    return Seal(tmp_path / "seal" / "head", load_key(tmp_path / "seal.key"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "ledger").mkdir()
    return tmp_path / "ledger" / "ledger.sqlite"


def opened(path: Path, seal: Seal) -> Ledger:
    ledger = Ledger(path, seal)
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(1000.0))
    ledger.allocate("people", "ann", 1000.0)
    return ledger


def settle(ledger: Ledger, name: str) -> bytes:
    request = Request("people", "ann", name, b"d", "sp", "test", Neighbours.A_FLIP, pure(0.25))
    return ledger.settle(request, lambda _: Reply(name.encode())).reply.answer


def lose(path: Path) -> None:
    shutil.rmtree(path.parent)


def copies_under_way(path: Path, folder: Path, seal: Seal, many: int) -> list[int]:
    """Back a ledger up while it is written; of each copy, how many records it lacks that were sealed before."""
    ledger, over = opened(path, seal), threading.Event()

    def write() -> None:
        number = 0
        while not over.is_set():
            settle(ledger, f"r{number}")
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    missing = []
    try:
        while not (head := seal.read()) or head.sequence < 3:
            pass
        for _ in range(many):
            before = seal.read()
            assert before is not None
            ((copy, end),) = back_up(path, folder, seal)
            (found,) = inspect(copy, seal.derived("records"))
            assert not found.fault
            assert found.books.head == end
            missing.append(before.sequence - end.sequence)
    finally:
        over.set()
        writer.join()
        ledger.close()
    return missing


def test_a_copy_has_all_that_was_sealed_before_it_was_taken(tmp_path: Path, path: Path, seal: Seal) -> None:
    assert max(copies_under_way(path, tmp_path / "backups", seal, 6)) <= 0
    assert not [one for one in (tmp_path / "backups").iterdir() if one.suffix != ".sqlite"]


def test_a_twin_that_copies_the_file_alone_is_refused(
    tmp_path: Path, path: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in the write-ahead log is not in the file."""

    def of_the_file_alone(path: Path, sound: Any = sqlite.reading, **_: bool) -> Any:
        return sound(shutil.copyfile(path, tmp_path / "alone"))

    monkeypatch.setattr(sqlite, "reading", of_the_file_alone)
    with pytest.raises(LedgerError, match=r"it is an old copy|not a ledger"):
        copies_under_way(path, tmp_path / "backups", seal, 6)


@pytest.mark.check
def test_a_copy_that_was_changed_is_put_back_as_it_was_or_not_at_all(tmp_path: Path, path: Path, seal: Seal) -> None:
    ledger = opened(path, seal)
    for number in range(3):
        settle(ledger, f"r{number}")
    ledger.close()
    ((copy, _),) = back_up(path, tmp_path / "backups", seal)
    records, whole = inspect(copy)[0].records, copy.read_bytes()
    lose(path)
    refused = 0
    for at in (*range(0, 100, 2), *(at for at in range(100, len(whole), 97) if whole[at])):
        copy.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        if is_put_back(copy, path, seal):
            # A byte that stands for nothing, or in an index, which is made anew.
            assert inspect(path, seal.derived("records"))[0].records == records
            ledger = Ledger(path, seal)
            assert settle(ledger, "r1") == b"r1"
            assert ledger.standing("people").spent == 0.75
            ledger.close()
            lose(path)
        else:
            assert not path.exists()
            refused += 1
    assert refused > 10


def is_put_back(copy: Path, path: Path, seal: Seal) -> bool:
    try:
        restore(copy, path, seal, {})
    except (LedgerError, LedgerUnavailable):
        return False
    return True


def test_a_copy_with_other_tables_is_put_back_with_its_own(tmp_path: Path, path: Path, seal: Seal) -> None:
    """Without its index an answer is not found when it is asked for again, and with a trigger it is not kept."""
    ledger = opened(path, seal)
    settle(ledger, "r0")
    ledger.close()
    ((copy, _),) = back_up(path, tmp_path / "backups", seal)
    lose(path)
    with closing(sqlite3.connect(copy)) as db:
        db.execute("CREATE TRIGGER loses AFTER INSERT ON entries BEGIN DELETE FROM terms; END")
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = replace(sql, 'UNIQUE (developer, request_id)', 'CHECK (1)')")
        db.execute("DELETE FROM sqlite_master WHERE name LIKE 'sqlite_autoindex%'")
        db.commit()
    restore(copy, path, seal, {})
    ledger = Ledger(path, seal)
    assert settle(ledger, "r0") == b"r0"
    assert settle(ledger, "r1") == b"r1"
    ledger.close()
    assert len(inspect(path, seal.derived("records"))[0].records) == 4


def test_bytes_are_not_their_hexadecimal_digits(tmp_path: Path, path: Path, seal: Seal) -> None:
    """One digest stands for both: which of them a column holds tells a changed record."""
    ledger = opened(path, seal)
    ledger.admit(b"policy", [ServedData("people", ("ann",))])
    settle(ledger, "r0")
    ledger.close()
    for change in (
        "UPDATE entries SET released = lower(hex(released))",
        "UPDATE terms SET data = lower(hex(data))",
        "UPDATE admissions SET policy = lower(hex(policy))",
        "UPDATE entries SET sequence = 4.0, remaining = 'inf'",
    ):
        other = tmp_path / "other.sqlite"
        shutil.copyfile(path, other)
        with closing(sqlite3.connect(other)) as db:
            db.execute(change)
            db.commit()
        assert "a record was changed" in inspect(other, seal.derived("records"))[0].fault


def test_what_was_lost_is_charged_whether_it_is_covered_or_not(tmp_path: Path, path: Path, seal: Seal) -> None:
    ledger = opened(path, seal)
    settle(ledger, "r0")
    ((copy, end),) = back_up(path, tmp_path / "backups", seal)
    for name in ("r1", "r2", "r3"):
        settle(ledger, name)
    ledger.close()
    lose(path)
    with pytest.raises(LedgerError, match=r"it ends at record 3, and 6 was sealed.*--lost people=EPSILON"):
        restore(copy, path, seal, {})
    with pytest.raises(LedgerError, match=r"no data set poeple: it has people"):
        restore(copy, path, seal, {"people": Loss(2000.0), "poeple": Loss(2000.0)})
    assert not list(path.parent.parent.glob("ledger/*")), "nothing is put back, nor begun"
    head = restore(copy, path, seal, {"people": Loss(2000.0)})
    assert (head.sequence, end.sequence) == (4, 3)
    assert sealed(path, seal)[0].books.head == seal.read() == head
    ledger = Ledger(path, seal)
    assert settle(ledger, "r0") == b"r0"
    standing = ledger.standing("people")
    assert (standing.spent, standing.remaining) == (2000.25, 0.0)
    assert ledger.standing("people", "ann").spent == 0.25
    ledger.close()
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert [one.name for one in seal.path.parent.iterdir()] == [seal.path.name]


def test_a_copy_with_a_record_that_was_not_sealed_any_more_lacks_nothing(
    tmp_path: Path, path: Path, seal: Seal
) -> None:
    """The service died between a commit and its seal."""
    ledger = opened(path, seal)
    sealed_last = seal.path.read_bytes()
    settle(ledger, "r0")
    ((copy, end),) = back_up(path, tmp_path / "backups", seal)
    ledger.close()
    lose(path)
    seal.path.write_bytes(sealed_last)
    assert restore(copy, path, seal, {}) == end
    ledger = Ledger(path, seal)
    assert settle(ledger, "r0") == b"r0"
    assert seal.read() == end
    ledger.close()


def test_no_copy_lies_beside_the_head(path: Path, seal: Seal) -> None:
    opened(path, seal).close()
    for folder in (seal.path.parent, seal.path.parent.parent):
        with pytest.raises(LedgerError, match="choose another folder"):
            back_up(path, folder, seal)
    assert [one.name for one in seal.path.parent.iterdir()] == [seal.path.name]


def test_a_restoration_that_dies_half_way_is_refused_and_begun_again(
    tmp_path: Path, path: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(path, seal)
    ((copy, _),) = back_up(path, tmp_path / "backups", seal)
    settle(ledger, "r0")
    ledger.close()
    lose(path)

    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    for name in ("sync_folder", "_written_off"):
        with monkeypatch.context() as dying:
            dying.setattr(copies, name, die)
            with pytest.raises(Killed):
                restore(copy, path, seal, {"people": Loss(0.25)})
        if path.exists():
            with pytest.raises(LedgerError, match="not the ledger that was sealed"):
                Ledger(path, seal)
            lose(path)
    restore(copy, path, seal, {"people": Loss(0.25)})
    Ledger(path, seal).close()


def test_a_ledger_of_other_peoples_seal_is_not_copied(tmp_path: Path, path: Path, seal: Seal) -> None:
    opened(path, seal).close()
    other = Seal(tmp_path / "other-head", b"k" * 32)
    with pytest.raises(LedgerError, match="without this key"):
        back_up(path, tmp_path / "backups", other)
    seal.path.unlink()
    with pytest.raises(LedgerError, match=r"its sealed head .* is missing"):
        sealed(path, seal)
    with pytest.raises(LedgerError, match="no such file"):
        back_up(tmp_path / "none", tmp_path / "backups", seal)
    assert [*(tmp_path / "backups").iterdir()] == []
