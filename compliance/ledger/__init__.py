"""The ledger: what each data set may lose in privacy, what it has lost, and every answer that was bought.

A retry never buys a second noise sample: under one request id there is one answer, and charge and answer are one
durable transaction that is over before the answer is given. Records are only ever added, each chained to the one
before; where the chain ends is sealed outside the ledger's folder (`compliance.ledger.seal`), so that an old copy of
the ledger is known for one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from compliance.accountant import Budget, Neighbours
from compliance.ledger import file
from compliance.ledger.books import Books, Entry, LedgerError, Reply, Request, Standing, Terms, link
from compliance.ledger.file import LedgerUnavailable
from compliance.ledger.seal import Seal, SealError
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

_Record = TypeVar("_Record", Terms, Entry)


class Ledger:
    """The ledger of a compliance service; any number of threads and processes may use one file.

    Parameters
    ----------
    path : Path, optional
        The SQLite file, made where there is none; on a local disk. Without it the ledger lives in memory, for a game.
    seal : Seal, optional
        Without it an old copy of the ledger passes for the ledger.

    Raises
    ------
    LedgerError
        If the file is no ledger, its chain is broken, or it is not the one that was sealed last.
    LedgerUnavailable
        If it cannot be read or written now.
    """

    def __init__(self, path: Path | None = None, seal: Seal | None = None) -> None:
        if path and seal and seal.path.resolve().is_relative_to(path.resolve().parent):
            raise LedgerError(
                f"{seal.path}: inside the ledger's folder, whose backups would hold it: keep the head elsewhere"
            )
        self._name = str(path or "the ledger in memory")
        self._seal = seal
        self._lock = threading.Lock()
        with file.explained(self._name):
            self._db = file.connect(path)
        self.close = weakref.finalize(self, self._db.close)
        """Closes the ledger; to call it is not necessary, and nothing else may be called after it."""
        try:
            with file.explained(self._name):
                self._books = Books(file.genesis_of(self._db))
            with self._transaction():
                pass
        except BaseException:
            self.close()
            raise

    def set_budget(self, dataset: str, neighbours: Neighbours, budget: Budget) -> None:
        """Set what a data set may lose in all; setting what holds already changes nothing.

        Raises
        ------
        LedgerError
            If the data set has a budget for another relation or under another rule: what was charged in one unit is
            not counted in another.
        LedgerUnavailable
        """
        with self._transaction():
            present, relation = self._books.budget(dataset), self._books.neighbours.get(dataset)
            if present and (present.rule, relation) != (budget.rule, neighbours):
                raise LedgerError(
                    f"data set {dataset}: its budget is by {present.rule} composition per {relation}, not by "
                    f"{budget.rule} per {neighbours}: open another data set for other units"
                )
            self._agree(dataset, "", neighbours, budget)
        self._seal_head()

    def allocate(self, dataset: str, developer: str, epsilon: float, delta: float = 0.0) -> None:
        """Set a developer's share of a data set's budget, by the same rule; setting what holds changes nothing.

        Shares may add up to more than the budget, which holds regardless.

        Raises
        ------
        LedgerError
            If the data set has no budget, or the developer no name.
        LedgerUnavailable
        """
        with self._transaction():
            whole = self._books.budget(dataset)
            if not whole or not developer:
                raise LedgerError(f"data set {dataset}: set its budget before a developer's share of it")
            share = Budget(epsilon, delta, whole.rule)
            self._agree(dataset, developer, self._books.neighbours[dataset], share)
        self._seal_head()

    def settle(self, request: Request, answer: Callable[[tuple[bytes, ...]], Reply]) -> Entry:
        """Charge a request and store its answer, or find the answer that it has bought already.

        Parameters
        ----------
        request : Request
        answer : callable
            Computes the answer, given the facts that the developer's earlier requests have paid for. Called only when
            the charge is covered, while everybody else waits; if it raises, nothing is charged.

        Returns
        -------
        Entry
            Durable: charge and answer survive whatever happens next.

        Raises
        ------
        Refusal
            ``REQUEST_ID_REUSED`` if the id stands for another request, ``BUDGET_EXHAUSTED`` if the developer's share or
            the data set's budget does not cover the loss, with what is left and what it would take. Nothing is charged
            then.
        LedgerError
            If the loss is stated for another relation than the budget, or the ledger must not be used.
        LedgerUnavailable
            If it cannot be written; the same request may be sent again.
        """
        with self._transaction():
            entry = self._find(request) or self._charge(request, answer)
        self._seal_head()
        return entry

    def standing(self, dataset: str, developer: str = "") -> Standing:
        """Return how a data set stands, or a developer on it, the charges of other processes counted too."""
        with self._transaction():
            return self._books.standing(dataset, developer)

    def facts(self, dataset: str, developer: str) -> tuple[bytes, ...]:
        """Return the facts that a developer's charges on a data set have paid for, in order."""
        with self._transaction():
            return self._books.facts(dataset, developer)

    def entries(self, dataset: str) -> tuple[Entry, ...]:
        """Return what was charged to a data set, in order."""
        with self._transaction():
            return file.entries(self._db, dataset)

    def _find(self, request: Request) -> Entry | None:
        entry = file.find(self._db, request.developer, request.request_id)
        if entry is None:
            return None
        if (entry.request.digest, entry.request.dataset) != (request.digest, request.dataset):
            raise Refusal(error_pb2.REASON_REQUEST_ID_REUSED)
        return entry

    def _charge(self, request: Request, answer: Callable[[tuple[bytes, ...]], Reply]) -> Entry:
        books = self._books
        relation = books.neighbours.get(request.dataset)
        if relation is None:
            raise LedgerError(f"data set {request.dataset}: it has no budget: set one")
        if relation is not request.neighbours:
            raise LedgerError(
                f"data set {request.dataset}: a loss per {request.neighbours} is not added to a budget per {relation}"
            )
        if not request.developer or not books.affords(request):
            left, needed = books.standing(request.dataset, request.developer).remaining, books.needed(request)
            raise Refusal(
                error_pb2.AuditError(
                    reason=error_pb2.REASON_BUDGET_EXHAUSTED, epsilon_remaining=left, epsilon_needed=needed
                )
            )
        reply = answer(books.facts(request.dataset, request.developer))
        return self._append(
            Entry(books.head.sequence + 1, request, reply, books.remaining_after(request), time.time(), b"")
        )

    def _agree(self, dataset: str, developer: str, neighbours: Neighbours, budget: Budget) -> None:
        if self._books.budget(dataset, developer) != budget:
            self._append(Terms(self._books.head.sequence + 1, dataset, developer, neighbours, budget, time.time(), b""))

    def _append(self, record: _Record) -> _Record:
        chained: _Record = dataclasses.replace(record, chain=link(self._books.head, record))
        file.append(self._db, chained)
        return chained

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Hold the ledger exclusively, the books up to date and their head sealed; then commit."""
        with self._lock, file.explained(self._name):
            try:
                if self._db.in_transaction:  # left open where even the rollback failed
                    self._db.execute("ROLLBACK")
                self._db.execute("BEGIN IMMEDIATE")
                self._catch_up()
                self._check_seal()
                yield
                self._db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                raise

    def _catch_up(self) -> None:
        """Count what was committed since, by whichever process. The books learn of a record in no other way."""
        head = file.head_of(self._db)
        if head == self._books.head:
            return
        for record in file.records(self._db, self._books.head.sequence):
            self._books.add(record)
        if head != self._books.head:
            raise LedgerError(
                "the ledger was replaced while it was in use: stop the service and bring back the newest copy"
            )

    def _check_seal(self) -> None:
        """Seal the head if the last record is not sealed yet; refuse a ledger that is not the one sealed last.

        Every seal is written by who holds the write lock, and before the next record is: so the ledger is never more
        than one record ahead, also when processes race or die.
        """
        if self._seal is None:
            return
        try:
            sealed = self._seal.read()
            books = self._books
            if sealed == books.head:
                return
            if sealed == books.before:  # both None: a ledger in which nothing is recorded yet
                self._seal.write(books.head)
                return
        except SealError as error:
            raise LedgerError(str(error)) from None
        except OSError as error:
            raise LedgerUnavailable(f"the ledger's head cannot be sealed: {error}") from error
        if sealed is None:
            raise LedgerError(f"the sealed head is missing: bring {self._seal.path} back")
        if sealed.sequence > books.head.sequence:
            raise LedgerError(
                f"it is an old copy: it ends at record {books.head.sequence}, and {sealed.sequence} was sealed: "
                "bring back the newest copy, for what it has charged counts"
            )
        raise LedgerError(
            f"it is not the ledger that was sealed as {self._seal.path}: bring back the ledger and the head that "
            "belong together"
        )

    def _seal_head(self) -> None:
        """Seal what was just committed, before anybody hears of it."""
        if self._seal is not None:
            with self._transaction():
                pass
