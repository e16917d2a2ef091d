"""The sum that is measured besides cells: its weights, when it is worth its price, and what it tells of anybody."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fairwall.laws.choice.cell_partition import CROWDS, PARTS, STEPS, Blocks, besides_cells, cut, leading
from fairwall.laws.privacy.single_person_tests import look_at_cells, of_cells, told_apart


def whole(values: NDArray[np.float64]) -> Blocks:
    return lambda: [(slice(None), values)]


def alike(models: int, people: int, off: float, seed: int = 0) -> NDArray[np.float64]:
    """Scores that are near one another."""
    generator = np.random.default_rng((models, people, seed))
    values = generator.random(people) + off * generator.normal(size=(models, people))
    return np.asarray(np.clip(values, 0, 1))


@given(
    st.integers(0, 10_000),
    st.integers(1, 6),
    st.integers(12, 120),
    st.integers(1, 9),
    st.integers(1, 12),
    st.sampled_from([0.0, 1e-12, 0.05, 1.0]),
)
def test_weights_add_up_to_nothing_in_each_cell_and_nobody_stands_out(
    seed: int, models: int, people: int, cells: int, crowd: int, off: float
) -> None:
    values = alike(models, people, off, seed)
    values[:, : seed % 5] = 1.0  # some are unlike all others
    cell_of = np.random.default_rng(seed).permutation(np.arange(people) % cells)
    weights = leading(whole(values), cell_of, crowd)
    if weights is None:
        return
    assert np.bincount(cell_of, weights, cells).tolist() == [0.0] * cells
    assert np.abs(weights.astype(int)).max() <= STEPS
    assert np.count_nonzero(2 * np.abs(weights.astype(int)) >= STEPS) >= crowd


def test_the_largest_weight_is_the_whole_step() -> None:
    values = alike(5, 300, 0.05)
    weights = leading(whole(values), cut(values).cell_of(6), 10)
    assert weights is not None
    assert np.abs(weights.astype(int)).max() == STEPS


def test_where_cells_leave_nothing_or_somebody_stands_out_there_is_no_sum() -> None:
    decisions = (np.arange(40) % 2).astype(np.float64)[np.newaxis]
    assert leading(whole(decisions), decisions[0].astype(np.intp), 10) is None
    values = np.zeros((1, 40))
    values[0, 3] = 1.0
    assert leading(whole(values), np.arange(40) // 10, 10) is None
    assert leading(whole(values), np.arange(40) // 10, 1) is not None


def test_weights_do_not_turn_round_with_the_sign_of_a_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    values, eigh = alike(4, 200, 0.1), np.linalg.eigh
    cells = cut(values).cell_of(5)
    first = leading(whole(values), cells, 10)
    monkeypatch.setattr(np.linalg, "eigh", lambda of: (eigh(of)[0], -eigh(of)[1]))
    other = leading(whole(values), cells, 10)
    assert first is not None
    assert other is not None
    assert first.tolist() == other.tolist()


def test_it_is_measured_where_more_may_hide_than_its_price() -> None:
    values = alike(25, 1000, 0.05)
    hides, found = besides_cells(values, cut(values).cell_of(4), 0.5, 0.016, 10)
    assert found is not None
    assert 1 / (PARTS[-1] * 0.5) * 0.999 <= found.scale <= 1 / (PARTS[0] * 0.5) * 1.001
    # What noise adds is less than what might hide there.
    assert found.error < 0.5 * hides
    # Where the counts themselves err more than what might hide, they keep all of epsilon.
    assert besides_cells(values, cut(values).cell_of(4), 0.5, 0.3, 10) == (hides, None)
    # Where somebody stands out, what may hide is known and not measured.
    values = np.zeros((1, 40))
    values[0, 3] = 1.0
    alone, nothing = besides_cells(values, np.arange(40) // 10, 0.5, 0.016, 10)
    assert alone > 0
    assert nothing is None


def test_what_is_told_of_cells_and_a_sum_is_no_less_than_what_they_tell() -> None:
    """The sum as if a crowd had all of the weight, and nobody else any: as a cell of so many."""
    for epsilon in (0.2, 3.0):
        for people, cells in ((40, 4), (1000, 90), (1000, 1)):
            least = people // 20
            told = of_cells(people, least, cells, epsilon, besides=True)
            for part in PARTS:
                looks = [look_at_cells(people, least, CROWDS, part * epsilon)]
                looks += [look_at_cells(people, least, cells, (1 - part) * epsilon)] if cells > 1 else []
                assert told_apart(looks) <= told + 1e-3


def test_a_sum_s_noise_has_a_scale_whatever_epsilon_is() -> None:
    for epsilon in (1e-100, 0.3, 1e40):
        values = alike(5, 300, 0.05)
        _, found = besides_cells(values, cut(values).cell_of(4), epsilon, 1e-9, 10)
        if found is not None:
            assert Fraction(STEPS * found.scale) == STEPS * Fraction(found.scale)
            assert 0 < 1 / found.scale < epsilon
