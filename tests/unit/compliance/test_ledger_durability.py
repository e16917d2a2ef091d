"""In which order the ledger's bytes reach the disk: what an answer rests on is there before the answer is."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Neighbours, pure
from compliance.ledger.entries import Books, BudgetRecord, LedgerError, Reply, Request, link, mac
from compliance.ledger.head import Head, Seal, SealError, load_key

FULL = 2
"""What SQLite calls it that a commit ends with a sync."""


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked of the disk, in order: writes in place, syncs, files that took another's name, links."""
    events: list[str] = []
    fsync, fdatasync, pwrite, replace, link = os.fsync, os.fdatasync, os.pwrite, os.replace, os.link

    def name_of(descriptor: int) -> str:
        return Path(f"/proc/self/fd/{descriptor}").readlink().name

    def synced(descriptor: int) -> None:
        events.append(f"sync {name_of(descriptor)}")
        fsync(descriptor)

    def synced_bytes(descriptor: int) -> None:
        events.append(f"sync {name_of(descriptor)}")
        fdatasync(descriptor)

    def written(descriptor: int, *given: Any) -> int:
        events.append(f"write {name_of(descriptor)}")
        return pwrite(descriptor, *given)

    def replaced(source: Any, target: Any, **rest: Any) -> None:
        events.append(f"replace {Path(target).name}")
        replace(source, target, **rest)

    def linked(source: Any, target: Any, **rest: Any) -> None:
        events.append(f"link {Path(target).name}")
        link(source, target, **rest)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "fdatasync", synced_bytes)
    monkeypatch.setattr(os, "pwrite", written)
    monkeypatch.setattr(os, "replace", replaced)
    monkeypatch.setattr(os, "link", linked)
    return events


BEGUN = ["sync head.json.new", "replace head.json", "sync elsewhere"]
SEALED = ["write head.json", "sync head.json"]


def test_a_seal_is_whole_before_it_has_its_name_and_its_name_before_anybody_goes_on(
    tmp_path: Path, done: list[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    seal = Seal(tmp_path / "elsewhere" / "head.json", bytes(32))
    seal.write(Head(1, b"chain"))
    assert done == BEGUN
    seal.write(Head(2, b"chain"))
    assert done == [*BEGUN, *SEALED]


def test_a_seal_that_is_half_written_leaves_the_one_before(tmp_path: Path) -> None:
    seal = Seal(tmp_path / "head.json", bytes(32))
    seal.write(Head(1, b"one"))
    for number in range(2, 5):
        before, old = Head(number - 1, seal.read().chain), seal.path.read_bytes()  # type: ignore[union-attr]
        after = Head(number, b"chain %d" % number)
        seal.write(after)
        new = seal.path.read_bytes()
        (changed,) = (at for at in (0, 4096) if new[at : at + 4096] != old[at : at + 4096])
        for cut in (*range(0, 300, 7), 4095, 4096):
            seal.path.write_bytes(old[:changed] + new[changed : changed + cut] + old[changed + cut :])
            assert seal.read() == (after if old[changed + cut :] == new[changed + cut :] else before), cut
            seal.path.write_bytes(old[:changed] + bytes(4096 - cut) + new[changed + 4096 - cut :])
            assert seal.read() == (after if cut == 4096 else before), "noughts instead of what was there"
        seal.path.write_bytes(new)


def test_a_seal_of_which_the_sync_fails_does_not_pass_for_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal = Seal(tmp_path / "head.json", bytes(32))
    seal.write(Head(1, b"one"))
    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", fail)
        with pytest.raises(OSError, match="Input/output error"):
            seal.write(Head(2, b"two"))
    assert seal.read() == Head(1, b"one")
    seal.write(Head(2, b"two"))
    assert seal.read() == Head(2, b"two")


def fail(*_: Any) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_seal_of_one_place_only_is_read_and_gets_two(tmp_path: Path) -> None:
    seal = Seal(tmp_path / "head.json", bytes(32))
    seal.write(Head(1, b"one"))
    seal.path.write_bytes(seal.path.read_bytes()[:4096].rstrip() + b"\n")  # as it was written up to now
    assert seal.read() == Head(1, b"one")
    seal.write(Head(2, b"two"))
    assert (seal.read(), seal.path.stat().st_size) == (Head(2, b"two"), 8192)


def test_a_key_is_whole_before_it_has_its_name(tmp_path: Path, done: list[str]) -> None:
    (tmp_path / "keys").mkdir()
    load_key(tmp_path / "keys" / "key")
    assert [event for event in done if not event.endswith(".new")] == ["link key", "sync keys"]
    assert done[0].startswith("sync key.")


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    def use(name: str) -> None:
        seal = Seal(tmp_path / f"{name}.head", load_key(tmp_path / f"{name}.key"))
        for number in range(1, 4):
            seal.write(Head(number, b"chain"))
            assert seal.read() == Head(number, b"chain")

    use("first")
    opened = os.listdir("/proc/self/fd")
    use("second")
    assert os.listdir("/proc/self/fd") == opened


def test_a_charge_is_committed_and_synced_then_sealed_and_only_then_answered(tmp_path: Path, done: list[str]) -> None:
    for name in ("ledger", "elsewhere"):
        (tmp_path / name).mkdir()
    ledger = Ledger(tmp_path / "ledger" / "ledger.sqlite", Seal(tmp_path / "elsewhere" / "head.json", bytes(32)))
    assert done[0] == "sync ledger", "the new file's name"
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(3.0))
    ledger.allocate("people", "ann", 2.0)
    assert ledger._store.db.execute("PRAGMA synchronous").fetchone() == (FULL,)
    assert ledger._store.db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    done.clear()
    ledger._store.db.set_trace_callback(lambda statement: done.append(statement.split(" ")[0]))
    asked = Request("people", "ann", "r", b"digest", "sp", "laplace", Neighbours.A_FLIP, pure(0.5))
    ledger.settle(asked, lambda _: done.append("answer computed") or Reply(b"answer"))  # type: ignore[func-returns-value]
    ledger._store.db.set_trace_callback(None)
    ledger.close()
    happened = iter(done)
    assert all(step in happened for step in ("answer computed", "INSERT", "COMMIT", *SEALED)), done


@pytest.mark.parametrize("other", [Head(2, b"chain"), Head(1, b"other")])
def test_a_seal_is_for_one_number_and_one_chain(tmp_path: Path, other: Head) -> None:
    seal = Seal(tmp_path / "head.json", bytes(32))
    seal.write(Head(1, b"chain"))
    forged = seal.path.read_text()
    for mine, theirs in ((b"chain".hex(), other.chain.hex()), ('"sequence": 1', f'"sequence": {other.sequence}')):
        forged = forged.replace(mine, theirs)
    seal.path.write_text(forged)
    with pytest.raises(SealError, match="not sealed with this key"):
        seal.read()


def test_the_head_is_not_kept_in_the_ledgers_folder_under_another_name(tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()
    (tmp_path / "elsewhere").symlink_to(tmp_path / "ledger")
    for ledger, head in (("ledger", "elsewhere"), ("elsewhere", "ledger")):
        with pytest.raises(LedgerError, match="keep the head elsewhere"):
            Ledger(tmp_path / ledger / "ledger.sqlite", Seal(tmp_path / head / "head", bytes(32)))


def test_a_key_that_a_group_or_others_can_read_is_refused(tmp_path: Path) -> None:
    load_key(tmp_path / "key")
    for mode in (0o640, 0o604, 0o660):
        (tmp_path / "key").chmod(mode)
        with pytest.raises(SealError, match="chmod 600"):
            load_key(tmp_path / "key")


def test_a_record_that_is_chained_under_another_number_is_refused() -> None:
    key = b"k" * 32
    books = Books(bytes(32), key)

    def written(number: int) -> BudgetRecord:
        terms = BudgetRecord(number, "people", "", Neighbours.A_FLIP, Budget(1.0), 0.0, b"")
        chain = link(books.head.chain, terms)
        return replace(terms, chain=chain, mac=mac(key, chain))

    for sequence in (0, 2):
        with pytest.raises(LedgerError, match="the chain breaks at record 1"):
            books.add(written(sequence))
    books.add(written(1))
