"""Predictions reach the right records, in every order and whoever is left out."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from compliance.records.rows import FileRows, identified
from fairwall.wire.rows import RowsError


def test_every_order_of_ids_and_every_choice_of_people_reaches_the_right_records() -> None:
    for ids in permutations("abcd"):
        for chosen in product((True, False), repeat=4):
            rows = FileRows(np.array(chosen), identified("id", ids, {}))
            of = {person: float(place) for place, person in enumerate(ids)}  # a prediction says whom it is about
            sent = np.array([[of[person] for person in sorted(ids)]])
            expected = [[of[person] for person, audited in zip(ids, chosen, strict=True) if audited]]
            assert rows.of_records(sent, by_ids=True).tolist() == expected
            assert rows.of_records(np.array([[*of.values()]]), by_ids=False).tolist() == expected
            assert rows.people == 4


def test_rows_that_are_in_order_are_not_copied() -> None:
    rows = FileRows(np.ones(3, np.bool_), identified("id", [1, 2, 3], {}))
    predictions = np.zeros((2, 3))
    assert rows.of_records(predictions, by_ids=True) is predictions
    assert rows.of_records(predictions, by_ids=False) is predictions


def test_what_was_in_order_stays_contiguous() -> None:
    rows = FileRows(np.array([True, False, True]), identified("id", [2, 1, 3], {}))
    assert rows.of_records(np.zeros((2, 3)), by_ids=True).flags.c_contiguous


def test_rows_are_known_by_ids_alone_and_with_public_columns() -> None:
    assert FileRows(np.ones(2, np.bool_)).digests == ()
    alone, both = identified("id", [1, 2], {"income": [3, 4]}).digests
    assert identified("id", [2, 1], {}).digests == (alone,)
    assert identified("id", [2, 1], {"income": [4, 3]}).digests == (alone, both)
    with pytest.raises(RowsError, match="row 2 has the id of row 1"):
        identified("id", [1, 1], {})
