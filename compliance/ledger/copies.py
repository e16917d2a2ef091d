"""Copies of a ledger: taken while the service answers, restored when the ledger is lost.

Each chain is copied to its own SQLite file, from either kind of store. A backup leaves out the head: the head is what
reveals a rollback, and a backup with its own head would look like the newest state.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import quote

from compliance.ledger.accountant import Loss
from compliance.ledger.entries import LOST, LedgerEntry, LedgerError, Record, Reply, Request, link, mac
from compliance.ledger.head import AnySeal, Head, sync_folder
from compliance.ledger.place import Inspection, Place, inspect, open_store, reading, shown
from compliance.ledger.sqlite import CHAIN, SqliteStore
from compliance.ledger.store import Store


def sealed(place: Place, seal: AnySeal) -> tuple[Inspection, ...]:
    """Return the chains of a ledger up to their last sealed records, also while a service uses it.

    LedgerError if a record was not written with the key, or the last sealed one is not in it; LedgerUnavailable,
    SealError or OSError.
    """
    # Heads are read first: records added before the ledger is read are behind them.
    with reading(place) as session:
        heads = {chain: seal.of(chain).read() for chain in session.chains()}
    found = tuple(each for each in _genuine(place, seal) if each.chain in heads)
    for each in found:
        name, head = _named(place, each.chain), heads[each.chain]
        if head is None and each.records:
            raise LedgerError(f"{name}: its sealed head {seal.of(each.chain).path} is missing: bring it back")
        if head is not None and not _holds(each, head):
            raise LedgerError(f"{name}: {_why_not(each, head)}")
    return found


def back_up(place: Place, folder: Path, seal: AnySeal) -> tuple[tuple[Path, Head], ...]:
    """Copy a ledger as it is now, and check the copies; return each copy with its last head.

    A running service is not disturbed. LedgerError if the ledger is not the one that was sealed last, or the folder
    holds the head; LedgerUnavailable, SealError or OSError.

    `folder`: made if absent; gets ``ledger-<number of the last record>.sqlite``, and from a database
    ``ledger-<data set>-<number>.sqlite`` for each data set.
    """
    if seal.is_inside(folder):
        raise LedgerError(
            f"{folder}: holds the head {seal.path}, which would be as old as the copy: choose another folder"
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    copies = []
    for each in sealed(place, seal):
        end, aside = each.books.head, folder / f"ledger.{os.getpid()}.new"
        name = f"{quote(each.chain, safe='')}-{end.sequence:06d}" if each.chain else f"{end.sequence:06d}"
        try:
            lay_out(aside, each.genesis, each.records)
            (copied,) = _genuine(aside, seal)
            if copied.books.head != end:
                raise LedgerError(f"{aside}: it was changed while it was written: copy again")
            aside.replace(folder / f"ledger-{name}.sqlite")
        finally:
            aside.unlink(missing_ok=True)
        copies.append((folder / f"ledger-{name}.sqlite", end))
    sync_folder(folder)
    return tuple(copies)


def restore(copy: Path, place: Place, seal: AnySeal, lost: Mapping[str, Loss]) -> Head:
    """Restore a lost ledger, or a data set's chain, from a copy's checked records; return its head.

    LedgerError if there is a ledger, the copy was not written with the key, or `lost` does not match the missing
    charges; LedgerUnavailable, SealError or OSError.

    `place`: where the ledger was. `lost`: for a copy that is not the newest: the most that each data set was charged
    after it. It is charged again, and the ledger goes on from there. Empty for a complete copy.
    """
    for name in (place, *_beside(place)) if isinstance(place, Path) else ():
        if name.exists() and (name != place or name.stat().st_size):
            raise LedgerError(f"{name}: is there, and is never overwritten: move it away first")
    if isinstance(place, Path):
        seal.read()  # first: a wrong key is not the copy's fault
    (found,) = _genuine(copy, seal)
    with ExitStack() as opened:
        store = None if isinstance(place, Path) else opened.enter_context(closing(open_store(place)))
        chain = CHAIN if store is None else _chain_of(copy, found, store)
        own = seal.of(chain)
        head = own.read()
        whole = found.books.head == head or (head is not None and found.books.before == head)
        _check_lost(copy, found, "" if whole else _why_not(found, head), lost)
        added = () if whole else tuple(_written_off(found, seal.derived("records"), lost))
        if isinstance(place, Path):
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            aside = place.with_name(f"{place.name}.new")
            lay_out(aside, found.genesis, (*found.records, *added))
            aside.replace(place)
            sync_folder(place.parent)
        elif store is not None:
            _write(store, chain, found.genesis, (*found.records, *added))
    if not whole:
        # The head comes last: a ledger without its head is refused, and the restore is begun again.
        own.begin(found.books.head)
    return found.books.head


def _genuine(place: Place, seal: AnySeal) -> tuple[Inspection, ...]:
    found = inspect(place, seal.derived("records"))
    for each in found:
        if each.fault:
            raise LedgerError(f"{_named(place, each.chain)}: {each.fault}")
    return found


def _named(place: Place, chain: str) -> str:
    return f"{shown(place)}: data set {chain}" if chain else shown(place)


def _holds(inspection: Inspection, head: Head) -> bool:
    """Return whether a chain has the head's record; a head before the first record matches any chain."""
    count = len(inspection.records)
    return head.sequence <= count and (not head.sequence or inspection.records[head.sequence - 1].chain == head.chain)


def _why_not(inspection: Inspection, head: Head | None) -> str:
    end = inspection.books.head.sequence
    if head is None:
        return f"it ends at record {end}, and the sealed head, which would tell whether that was the last, is missing"
    if head.sequence > end:
        return f"it is an old copy: it ends at record {end}, and {head.sequence} was sealed"
    return f"it is not the ledger that was sealed: record {head.sequence} is another one"


def _chain_of(copy: Path, inspection: Inspection, store: Store) -> str:
    """Return the name of a copy's chain in a database: that of its only data set."""
    datasets = sorted(inspection.books.neighbours)
    if len(datasets) != 1:
        raise LedgerError(
            f"{copy}: it is of {len(datasets)} data sets, and a database keeps each by itself: keep it in a file"
        )
    return store.chain_of(datasets[0])


def _check_lost(copy: Path, inspection: Inspection, missing: str, lost: Mapping[str, Loss]) -> None:
    if not missing:
        if lost:
            raise LedgerError(f"{copy}: nothing is lost: it ends where the head does: leave out --lost")
        return
    datasets = sorted(inspection.books.neighbours)
    if unknown := sorted(lost.keys() - set(datasets)):
        raise LedgerError(f"{copy}: no data set {unknown[0]}: it has {', '.join(datasets) or 'none'}")
    if unsaid := [name for name in datasets if name not in lost]:
        raise LedgerError(
            f"{copy}: {missing}: bring back the newest copy, or say what each data set was charged after this one "
            f"({' '.join(f'--lost {name}=EPSILON' for name in unsaid)}; inf if nobody knows)"
        )


def _written_off(inspection: Inspection, key: bytes, lost: Mapping[str, Loss]) -> Iterator[LedgerEntry]:
    """Charge what was lost, to no developer's share, since nobody knows whose it was; covered or not."""
    books = inspection.books
    for dataset, loss in sorted(lost.items()):
        number, name = books.head.sequence + 1, f"{dataset} after record {books.head.sequence}"
        asked = Request(dataset, LOST, name, b"", LOST, LOST, books.neighbours[dataset], loss)
        entry = LedgerEntry(number, asked, Reply(b""), books.remaining_after(asked), time.time(), b"")
        chain = link(books.head.chain, entry)
        entry = dataclasses.replace(entry, chain=chain, mac=mac(key, chain))
        books.add(entry)
        yield entry


def lay_out(target: Path, genesis: bytes, records: Sequence[Record]) -> None:
    """Write a chain into a new file: an index or a table that was changed in the copy is left behind."""
    for name in (target, *_beside(target)):
        name.unlink(missing_ok=True)
    os.close(os.open(target, os.O_CREAT | os.O_EXCL, 0o600))
    store = SqliteStore(target)
    try:
        _write(store, CHAIN, genesis, records)
        store.db.execute("PRAGMA journal_mode = DELETE")  # so that the file is complete without a log
    finally:
        store.close()
    with target.open("rb") as file:
        os.fsync(file.fileno())


def _write(store: Store, chain: str, genesis: bytes, records: Sequence[Record]) -> None:
    with store.session(chain) as session:
        session.begin(chain, genesis)
        for record in records:
            session.append(chain, record)


def _beside(path: Path) -> Iterator[Path]:
    """Return the paths of SQLite's files beside a database file."""
    return (path.with_name(path.name + end) for end in ("-wal", "-shm"))
