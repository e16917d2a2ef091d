"""Messages of one chunk: encoded by hand they are what protobuf encodes, and decoded by hand what protobuf decodes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError, Message
from hypothesis import example, given
from hypothesis import strategies as st

from fairwall.compliance.v1.audit_service_pb2 import AuditHeader, AuditRequest, GetTermsRequest
from fairwall.game.v1.inference_service_pb2 import TakeTrainingDealResponse
from fairwall.rpc.arrays import chunks_of
from fairwall.rpc.chunks import Chunk, decoder, encoded, read_varint, serialize, varint

KINDS = [AuditRequest, TakeTrainingDealResponse, GetTermsRequest]
KEY = AuditRequest(predictions_chunk=b"").SerializeToString()[:1]


def read(message: Any) -> tuple[str, bytes] | None:
    """What a service reads of a message: the part that is set, and its bytes."""
    part = message.WhichOneof("part")
    return (part, bytes(getattr(message, part))) if part and part.endswith("_chunk") else None


def by_protobuf(kind: type[Message], data: bytes) -> Any:
    try:
        return kind.FromString(data)
    except DecodeError:
        return None


def test_chunks_are_encoded_as_protobuf_does() -> None:
    for kind, part, size in (
        *((AuditRequest, "predictions_chunk", size) for size in (0, 127, 128, (1 << 20) + 1)),
        (TakeTrainingDealResponse, "audited_features_chunk", 1 << 20),
    ):
        array = np.random.default_rng(0).integers(0, 256, size).astype(np.uint8)
        expected = [kind(**{part: chunk}).SerializeToString() for chunk in chunks_of(array)]
        assert list(encoded(array, kind, part)) == expected


def test_a_serializer_takes_both_kinds_of_messages() -> None:
    message = AuditRequest(header=AuditHeader(request_id="r"))
    assert serialize(message) == serialize(message.SerializeToString()) == message.SerializeToString()


@pytest.mark.parametrize(
    ("kind", "most"), [*((kind, 2) for kind in KINDS), pytest.param(AuditRequest, 3, marks=pytest.mark.check)]
)
def test_all_short_messages_are_read_as_protobuf_reads_them(kind: type[Message], most: int) -> None:
    """Every message of up to so many bytes, of those that mean something or end a number too late."""
    decode = decoder(kind.DESCRIPTOR, lambda data: by_protobuf(kind, data))
    telling = sorted(
        {0, 1, 2, 3, 127, 128, 129, 130, 255, *(number << 3 | wire for number in range(9) for wire in range(8))}
    )
    for data in itertools.chain.from_iterable(
        map(bytes, itertools.product(telling, repeat=n)) for n in range(most + 1)
    ):
        agrees(kind, decode, data)


def test_a_length_in_more_bytes_than_it_takes_is_read_as_protobuf_reads_it() -> None:
    decode = decoder(AuditRequest.DESCRIPTOR, lambda data: by_protobuf(AuditRequest, data))
    for more in range(12):
        length = bytes([0x83, *[0x80] * (more - 1), 0]) if more else b"\x03"
        agrees(AuditRequest, decode, KEY + length + b"abc")


def test_a_number_ends_within_ten_bytes() -> None:
    assert read_varint(b"\x80" * 9 + b"\x01", 0) == (1 << 63, 10)
    with pytest.raises(IndexError):
        read_varint(b"\x80" * 10 + b"\x01", 0)


def agrees(kind: type[Message], decode: Any, data: bytes) -> None:
    got, expected = decode(data), by_protobuf(kind, data)
    if isinstance(got, Chunk):
        assert read(got) == read(expected), data
    else:
        assert got == expected, data


@given(st.binary(max_size=300), st.binary(max_size=6), st.sampled_from([0, 1, -1]), st.integers(0, 9))
@example(b"ab", b"", 0, 1)
@example(b"x" * 200, b"", 0, 4)
def test_chunks_are_read_as_protobuf_reads_them(data: bytes, after: bytes, wrong: int, zeros: int) -> None:
    """Lengths that are right or wrong, in more bytes than they take, with something after."""
    length = varint(max(len(data) + wrong, 0))
    longer = length if not zeros else bytes((*length[:-1], length[-1] | 128, *[128] * (zeros - 1), 0))
    decode = decoder(AuditRequest.DESCRIPTOR, lambda data: by_protobuf(AuditRequest, data))
    agrees(AuditRequest, decode, KEY + longer + data + after)


def test_the_bytes_of_a_chunk_stay_where_they_are() -> None:
    (message,) = encoded(np.arange(4096, dtype=np.float64), AuditRequest, "predictions_chunk")
    chunk = decoder(AuditRequest.DESCRIPTOR, AuditRequest.FromString)(message)
    assert isinstance(chunk, Chunk)
    assert chunk.predictions_chunk.obj is message
    with pytest.raises(AttributeError, match="header"):
        _ = chunk.header


@given(st.integers(0, 1 << 63))
def test_a_number_is_read_as_it_was_written(number: int) -> None:
    data = varint(number)
    assert read_varint(data + b"more", 0) == (number, len(data))
    for end in range(len(data)):
        with pytest.raises(IndexError):
            read_varint(data[:end], 0)


def test_a_number_that_does_not_end_is_given_up() -> None:
    with pytest.raises(IndexError):
        read_varint(b"\xff" * (4 << 20), 0)
