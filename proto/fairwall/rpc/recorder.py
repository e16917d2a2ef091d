"""A party's transcript: every message that it sends and receives, in a chain of digests, written at once.

An entry (`fairwall/transcript/v1/transcript.proto`) is in the file before a sent message goes out, and before a
received one is used, so a killed party leaves a readable prefix. The bytes of a large field are stored once, for all
messages with it, or, to record faster, not at all; a message then has their digest. No message is decoded.
"""

from __future__ import annotations

import platform
import sys
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partialmethod
from pathlib import Path
from typing import IO, Any

import grpc
from blake3 import blake3
from google.protobuf import descriptor_pool

import fairwall
from fairwall.rpc import kernels
from fairwall.rpc.chunks import read_varint, varint
from fairwall.rpc.confine import Layer, as_values
from fairwall.rpc.errors import reason_of
from fairwall.transcript.v1 import transcript_pb2 as transcript
from fairwall.wire.v1 import error_pb2

FORMAT = 3
FORMATS_READ = (2, FORMAT)
"""Readable formats: the one before the current has no record of the kernels that computed a party's numbers."""

CALL_KEY = "fairwall-call"
"""Metadata key of the caller's call number, by which both sides' entries about a call can be matched."""

MODES = ("full", "digest", "none")
LARGE_BYTES = 4096
"""Size from which a field is recorded apart from its message."""

STORED_BYTES_MAX = 64 << 20
"""Most bytes of large fields stored in one direction of a call; later ones are recorded by their digest alone."""

FIRST = bytes(32)
"""Stands for the digest before the first entry."""

DIGEST_TAG = bytes(((15 << 3) | 2, 32))
"""The first bytes of the digest's field, at the end of each entry."""

_STORED_TAG, _DATA_TAG = bytes(((2 << 3) | 2,)), bytes(((3 << 3) | 2,))
_SAMPLE_BYTES = 4096
_BYTES, _MESSAGE = 12, 11  # a field's types, as descriptors number them
_CANCELLED, _OK = 1, 0


@dataclass(frozen=True)
class Recording:
    """The place and mode of parties' transcripts.

    Parameters
    ----------
    folder : has a folder for each party, with files of one ``name`` about the same calls.
    mode : "full" stores large fields, "digest" their digests alone, "none" records nothing.
    """

    folder: Path
    name: str
    mode: str
    scenario_digest: str

    def path(self, party: str) -> Path:
        """Return the path of a party's file."""
        return self.folder / party / f"{self.name}.bin"


class TranscriptRecorder:
    """A writer of one party's transcript, usable from any thread; OSError if the file exists, or cannot be made."""

    def __init__(
        self,
        path: Path,
        run: str,
        party: str,
        scenario_digest: str,
        mode: str = "full",
        layers: Iterable[Layer] = (),
    ) -> None:
        self.path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file: IO[bytes] = path.open("xb", buffering=0)
        self._digest = FIRST
        self._lock = threading.Lock()
        self._stores = mode == "full"
        self._stored: set[bytes] = set()
        self._calls: dict[str, int] = {}
        self._telling = threading.Lock()
        self._modules = 0
        self._numerics: dict[str, str] = {}
        self._add(
            transcript.Entry(
                header=transcript.Header(
                    format=FORMAT,
                    run=run,
                    party=party,
                    scenario_digest=scenario_digest,
                    record=mode,
                    versions=[transcript.Version(name=name, version=version) for name, version in versions()],
                    layers=[transcript.Layer(**layer) for layer in as_values(layers)],
                )
            )
        )
        self._tell_numerics()

    def calling(self, peer: str, method: str) -> RecordedCall:
        """Begin to record a call that this party makes."""
        with self._lock:
            number = self._calls[peer] = self._calls.get(peer, 0) + 1
        return RecordedCall(self, transcript.Call(peer=peer, side=transcript.SIDE_CALLER, number=number, method=method))

    def answering(self, peer: str, method: str, invocation: Iterable[Any]) -> RecordedCall:
        """Begin to record a call that this party answers; the caller's metadata have its number."""
        given = next((value for key, value in invocation if key == CALL_KEY), "")
        number = int(given) if len(given) <= 18 and given.isascii() and given.isdigit() else 0
        return RecordedCall(self, transcript.Call(peer=peer, side=transcript.SIDE_SERVER, number=number, method=method))

    def close(self) -> None:
        """Write the last entry; later messages are not recorded."""
        self._add(transcript.Entry(closed=transcript.Closed()))
        with self._lock:
            self._file.close()

    def message(self, call: transcript.Call, direction: transcript.Direction, data: bytes, room: int) -> int:
        """Record a message of a call, storing at most `room` bytes of large fields; return the size of these."""
        if direction == transcript.DIRECTION_SENT:
            self._tell_numerics()
        parts, large, end, size = [], [], 0, 0
        view = memoryview(data)
        for start, stop in large_fields(view, call.method, _is_request(call, direction)):
            field = view[start:stop]
            digest = blake3(field).digest()
            size += len(field)
            if self._stores and size <= room:
                self._store(digest, field)
            large.append(transcript.Large(offset=start, size=stop - start, content_digest=digest))
            parts.append(view[end:start])
            end = stop
        content = b"".join((*parts, view[end:])) if parts else data
        self._add(
            transcript.Entry(message=transcript.Message(call=call, direction=direction, content=content, large=large))
        )
        return size

    def ended(self, call: transcript.Call, status: int, reason: error_pb2.Reason) -> None:
        """Record the end of a call."""
        self._add(transcript.Entry(ended=transcript.Ended(call=call, status=status, reason=reason)))

    def _tell_numerics(self) -> None:
        """Record the kernels in use if they differ from the last record: a library may be loaded late."""
        if len(sys.modules) == self._modules:
            return
        with self._telling:
            self._modules, numerics = len(sys.modules), kernels.in_use()
            if numerics != self._numerics:
                parts = [transcript.Kernels(name=name, in_use=value) for name, value in sorted(numerics.items())]
                self._add(transcript.Entry(numerics=transcript.Numerics(parts=parts)))
                self._numerics = numerics

    def _store(self, digest: bytes, field: memoryview) -> None:
        if digest in self._stored:
            return
        # Random numbers do not compress, and trying takes long: a sample decides.
        sample = field[:_SAMPLE_BYTES]
        compressed = len(zlib.compress(sample, 1)) < 0.8 * len(sample)
        data = zlib.compress(field, 1) if compressed else field
        # Assembled by hand: the protocol's encoder would copy the data three times.
        stored = transcript.Stored(content_digest=digest, compressed=compressed).SerializeToString()
        stored += _DATA_TAG + varint(len(data))
        self._append(_STORED_TAG + varint(len(stored) + len(data)) + stored, data)
        # Only now: a concurrent call with the same bytes stores these too, before the message that refers to them.
        self._stored.add(digest)

    def _add(self, entry: transcript.Entry) -> None:
        self._append(entry.SerializeToString())

    def _append(self, body: bytes, more: bytes | memoryview = b"") -> None:
        """Append an entry, given by its encoding in one piece or two."""
        length = varint(len(body) + len(more) + len(DIGEST_TAG) + 32)
        with self._lock:
            if self._file.closed:
                return
            self._digest = blake3(self._digest).update(length).update(body).update(more).digest()
            pieces = (length + body, more, DIGEST_TAG + self._digest)
            for piece in pieces if more else (b"".join(pieces),):
                self._write(piece)

    def _write(self, data: bytes | memoryview) -> None:
        rest = memoryview(data)
        while rest:  # one write may be partial
            rest = rest[self._file.write(rest) :]


class RecordedCall:
    """A call being recorded; without a recorder bytes pass unchanged."""

    def __init__(self, recorder: TranscriptRecorder | None = None, call: transcript.Call | None = None) -> None:
        self._recorder = recorder
        self.call = call or transcript.Call()
        self._room = {transcript.DIRECTION_SENT: STORED_BYTES_MAX, transcript.DIRECTION_RECEIVED: STORED_BYTES_MAX}
        self._over = recorder is None

    def sent(self, data: bytes) -> bytes:
        """Record a message before it is sent; return it."""
        return self._message(transcript.DIRECTION_SENT, data)

    def received(self, data: bytes) -> bytes:
        """Record a received message; return it."""
        return self._message(transcript.DIRECTION_RECEIVED, data)

    def ended(self, status: int = _OK, reason: error_pb2.Reason = error_pb2.REASON_UNSPECIFIED) -> None:
        """Record the end of the call, the first time."""
        if not self._over and self._recorder is not None:
            self._over = True
            self._recorder.ended(self.call, status, reason)

    def failed(self, error: grpc.RpcError) -> None:
        """Record that the call failed, from the caller's side."""
        error.add_note(self.call.peer)  # grpc does not name the server
        code = error.code() if isinstance(error, grpc.Call) else grpc.StatusCode.UNKNOWN
        self.ended(code.value[0], reason_of(error))

    def _message(self, direction: transcript.Direction, data: bytes) -> bytes:
        if self._recorder is not None:
            self._room[direction] -= self._recorder.message(self.call, direction, data, self._room[direction])
        return data


class RecordedChannel(grpc.Channel):
    """A channel that records its calls, which only a stub's methods make: the same bytes are sent and recorded."""

    def __init__(self, channel: grpc.Channel, peer: str, recorder: TranscriptRecorder) -> None:
        self._channel = channel
        self._peer = peer
        self._recorder = recorder

    def subscribe(self, callback: Any, try_to_connect: bool = False) -> None:
        """Have a callback called with changes of the connection's state."""
        self._channel.subscribe(callback, try_to_connect)

    def unsubscribe(self, callback: Any) -> None:
        """Remove a callback."""
        self._channel.unsubscribe(callback)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def __enter__(self) -> RecordedChannel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _recorded(
        self,
        make: str,
        streams: bool,
        is_streamed: bool,
        method: str,
        request_serializer: Callable[[Any], bytes] | None = None,
        response_deserializer: Callable[[bytes], Any] | None = None,
        **options: Any,
    ) -> Callable[..., Any]:
        below = getattr(self._channel, make)(method, None, None, **options)
        serialize: Callable[[Any], bytes] = request_serializer or bytes
        deserialize: Callable[[bytes], Any] = response_deserializer or bytes

        def call(request: Any, timeout: float | None = None, metadata: Any = (), **more: Any) -> Any:
            recorded = self._recorder.calling(self._peer, method)
            own = ((CALL_KEY, str(recorded.call.number)),)
            sending = (
                (recorded.sent(serialize(message)) for message in request)
                if streams
                else recorded.sent(serialize(request))
            )
            try:
                answer = below(sending, timeout=timeout, metadata=(*(metadata or ()), *own), **more)
            except grpc.RpcError as error:
                recorded.failed(error)
                raise
            if is_streamed:
                return (deserialize(data) for data in _arriving(answer, recorded))
            recorded.received(answer)
            recorded.ended()
            return deserialize(answer)

        return call

    unary_unary = partialmethod(_recorded, "unary_unary", False, False)
    unary_stream = partialmethod(_recorded, "unary_stream", False, True)
    stream_unary = partialmethod(_recorded, "stream_unary", True, False)
    stream_stream = partialmethod(_recorded, "stream_stream", True, True)


def _arriving(answers: Any, recorded: RecordedCall) -> Iterator[bytes]:
    """Record a stream of answers as it is read; a reader who stops early cancels the call."""
    try:
        yield from map(recorded.received, answers)
        recorded.ended()
    except grpc.RpcError as error:
        recorded.failed(error)
        raise
    finally:
        recorded.ended(_CANCELLED)
        answers.cancel()


def large_fields(data: memoryview, method: str, is_request: bool) -> Iterator[tuple[int, int]]:
    """Yield the start and stop of a message's large byte fields, in rising order, without decoding it.

    ``method`` is "/package.Service/Method". Unknown methods and fields yield nothing.
    """
    if len(data) < LARGE_BYTES:
        return
    descriptor = message_type(method, is_request)
    if descriptor is not None:
        yield from _large_fields(data, 0, len(data), descriptor)


def message_type(method: str, is_request: bool) -> Any:
    """Return the descriptor of a method's request or answer; None for an unknown method."""
    try:
        found = descriptor_pool.Default().FindMethodByName(method.lstrip("/").replace("/", "."))
    except KeyError:
        return None
    return found.input_type if is_request else found.output_type


def _large_fields(data: memoryview, at: int, end: int, descriptor: Any) -> Iterator[tuple[int, int]]:
    try:
        while at < end:
            tag, at = read_varint(data, at)
            if tag & 7 == 2:
                size, at = read_varint(data, at)
                if size >= LARGE_BYTES and at + size <= end:
                    field = descriptor.fields_by_number.get(tag >> 3)
                    if field is not None and field.type == _BYTES:
                        yield at, at + size
                    elif field is not None and field.type == _MESSAGE:
                        yield from _large_fields(data, at, at + size, field.message_type)
                at += size
            elif tag & 7 == 0:
                _, at = read_varint(data, at)
            else:
                at += {1: 8, 5: 4}[tag & 7]
    except (IndexError, KeyError):
        return  # not the protocol's encoding: it is recorded unchanged


def _is_request(call: transcript.Call, direction: transcript.Direction) -> bool:
    return (call.side == transcript.SIDE_CALLER) == (direction == transcript.DIRECTION_SENT)


def versions() -> Iterator[tuple[str, str]]:
    """Yield the names and versions of the packages that numbers may depend on."""
    yield "fairwall", fairwall.__version__
    yield "python", platform.python_version()
    yield from sorted(kernels.installed().items())
