"""The calls that transcripts hold, each once, from the side that knows most of it.

A side that saw the call answered comes before one that did not; between two such, the party that the call concerns
(compliance for audits) comes before the referee. Whether both sides agree is checked in `sim.verify.counterparts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairwall.wire.v1.error_pb2 import REASON_UNSPECIFIED
from sim.transcripts.calls import Call, all_calls
from sim.transcripts.files import CallKey, Message, Transcript, decode
from sim.transcripts.methods import short

_ORDER = ("compliance", "developer", "adversary", "referee")


@dataclass(frozen=True)
class KnownCall:
    """A call, and the transcript that knows most of it."""

    script: Transcript
    call: Call

    @property
    def method(self) -> str:
        """Its method, "/package.Service/Method"."""
        return self.call.method

    @property
    def place(self) -> str:
        """Where its first message stands."""
        return self.script.place(self.call.start)

    @property
    def is_stored(self) -> bool:
        """Whether all its bytes are stored, none by their digest alone."""
        return self.script.stores_all((*self.call.requests, *self.call.answers))

    @property
    def requests(self) -> list[Any]:
        """What was asked, decoded; zeros for what is not stored."""
        return self._decoded(self.call.requests)

    @property
    def answers(self) -> list[Any]:
        """What was answered, likewise."""
        return self._decoded(self.call.answers)

    @property
    def request(self) -> Any:
        """The first message that was asked."""
        return self._decoded(self.call.requests[:1])[0]

    @property
    def answer(self) -> Any:
        """The first message that was answered."""
        return self._decoded(self.call.answers[:1])[0]

    @property
    def is_refused(self) -> bool:
        """Whether its server decided that there is no answer."""
        return self.call.ending is not None and self.call.ending.reason != REASON_UNSPECIFIED

    @property
    def is_answered(self) -> bool:
        """Whether it went well."""
        return self.call.ending is not None and self.call.ending.status == 0

    def _decoded(self, messages: Iterable[Message]) -> list[Any]:
        found = [decode(message.method, message.is_request, self.script.data(message)) for message in messages]
        if None in found:
            raise ValueError(f"{self.place}: is no message of {short(self.method)}")
        return found


def known_calls(parties: Mapping[str, Transcript]) -> list[KnownCall]:
    """Give every call once, in the order in which they began in the transcripts that know most of them."""
    known: dict[CallKey, KnownCall] = {}
    for party in sorted(parties, key=lambda party: _ORDER.index(party) if party in _ORDER else len(_ORDER)):
        script = parties[party]
        # Those that were cancelled too, but for those without a message.
        for one in (KnownCall(script, call) for call in all_calls(script) if call.requests or call.answers):
            before = known.get(one.call.key)
            if before is None or (one.is_answered and not before.is_answered):
                known[one.call.key] = one
    return sorted(known.values(), key=lambda one: one.call.start)
