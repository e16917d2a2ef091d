"""The ledger: each data set's privacy budget, what was charged to it, and every answer that was bought.

A retry never buys a second noise sample: one request id has one answer, and charge and answer are one durable
transaction that ends before the answer is given. Records are only added, each chained to its predecessor under the
service's key; the chain's end is sealed outside the ledger's folder (`compliance.ledger.head`), so that an old copy of
the ledger is recognised.
"""

from __future__ import annotations

import dataclasses
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from compliance.ledger import postgres
from compliance.ledger.accountant import FREE, Budget, Neighbours
from compliance.ledger.entries import (
    Account,
    AccountBalance,
    Admission,
    Books,
    BudgetRecord,
    LedgerEntry,
    LedgerError,
    Reply,
    Request,
    Room,
    ServedData,
    is_genuine,
    link,
    mac,
)
from compliance.ledger.head import AnySeal, Head, SealError
from compliance.ledger.place import Place, open_store, reading, shown
from compliance.ledger.store import LedgerUnavailable, StoreTransaction
from compliance.ledger.turns import Turns
from compliance.records.same_people import shared
from fairwall.rpc import journal
from fairwall.rpc.errors import Refusal
from fairwall.rpc.fair_use import DAY_SECONDS
from fairwall.wire.v1 import error_pb2

_Record = TypeVar("_Record", BudgetRecord, Admission, LedgerEntry)

_LOOKS = 3
"""Most reads of a ledger that other processes write, until its records and its heads are of one moment."""

_WHOSE_BYTES, _BOUND_BYTES = 16, 32
"""Bytes of a data digest: the first 16 identify everybody's group, the first 32 all that the data say.

`compliance.records.same_people` compares the rest; records of older services have none."""


@dataclasses.dataclass(frozen=True)
class _Covered:
    """An unanswered request that is covered: the facts it may use, and its chain's head when its charge fitted."""

    facts: tuple[bytes, ...]
    head: Head


@dataclasses.dataclass(frozen=True, eq=False)
class _Chain:
    """A chain as this process knows it.

    `lock`: held while the books are written or read. A store that loses its connection lets go of the chain, so that
    two threads may take one chain for theirs: the first is heard no more, but may still be counting. `seal`: of this
    chain alone.
    """

    name: str
    books: Books
    lock: threading.Lock
    seal: AnySeal | None


@dataclasses.dataclass(frozen=True)
class _Held:
    """A chain that is held, its books up to date, and the transaction that holds it."""

    session: StoreTransaction
    chain: _Chain

    @property
    def books(self) -> Books:
        """The sums of the chain's records."""
        return self.chain.books


class Ledger:
    """The ledger of a compliance service; any number of threads and processes may use one store.

    LedgerError if the place holds no ledger, a chain is broken, or it is not the one that was sealed last;
    LedgerUnavailable if it cannot be read or written now.

    `place`: a SQLite file on a local disk, made if absent, or the URL of a PostgreSQL database. None keeps the ledger
    in memory, for a game. `seal`: without a seal, an old copy of the ledger passes for the ledger, and so does one that
    anybody wrote.
    """

    def __init__(self, place: Place | None = None, seal: AnySeal | None = None) -> None:
        if isinstance(place, Path):
            _check_place(place, seal)
        elif place is not None and seal is not None:
            seal.check_apart(place)
        self._seal = seal
        self._key = self.derived_key("records")
        self._turns = Turns()
        self._chains: dict[str, _Chain] = {}
        self._policies: tuple[bytes, ...] = ()  # of this service: another service's may be in force
        self._store = open_store(place)
        self.close = weakref.finalize(self, self._store.close)
        """Closes the ledger. Calling it is optional, and nothing else may be called after it."""
        try:
            with self._all_held():
                pass
        except BaseException:
            self.close()
            raise

    def set_budget(self, dataset: str, neighbours: Neighbours, budget: Budget, data: bytes = b"") -> None:
        """Set a data set's whole budget; setting the present budget changes nothing.

        LedgerError if the data set has a budget for another relation or under another rule, since charges in one unit
        are not counted in another; also if the name stands for other data, or these people have another name.
        LedgerUnavailable.

        `data`: digests of what the name stands for from now on, which reveal nothing without the key: 16 bytes for
        everybody's group, 16 for all that the data say, then, where known, whose they are, see
        `compliance.records.same_people.Traits.sealed`. Empty binds nothing.
        """
        while not self._set_budget(Account(dataset, neighbours, budget, data)):
            pass  # its chain has just begun, and is sealed before its first record
        self._seal_head(dataset)

    def check_budgets(self, accounts: Sequence[Account], served: Sequence[ServedData] = ()) -> None:
        """Raise LedgerError for a budget that could not be set, or a policy that could not be admitted.

        Nothing is written. LedgerUnavailable as `Ledger`.
        """
        with self._all_held() as (_, held):
            _check_budgets(accounts, served, held)

    def admit(self, policy: bytes, served: Sequence[ServedData]) -> None:
        """Record a policy that is in force from now on; one already in force adds nothing.

        LedgerError if charges have counted on larger groups than the policy's minimum: their loss between data sets of
        smaller groups is not known. LedgerUnavailable.

        `policy`: the SHA-256 of its text. `served`: data sets with their developers. A developer with a share of one of
        these data sets who is not named loses it.
        """
        with self._all_held() as (_, held):
            _check_groups(served, held)
            named = {each.dataset: each.developers for each in served}
            accounts = [account for each in held for account in each.books.accounts if account[0] in named]
        for dataset, developer in accounts:
            if developer and developer not in named[dataset]:
                self.allocate(dataset, developer, 0.0)
        self._policies = (*self._policies, policy)
        with self._all_held() as (_, held):
            for each in held:  # so that the holder of any one chain knows the policy
                last, number = each.books.admission, each.books.head.sequence + 1
                if last is None or (last.policy, last.served) != (policy, tuple(served)):
                    self._append(each, Admission(number, policy, tuple(served), time.time(), b""))
        with self._all_held():
            self.answer_by(policy)

    def answer_by(self, policy: bytes) -> None:
        """Answer new requests from now on only while this policy is in force, which another service may end."""
        self._policies = (policy,)

    def admitted(self) -> bytes | None:
        """Return the digest of the policy in force; None if none was admitted."""
        for name in tuple(self._chains):
            with self._read(name) as read:
                if read.books.admission is not None:
                    return read.books.admission.policy
        return None

    def newer_than(self, policy: bytes) -> bytes | None:
        """Return the digest of the policy in force if this one was in force before it, else None."""
        with self._all_held() as (_, held):
            for each in held:
                last = each.books.admission
                if last is not None and last.policy != policy and policy in each.books.policies:
                    return last.policy
        return None

    def allocate(self, dataset: str, developer: str, epsilon: float, delta: float = 0.0) -> None:
        """Set a developer's share of a data set's budget, by the same rule; setting the present share changes nothing.

        Shares may sum to more than the budget, which holds regardless. LedgerError if the data set has no budget, or
        the developer no name; LedgerUnavailable.
        """
        with self._held(dataset) as held:
            whole = held.books.budget(dataset)
            if not whole or not developer:
                raise LedgerError(f"data set {dataset}: set its budget before a developer's share of it")
            share = Budget(epsilon, delta, whole.rule)
            self._agree(held, dataset, developer, held.books.neighbours[dataset], share)
        self._seal_head(dataset)

    def stored(self, request: Request, room: Room) -> LedgerEntry | None:
        """Return the stored answer of a developer whose new answers of the day are used up; None for others.

        Refusal ``QUOTA_EXHAUSTED`` if the request is new, ``REQUEST_ID_REUSED`` as `settle`; LedgerError,
        LedgerUnavailable.
        """
        journal.note(dataset=request.dataset, request=request.request_id, cost=0.0)
        with self._read(request.dataset) as read:
            if not _is_day_full(read, request.developer, room.answers_a_day):
                return None
            entry = self._find(read, request)
        if entry is None:
            raise Refusal(error_pb2.REASON_QUOTA_EXHAUSTED)
        return entry

    def require_covered(self, request: Request, room: Room | None = None) -> None:
        """Refuse, as `settle` would, a request with a new id; its digest is not checked."""
        with self._read(request.dataset) as read:
            if read.session.find(request.developer, request.request_id) is None:
                self._covered(read, request, room)

    def settle(
        self,
        request: Request,
        answer: Callable[[tuple[bytes, ...]], Reply],
        minimum_group: int = 1,
        room: Room | None = None,
    ) -> LedgerEntry:
        """Charge a request and store its answer, or return the answer that was bought under its id.

        The entry is durable: charge and answer survive whatever happens next.

        Refusal ``REQUEST_ID_REUSED`` if the id stands for another request; ``BUDGET_EXHAUSTED`` if the developer's
        share or the data set's budget does not cover the loss, with the epsilon left and needed; ``QUOTA_EXHAUSTED`` if
        the developer has had the new answers of a day, or a free answer has no storage left; ``EPSILON_INVALID`` if an
        answer at this epsilon has no storage, with the least epsilon that buys it. Nothing is charged then. LedgerError
        if the loss is stated for another relation than the budget, or the ledger must not be used. LedgerUnavailable if
        it cannot be written, or another policy is in force by now; the same request may be sent again.

        Parameters
        ----------
        answer : computes the answer from the facts that the developer's earlier requests have paid for. Called only
            when the charge is covered, while the developer's other requests wait, but no other developer's; if it
            raises, nothing is charged. Its result is dropped and never shown if the charge is no longer covered, or
            another process has answered the request meanwhile. It is called again if the facts have changed by then.
        minimum_group : smallest group that the answer's noise assumes; at most the minimum of the policy in force.
        room : limit on the developer's storage and new answers; None for no limit.
        """
        journal.note(dataset=request.dataset, request=request.request_id, cost=0.0)
        found = self._open(request, room)
        if isinstance(found, LedgerEntry):
            return found
        books = self._chains[self._store.chain_of(request.dataset)].books
        with self._turns.turn(request.developer, self._store.turn(request.developer)):
            if found.head is not books.head:  # another request was charged meanwhile
                found = self._open(request, room)
            while not isinstance(found, LedgerEntry):
                reply = answer(found.facts)
                if reply.facts and request.loss == FREE:
                    raise LedgerError(f"data set {request.dataset}: an answer that costs nothing has released anew")
                entry = self._sell(request, reply, found, minimum_group, room)
                if entry is not None:
                    self._seal_head(request.dataset)
                    journal.note(cost=request.loss.epsilon)
                    return entry
                found = self._open(request, room)
        return found

    def begun_at(self, dataset: str) -> bytes:
        """Return the random bytes from which a data set's chain starts, unique to this ledger.

        LedgerError or LedgerUnavailable if the chain cannot be read.
        """
        with self._read(dataset) as read:
            return read.session.genesis(read.chain.name) or b""

    def derived_key(self, purpose: str) -> bytes:
        """Derive a key for another purpose from the seal's; empty without a seal."""
        return self._seal.derived(purpose) if self._seal else b""

    def check(self) -> None:
        """Check that the ledger and its head can be written, by writes without meaning; LedgerUnavailable if not."""
        with self._held(next(iter(self._chains), "")) as held:
            held.session.probe()
            self._check_policy(held)
            if held.chain.seal is not None and held.books.head.sequence:
                try:
                    held.chain.seal.write(held.books.head)
                except OSError as error:
                    raise LedgerUnavailable(f"the ledger's head cannot be sealed: {error}") from error

    def standing(self, dataset: str, developer: str = "") -> AccountBalance:
        """Return the balance of a data set, or of a developer on it, with the charges of other processes."""
        with self._read(dataset) as read:
            return read.books.standing(dataset, developer)

    def remaining(self, dataset: str, developer: str) -> float:
        """Return the epsilon that a developer has left, as of the last read of the ledger by any call."""
        chain = self._chains.get(self._store.chain_of(dataset))
        if chain is None:
            return 0.0
        with chain.lock:
            return chain.books.remaining(dataset, developer)

    def facts(self, dataset: str, developer: str) -> tuple[bytes, ...]:
        """Return the facts that a developer's charges on a data set have paid for, in order."""
        with self._read(dataset) as read:
            return read.books.facts(dataset, developer)

    def entries(self, dataset: str) -> tuple[LedgerEntry, ...]:
        """Return the charges to a data set, in order."""
        with self._read(dataset) as read:
            return read.session.entries(dataset)

    def _set_budget(self, account: Account) -> bool:
        """Set a budget; or begin its chain if there is none, and return False."""
        with self._all_held() as (session, held):
            _check_account(account, held)
            name = self._store.chain_of(account.dataset)
            for each in held:
                if each.chain.name == name:
                    self._agree(each, account.dataset, "", account.neighbours, account.budget, account.data)
                    return True
            sealed = _sealed(self._seal.of(name)) if self._seal else None
            if sealed is not None:
                raise LedgerError(_old_copy(0, sealed.sequence))
            session.begin(name, secrets.token_bytes(32))
        return False

    def _find(self, held: _Held, request: Request) -> LedgerEntry | None:
        found = held.session.find(request.developer, request.request_id)
        if found is None:
            return None
        entry, before = found
        if self._key and not is_genuine(entry, before, self._key):
            raise LedgerError(f"record {entry.sequence} was changed: bring back an untouched copy of the ledger")
        if (entry.request.digest, entry.request.dataset) != (request.digest, request.dataset):
            raise Refusal(error_pb2.REASON_REQUEST_ID_REUSED)
        return entry

    def _open(self, request: Request, room: Room | None) -> LedgerEntry | _Covered:
        """Return the entry that a request has bought, or, if there is none, check its charge and storage."""
        with self._seen(request.dataset) as (seen, sealed):
            if seen is not None:
                entry = self._find(seen, request)
                if entry is None or entry.sequence <= sealed:
                    return entry or self._covered(seen, request, room)
        with self._held(request.dataset) as held:
            return self._find(held, request) or self._covered(held, request, room)

    def _sell(
        self, request: Request, reply: Reply, covered: _Covered, minimum_group: int, room: Room | None
    ) -> LedgerEntry | None:
        """Charge and store an answer, or return another process's; None if the facts have changed since."""
        with self._held(request.dataset) as held:
            same = covered.head is held.books.head  # no charge since: all checks hold, except the day's
            entry = None if same else self._find(held, request)
            if entry is None and minimum_group > held.books.minimum_group.get(request.dataset, minimum_group):
                raise LedgerUnavailable(f"data set {request.dataset}: another policy holds since this was asked")
            if entry is None and same:
                _check_day(held, request, room)
            if entry is None and (same or self._covered(held, request, room).facts == covered.facts):
                _check_room(held, request, reply.units, room)
                entry = self._charge(held, request, reply)
        return entry

    def _covered(self, held: _Held, request: Request, room: Room | None) -> _Covered:
        """Refuse a request whose charge is not covered, or whose answer has no storage at all."""
        _check_day(held, request, room)
        self._check_policy(held)
        books = held.books
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
        _check_room(held, request, 1, room)
        return _Covered(books.facts(request.dataset, request.developer), books.head)

    def _check_policy(self, held: _Held) -> None:
        last = held.books.admission
        if self._policies and last is not None and last.policy not in self._policies:
            raise LedgerUnavailable("another policy is in force than this service answers by")

    def _charge(self, held: _Held, request: Request, reply: Reply) -> LedgerEntry:
        books = held.books
        return self._append(
            held, LedgerEntry(books.head.sequence + 1, request, reply, books.remaining_after(request), time.time(), b"")
        )

    def _agree(
        self, held: _Held, dataset: str, developer: str, neighbours: Neighbours, budget: Budget, data: bytes = b""
    ) -> None:
        books = held.books
        known = len(data) <= len(books.data.get(dataset, b""))
        if books.budget(dataset, developer) != budget or not known:
            number = books.head.sequence + 1
            self._append(
                held,
                BudgetRecord(number, dataset, developer, neighbours, budget, time.time(), b"", b"" if known else data),
            )

    def _append(self, held: _Held, record: _Record) -> _Record:
        chain = link(held.books.head.chain, record)
        chained: _Record = dataclasses.replace(record, chain=chain, mac=mac(self._key, chain))
        held.session.append(held.chain.name, chained)
        return chained

    @contextmanager
    def _held(self, dataset: str) -> Iterator[_Held]:
        """Hold a data set's chain exclusively, with the books up to date and their head sealed; then commit."""
        name = self._store.chain_of(dataset)
        with self._store.session(name) as session:
            chain = self._known(session, name)
            with chain.lock:
                if name in self._chains:
                    _bring_up(session, chain)
                yield _Held(session, chain)

    @contextmanager
    def _seen(self, dataset: str) -> Iterator[tuple[_Held | None, int]]:
        """Yield a data set's chain, not held, and its last sealed record's number; None if the seal does not match.

        An answer after the sealed record must not leave yet: only the holder of the chain knows whether its record will
        be sealed or lost. Anything read here may be outdated when it is used: a charge checks again.
        """
        chain = self._chains.get(self._store.chain_of(dataset))
        if chain is None:
            yield None, 0
            return
        with self._store.glance(chain.name) as session, chain.lock:
            _count(session, chain)
            head, before = chain.books.head, chain.books.before
            sealed = head if chain.seal is None else _sealed(chain.seal)
            if sealed is not None and sealed in (head, before):
                yield _Held(session, chain), sealed.sequence
            else:
                yield None, 0

    @contextmanager
    def _read(self, dataset: str) -> Iterator[_Held]:
        """Read a data set's chain as sealed, without blocking others; hold it if its end is not sealed yet."""
        with self._seen(dataset) as (seen, sealed):
            if seen is not None and sealed == seen.books.head.sequence:
                yield seen
                return
        with self._held(dataset) as held:
            yield held

    @contextmanager
    def _all_held(self) -> Iterator[tuple[StoreTransaction, list[_Held]]]:
        """Hold every chain that has begun, each as `_held` does."""
        with self._store.session(None) as session, ExitStack() as locks:
            chains = [self._known(session, name) for name in session.chains()]
            for chain in chains:
                locks.enter_context(chain.lock)
                _bring_up(session, chain)
            yield session, [_Held(session, chain) for chain in chains]

    def _known(self, session: StoreTransaction, name: str) -> _Chain:
        """Return a chain with the books counted so far; empty books if it has not begun."""
        if name not in self._chains:
            genesis = session.genesis(name)
            seal = self._seal.of(name) if self._seal else None
            if genesis is None:
                return _Chain(name, Books(b""), threading.Lock(), None)
            self._chains.setdefault(name, _Chain(name, Books(genesis, self._key), threading.Lock(), seal))
        return self._chains[name]

    def _seal_head(self, dataset: str) -> None:
        """Count and seal what was just committed, before it is answered and before the next turn."""
        with self._held(dataset):
            pass


def look(
    place: Place, seal: AnySeal, accounts: Sequence[Account], served: Sequence[ServedData], *, is_begun: bool
) -> None:
    """Raise what a start with a ledger would, and write nothing, also while a service does.

    LedgerError or LedgerUnavailable as `Ledger` and `Ledger.check_budgets`.
    """
    if isinstance(place, Path):
        _check_place(place, seal)
    else:
        seal.check_apart(place)
        postgres.check_server(place)
    for left in reversed(range(_LOOKS if is_begun else 0)):
        try:
            with reading(place, untouched=True) as session:
                _check_budgets(accounts, served, _looked_at(session, seal, accounts))
            break
        except LedgerError:  # a service may have charged after its heads were read and before its records were
            if not left:
                raise
    if not is_begun:
        _check_gone(f"{shown(place)}: ", seal, accounts)
        _check_budgets(accounts, served, [])


def _looked_at(session: StoreTransaction, seal: AnySeal, accounts: Sequence[Account]) -> list[_Held]:
    """Count all chains; LedgerError if they are not the ledger that was sealed last."""
    names, key, held = session.chains(), seal.derived("records"), list[_Held]()
    sealed = dict[str, Head | None]()
    with suppress(LedgerError):  # faults of records are reported before faults of heads
        sealed = {name: _sealed(seal.of(name)) for name in names}
    for name in names:
        chain = _Chain(name, Books(session.genesis(name) or b"", key), threading.Lock(), None)
        _count(session, chain)
        _check_sealed(sealed.get(name) or _sealed(seal.of(name)), seal.of(name), chain.books)
        held.append(_Held(session, chain))
    _check_gone("", seal, [each for each in accounts if each.dataset not in names])
    return held


def _check_gone(ledger: str, seal: AnySeal, accounts: Sequence[Account]) -> None:
    """Raise LedgerError if a head is sealed for a chain that would begin."""
    for each in accounts:
        sealed = _sealed(seal.of(each.dataset))
        if sealed is not None:
            raise LedgerError(f"{ledger}{_old_copy(0, sealed.sequence)}")


def _bring_up(session: StoreTransaction, chain: _Chain) -> None:
    """Count the records committed since, and seal the last; the chain is held."""
    _count(session, chain)
    if chain.seal is not None:
        _check_seal(chain.seal, chain.books)


def _count(session: StoreTransaction, chain: _Chain) -> None:
    """Count the records committed since, by any process: the only way in which books learn of a record."""
    head, books = session.head(chain.name), chain.books
    if head != books.head:
        for record in session.records(chain.name, books.head.sequence):
            books.add(record)
        if head != books.head:
            raise LedgerError(
                "the ledger was replaced while it was in use: stop the service and bring back the newest copy"
            )


def _check_seal(seal: AnySeal, books: Books) -> None:
    """Seal the head if the last record is not sealed yet; LedgerError for a chain that is not the one sealed last.

    Every seal is written by the holder of the chain, before the next record is: so a chain is never more than one
    record ahead, also when processes race or die.
    """
    sealed = _sealed(seal)
    _check_sealed(sealed, seal, books)
    if sealed != books.head:
        try:
            seal.write(books.head)
        except OSError as error:
            raise LedgerUnavailable(f"the ledger's head cannot be sealed: {error}") from error


def _check_sealed(sealed: Head | None, seal: AnySeal, books: Books) -> None:
    if sealed in (books.head, books.before):  # both None: a chain without records
        return
    if sealed is None:
        raise LedgerError(f"the sealed head is missing: bring {seal.path} back")
    if sealed.sequence > books.head.sequence:
        raise LedgerError(_old_copy(books.head.sequence, sealed.sequence))
    raise LedgerError(
        f"it is not the ledger that was sealed as {seal.path}: bring back the ledger and the head that belong together"
    )


def _sealed(seal: AnySeal) -> Head | None:
    try:
        return seal.read()
    except SealError as error:
        raise LedgerError(str(error)) from None
    except OSError as error:
        raise LedgerUnavailable(f"the ledger's head cannot be sealed: {error}") from error


def _check_place(path: Path, seal: AnySeal | None) -> None:
    """Raise LedgerError before a new file is begun where another was sealed: it would stand in a copy's way."""
    if seal is None:
        return
    if seal.is_inside(path.parent):
        raise LedgerError(
            f"{seal.path}: inside the ledger's folder, whose backups would hold it: keep the head elsewhere"
        )
    is_sealed = seal.exists()  # first: a new ledger is sealed after its file exists
    if not is_sealed or (path.exists() and path.stat().st_size):
        return
    try:
        sealed = _sealed(seal)
    except (LedgerError, LedgerUnavailable) as error:
        raise type(error)(f"{path}: {error}") from None
    if sealed is not None:
        raise LedgerError(f"{path}: {_old_copy(0, sealed.sequence)}")


def _check_budgets(accounts: Sequence[Account], served: Sequence[ServedData], held: Sequence[_Held]) -> None:
    """Raise LedgerError for budgets or policies that could not be recorded; all chains are held."""
    for place, account in enumerate(accounts):
        _check_account(account, held)
        for other in accounts[:place]:
            _check_people(account, other.dataset, other.neighbours, other.data)
    _check_groups(served, held)


def _check_account(account: Account, held: Sequence[_Held]) -> None:
    """Raise LedgerError for a budget in other units or for other data than the name's; all chains are held."""
    dataset, budget = account.dataset, account.budget
    for books in (each.books for each in held):
        present, relation = books.budget(dataset), books.neighbours.get(dataset)
        if present and (present.rule, relation) != (budget.rule, account.neighbours):
            raise LedgerError(
                f"data set {dataset}: its budget is by {present.rule} composition per {relation}, not by "
                f"{budget.rule} per {account.neighbours}: open another data set for other units"
            )
        if account.data and books.data.get(dataset, account.data)[:_BOUND_BYTES] != account.data[:_BOUND_BYTES]:
            raise LedgerError(
                f"data set {dataset}: this name stands for other data, whose charges it counts: give these another name"
            )
        for name, bound in books.data.items():
            _check_people(account, name, books.neighbours[name], bound)


def _check_groups(served: Sequence[ServedData], held: Sequence[_Held]) -> None:
    """Raise LedgerError for groups smaller than charges have counted on; all chains are held."""
    for each in served:
        counted_on = max((one.books.counted_on.get(each.dataset, 1) for one in held), default=1)
        if each.minimum_group < counted_on:
            raise LedgerError(
                f"data set {each.dataset}: data.minimum_group: must be at least {counted_on}, not "
                f"{each.minimum_group}: answers had noise for groups of so many, and lose more where one is smaller"
            )


def _is_day_full(held: _Held, developer: str, answers: int) -> bool:
    """Return whether a developer has had this many new answers within a day, on all data sets together."""
    now = time.time()  # answers in the far future, by a wrong clock, do not count
    return held.session.answered(developer, now - DAY_SECONDS, now + DAY_SECONDS, answers) >= answers


def _check_day(held: _Held, request: Request, room: Room | None) -> None:
    if room is not None and _is_day_full(held, request.developer, room.answers_a_day):
        raise Refusal(error_pb2.REASON_QUOTA_EXHAUSTED)


def _check_room(held: _Held, request: Request, units: int, room: Room | None) -> None:
    """Refuse a request whose answer has no storage, by public numbers alone."""
    short = held.books.short(request, units, room.epsilon) if room is not None else 0.0
    if short and request.loss == FREE:
        raise Refusal(error_pb2.REASON_QUOTA_EXHAUSTED)
    if short:
        raise Refusal(
            error_pb2.AuditError(reason=error_pb2.REASON_EPSILON_INVALID, epsilon_min=request.loss.epsilon + short)
        )


def _old_copy(end: int, sealed: int) -> str:
    return (
        f"it is an old copy: it ends at record {end}, and {sealed} was sealed: bring back the newest copy, for what it "
        "has charged counts"
    )


def _check_people(account: Account, name: str, neighbours: Neighbours, data: bytes) -> None:
    """Raise LedgerError if these people have another name already: they have one budget."""
    if not account.data or name == account.dataset or neighbours is not account.neighbours:
        return
    why = "who is in which group is the same" if data[:_WHOSE_BYTES] == account.data[:_WHOSE_BYTES] else ""
    if len(data) > _BOUND_BYTES < len(account.data):
        why = why or shared(data[_BOUND_BYTES:], account.data[_BOUND_BYTES:])
    if why:
        raise LedgerError(
            f"data set {account.dataset}: these people's data are called {name}, and have one budget: keep that name "
            f"({why})"
        )
