"""The viewpoint of a page: a whole run, or one party, and what the page leaves out.

A page for one party is made from that party's own transcript and nothing else: no line of ``trials.jsonl``, no finding,
no other side's copy. In each message, every field above the party's clearance is cleared before anything is derived
from it, so sentences, digests and sizes contain nothing of such a field either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from google.protobuf.unknown_fields import UnknownFieldSet

from fairwall.wire.v1.visibility_pb2 import VISIBILITY_UNSPECIFIED
from sim.replay.recorded import Session
from sim.transcripts.boundary import CLEARANCE, label_of


class Omitted(NamedTuple):
    """A cleared field: its path, and its label."""

    path: str
    level: int


@dataclass(frozen=True)
class Sight:
    """A viewpoint: a whole run, or what one party saw of it."""

    party: str | None = None

    def session(self, scripts: Session) -> Session:
        """Return the transcripts that may be read."""
        if self.party is None:
            return scripts
        return {party: script for party, script in scripts.items() if party == self.party}

    def clear(self, message: Any) -> list[Omitted]:
        """Clear a message's hidden fields, and fields unknown to the protocol; return those cleared."""
        if self.party is None:
            return []
        return _clear(message, CLEARANCE[self.party], VISIBILITY_UNSPECIFIED, "")


ALL = Sight()


def _clear(message: Any, clearance: int, inherited: int, within: str) -> list[Omitted]:
    omitted = []
    if len(UnknownFieldSet(message)):
        message.DiscardUnknownFields()
        omitted.append(Omitted(f"{within}fields unknown to the protocol", VISIBILITY_UNSPECIFIED))
    for field, value in message.ListFields():
        level = label_of(field, inherited)
        if not VISIBILITY_UNSPECIFIED < level <= clearance:
            message.ClearField(field.name)
            omitted.append(Omitted(f"{within}{field.name}", level))
        elif field.message_type is not None:
            for number, part in enumerate(value) if field.is_repeated else ((None, value),):
                place = f"{within}{field.name}" + ("" if number is None else f"[{number}]")
                omitted += _clear(part, clearance, level, f"{place}.")
    return omitted
