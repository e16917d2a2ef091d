"""Ids are the same, and in the same order, whatever library read them; the digest is what the protocol page says."""

from __future__ import annotations

import hashlib
import math
import re
import struct
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwall.wire.rows import RowsError, digest_of, ids_of, order_of

ROOT = Path(__file__).parents[3]


def digest(ids: list[object], **columns: list[object]) -> bytes:
    written = ids_of(ids)
    return digest_of(written, order_of(written), columns)


@pytest.mark.parametrize(
    "ids",
    [
        [7, -12, 0],
        ["7", "-12", "0"],
        ["007", "-012", "-0"],
        [7.0, -12.0, 0.0],
        ["7.0", "-12.", "0.00"],
        [*np.array([7, -12, 0], np.int16)],
        [*np.array([7, -12, 0], np.float32)],
        [*pd.array([7, -12, 0], "Int64")],
    ],
    ids=str,
)
def test_a_whole_number_is_one_id_whatever_it_was_read_as(ids: list[object]) -> None:
    assert ids_of(ids) == [b"7", b"-12", b"0"]


@pytest.mark.parametrize("ids", [["a-7", "7a", "+7", "1.5", "é", " 7"], ["1e3", "0x7", "--7", "٧"]])
def test_other_ids_are_their_text(ids: list[object]) -> None:
    assert ids_of(ids) == [str(one).encode() for one in ids]


def test_long_numbers_keep_all_their_digits() -> None:
    assert ids_of([2**80, "0" * 5000 + "9" * 5000]) == [str(2**80).encode(), b"9" * 5000]


@pytest.mark.parametrize("nothing", [None, "", "NA", math.nan, np.nan, pd.NA, pd.NaT, "null"], ids=repr)
def test_a_row_without_an_id_is_named_by_its_number(nothing: object) -> None:
    with pytest.raises(RowsError, match=r"^row 2 has no id$"):
        ids_of(["first", nothing, "third"])


@pytest.mark.parametrize("twice", [(5, 5), (5, "05"), ("x", "x"), (5.0, "5")])
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
    [(46.3, "46.30"), (5, "5"), (5, 5.0), (-0.0, 0), (True, "True"), (None, ""), (pd.NA, "NA"), (1e22, "1E22")],
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
