"""What developers asked and heard of services that share a PostgreSQL ledger, judged by what its database holds.

Nothing here is the service's own code: the records are read by plain SQL, and what docs/ledger.md says of chains, of
sealed heads and of budgets (under the rule ``basic``, without delta) is computed once more.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

NO_RECORD = "answered without a record"
TWO_ANSWERS = "two answers to one id"
CHARGED_TWICE = "charged twice"
NOT_ASKED = "charged for what nobody asked"
REFUSED_AND_CHARGED = "charged for what was refused"
REFUSED_TOO_EARLY = "refused within the budget"
EXCEEDED = "budget exceeded"
OUT_OF_ORDER = "charged in another order than answered"
BROKEN = "chain broken"
SEALED_AHEAD = "sealed what is not recorded"
NOT_SEALED = "answered before it was sealed"

MAY_BE_CHARGED = ("", "LEDGER_UNAVAILABLE")
"""Who hears nothing, or this, does not know whether the request was charged."""

_TABLES = {
    "Terms": ("terms", "sequence, dataset, developer, neighbours, rule, epsilon, delta, data, time"),
    "Admission": ("admissions", "sequence, policy, served, time"),
    "Entry": (
        "entries",
        "sequence, dataset, developer, request_id, digest, metric, mechanism, neighbours, epsilon, delta, law, "
        "multiplier, released, facts, remaining, time",
    ),
}
_NUMBERS_OF_A_MODEL = 5
_PLACE_BYTES = 4096


@dataclass(frozen=True)
class Call:
    """A request as its developer saw it.

    Parameters
    ----------
    began, ended : float
        By one clock for all calls.
    answer : bytes or None
        The gaps, in float64; None if none came.
    refusal : str
        Why, if that was told; empty where nothing was heard.
    """

    developer: str
    request_id: str
    dataset: str
    epsilon: float
    began: float
    ended: float
    answer: bytes | None = None
    refusal: str = ""

    @property
    def who(self) -> tuple[str, str]:
        return self.developer, self.request_id


@dataclass(frozen=True)
class Record:
    """A row of the database: what it is, on which chain, its columns but for the digest, and the digest and its MAC."""

    kind: str
    line: str
    values: Mapping[str, Any]
    chain: bytes
    mac: bytes

    @property
    def sequence(self) -> int:
        return int(self.values["sequence"])

    @property
    def who(self) -> tuple[str, str]:
        return self.values["developer"], self.values["request_id"]

    @property
    def answer(self) -> bytes:
        """The gaps of a charge: the first of the numbers that are kept of each model."""
        numbers = bytes(self.values["released"])[1:]
        return numbers[: len(numbers) // _NUMBERS_OF_A_MODEL]


@dataclass(frozen=True)
class Sealed:
    """The head of a chain as it was sealed last."""

    sequence: int
    chain: bytes


@dataclass(frozen=True)
class Kept:
    """What a database holds, and what was sealed elsewhere.

    Parameters
    ----------
    starts : mapping of str to bytes
        What each chain starts from, by its name.
    records : tuple of Record
    heads : mapping of str to Sealed
        Of each chain.
    """

    starts: Mapping[str, bytes]
    records: tuple[Record, ...]
    heads: Mapping[str, Sealed]

    def of(self, line: str) -> list[Record]:
        """The records of a chain, in order."""
        return sorted((record for record in self.records if record.line == line), key=lambda record: record.sequence)

    @property
    def charges(self) -> list[Record]:
        return [record for record in self.records if record.kind == "Entry"]


@dataclass(frozen=True)
class Fault:
    """One of the faults that are named above, and where."""

    kind: str
    what: str


def read(url: str, seal: Path, key: Path) -> Kept:
    """Read a database, and the heads in files beside `seal`."""
    import psycopg

    records = []
    with psycopg.connect(url) as db:
        db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        starts = dict(db.execute("SELECT line, chain FROM fairwall.lines").fetchall())
        for kind, (table, columns) in _TABLES.items():
            names = columns.split(", ")
            for line, chain, mac, *values in db.execute(
                f"SELECT line, chain, mac, {columns} FROM fairwall.{table}"  # noqa: S608
            ):
                records.append(Record(kind, line, dict(zip(names, values, strict=True)), chain, mac))
    secret = bytes.fromhex(key.read_text())
    files = seal.parent.glob(f"{seal.name}.*")
    heads = {unquote(file.name.removeprefix(f"{seal.name}.")): head_in(file.read_bytes(), secret) for file in files}
    return Kept(starts, tuple(records), heads)


def head_in(text: bytes, key: bytes) -> Sealed:
    """Read the newer of the two heads of a file that were sealed with this key."""
    heads = []
    for place in (text[:_PLACE_BYTES], text[_PLACE_BYTES:]):
        if place.strip(b"\0 \n"):
            told = json.loads(place)
            head = Sealed(told["sequence"], bytes.fromhex(told["chain"]))
            said = hmac.digest(key, b"fairwall ledger head %d " % head.sequence + head.chain, "sha256")
            assert said.hex() == told["seal"], "sealed with another key"
            heads.append(head)
    return max(heads, key=lambda head: head.sequence)


def link(before: bytes, record: Record) -> bytes:
    """Return the digest that a record has behind another one's."""
    values = [value.hex() if isinstance(value, bytes) else value for value in record.values.values()]
    return hashlib.sha256(before + json.dumps([record.kind, *values]).encode()).digest()


def mac(key: bytes, chain: bytes) -> bytes:
    """Return what a digest has beside it, by the service's key."""
    own = hmac.digest(key, b"fairwall ledger key for records", "sha256")
    return hmac.digest(own, b"fairwall ledger record" + chain, "sha256")


def faults(calls: Sequence[Call], kept: Kept, key: bytes) -> list[Fault]:
    """Find all that is wrong with a history, and with what is kept of it once everything is over.

    Parameters
    ----------
    key : bytes
        The service's.
    """
    return [
        *_answers(calls, kept),
        *_charges(calls, kept),
        *_refusals(calls, kept),
        *_order(calls, kept),
        *(fault for line in kept.starts for fault in (*_chain(kept, line, key), *_head(calls, kept, line))),
        *_budgets(kept),
    ]


def _answers(calls: Sequence[Call], kept: Kept) -> Iterator[Fault]:
    stored = defaultdict[tuple[str, str], set[bytes]](set)
    for charge in kept.charges:
        stored[charge.who].add(charge.answer)
    told = defaultdict[tuple[str, str], set[bytes]](set)
    for call in calls:
        if call.answer is not None:
            told[call.who].add(call.answer)
    for who, answers in told.items():
        if who not in stored:
            yield Fault(NO_RECORD, f"{who}")
        elif len(answers | stored[who]) > 1:
            yield Fault(TWO_ANSWERS, f"{who}: {len(answers)} were heard, {len(stored[who])} are kept")


def _charges(calls: Sequence[Call], kept: Kept) -> Iterator[Fault]:
    asked = {(*call.who, call.dataset, call.epsilon) for call in calls}
    for who, times in Counter(charge.who for charge in kept.charges).items():
        if times > 1:
            yield Fault(CHARGED_TWICE, f"{who}: {times} times")
    for charge in kept.charges:
        if (*charge.who, charge.values["dataset"], charge.values["epsilon"]) not in asked:
            yield Fault(NOT_ASKED, f"{charge.who}: {charge.values['epsilon']} of {charge.values['dataset']}")


def _refusals(calls: Sequence[Call], kept: Kept) -> Iterator[Fault]:
    """No budget is lowered or raised in a history: what is refused once stays so, and so does what is left."""
    charged = {charge.who for charge in kept.charges}
    budgets = _budgets_at_last(kept)
    for call in calls:
        if call.answer is None and call.refusal not in MAY_BE_CHARGED and call.who in charged:
            yield Fault(REFUSED_AND_CHARGED, f"{call.who}: {call.refusal}")
        if call.refusal == "BUDGET_EXHAUSTED":
            left = min(budgets.get((call.dataset, name), Fraction()) for name in ("", call.developer))
            if _exact(call.epsilon) <= left:
                yield Fault(REFUSED_TOO_EARLY, f"{call.who}: {float(left)} is left of {call.dataset}")


def _order(calls: Sequence[Call], kept: Kept) -> Iterator[Fault]:
    """What was answered before something else was asked was charged before it."""
    asked, answered = dict[tuple[str, str], float](), dict[tuple[str, str], float]()
    for call in calls:
        asked[call.who] = min(call.began, asked.get(call.who, call.began))
        if call.answer is not None:
            answered[call.who] = min(call.ended, answered.get(call.who, call.ended))
    for line in kept.starts:
        earliest = float("inf")
        for record in reversed(kept.of(line)):
            if record.kind == "Entry":
                if asked.get(record.who, 0.0) > earliest:
                    yield Fault(OUT_OF_ORDER, f"{record.who} before one that had been answered when it was asked")
                earliest = min(earliest, answered.get(record.who, earliest))


def _chain(kept: Kept, line: str, key: bytes) -> Iterator[Fault]:
    before = kept.starts[line]
    for number, record in enumerate(kept.of(line), start=1):
        if record.sequence != number:
            yield Fault(BROKEN, f"{line}: record {record.sequence} stands where {number} should")
            return
        if record.chain != link(before, record) or record.mac != mac(key, record.chain):
            yield Fault(BROKEN, f"{line}: record {number} does not follow on the one before it")
            return
        before = record.chain


def _head(calls: Sequence[Call], kept: Kept, line: str) -> Iterator[Fault]:
    head, chain = kept.heads.get(line, Sealed(0, b"")), kept.of(line)
    if head.sequence and head.chain not in [record.chain for record in chain if record.sequence == head.sequence]:
        yield Fault(SEALED_AHEAD, f"{line}: {head.sequence} is sealed, and {len(chain)} are recorded")
    told = {call.who for call in calls if call.answer is not None}
    for record in chain:
        if record.sequence > head.sequence and record.kind == "Entry" and record.who in told:
            yield Fault(NOT_SEALED, f"{record.who}: record {record.sequence} of {line}, {head.sequence} is sealed")


def _budgets(kept: Kept) -> Iterator[Fault]:
    """Add up each account's charges, in the order of its chain, against the budget that held at each."""
    for line in kept.starts:
        budgets, spent = dict[tuple[str, str], Fraction](), defaultdict[tuple[str, str], Fraction](Fraction)
        for record in kept.of(line):
            if record.kind == "Terms":
                assert (record.values["rule"], record.values["delta"]) == ("basic", 0.0), "not added up here"
                budgets[record.values["dataset"], record.values["developer"]] = _exact(record.values["epsilon"])
            if record.kind != "Entry":
                continue
            for name in ("", record.values["developer"]):
                account = record.values["dataset"], name
                spent[account] += _exact(record.values["epsilon"])
                if spent[account] > budgets.get(account, 0):
                    yield Fault(EXCEEDED, f"{account}: by {record.who}, record {record.sequence}")


def _budgets_at_last(kept: Kept) -> dict[tuple[str, str], Fraction]:
    """What is left of each account once everything is charged."""
    left = dict[tuple[str, str], Fraction]()
    for record in sorted(kept.records, key=lambda record: record.sequence):
        if record.kind == "Terms":
            left[record.values["dataset"], record.values["developer"]] = _exact(record.values["epsilon"])
    for charge in kept.charges:
        for name in ("", charge.values["developer"]):
            account = charge.values["dataset"], name
            left[account] = left.get(account, Fraction()) - _exact(charge.values["epsilon"])
    return left


def _exact(epsilon: float) -> Fraction:
    """An epsilon is the decimal that it was written as."""
    return Fraction(repr(epsilon))
