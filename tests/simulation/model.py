"""The ledger's protocol as a model that can be run: what may happen, after what, and what holds ever after.

A state is what is durable, and what left; an event is allowed or is a fault. The model knows neither locks nor
statements: how a ledger sees to it that only this happens is its own affair.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeAlias

from compliance.ledger.entries import BudgetRecord, LedgerEntry, Record, Request, link
from compliance.ledger.head import Head
from fairwall.wire.v1.error_pb2 import REASON_BUDGET_EXHAUSTED, REASON_REQUEST_ID_REUSED, Reason


class Broken(Exception):
    """What the protocol forbids has happened."""


@dataclass(frozen=True)
class Begun:
    """A line, which is a chain by its name, is there, without records."""

    line: str
    genesis: bytes


@dataclass(frozen=True)
class Committed:
    """A record became durable."""

    line: str
    record: Record


@dataclass(frozen=True)
class Sealed:
    """From now on this head is what is read as the one that was sealed last."""

    line: str
    head: Head


@dataclass(frozen=True)
class Answered:
    """An answer left."""

    request: Request
    answer: bytes


@dataclass(frozen=True)
class Refused:
    """A developer was refused, for a reason."""

    request: Request
    reason: Reason


@dataclass(frozen=True)
class Halted:
    """A ledger said that it must not be used."""

    request: Request
    why: str


@dataclass(frozen=True)
class Crashed:
    """A process ended. What is durable is as it was."""

    replica: int


@dataclass(frozen=True)
class FailedOver:
    """A copy took the ledger's place that has so many records of each line, and lacks the later ones.

    It `splits` the services where some go on with what it took the place of.
    """

    kept: tuple[tuple[str, int], ...]
    splits: bool = False


@dataclass(frozen=True)
class Strayed:
    """A record became durable in what another copy has taken the place of."""

    line: str
    record: Record


Event: TypeAlias = Begun | Committed | Sealed | Answered | Refused | Halted | Crashed | FailedOver | Strayed


@dataclass(frozen=True)
class Line:
    """A chain.

    Parameters
    ----------
    sealed : Head or None
        The last one.
    ever_sealed : frozenset of bytes
        The digests of all of them.
    is_old : bool
        It is a copy that lacks what was sealed.
    """

    genesis: bytes
    records: tuple[Record, ...] = ()
    sealed: Head | None = None
    ever_sealed: frozenset[bytes] = frozenset()
    is_old: bool = False

    @cached_property
    def _key(self) -> int:
        # A digest stands for all records before it.
        end = self.records[-1].chain if self.records else self.genesis
        return hash((end, self.sealed, self.ever_sealed, self.is_old))

    def __hash__(self) -> int:
        return self._key

    @property
    def head(self) -> Head:
        return Head(len(self.records), self.records[-1].chain if self.records else self.genesis)


@dataclass(frozen=True)
class State:
    """What is durable, and what left.

    Parameters
    ----------
    lines : tuple of (str, Line)
    lost : tuple of (str, Record)
        What was durable, and is missing in the copy that took the ledger's place.
    is_split : bool
        There are services that went on with an older copy.
    answers : frozenset of (str, str, str, bytes, float)
        Those that left: data set, developer, request id, answer and cost.
    """

    lines: tuple[tuple[str, Line], ...] = ()
    lost: tuple[tuple[str, Record], ...] = ()
    answers: frozenset[tuple[str, str, str, bytes, float]] = frozenset()
    is_split: bool = False

    @cached_property
    def _key(self) -> int:
        lost = tuple(record.chain for _, record in self.lost)
        return hash((self.lines, lost, self.answers, self.is_split))

    def __hash__(self) -> int:
        return self._key

    def line(self, name: str) -> Line | None:
        return next((line for known, line in self.lines if known == name), None)

    def budget(self, dataset: str) -> float:
        """What the last record of the data set's budget says."""
        terms = [each for each in self.records() if isinstance(each, BudgetRecord) and not each.developer]
        return next((float(each.budget.epsilon) for each in reversed(terms) if each.dataset == dataset), 0.0)

    def records(self, lost: bool = False) -> tuple[Record, ...]:
        """All records; those too that were lost, if so."""
        kept = tuple(record for _, line in self.lines for record in line.records)
        return kept + tuple(record for _, record in self.lost) if lost else kept

    def entries(self, lost: bool = False) -> tuple[LedgerEntry, ...]:
        return tuple(record for record in self.records(lost) if isinstance(record, LedgerEntry))


def after(state: State, event: Event) -> State:
    """Return what holds after an event.

    Raises
    ------
    Broken
        If it is not allowed.
    """
    match event:
        case Begun(name, genesis):
            if state.line(name) is not None:
                raise Broken(f"line {name} was begun anew")
            return replace(state, lines=tuple(sorted((*state.lines, (name, Line(genesis))), key=lambda one: one[0])))
        case Committed(name, record):
            return _with(state, name, _committed(state, name, record))
        case Sealed(name, head):
            return _with(state, name, _sealed(state, name, head))
        case Answered(request, answer):
            return _answered(state, request, answer)
        case Refused(request, reason):
            _check_refusal(state, request, reason)
        case Halted(_, why):
            if not state.lost and not state.is_split:
                raise Broken(f"the ledger will not be used, and nothing was lost: {why}")
        case FailedOver(kept, splits):
            return replace(_failed_over(state, dict(kept)), is_split=splits or state.is_split)
        case Strayed(name, record):
            return replace(state, lost=(*state.lost, (name, record)))
    return state


def _known(state: State, name: str) -> Line:
    line = state.line(name)
    if line is None:
        raise Broken(f"line {name} has not begun")
    return line


def _with(state: State, name: str, line: Line) -> State:
    return replace(state, lines=tuple((known, line if known == name else each) for known, each in state.lines))


def _committed(state: State, name: str, record: Record) -> Line:
    line = _known(state, name)
    if record.sequence != len(line.records) + 1 or not _follows(line.head.chain, record):
        raise Broken(f"record {record.sequence} does not follow on record {len(line.records)}: the chain is broken")
    if line.is_old:
        raise Broken("an old copy was accepted: it lacks what was sealed, and went on")
    if line.records and line.head.chain not in line.ever_sealed:
        raise Broken("a record was added before the one before it was sealed")
    if isinstance(record, LedgerEntry):
        asked = record.request
        if any(_key(each.request) == _key(asked) for each in state.entries()):
            raise Broken(f"request {asked.request_id} was charged twice")
        spent = sum(each.request.loss.epsilon for each in state.entries() if each.request.dataset == asked.dataset)
        if spent + asked.loss.epsilon > state.budget(asked.dataset):
            raise Broken(f"the budget of {asked.dataset} was exceeded")
    return replace(line, records=(*line.records, record))


def _sealed(state: State, name: str, head: Head) -> Line:
    line = _known(state, name)
    if head == line.sealed:
        return line
    before = line.sealed or Head(0, line.genesis)
    if line.sealed is None and head == before:
        return replace(line, sealed=head, ever_sealed=frozenset({head.chain}))
    if head.sequence <= before.sequence:
        raise Broken(f"the seal went back from record {before.sequence} to {head.sequence}")
    written = [*line.records, *(record for where, record in state.lost if where == name)]
    record = next((each for each in written if each.chain == head.chain), None)
    if record is None:
        raise Broken(f"record {head.sequence} was sealed before it was durable")
    if record.sequence != head.sequence or not _follows(before.chain, record):
        raise Broken(f"the seal does not follow on the one before: {before.sequence}, {head.sequence}")
    return replace(line, sealed=head, ever_sealed=line.ever_sealed | {head.chain})


def _answered(state: State, request: Request, answer: bytes) -> State:
    who = request.dataset, request.developer, request.request_id
    for *given, what, _ in state.answers:
        if tuple(given) == who and what != answer:
            raise Broken(f"request {request.request_id} has two answers: a second noise sample left")
    bought = [
        (name, each)
        for name, each in (
            *((name, record) for name, line in state.lines for record in line.records),
            *state.lost,
        )
        if isinstance(each, LedgerEntry)
        and (each.request.dataset, *_key(each.request)) == who
        and each.request.digest == request.digest
        and each.reply.answer == answer
    ]
    if not bought:
        raise Broken(f"the answer to {request.request_id} left without its record")
    if not any(each.chain in _known(state, name).ever_sealed for name, each in bought):
        raise Broken(f"the answer to {request.request_id} left before its record was sealed")
    answers = state.answers | {(*who, answer, request.loss.epsilon)}
    spent = sum(cost for dataset, _, _, _, cost in answers if dataset == request.dataset)
    if spent > state.budget(request.dataset):
        raise Broken(f"answers about {request.dataset} cost more than its budget")
    return replace(state, answers=answers)


def _check_refusal(state: State, request: Request, reason: Reason) -> None:
    """Refuse a refusal that no record accounts for. One that was lost may have been counted by who saw it."""
    others = [each.request for each in state.entries(lost=True) if _key(each.request) != _key(request)]
    if reason == REASON_BUDGET_EXHAUSTED:
        spent = sum(each.loss.epsilon for each in others if each.dataset == request.dataset)
        if spent + request.loss.epsilon <= state.budget(request.dataset):
            raise Broken(f"{request.request_id} was refused, and the budget covers it")
    elif reason == REASON_REQUEST_ID_REUSED:
        same = [each.request for each in state.entries(lost=True) if _key(each.request) == _key(request)]
        if all((each.dataset, each.digest) == (request.dataset, request.digest) for each in same):
            raise Broken(f"{request.request_id} was refused as another request's, and is none")
    else:
        raise Broken(f"{request.request_id} was refused, and nobody knows why: {reason}")


def _failed_over(state: State, kept: dict[str, int]) -> State:
    lost, lines = list(state.lost), list[tuple[str, Line]]()
    for name, line in state.lines:
        lost += [(name, record) for record in line.records[kept[name] :]]
        left = replace(line, records=line.records[: kept[name]])
        heads = {left.genesis, *(record.chain for record in left.records)}
        lines.append((name, replace(left, is_old=line.sealed is not None and line.sealed.chain not in heads)))
    return replace(state, lines=tuple(lines), lost=tuple(lost))


def _key(request: Request) -> tuple[str, str]:
    return request.developer, request.request_id


@lru_cache(maxsize=4096)
def _link_of(before: bytes, chain: bytes, record: Record) -> bool:
    return link(before, record) == chain


def _follows(before: bytes, record: Record) -> bool:
    return _link_of(before, record.chain, record)
