"""A column is found wherever it stands, in whatever block of the data, however few people make it improbable enough."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from sim.verify import byte_search
from sim.verify.byte_search import ANYWHERE_BITS, NARROW, WIDE, ByteSearch, SoughtColumn

BLOCK = 1 << 12


def column(people: int, advantaged: int, seed: int = 0) -> SoughtColumn:
    values = np.zeros(people, np.uint8)
    values[np.random.default_rng(seed).permutation(people)[:advantaged]] = 1
    return SoughtColumn(f"{advantaged} of {people}", values)


def laid(values: NDArray[np.uint8], stride: int) -> bytes:
    """Lay values so many bytes apart, random bytes between them."""
    data = np.random.default_rng(1).integers(0, 256, (len(values), stride), np.uint8)
    data[:, 0] = 40 + values
    return data.tobytes()[: stride * (len(values) - 1) + 1]


def within(data: bytes, start: int, size: int) -> bytes:
    noise = np.random.default_rng(2).bytes(size)
    return noise[:start] + data + noise[start + len(data) :]


def test_a_column_that_lies_across_two_blocks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many of its people lie before the edge."""
    for stride in WIDE:
        for before in [1, 99, "all"]:
            monkeypatch.setattr(byte_search, "_BLOCK_BYTES", BLOCK)
            known = column(100, 30)
            data = laid(known.values, stride)
            start = BLOCK - (1 + stride * (before - 1) if isinstance(before, int) else len(data))
            found = ByteSearch([known])(within(data, start, 3 * BLOCK))
            assert (start, f"one value every {stride} bytes, in the order of the rows") in {
                (hit.at, hit.how) for hit in found
            }


def test_bits_that_lie_across_two_blocks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for shift in range(8):
        monkeypatch.setattr(byte_search, "_BLOCK_BYTES", BLOCK)
        known = column(200, 60)
        data = np.packbits(np.concatenate((np.zeros(shift, np.uint8), known.values))).tobytes()
        for start in (BLOCK - 1, BLOCK - len(data) // 2, BLOCK - len(data) + 1):
            found = ByteSearch([known])(within(data, start, 2 * BLOCK))
            assert [(hit.column, hit.at) for hit in found if hit.how.startswith("bits, first")] == [(known, start)]


def test_bits_that_end_with_the_data_are_found_and_those_that_lack_one_are_not() -> None:
    """What is not there is no 0."""
    known = SoughtColumn("ends with 0", np.append(column(200, 60).values, [0]).astype(np.uint8))
    whole = np.random.default_rng(3).bytes(50)
    assert [hit.column for hit in ByteSearch([known])(whole + np.packbits(known.values[:200]).tobytes())] == []
    shifted = np.packbits(np.concatenate((np.ones(7, np.uint8), known.values))).tobytes()
    assert known in [hit.column for hit in ByteSearch([known])(whole + shifted)]


def test_a_column_of_forty_bits_or_a_little_more_is_found_anywhere() -> None:
    for known in [
        column(44, 22),
        column(50, 20),
        column(64, 24),
        column(100, 9),
        column(100, 15),
        column(400, 6),
        column(5000, 4),
    ]:
        assert ANYWHERE_BITS <= known.bits < 60
        for data in (
            laid(known.values, 1),
            laid(known.values, 8),
            laid(1 - known.values, 5),
            laid(known.values[::-1], 3),
        ):
            assert {hit.column for hit in ByteSearch([known])(within(data, 333, len(data) + 1000))} == {known}
        packed = np.packbits(known.values).tobytes()
        assert {hit.column for hit in ByteSearch([known])(within(packed, 333, len(packed) + 1000))} == {known}


def test_below_that_only_what_is_the_column_alone_is_compared() -> None:
    known = column(42, 20)
    assert known.bits < ANYWHERE_BITS
    for width in NARROW:
        data = known.values.astype(f"<u{width}").tobytes()
        assert [(hit.column, hit.how) for hit in ByteSearch([known])(data)] == [
            (known, f"one value every {width} bytes, in the order of the rows")
        ]
        assert not ByteSearch([known])(data + b"\x07")


def test_a_part_of_a_column_is_not_the_column() -> None:
    """Wherever it breaks off, also where what tells it begins before the end and ends behind."""
    known, stride = column(100, 30), 3
    data = laid(known.values, stride)
    for size in range(len(data)):
        assert not ByteSearch([known])(data[:size], (stride,))
    assert ByteSearch([known])(data, (stride,))


def test_of_two_columns_that_are_each_other_s_opposite_both_are_found() -> None:
    one, other = column(30, 10), SoughtColumn("opposite", 1 - column(30, 10).values)
    assert {hit.column for hit in ByteSearch([one, other])(one.values.tobytes())} == {one, other}
