"""Checks every call against the table of callers, and every received field against the receiver's clearance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.message import Message as Protobuf
from google.protobuf.unknown_fields import UnknownFieldSet

from fairwall.rpc.access import CALLERS
from fairwall.wire.v1.visibility_pb2 import VISIBILITY_INHERITED, VISIBILITY_UNSPECIFIED, visibility
from sim.transcripts.boundary import CLEARANCE, level_name
from sim.transcripts.files import Transcript, decode
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
