"""Sums in common and what is left of each model: what a flip moves, that nothing is lost, how much noise there is."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from fairwall.laws.choice import low_rank
from fairwall.laws.choice.low_rank import RANKS, LowRankSplit, best_split
from fairwall.laws.noise.count_noise import share_of_size
from fairwall.laws.noise.linf_ball import CubeNoise, coordinates, cube_scales
from fairwall.laws.privacy.amounts import written

STEP = 2.0**-20


def alike(models: int, n: int, directions: int, own: float = 0.0, seed: int = 1) -> NDArray[np.float64]:
    """Scores of models that share a few directions, and have something of their own."""
    generator = np.random.default_rng(seed)
    z = generator.standard_normal((models, directions)) @ generator.standard_normal((directions, n))
    scores: NDArray[np.float64] = 1 / (1 + np.exp(-z - own * generator.standard_normal((models, n))))
    return scores


def near(models: int, n: int, own: float, seed: int = 1) -> NDArray[np.float64]:
    """Scores near those of one model."""
    generator = np.random.default_rng(seed)
    z = generator.standard_normal(n) + own * generator.standard_normal((models, n))
    scores: NDArray[np.float64] = 1 / (1 + np.exp(-z))
    return scores


def put_together(split: LowRankSplit, step: float = STEP) -> NDArray[np.float64]:
    """The values of all people from what is counted of each."""
    own = split.own.sums((split.own_steps * step).T).T
    values: NDArray[np.float64] = split.own.centres[:, np.newaxis] + split.weights @ (split.common * step) + own
    return values


def variance(split: LowRankSplit, values: NDArray[np.float64]) -> float:
    """The mean variance of the noise on a sum, N0's part in it included."""
    off = values.mean(axis=1) - split.own.centres
    of_common = (np.square(split.weights).sum(axis=1) + off**2) * split.law.variance()
    return float((of_common + split.own.halves**2 * split.own_law.variance()).mean())


WORLDS = {
    "near": near(25, 400, 0.1),
    "alike": alike(40, 200, 3, 0.05),
    "apart": np.random.default_rng(2).random((4, 100)),
    "one": near(1, 50, 0.1),
    "repeated": np.repeat(near(2, 60, 0.1), 3, axis=0),
    "mirrored": np.vstack([near(2, 60, 0.1), 1 - near(2, 60, 0.1)]),
    "decisions": (near(12, 100, 0.3) > 0.5).astype(np.float64),
    "constant": np.full((3, 20), 0.3),
    "constant among others": np.vstack([near(5, 80, 0.1), np.full((1, 80), 0.7)]),
    "tiny": 0.3 + 1e-9 * near(3, 40, 0.5),
}


def test_a_flip_moves_each_sum_by_at_most_1_and_both_cubes_cost_epsilon() -> None:
    for world in WORLDS:
        for epsilon, known in itertools.product((0.1, 1.0, 1e4), (False, True)):
            split = best_split(WORLDS[world], epsilon, STEP, size_known=known)
            for rows, law, also in ((split.common, split.law, not known), (split.own_steps, split.own_law, False)):
                assert np.array_equal(rows, np.rint(rows))
                assert np.abs(rows).max(initial=0) <= 1 / STEP
                assert not law.scale if not len(rows) + also else law.sides == len(rows) + also
            spent = sum(1 / Fraction(law.scale) for law in (split.law, split.own_law) if law.scale)
            assert spent <= Fraction(written(epsilon))
            if len(split.common) + split.own.sides or not known:
                assert float(spent) == pytest.approx(epsilon, rel=1e-12)


def test_nothing_of_a_model_is_left_out_but_what_is_rounded() -> None:
    for step in (2.0**-20, 2.0**-3, 1.0):
        for values, known in itertools.product(WORLDS.values(), (False, True)):
            split = best_split(values, 1.0, step, size_known=known)
            assert (np.abs(put_together(split, step) - values) <= split.rounded[:, np.newaxis]).all()
            if step == STEP:
                assert split.rounded.max() < 1e-5


def test_models_near_one_have_one_sum_in_common_and_others_none() -> None:
    assert len(best_split(WORLDS["near"], 1.0, STEP, size_known=False).common) == 1
    assert not len(best_split(near(25, 1000, 5.0), 1.0, STEP, size_known=False).common)
    assert len(best_split(alike(100, 500, 3), 1.0, STEP, size_known=False).common) in RANKS[3:]


def test_noise_near_one_model_is_a_fraction_of_a_cube_s() -> None:
    for models, own, least in ((25, 0.1, 0.5), (25, 0.02, 0.25), (400, 0.1, 0.25)):
        values = near(models, 1000, own)
        told, cube = coordinates([values], STEP), cube_scales(models, 1.0)
        of_size = 2 * cube.size**2 if cube.size else CubeNoise(cube.scale, cube.sides).variance()
        of_cube = told.halves**2 * CubeNoise(cube.scale, cube.sides).variance()
        of_cube = of_cube + (values.mean(axis=1) - told.centres) ** 2 * of_size
        split = best_split(values, 1.0, STEP, size_known=False)
        assert variance(split, values) < (least**2) * float(of_cube.mean())


def test_epsilon_is_shared_as_is_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other share of epsilon has less noise, nor have other numbers of common rows."""
    for world in ("near", "alike", "decisions"):
        values = WORLDS[world]
        best = best_split(values, 1.0, STEP, size_known=False)
        found = variance(best, values)
        # N0 has no less than a cube gives to it apart.
        for part in np.linspace(0.05, 1 - share_of_size(best.own.sides), 20):
            laws = (CubeNoise(1 / (1 - part), best.law.sides), CubeNoise(1 / part, best.own_law.sides))
            other = LowRankSplit(best.common, best.weights, best.own, best.own_steps, best.rounded, *laws)
            assert found <= variance(other, values) * (1 + 1e-9), part
        for rank in (0, 1, 2, 3):
            monkeypatch.setattr(low_rank, "RANKS", (rank,))
            assert found <= variance(best_split(values, 1.0, STEP, size_known=False), values) * (1 + 1e-9), rank
        monkeypatch.setattr(low_rank, "RANKS", RANKS)


@pytest.mark.parametrize("known", [False, True])
def test_where_all_predict_the_same_for_everybody_nothing_but_n0_is_measured(known: bool) -> None:
    split = best_split(WORLDS["constant"], 1.0, STEP, size_known=known)
    assert split.common.shape == split.own_steps.shape == (0, 20)
    assert split.law == CubeNoise(0.0 if known else 1.0, 1)
    assert split.own_law.scale == 0


def test_a_tiny_and_a_large_epsilon_are_no_trouble() -> None:
    for epsilon in (1e-9, 1e9):
        for values in (alike(5, 40, 2), np.eye(8), np.vstack([np.eye(4), 1 - np.eye(4)])):
            split = best_split(values, epsilon, STEP, size_known=False)
            assert math.isfinite(variance(split, values))
