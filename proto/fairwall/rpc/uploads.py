"""An array that a caller streams: a message that announces it, then its bytes, chunk by chunk."""

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
