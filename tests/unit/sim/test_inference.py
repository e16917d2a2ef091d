"""The deals of the inference game, and what its lines come to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sim.games.inference import InferenceDeal, _area, deal, summarise
from sim.scenario import plan

VALUES: dict[str, Any] = {
    "scenario": {"name": "dia", "game": "inference", "trials": 3, "seed": 5},
    "data": {"source": "german", "protected": "sex"},
    "adversary": {"attack": ["loss-test", "kl"]},
}


def dealt(trial: int = 0, **developer: Any) -> InferenceDeal:
    (cell,) = plan({**VALUES, "developer": developer}, "dia.toml").cells
    return deal(cell, trial, "deal-1")


def test_no_row_is_in_two_hands() -> None:
    for trial in range(5):
        cards = dealt(trial)
        hands = [set(rows.numbers.tolist()) for rows in (cards.developer, cards.adversary, cards.test)]
        assert sum(map(len, hands)) == len(set.union(*hands)) == 1000
        assert abs(len(hands[0]) - len(hands[1])) <= 1


def test_the_split_and_the_bits_do_not_depend_on_the_defence() -> None:
    one, other = dealt(), dealt(defence="fft")
    assert (one.bits == other.bits).all()
    assert (one.developer.numbers == other.developer.numbers).all()
    assert one.seeds == other.seeds
    assert len(set(one.seeds.values())) == 2


def test_another_trial_has_another_split_and_other_bits() -> None:
    splits = [dealt(trial) for trial in range(8)]
    assert len({cards.developer.numbers.tobytes() for cards in splits}) == 8
    assert len({cards.bits.tobytes() for cards in splits}) > 1
    assert all(0 < cards.bits.sum() < len(cards.bits) for cards in splits)


def test_the_membership_area_is_the_share_of_pairs_in_order() -> None:
    rng = np.random.default_rng(0)
    members, others = rng.integers(0, 5, 40) / 4, rng.integers(0, 5, 30) / 4
    pairs = members[:, None] - others[None]
    assert _area(members, others) == pytest.approx((pairs < 0).mean() + (pairs == 0).mean() / 2)


def line(split: int, correct_b0: int, correct_b1: int) -> dict[str, Any]:
    means = ("gap_base", "gap", "eo_base", "eo", "ppr_gap", "label_gap", "w", "accuracy_base", "accuracy")
    return {
        "attack": "kl",
        "attacks": 2,
        "defence": "none",
        "lambda": 1.0,
        "rehearsal": 0.2,
        "victims": 20,
        "victims_b1": 10,
        "correct_b0": correct_b0,
        "correct_b1": correct_b1,
        "split_seed": split,
        "below_tau": 1,
        "bound_holds": False,
        "corrected_bound_holds": True,
        "membership": 0.5,
        "membership_base": 0.5,
        **dict.fromkeys(means, 1.0),
    }


def test_an_adversary_that_is_always_wrong_has_the_whole_advantage() -> None:
    cell = summarise([line(split, 0, 0) for split in range(10)], [])
    assert (cell["accuracy_b"], cell["advantage"]) == (0, 1)
    assert cell["advantage_low"] > 0.9
    assert cell["family_high"] < 50
    assert (cell["victims"], cell["splits"], cell["below_tau"]) == (200, 10, 10)
    assert (cell["bound_holds"], cell["corrected_bound_holds"]) == (0, 10)


def test_a_coin_has_none() -> None:
    cell = summarise([line(split, 5 + split % 2, 5 - split % 2) for split in range(10)], [])
    assert cell["accuracy_b"] == pytest.approx(50, abs=1)
    assert cell["advantage_low"] == 0
    assert cell["family_low"] < 50 < cell["family_high"]
