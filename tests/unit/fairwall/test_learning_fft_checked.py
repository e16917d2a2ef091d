"""Algorithm 1: what is measured, and what is released."""

from __future__ import annotations

import numpy as np
import pytest

from fairwall.learning import Recipe
from fairwall.learning.defences import DEFENCES, DefenceTask, Settings, TrainingSplit, retraining
from fairwall.learning.defences.fft_checked import deploy

SETTINGS = Settings(recipe=Recipe((8, 4), 60, 64, 5e-3), tune_steps=60)
BITS, SEEDS = (0, 1, 0, 1), (0, 1, 2, 3)


@pytest.fixture(scope="module", autouse=True)
def torch() -> object:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def people(seed: int) -> TrainingSplit:
    rng = np.random.default_rng(seed)
    group = (rng.random(1500) < 0.7).astype(np.uint8)
    features = rng.normal(size=(1500, 6))
    features[:, 0] += group
    labels = (features[:, 0] + features[:, 1] * (2 * group - 0.5) + rng.normal(size=1500) > 0.8).astype(np.uint8)
    return TrainingSplit(features, labels, group[None])


@pytest.mark.parametrize("tau", [0.0, 0.05])
def test_a_model_is_tuned_where_needed_and_released_where_that_helped(tau: float) -> None:
    split, held_out = people(0), people(1)
    base = retraining.train_undefended(DefenceTask(split, BITS, SEEDS, SETTINGS))
    found = deploy(base, DefenceTask(split, BITS, SEEDS, SETTINGS), held_out, tau=tau)
    assert np.array_equal(found.needed, found.before.gap > tau)
    assert np.array_equal(found.accepted, found.needed & (found.after.gap <= tau))
    assert np.array_equal(found.rejected, (found.before.gap > tau) & (found.after.gap > tau))
    tuned = DEFENCES["fft"](split, BITS, SEEDS, SETTINGS)
    for model, accepted in enumerate(found.accepted):
        expected = (tuned if accepted else base).scores(held_out.features)[model]
        assert np.array_equal(found.released.scores(held_out.features)[model], expected)


def test_it_measures_what_the_paper_names() -> None:
    split = people(0)
    told: list[tuple[int, int]] = []
    base = retraining.train_undefended(DefenceTask(split, BITS, SEEDS, SETTINGS))
    found = deploy(base, DefenceTask(split, BITS, SEEDS, SETTINGS, lambda *at: told.append(at)), people(1))
    n1 = int(split.groups[0].sum())
    assert found.size_ratio == pytest.approx([n1 / (1500 - n1), (1500 - n1) / n1] * 2)
    assert found.before.w == found.after.w == 1
    assert found.before.eo.shape == (4,)
    assert told[-1] == (240, 240)


def test_of_two_alike_mixtures_the_weight_is_0() -> None:
    held_out = people(1)
    twice = TrainingSplit(
        np.tile(held_out.features, (2, 1)), np.tile(held_out.labels, 2), np.tile(held_out.groups, (1, 2))
    )
    base = retraining.train_undefended(DefenceTask(people(0), BITS[:1], SEEDS[:1], SETTINGS))
    found = deploy(base, DefenceTask(people(0), BITS[:1], SEEDS[:1], SETTINGS), twice, side=np.repeat([0, 1], 1500))
    assert found.before.w == 0
    assert not found.needed.any()
