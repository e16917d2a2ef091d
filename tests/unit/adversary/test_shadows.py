"""Shadows: whose rows they are trained on, what they are asked, and that they are good for attacking."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adversary.attacks import ATTACKS
from adversary.inference import TOGETHER, set_aside, train_shadows
from fairwall.learning import Ensemble, Recipe, constant
from fairwall.learning.defences import DEFENCES, Defence, DefenceTask, Settings, TrainingSplit

FAST = Settings(recipe=Recipe(layers=(8,), steps=60, batch_size=64, learning_rate=1e-2), rows=200, other_rows=200)


def people(n: int, seed: int) -> TrainingSplit:
    """Two groups whose labels follow different features; the last column numbers the rows."""
    rng = np.random.default_rng(seed)
    group = (np.arange(n) % 3 > 0).astype(np.uint8)
    features = rng.normal(size=(n, 5))
    signal = np.where(group == 1, features[:, 0], features[:, 1]) + 0.5 * features[:, 2]
    labels = (signal + 0.5 * rng.normal(size=n) > 0).astype(np.uint8)
    return TrainingSplit(np.column_stack([features, np.zeros(n)]), labels, group[None])


class Recorder:
    """Trains nothing and remembers what it was given."""

    def __init__(self) -> None:
        self.calls: list[tuple[TrainingSplit, list[int], list[int]]] = []

    def __call__(self, task: DefenceTask) -> Ensemble:
        self.calls.append((task.split, list(task.bits), list(task.seeds)))
        return constant(task.split.features.shape[1], task.bits)


def numbered(n: int) -> TrainingSplit:
    split = people(n, 0)
    split.features[:, -1] = np.arange(n)
    return split


@pytest.mark.parametrize(("budget", "each"), [(2, 1), (50, 25), (51, 25), (10_000, 50)])
def test_probes_are_of_both_groups_alike_and_no_shadow_trains_on_them(budget: int, each: int) -> None:
    own = numbered(300)
    probes = set_aside(own, budget, 3)
    assert probes.group.tolist() == [0] * each + [1] * each
    asked, rest = set(probes.features[:, -1]), set(probes.rest.features[:, -1])
    assert not asked & rest
    assert asked | rest == set(range(300))
    rows = probes.features[:, -1].astype(int)
    assert np.array_equal(probes.labels, own.labels[rows])
    assert np.array_equal(probes.group, own.groups[0][rows])
    again = set_aside(own, budget, 3)
    assert np.array_equal(again.features, probes.features)
    assert budget == 10_000 or not np.array_equal(set_aside(own, budget, 4).features, probes.features)


def test_a_budget_that_buys_no_pair_of_probes_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        set_aside(people(30, 0), 1, 0)


@pytest.mark.parametrize(("share", "calls"), [(1.0, 1), (0.5, 3)])
def test_shadows_are_half_of_each_bit_with_seeds_of_their_own(share: float, calls: int) -> None:
    probes = set_aside(numbered(300), 40, 0)
    recorder = Recorder()
    shadows = train_shadows(probes.rest, 2 * TOGETHER + 3, 7, Defence(recorder), FAST, share=share)
    known = shadows.evidence(probes)
    assert len(recorder.calls) == calls
    assert known.bits.tolist() == [i % 2 for i in range(2 * TOGETHER + 3)]
    # A constant model of the bit: each shadow's answers stand in its own row.
    assert np.array_equal(known.shadows, np.repeat(known.bits[:, None], 40, 1))
    seeds = [seed for _, _, given in recorder.calls for seed in given]
    assert len(set(seeds)) == len(seeds)
    for split, _, _ in recorder.calls:
        assert set(split.features[:, -1]) <= set(probes.rest.features[:, -1])
        for a in (0, 1):
            rest = int((probes.rest.groups[0] == a).sum())
            assert int((split.groups[0] == a).sum()) == round(share * rest)
        assert len(np.unique(split.features[:, -1])) == len(split.labels)


@pytest.mark.parametrize(("count", "share"), [(1, 1.0), (4, 0.0), (4, 1.5)])
def test_shadows_that_cannot_be_are_refused(count: int, share: float) -> None:
    with pytest.raises(ValueError, match="each bit"):
        train_shadows(people(60, 0), count, 0, Defence(Recorder()), FAST, share=share)


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def test_shadows_on_own_rows_tell_victims_on_other_rows_apart(torch: Any) -> None:
    theirs, own = people(1500, 1), people(1500, 2)
    bits = np.tile([0, 1], 20)
    victims = DEFENCES["none"](theirs, bits, list(range(40)), FAST)
    probes = set_aside(own, 200, 0)
    known = train_shadows(probes.rest, 32, 0, DEFENCES["none"], FAST).evidence(probes)
    answers = victims.scores(probes.features)
    for name in ("threshold-test", "kl", "label-meta", "logit-meta"):
        assert np.mean(ATTACKS[name].guess(known, answers, "scores").bits == bits) > 0.9, name


@pytest.mark.check
def test_against_pooled_training_every_attack_is_a_coin(torch: Any) -> None:
    theirs, own = people(1500, 1), people(1500, 2)
    bits = np.tile([0, 1], 60)
    victims = DEFENCES["pooled"](theirs, bits, list(range(120)), FAST)
    probes = set_aside(own, 200, 0)
    answers = victims.scores(probes.features)
    for shadows in ("none", "pooled"):
        known = train_shadows(probes.rest, 32, 0, DEFENCES[shadows], FAST).evidence(probes)
        for name, attack in ATTACKS.items():
            guesses = attack.guess(known, answers, "scores").bits
            d = guesses[bits == 1].mean() - guesses[bits == 0].mean()
            # The victims' law does not depend on b: 5.5 standard deviations.
            assert abs(d) < 5.5 * np.sqrt(2 * 0.25 / 60), name


def test_an_adversary_that_knows_the_defence_trains_with_it(torch: Any) -> None:
    probes = set_aside(people(900, 2), 60, 0)
    plain, adapted = (
        train_shadows(probes.rest, 4, 0, DEFENCES[name], FAST).evidence(probes) for name in ("none", "fft")
    )
    assert not np.allclose(plain.shadows, adapted.shadows)
    assert np.array_equal(
        adapted.shadows, train_shadows(probes.rest, 4, 0, DEFENCES["fft"], FAST).evidence(probes).shadows
    )
