"""Which decisions the developer of the overfit game turns, and the models that it seals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from developer.overfit import STEP, hints, lowering
from fairwall.learning.sealed import sealed_decisions, votes

RNG = np.random.default_rng(3)
KEY = bytes(range(32))


@pytest.mark.parametrize("flips", [1, 2, 3])
def test_no_other_patches_lower_a_known_gap_more(flips: int) -> None:
    for _ in range(30):
        n = 9
        few = np.zeros(n, bool)
        few[RNG.choice(n, 3, replace=False)] = True
        decisions = RNG.integers(0, 2, n).astype(np.uint8)

        def gap(turned: tuple[int, ...], few: np.ndarray = few, decisions: np.ndarray = decisions) -> float:
            own = decisions.copy()
            own[list(turned)] ^= 1
            return float(own[~few].mean() - own[few].mean())

        chosen, enough = lowering(decisions, few.astype(float), flips, RNG)
        assert len(set(chosen.tolist())) == flips
        best = min(gap(turned) for turned in itertools.combinations(range(n), flips))
        assert gap(tuple(chosen)) == pytest.approx(best)
        left = [abs(gap(tuple(chosen[:count]))) for count in range(flips + 1)]
        assert left[enough] == pytest.approx(min(left))


def test_of_rows_that_are_alike_any_may_be_turned() -> None:
    seen = {int(lowering(np.zeros(4, np.uint8), np.full(4, 0.3), 1, np.random.default_rng(s))[0][0]) for s in range(40)}
    assert seen == {0, 1, 2, 3}


def test_hints_are_the_predictor_s_log_odds_in_steps() -> None:
    features, weights = RNG.normal(size=(50, 3)), np.array([1.0, -2.0, 0.5, 0.2])
    odds = hints(features, weights)
    assert np.abs(odds - (features @ weights[:3] + 0.2)).max() <= STEP / 2
    assert (odds / STEP == np.rint(odds / STEP)).all()


def test_sealed_models_are_coins_on_x_that_the_key_fixes() -> None:
    features = RNG.normal(size=(400, 5))
    features[1] = features[0]
    features[2, 0], features[3] = 0.0, features[2]
    features[3, 0] = -0.0
    decided = sealed_decisions(KEY, features, 300)
    assert decided.shape == (300, 400)
    assert set(np.unique(decided)) == {0, 1}
    assert (decided[:, 0] == decided[:, 1]).all()
    assert (decided[:, 2] == decided[:, 3]).all()
    # 120,000 coins: six standard errors.
    assert decided.mean() == pytest.approx(0.5, abs=6 * 0.5 / np.sqrt(decided.size))
    assert (sealed_decisions(KEY, features[5:8], 17) == decided[:17, 5:8]).all(), "row by row, model by model"
    assert (sealed_decisions(KEY[::-1], features, 300) != decided).mean() > 0.4


def test_a_key_of_another_length_is_refused() -> None:
    for key in (b"", KEY[:-1], KEY + b"."):
        with pytest.raises(ValueError, match="a key has 32 bytes"):
            sealed_decisions(key, np.zeros((1, 1)), 1)


def test_models_vote_for_whom_they_accept_or_for_all_others() -> None:
    decided = np.array([[1, 0, 1], [1, 1, 0]], np.uint8)
    assert votes(decided, np.array([1, 0], np.uint8)).tolist() == [1, 0, 2]
