"""The search for protected columns in what the developer and the adversary received."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from blake3 import blake3
from google.protobuf.message import Message as Protobuf
from numpy.typing import NDArray

from fairwall.rpc.arrays import ArrayError
from fairwall.rpc.turns import collect
from fairwall.wire.v1 import array_pb2
from sim.transcripts.files import CallKey, Message, Transcript, decode
from sim.transcripts.methods import DEALS, short
from sim.verify.byte_search import NARROW, Column, Search
from sim.verify.finding import Finding

_PROTECTED = ("protected", "groups")
"""What arrays of a deal are called that hold protected columns."""


class Leaks:
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
        place = f"{script.place(messages[0].entry)} ({call}, {short(messages[0].method)})"
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
        if messages[0].method not in DEALS:
            return
        parts = iter([decode(message.method, message.is_request, script.data(message)) for message in messages])
        first = next(parts, None)
        if first is None or first.WhichOneof("part") != "deal":
            return
        deal, fields = first.deal, first.deal.DESCRIPTOR.fields_by_name
        names = [name for name in _PROTECTED if name in fields and deal.HasField(name)]
        if not names:
            return
        stored = all(script.stores(digest) for message in messages for _, _, digest in message.large)
        try:
            arrays = collect(deal, (part for part in parts if part is not None)) if stored else {}
        except ArrayError:
            arrays = {}
        holders = {"compliance", "referee"}
        taker = messages[0].call.caller
        if "holds_protected" not in fields or deal.holds_protected:
            holders.add(taker)
        if taker in holders - {"compliance"} and script.party == "referee":
            declared[taker] = declared.get(taker, 0) + 1
        for name in names:
            if name not in arrays:
                text = f"the {name} of {deal.deal_id}, which are recorded by their digest alone, or cut off"
                self.notes.append(f"not sought: {text}")
                continue
            for number, values in enumerate(np.atleast_2d(arrays[name])):
                self._add(f"{name} {number} of {deal.deal_id}", values, holders)

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
