"""Ids are the same, and in the same order, whatever library read them; the digest is what the protocol page says."""

from __future__ import annotations

import hashlib
import math
import re
import struct
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairwall.wire import rows
from fairwall.wire.rows import RowsError, digest_of, ids_of, order_of, ordered_ids

ROOT = Path(__file__).parents[3]


def digest(ids: list[object], **columns: list[object]) -> bytes:
    written = ids_of(ids)
    return digest_of(written, order_of(written), columns)


@pytest.mark.parametrize(
    "ids",
    [
        [7, -12, 0],
        ["7", "-12", "0"],
        ["7", "-12.0", "-0"],
        ["7.0", "-12.", "0.00"],
        [*np.array([7, -12, 0], np.float32)],
        [*pd.array([7, -12, 0], "Int64")],
    ],
    ids=str,
)
def test_a_whole_number_is_one_id_whatever_it_was_read_as(ids: list[object]) -> None:
    assert ids_of(ids) == [b"7", b"-12", b"0"]


@pytest.mark.parametrize(
    "ids",
    [["a-7", "7a", "+7", "1.5", "é", " 7"], ["1e3", "0x7", "--7", "٧"], ["0007", "007", "7", "00", "0", "-07", "07.0"]],
)
def test_other_ids_are_their_text(ids: list[object]) -> None:
    assert ids_of(ids) == [str(one).encode() for one in ids]


def test_long_numbers_keep_all_their_digits() -> None:
    assert ids_of([2**80, "9" * 5000 + ".0"]) == [str(2**80).encode(), b"9" * 5000]


@pytest.mark.parametrize("nothing", [None, "", "NA", math.nan, pd.NaT], ids=repr)
def test_a_row_without_an_id_is_named_by_its_number(nothing: object) -> None:
    with pytest.raises(RowsError, match=r"^row 2 has no id$"):
        ids_of(["first", nothing, "third"])


@pytest.mark.parametrize("twice", [("05", "05"), ("x", "x"), (5.0, "5")])
def test_an_id_that_is_there_twice_is_named_by_its_rows(twice: tuple[object, object]) -> None:
    with pytest.raises(RowsError, match=r"^row 4 has the id of row 2; ids must be unique$"):
        ids_of(["first", twice[0], "third", twice[1], twice[0]])


def test_an_id_that_is_no_text_is_refused() -> None:
    with pytest.raises(RowsError, match="row 1 has an id that is not Unicode text"):
        ids_of(["\ud800"])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), unique=True, min_size=1))
def test_the_order_is_that_of_the_bytes(ids: list[str]) -> None:
    try:
        written = ids_of(ids)
    except RowsError:
        return
    assert [written[row] for row in order_of(written)] == sorted(written)


def test_every_order_of_four_rows_has_the_same_digest_and_other_rows_have_others() -> None:
    rows = [("7", 1.5), ("b", 2), ("10", "x"), ("a", None)]
    digests = {digest([one for one, _ in order], c=[value for _, value in order]) for order in permutations(rows)}
    assert len(digests) == 1
    ids, values = [one for one, _ in rows], [value for _, value in rows]
    others = {digest(ids, c=list(order)) for order in permutations(values)} - digests
    assert len(others) == 23
    assert len({digest(ids), digest(ids[1:]), digest([*ids[1:], "c"]), digest([*ids, "c"]), *digests}) == 5
    assert len({digest(ids, c=values), digest(ids, d=values), digest(ids, c=values, d=values)}) == 3


def test_what_stands_where_cannot_be_shifted() -> None:
    assert digest(["a"], c=["bc"]) != digest(["ab"], c=["c"])
    assert digest(["a"], b=["c"]) != digest(["a", "b", "c"])


@pytest.mark.parametrize(
    ("one", "other"),
    [(46.3, "46.30"), (5, 5.0), (-0.0, 0), (True, "True"), (None, "NA"), (1e22, "1E22")],
    ids=str,
)
def test_a_public_value_is_the_same_whatever_read_it(one: object, other: object) -> None:
    assert digest(["a"], c=[one]) == digest(["a"], c=[other])


@pytest.mark.parametrize(("one", "other"), [(5, "5a"), (0, None), (1, True), (0.1, 0.1 + 2**-55), ("a", "A")], ids=str)
def test_other_public_values_are_told_apart(one: object, other: object) -> None:
    assert digest(["a"], c=[one]) != digest(["a"], c=[other])


def test_the_digest_that_the_protocol_page_shows_is_this_one() -> None:
    page = (ROOT / "docs" / "protocol.md").read_text()
    (shown,) = re.findall(r"`([0-9a-f]{64})`", page)
    found = digest([10, "b", "9"], income=[46.3, None, "high"])
    assert found.hex() == shown
    number = b"\1" + struct.pack("<d", 46.3)
    values = (b"income", b"10", number, b"9", b"\2high", b"b", b"")
    content = struct.pack("<Q", 1) + b"".join(struct.pack("<Q", len(part)) + part for part in values)
    assert hashlib.sha256(content).digest() == found


NUMERALS = ["007", "1.0", "-0", "-00.", "0.00", "7", "10", "2", "-7", "+7", "1e3", "1.5", ".0", "-", "٧", "7\n", " 7"]
WORDS = ["a", "b", "ab", "a\0", "a\0b", "\0", "é", "\U0001f600", "\uffff", "NA", "", "null", "nan", "x" * 64, "x" * 65]
TEXTS = st.lists(
    st.none() | st.sampled_from(NUMERALS + WORDS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
)
INTEGERS = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20))


def known_by(column: Any, found: Callable[[Any], tuple[Any, Any]], public: Any) -> tuple[object, ...] | str:
    """Whatever rows are known by, or why they are not."""
    try:
        ids, order = found(column)
    except RowsError as error:
        return str(error)
    return list(ids), order.tolist(), digest_of(ids, order), digest_of(ids, order, {"c": public})


def one_by_one(values: list[object]) -> tuple[list[bytes], Any]:
    ids = ids_of(values)
    return ids, order_of(ids)


@settings(max_examples=50)
@given(TEXTS, st.integers(1, 4))
@example(["a\0", "b"], 4)
@example(["-0", "0", "007", "1.0", "7"], 2)
@example(["b", "a", "b", "NA", "a"], 2)
def test_text_of_arrow_is_known_by_the_same_as_one_by_one(values: list[object], at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_AT_ONCE", at_once)
        expected = known_by(values, one_by_one, values)
        half = len(values) // 2
        for column in (
            pa.array(values, pa.string()),
            pa.chunked_array([values[:half], values[half:]], pa.large_string()),
            pd.Series(values, dtype="str"),
        ):
            assert known_by(column, ordered_ids, column) == expected


@settings(max_examples=30)
@given(INTEGERS, st.integers(1, 4))
def test_integers_are_known_by_the_same_as_one_by_one(values: list[int], at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_AT_ONCE", at_once)
        expected = known_by(values, one_by_one, values)
        array = np.array(values, np.int64)
        for column in (
            array,
            array[::-1][::-1],
            array.astype(">i8"),
            pa.array(array),
            pd.Index(array),
            pd.Series(array),
        ):
            assert known_by(column, ordered_ids, column) == expected


@pytest.mark.parametrize(
    "values",
    [
        [1, "a", 2.0],
        [1.0, 2.5],
        [2**64 - 1, 0],
        [5, True],
        [np.str_("007"), "8"],
        ["a" * 5000, "0" * 70 + "7"],
        [],
        [pd.Timestamp(2020, 1, 1), pd.NaT],
    ],
    ids=str,
)
def test_odd_ids_are_known_by_the_same_in_whatever_holds_them(values: list[object]) -> None:
    expected = known_by(values, one_by_one, values)
    for kind in (object, None):
        series = pd.Series(values, dtype=kind)  # type: ignore[call-overload]
        as_held = series.tolist()
        assert known_by(series, ordered_ids, series) == known_by(as_held, one_by_one, as_held)
    held = np.array(values, object)
    assert known_by(held, ordered_ids, held) == expected


@pytest.mark.parametrize(
    "column", [np.arange(9), pa.array(range(9)), pa.array(["a", "007"]), pd.Series(["a", "b"])], ids=str
)
def test_many_ids_take_no_object_each(column: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(rows, "ids_of")
    assert isinstance(ordered_ids(column)[0], np.ndarray)


@settings(max_examples=40)
@given(st.lists(st.floats() | st.none() | st.sampled_from([0.0, -0.0, 1e22, 5.0])), st.sampled_from(["f4", "f8"]))
def test_public_numbers_of_arrays_are_written_as_one_by_one(values: list[float | None], kind: str) -> None:
    with np.errstate(over="ignore"):
        array = np.array(values, kind)
    ids, order = ordered_ids(np.arange(len(values))) if values else ([], np.zeros(0, np.intp))
    held = pa.array(
        [None if value is None else float(one) for value, one in zip(values, array, strict=True)],
        pa.from_numpy_dtype(array.dtype),
    )
    for column in (array, held, pd.Series(array)):
        assert digest_of(ids, order, {"c": column}) == digest_of(ids, order, {"c": array.tolist()})


@pytest.mark.parametrize("seed", range(1))
def test_the_first_of_many_rows_that_are_there_twice_is_named(seed: int) -> None:
    ids = np.random.default_rng(seed).integers(0, 300, 1000)
    expected = known_by(ids.tolist(), one_by_one, [])
    assert isinstance(expected, str)
    for column in (ids, pa.array(ids.astype(str))):
        assert known_by(column, ordered_ids, []) == expected
