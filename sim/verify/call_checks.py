"""Checks of calls: who may call, which fields may be received, and whether both sides recorded the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from google.protobuf.message import Message as Protobuf
from google.protobuf.unknown_fields import UnknownFieldSet

from fairwall.rpc.access import CALLERS
from fairwall.wire.v1 import error_pb2
from fairwall.wire.v1.visibility_pb2 import VISIBILITY_INHERITED, VISIBILITY_UNSPECIFIED, visibility
from sim.transcripts.boundary import CLEARANCE, level_name
from sim.transcripts.files import CallKey, Ending, Message, Transcript, decode
from sim.transcripts.methods import METHODS, short
from sim.verify.finding import VerifyFinding


def forbidden(script: Transcript, parties: Mapping[str, Transcript]) -> Iterator[VerifyFinding]:
    """Check what the party received, and what it sent to a receiver without a transcript."""
    for message in script.messages:
        receiver = message.call.server if message.is_request else message.call.caller
        if not message.is_received and receiver in parties:
            continue
        place = script.place(message.entry)
        if message.call.caller not in CALLERS.get(message.method, frozenset()):
            ending = script.endings.get(message.call)
            if ending is None or ending.status == 0:
                yield VerifyFinding("allowed", place, f"{message.call.caller} may not call {message.method}")
        if message.method not in METHODS:
            continue
        decoded = decode(message.method, message.is_request, script.data(message))
        if decoded is None:
            yield VerifyFinding("allowed", place, f"is no message of {short(message.method)}")
            continue
        for path, level in _fields(decoded):
            if not VISIBILITY_UNSPECIFIED < level <= CLEARANCE.get(receiver, VISIBILITY_UNSPECIFIED):
                label = "unknown to the protocol" if level == VISIBILITY_UNSPECIFIED else level_name(level)
                yield VerifyFinding("allowed", place, f"{path} is {label}, and reached {receiver or 'a stranger'}")


def _fields(message: Protobuf, inherited: int = VISIBILITY_UNSPECIFIED) -> Iterator[tuple[str, int]]:
    """Yield the fields set in a message, with the label that applies: none for an undeclared field."""
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


@dataclass
class _Side:
    """One party's record of a call."""

    script: Transcript
    method: str = ""
    requests: list[Message] = field(default_factory=list)
    answers: list[Message] = field(default_factory=list)
    ending: Ending | None = None

    @property
    def answered(self) -> bool:
        return self.ending is not None and self.ending.status == 0


def disagreements(parties: Mapping[str, Transcript], notes: list[str]) -> Iterator[VerifyFinding]:
    """Compare the records of the calls between parties of one number; ``notes`` gets what could not be compared."""
    calls: dict[CallKey, dict[str, _Side]] = {}
    for party, script in parties.items():
        for message in script.messages:
            side = calls.setdefault(message.call, {}).setdefault(party, _Side(script, message.method))
            (side.requests if message.is_request else side.answers).append(message)
            if message.method != side.method:
                yield VerifyFinding("counterpart", script.place(message.entry), f"{message.call} has two methods")
        for key, ending in script.endings.items():
            calls.setdefault(key, {}).setdefault(party, _Side(script, ending.method)).ending = ending
    unread = 0
    for key, sides in calls.items():
        if not key.caller or not key.number:
            (side,) = sides.values()
            yield VerifyFinding(
                "counterpart", side.script.place(), f"{key}: made by nobody who records, to {side.method}"
            )
            continue
        caller, server = sides.get(key.caller), sides.get(key.server)
        for one, other, name in ((caller, server, key.server), (server, caller, key.caller)):
            if one is not None and other is None:
                yield from _one_sided(key, one, parties.get(name), name)
        if caller is not None and server is not None:
            unread += len(caller.requests) - len(server.requests) if not server.answered else 0
            yield from _both_sided(key, caller, server)
    if unread > 0:
        notes.append(f"{unread} messages of calls that were refused or cancelled were never read by their receiver")


def _one_sided(key: CallKey, side: _Side, other: Transcript | None, name: str) -> Iterator[VerifyFinding]:
    if other is None:
        yield VerifyFinding(
            "counterpart", f"transcript/{name}", f"is missing, and is what {side.script.place()} speaks of"
        )
    elif other.is_whole and (name == key.caller or (side.ending is not None and side.ending.is_the_servers)):
        yield VerifyFinding(
            "counterpart", side.script.place(), f"{key} ({short(side.method)}): {name} recorded no such call"
        )


def _both_sided(key: CallKey, caller: _Side, server: _Side) -> Iterator[VerifyFinding]:
    if caller.method != server.method:
        text = f"{key} is {short(caller.method)} to one side and {short(server.method)} to the other"
        yield VerifyFinding("counterpart", caller.script.place(), text)
    # A message missing on the other side may have been under way if the call was cancelled or refused.
    yield from _one_way(key, caller, server, caller.requests, server.requests, server.answered)
    yield from _one_way(key, server, caller, server.answers, caller.answers, caller.answered)
    if caller.ending is not None and server.ending is not None:
        same = (caller.ending.status, caller.ending.reason) == (server.ending.status, server.ending.reason)
        if not same and caller.ending.is_the_servers:
            text = f"{key} ended as {_said(caller.ending)} for {key.caller}, as {_said(server.ending)} for {key.server}"
            yield VerifyFinding("counterpart", caller.script.place(caller.ending.entry), text)


def _one_way(
    key: CallKey, sender: _Side, receiver: _Side, sent: list[Message], received: list[Message], finished: bool
) -> Iterator[VerifyFinding]:
    for number, (out, came) in enumerate(zip_longest(sent, received)):
        if came is None:
            if finished and receiver.script.is_whole:
                text = f"{key}, message {number}: {receiver.script.party} did not record that it got it"
                yield VerifyFinding("counterpart", sender.script.place(out.entry), text)
            return
        if out is None:
            if sender.script.is_whole:
                text = f"{key}, message {number}: {sender.script.party} did not record that it sent it"
                yield VerifyFinding("counterpart", receiver.script.place(came.entry), text)
            return
        if not out.says_the_same_as(came):
            text = f"{key}, message {number}: is not what {sender.script.party} sent (its entry {out.entry})"
            yield VerifyFinding("counterpart", receiver.script.place(came.entry), text)


def _said(ending: Ending) -> str:
    reason = error_pb2.Reason.Name(ending.reason) if ending.reason else ""
    return reason.removeprefix("REASON_") or f"status {ending.status}"
