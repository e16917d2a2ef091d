"""Copies of a ledger: taken while the service answers, put back when the ledger is lost.

A backup leaves out the head. The head is what shows that a ledger was rolled back, and a backup that had its own would
look like the newest state.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from compliance.ledger import Ledger
from compliance.ledger.accountant import Loss
from compliance.ledger.entries import LedgerError
from compliance.ledger.file import Inspection, append, connect, explained, genesis_of, inspect
from compliance.ledger.head import Head, Seal, sync_folder


def sealed(path: Path, seal: Seal) -> Inspection:
    """Read the ledger that was sealed last, also while a service uses it.

    Raises
    ------
    LedgerError
        If a record was not written with the key, or the last sealed one is not in it.
    LedgerUnavailable, SealError, OSError
    """
    # The head first: what is added before the ledger is read is behind it.
    head = seal.read()
    found = _genuine(path, seal)
    if head is None and found.records:
        raise LedgerError(f"{path}: its sealed head {seal.path} is missing: bring it back")
    if head is not None and not _holds(found, head):
        raise LedgerError(f"{path}: {_why_not(found, head)}")
    return found


def back_up(path: Path, folder: Path, seal: Seal) -> tuple[Path, Head]:
    """Copy a ledger as it is now, and check the copy; a running service is not disturbed.

    Parameters
    ----------
    path : Path
        The ledger.
    folder : Path
        Gets ``ledger-<number of the last record>.sqlite``; made where there is none.

    Returns
    -------
    (Path, Head)
        The copy, and where it ends.

    Raises
    ------
    LedgerError
        If the copy is not the ledger that was sealed last, or the folder holds the head.
    LedgerUnavailable, SealError, OSError
    """
    if seal.path.resolve().is_relative_to(folder.resolve()):
        raise LedgerError(
            f"{folder}: holds the head {seal.path}, which would be as old as the copy: choose another folder"
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    head = seal.read()
    aside = folder / f"ledger.{os.getpid()}.new"
    try:
        _copy(path, aside)
        found = _genuine(aside, seal)
        if head is not None and not _holds(found, head):
            raise LedgerError(f"{path}: {_why_not(found, head)}")
        end = found.books.head
        copy = folder / f"ledger-{end.sequence:06d}.sqlite"
        aside.replace(copy)
    finally:
        aside.unlink(missing_ok=True)
    sync_folder(folder)
    return copy, end


def restore(copy: Path, path: Path, seal: Seal, lost: Mapping[str, Loss]) -> Head:
    """Put a copy in the place of a ledger that is gone: the records that were checked, in a file that is laid out anew.

    Parameters
    ----------
    path : Path
        Where the ledger was.
    lost : mapping of str to Loss
        Where the copy is not the newest: what each data set was charged after it, at most. It is charged again, and
        the ledger goes on from there. Empty for a copy from which nothing is missing.

    Returns
    -------
    Head
        Where the ledger ends now.

    Raises
    ------
    LedgerError
        If there is a ledger, the copy was not written with the key, charges are missing of which nothing is said, or
        something is said though none are.
    LedgerUnavailable, SealError, OSError
    """
    for name in (path, *_beside(path)):
        if name.exists() and (name != path or name.stat().st_size):
            raise LedgerError(f"{name}: is there, and is never overwritten: move it away first")
    head, found = seal.read(), _genuine(copy, seal)
    whole = found.books.head == head or (head is not None and found.books.before == head)
    _check_lost(copy, found, "" if whole else _why_not(found, head), lost)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.new")
    _lay_out(aside, copy, found)
    end = found.books.head if whole else _written_off(aside, found, seal, lost)
    aside.replace(path)
    sync_folder(path.parent)
    if not whole:
        # Last: a ledger without its head is refused, and this is begun again.
        seal.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        seal.begin(end)
    return end


def _genuine(path: Path, seal: Seal) -> Inspection:
    found = inspect(path, seal.derived("records"))
    if found.fault:
        raise LedgerError(f"{path}: {found.fault}")
    return found


def _holds(found: Inspection, head: Head) -> bool:
    """Say whether a ledger has the record that a head is of; before the first record there is nothing to compare."""
    count = len(found.records)
    return head.sequence <= count and (not head.sequence or found.records[head.sequence - 1].chain == head.chain)


def _why_not(found: Inspection, head: Head | None) -> str:
    end = found.books.head.sequence
    if head is None:
        return f"it ends at record {end}, and the sealed head, which would tell whether that was the last, is missing"
    if head.sequence > end:
        return f"it is an old copy: it ends at record {end}, and {head.sequence} was sealed"
    return f"it is not the ledger that was sealed: record {head.sequence} is another one"


def _check_lost(copy: Path, found: Inspection, missing: str, lost: Mapping[str, Loss]) -> None:
    if not missing:
        if lost:
            raise LedgerError(f"{copy}: nothing is lost: it ends where the head does: leave out --lost")
        return
    datasets = sorted(found.books.neighbours)
    if unknown := sorted(lost.keys() - set(datasets)):
        raise LedgerError(f"{copy}: no data set {unknown[0]}: it has {', '.join(datasets) or 'none'}")
    if unsaid := [name for name in datasets if name not in lost]:
        raise LedgerError(
            f"{copy}: {missing}: bring back the newest copy, or say what each data set was charged after this one "
            f"({' '.join(f'--lost {name}=EPSILON' for name in unsaid)}; inf if nobody knows)"
        )


def _written_off(aside: Path, found: Inspection, seal: Seal, lost: Mapping[str, Loss]) -> Head:
    """Charge what was lost to a copy that is nobody's ledger yet; where it ends then."""
    other = replace(seal, path=seal.path.with_name(f"{seal.path.name}.restoring"))
    other.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    other.begin(found.books.head)
    try:
        ledger = Ledger(aside, other)
        try:
            for dataset, loss in sorted(lost.items()):
                ledger.write_off(dataset, loss)
            end = other.read()
        finally:
            ledger.close()
    finally:
        other.path.unlink()
    assert end is not None, "it was written"
    return end


def _copy(source: Path, target: Path) -> None:
    """Copy a ledger as of one moment, into one file that needs no other, durably."""
    _begin(target)
    with explained(str(source)), _reading(source) as whole, closing(sqlite3.connect(target)) as copied:
        whole.backup(copied)
        copied.execute("PRAGMA journal_mode = DELETE")
    with target.open("rb") as file:
        os.fsync(file.fileno())


def _lay_out(target: Path, copy: Path, found: Inspection) -> None:
    """Write records into a new file: an index or a table that somebody changed in the copy is left behind."""
    _begin(target)
    with explained(str(copy)), _reading(copy) as whole:
        genesis = genesis_of(whole)
    with explained(str(target)), closing(connect(target)) as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE genesis SET chain = ?", (genesis,))
        for record in found.records:
            append(db, record)
        db.execute("COMMIT")


def _begin(target: Path) -> None:
    """Make an empty file for its owner alone, where nothing is left of another."""
    for name in (target, *_beside(target)):
        name.unlink(missing_ok=True)
    os.close(os.open(target, os.O_CREAT | os.O_EXCL, 0o600))


def _beside(path: Path) -> Iterator[Path]:
    """Name what SQLite keeps beside a file."""
    return (path.with_name(path.name + end) for end in ("-wal", "-shm"))


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
        yield db
