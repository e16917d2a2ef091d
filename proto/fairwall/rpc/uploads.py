"""An array that a caller streams up: a message that announces it, then its bytes, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.rpc.arrays import ArrayError, ArrivingArray
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import array_pb2, error_pb2

_ANY_BYTES = 1 << 32


def header_of(requests: Iterator[Any]) -> Any:
    """Take the header that begins a stream; Refusal ``REQUEST_MALFORMED`` if it begins otherwise, or is empty."""
    first = next(requests, None)
    if first is None or first.WhichOneof("part") != "header":
        raise Refusal(error_pb2.REASON_REQUEST_MALFORMED)
    return first.header


def parts_after(sizes: Iterable[int], requests: Iterator[Any], part: str) -> list[bytes]:
    """Take byte strings of the sizes that a header announced, one after the other in what the rest of a stream brings.

    Raises
    ------
    Refusal
        ``REQUEST_MALFORMED`` if another part comes, or not as many bytes as were announced.
    """
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
    """Take the array that the header announced and the rest of a stream brings, each message some bytes in one part.

    More than the limit is refused before memory is set aside.

    Raises
    ------
    Refusal
        ``REQUEST_MALFORMED`` if another part comes, or not the bytes that were announced.
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
