"""Defences: what each model is a function of, what its rows are, and what the defence does."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from fairwall.learning import Ensemble, Recipe, TrainingUnavailable
from fairwall.learning.defences import DEFENCES, DefenceTask, Settings, TrainingSplit, deal
from fairwall.learning.defences.fft import tune_weighted as fft_weighted
from fairwall.learning.ensemble import unit
from fairwall.learning.fairness import leakage

BITS, SEEDS = (0, 1, 1), (3, 4, 5)
QUICK = Settings(
    recipe=Recipe((8, 4), 30, 40, 5e-3),
    tune_steps=20,
    private_recipe=Recipe(steps=20, batch_size=64),
    epsilon=8.0,
    small_table=True,
)
BEGIN_WITH_NONE = ("plain-finetune", "fft", "fft-symmetric", "fft-multi", "fft-weighted")
TUNED = (*BEGIN_WITH_NONE, "fft-checked", "fft-paper", "dp-sgd+fft")


@pytest.fixture(scope="module")
def torch() -> object:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def people(n: int = 400, seed: int = 0) -> TrainingSplit:
    """Two groups that differ in size, in their features and in how often they get the favourable outcome."""
    rng = np.random.default_rng(seed)
    groups = np.stack([rng.random(n) < 0.65, rng.random(n) < 0.5]).astype(np.uint8)
    features = rng.normal(size=(n, 9))
    features[:, 0] += 1.5 * groups[0]
    features[:, 1] += 1.5 * groups[1]
    labels = (features[:, 0] + features[:, 1] + features[:, 2] + rng.normal(size=n) > 1.5).astype(np.uint8)
    return TrainingSplit(features, labels, groups)


def same(left: Ensemble, right: Ensemble) -> bool:
    """Bit for bit."""
    pairs = zip((*left.weights, *left.biases), (*right.weights, *right.biases), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(
    "name",
    [
        *("none", "fft-multi", "fft-symmetric", "fft-checked", "pooled"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("fft-paper", "dp-sgd", "dp-sgd+fft")),
    ],
)
def test_a_model_is_a_function_of_its_own_bit_and_seed(torch: object, name: str) -> None:
    split = people()
    every = DEFENCES[name](split, BITS, SEEDS, QUICK)
    assert every.models == 3
    for model in (1,):
        assert same(
            DEFENCES[name](split, BITS[model : model + 1], SEEDS[model : model + 1], QUICK), every.take([model])
        )
    scores = every.scores(split.features)
    assert ((scores >= 0) & (scores <= 1)).all()


@pytest.mark.parametrize(
    "name", ["fft-weighted", "fft-checked", *(pytest.param(name, marks=pytest.mark.check) for name in TUNED[-2:])]
)
def test_models_once_trained_are_tuned_for_any_lambda_as_if_trained_for_it(torch: object, name: str) -> None:
    split, defence = people(), DEFENCES[name]
    own = defence.train(DefenceTask(split, BITS, SEEDS, QUICK))
    bases = [own, DEFENCES["none"].train(DefenceTask(split, BITS, SEEDS, QUICK))] if name in BEGIN_WITH_NONE else [own]
    for base, strength in product(bases, (0.1, 2.0)):
        before, settings = [layer.copy() for layer in (*base.weights, *base.biases)], replace(QUICK, strength=strength)
        tuned = defence.tune(base, DefenceTask(split, BITS, SEEDS, settings))
        assert same(tuned, defence(split, BITS, SEEDS, settings))
        assert not same(tuned, base) or name == "fft-checked"  # which may release the baseline
        assert tuned.unit_rows == base.unit_rows
        assert all(map(np.array_equal, before, (*base.weights, *base.biases)))


def test_another_base_gives_other_models(torch: object) -> None:
    split = people()
    base = DEFENCES["none"].train(
        DefenceTask(split, BITS, SEEDS, replace(QUICK, recipe=replace(QUICK.recipe, steps=10)))
    )
    assert not same(
        DEFENCES["fft"].tune(base, DefenceTask(split, BITS, SEEDS, QUICK)), DEFENCES["fft"](split, BITS, SEEDS, QUICK)
    )


def test_defences_that_begin_with_the_undefended_models_say_so() -> None:
    found = {name for name in TUNED if DEFENCES[name].train is DEFENCES["none"].train}
    assert found == set(BEGIN_WITH_NONE)


@pytest.mark.parametrize(
    "name",
    [
        *("none", "fft-symmetric", "constant"),
        *(pytest.param(name, marks=pytest.mark.check) for name in ("fft-checked", "fft-paper", "dp-sgd+fft")),
    ],
)
def test_training_and_tuning_tell_their_steps_to_the_last(torch: object, name: str) -> None:
    split, defence = people(), DEFENCES[name]
    told: list[list[tuple[int, int]]] = [[], []]
    base = defence.train(DefenceTask(split, BITS, SEEDS, QUICK, lambda *at: told[0].append(at)))
    defence.tune(base, DefenceTask(split, BITS, SEEDS, QUICK, lambda *at: told[1].append(at)))
    training, tuning = {"dp-sgd": (20, 0), "dp-sgd+fft": (20, 20), "fft-paper": (200, 50)}.get(
        name, (30, 20 if name in TUNED else 0)
    )
    totals = (1 if name == "constant" else 3 * training, 3 * tuning)
    for stage, total in zip(told, totals, strict=True):
        assert {of for _, of in stage} == ({total} if total else set())
        assert [done for done, _ in stage] == sorted(done for done, _ in stage)
        assert max((done for done, _ in stage), default=0) == total


@pytest.mark.usefixtures("without_torch")
def test_only_what_trains_needs_the_extra() -> None:
    for name, defence in DEFENCES.items():
        if name == "constant":
            common = np.mean(people().labels) >= 0.5
            assert (defence(people(), [0, 1], [0, 1], QUICK).scores(people().features) == common).all()
        else:
            with pytest.raises(TrainingUnavailable, match="pip install"):
                defence(people(), [0, 1], [0, 1], QUICK)


def test_whether_a_model_depends_on_b_at_all(torch: object) -> None:
    for name, depends in (("none", True), ("fft-symmetric", True), ("pooled", False), ("constant", False)):
        split = people()
        left, right = (DEFENCES[name](split, [b], [7], QUICK) for b in (0, 1))
        assert same(left, right) != depends


def test_no_row_is_dealt_twice_and_mixtures_have_their_purity() -> None:
    for rows, other_rows, purity in (
        (None, None, 1.0),
        (None, None, 0.6),
        (50, None, 1.0),
        (50, None, 0.5),
        (100, 20, 0.9),
    ):
        split = people()
        settings = replace(QUICK, purity=purity, rows=rows, other_rows=other_rows)
        for b, hand in zip((0, 1), deal(DefenceTask(split, (0, 1), (1, 2), settings)), strict=True):
            together = np.concatenate([hand.own, hand.other])
            assert len(set(together)) == len(together)
            assert abs(np.mean(split.groups[0][hand.own] == b) - purity) <= 0.5 / len(hand.own)
            assert abs(np.mean(split.groups[0][hand.other] != b) - purity) <= 0.5 / len(hand.other)
            if rows is not None:
                assert len(hand.own) == rows
            if purity == 1 and other_rows is None:
                assert len(hand.other) == np.sum(split.groups[0] != b)


def test_models_rows_follow_from_their_seeds() -> None:
    split, settings = people(), replace(QUICK, rows=60)
    first, again, other = deal(DefenceTask(split, (1, 1, 1), (5, 5, 6), settings))
    assert np.array_equal(first.own, again.own)
    assert set(first.own) != set(other.own)


@pytest.mark.parametrize("change", [{"rows": 390}, {"purity": 0.6, "rows": 200, "other_rows": 200}])
def test_more_rows_than_there_are_are_refused_in_one_line(change: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="cannot be drawn from groups of"):
        deal(DefenceTask(people(), [0], [0], replace(QUICK, **change)))


def test_settings_out_of_range_are_refused() -> None:
    for change in ({"rehearsal": 1.1}, {"purity": 0.4}, {"strength": -1.0}, {"tune_steps": 0}, {"rows": 0}):
        with pytest.raises(ValueError, match="there are"):
            replace(QUICK, **change)


def test_a_split_of_one_group_is_refused() -> None:
    split = people()
    with pytest.raises(ValueError, match="both groups"):
        TrainingSplit(split.features, split.labels, np.ones_like(split.groups))


def test_without_a_penalty_fair_fine_tuning_is_plain_fine_tuning(torch: object) -> None:
    split = people()
    plain = DEFENCES["plain-finetune"](split, BITS, SEEDS, QUICK)
    assert same(plain, DEFENCES["fft"](split, BITS, SEEDS, replace(QUICK, strength=0.0)))
    assert not same(plain, DEFENCES["fft"](split, BITS, SEEDS, QUICK))


def test_without_rehearsal_a_batch_of_pure_groups_has_no_gap_to_penalise(torch: object) -> None:
    split, settings = people(), replace(QUICK, rehearsal=0.0)
    assert same(DEFENCES["fft"](split, BITS, SEEDS, settings), DEFENCES["plain-finetune"](split, BITS, SEEDS, settings))


def test_the_printed_protocol_scales_rows_inside_the_model(torch: object) -> None:
    split = people()
    models = DEFENCES["fft-paper"](split, [0, 1], [0, 1], QUICK)
    assert models.unit_rows
    assert np.array_equal(models.scores(3 * split.features), models.scores(unit(3 * split.features)))
    assert np.allclose(models.scores(3 * split.features), models.scores(split.features), atol=1e-5)


def steps_told(split: TrainingSplit, bits: tuple[int, ...], settings: Settings) -> tuple[int, int]:
    """How many steps the printed protocol says it takes over all models, in training and in tuning, before it does."""
    told: list[int] = []

    def tell(_: int, of: int) -> None:
        told.append(of)
        raise KeyboardInterrupt

    defence, seeds = DEFENCES["fft-paper"], range(len(bits))
    base = DEFENCES["none"].train(
        DefenceTask(split, bits, seeds, replace(QUICK, recipe=replace(QUICK.recipe, steps=1)))
    )
    for stage in (defence.train, lambda task: defence.tune(base, task)):
        with pytest.raises(KeyboardInterrupt):
            stage(DefenceTask(split, bits, seeds, settings, tell))
    return told[0], told[1]


def test_whether_a_table_is_small_is_not_asked_of_one_partys_rows(torch: object) -> None:
    split = people(400)
    assert steps_told(split, (0,), replace(QUICK, small_table=False)) == (500, 100)
    assert steps_told(split, (0,), replace(QUICK, small_table=True)) == (200, 50)


def test_an_epoch_goes_once_through_the_rows_that_a_model_is_trained_or_tuned_on(torch: object) -> None:
    split, settings, bits = people(600), replace(QUICK, epochs=True), (0, 1)
    sizes = [int((split.groups[0] == b).sum()) for b in (0, 1)]
    batches = [-(-size // 256) for size in sizes]
    others = [-(-size // (256 - 51)) for size in sizes]  # a fifth of a tuning batch is rehearsed
    assert batches[0] < batches[1]
    assert steps_told(split, bits, settings) == (200 * sum(batches), 50 * sum(others))
    # All rehearsed: what is gone through is the own rows.
    assert steps_told(split, (1,), replace(settings, rehearsal=1.0)) == (200 * batches[1], 50 * batches[1])


@pytest.mark.check
def test_models_that_take_unlike_many_steps_come_back_in_their_order(torch: object) -> None:
    split, settings, bits = people(600), replace(QUICK, epochs=True), (1, 0)
    every = DEFENCES["fft-paper"](split, bits, SEEDS[:2], settings)
    assert every.unit_rows
    for model in (0, 1):
        own = DEFENCES["fft-paper"](split, bits[model : model + 1], SEEDS[model : model + 1], settings)
        assert same(own, every.take([model]))


def test_weighted_penalties_weigh_labels_by_what_they_can_leak(torch: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairwall.learning.defences import fft

    seen: list[tuple[float, float]] = []
    tune = fft.tune

    def spy(*given: object, **named: object) -> Ensemble:
        weights = named["weights"]
        assert isinstance(weights, tuple)
        seen.append(weights)
        return tune(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(fft, "tune", spy)
    split = people()
    fft_weighted(DEFENCES["none"](split, [0], [0], QUICK), DefenceTask(split, [0], [0], QUICK))
    positive = np.mean([np.mean(split.labels[split.groups[0] == a]) for a in (0, 1)])
    # Pure groups: |P(A=1|y,D0) - P(A=1|y,D1)| = 1, so P(y) is left.
    assert seen == [pytest.approx((1 - positive, positive))]


@pytest.mark.check
def test_fair_fine_tuning_closes_the_gap_for_one_attribute_and_for_two(torch: object) -> None:
    split, held_out = people(3000), people(3000, seed=1)
    settings = Settings(recipe=Recipe((8,), 100, 128, 1e-2), tune_steps=100, strength=2.0)
    eo = {}
    for name in ("none", "fft", "fft-multi", "fft-weighted", "fft-symmetric"):
        decisions = DEFENCES[name](split, [0, 1], [0, 1], settings).scores(held_out.features) >= 0.5
        eo[name] = [float(leakage(decisions, held_out.labels, group).eo.mean()) for group in held_out.groups]
        for group in held_out.groups:
            found = leakage(decisions, held_out.labels, group)
            assert (found.gap <= found.accuracy_bound + 1e-12).all()
            assert (found.ppr_gap <= found.ppr_bound + 1e-12).all()
    assert all(eo[name][0] < 0.6 * eo["none"][0] for name in ("fft", "fft-multi", "fft-weighted", "fft-symmetric"))
    # The other attribute's gap is closed by the penalty that looks at it.
    assert eo["fft-multi"][1] < 0.6 * eo["fft"][1]


@pytest.mark.slow
def test_a_private_model_with_a_large_budget_learns_and_with_a_small_one_less(torch: object) -> None:
    split, held_out = people(4000), people(2000, seed=1)
    right = []
    for epsilon in (0.05, 8.0):
        settings = replace(QUICK, epsilon=epsilon, private_recipe=Recipe(steps=60, batch_size=512, learning_rate=2e-2))
        decisions = DEFENCES["dp-sgd"](split, [0, 1], [0, 1], settings).scores(held_out.features) >= 0.5
        right.append(float(np.mean(decisions == held_out.labels)))
    assert right[1] > 0.75
    assert right[0] < right[1]
