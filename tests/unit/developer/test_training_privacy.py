"""What private training promises: one record's reach is bounded, and no attack on a canary shows more than epsilon.

Broken twins: rows that are not clipped, a penalty added after the clipping, and a perturbation that is too small.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count, islice
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from developer.training import Network, Regression, Trained, TrainingBudget, TrainingSet, objective, regression, train
from developer.training.objective import ROW_NORM, minimum, perturbation, ridge
from fairwall.learning import training as module
from fairwall.learning.backend import pytorch
from fairwall.learning.batches import Poisson, Stream
from fairwall.learning.ensemble import fresh, unit
from fairwall.learning.private import Private
from fairwall.learning.training import Recipe, _Training
from sim.privacy_audit.sampling import epsilon_bound

FAR = 300.0
"""The canary's feature: its gradient is as much longer than others'."""


@pytest.fixture
def torch() -> Any:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    # As training imports it: what first multiplies decides for the whole process whether bits are reproducible.
    return pytorch()


class Unclipped(_Training):
    """Broken: scales no row."""

    def _clip_rows(self, *_: Any) -> None:
        self._clipped_at = self._clip.clone()


class PenaltyOutside(_Training):
    """Broken: clips the loss, and then adds the penalty; of a network without hidden layers and rows of one weight."""

    def weigh(self, weights: Any) -> None:
        self._outside = weights[:, :1]

    def _clip_rows(self, deltas: Any, activations: Any, present: Any) -> None:
        super()._clip_rows(deltas, activations, present)
        scores = self._torch.baddbmm(self._blocks[1], activations[0], self._blocks[0])[:, :, 0].sigmoid()
        deltas[0] += (self._outside * scores * (1 - scores) * present)[:, :, None]


def reach(torch: Any, kind: type[_Training], layers: tuple[int, ...]) -> float:
    """Measure how far one row more moves a step's sum of gradients, in clipping norms, at any of 20 weights."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(20, 3)).astype(np.float32)
    features[-1] *= 20
    labels = np.arange(20, dtype=np.float32) % 2
    furthest = 0.0
    for seed in range(20):
        sums = []
        for n in (19, 20):
            rngs = [np.random.default_rng(seed)]
            start = fresh(3, layers, [np.random.default_rng(seed)])
            streams = [Stream(Poisson(np.arange(n), 1.0, 1), rngs[0])]
            step = kind(torch, start, streams, Recipe(layers, 1, 20), rngs, [Private(1e-9, 0.5)], [20.0])
            step.weigh(torch.full((1, 20), 8.0))
            step.run(1, torch.from_numpy(features), torch.from_numpy(labels), None, None)
            sums.append(20 * step._slopes.numpy().astype(np.float64))
        furthest = max(furthest, float(np.linalg.norm(sums[1] - sums[0])) / 0.5)
    return furthest


def test_a_row_moves_a_step_by_the_clipping_norm_at_most_its_penalty_included(torch: Any) -> None:
    for layers in ((), (5,), (6, 4)):
        assert 0.99 < reach(torch, _Training, layers) < 1 + 1e-4


@pytest.mark.parametrize("twin", [Unclipped, PenaltyOutside])
def test_the_twins_are_moved_further(torch: Any, twin: type[_Training]) -> None:
    assert reach(torch, twin, ()) > 1.5


def losses(epsilon: float, delta: float, kappa: float, less: float, draws: int) -> NDArray[np.float64]:
    """Draw the privacy loss of a perturbed regression, of the densities themselves, with one row more and less.

    Half of the draws are of minima with the row, half of minima without. The perturbation is that of the budget, times
    ``less``.
    """
    rng = np.random.default_rng(7)
    rows = np.column_stack([unit(rng.normal(size=(12, 2))), np.ones(12)])
    labels = np.array([1, 0] * 6, np.uint8)
    weight = ridge(kappa)
    across = np.array([0.7, -0.4, 0.0])

    def log_density(w: NDArray[np.float64], n: int) -> float:
        scores = 1 / (1 + np.exp(-rows[:n] @ w))
        b = -((scores - labels[:n]) @ rows[:n] + weight * w + (across @ w + 0.3) * across)
        hessian = (rows[:n].T * (scores * (1 - scores))) @ rows[:n] + weight * np.eye(3) + np.outer(across, across)
        if delta > 0:
            spread = less * ROW_NORM * objective.gaussian_multiplier(epsilon - kappa, delta / 2)
            of_b = -(b @ b) / (2 * spread**2)
        else:
            of_b = -float(np.linalg.norm(b)) * (epsilon - kappa) / (less * ROW_NORM)
        return float(of_b + np.linalg.slogdet(hessian)[1])

    found = []
    for draw in range(draws):
        here, there = (12, 11) if draw % 2 else (11, 12)
        tilt = less * perturbation(3, epsilon, delta, kappa, rng)
        w = minimum(rows[:here], labels[:here], weight, tilt, across, 0.3)
        found.append(log_density(w, here) - log_density(w, there))
    return np.array(found)


def test_the_pure_perturbation_keeps_epsilon_in_every_draw() -> None:
    assert losses(0.8, 0.0, 0.2, 1.0, 300).max() <= 0.8
    assert losses(0.8, 0.0, 0.2, 0.5, 300).max() > 0.8


@pytest.mark.check
def test_the_gaussian_perturbation_keeps_delta() -> None:
    """delta = E(1 - exp(epsilon - loss))_+, estimated; its terms lie in [0, 1]."""
    delta, draws = 0.05, 800
    kept, broken = (np.maximum(0, -np.expm1(0.8 - losses(0.8, delta, 0.2, less, draws))).mean() for less in (1.0, 0.25))
    # Bernstein: a mean of delta exceeds it by as much with probability below 1e-6.
    allowed = math.sqrt(2 * delta * math.log(1e6) / draws) + 2 * math.log(1e6) / (3 * draws)
    assert kept < delta + allowed
    assert kept > 0
    assert broken > delta + allowed


def test_the_length_of_a_row_does_not_reach_a_private_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    features, labels, group = rng.normal(size=(80, 3)), np.arange(80).astype(np.uint8) % 2, rng.integers(0, 2, 80)
    longer = features * rng.uniform(0.1, 1000, (80, 1))

    def difference(settings: Regression) -> float:
        one, other = (
            train(TrainingSet(rows, labels), settings, 0, group.astype(np.uint8)) for rows in (features, longer)
        )
        return float(np.abs(one.network.weights[0] - other.network.weights[0]).max())

    for settings in (Regression(budget=TrainingBudget(1.0)), Regression(strength=5.0, budget=TrainingBudget(1.0, 0.0))):
        assert difference(settings) < 1e-6
        with monkeypatch.context() as broken:
            broken.setattr("developer.training.regression.unit", lambda rows: rows)
            assert difference(settings) > 1e-3


def test_a_delta_too_large_for_the_derivation_is_refused() -> None:
    with pytest.raises(ValueError, match="so large a delta"):
        perturbation(3, 0.01, 0.9, 0.005, np.random.default_rng(0))


def audited(settings: Network | Regression, draws: int) -> float:
    """Bound epsilon from below: an event is chosen on half of the draws, and counted on the other half; level 1e-6."""
    drawn = np.empty((2, draws))
    for there in (0, 1):
        people, group = with_canary(bool(there))
        seeds = (seed for seed in count(there, 2) if start(seed) < -0.1)
        for draw, seed in enumerate(islice(seeds, draws)):
            drawn[there, draw] = canary_weight(train(people, settings, seed, group), seed)
    assert settings.budget is not None
    delta, half = settings.budget.delta, draws // 2

    def bound(here: int, least: float, part: slice, level: float) -> float:
        hits = [int((drawn[world, part] >= least).sum()) for world in (here, 1 - here)]
        return epsilon_bound(*hits, half, delta, level)

    # The canary's label is 1: its weight is larger with it.
    thresholds = np.quantile(drawn[:, :half], np.linspace(0.01, 0.99, 99))
    least = max(thresholds, key=lambda least: bound(1, least, slice(half), 0.05))
    return bound(1, least, slice(half, None), 1e-6)


def with_canary(there: bool) -> tuple[TrainingSet, NDArray[np.uint8]]:
    """Forty rows of noise, and perhaps a canary: the one row whose last feature is not 0, of the smaller group."""
    rng = np.random.default_rng(3)
    features = np.column_stack([rng.normal(size=(41, 2)), np.zeros(41)])
    features[-1] = (0, 0, FAR)
    labels, group = rng.integers(0, 2, 41).astype(np.uint8), (np.arange(41) % 8 > 0).astype(np.uint8)
    labels[-1], group[-1] = 1, 0
    keep = slice(None) if there else slice(40)
    return TrainingSet(features[keep], labels[keep]), group[keep]


def canary_weight(model: Trained, seed: int) -> float:
    """How far training moved the weight of the canary's feature, which a network's seed told before."""
    (weights,) = model.network.weights
    return float(weights[0, 2, 0] - (0.0 if model.network.unit_rows else start(seed)))


def start(seed: int) -> float:
    """Tell where a network's weight of the canary's feature starts; above 0 the canary pulls no more."""
    return float(fresh(3, (), [np.random.default_rng(seed)]).weights[0][0, 2, 0])


# Every row is in every batch.
CANARY_NETWORKS = {
    "dp-nn": Network(Recipe((), 10, 41, 2e-4), tellings=5, budget=TrainingBudget(8.0)),
    "dpf-nn": Network(Recipe((), 10, 41, 2e-4), strength=4.0, tellings=5, budget=TrainingBudget(8.0)),
}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CANARY_NETWORKS)
def test_a_canary_shows_less_than_a_network_promises(torch: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Something at epsilon 8, but not more; where rows are not clipped, more than epsilon 2."""
    settings = CANARY_NETWORKS[name]
    people, group = with_canary(True)
    spent = train(people, settings, 0, group).spent
    assert spent is not None
    shown = audited(settings, 2500)
    assert shown <= spent.epsilon <= 8.0
    assert shown > 0 or name == "dpf-nn"  # half of whose epsilon the rates take
    monkeypatch.setattr(module, "_Training", Unclipped)
    assert audited(replace(settings, budget=TrainingBudget(2.0)), 1000) > 2.0


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("strength", [0.0, 0.05])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_canary_shows_less_than_a_regression_promises(
    monkeypatch: pytest.MonkeyPatch, strength: float, delta: float
) -> None:
    settings, noise = Regression(strength=strength, budget=TrainingBudget(2.0, delta)), regression._noise
    assert audited(settings, 3000) <= 2.0
    monkeypatch.setattr(regression, "perturbation", lambda *args: 0.01 * perturbation(*args))
    monkeypatch.setattr(regression, "_noise", lambda *args: 0.01 * noise(*args))
    assert audited(settings, 1000) > 2.0
