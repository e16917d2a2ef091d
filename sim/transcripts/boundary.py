"""The information boundary: what each party may learn, computed from the labels of fields and the table of callers.

The server of a method learns its requests, and every allowed caller its answers; a refusal may reach any party, its
numbers every party that may call the service. Health checks are left out: they say only whether a server is well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from fairwall.rpc.access import CALLERS, SERVED_BY
from fairwall.rpc.identity import PARTIES
from fairwall.wire.v1 import error_pb2
from fairwall.wire.v1.visibility_pb2 import (
    VISIBILITY_DEVELOPMENT,
    VISIBILITY_INHERITED,
    VISIBILITY_OUTSIDE,
    VISIBILITY_PROTECTED,
    VISIBILITY_UNSPECIFIED,
    Visibility,
    visibility,
)
from sim.transcripts.methods import METHODS

CLEARANCE = {
    "adversary": VISIBILITY_OUTSIDE,
    "developer": VISIBILITY_DEVELOPMENT,
    "compliance": VISIBILITY_PROTECTED,
    "referee": VISIBILITY_PROTECTED,
}
"""The highest label that a party may learn."""


class Reached(NamedTuple):
    """A field that a message reaches: its path, its declared label, and the label that applies."""

    path: str
    field: Any
    label: int
    level: int


@dataclass(frozen=True)
class Travel:
    """A message that can travel: receiver, method, and descriptor."""

    party: str
    method: str
    message: Any


class BoundaryViolation(NamedTuple):
    """A field above its receiver's clearance, or without a label."""

    party: str
    method: str
    path: str
    level: str

    def __str__(self) -> str:
        return f"{self.path} is {self.level}, and reaches {self.party} in {self.method}"


def server_of(method: str) -> str:
    """Return the party that serves a method."""
    return next(party for prefix, party in SERVED_BY.items() if method.startswith(prefix))


def travelling() -> list[Travel]:
    """Return every message that can travel, once for each possible receiver."""
    found = []
    for name, method in METHODS.items():
        found.append(Travel(server_of(name), name, method.input_type))
        found += [Travel(caller, name, method.output_type) for caller in sorted(CALLERS[name])]
    found += [Travel(party, "any refusal", error_pb2.Error.DESCRIPTOR) for party in PARTIES]
    asking = {caller for name in METHODS if server_of(name) == "compliance" for caller in CALLERS[name]}
    by_compliance = error_pb2.AuditError.DESCRIPTOR
    return found + [Travel(party, "a refusal of compliance", by_compliance) for party in sorted(asking)]


def walk(message: Any, inherited: int = VISIBILITY_UNSPECIFIED, within: tuple[str, ...] = ()) -> Iterator[Reached]:
    """Yield every field that a message reaches, through the messages that it holds.

    ``inherited`` is the label of the field that holds the message; ``within`` names the enclosing messages, to enter a
    message that holds itself only once.
    """
    for field in message.fields:
        label = field.GetOptions().Extensions[visibility]
        level = label_of(field, inherited)
        yield Reached(f"{message.full_name}.{field.name}", field, label, level)
        if field.message_type is not None and field.message_type.full_name not in within:
            yield from walk(field.message_type, level, (*within, message.full_name))


def label_of(field: Any, inherited: int) -> int:
    """Return the label that applies to a field of a message that is itself held under the label ``inherited``."""
    label: int = field.GetOptions().Extensions[visibility]
    return inherited if label == VISIBILITY_INHERITED else label


def violations(travels: Iterable[Travel] | None = None) -> list[BoundaryViolation]:
    """Return each field that reaches a party above its clearance, or without a label, by default of all messages."""
    return [
        BoundaryViolation(travel.party, travel.method, at.path, level_name(at.level))
        for travel in (travelling() if travels is None else travels)
        for at in walk(travel.message)
        if not VISIBILITY_UNSPECIFIED < at.level <= CLEARANCE[travel.party]
    ]


def learns(party: str) -> dict[str, dict[str, list[str]]]:
    """Return the names of the fields that a party may learn: by label, the lowest first, and by message.

    Fields that inherit their label are left out: the field that holds them stands for them.
    """
    found: dict[int, dict[str, dict[str, None]]] = {}
    for travel in travelling():
        if travel.party == party:
            for at in walk(travel.message):
                if at.label != VISIBILITY_INHERITED:
                    message = at.field.containing_type.name
                    found.setdefault(at.level, {}).setdefault(message, {})[at.field.name] = None
    return {
        level_name(level): {message: list(fields) for message, fields in sorted(found[level].items())}
        for level in sorted(found)
    }


def level_name(level: int) -> str:
    """Return the name of a label, in one word."""
    return str(Visibility.Name(level)).removeprefix("VISIBILITY_")


def as_values() -> dict[str, Any]:
    """Return the whole boundary as plain values for JSON."""
    return {
        "parties": {
            party: {"clearance": level_name(CLEARANCE[party]), "may_learn": learns(party)} for party in PARTIES
        },
        "methods": [
            {
                "method": name,
                "callers": sorted(CALLERS[name]),
                "served_by": server_of(name),
                "request": {"message": method.input_type.full_name, "highest": level_name(_highest(method.input_type))},
                "answer": {
                    "message": method.output_type.full_name,
                    "highest": level_name(_highest(method.output_type)),
                },
            }
            for name, method in METHODS.items()
        ],
        "violations": [violation._asdict() for violation in violations()],
    }


def as_markdown() -> str:
    """Return the boundary for ``docs/protocol.md``: a diagram of calls, and a table of the fields of each party.

    An arrow goes from the caller to the server, with the highest labels of the requests and of the answers.
    """
    edges: dict[tuple[str, str, str], list[Any]] = {}
    for name, method in METHODS.items():
        for caller in sorted(CALLERS[name]):
            edges.setdefault((caller, server_of(name), method.containing_service.name), []).append(method)
    drawing = ["```mermaid", "flowchart LR"]
    drawing += [f'    {party}["{party}<br/>cleared for {level_name(CLEARANCE[party])}"]' for party in PARTIES]
    for (caller, server, service), methods in edges.items():
        sends = level_name(max(_highest(method.input_type) for method in methods))
        gets = level_name(max(_highest(method.output_type) for method in methods))
        says = [service, *(method.name for method in methods), f"sends {sends}", f"gets {gets}"]
        drawing.append(f'    {caller} -->|"{"<br/>".join(says)}"| {server}')
    lists = [
        line
        for party in PARTIES
        for level, messages in learns(party).items()
        for line in ("", f"**{party}, {level}**", "", *_listed(messages))
    ]
    return "\n".join([*drawing, "```", *lists])


def _listed(messages: dict[str, list[str]]) -> list[str]:
    """List messages with their fields; messages of the same fields share a line."""
    by_fields: dict[tuple[str, ...], list[str]] = {}
    for message, fields in messages.items():
        by_fields.setdefault(tuple(fields), []).append(message)
    return [f"* {_code(alike)}: {_code(fields)}" for fields, alike in by_fields.items()]


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _highest(message: Any) -> int:
    """Return the highest label in a message; OUTSIDE for an empty one, which says only that it was sent."""
    return max((at.level for at in walk(message)), default=VISIBILITY_OUTSIDE)
