"""Reads the transcripts of a run: `transcript/<party>/<number>.bin`. Equal numbers record the same calls.

The format is `proto/fairwall/transcript/v1/transcript.proto`; `fairwall.rpc.recorder` writes it.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from blake3 import blake3
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from fairwall.rpc import access  # noqa: F401 - only loaded parts of the protocol can be decoded
from fairwall.rpc.chunks import read_varint
from fairwall.rpc.recorder import DIGEST_TAG, FIRST, FORMATS_READ, STORED_BYTES_MAX, message_type
from fairwall.transcript.v1 import transcript_pb2 as pb
from fairwall.transcript.v1.transcript_pb2 import DIRECTION_RECEIVED, DIRECTION_SENT, SIDE_CALLER
from fairwall.wire.v1 import error_pb2

FOLDER = "transcript"
_TAIL = len(DIGEST_TAG) + 32


class Problem(NamedTuple):
    """A fault in a file: the entry, from 0, and a description."""

    entry: int
    text: str


class CallKey(NamedTuple):
    """The key of a call, the same on both sides."""

    caller: str
    server: str
    number: int

    def __str__(self) -> str:
        return f"call {self.number} of {self.caller or 'a stranger'} to {self.server}"


@dataclass(frozen=True)
class Message:
    """A message in an entry of a transcript; the transcript's party received or sent it.

    ``content`` lacks the bytes of large fields; ``large`` has the start of each in the whole message, its size, and its
    digest.
    """

    entry: int
    call: CallKey
    method: str
    is_request: bool
    is_received: bool
    content: bytes
    large: tuple[tuple[int, int, bytes], ...]

    def says_the_same_as(self, other: Message) -> bool:
        """Return whether both messages have the same bytes."""
        return (self.content, self.large) == (other.content, other.large)


@dataclass(frozen=True)
class Ending:
    """The end of a call as a party saw it: the gRPC status, 0 for answered, and a refusal's reason."""

    entry: int
    method: str
    status: int
    reason: int

    @property
    def refusal(self) -> str:
        """The name of a refusal's reason, or else its status; "" for an answered call."""
        reason = error_pb2.Reason.Name(self.reason) if self.reason else f"status {self.status}"
        return reason.removeprefix("REASON_") if self.status else ""

    @property
    def is_the_servers(self) -> bool:
        """Whether the server decided: by an answer or a reason. Else the connection was lost, or time ran out."""
        return self.status == 0 or self.reason != error_pb2.REASON_UNSPECIFIED


@dataclass
class Transcript:
    """A party's transcript, as far as it is readable; party and number are from its path.

    ``header`` is None if the first entry is none. ``digest`` is the last entry's, and covers all before it. ``closed``
    if the party wrote the entry that it writes on leaving. Messages are in recorded order. ``numerics`` names the
    kernels behind the party's numbers, by part; empty in format 2.
    """

    path: Path
    party: str
    number: str
    header: pb.Header | None = None
    entries: int = 0
    digest: bytes = FIRST
    closed: bool = False
    cut_off: int = 0
    messages: list[Message] = field(default_factory=list)
    endings: dict[CallKey, Ending] = field(default_factory=dict)
    numerics: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    _stored: dict[bytes, tuple[int, int]] = field(default_factory=dict, repr=False)

    @property
    def is_whole(self) -> bool:
        """Whether the file was read without faults up to the party's closing entry."""
        return self.closed and not self.problems

    @property
    def versions(self) -> dict[str, str]:
        """The party's software versions, by name; empty without a header."""
        return {one.name: one.version for one in self.header.versions} if self.header is not None else {}

    def place(self, entry: int | None = None) -> str:
        """Return the name of the file in the run's folder, and of an entry in it."""
        return f"{FOLDER}/{self.party}/{self.path.name}" + (f" entry {entry}" if entry is not None else "")

    def stores(self, digest: bytes) -> bool:
        """Return whether the bytes with a digest are stored."""
        return digest in self._stored

    def stores_all(self, messages: Iterable[Message]) -> bool:
        """Return whether all bytes of some messages are stored, none by their digest alone."""
        return all(self.stores(digest) for message in messages for _, _, digest in message.large)

    def stored(self, digest: bytes) -> bytes:
        """Return the bytes with a digest."""
        return _stored_at(self.path, *self._stored[digest], digest)

    def packed(self, digest: bytes) -> bytes | None:
        """Return the bytes with a digest as stored, compressed by zlib; None if they are stored uncompressed."""
        start, size = self._stored[digest]
        with self.path.open("rb") as file:
            file.seek(start)
            stored = _stored_in(file.read(size))
        return stored.data if stored.compressed else None

    def data(self, message: Message) -> bytes:
        """Return a whole message, with zeros for bytes that are not stored."""
        parts, content, end = [], memoryview(message.content), 0
        taken = 0
        for start, size, digest in message.large:
            before = start - end
            parts.append(content[taken : taken + before])
            parts.append(memoryview(self.stored(digest) if self.stores(digest) else bytes(size)))
            taken += before
            end = start + size
        return b"".join((*parts, content[taken:]))


def paths(folder: Path) -> list[Path]:
    """Return the paths of a run's transcripts, by number and then party."""
    found = (folder / FOLDER).glob("*/*.bin")
    return sorted(found, key=lambda path: (len(path.stem), path.stem, path.parent.name))


def by_number(scripts: Iterable[Transcript]) -> dict[str, dict[str, Transcript]]:
    """Return transcripts by number, then by party; equal numbers played together."""
    sessions: dict[str, dict[str, Transcript]] = {}
    for script in scripts:
        sessions.setdefault(script.number, {})[script.party] = script
    return sessions


def anchors(folder: Path) -> dict[str, dict[str, Any]]:
    """Return, unchecked, each transcript's entries, last digest and whether it is closed, by "<party>/<number>"."""
    found = {}
    for path in paths(folder):
        entries, digest, closed = 0, FIRST, False
        for entries, (_, body, digest) in enumerate(_frames(path), start=1):  # noqa: B007
            closed = len(body) < 16 and pb.Entry.FromString(body).WhichOneof("part") == "closed"
        found[f"{path.parent.name}/{path.stem}"] = {"entries": entries, "digest": digest.hex(), "closed": closed}
    return found


def decode(method: str, is_request: bool, data: bytes) -> Any:
    """Return a decoded message of a method; None for an unknown method or a malformed message."""
    descriptor = message_type(method, is_request)
    if descriptor is None:
        return None
    try:
        return GetMessageClass(descriptor).FromString(data)
    except DecodeError:
        return None


def read(path: Path) -> Transcript:
    """Return a transcript, after checking its chain of digests byte by byte."""
    script = Transcript(path, path.parent.name, path.stem)
    room: dict[tuple[CallKey, bool], int] = {}
    end = 0
    for prefix, body, digest in _frames(path):
        start, end = end, end + len(prefix) + len(body) + _TAIL
        if blake3(script.digest).update(prefix).update(body).digest() != digest:
            script.problems.append(Problem(script.entries, "does not follow on the entry before it, or was changed"))
        script.digest = digest
        try:
            entry = pb.Entry.FromString(body)
        except DecodeError:
            script.problems.append(Problem(script.entries, "cannot be read"))
        else:
            _take(script, entry, room, (start + len(prefix), len(body)))
        script.entries += 1
    size = path.stat().st_size
    script.cut_off = size - end
    if script.closed and script.cut_off:
        script.problems.append(Problem(script.entries, f"{script.cut_off} bytes follow the last entry"))
    if script.header is None:
        script.problems.append(Problem(0, "is no header"))
    return script


def _take(script: Transcript, entry: pb.Entry, room: dict[tuple[CallKey, bool], int], place: tuple[int, int]) -> None:

    def wrong(text: str) -> None:
        script.problems.append(Problem(script.entries, text))

    part = entry.WhichOneof("part")
    if script.closed:
        wrong("follows the last entry")
    if (part == "header") != (script.entries == 0):
        wrong("is a header in the middle" if part == "header" else "is no header")
    if part == "header":
        script.header = entry.header
        if entry.header.format not in FORMATS_READ:
            wrong(f"says format {entry.header.format}, not {' or '.join(map(str, FORMATS_READ))}")
        if entry.header.party != script.party:
            wrong(f"says that it is {entry.header.party}'s")
    elif part == "stored":
        digest = entry.stored.content_digest
        try:
            _unpack(entry.stored, digest)
        except ValueError as error:
            wrong(str(error))
        else:
            script._stored.setdefault(digest, place)
    elif part == "message":
        message = _message(script, entry.message)
        script.messages.append(message)
        way = (message.call, message.is_received)
        for _, size, digest in message.large:
            room[way] = room.get(way, STORED_BYTES_MAX) - size
            full = script.header is not None and script.header.record == "full"
            if full and room[way] >= 0 and not script.stores(digest):
                wrong("refers to bytes that are not stored before it")
    elif part == "ended":
        call = entry.ended.call
        ending = Ending(script.entries, call.method, entry.ended.status, entry.ended.reason)
        if script.endings.setdefault(_key(script, call), ending) is not ending:
            wrong("ends a call that has ended")
    elif part == "numerics":
        script.numerics |= {one.name: one.in_use for one in entry.numerics.parts}
    elif part == "closed":
        script.closed = True
    else:
        wrong("says nothing")


def _message(script: Transcript, message: pb.Message) -> Message:
    is_received = message.direction == DIRECTION_RECEIVED
    return Message(
        entry=script.entries,
        call=_key(script, message.call),
        method=message.call.method,
        is_request=(message.call.side == SIDE_CALLER) == (message.direction == DIRECTION_SENT),
        is_received=is_received,
        content=message.content,
        large=tuple((large.offset, large.size, large.content_digest) for large in message.large),
    )


def _key(script: Transcript, call: pb.Call) -> CallKey:
    if call.side == SIDE_CALLER:
        return CallKey(script.party, call.peer, call.number)
    return CallKey(call.peer, script.party, call.number)


def _frames(path: Path) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield each entry's length as written, its body without digest, and its digest, up to the last whole entry."""
    if not path.stat().st_size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        at = 0
        while at < len(mapped):
            try:
                size, start = read_varint(mapped, at)
            except IndexError:
                return
            end = start + size
            if size < _TAIL or end > len(mapped) or mapped[end - _TAIL : end - 32] != DIGEST_TAG:
                return
            yield mapped[at:start], mapped[start : end - _TAIL], mapped[end - 32 : end]
            at = end


@lru_cache(maxsize=64)
def _stored_at(path: Path, start: int, size: int, digest: bytes) -> bytes:
    """Return stored bytes, each large field of some MiB; a table that each trial deals again is inflated once.

    The digest, compared when the file was read, is part of the cache's key: a later change of the file has no effect.
    """
    with path.open("rb") as file:
        file.seek(start)
        return _unpack(_stored_in(file.read(size)), digest)


def _stored_in(body: bytes) -> pb.Stored:
    return pb.Entry.FromString(body).stored


def _unpack(stored: pb.Stored, digest: bytes) -> bytes:
    try:
        data = zlib.decompress(stored.data) if stored.compressed else stored.data
    except zlib.error:
        raise ValueError("stores bytes that cannot be read") from None
    if blake3(data).digest() != digest:
        raise ValueError("stores other bytes than its digest says")
    return data
