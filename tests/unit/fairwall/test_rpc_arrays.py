"""The codec of arrays: what goes in comes out, and what is not what its header says is refused."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from fairwall.rpc.arrays import (
    CHUNK_BYTES,
    ArrayError,
    ArrivingArray,
    chunks_of,
    from_message,
    gathered,
    header_of,
    to_message,
)
from fairwall.wire.v1.array_pb2 import (
    ELEMENT_TYPE_BIT,
    ELEMENT_TYPE_FLOAT32,
    ELEMENT_TYPE_FLOAT64,
    ELEMENT_TYPE_UINT8,
    Array,
    ArrayHeader,
)

TYPES = ["<f8", ">f8", "<f4", ">f4", "u1", "?"]


@st.composite
def arrays(draw: st.DrawFn) -> NDArray[Any]:
    """Arrays of every type and byte order, contiguous in C order, in Fortran's, or not at all."""
    array = draw(npst.arrays(draw(st.sampled_from(TYPES)), npst.array_shapes(min_dims=0, max_dims=2, min_side=0)))
    match draw(st.sampled_from(["C", "F", "T", "reversed", "strided"])):
        case "F":
            return np.asfortranarray(array) if array.ndim else array
        case "T":
            return array.T
        case "reversed":
            return array[::-1] if array.ndim else array
        case "strided":
            return array[..., ::2] if array.ndim else array
    return array


def arrive(header: ArrayHeader, chunks: Sequence[bytes]) -> NDArray[Any]:
    arriving = ArrivingArray(header)
    for chunk in chunks:
        arriving.append(chunk)
    return arriving.finish()


def same(received: NDArray[Any], sent: NDArray[Any]) -> bool:
    """Equal in type, shape and every bit, NaN's included, whatever the byte order."""
    native = sent.astype(sent.dtype.newbyteorder("="))
    return (
        received.dtype == native.dtype
        and received.dtype.isnative
        and received.shape == sent.shape
        and received.tobytes() == native.tobytes()
    )


@settings(max_examples=40)
@given(arrays())
def test_an_array_comes_out_of_a_message_as_it_went_in(array: NDArray[Any]) -> None:
    travelled = Array.FromString(to_message(array).SerializeToString())
    received = from_message(travelled)
    assert same(received, array)
    assert not received.flags.writeable


@settings(max_examples=40)
@given(arrays())
def test_an_array_comes_out_of_chunks_as_it_went_in(array: NDArray[Any]) -> None:
    received = arrive(header_of(array), list(chunks_of(array)))
    assert same(received, array)
    assert not received.flags.writeable


@settings(max_examples=40)
@given(arrays(), st.data())
def test_it_does_not_matter_where_chunks_are_cut(array: NDArray[Any], data: st.DataObject) -> None:
    whole = b"".join(chunks_of(array))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert same(arrive(header_of(array), pieces), array)


@settings(max_examples=40)
@given(arrays(), st.data())
def test_a_byte_too_few_or_too_many_is_refused(array: NDArray[Any], data: st.DataObject) -> None:
    message = to_message(array)
    with pytest.raises(ArrayError, match="more bytes"):
        from_message(Array(header=message.header, data=message.data + b"\0"))
    if message.data:
        kept = data.draw(st.integers(0, len(message.data) - 1))
        with pytest.raises(ArrayError):
            from_message(Array(header=message.header, data=message.data[:kept]))


def test_an_array_whose_last_chunk_is_missing_is_refused() -> None:
    array = np.zeros(CHUNK_BYTES + 1, np.uint8)
    first, _ = chunks_of(array)
    with pytest.raises(ArrayError, match="fewer bytes"):
        gathered(header_of(array), [first])


def test_bits_are_packed_row_by_row_the_first_person_in_the_last_bit() -> None:
    array = np.array([[1, 0, 0, 0, 0, 0, 0, 0, 1, 1], [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]], bool)
    message = to_message(array)
    assert (message.header.element_type, list(message.header.shape)) == (ELEMENT_TYPE_BIT, [2, 10])
    assert message.data == bytes.fromhex("0103 0200")


def test_bits_beyond_the_last_column_are_refused() -> None:
    header = header_of(np.zeros((2, 10), bool))
    with pytest.raises(ArrayError, match="beyond the last column"):
        arrive(header, [bytes.fromhex("0107 0200")])
    with pytest.raises(ArrayError, match="beyond the last column"):
        arrive(header, [bytes.fromhex("0103 0280")])


def test_the_bytes_are_little_endian_in_c_order() -> None:
    array = np.array([[1.0, 2.0], [3.0, 4.0]], ">f4", order="F")
    message = to_message(array)
    assert (message.header.element_type, list(message.header.shape)) == (ELEMENT_TYPE_FLOAT32, [2, 2])
    assert message.data == bytes.fromhex("0000803f 00000040 00004040 00008040")


def test_chunks_are_full_but_for_the_last() -> None:
    for size, chunks in (
        (0, []),
        (1, [1]),
        (CHUNK_BYTES, [CHUNK_BYTES]),
        (2 * CHUNK_BYTES + 1, [CHUNK_BYTES] * 2 + [1]),
    ):
        array = (np.arange(size) % 251).astype(np.uint8)
        cut = list(chunks_of(array))
        assert [len(chunk) for chunk in cut] == chunks
        assert b"".join(cut) == array.tobytes()


def test_an_array_of_another_type_or_of_3_axes_does_not_travel() -> None:
    for kind in ("i8", "i1", "u2", "f2", "c16", "O", "U3", "M8[s]"):
        with pytest.raises(ArrayError, match="no array of type"):
            header_of(np.zeros(2, kind))
    with pytest.raises(ArrayError, match="3 axes"):
        to_message(np.zeros((1, 1, 1)))


def test_a_header_of_no_such_array_is_refused_before_any_byte() -> None:
    for header, why in (
        (ArrayHeader(shape=(1,)), "element type"),
        (ArrayHeader(element_type=99, shape=(1,)), "element type"),  # type: ignore[arg-type]
        (ArrayHeader(element_type=ELEMENT_TYPE_UINT8, shape=(1, 1, 1)), "axes"),
        (ArrayHeader(element_type=ELEMENT_TYPE_UINT8, shape=((1 << 32) + 1,)), "larger"),
        (ArrayHeader(element_type=ELEMENT_TYPE_FLOAT64, shape=(2**64 - 1, 2**64 - 1)), "larger"),
    ):
        with pytest.raises(ArrayError, match=why):
            ArrivingArray(header)


@pytest.mark.parametrize("shape", [(0, 2**63), (2**64 - 1, 0)])
def test_an_axis_without_end_beside_an_empty_one_is_refused_like_any_other(shape: tuple[int, int]) -> None:
    with pytest.raises(ArrayError):
        arrive(ArrayHeader(element_type=ELEMENT_TYPE_FLOAT64, shape=shape), [])


def test_the_limit_is_the_receiver_s_to_set() -> None:
    header = ArrayHeader(element_type=ELEMENT_TYPE_FLOAT64, shape=(2, 3))
    ArrivingArray(header, limit_bytes=48)
    with pytest.raises(ArrayError, match="larger"):
        ArrivingArray(header, limit_bytes=47)


def test_a_chunk_too_many_leaves_what_has_arrived_as_it_was() -> None:
    arriving = ArrivingArray(ArrayHeader(element_type=ELEMENT_TYPE_UINT8, shape=(3,)))
    arriving.append(b"\1\2")
    with pytest.raises(ArrayError):
        arriving.append(b"\3\4")
    arriving.append(b"\3")
    assert arriving.finish().tolist() == [1, 2, 3]


def test_a_message_that_promises_more_than_it_brings_gets_no_memory_for_it() -> None:
    message = Array(header=ArrayHeader(element_type=ELEMENT_TYPE_UINT8, shape=(1 << 30,)), data=b"1")
    tracemalloc.start()
    try:
        with pytest.raises(ArrayError):
            from_message(message)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_bits_are_counted_as_the_bytes_that_they_become() -> None:
    header = header_of(np.zeros((4, 80), bool))
    with pytest.raises(ArrayError, match="larger"):
        ArrivingArray(header, limit_bytes=4 * 80 - 1)
    ArrivingArray(header, limit_bytes=4 * 80)
