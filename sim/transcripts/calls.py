"""The calls of a transcript, and the causal order of several parties' messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.wire.v1 import error_pb2
from fairwall.wire.v1.error_pb2 import REASON_UNSPECIFIED
from sim.transcripts.files import CallKey, Ending, Message, Transcript, decode
from sim.transcripts.methods import short

TRANSPORT = frozenset({1, 2, 4, 14})
"""gRPC statuses of calls that no party decided: cancelled, unknown, out of time, not connected."""

_HEALTH = "/grpc.health."


@dataclass
class TranscriptCall:
    """A call as one party recorded it, without an ending if the party ended before the call did."""

    key: CallKey
    method: str
    requests: list[Message] = field(default_factory=list)
    answers: list[Message] = field(default_factory=list)
    ending: Ending | None = None

    @property
    def start(self) -> int:
        """The call's first entry."""
        if self.requests:
            return self.requests[0].entry
        return self.end

    @property
    def end(self) -> int:
        """The call's last entry."""
        if self.ending is not None:
            return self.ending.entry
        return max(message.entry for message in (*self.requests, *self.answers))

    @property
    def answered(self) -> int:
        """The entry of the call's first answer, or else its last."""
        return self.answers[0].entry if self.answers else self.end

    def is_poll(self, script: Transcript) -> bool:
        """Return whether the call was only told to ask again."""
        return only_waited(decode(self.method, False, script.data(answer)) for answer in self.answers[:1])


def calls(script: Transcript) -> list[TranscriptCall]:
    """Return the decided calls of a transcript and polls, by first entry: no health checks, no cancelled calls."""
    return sorted((call for call in all_calls(script) if _was_decided(call)), key=lambda call: call.start)


def all_calls(script: Transcript) -> list[TranscriptCall]:
    """Return every call that a transcript has a message or an ending of."""
    found: dict[CallKey, TranscriptCall] = {}
    for message in script.messages:
        call = found.setdefault(message.call, TranscriptCall(message.call, message.method))
        (call.requests if message.is_request else call.answers).append(message)
    for key, ending in script.endings.items():
        found.setdefault(key, TranscriptCall(key, ending.method)).ending = ending
    return list(found.values())


def deal_of(script: Transcript, call: TranscriptCall) -> str:
    """Return the id of a call's deal, from its request or its answer; "" if neither names one."""
    for messages in (call.requests, call.answers):
        for message in messages[:1]:
            first = decode(call.method, message.is_request, script.data(message))
            for part in (first, getattr(first, "header", None), getattr(first, "deal", None)):
                if deal_id := getattr(part, "deal_id", ""):
                    return str(deal_id)
    return ""


def _was_decided(call: TranscriptCall) -> bool:
    if call.method.startswith(_HEALTH) or call.ending is None:
        return False
    return call.ending.status not in TRANSPORT or call.ending.reason != error_pb2.REASON_UNSPECIFIED


def only_waited(messages: Iterable[Any]) -> bool:
    """Return whether a call's answers only say to ask again: how often depends on the clock, not on the game."""
    for message in messages:
        if isinstance(message, game.ServeTrialResponse):
            return not message.ended
        return getattr(message, "turn", game.TURN_UNSPECIFIED) == game.TURN_WAIT
    return False


def in_order(scripts: Mapping[str, Transcript]) -> Iterator[tuple[str, int]]:
    """Yield party and entry of several parties' messages in one order: no message is received before it is sent."""
    waiting = {party: iter(script.messages) for party, script in scripts.items()}
    heads = {party: next(messages, None) for party, messages in waiting.items()}
    counts: dict[tuple[str, CallKey, bool], int] = {}
    sent: set[tuple[CallKey, bool, int]] = set()
    while any(heads.values()):
        moved = False
        for party in scripts:
            while (message := heads[party]) is not None:
                kind = (party, message.call, message.is_request)
                number = counts.get(kind, 0)
                sender = message.call.caller if message.is_request else message.call.server
                if message.is_received and sender in scripts and (message.call, message.is_request, number) not in sent:
                    break
                sent.add((message.call, message.is_request, number))
                counts[kind] = number + 1
                yield party, message.entry
                heads[party] = next(waiting[party], None)
                moved = True
        if not moved:  # the sender did not record it: its transcript was cut off
            party, message = next((party, message) for party, message in heads.items() if message is not None)
            yield party, message.entry
            heads[party] = next(waiting[party], None)


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
    """Return every call once, in the order of the entries at which they began in their transcripts.

    A side that saw the call answered has precedence; between two such, the party that the call concerns (compliance for
    audits) precedes the referee. Whether both sides agree is checked in `sim.verify.call_checks`.
    """
    known: dict[CallKey, KnownCall] = {}
    for party in sorted(parties, key=lambda party: _ORDER.index(party) if party in _ORDER else len(_ORDER)):
        script = parties[party]
        # Cancelled calls too, except those without a message.
        for one in (KnownCall(script, call) for call in all_calls(script) if call.requests or call.answers):
            before = known.get(one.call.key)
            if before is None or (one.is_answered and not before.is_answered):
                known[one.call.key] = one
    return sorted(known.values(), key=lambda one: one.call.start)
