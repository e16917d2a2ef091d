"""The fields of a message as a page lists them: path, label, and value: a text, an array, bytes.

The messages of a stream are listed as one: an array is listed where it is announced, joined from its chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from blake3 import blake3
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message as Protobuf
from google.protobuf.unknown_fields import UnknownFieldSet
from numpy.typing import NDArray

from fairwall.rpc.arrays import ArrayError, gathered
from fairwall.rpc.recorder import LARGE_BYTES
from fairwall.wire.v1 import array_pb2
from fairwall.wire.v1.visibility_pb2 import VISIBILITY_UNSPECIFIED
from sim.transcripts.boundary import label_of
from sim.transcripts.captions import number
from sim.viewer.blocks import Place
from sim.viewer.visibility import Omitted

Listed = list[Any]
"""A field in the page's data: path, label, and value: a text, or a mapping with its properties."""

Put = Callable[[bytes, bytes], Place | None]
"""A function that keeps bytes under a digest, and returns their place; None without room."""

_LISTED_MAX = 400
_TEXT_MAX = 2000
_FEW = 12
_HEAD_BYTES = 32
_FIRST = 100
_BINS = 24
_STRIP = 256
_LARGEST = 1e290  # larger numbers, and values that are no numbers, would spoil sums


class Fields:
    """Lists the fields of half a call; ``by_digest`` has the size and digest of each field without stored bytes."""

    def __init__(self, put: Put, by_digest: Sequence[tuple[int, bytes]] = ()) -> None:
        self._put = put
        self._by_digest = list(by_digest)
        self._announced: dict[str, tuple[Listed, array_pb2.ArrayHeader, list[bytes]]] = {}

    def of(self, messages: Sequence[Any], omitted: Sequence[Omitted] = ()) -> list[Listed]:
        """Return the fields of messages as the page lists them."""
        listed: list[Listed] = []
        for message in messages:
            for one in self._walk(message, VISIBILITY_UNSPECIFIED, ""):
                if len(listed) < _LISTED_MAX:
                    listed.append(one)
                elif len(listed) == _LISTED_MAX:
                    listed.append(["and more fields", one[1], "not listed"])
        for listing, header, parts in self._announced.values():
            listing[2] = self._array(header, parts)
        names = dict.fromkeys(omitted)
        return [*listed, *([one.path, one.level, {"omitted": True}] for one in names)]

    def _walk(self, message: Any, inherited: int, within: str) -> Iterator[Listed]:
        unknown: Any = UnknownFieldSet(message)  # its stubs leave out that it is iterable
        for one in unknown:
            path = f"{within}field {one.field_number}"
            yield [path, VISIBILITY_UNSPECIFIED, "unknown to the protocol"]
        for field, value in message.ListFields():
            level, path = label_of(field, inherited), f"{within}{field.name}"
            if isinstance(value, array_pb2.ArrayHeader):
                listing: Listed = [path, level, ""]
                self._announced[field.name] = (listing, value, [])
                yield listing
            elif isinstance(value, bytes) and field.name.removesuffix("_chunk") in self._announced:
                self._announced[field.name.removesuffix("_chunk")][2].append(value)
            elif isinstance(value, array_pb2.Array):
                yield [path, level, self._array(value.header, [value.data])]
            elif isinstance(value, Protobuf):
                yield from self._walk(value, level, f"{path}.") if value.ListFields() else [[path, level, "empty"]]
            elif field.is_repeated:
                yield from self._repeated(field, value, level, path)
            else:
                yield [path, level, self._single(field, value)]

    def _repeated(self, field: Any, values: Any, level: int, path: str) -> Iterator[Listed]:
        if field.message_type is not None:
            for place, one in enumerate(values):
                if isinstance(one, array_pb2.Array):
                    yield [f"{path}[{place}]", level, self._array(one.header, [one.data])]
                else:
                    yield from self._walk(one, level, f"{path}[{place}].")
        elif len(values) > _FEW and field.cpp_type in _NUMBERS:
            data = np.asarray(values, "<f8").tobytes()
            header = array_pb2.ArrayHeader(element_type=array_pb2.ELEMENT_TYPE_FLOAT64, shape=[len(values)])
            yield [path, level, self._array(header, [data])]
        else:
            texts = [self._single(field, value) for value in values]
            yield [path, level, ", ".join(text if isinstance(text, str) else "bytes" for text in texts)]

    def _single(self, field: Any, value: Any) -> Any:
        if isinstance(value, bytes):
            unstored = self._unstored(len(value))
            if unstored is not None:
                return unstored
            digest = blake3(value).digest()
            return {"bytes": len(value), "digest": digest.hex(), "head": value[:_HEAD_BYTES].hex()}
        if field.enum_type is not None:
            name = field.enum_type.values_by_number.get(value)
            return str(name.name if name is not None else value)
        if isinstance(value, bool):
            return "yes" if value else "no"
        text = repr(value) if isinstance(value, float) else str(value)
        return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}… ({len(text):,} characters)"

    def _array(self, header: array_pb2.ArrayHeader, parts: Sequence[bytes]) -> Any:
        """Return an array's type, shape and the places of its bytes; a summary if the page has no room for them."""
        about: dict[str, Any] = {
            "array": _TYPES.get(header.element_type, ""),
            "shape": [int(length) for length in header.shape],
        }
        for part in parts:
            unstored = self._unstored(len(part))
            if unstored is not None:
                return {**about, **unstored, "bytes": sum(map(len, parts))}
        digests = [blake3(part).digest() for part in parts]
        about["bytes"] = sum(map(len, parts))
        if about["bytes"] >= LARGE_BYTES:  # smaller arrays have no digest in a transcript
            about["digest"] = (digests[0] if len(parts) == 1 else blake3(b"".join(parts)).digest()).hex()
        places = [self._put(own, part) for own, part in zip(digests, parts, strict=True)]
        if None not in places:
            return {**about, "places": places}
        try:
            return {**about, **_seen(gathered(header, parts).reshape(-1))}
        except ArrayError:
            return about

    def _unstored(self, size: int) -> dict[str, Any] | None:
        """Return the description of a field recorded by digest only, else None; fields must come in order."""
        if size >= LARGE_BYTES:
            for place, (length, digest) in enumerate(self._by_digest):
                if length == size:
                    del self._by_digest[place]
                    return {"bytes": size, "digest": digest.hex(), "by_digest": True}
        return None


_TYPES = {
    array_pb2.ELEMENT_TYPE_FLOAT64: "float64",
    array_pb2.ELEMENT_TYPE_FLOAT32: "float32",
    array_pb2.ELEMENT_TYPE_UINT8: "uint8",
    array_pb2.ELEMENT_TYPE_BIT: "bits",
}
_NUMBERS = {
    FieldDescriptor.CPPTYPE_DOUBLE,
    FieldDescriptor.CPPTYPE_FLOAT,
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
}


def _seen(values: NDArray[Any]) -> dict[str, Any]:
    """Return a summary of an array that the page does not hold: histogram, strip of means, first hundred values."""
    numbers = values[np.abs(values) < _LARGEST].astype(np.float64)
    seen: dict[str, Any] = {"first": [number(float(value)) for value in values[:_FIRST]]}
    if len(numbers):
        counts, edges = np.histogram(numbers, _BINS)
        parts = np.array_split(numbers, min(_STRIP, len(numbers)))
        seen["histogram"] = [float(edges[0]), float(edges[-1]), [int(count) for count in counts]]
        seen["strip"] = [float(part.mean()) for part in parts]
    return seen
