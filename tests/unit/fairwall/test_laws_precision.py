"""How answers are written down."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairwall.laws.metrics.answer_precision import DECIMALS_MAX, Precision, spacing, written_down
from fairwall.wire.numbers import from_message, to_message

PRECISIONS = st.one_of(st.sampled_from(["float64", "float32"]), st.integers(0, DECIMALS_MAX))
VALUES = st.lists(st.floats(-1, 1), min_size=1, max_size=20)


@given(PRECISIONS, VALUES)
def test_writing_down_twice_changes_nothing_and_moves_by_half_a_digit_at_most(
    precision: Precision, values: list[float]
) -> None:
    exact = np.array(values)
    written = written_down(exact, precision)
    assert (written_down(written, precision) == written).all()
    moved = np.abs(written - exact)
    # The product with a power of ten costs a last bit of float64.
    assert (moved <= spacing(written, precision) / 2 + np.spacing(1.0)).all()
    assert not np.signbit(written[written == 0]).any() or precision in ("float64", "float32")


def test_no_answer_stays_no_answer() -> None:
    for precision in ("float64", "float32", 3):
        assert np.isnan(written_down(np.array([np.nan]), precision)).all()  # type: ignore[arg-type]


def test_the_wire_keeps_it() -> None:
    for precision in ("float64", "float32", 0, 4, 15):
        assert from_message(to_message(precision)) == precision


def test_an_unset_message_says_nothing() -> None:
    assert from_message(to_message("float64").__class__()) is None
