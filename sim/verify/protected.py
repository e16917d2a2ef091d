"""The search for protected columns in what the developer and the adversary received."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from blake3 import blake3
from google.protobuf.message import Message as Protobuf
from numpy.typing import NDArray

from fairwall.arrays import Bytes
from fairwall.rpc.arrays import ArrayError
from fairwall.rpc.turns import announced, collect
from fairwall.wire.v1 import array_pb2
from sim.transcripts.calls import TranscriptCall, all_calls, deal_of
from sim.transcripts.files import Message, Transcript, decode
from sim.transcripts.methods import DEALS, short
from sim.verify.byte_search import NARROW, ByteSearch, ColumnMatch, SoughtColumn
from sim.verify.finding import VerifyFinding

_PROTECTED = ("protected", "groups")
"""Names of a deal's arrays that hold protected columns."""


@dataclass(frozen=True)
class _Dealt:
    """A dealt column: its names by deal id, and its permitted holders by deal id and the method that dealt it."""

    column: SoughtColumn
    names: dict[str, str] = field(default_factory=dict)
    holders: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def is_held(self, party: str, deal_id: str) -> bool:
        """Return whether a party holds the column by the rules of a deal."""
        return any(deal == deal_id and party in holders for (deal, _), holders in self.holders.items())

    def is_always_held(self, party: str) -> bool:
        """Return whether a party holds the column by the rules of every deal that has it."""
        return all(self.is_held(party, deal_id) for deal_id in self.names)


class ProtectedColumns:
    """The protected columns of a run, and the search for them in what the developer and the adversary received.

    A column that a party holds by the rules of a deal is exempt in the calls about that deal, and nowhere else.
    ``notes`` has exemptions, and what was not searched; ``searched_bytes`` and ``columns`` the extent of the search.
    """

    def __init__(self, scripts: Iterable[Transcript]) -> None:
        self._scripts = list(scripts)
        self.notes: list[str] = []
        self.searched_bytes = 0
        self._unsearched = 0
        self._dealt: dict[bytes, _Dealt] = {}
        declared: dict[str, int] = {}
        # The dealer's own record of a deal comes first.
        for script in sorted(self._scripts, key=lambda script: script.party != "referee"):
            for call in all_calls(script):
                answers = [message for message in call.answers if message.is_received == (script.party != "referee")]
                if call.method in DEALS and answers:
                    self._gather(script, call, answers, declared)
        self.columns = len(self._dealt)
        self._search = ByteSearch(dealt.column for dealt in self._dealt.values())
        self._found: dict[bytes, list[ColumnMatch]] = {}
        for who, deals in sorted(declared.items()):
            self.notes.append(f"exempt: groups that {who} holds in deals that declare it: {deals}")
        self.notes.append("exempt: what a party sent is its own, guesses included, and is not searched")

    def findings(self) -> Iterator[VerifyFinding]:
        """Search all that the developer and the adversary received."""
        for party in ("developer", "adversary"):
            small = sum(not self._of(column).is_always_held(party) for column in self._search.too_small)
            if small:
                self.notes.append(f"not sought in what {party} received: {small} columns of too few people")
            reported: set[bytes] = set()
            for script in self._scripts:
                for call in all_calls(script) if script.party == party else ():
                    received = [message for message in (*call.requests, *call.answers) if message.is_received]
                    if received:
                        yield from self._in_call(script, call, received, reported)
        if self._unsearched:
            self.notes.append(f"not searched: {self._unsearched:,} bytes that were recorded by their digest alone")

    def _in_call(
        self, script: Transcript, call: TranscriptCall, received: list[Message], reported: set[bytes]
    ) -> Iterator[VerifyFinding]:
        place = f"{script.place(received[0].entry)} ({call.key}, {short(call.method)})"
        deal_id = deal_of(script, call)
        own: list[Bytes] | None = None
        for name, data, strides in self._searchable(script, received):
            digest = blake3(data + repr(strides).encode()).digest()
            if digest not in self._found:
                self.searched_bytes += len(data)
                self._found[digest] = self._search(data, strides) if strides else self._search(data)
            if digest in reported:
                continue
            for found in self._found[digest]:
                if own is None:
                    own = [
                        dealt.column.values for dealt in self._dealt.values() if dealt.is_held(script.party, deal_id)
                    ]
                # Trials may share people: a party that holds a longer column knows any part of it.
                if any(_is_part_of(found.column.values, values) for values in own):
                    continue
                reported.add(digest)
                names = self._of(found.column).names
                column = names.get(deal_id, found.column.name)
                text = f"{name} holds {column} from byte {found.at} on: {found.how}"
                yield VerifyFinding("protected", place, f"{script.party} received what it must not: {text}")

    def _searchable(self, script: Transcript, messages: list[Message]) -> Iterator[tuple[str, bytes, tuple[int, ...]]]:
        """Yield a call's content: the messages without large fields, and each byte field joined from its chunks."""
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

    def _gather(
        self, script: Transcript, call: TranscriptCall, answers: list[Message], declared: dict[str, int]
    ) -> None:
        """Register the protected columns of a deal."""
        parts = iter([decode(call.method, False, script.data(message)) for message in answers])
        first = next(parts, None)
        if first is None or first.WhichOneof("part") != "deal":
            return
        deal, fields = first.deal, first.deal.DESCRIPTOR.fields_by_name
        arrays = [name for name, _ in announced(deal) if name in _PROTECTED]
        if not arrays:
            return
        stored = all(script.stores(digest) for message in answers for _, _, digest in message.large)
        try:
            values = collect(deal, (part for part in parts if part is not None)) if stored else {}
        except ArrayError:
            values = {}
        taker = call.key.caller
        holders = {"compliance", "referee"}
        if "holds_protected" not in fields or deal.holds_protected:
            holders.add(taker)
        if taker in holders - {"compliance"} and script.party == "referee":
            declared[taker] = declared.get(taker, 0) + 1
        for array in arrays:
            if array not in values:
                text = f"the {array} of {deal.deal_id}, which are recorded by their digest alone, or cut off"
                self.notes.append(f"not sought: {text}")
                continue
            for number, row in _columns(values[array]):
                column = SoughtColumn(f"{array} {number} of {deal.deal_id}", row)
                dealt = self._dealt.setdefault(column.values.tobytes(), _Dealt(column))
                dealt.names.setdefault(deal.deal_id, column.name)
                # Two transcripts may describe a deal: a party may hold what both permit.
                dealt.holders.setdefault((deal.deal_id, call.method), set(holders)).intersection_update(holders)

    def _of(self, column: SoughtColumn) -> _Dealt:
        return self._dealt[column.values.tobytes()]


def _columns(array: NDArray[Any]) -> Iterator[tuple[int, Bytes]]:
    """Yield the columns of an array by number, as 0 and 1; for more than two values, one indicator per value."""
    for number, row in enumerate(np.atleast_2d(array)):
        values = np.unique(row)
        for value in values if len(values) > 2 else (None,):
            yield number, (row != 0 if value is None else row == value).astype(np.uint8)


def _is_part_of(column: Bytes, longer: Bytes) -> bool:
    """Return whether a column is part of another one, in either order of people and either coding."""
    whole = longer.tobytes()
    return any(values.tobytes() in whole for order in (column, column[::-1]) for values in (order, 1 - order))


def _byte_fields(
    message: Protobuf, shapes: dict[str, array_pb2.ArrayHeader], name: str = ""
) -> Iterator[tuple[str, bytes]]:
    """Yield a message's byte and text fields by name, and keep the headers of arrays by the name of their bytes."""
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
    """Return the distance between two people's rows, in bytes."""
    if header is None or len(header.shape) != 2:
        return 0
    width = {array_pb2.ELEMENT_TYPE_FLOAT64: 8, array_pb2.ELEMENT_TYPE_FLOAT32: 4}.get(header.element_type, 1)
    return int(header.shape[1]) * width
