"""An array that a caller streams up: a message that announces it, then its bytes, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.rpc.arrays import ArrayError, ArrivingArray
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import array_pb2, error_pb2

_ANY_BYTES = 1 << 32


def header_of(requests: Iterator[Any]) -> Any:
    """Take the header that begins a stream.

    Raises
    ------
    Refusal
        ``REQUEST_MALFORMED`` if the stream begins otherwise, or there is nothing in it.
    """
    first = next(requests, None)
    if first is None or first.WhichOneof("part") != "header":
        raise Refusal(error_pb2.REASON_REQUEST_MALFORMED)
    return first.header


def array_after(
    header: array_pb2.ArrayHeader, requests: Iterator[Any], part: str, limit_bytes: int = _ANY_BYTES
) -> NDArray[np.generic]:
    """Take the array that the rest of a stream brings.

    Parameters
    ----------
    header : ArrayHeader
        What was announced.
    requests : iterator
        What is left of the stream.
    part : str
        What the part of each message is called that holds the next bytes.
    limit_bytes : int
        More than this is refused before memory is set aside.

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
