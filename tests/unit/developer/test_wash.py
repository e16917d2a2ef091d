"""What a washing developer shows: no order of flips is better, and manipulations bring the gap of known groups down."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from developer.wash.shown_decisions import STRATEGIES, WashInputs, flipped, flips_to_pass, gap, order


def worlds(count: int, people: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Decisions, and who is disadvantaged: groups of unequal size, both there."""
    rng = np.random.default_rng(5)
    while count:
        disadvantaged = (rng.random(people) < 0.3).astype(np.float64)
        if 0 < disadvantaged.sum() < people:
            count -= 1
            yield rng.integers(0, 2, people).astype(np.uint8), disadvantaged


def test_no_other_flips_lessen_the_gap_more() -> None:
    for deployed, disadvantaged in worlds(30, 7):
        people, side = order(deployed, disadvantaged), 1 if gap(deployed, disadvantaged) >= 0 else -1
        for flips in range(8):
            least = min(
                side * gap(flipped(deployed, np.array(some, np.intp)), disadvantaged)
                for some in combinations(range(7), flips)
            )
            assert side * gap(flipped(deployed, people[:flips]), disadvantaged) == pytest.approx(least)


def test_flips_to_pass_are_the_first_that_do() -> None:
    for deployed, disadvantaged in worlds(30, 20):
        people = order(deployed, disadvantaged)
        gaps = [abs(gap(flipped(deployed, people[:flips]), disadvantaged)) for flips in range(21)]
        wanted = next((flips for flips, found in enumerate(gaps) if found <= 0.1 + 1e-12), None)
        assert flips_to_pass(deployed, people, disadvantaged, 0.1) == wanted


def hand(seed: int, people: int = 300, aim: float = 0.02, bound: int = 0) -> WashInputs:
    """People of whom a fifth are disadvantaged and have lower scores."""
    rng = np.random.default_rng(seed)
    disadvantaged = (rng.random(people) < 0.2).astype(np.float64)
    scores = 1 / (1 + np.exp(-rng.normal(-0.3 - 0.9 * disadvantaged, 1.2)))
    deployed = (scores >= 0.5).astype(np.uint8)
    return WashInputs(deployed, scores, lambda: deployed, disadvantaged, aim, np.arange(people) < bound, rng)


def test_a_known_group_s_gap_comes_down() -> None:
    for name in ("flips", "reject-option", "label-transport", "group-thresholds"):
        for seed in range(5):
            own = hand(seed)
            assert gap(own.deployed, own.belief) > 0.1
            step = 1 / own.belief.sum()  # one flip of the smaller group
            assert abs(gap(STRATEGIES[name](own), own.belief)) <= max(own.aim, step)


def test_the_larger_gap_may_be_the_others_too() -> None:
    own = hand(1)
    mirrored = WashInputs(1 - own.deployed, 1 - own.scores, own.fair, own.belief, own.aim, own.bound, own.rng)
    for name in ("flips", "reject-option", "label-transport"):
        assert gap(mirrored.deployed, own.belief) < -0.1
        assert abs(gap(STRATEGIES[name](mirrored), own.belief)) <= max(own.aim, 1 / own.belief.sum())


def test_relaxed_scores_are_the_nearest_of_those_within_the_aim() -> None:
    from scipy.optimize import minimize

    rng = np.random.default_rng(2)
    scores = np.array([0.9, 0.8, 0.6, 0.52, 0.48, 0.3])
    disadvantaged = np.array([0, 0, 0, 1.0, 1, 1])
    own = WashInputs(
        (scores >= 0.5).astype(np.uint8),
        scores,
        lambda: np.zeros(6, np.uint8),
        disadvantaged,
        0.1,
        np.zeros(6, bool),
        rng,
    )
    g = (1 - disadvantaged) / 3 - disadvantaged / 3
    found = minimize(
        lambda s: float(-(scores * np.log(s) + (1 - scores) * np.log(1 - s)).sum()),
        scores,
        bounds=[(1e-6, 1 - 1e-6)] * 6,
        constraints=[{"type": "ineq", "fun": lambda s: 0.1 - g @ s}],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert g @ found.x == pytest.approx(0.1, abs=1e-6)
    assert STRATEGIES["linear-relaxation"](own).tolist() == (found.x > 0.5).astype(int).tolist()
    assert (STRATEGIES["linear-relaxation"](own) != own.deployed).any()


def test_nothing_is_flipped_where_that_only_makes_it_worse() -> None:
    """Flipping everybody mirrors the gap: the same but for rounding, and no reason to do it."""
    belief = np.random.default_rng(1).uniform(0.3, 0.7, 30)
    deployed = (np.arange(30) % 2).astype(np.uint8)
    own = WashInputs(deployed, belief, lambda: deployed, belief, 0.0, np.zeros(30, bool), np.random.default_rng(0))
    shown = STRATEGIES["flips"](own)
    assert 0 <= (shown != deployed).sum() < 15
    assert abs(gap(shown, belief)) <= abs(gap(deployed, belief))


def test_who_is_bound_is_not_flipped() -> None:
    own = hand(3, bound=200)
    shown = STRATEGIES["flips"](own)
    assert (shown[:200] == own.deployed[:200]).all()
    assert (shown != own.deployed).any()
    assert (STRATEGIES["flips"](hand(3, bound=300)) == own.deployed).all()


def test_a_belief_short_of_certainty_takes_as_many_as_it_expects() -> None:
    belief = np.array([0.9, 0.6, 0.4, 0.1, 0.0])
    own = WashInputs(
        np.zeros(5, np.uint8),
        np.zeros(5),
        lambda: np.zeros(5, np.uint8),
        belief,
        0.0,
        np.zeros(5, bool),
        np.random.default_rng(0),
    )
    assert own.disadvantaged.tolist() == [True, True, False, False, False]
