"""The one codec of arrays: raw little-endian bytes in C order, an element type, a shape; whole, or streamed in chunks.

The length is checked against the header before a byte is used; no received data are ever executed or unpickled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bools, Bytes
from fairwall.rpc.errors import Refusal
from fairwall.rpc.memory import LET_GO_BYTES, let_go, room
from fairwall.wire.v1 import array_pb2, error_pb2

CHUNK_BYTES = 1 << 20
"""Size of a chunk: large enough to amortise a message's cost, well below gRPC's limit of 4 MiB a message."""

_TYPES: dict[int, np.dtype[np.generic]] = {
    array_pb2.ELEMENT_TYPE_FLOAT64: np.dtype("<f8"),
    array_pb2.ELEMENT_TYPE_FLOAT32: np.dtype("<f4"),
    array_pb2.ELEMENT_TYPE_UINT8: np.dtype("u1"),
    array_pb2.ELEMENT_TYPE_BIT: np.dtype("?"),
}
_CODES = {dtype: code for code, dtype in _TYPES.items()}

_ANY_BYTES = 1 << 32


class ArrayError(ValueError):
    """An array on the wire that contradicts its header, or its receiver's limits."""


def header_of(array: NDArray[np.generic]) -> array_pb2.ArrayHeader:
    """Return the header of an array of float64, float32, uint8 or bool with at most 2 axes; ArrayError for others."""
    code = _CODES.get(array.dtype.newbyteorder("<"))
    if code is None or array.ndim > 2:
        raise ArrayError(f"no array of type {array.dtype} with {array.ndim} axes travels on this wire")
    return array_pb2.ArrayHeader(element_type=array_pb2.ElementType.Name(code), shape=array.shape)


def size_of(header: array_pb2.ArrayHeader) -> int:
    """Return the number of bytes after a header; 0 for an unknown element type."""
    dtype, shape = _TYPES.get(header.element_type), tuple(header.shape)
    if dtype is None:
        return 0
    return prod(_packed(shape)) if dtype == np.bool_ else prod(shape) * dtype.itemsize


def chunks_of(array: NDArray[np.generic]) -> Iterator[bytes]:
    """Yield an array's bytes in chunks of ``CHUNK_BYTES``, the last one shorter; an empty array has none."""
    return map(bytes, pieces_of(array))


def pieces_of(array: NDArray[np.generic]) -> Iterator[memoryview]:
    """Yield an array's bytes as `chunks_of` does, without copying an array in the wire's order."""
    whole = _wire_order(array).reshape(-1).view(np.uint8).data
    return (whole[start : start + CHUNK_BYTES] for start in range(0, len(whole), CHUNK_BYTES))


def to_message(array: NDArray[np.generic]) -> array_pb2.Array:
    """Return a whole array as one message."""
    return array_pb2.Array(header=header_of(array), data=_wire_order(array).tobytes())


def from_message(message: array_pb2.Array) -> NDArray[np.generic]:
    """Return the array in one message, read-only, in the machine's byte order; ArrayError as of `ArrivingArray`."""
    arriving = ArrivingArray(message.header, limit_bytes=8 * len(message.data))  # bits become bytes
    arriving.append(message.data)
    return arriving.finish()


class ArrivingArray:
    """An array whose chunks are still arriving; ArrayError if its header is not valid.

    More than ``limit_bytes``, with a byte for each bit, are refused before memory is allocated.
    """

    def __init__(self, header: array_pb2.ArrayHeader, limit_bytes: int = 1 << 32) -> None:
        dtype = _TYPES.get(header.element_type)
        if dtype is None:
            raise ArrayError("unknown element type")
        if len(header.shape) > 2:
            raise ArrayError("more than 2 axes")
        self._shape = tuple(int(length) for length in header.shape)
        size = size_of(header)
        if max(size, prod(self._shape)) > limit_bytes or any(length >> 32 for length in self._shape):
            raise ArrayError("larger than the receiver accepts")
        self._dtype = dtype
        self._buffer = room(size)
        self._filled = 0

    def append(self, chunk: bytes | memoryview) -> None:
        """Store the next chunk; ArrayError if it has more bytes than the header announced."""
        end = self._filled + len(chunk)
        if end > len(self._buffer):
            raise ArrayError("more bytes than the header says")
        self._buffer[self._filled : end] = np.frombuffer(chunk, np.uint8)
        if self._filled // LET_GO_BYTES != end // LET_GO_BYTES:
            let_go(self._buffer)
        self._filled = end

    def finish(self) -> NDArray[np.generic]:
        """Return the array, read-only; ArrayError if bytes are missing."""
        if self._filled != len(self._buffer):
            raise ArrayError("fewer bytes than the header says")
        if self._dtype == np.bool_:
            array: NDArray[np.generic] = _unpacked(self._buffer.reshape(_packed(self._shape)), self._shape)
        else:
            array = self._buffer.view(self._dtype)
        array = array.reshape(self._shape).astype(self._dtype.newbyteorder("="), copy=False)
        array.flags.writeable = False
        return array


def gathered(header: array_pb2.ArrayHeader, chunks: Iterable[bytes]) -> NDArray[np.generic]:
    """Return the array whose chunks, all of one kind, follow its header; ArrayError as of `ArrivingArray`."""
    arriving = ArrivingArray(header)
    for chunk in chunks:
        arriving.append(chunk)
    return arriving.finish()


def _packed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the bytes that hold bits of this shape."""
    return (*shape[:-1], -(-shape[-1] // 8)) if shape else (1,)


def _unpacked(packed: Bytes, shape: tuple[int, ...]) -> Bools:
    shape = shape or (1,)
    if packed.size and shape[-1] % 8 and (packed[..., -1] >> shape[-1] % 8).any():
        raise ArrayError("bits beyond the last column")
    bits = room(prod(shape)).reshape(shape)
    for row, of_row in zip(np.atleast_2d(bits), np.atleast_2d(packed), strict=True):
        row[:] = np.unpackbits(of_row, count=shape[-1], bitorder="little")
        let_go(bits)
    return bits.view(np.bool_)


def _wire_order(array: NDArray[np.generic]) -> NDArray[np.generic]:
    if array.dtype == np.bool_:
        return np.packbits(np.atleast_1d(array), axis=-1, bitorder="little")
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def first_header(requests: Iterator[Any]) -> Any:
    """Return the header at the start of a stream; Refusal ``REQUEST_MALFORMED`` if there is none."""
    first = next(requests, None)
    if first is None or first.WhichOneof("part") != "header":
        raise Refusal(error_pb2.REASON_REQUEST_MALFORMED)
    return first.header


def parts_after(sizes: Iterable[int], requests: Iterator[Any], part: str) -> list[bytes]:
    """Return byte strings of these sizes from the rest of a stream; Refusal ``REQUEST_MALFORMED`` if it has others."""
    starts, found = list(accumulate(sizes, initial=0)), bytearray()
    for request in requests:
        if request.WhichOneof("part") != part or len(found) > starts[-1]:
            raise Refusal(error_pb2.REASON_REQUEST_MALFORMED)
        found += getattr(request, part)
    if len(found) != starts[-1]:
        raise Refusal(error_pb2.REASON_REQUEST_MALFORMED)
    return [bytes(found[start:end]) for start, end in pairwise(starts)]


def array_after(
    header: array_pb2.ArrayHeader, requests: Iterator[Any], part: str, limit_bytes: int = _ANY_BYTES
) -> NDArray[np.generic]:
    """Return the announced array from the rest of a stream; Refusal ``REQUEST_MALFORMED`` if it has other bytes.

    More bytes than the limit are refused before memory is allocated.
    """
    try:
        arriving = ArrivingArray(header, limit_bytes)
        for request in requests:
            if request.WhichOneof("part") != part:
                raise Refusal(error_pb2.REASON_REQUEST_MALFORMED)
            arriving.append(getattr(request, part))
        return arriving.finish()
    except ArrayError:
        raise Refusal(error_pb2.REASON_REQUEST_MALFORMED) from None
