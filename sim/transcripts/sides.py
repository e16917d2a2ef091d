"""The calls of several transcripts, each once, from the side with the most complete record.

A side that saw the call answered has precedence; between two such, the party that the call concerns (compliance for
audits) precedes the referee. Whether both sides agree is checked in `sim.verify.counterparts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairwall.wire.v1.error_pb2 import REASON_UNSPECIFIED
from sim.transcripts.calls import TranscriptCall, all_calls
from sim.transcripts.files import CallKey, Message, Transcript, decode
from sim.transcripts.methods import short

_ORDER = ("compliance", "developer", "adversary", "referee")


@dataclass(frozen=True)
class KnownCall:
    """A call, and the transcript with its most complete record."""

    script: Transcript
    call: TranscriptCall

    @property
    def method(self) -> str:
        """The method's name, "/package.Service/Method"."""
        return self.call.method

    @property
    def place(self) -> str:
        """The place of the call's first message."""
        return self.script.place(self.call.start)

    @property
    def is_stored(self) -> bool:
        """Whether all bytes of the call are stored, none by their digest alone."""
        return self.script.stores_all((*self.call.requests, *self.call.answers))

    @property
    def requests(self) -> list[Any]:
        """The decoded requests, with zeros for bytes that are not stored."""
        return self._decoded(self.call.requests)

    @property
    def answers(self) -> list[Any]:
        """The decoded answers, with zeros for bytes that are not stored."""
        return self._decoded(self.call.answers)

    @property
    def request(self) -> Any:
        """The first decoded request."""
        return self._decoded(self.call.requests[:1])[0]

    @property
    def answer(self) -> Any:
        """The first decoded answer."""
        return self._decoded(self.call.answers[:1])[0]

    @property
    def is_refused(self) -> bool:
        """Whether the server refused the call with a reason."""
        return self.call.ending is not None and self.call.ending.reason != REASON_UNSPECIFIED

    @property
    def is_answered(self) -> bool:
        """Whether the call was answered."""
        return self.call.ending is not None and self.call.ending.status == 0

    def _decoded(self, messages: Iterable[Message]) -> list[Any]:
        found = [decode(message.method, message.is_request, self.script.data(message)) for message in messages]
        if None in found:
            raise ValueError(f"{self.place}: is no message of {short(self.method)}")
        return found


def known_calls(parties: Mapping[str, Transcript]) -> list[KnownCall]:
    """Return every call once, in the order of the entries at which they began in their transcripts."""
    known: dict[CallKey, KnownCall] = {}
    for party in sorted(parties, key=lambda party: _ORDER.index(party) if party in _ORDER else len(_ORDER)):
        script = parties[party]
        # Cancelled calls too, except those without a message.
        for one in (KnownCall(script, call) for call in all_calls(script) if call.requests or call.answers):
            before = known.get(one.call.key)
            if before is None or (one.is_answered and not before.is_answered):
                known[one.call.key] = one
    return sorted(known.values(), key=lambda one: one.call.start)
