"""The entries of a ledger, each chained to its predecessor, and their sums."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from compliance.ledger.accountant import FREE, Budget, Loss, LossKind, Neighbours, Rule
from compliance.ledger.head import Head
from fairwall.errors import UserError
from fairwall.laws.mechanisms.table import counts_on_groups

LOST = "(lost)"
"""Developer, metric and mechanism of charges lost with a ledger. No certificate has this name."""

UNIT_BYTES = 32 << 10
"""Bytes of a storage unit: an answer with its facts takes one, and one more for each of these that it fills."""

UNIT_EPSILON = 1e-3
"""Least epsilon of a storage unit unless a policy sets less, so that nearly free requests cannot fill the ledger."""


class LedgerError(UserError):
    """A ledger that must not be used, or not like this. The text says in one line what to do."""


@dataclass(frozen=True)
class BudgetRecord:
    """One record of a budget or a share; the last one for its data set and developer holds.

    Parameters
    ----------
    developer : empty for the data set as a whole.
    neighbours : the relation that the budget is stated for.
    time : seconds since 1970, as every time here.
    chain : the digest of this record and all before.
    data : keyed digest of what the data set's name stands for, see `Ledger.set_budget`; empty if it is not bound.
    mac : keyed digest of the chain, by the service's key; empty without a key.
    """

    sequence: int
    dataset: str
    developer: str
    neighbours: Neighbours
    budget: Budget
    time: float
    chain: bytes
    data: bytes = b""
    mac: bytes = b""


@dataclass(frozen=True)
class ServedData:
    """One data set as a policy serves it: its developers, an audit's metrics, and the least size of a group."""

    dataset: str
    developers: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    minimum_group: int = 1


@dataclass(frozen=True)
class Admission:
    """One record of a policy that was read: the developers it admits from here on. The budgets are in `BudgetRecord`.

    `policy`: the SHA-256 of the policy's text. `served`: in the policy's order. `chain`, `mac`: as in `BudgetRecord`.
    """

    sequence: int
    policy: bytes
    served: tuple[ServedData, ...]
    time: float
    chain: bytes
    mac: bytes = b""


@dataclass(frozen=True)
class Account:
    """A data set's whole budget, see `Ledger.set_budget`."""

    dataset: str
    neighbours: Neighbours
    budget: Budget
    data: bytes = b""


@dataclass(frozen=True)
class Request:
    """A developer's request, and its cost.

    `request_id`: the developer's name for the request. `digest`: of everything in the request, the data set included.
    `neighbours`: the relation that the loss is stated for.
    """

    dataset: str
    developer: str
    request_id: str
    digest: bytes
    metric: str
    mechanism: str
    neighbours: Neighbours
    loss: Loss


@dataclass(frozen=True)
class Reply:
    """The answer and the facts that a request buys.

    `answer`: sent to the developer, also on a repeat. `facts`: released and paid for with the answer: later answers to
    the same developer may use them at no cost.
    """

    answer: bytes
    facts: bytes = b""

    @property
    def units(self) -> int:
        """Storage units of the reply. Its size is public: it depends on the request, not on the result."""
        return 1 + (len(self.answer) + len(self.facts)) // UNIT_BYTES


@dataclass(frozen=True)
class Room:
    """A developer's limits of ledger storage and of new answers.

    `epsilon`: price of a storage unit: each multiple paid on a data set gives one unit there. `answers_a_day`: new
    answers on all data sets, whatever they cost.
    """

    epsilon: float
    answers_a_day: int


@dataclass(frozen=True)
class LedgerEntry:
    """One request that was charged and answered.

    `remaining`: the developer's remaining epsilon after it. `chain`, `mac`: as in `BudgetRecord`.
    """

    sequence: int
    request: Request
    reply: Reply
    remaining: float
    time: float
    chain: bytes
    mac: bytes = b""


@dataclass(frozen=True)
class AccountBalance:
    """The balance of a data set, or of a developer on it.

    `budget`: None if none was set, and nothing can be charged. `spent`: in epsilon, by the budget's rule and at its
    delta. `remaining`: in epsilon; a developer's is never more than the data set's.
    """

    budget: Budget | None
    spent: float
    remaining: float


Record: TypeAlias = BudgetRecord | Admission | LedgerEntry

TABLES: dict[str, type[Record]] = {"terms": BudgetRecord, "admissions": Admission, "entries": LedgerEntry}
"""The store's table for each kind of record."""

COLUMNS = {
    "terms": "sequence, dataset, developer, neighbours, rule, epsilon, delta, data, time, chain, mac",
    "admissions": "sequence, policy, served, time, chain, mac",
    "entries": (
        "sequence, dataset, developer, request_id, digest, metric, mechanism, neighbours, epsilon, delta, law, "
        "multiplier, released, facts, remaining, time, chain, mac"
    ),
}
"""The columns of each table, in the order of `columns_of`, then the digest and the HMAC."""

# A record's digest does not tell bytes from their hexadecimal digits: the types are checked too.
_TERMS_TYPES = (int, str, str, str, str, float, float, bytes, float, bytes, bytes)
_ADMISSION_TYPES = (int, bytes, str, float, bytes, bytes)
_ENTRY_TYPES = (
    *(int, str, str, str, bytes, str, str, str, float, float),
    *(str, float, bytes, bytes, float, float, bytes, bytes),
)


class Books:
    """Sums of a ledger's records.

    `genesis`: start of the chain: random, so that no two ledgers have a digest in common. `key`: only records that were
    written with it are counted. Empty for a reader without the key, who can only check that the chain is whole.
    """

    def __init__(self, genesis: bytes, key: bytes = b"") -> None:
        self._key = key
        self.before: Head | None = None
        self.head = Head(0, genesis)
        self.neighbours: dict[str, Neighbours] = {}
        self.data: dict[str, bytes] = {}
        self.admission: Admission | None = None
        self.policies: set[bytes] = set()
        """Digests of all policies ever admitted."""
        self.minimum_group: dict[str, int] = {}
        """Smallest group of each data set, by the policy in force."""
        self.counted_on: dict[str, int] = {}
        """Largest minimum group that a charge on each data set has relied on."""
        self._budgets: dict[tuple[str, str], Budget] = {}
        self._losses: defaultdict[tuple[str, str], Counter[Loss]] = defaultdict(Counter)
        self._facts: defaultdict[tuple[str, str], list[bytes]] = defaultdict(list)
        self._paid: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._units: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._left: dict[tuple[str, str], float] = {}  # remaining epsilon, cached until the next record

    @property
    def accounts(self) -> tuple[tuple[str, str], ...]:
        """Every data set (with developer empty) and every developer on it, in order."""
        return tuple(sorted(self._budgets))

    def add(self, record: Record) -> None:
        """Count one more record; LedgerError if it does not continue the chain, or was not written with the key."""
        if record.sequence != self.head.sequence + 1 or not is_genuine(record, self.head.chain, self._key):
            raise LedgerError(
                f"the chain breaks at record {self.head.sequence + 1}, which was changed, taken out, or written "
                "without this key: bring back an untouched copy of the ledger, and its key"
            )
        if isinstance(record, BudgetRecord):
            self.neighbours[record.dataset] = record.neighbours
            self._budgets[record.dataset, record.developer] = record.budget
            if record.data:
                self.data[record.dataset] = record.data
        elif isinstance(record, Admission):
            self.admission = record
            self.policies.add(record.policy)
            self.minimum_group |= {each.dataset: each.minimum_group for each in record.served}
        else:
            asked = record.request
            if counts_on_groups(asked.mechanism) and asked.loss != FREE:
                # Never less than before: no policy is admitted that lowers it.
                self.counted_on[asked.dataset] = self.minimum_group.get(asked.dataset, 1)
            for developer in ("", asked.developer):
                if asked.loss != FREE:
                    self._losses[asked.dataset, developer][asked.loss] += 1
            self._paid[asked.dataset, asked.developer] += asked.loss.epsilon
            self._units[asked.dataset, asked.developer] += record.reply.units
            if record.reply.facts:
                self._facts[asked.dataset, asked.developer].append(record.reply.facts)
        self._left.clear()
        self.before, self.head = self.head, Head(record.sequence, record.chain)

    def budget(self, dataset: str, developer: str = "") -> Budget | None:
        """Return the budget of a data set, or of a developer on it; None if none was set."""
        return self._budgets.get((dataset, developer))

    def losses(self, dataset: str, developer: str = "") -> Counter[Loss]:
        """Return the charges to a data set, or to a developer on it."""
        return Counter(self._losses.get((dataset, developer), ()))

    def facts(self, dataset: str, developer: str) -> tuple[bytes, ...]:
        """Return the facts that a developer's charges on a data set have paid for, in order."""
        return tuple(self._facts.get((dataset, developer), ()))

    def standing(self, dataset: str, developer: str = "") -> AccountBalance:
        """Return the balance of a data set, or of a developer on it."""
        budget = self.budget(dataset, developer)
        spent = budget.spent(self.losses(dataset, developer)) if budget else 0.0
        return AccountBalance(budget, spent, self.remaining(dataset, developer))

    def remaining(self, dataset: str, developer: str) -> float:
        """Return the epsilon that a developer can still be charged; for an empty developer, the data set's."""
        account = dataset, developer
        if account not in self._left:
            self._left[account] = self._remaining(dataset, developer, Counter())
        return self._left[account]

    def remaining_after(self, request: Request) -> float:
        """Return the epsilon that the developer can still be charged after a request."""
        more = Counter(() if request.loss == FREE else (request.loss,))
        return self._remaining(request.dataset, request.developer, more)

    def affords(self, request: Request) -> bool:
        """Return whether both the data set's budget and the developer's share of it cover a request."""
        budgets = ((name, self.budget(request.dataset, name)) for name in ("", request.developer))
        return all(
            budget is not None
            and (request.loss == FREE or budget.affords(self.losses(request.dataset, name), request.loss))
            for name, budget in budgets
        )

    def needed(self, request: Request) -> float:
        """Return the remaining epsilon that a request would use; more than there is, if it is not covered."""
        budgets = ((name, self.budget(request.dataset, name)) for name in ("", request.developer))
        return max(
            request.loss.epsilon if budget is None else budget.needed(self.losses(request.dataset, name), request.loss)
            for name, budget in budgets
        )

    def short(self, request: Request, units: int, epsilon: float) -> float:
        """Return the additional epsilon that buys storage of these units; 0 if there is room."""
        account = request.dataset, request.developer
        paid, taken = self._paid[account] + request.loss.epsilon, self._units[account] + units
        # The tolerance covers the rounding of float64 sums.
        return 0.0 if taken <= paid / epsilon * (1 + 1e-9) else taken * epsilon - paid

    def _remaining(self, dataset: str, developer: str, more: Counter[Loss]) -> float:
        budgets = ((name, self.budget(dataset, name)) for name in {"", developer})
        return min(budget.remaining(self.losses(dataset, name) + more) if budget else 0.0 for name, budget in budgets)


def columns_of(record: Record) -> tuple[int | float | str | bytes, ...]:
    """Return a record's columns, without the chain. Floats are floats: a digest tells 1 from 1.0."""
    if isinstance(record, BudgetRecord):
        who = (record.sequence, record.dataset, record.developer)
        budget = record.budget
        terms = (record.neighbours.value, budget.rule.value, float(budget.epsilon), float(budget.delta))
        return (*who, *terms, record.data, record.time)
    if isinstance(record, Admission):
        # The minimum comes last and is left out if 1, as in the records of older services.
        served = [
            [each.dataset, each.developers, each.metrics, *([each.minimum_group] if each.minimum_group > 1 else [])]
            for each in record.served
        ]
        return (record.sequence, record.policy, json.dumps(served), record.time)
    asked, loss, reply = record.request, record.request.loss, record.reply
    who = (record.sequence, asked.dataset, asked.developer)
    what = (asked.request_id, asked.digest, asked.metric, asked.mechanism, asked.neighbours.value)
    charge = (float(loss.epsilon), float(loss.delta), loss.law.value, float(loss.multiplier))
    return (*who, *what, *charge, reply.answer, reply.facts, float(record.remaining), record.time)


def record_of(table: str, row: tuple[Any, ...]) -> Record:
    """Return the record in a row of one of the `TABLES`, laid out by `columns_of`; LedgerError if it is no record."""
    try:
        return _READ[table](row)
    except (ValueError, TypeError) as error:
        raise LedgerError(f"a record was changed ({error}): bring back an untouched copy of the ledger") from error


def entry_of(row: tuple[Any, ...]) -> LedgerEntry:
    """Return the charge in a row; LedgerError as `record_of`."""
    found = record_of("entries", row)
    assert isinstance(found, LedgerEntry)
    return found


def table_of(record: Record) -> str:
    """Return the name of a record's table in `TABLES`."""
    (table,) = (name for name, kind in TABLES.items() if type(record) is kind)
    return table


def taken_out(sequence: int) -> LedgerError:
    """Return the error for a missing record to which another one is chained."""
    return LedgerError(f"record {sequence} was taken out: bring back an untouched copy of the ledger")


def another_format(written: object, read: int) -> LedgerError:
    """Return the error for a store of a format that this fairwall does not know."""
    return LedgerError(
        f"it is of format {written}, and this fairwall reads format {read}: use the one that wrote it, or begin "
        "another ledger with what is left of the budget"
    )


def _terms_of(row: tuple[Any, ...]) -> BudgetRecord:
    _check_types(row, _TERMS_TYPES)
    sequence, dataset, developer, neighbours, rule, epsilon, delta, data, at, chain, mac = row
    budget = Budget(epsilon, delta, Rule(rule))
    return BudgetRecord(sequence, dataset, developer, Neighbours(neighbours), budget, at, chain, data, mac)


def _admission_of(row: tuple[Any, ...]) -> Admission:
    _check_types(row, _ADMISSION_TYPES)
    sequence, policy, served, at, chain, mac = row
    each = tuple(
        ServedData(name, tuple(developers), tuple(metrics), *least)
        for name, developers, metrics, *least in json.loads(served)
    )
    return Admission(sequence, policy, each, at, chain, mac)


def _entry_of(row: tuple[Any, ...]) -> LedgerEntry:
    _check_types(row, _ENTRY_TYPES)
    sequence, dataset, developer, request_id, digest, metric, mechanism, neighbours = row[:8]
    epsilon, delta, law, multiplier, answer, facts, remaining, at, chain, mac = row[8:]
    loss = Loss(epsilon, delta, LossKind(law), multiplier)
    request = Request(dataset, developer, request_id, digest, metric, mechanism, Neighbours(neighbours), loss)
    return LedgerEntry(sequence, request, Reply(answer, facts), remaining, at, chain, mac)


def _check_types(row: tuple[Any, ...], types: tuple[type, ...]) -> None:
    if tuple(map(type, row)) != types:
        raise TypeError("a value is of another type")


_READ: dict[str, Callable[[tuple[Any, ...]], Record]] = {
    "terms": _terms_of,
    "admissions": _admission_of,
    "entries": _entry_of,
}


_KINDS = {"terms": "Terms", "admissions": "Admission", "entries": "Entry"}
"""The kind of record by its table, as in the digests of all ledgers: never to be changed."""


def link(before: bytes, record: Record) -> bytes:
    """Return the digest of a record and, through its predecessor's, of all records before."""
    return digest_of(before, record, columns_of(record))


def digest_of(before: bytes, record: Record, columns: Sequence[int | float | str | bytes]) -> bytes:
    """Return the digest of a record with these columns and of all records before."""
    values = [value.hex() if isinstance(value, bytes) else value for value in columns]
    text = json.dumps([_KINDS[table_of(record)], *values])
    return hashlib.sha256(before + text.encode()).digest()


def mac(key: bytes, chain: bytes) -> bytes:
    """Return the HMAC that proves that a holder of the key wrote the chain's last record; empty without a key."""
    return hmac.digest(key, b"fairwall ledger record" + chain, hashlib.sha256) if key else b""


def is_genuine(record: Record, before: bytes, key: bytes) -> bool:
    """Return whether a record follows on a chain, and, if there is a key, was written with it."""
    return record.chain == link(before, record) and (not key or hmac.compare_digest(record.mac, mac(key, record.chain)))
