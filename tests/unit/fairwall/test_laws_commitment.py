"""What a curator commits to: no two lists of attributes have one root, which tells none, and no two ids one noise."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compliance.noise.sampling import committed_noise
from fairwall.laws.studies import commitment as laws
from fairwall.laws.studies.commitment import (
    CommitmentError,
    commit,
    name_and_nonce,
    noise_key,
    request_id,
    root_of,
    rows_of,
)

SEED, KEY = b"s" * 32, b"k" * 32


def test_no_two_lists_of_rows_and_attributes_have_one_root() -> None:
    labels = [np.array(one, np.uint8) for n in range(1, 6) for one in product((0, 1), repeat=n)]
    roots = {
        commit(rows_of(of), attributes, SEED, KEY).root
        for of in labels
        for attributes in product((0, 1), repeat=len(of))
    }
    assert len(roots) == sum(4**n for n in range(1, 6))


def test_the_tree_is_that_of_the_rfc() -> None:
    """RFC 6962, 2.1: k is the largest power of two smaller than n; here found by doubling."""

    def tree(parts: list[bytes]) -> bytes:
        if len(parts) == 1:
            return parts[0]
        k = 1
        while 2 * k < len(parts):
            k *= 2
        return hashlib.sha256(b"\x01" + tree(parts[:k]) + tree(parts[k:])).digest()

    parts = [bytes([number]) * 32 for number in range(17)]
    for leaves in range(1, 18):
        assert root_of(parts[:leaves]) == tree(parts[:leaves])


def told(root: bytes, row: bytes, salts: list[bytes]) -> set[int]:
    """Say what one row's root tells whoever tries salts."""
    return {
        attribute
        for attribute in (0, 1)
        for salt in salts
        if hashlib.sha256(b"\x00" + salt + bytes([attribute]) + row).digest() == root
    }


def test_a_root_tells_no_attribute_and_without_salts_would(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(np.zeros(1, np.uint8))
    tried = [b"", bytes(32), *(laws.salt(bytes([number]) * 32, 0) for number in range(9))]
    assert not told(commit(rows, [1], SEED, KEY).root, rows[0], tried)
    assert told(commit(rows, [1], SEED, bytes([3]) * 32).root, rows[0], tried) == {1}, "who has the key knows"
    monkeypatch.setattr(laws, "salt", lambda _key, _number: b"")  # a broken twin
    assert told(commit(rows, [1], SEED, KEY).root, rows[0], tried) == {1}


def test_salts_differ_by_row_and_key() -> None:
    assert len({laws.salt(key, number) for key in (KEY, SEED) for number in range(300)}) == 600
    assert all(len(laws.salt(KEY, number)) == 32 for number in range(3))


def test_a_commitment_of_another_length_or_to_other_rows_is_refused_in_a_line_that_tells_nothing() -> None:
    rows = rows_of(np.array([0, 1, 1], np.uint8))
    made = commit(rows, [1, 0, 1], SEED, KEY)
    made.require(rows)
    other = rows_of(np.array([1, 0, 1], np.uint8))
    for wrong, of, words in (
        (made, rows[:2], "the commitment is to 3 rows, not to 2"),
        (made, other, "the commitment is to other rows"),
        (replace(made, root=b"short"), rows, "the commitment has a digest that is not of 32 bytes"),
        (replace(made, seed_digest=b""), rows, "the commitment has a digest that is not of 32 bytes"),
    ):
        with pytest.raises(CommitmentError) as refused:
            wrong.require(of)
        assert str(refused.value) == words
    # What is said is the same whatever the attributes are.
    assert commit(rows, [0, 0, 0], SEED, KEY).rows_digest == made.rows_digest
    for attributes in ([0, 1], [0, 1, 2], [0, 1, 1, 0]):
        with pytest.raises(CommitmentError, match="one attribute a row"):
            commit(rows, attributes, SEED, KEY)
    with pytest.raises(CommitmentError, match="at least one row"):
        commit([], [], SEED, KEY)


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20), st.binary(max_size=16))
def test_names_and_nonces_travel_as_one_id(name: str, nonce: bytes) -> None:
    read = name_and_nonce(request_id(name, nonce))
    assert read == ((name, nonce) if nonce else (f"{name}.", b""))


def test_no_two_ids_have_one_noise() -> None:
    """Two requests with one noise would lose it in the difference of their answers."""
    ids = ["a.ab", "a", ".ab", "a.b.ab", "a.AB", "a.a b", "a.ab ", "a.abc", "a..ab", "a.b ab", "aa.b"]
    assert len({noise_key(SEED, *name_and_nonce(each)) for each in ids}) == len(ids)
    zeros = np.zeros(3)
    drawn = [committed_noise(SEED, each).laplace(zeros, 1.0, 2.0**-20).tolist() for each in (*ids, ids[0])]
    assert drawn[0] == drawn[-1]
    assert all(len(set(values)) == len(ids) for values in zip(*drawn, strict=True))


def test_names_and_nonces_are_told_apart_in_the_key() -> None:
    assert noise_key(SEED, "a", b"b") != noise_key(SEED, "ab", b"")
    assert noise_key(SEED, "a", b"b") != noise_key(KEY, "a", b"b")
