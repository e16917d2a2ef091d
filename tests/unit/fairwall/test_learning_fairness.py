"""What bounds a model's leakage: exhaustively over small worlds, and where the printed bound fails."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fairwall.learning.fairness import Leakage, leakage, shifts

TIGHT = 1e-12

Bits = NDArray[np.uint8]


def bits(*values: int) -> Bits:
    return np.array(values, np.uint8)


def holds(found: Leakage) -> bool:
    """Whether both corrected bounds do."""
    ppr = found.ppr_gap <= found.ppr_bound + found.drift + TIGHT
    accuracy = found.gap <= found.accuracy_bound + found.drift + TIGHT
    return bool(ppr.all() and accuracy.all())


def test_the_corrected_bounds_hold_in_every_world_of_six_people_in_two_pure_groups_without_any_drift() -> None:
    kinds = list(product((0, 1), repeat=2))  # (label, decision)
    worlds = 0
    for n0 in range(1, 6):
        for zeros in combinations_with_replacement(kinds, n0):
            for ones in combinations_with_replacement(kinds, 6 - n0):
                people = np.array(zeros + ones, np.uint8)
                group = (np.arange(6) >= n0).astype(np.uint8)
                found = leakage(people[:, 1], people[:, 0], group)
                assert found.drift[0] == 0
                assert holds(found)
                worlds += 1
    assert worlds == 2 * 4 * 56 + 2 * 10 * 35 + 20 * 20


@pytest.mark.check
def test_the_corrected_bounds_with_their_drift_hold_in_every_world_of_four_people_in_two_mixtures() -> None:
    kinds = list(product((0, 1), repeat=3))  # (label, group, decision)
    for n0 in range(1, 4):
        for left in combinations_with_replacement(kinds, n0):
            for right in combinations_with_replacement(kinds, 4 - n0):
                people = np.array(left + right, np.uint8)
                assert holds(leakage(people[:, 2], people[:, 0], people[:, 1], np.arange(4) >= n0))


@pytest.mark.check
@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(*[st.integers(0, 1)] * 5), min_size=2, max_size=60))
def test_the_corrected_bounds_hold_in_any_sample(rows: list[tuple[int, ...]]) -> None:
    people = np.array([*rows, (0, 0, 0, 0, 0), (0, 0, 1, 0, 0)], np.uint8)
    assert holds(leakage(people[:, 3:].T, people[:, 0], people[:, 1], people[:, 2]))


def test_a_perfect_predictor_has_no_equalized_odds_gap_and_the_positive_rate_gap_dpi() -> None:
    labels, group = bits(1, 1, 1, 0, 1, 0, 0, 0), bits(1, 1, 1, 1, 0, 0, 0, 0)
    found = leakage(labels, labels, group)
    assert found.eo[0] == 0
    assert found.w == 1
    assert found.dpi == 0.5
    assert found.ppr_gap[0] == found.dpi
    assert found.ppr_gap[0] > found.printed_bound[0]
    # The corrected bound is met: TPR 1, FPR 0.
    assert found.ppr_bound[0] == pytest.approx(found.ppr_gap[0], abs=TIGHT)
    assert found.gap[0] == 0


@pytest.mark.parametrize("decision", [0, 1])
def test_a_constant_predictor_has_no_equalized_odds_gap_and_the_accuracy_gap_dpi(decision: int) -> None:
    labels, group = bits(1, 1, 1, 0, 1, 0, 0, 0), bits(1, 1, 1, 1, 0, 0, 0, 0)
    found = leakage(np.full(8, decision), labels, group)
    assert found.eo[0] == 0
    assert found.ppr_gap[0] == 0
    assert found.gap[0] == found.dpi == 0.5
    assert found.accuracy_bound[0] == pytest.approx(found.gap[0], abs=TIGHT)


def test_proposition_1_is_tight() -> None:
    """The decision is the group itself: EO 1, W 1, and all of it to be seen."""
    labels, group = bits(0, 1, 0, 1), bits(0, 0, 1, 1)
    found = leakage(group, labels, group)
    assert found.eo[0] == found.w == found.ppr_gap[0] == found.printed_bound[0] == found.ppr_bound[0] == 1


def test_pure_groups_have_weight_1_and_alike_mixtures_weight_0() -> None:
    rng = np.random.default_rng(0)
    labels, group, decisions = rng.integers(0, 2, (3, 400))
    assert leakage(decisions, labels, group).w == 1
    half = leakage(np.tile(decisions, 2), np.tile(labels, 2), np.tile(group, 2), np.repeat([0, 1], 400))
    assert half.w == 0
    assert half.drift[0] == 0
    assert half.ppr_gap[0] == 0


def test_the_weight_of_mixtures_of_purity_alpha_is_2_alpha_less_1() -> None:
    # Labels as frequent in both groups: 8 of 20 people of either side are of the other group at alpha = 0.6.
    joint = np.array([[[0.3, 0.2], [0.3, 0.2]], [[0.2, 0.3], [0.2, 0.3]]])
    assert shifts(joint).sum() == pytest.approx(0.2)


def test_a_distribution_without_any_row_of_a_label_is_measured_too() -> None:
    found = leakage(bits(1, 0, 1), bits(0, 1, 0), bits(0, 1, 1))
    assert holds(found)
    with pytest.raises(ValueError, match="both distributions"):
        leakage(bits(1, 0), bits(0, 1), bits(1, 1))


def test_the_numbers_are_the_plain_shares() -> None:
    rng = np.random.default_rng(1)
    decisions, labels, group = rng.integers(0, 2, (5, 300)), rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    found = leakage(decisions, labels, group)
    for d in (0, 1):
        assert found.accuracy[d] == pytest.approx((decisions == labels)[:, group == d].mean(1))
        assert found.positive[d] == pytest.approx(decisions[:, group == d].mean(1))
    rate = {(y, a): decisions[:, (labels == y) & (group == a)].mean(1) for y in (0, 1) for a in (0, 1)}
    assert found.eo == pytest.approx(np.max([abs(rate[y, 1] - rate[y, 0]) for y in (0, 1)], axis=0))
    assert found.tpr == pytest.approx((rate[1, 0] + rate[1, 1]) / 2)
    assert found.fpr == pytest.approx((rate[0, 0] + rate[0, 1]) / 2)
