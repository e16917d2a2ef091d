"""``fairwall verify RUN``: whether a run's transcripts are whole, agree, stay within the boundary, and hold no secret.

What is checked is what was written: each file as it is stored, against the end of each chain in ``result.json``; the
two sides of every call against one another; every field that arrived against its receiver's clearance; all that a
party other than compliance received against every protected column of the run; and what parties report, with the lines
of ``trials.jsonl``, against what follows from the messages. What a party sent is not searched: a guess is its own,
however right it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from blake3 import blake3
from google.protobuf.message import Message as Protobuf
from google.protobuf.unknown_fields import UnknownFieldSet
from numpy.typing import NDArray

from fairwall.errors import UserError
from fairwall.rpc.access import CALLERS
from fairwall.rpc.arrays import ArrayError
from fairwall.rpc.turns import collect
from fairwall.wire.v1 import array_pb2, error_pb2
from fairwall.wire.v1.visibility_pb2 import VISIBILITY_INHERITED, VISIBILITY_UNSPECIFIED, visibility
from sim.games import read as read_sweep
from sim.replay.differences import short
from sim.runs.folder import digests
from sim.runs.trials import read_trials, summarise
from sim.transcripts.boundary import CLEARANCE, METHODS, level_name
from sim.transcripts.files import CallKey, Ending, Message, Transcript, anchors, decode, paths, read
from sim.verify.byte_search import NARROW, Column, Search
from sim.verify.recompute import recompute

_DEALS = {
    "/fairwall.game.v1.RefereeService/TakeComplianceDeal": ("protected", frozenset({"compliance"})),
    "/fairwall.game.v1.InferenceService/TakeTrainingDeal": ("groups", frozenset[str]()),
    "/fairwall.game.v1.InferenceService/TakeAttackDeal": ("groups", frozenset({"adversary"})),
}
"""Deals that hold protected columns: in which array, and whose they are by the rules of the game."""


class NoRun(UserError):
    """A folder that is no run's. Its text is one line."""


@dataclass(frozen=True)
class Finding:
    """Something that is not as it must be.

    Parameters
    ----------
    check : str
        "file", "chain", "open", "counterpart", "allowed", "protected" or "reported".
    where : str
        Which file, and where in it.
    text : str
        What is wrong.
    """

    check: str
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.check}: {self.where}: {self.text}"


@dataclass(frozen=True)
class Verification:
    """What came of the checks.

    Parameters
    ----------
    findings : tuple of Finding
        Empty if all is well.
    notes : tuple of str
        What is exempt, and what could not be checked.
    transcripts, messages, searched_bytes, columns, reports : int
        How much was checked.
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    transcripts: int
    messages: int
    searched_bytes: int
    columns: int
    reports: int


@dataclass
class _Side:
    """What one party recorded of a call."""

    script: Transcript
    method: str = ""
    requests: list[Message] = field(default_factory=list)
    answers: list[Message] = field(default_factory=list)
    ending: Ending | None = None

    @property
    def answered(self) -> bool:
        return self.ending is not None and self.ending.status == 0


def verify(folder: Path) -> Verification:
    """Check a run's folder.

    Raises
    ------
    NoRun
        If it is none, or recorded nothing.
    OSError
        If a file cannot be read.
    """
    if not (folder / "scenario.toml").is_file():
        raise NoRun(f"{folder}: not a run's folder: it has no scenario.toml")
    scripts = [read(path) for path in paths(folder)]
    if not scripts:
        raise NoRun(f'{folder}: nothing was recorded: its scenario says record = "none", or it is an old run')
    findings = [*_files(folder), *_chains(scripts)]
    by_number: dict[str, dict[str, Transcript]] = {}
    for script in scripts:
        by_number.setdefault(script.number, {})[script.party] = script
    notes: list[str] = []
    for parties in by_number.values():
        findings += _counterparts(parties, notes)
    for script in scripts:
        findings += _allowed(script, by_number[script.number])
    leaks = _Leaks(scripts)
    findings += leaks.findings()
    recomputed = recompute(folder, by_number)
    findings += (Finding("reported", *contradiction) for contradiction in recomputed.contradictions)
    return Verification(
        findings=tuple(dict.fromkeys(findings)),
        notes=tuple(dict.fromkeys([*notes, *leaks.notes, *recomputed.notes])),
        transcripts=len(scripts),
        messages=sum(len(script.messages) for script in scripts),
        searched_bytes=leaks.searched_bytes,
        columns=leaks.columns,
        reports=recomputed.reports,
    )


# The files, and the chains in them.


def _files(folder: Path) -> Iterator[Finding]:
    try:
        result = json.loads((folder / "result.json").read_bytes())
        kept, ends = result["files"], result["transcripts"]
        summary = result["summary"]
    except FileNotFoundError:
        yield Finding("file", "result.json", "is missing: the run was broken off, and nothing says how its files ended")
        return
    except (ValueError, KeyError, TypeError, IndexError):
        yield Finding("file", "result.json", "cannot be read")
        return
    if not kept:
        yield Finding("file", "result.json", "says not how the files ended: the run is going on, or was killed")
        return
    yield from _compared(kept, digests(folder), "file", lambda name: name, "is not what it was when the run ended")
    yield from _compared(
        ends, anchors(folder), "chain", lambda name: f"transcript/{name}.bin", "does not end as the run says"
    )
    try:
        again = summarise(read_sweep(str(folder / "scenario.toml")), read_trials(folder / "trials.jsonl"))
    except (LookupError, TypeError, ValueError, ArithmeticError):
        yield Finding("file", "trials.jsonl", "holds lines that cannot be summed up")
    else:
        if json.loads(json.dumps(again)) != summary:
            yield Finding("file", "result.json", "sums up other trials than trials.jsonl holds")
    if result["complete"] is not True:
        yield Finding("open", "result.json", "the run was not played to its end")


def _compared(
    said: Mapping[str, Any], there: Mapping[str, Any], check: str, place: Any, text: str
) -> Iterator[Finding]:
    for name in sorted(said.keys() | there.keys()):
        if name not in there:
            yield Finding(check, place(name), "is gone")
        elif name not in said:
            yield Finding(check, place(name), "was not there when the run ended")
        elif said[name] != there[name]:
            yield Finding(check, place(name), text)


def _chains(scripts: Iterable[Transcript]) -> Iterator[Finding]:
    digests_said: dict[str, set[str]] = {}
    for script in scripts:
        for problem in script.problems:
            yield Finding("chain", _place(script, problem.entry), problem.text)
        if not script.closed:
            rest = f", and {script.cut_off} bytes of another" if script.cut_off else ""
            text = f"breaks off after {script.entries} entries{rest}: it was killed, or the end is cut off"
            yield Finding("open", _place(script), text)
        if script.header is not None:
            digests_said.setdefault(script.header.scenario_digest, set()).add(script.party)
    if len(digests_said) > 1:
        text = "were written for different scenarios"
        yield Finding(
            "chain", "transcript", "; ".join(", ".join(sorted(who)) for who in digests_said.values()) + f": {text}"
        )


def _place(script: Transcript, entry: int | None = None) -> str:
    return f"transcript/{script.party}/{script.path.name}" + (f" entry {entry}" if entry is not None else "")


# The two sides of each call.


def _counterparts(parties: Mapping[str, Transcript], notes: list[str]) -> Iterator[Finding]:
    calls: dict[CallKey, dict[str, _Side]] = {}
    for party, script in parties.items():
        for message in script.messages:
            side = calls.setdefault(message.call, {}).setdefault(party, _Side(script, message.method))
            (side.requests if message.is_request else side.answers).append(message)
            if message.method != side.method:
                yield Finding("counterpart", _place(script, message.entry), f"{message.call} has two methods")
        for key, ending in script.endings.items():
            calls.setdefault(key, {}).setdefault(party, _Side(script, ending.method)).ending = ending
    unread = 0
    for key, sides in calls.items():
        if not key.caller or not key.number:
            (side,) = sides.values()
            yield Finding("counterpart", _place(side.script), f"{key}: made by nobody who records, to {side.method}")
            continue
        caller, server = sides.get(key.caller), sides.get(key.server)
        for one, other, name in ((caller, server, key.server), (server, caller, key.caller)):
            if one is not None and other is None:
                yield from _one_sided(key, one, parties.get(name), name)
        if caller is not None and server is not None:
            unread += len(caller.requests) - len(server.requests) if not server.answered else 0
            yield from _both_sided(key, caller, server)
    if unread > 0:
        notes.append(f"{unread} messages of calls that were refused or given up were never read by their receiver")


def _one_sided(key: CallKey, side: _Side, other: Transcript | None, name: str) -> Iterator[Finding]:
    if other is None:
        yield Finding("counterpart", f"transcript/{name}", f"is missing, and is what {_place(side.script)} speaks of")
    elif other.is_whole and (name == key.caller or (side.ending is not None and side.ending.is_the_servers)):
        yield Finding("counterpart", _place(side.script), f"{key} ({short(side.method)}): {name} recorded no such call")


def _both_sided(key: CallKey, caller: _Side, server: _Side) -> Iterator[Finding]:
    if caller.method != server.method:
        text = f"{key} is {short(caller.method)} to one side and {short(server.method)} to the other"
        yield Finding("counterpart", _place(caller.script), text)
    # What one side sent and the other has not got may still have been under way if the call was given up or refused.
    yield from _one_way(key, caller, server, caller.requests, server.requests, server.answered)
    yield from _one_way(key, server, caller, server.answers, caller.answers, caller.answered)
    if caller.ending is not None and server.ending is not None:
        same = (caller.ending.status, caller.ending.reason) == (server.ending.status, server.ending.reason)
        if not same and caller.ending.is_the_servers:
            text = f"{key} ended as {_said(caller.ending)} for {key.caller}, as {_said(server.ending)} for {key.server}"
            yield Finding("counterpart", _place(caller.script, caller.ending.entry), text)


def _one_way(
    key: CallKey, sender: _Side, receiver: _Side, sent: list[Message], received: list[Message], finished: bool
) -> Iterator[Finding]:
    for number, (out, came) in enumerate(zip_longest(sent, received)):
        if came is None:
            if finished and receiver.script.is_whole:
                text = f"{key}, message {number}: {receiver.script.party} did not record that it got it"
                yield Finding("counterpart", _place(sender.script, out.entry), text)
            return
        if out is None:
            if sender.script.is_whole:
                text = f"{key}, message {number}: {sender.script.party} did not record that it sent it"
                yield Finding("counterpart", _place(receiver.script, came.entry), text)
            return
        if not out.says_the_same_as(came):
            text = f"{key}, message {number}: is not what {sender.script.party} sent (its entry {out.entry})"
            yield Finding("counterpart", _place(receiver.script, came.entry), text)


def _said(ending: Ending) -> str:
    reason = error_pb2.Reason.Name(ending.reason) if ending.reason else ""
    return reason.removeprefix("REASON_") or f"status {ending.status}"


# What may reach whom.


def _allowed(script: Transcript, parties: Mapping[str, Transcript]) -> Iterator[Finding]:
    """Check all that the party received, and what it sent to whoever has no transcript of it."""
    for message in script.messages:
        receiver = message.call.server if message.is_request else message.call.caller
        if not message.is_received and receiver in parties:
            continue
        place = _place(script, message.entry)
        if message.call.caller not in CALLERS.get(message.method, frozenset()):
            ending = script.endings.get(message.call)
            if ending is None or ending.status == 0:
                yield Finding("allowed", place, f"{message.call.caller} may not call {message.method}")
        if message.method not in METHODS:
            continue
        decoded = decode(message.method, message.is_request, script.data(message))
        if decoded is None:
            yield Finding("allowed", place, f"is no message of {short(message.method)}")
            continue
        for path, level in _fields(decoded):
            if not VISIBILITY_UNSPECIFIED < level <= CLEARANCE.get(receiver, VISIBILITY_UNSPECIFIED):
                label = "unknown to the protocol" if level == VISIBILITY_UNSPECIFIED else level_name(level)
                yield Finding("allowed", place, f"{path} is {label}, and reached {receiver or 'a stranger'}")


def _fields(message: Protobuf, inherited: int = VISIBILITY_UNSPECIFIED) -> Iterator[tuple[str, int]]:
    """Visit the fields that a message has set, with the label that applies; one that nobody declared has none."""
    name = message.DESCRIPTOR.full_name
    unknown_fields: Any = UnknownFieldSet(message)  # its stubs leave out that it is a sequence
    for unknown in unknown_fields:
        yield f"{name}, field {unknown.field_number}", VISIBILITY_UNSPECIFIED
    for descriptor, value in message.ListFields():
        options: Any = descriptor.GetOptions()
        label: int = options.Extensions[visibility]
        level = inherited if label == VISIBILITY_INHERITED else label
        yield f"{name}.{descriptor.name}", level
        if descriptor.message_type is not None:
            for part in value if descriptor.is_repeated else (value,):
                yield from _fields(part, level)


# Protected columns in what was received.


class _Leaks:
    """The protected columns of a run, and the search for them in what the developer and the adversary received."""

    def __init__(self, scripts: Iterable[Transcript]) -> None:
        self._received = [
            (script, call, messages)
            for script in scripts
            for call, messages in _streams(script)
            if script.party in ("developer", "adversary")
        ]
        self.notes: list[str] = []
        self.searched_bytes = 0
        self._unsearched = 0
        self._columns: dict[bytes, tuple[Column, set[str]]] = {}
        declared: dict[str, int] = {}
        for script in sorted(scripts, key=lambda script: script.party != "referee"):
            for _, messages in _streams(script, received=script.party != "referee"):
                self._gather(script, messages, declared)
        self.columns = len(self._columns)
        for who, deals in sorted(declared.items()):
            self.notes.append(f"exempt: groups that {who} holds in deals that declare it: {deals}")
        self.notes.append("exempt: what a party sent is its own, guesses included, and is not searched")

    def findings(self) -> Iterator[Finding]:
        """Search all that was received."""
        for party in ("developer", "adversary"):
            search = Search(column for column, holders in self._columns.values() if party not in holders)
            if search.too_small:
                self.notes.append(
                    f"not sought in what {party} received: {len(search.too_small)} columns of too few people"
                )
            done: set[bytes] = set()
            for script, call, messages in self._received:
                if script.party == party:
                    yield from self._in_call(search, script, call, messages, done)
        if self._unsearched:
            self.notes.append(f"not searched: {self._unsearched:,} bytes that were recorded by their digest alone")

    def _in_call(
        self, search: Search, script: Transcript, call: CallKey, messages: list[Message], done: set[bytes]
    ) -> Iterator[Finding]:
        place = f"{_place(script, messages[0].entry)} ({call}, {short(messages[0].method)})"
        for name, data, strides in self._searchable(script, messages):
            digest = blake3(data + repr(strides).encode()).digest()
            if digest in done:
                continue
            done.add(digest)
            self.searched_bytes += len(data)
            for found in search(data, strides) if strides else search(data):
                text = f"{name} holds {found.column.name} from byte {found.at} on: {found.how}"
                yield Finding("protected", place, f"{script.party} received what it must not: {text}")

    def _searchable(self, script: Transcript, messages: list[Message]) -> Iterator[tuple[str, bytes, tuple[int, ...]]]:
        """Give what a call brought: the messages without large fields, and each byte field, put together again."""
        yield "the messages", b"".join(message.content for message in messages), ()
        fields: dict[str, list[bytes]] = {}
        shapes: dict[str, array_pb2.ArrayHeader] = {}
        for message in messages:
            missing = sum(size for _, size, digest in message.large if not script.stores(digest))
            self._unsearched += missing
            decoded = decode(message.method, message.is_request, script.data(message))
            if decoded is not None and not missing:
                for name, data in _byte_fields(decoded, shapes):
                    fields.setdefault(name.removesuffix("_chunk"), []).append(data)
        for name, parts in fields.items():
            row = _row_bytes(shapes.get(name))
            yield name, b"".join(parts), (*NARROW, *((row,) if row > 1 and row not in NARROW else ()))

    def _gather(self, script: Transcript, messages: list[Message], declared: dict[str, int]) -> None:
        """Learn the protected columns that a deal holds."""
        array, owners = _DEALS.get(messages[0].method, ("", frozenset()))
        parts = iter([decode(message.method, message.is_request, script.data(message)) for message in messages])
        first = next(parts, None)
        if not array or first is None or first.WhichOneof("part") != "deal":
            return
        stored = all(script.stores(digest) for message in messages for _, _, digest in message.large)
        try:
            groups = collect(first.deal, (part for part in parts if part is not None))[array] if stored else None
        except (ArrayError, KeyError):
            groups = None
        if groups is None:
            self.notes.append(
                f"not sought: the {array} of {first.deal.deal_id}, which are recorded by their digest alone"
            )
            return
        holders = {"compliance", "referee", *owners}
        taker = messages[0].call.caller
        if getattr(first.deal, "holds_protected", False):
            holders.add(taker)
        if taker in holders - {"compliance"} and script.party == "referee":
            declared[taker] = declared.get(taker, 0) + 1
        for number, values in enumerate(np.atleast_2d(groups)):
            self._add(f"{array} {number} of {first.deal.deal_id}", values, holders)

    def _add(self, name: str, values: NDArray[Any], holders: set[str]) -> None:
        column = Column(name, (values != 0).astype(np.uint8))
        known = self._columns.setdefault(column.values.tobytes(), (column, holders))
        known[1].intersection_update(holders)


def _streams(script: Transcript, *, received: bool = True) -> Iterator[tuple[CallKey, list[Message]]]:
    """Group what a party received, or sent, by call."""
    calls: dict[CallKey, list[Message]] = {}
    for message in script.messages:
        if message.is_received == received:
            calls.setdefault(message.call, []).append(message)
    yield from calls.items()


def _byte_fields(
    message: Protobuf, shapes: dict[str, array_pb2.ArrayHeader], name: str = ""
) -> Iterator[tuple[str, bytes]]:
    """Visit a message's byte and text fields by name, and keep the headers of arrays by the name of their bytes."""
    for descriptor, value in message.ListFields():
        own = descriptor.name
        for part in value if descriptor.is_repeated else (value,):
            if isinstance(part, bytes):
                yield (name if own == "data" else own), part
            elif isinstance(part, str):
                yield own, part.encode()
            elif isinstance(part, array_pb2.ArrayHeader):
                shapes[name if own == "header" else own] = part
            elif isinstance(part, Protobuf):
                yield from _byte_fields(part, shapes, own)


def _row_bytes(header: array_pb2.ArrayHeader | None) -> int:
    """Tell how far apart two people's rows are, in bytes."""
    if header is None or len(header.shape) != 2:
        return 0
    width = {array_pb2.ELEMENT_TYPE_FLOAT64: 8, array_pb2.ELEMENT_TYPE_FLOAT32: 4}.get(header.element_type, 1)
    return int(header.shape[1]) * width
