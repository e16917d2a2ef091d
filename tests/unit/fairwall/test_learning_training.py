"""Ensembles: what each model is a function of, and that the written-out gradients are the gradients."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fairwall.learning import (
    Ensemble,
    EqualizedOdds,
    Poisson,
    Private,
    Recipe,
    TrainingUnavailable,
    WeightedRows,
    epsilon_spent,
    train,
)
from fairwall.learning import training as module
from fairwall.learning.batches import Stream, shuffled, stratified
from fairwall.learning.ensemble import constant, fresh, together, unit

Table = tuple[NDArray[np.float64], NDArray[np.uint8], NDArray[np.uint8]]

SHORT = Recipe(layers=(7, 5), steps=40, batch_size=16, learning_rate=5e-3)


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def people(n: int = 300, d: int = 13, seed: int = 0) -> Table:
    """Features, labels that they tell most of, and a group that shifts them."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n).astype(np.uint8)
    features = rng.normal(size=(n, d))
    features[:, 0] += group
    labels = (features[:, 0] + features[:, 1] + 0.5 * rng.normal(size=n) > 0.5).astype(np.uint8)
    return features, labels, group


def same(left: Ensemble, right: Ensemble) -> bool:
    """Bit for bit."""
    pairs = zip((*left.weights, *left.biases), (*right.weights, *right.biases), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def test_importing_loads_nothing_heavy() -> None:
    code = (
        "import sys, fairwall.learning, fairwall.learning.defences;"
        "assert not {'torch', 'scipy', 'sklearn', 'dp_accounting'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


@pytest.mark.usefixtures("without_torch")
def test_without_pytorch_one_line_says_what_to_install() -> None:
    features, labels, _ = people()
    with pytest.raises(TrainingUnavailable, match=r"pip install 'fairwall\[training\]'") as refused:
        train(features, labels, [np.arange(50)], [0], SHORT)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("chunk", "d"), [(2, 13), pytest.param(16, 16, marks=pytest.mark.check)])
def test_a_model_is_the_same_bits_alone_and_in_any_company(
    torch: object, monkeypatch: pytest.MonkeyPatch, chunk: int, d: int
) -> None:
    monkeypatch.setattr(module, "CHUNK", chunk)
    features, labels, group = people(d=d)
    rng = np.random.default_rng(1)
    rows = [rng.choice(300, size, replace=False) for size in (100, 37, 100, 260, 5)]
    penalty = EqualizedOdds(1.0, group[None])
    every = train(features, labels, rows, range(5), SHORT, penalty=penalty)
    for model in range(5):
        alone = train(features, labels, [rows[model]], [model], SHORT, penalty=penalty)
        assert same(alone, every.take([model]))
        assert np.array_equal(alone.scores(features)[0], every.scores(features)[model])
    backwards = train(features, labels, rows[::-1], range(5)[::-1], SHORT, penalty=penalty)
    assert same(backwards.take(range(5)[::-1]), every)


def test_a_private_model_is_the_same_bits_alone_beside_others_of_other_widths(torch: object) -> None:
    features, labels, _ = people()
    plans = [Poisson(np.arange(n), 16 / n, SHORT.steps) for n in (200, 90, 200)]
    private = [Private(1.0, 0.5), Private(2.0, 0.5, adaptive=True), Private(0.7, 1.0)]
    every = train(features, labels, plans, range(3), SHORT, private=private)
    for model in range(3):
        alone = train(features, labels, [plans[model]], [model], SHORT, private=[private[model]])
        assert same(alone, every.take([model]))


def test_other_seeds_and_other_rows_are_other_models(torch: object) -> None:
    features, labels, _ = people()
    models = train(features, labels, [np.arange(100), np.arange(100), np.arange(100, 200)], [0, 1, 0], SHORT)
    scores = models.scores(features)
    assert not np.allclose(scores[0], scores[1])
    assert not np.allclose(scores[0], scores[2])


def twin(
    torch: Any, features: Any, start: Ensemble, steps: int, rate: float, slopes: Callable[[Any, Any], Any]
) -> list[NDArray[np.float32]]:
    """Train one model on all rows at once with Adam, its gradients by autograd."""
    tensors = [torch.tensor(a[0], requires_grad=True) for a in (*start.weights, *start.biases)]
    depth = len(start.weights)
    means, squares = ([torch.zeros_like(tensor) for tensor in tensors] for _ in range(2))

    def logits(rows: Any) -> Any:
        for layer in range(depth):
            rows = rows @ tensors[layer] + tensors[depth + layer]
            rows = rows.relu() if layer < depth - 1 else rows
        return rows[:, 0]

    for step in range(1, steps + 1):
        for tensor, slope, mean, square in zip(tensors, slopes(logits, tensors), means, squares, strict=True):
            mean.mul_(0.9).add_(slope, alpha=0.1)
            square.mul_(0.999).add_(slope**2, alpha=0.001)
            with torch.no_grad():
                tensor -= rate * mean / (1 - 0.9**step) / ((square / (1 - 0.999**step)).sqrt() + 1e-8)
    return [tensor.detach().numpy() for tensor in tensors]


def close(made: Ensemble, expected: list[NDArray[np.float32]]) -> bool:
    """To single precision, after some steps."""
    pairs = zip((*made.weights, *made.biases), expected, strict=True)
    return all(np.allclose(a[0], b, atol=2e-4) for a, b in pairs)


@pytest.mark.parametrize("weights", [None, (0.8, 0.2)])
def test_training_with_a_penalty_is_training_by_autograd(torch: Any, weights: tuple[float, float] | None) -> None:
    features, labels, group = people(120)
    other = np.random.default_rng(5).integers(0, 2, 120).astype(np.uint8)
    recipe = Recipe((7, 5), 10, 120, 3e-3)
    start = fresh(13, recipe.layers, [np.random.default_rng(9)])
    penalty = EqualizedOdds(1.5, np.stack([group, other]), weights)
    made = train(features, labels, [np.arange(120)], [0], recipe, start=start, penalty=penalty)
    x, y = torch.tensor(features, dtype=torch.float32), torch.tensor(labels, dtype=torch.float32)

    def slopes(logits: Any, tensors: Any) -> Any:
        z = logits(x)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y)
        p = z.sigmoid()
        for a in (group, other):
            gaps = [
                (p[(labels == label) & (a == 1)].mean() - p[(labels == label) & (a == 0)].mean()).abs()
                for label in (0, 1)
            ]
            term = torch.maximum(*gaps) if weights is None else weights[0] * gaps[0] + weights[1] * gaps[1]
            loss = loss + 1.5 * term
        return torch.autograd.grad(loss, tensors)

    assert close(made, twin(torch, x, start, 10, 3e-3, slopes))


@pytest.mark.parametrize("strength", [3.0, pytest.param(0.0, marks=pytest.mark.check)])
def test_private_training_clips_every_row_as_one_gradient_at_a_time_does(torch: Any, strength: float) -> None:
    """A row's gradient is that of its loss and of its part in the penalty, clipped together."""
    features, labels, group = people(60)
    recipe = Recipe((7, 5), 6, 60, 3e-3)
    start = fresh(13, recipe.layers, [np.random.default_rng(9)])
    weights = strength * (group - 0.4)
    penalty = WeightedRows(lambda *_: weights[None], 6) if strength else None
    plan, private = [Poisson(np.arange(60), 1.0, 6)], [Private(1e-9, 1.0)]
    made = train(features, labels, plan, [0], recipe, start=start, penalty=penalty, private=private)
    x, y = torch.tensor(features, dtype=torch.float32), torch.tensor(labels, dtype=torch.float32)
    clipped = []

    def slopes(logits: Any, tensors: Any) -> Any:
        total = [torch.zeros_like(tensor) for tensor in tensors]
        for row in range(60):
            z = logits(x[row : row + 1])
            loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y[row : row + 1])
            loss = loss + float(weights[row]) * z.sigmoid().sum()
            own = torch.autograd.grad(loss, tensors)
            norm = torch.sqrt(sum((part**2).sum() for part in own))
            clipped.append(bool(norm > 1.0))
            total = [a + b * min(1.0, 1.0 / float(norm)) for a, b in zip(total, own, strict=True)]
        return [part / 60 for part in total]

    assert close(made, twin(torch, x, start, 6, 3e-3, slopes))
    assert 0.05 < np.mean(clipped) < 0.95


def test_rows_are_weighed_as_often_as_they_are_to_be_and_each_model_alone(torch: object) -> None:
    features, labels, group = people()
    seen: list[list[int]] = []

    def weigh(models: Ensemble, which: Sequence[int]) -> NDArray[np.float64]:
        assert models.models == len(which)
        seen.append(list(which))
        gaps = models.scores(features)[:, group == 1].mean(1) - models.scores(features)[:, group == 0].mean(1)
        return np.outer(gaps, 4.0 * group - 2)

    penalty = WeightedRows(weigh, 15)
    every = train(features, labels, [np.arange(200)] * 3, range(3), SHORT, penalty=penalty)
    # Before steps 0, 15 and 30 of 40.
    assert seen == [[0, 1, 2]] * 3
    alone = train(features, labels, [np.arange(200)], [1], SHORT, penalty=penalty)
    assert seen[3:] == [[0]] * 3
    assert same(alone, every.take([1]))
    assert not same(alone, train(features, labels, [np.arange(200)], [1], SHORT))


def test_a_private_model_has_no_penalty_that_is_no_sum_over_rows() -> None:
    features, labels, group = people()
    plan, private = [Poisson(np.arange(300), 0.1, 40)], [Private(1.0)]
    with pytest.raises(ValueError, match="no penalty but on rows"):
        train(features, labels, plan, [0], SHORT, penalty=EqualizedOdds(1.0, group[None]), private=private)
    with pytest.raises(ValueError, match="at least 1"):
        WeightedRows(lambda *_: np.zeros((1, 300)), 0)


def test_private_noise_has_the_stated_size(torch: Any) -> None:
    """With features of 0 the first weights have no gradient: what moves them is noise alone."""
    n, private = 40, [Private(1.5, 0.2), Private(3.0, 0.4)]
    plans = [Poisson(np.arange(n), 0.5, 1)] * 2
    rngs = [np.random.default_rng(seed) for seed in (1, 2)]
    recipe = Recipe((64, 5), 1, 20)
    streams = [Stream(plan, rng) for plan, rng in zip(plans, rngs, strict=True)]
    step = module._Training(torch, fresh(100, recipe.layers, rngs), streams, recipe, rngs, private, [20.0, 20.0])
    step.run(1, torch.zeros(n, 100), torch.zeros(n), None, None)
    for model, own in enumerate(private):
        slopes = step._block_slopes[0][model].numpy().astype(np.float64) * 20 / (own.noise * own.clip)
        # 6,400 squares of standard normals: standard deviation of their mean sqrt(2 / 6400); 6 of them, below 1e-8.
        assert abs(np.mean(slopes**2) - 1) < 6 * np.sqrt(2 / 6400)


def test_adaptive_clipping_splits_what_is_spent_and_follows_the_gradients(torch: Any) -> None:
    private = Private(0.9, 50.0, adaptive=True)
    z, s = private.gradient_noise(30.0), private.count_noise(30.0)
    assert z**-2 + (2 * s) ** -2 == pytest.approx(0.9**-2)
    assert z > 0.9
    features, labels, _ = people()
    rngs = [np.random.default_rng(0), np.random.default_rng(1)]
    recipe = Recipe((7, 5), 30, 100)
    streams = [Stream(Poisson(np.arange(300), 1 / 3, 30), rng) for rng in rngs]
    pair = [private, Private(0.9, 1e-4, adaptive=True)]
    steps = module._Training(torch, fresh(13, recipe.layers, rngs), streams, recipe, rngs, pair, [100.0, 100.0])
    steps.run(
        30, torch.from_numpy(features.astype(np.float32)), torch.from_numpy(labels.astype(np.float32)), None, None
    )
    assert steps._clip is not None
    # No gradient is above 50, all are above 1e-4: by 0.1 in the logarithm a step.
    assert float(steps._clip[0, 0]) < 50 * np.exp(-2)
    assert float(steps._clip[1, 0]) > 1e-4 * np.exp(2)


@pytest.mark.slow
def test_the_noise_multiplier_spends_what_is_asked_and_no_more() -> None:
    import dp_accounting
    from dp_accounting import pld

    from fairwall.learning import noise_multiplier

    noise = noise_multiplier(3.0, 1e-5, 1 / 16, 50)

    def spent(multiplier: float) -> float:
        accountant = pld.PLDAccountant(value_discretization_interval=1e-3)
        accountant.compose(dp_accounting.PoissonSampledDpEvent(1 / 16, dp_accounting.GaussianDpEvent(multiplier)), 50)
        return float(accountant.get_epsilon(1e-5))

    assert 2.95 < spent(noise) <= 3.0
    # A rate between two multiples of 1/1024 costs what the next one does.
    assert noise_multiplier(3.0, 1e-5, 63.5 / 1024, 50) == noise


def test_what_is_spent_agrees_with_another_accountant() -> None:
    """Between the bounds of the PRV accountant of Opacus 1.6.0, with an error in epsilon of 1e-3 that it admits."""
    for noise, delta, rate, steps, beside, low, high in (
        (38.9, 1e-5, 1 / 8, 100, 0.0, 0.09807, 0.10010),
        (1.5, 1e-5, 1 / 16, 200, 0.0, 2.99997, 3.00236),
        (46.0, 1e-5, 1 / 8, 100, 0.015, 0.09422, 0.09624),
    ):
        assert low < epsilon_spent(noise, delta, rate, steps, beside) < high


def test_training_learns_and_the_penalty_closes_the_gap(torch: object) -> None:
    features, labels, group = people(3000)
    cells = 2 * labels + group
    recipe = Recipe((8,), 120, 128, 1e-2)
    plan = stratified(np.arange(2000), 128, cells[:2000])
    plain, fair = (
        train(features, labels, [plan] * 3, range(3), recipe, penalty=penalty).scores(features[2000:]) >= 0.5
        for penalty in (None, EqualizedOdds(2.0, group[None]))
    )
    from fairwall.learning.fairness import leakage

    before, after = (leakage(decisions, labels[2000:], group[2000:]) for decisions in (plain, fair))
    assert before.accuracy.min() > 0.8
    assert (after.eo < before.eo).all()


def test_a_start_is_where_training_begins(torch: object) -> None:
    features, labels, _ = people()
    first = train(features, labels, [np.arange(200)] * 2, [0, 1], SHORT)
    barely = Recipe(steps=1, batch_size=16, learning_rate=1e-6)
    tuned = train(features, labels, [np.arange(200)] * 2, [2, 3], barely, start=first)
    assert tuned.layers == (7, 5)
    assert np.allclose(tuned.scores(features), first.scores(features), atol=1e-3)
    assert not same(tuned, first)


def test_progress_is_told_in_model_steps(torch: object) -> None:
    features, labels, _ = people()
    told: list[tuple[int, int]] = []
    train(features, labels, [np.arange(50)] * 3, range(3), SHORT, on_step=lambda *at: told.append(at))
    assert told[-1] == (120, 120)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_an_interruption_ends_training_within_a_block_and_leaves_pytorchs_threads_alone(torch: Any) -> None:
    before = torch.get_num_threads()
    features, labels, _ = people()

    def interrupt(done: int, _: int) -> None:
        if done > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(features, labels, [np.arange(50)] * 3, range(3), SHORT, on_step=interrupt)
    assert torch.get_num_threads() == before


def test_what_does_not_fit_together_is_refused(torch: object) -> None:
    features, labels, group = people()
    with pytest.raises(ValueError, match="its seed"):
        train(features, labels, [np.arange(5)], [0, 1], SHORT)
    with pytest.raises(ValueError, match="Poisson"):
        train(features, labels, [np.arange(5)], [0], SHORT, private=[Private(1.0)])
    plan, penalty = Poisson(np.arange(50), 0.5, 40), EqualizedOdds(1.0, group[None])
    with pytest.raises(ValueError, match="no penalty"):
        train(features, labels, [plan], [0], SHORT, private=[Private(1.0)], penalty=penalty)
    with pytest.raises(ValueError, match="recipe"):
        Recipe(steps=0)


def test_pytorchs_threads_are_as_before(torch: Any) -> None:
    before = torch.get_num_threads()
    features, labels, _ = people()
    seen: list[int] = []
    train(features, labels, [np.arange(50)], [0], SHORT, on_step=lambda *_: seen.append(torch.get_num_threads()))
    assert set(seen) == {1}
    assert torch.get_num_threads() == before


def test_scores_are_the_sigmoid_of_the_network_for_any_number_of_rows() -> None:
    features, _, _ = people(5000)
    models = fresh(13, (7, 5), [np.random.default_rng(seed) for seed in range(3)])
    hidden = [features] * 3
    for layer, (weights, biases) in enumerate(zip(models.weights, models.biases, strict=True)):
        hidden = [
            (np.maximum(rows, 0) if layer else rows) @ w.astype(float) + b
            for rows, w, b in zip(hidden, weights, biases, strict=True)
        ]
    expected = 1 / (1 + np.exp(-np.stack(hidden)[:, :, 0]))
    assert np.allclose(models.scores(features), expected, atol=1e-6)
    assert models.scores(features[:0]).shape == (3, 0)


def test_constant_models_score_0_and_1_themselves() -> None:
    features, _, _ = people()
    assert (constant(13, [0, 1]).scores(1e6 * features) == np.array([[0.0], [1.0]])).all()


def test_scaled_rows_stay_a_part_of_the_model() -> None:
    features, _, _ = people(20)
    plain = fresh(13, (7,), [np.random.default_rng(0)] * 2)
    scaled = Ensemble(plain.weights, plain.biases, unit_rows=True)
    assert np.array_equal(scaled.scores(7 * features), plain.scores(unit(7 * features)))
    assert together([scaled, scaled]).take([3]).unit_rows
    assert (unit(np.zeros((1, 3))) == 0).all()
    with pytest.raises(ValueError, match="unpack"):
        together([plain, scaled])
    assert shuffled(np.arange(3), 2).width == 2
