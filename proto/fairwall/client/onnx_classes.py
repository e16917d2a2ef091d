"""Which classes a model in ONNX was fitted to, read without a library of ONNX."""

from __future__ import annotations

from collections.abc import Iterator

from fairwall.tables.values import favourable

_GRAPH, _NODE, _ATTRIBUTE, _NAME, _INTS, _STRINGS = 7, 1, 5, 1, 8, 9


def check_classes(model: bytes, positive: object = None) -> None:
    """Make sure that a model's second score, which counts, is of the favourable class; ValueError if nobody says so."""
    try:
        classes = _classes(memoryview(model))
    except (IndexError, UnicodeDecodeError):  # no ONNX, which the service says
        return
    if len(classes) == 2 and favourable(classes, positive) != 1:
        raise ValueError(
            f"a model's second score counts, which is of {classes[1]!r}: fit it to labels whose 1 is the favourable class"
        )


def _classes(model: memoryview) -> list[str | int]:
    """Return the labels of the model's last classifier; none where there is no classifier."""
    found: list[str | int] = []
    for attribute in _below(model, _GRAPH, _NODE, _ATTRIBUTE):
        fields = list(_fields(attribute))
        if any(
            number == _NAME and bytes(of).startswith(b"classlabels") for number, of in fields if not isinstance(of, int)
        ):
            found = [bytes(of).decode() for number, of in fields if number == _STRINGS and not isinstance(of, int)]
            for number, of in fields:
                if number == _INTS:
                    found += [of] if isinstance(of, int) else list(_varints(of))
    return found


def _below(message: memoryview, *path: int) -> Iterator[memoryview]:
    if not path:
        yield message
        return
    for number, of in _fields(message):
        if number == path[0] and not isinstance(of, int):
            yield from _below(of, *path[1:])


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Give each field of a message: its number, and a whole number or its bytes."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        if key & 7 == 0:
            value, place = _varint(message, place)
            yield key >> 3, value
            continue
        size = {1: 8, 5: 4}.get(key & 7)
        if size is None:
            size, place = _varint(message, place)
        yield key >> 3, message[place : place + size]
        place += size


def _varints(packed: memoryview) -> Iterator[int]:
    place = 0
    while place < len(packed):
        value, place = _varint(packed, place)
        yield value


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value, shift, place = value | (byte & 127) << shift, shift + 7, place + 1
        if byte < 128:
            return (value - 2**64 if value >> 63 else value), place
