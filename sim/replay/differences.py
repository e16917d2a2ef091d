"""Finds the first difference between two recordings of one game: party, entry, field and values.

Left out on both sides is what depends on the clock alone: polls, health checks, cancelled calls, and the addresses of
the parties. All else is compared call by call, in the order in which the caller made its calls of one method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.message import Message as Protobuf
from numpy.typing import NDArray

from fairwall.arrays import Bools
from fairwall.rpc.arrays import ArrayError, from_message
from fairwall.wire.v1 import array_pb2
from sim.transcripts.calls import TranscriptCall, calls, in_order
from sim.transcripts.files import Message, Transcript, decode
from sim.transcripts.findings import TOLERANCE
from sim.transcripts.methods import short

_UNEQUAL = ("JoinResponse.counterpart_address", "JoinResponse.scenario_digest")
"""Fields that are not compared. The system chooses the parties' addresses. The deals hold all of the scenario that
matters; its digest also covers keys that later versions add."""

_TEXT_MAX = 48


@dataclass(frozen=True)
class Difference:
    """A difference from the recording: the party whose transcript shows it, its place, and the two values.

    ``entry`` is the recorded transcript's, from 0, or None if no message differs; ``field`` names the message and the
    field in it, with the index in an array. If not ``is_sent``, the party received the message, in a call to
    ``server``.
    """

    party: str
    entry: int | None
    field: str
    recorded: str
    now: str
    is_sent: bool
    server: str = ""

    def __str__(self) -> str:
        place = self.party if self.entry is None else f"{self.party}, entry {self.entry}"
        return f"{place}: {self.field}: recorded {self.recorded}, now {self.now}"


def first_difference(
    recorded: Mapping[str, Transcript], now: Mapping[str, Transcript], *, bit_for_bit: bool
) -> Difference | None:
    """Return the first difference of all parties, or None.

    A difference in what one party sends leads to differences in what others receive and answer. The one returned is the
    first, in causal order, that a party sent. If not bit for bit, floats are compared up to ``TOLERANCE``.
    """
    firsts: list[Difference] = []
    # A game that broke off lacks nothing that would have come later.
    whole = all(script.closed for script in recorded.values())
    for party, script in recorded.items():
        if party in now:
            own = differences(script, now[party], bit_for_bit=bit_for_bit, whole=whole)
            firsts += sorted(own, key=lambda one: one.entry or 0)[:1]
    if len(firsts) < 2:
        return firsts[0] if firsts else None
    order = list(in_order(recorded))

    def place(one: Difference) -> int:
        # The end of a call is no message: its place is after the last message before it.
        before = (k for k, (party, entry) in enumerate(order) if party == one.party and entry <= (one.entry or 0))
        return max(before, default=-1)

    return min(firsts, key=lambda one: (not one.is_sent, place(one)))


def differences(
    recorded: Transcript, now: Transcript, *, bit_for_bit: bool, whole: bool = True
) -> Iterator[Difference]:
    """Compare two transcripts of one party; yield the first difference of each kind of call.

    ``whole`` says that the recording had ended: nothing is missing from it.
    """
    before, after = _grouped(recorded), _grouped(now)
    pairs = [pair for kind in before for pair in zip(before[kind], after.get(kind, []), strict=False)]
    for kind in dict.fromkeys((*before, *after)):
        old, new = before.get(kind, []), after.get(kind, [])
        for one, other in zip(old, new, strict=False):
            found = _CallComparison(recorded, now, bit_for_bit).first(one, other)
            if found is not None:
                yield found
                break
        else:
            yield from _missing(recorded, old, new, pairs, whole)


def _grouped(script: Transcript) -> dict[tuple[str, str, str], list[TranscriptCall]]:
    kinds: dict[tuple[str, str, str], list[TranscriptCall]] = {}
    for call in calls(script):
        if not call.is_poll(script):
            kinds.setdefault((call.key.caller, call.key.server, call.method), []).append(call)
    # A caller's parallel calls have no fixed order across peers; each peer's calls are numbered in order.
    return {kind: sorted(found, key=lambda call: call.key.number) for kind, found in kinds.items()}


def _missing(
    recorded: Transcript,
    old: list[TranscriptCall],
    new: list[TranscriptCall],
    pairs: list[tuple[TranscriptCall, TranscriptCall]],
    whole: bool,
) -> Iterator[Difference]:
    if len(old) > len(new):
        call, entry, said = old[len(new)], old[len(new)].start, ("called", "not called")
    elif len(new) > len(old) and whole:
        call, said = new[len(old)], ("not called here", "called")
        # Its place is after all that precedes it now.
        entry = max((one.end for one, other in pairs if other.start < call.start), default=0)
    else:
        return
    party, server = recorded.party, call.key.server
    yield Difference(party, entry, short(call.method), *said, call.key.caller == party, server)


class _CallComparison:
    """One call in two recordings: compares its messages in order, with the arrays announced so far."""

    def __init__(self, recorded: Transcript, now: Transcript, bit_for_bit: bool) -> None:
        self._recorded = recorded
        self._now = now
        self._bit_for_bit = bit_for_bit
        self._server = ""
        self._headers: dict[str, array_pb2.ArrayHeader] = {}
        self._taken: dict[str, int] = {}

    def first(self, old: TranscriptCall, new: TranscriptCall) -> Difference | None:
        """Return the first difference of a call, or None."""
        self._server = old.key.server
        return (
            self._half(old, old.requests, new.requests, "requests", old.key.caller)
            or self._end(old, new)
            or self._half(old, old.answers, new.answers, "answers", old.key.server)
        )

    def _half(
        self, call: TranscriptCall, old: list[Message], new: list[Message], name: str, sender: str
    ) -> Difference | None:
        for one, other in zip(old, new, strict=False):
            found = self._message(one, other)
            if found is not None:
                return found
        if len(old) == len(new):
            return None
        entry = old[len(new)].entry if len(new) < len(old) else call.end
        what = f"{short(call.method)}, its {name}"
        return self._found(entry, what, str(len(old)), str(len(new)), sender == self._recorded.party)

    def _end(self, old: TranscriptCall, new: TranscriptCall) -> Difference | None:
        assert old.ending is not None, "calls without an end are left out"
        assert new.ending is not None, "calls without an end are left out"
        before, after = old.ending.refusal or "answered", new.ending.refusal or "answered"
        if before == after:
            return None
        is_sent = old.key.server == self._recorded.party
        return self._found(old.ending.entry, f"{short(old.method)}, its end", before, after, is_sent)

    def _message(self, old: Message, new: Message) -> Difference | None:
        same = old.says_the_same_as(new)
        # Decoded even if both are equal: the message may announce an array whose chunks follow.
        one = decode(old.method, old.is_request, self._recorded.data(old))
        if one is None or same:
            self._announce(one)
            return None if same else self._found(old.entry, short(old.method), "bytes", "others", not old.is_received)
        other = decode(new.method, new.is_request, self._now.data(new))
        name = one.DESCRIPTOR.name
        unstored = [digest for _, _, digest in old.large if not self._recorded.stores(digest)]
        found = next(self._fields(one, other, name), None) if other is not None else None
        self._announce(one)
        if found is None:
            if old.large != new.large and (unstored or self._bit_for_bit):
                found = (f"{name}, bytes that are recorded by their digest", _digests(old), _digests(new))
            elif self._bit_for_bit and compared(one) != compared(other):
                found = (name, "encoded so", "otherwise")
        return self._found(old.entry, *found, not old.is_received) if found is not None else None

    def _fields(self, old: Any, new: Any, path: str) -> Iterator[tuple[str, str, str]]:
        """Yield the fields that differ between two messages of one type."""
        for descriptor in old.DESCRIPTOR.fields:
            name = f"{path}.{descriptor.name}"
            if name in _UNEQUAL:
                continue
            if descriptor.is_repeated:
                yield from self._repeated(getattr(old, descriptor.name), getattr(new, descriptor.name), name)
                continue
            there = (old.HasField(descriptor.name), new.HasField(descriptor.name)) if descriptor.has_presence else ()
            one, other = getattr(old, descriptor.name), getattr(new, descriptor.name)
            if there and there[0] != there[1]:
                yield name, _text(one) if there[0] else "nothing", _text(other) if there[1] else "nothing"
            elif not there or there[0]:
                yield from self._values(one, other, name)

    def _repeated(self, old: Any, new: Any, name: str) -> Iterator[tuple[str, str, str]]:
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from self._values(one, other, f"{name}[{number}]")
        if len(old) != len(new):
            yield name, f"{len(old)} values", f"{len(new)}"

    def _values(self, old: Any, new: Any, name: str) -> Iterator[tuple[str, str, str]]:
        if isinstance(old, array_pb2.Array):
            yield from self._arrays(old, new, name)
        elif isinstance(old, Protobuf):
            yield from self._fields(old, new, name)
        elif isinstance(old, bytes) and name.endswith("_chunk"):
            yield from self._chunk(old, new, name)
        elif isinstance(old, float):
            if not self._same(np.array([old]), np.array([new]))[0]:
                yield name, repr(old), repr(new)
        elif old != new:
            yield name, _text(old), _text(new)

    def _arrays(self, old: array_pb2.Array, new: array_pb2.Array, name: str) -> Iterator[tuple[str, str, str]]:
        try:
            one, other = from_message(old), from_message(new)
        except ArrayError:
            if old != new:
                yield name, "bytes", "others"
            return
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            yield name, f"{one.dtype} of shape {one.shape}", f"{other.dtype} of shape {other.shape}"
        else:
            yield from self._elements(one.reshape(-1), other.reshape(-1), name, one.shape, 0)

    def _chunk(self, old: bytes, new: bytes, name: str) -> Iterator[tuple[str, str, str]]:
        """Compare chunks of an array that an earlier message announced."""
        field_name = name.rpartition(".")[2].removesuffix("_chunk")
        header = self._headers.get(field_name)
        if header is None or len(old) != len(new) or header.element_type == array_pb2.ELEMENT_TYPE_BIT:
            if len(old) != len(new):
                yield name, f"{len(old)} bytes", f"{len(new)}"
            elif old != new:
                yield name, _text(old), _text(new)
            return
        # An empty array has the announced type.
        kind = from_message(array_pb2.Array(header=array_pb2.ArrayHeader(element_type=header.element_type, shape=[0])))
        width = kind.dtype.itemsize
        if len(old) % width:
            yield name, "a cut element", "or another"
            return
        first = self._taken.get(field_name, 0) // width
        one, other = (np.frombuffer(part, kind.dtype) for part in (old, new))
        yield from self._elements(one, other, name.removesuffix("_chunk"), tuple(map(int, header.shape)), first)

    def _elements(
        self, old: NDArray[Any], new: NDArray[Any], name: str, shape: tuple[int, ...], first: int
    ) -> Iterator[tuple[str, str, str]]:
        for at in np.flatnonzero(~self._same(old, new))[:1]:
            index = ", ".join(str(axis) for axis in np.unravel_index(first + at, shape))
            yield f"{name}[{index}]", repr(old[at].item()), repr(new[at].item())

    def _same(self, old: NDArray[Any], new: NDArray[Any]) -> Bools:
        """Return which numbers are equal: NaN equals NaN, and bit for bit 0 differs from -0."""
        if self._bit_for_bit or old.dtype.kind != "f":
            bits = f"u{old.dtype.itemsize}"
            return np.asarray(old.view(bits) == new.view(bits))
        with np.errstate(invalid="ignore"):
            near = np.abs(old - new) <= TOLERANCE * np.maximum(1, np.maximum(np.abs(old), np.abs(new)))
        return np.asarray(near | (old == new) | (np.isnan(old) & np.isnan(new)))

    def _announce(self, message: Any) -> None:
        """Record the arrays that a message announces, and the bytes of arrays that it brings."""
        if message is None:
            return
        for descriptor, value in message.ListFields():
            if isinstance(value, array_pb2.ArrayHeader):
                self._headers[descriptor.name] = value
            elif isinstance(value, bytes) and descriptor.name.endswith("_chunk"):
                name = descriptor.name.removesuffix("_chunk")
                self._taken[name] = self._taken.get(name, 0) + len(value)
            elif isinstance(value, Protobuf):
                self._announce(value)

    def _found(self, entry: int, what: str, recorded: str, now: str, is_sent: bool) -> Difference:
        return Difference(self._recorded.party, entry, what, recorded, now, is_sent, self._server)


def _digests(message: Message) -> str:
    return ", ".join(digest.hex()[:8] for _, _, digest in message.large)


def _text(value: Any) -> str:
    if isinstance(value, Protobuf):
        return value.DESCRIPTOR.name
    text = value.hex() if isinstance(value, bytes) else repr(value)
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"


def compared(message: Any) -> Any:
    """Return a message without the fields that are never compared: a copy, if it has any."""
    left_out = [name.partition(".")[2] for name in _UNEQUAL if name.startswith(f"{message.DESCRIPTOR.name}.")]
    if not left_out:
        return message
    copy = type(message).FromString(message.SerializeToString())
    for name in left_out:
        copy.ClearField(name)
    return copy
