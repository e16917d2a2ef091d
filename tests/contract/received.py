"""What a party has received, and whether a column of 0 and 1 stands in it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray


def encodings(column: NDArray[Any]) -> dict[str, bytes]:
    """Every plain way to write a column of 0 and 1 down."""
    found: dict[str, bytes] = {}
    for order, sense in product((1, -1), (False, True)):
        values = (1 - column if sense else column)[::order]
        of = f"{' reversed' if order < 0 else ''}{' complement' if sense else ''}"
        for kind in ("u1", "<u2", ">u2", "<i4", ">i4", "<i8", ">i8", "<f4", ">f4", "<f8", ">f8"):
            found[kind + of] = values.astype(kind).tobytes()
            found[kind + of + " signs"] = (2.0 * values - 1).astype(kind.replace("u", "i")).tobytes()
        for bitorder in ("big", "little"):
            found[f"bits {bitorder}{of}"] = np.packbits(values, bitorder=bitorder).tobytes()  # type: ignore[call-overload]
        for separator in ("", ",", " ", ", ", "\n"):
            found[f"text {separator!r}{of}"] = separator.join(map(str, values)).encode()
        for kind in ("u1", "<i8", ">i8"):
            found[f"members {kind}{of}"] = np.flatnonzero(values).astype(kind).tobytes()
    return found


def contents(messages: Iterable[Message]) -> list[bytes]:
    """What was received: message by message, and the contents of each bytes or text field one after the other."""
    whole, parts = b"", dict[str, bytes]()

    def look(message: Message) -> None:
        for field, value in message.ListFields():
            if isinstance(value, Message):
                look(value)
            elif isinstance(value, bytes | str):
                parts[field.full_name] = parts.get(field.full_name, b"") + (
                    value if isinstance(value, bytes) else value.encode()
                )

    for message in messages:
        whole += message.SerializeToString()
        look(message)
    return [whole, *parts.values()]


def leaks(messages: Iterable[Message], column: NDArray[Any]) -> list[str]:
    """The ways in which a column stands in what was received."""
    received = contents(messages)
    return [name for name, written in encodings(column).items() if any(written in each for each in received)]
