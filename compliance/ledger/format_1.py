"""Makes a SQLite ledger of format 1 one that this fairwall reads.

Its records had no HMACs and no bound on the people of a data set. That they are genuine is told by their chain, whose
end was sealed with the key: each record is written anew, as one that was made today with the same content.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from heapq import merge
from pathlib import Path

from compliance.ledger.copies import lay_out
from compliance.ledger.entries import (
    COLUMNS,
    LedgerError,
    Record,
    Terms,
    columns_of,
    digest_of,
    link,
    mac,
    record_of,
)
from compliance.ledger.head import AnySeal, Head, SealError, sync_folder
from compliance.ledger.sqlite import APPLICATION_ID, explained, set_journal
from compliance.ledger.store import LedgerUnavailable

_NEW = {"data": "x''", "mac": "x''"}
"""The columns that format 1 has not, and what stands for them."""

_DATA = COLUMNS["terms"].split(", ").index("data")


def renew(path: Path, seal: AnySeal) -> None:
    """Write a ledger of format 1 anew in its place; leave any other file as it is.

    Its digests change, and so does the sealed head, first: who dies between the two finds the head of what the old
    records become, which is the same each time. LedgerError if the chain is broken, or does not end where the head
    says; LedgerUnavailable if it cannot be written, or is in use.
    """
    if not path.is_file():
        return
    with explained(str(path)):
        try:
            with _alone(path.parent):
                if _is_old(path):
                    _renew(path, seal)
        except SealError as error:
            raise LedgerError(str(error)) from None
        except OSError as error:
            raise LedgerUnavailable(str(error)) from error


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep others waiting who would write the same ledger anew."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_old(path: Path) -> bool:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
        told = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
    return told == [APPLICATION_ID, 1]


def _renew(path: Path, seal: AnySeal) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        set_journal(db, "DELETE")  # nothing is left beside the file, and nobody else has it open
        db.execute("BEGIN EXCLUSIVE")
        genesis: bytes = db.execute("SELECT chain FROM genesis").fetchone()[0]
        old = [Head(0, genesis)]
        new, records, key = genesis, list[Record](), seal.derived("records")
        for record in merge(_read(db, "terms"), _read(db, "entries"), key=lambda record: record.sequence):
            before = old[-1]
            if record.sequence != before.sequence + 1 or record.chain != _link(before.chain, record):
                raise LedgerError(f"the chain breaks at record {before.sequence + 1}: bring back an untouched copy")
            old.append(Head(record.sequence, record.chain))
            new = link(new, record)
            records.append(replace(record, chain=new, mac=mac(key, new)))
        end, sealed = Head(len(records), new), seal.read()
        if records:
            if sealed is None:
                raise LedgerError(f"the sealed head is missing: bring {seal.path} back")
            # The last record may not have been sealed any more, as in every ledger.
            if sealed not in (*old[-2:], end):
                raise LedgerError(
                    f"it ends at record {end.sequence}, and record {sealed.sequence} of a ledger was sealed as "
                    f"{seal.path}: bring back the newest copy, and the head that belongs to it"
                )
        aside = path.with_name(f"{path.name}.new")
        lay_out(aside, genesis, records)
        if records:
            seal.begin(end)
        aside.replace(path)
        sync_folder(path.parent)


def _read(db: sqlite3.Connection, table: str) -> Iterator[Record]:
    columns = ", ".join(_NEW.get(name, name) for name in COLUMNS[table].split(", "))
    for row in db.execute(f"SELECT {columns} FROM {table} ORDER BY sequence"):  # noqa: S608
        yield record_of(table, row)


def _link(before: bytes, record: Record) -> bytes:
    """Return a record's digest as it was in format 1, where terms bound no data."""
    columns = columns_of(record)
    if isinstance(record, Terms):
        columns = tuple(value for place, value in enumerate(columns) if place != _DATA)
    return digest_of(before, record, columns)
