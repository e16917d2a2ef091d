"""The developer's models in the inference game: which are trained, how often, and which are released."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from developer.inference import train
from fairwall.game.v1 import inference_service_pb2 as inference
from fairwall.learning import Ensemble
from fairwall.learning.batches import Stream
from fairwall.learning.defences import DEFENCES, TrainingSplit
from fairwall.wire.training import settings_of

# Two of each, since a model with batches of a width of its own is trained beside a copy of itself.
BITS, SEEDS = np.array([0, 1, 0, 1], np.uint8), [3, 4, 5, 6]
LAMBDAS = (0.1, 2.0)
STEPS, TUNE_STEPS = 12, 5
# What each model costs in steps: with no defence for the record, as the defence begins, and tuned with a lambda.
COSTS = {
    "none": (STEPS, 0, 0),
    "plain-finetune": (STEPS, 0, TUNE_STEPS),
    "fft": (STEPS, 0, TUNE_STEPS),
    "fft-symmetric": (STEPS, 0, TUNE_STEPS),
    "fft-multi": (STEPS, 0, TUNE_STEPS),
    "fft-weighted": (STEPS, 0, TUNE_STEPS),
    # These begin with others: of fewer rows, of the printed steps, and private.
    "fft-checked": (STEPS, STEPS, TUNE_STEPS),
    "fft-paper": (STEPS, 200, 50),
    "dp-sgd+fft": (STEPS, 100, TUNE_STEPS),
    "pooled": (STEPS, STEPS, 0),
    "dp-sgd": (STEPS, 100, 0),
    "constant": (STEPS, 0, 0),
}


@pytest.fixture(autouse=True)
def torch() -> object:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def people() -> TrainingSplit:
    rng = np.random.default_rng(0)
    groups = (rng.random((2, 300)) < 0.6).astype(np.uint8)
    features = rng.normal(size=(300, 4)) + groups[0][:, None]
    return TrainingSplit(features, (features[:, 0] + rng.normal(size=300) > 0.5).astype(np.uint8), groups)


def asked(defence: str) -> inference.Training:
    return inference.Training(
        defence=defence,
        strength=1.0,
        rehearsal=0.2,
        purity=1.0,
        steps=STEPS,
        tune_steps=TUNE_STEPS,
        epsilon=8.0,
        delta=1e-5,
        small_table=True,
    )


def same(left: Ensemble, right: Ensemble) -> bool:
    """Bit for bit."""
    pairs = zip((*left.weights, *left.biases), (*right.weights, *right.biases), strict=True)
    return left.unit_rows == right.unit_rows and all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.check
@pytest.mark.parametrize(
    "defence",
    ["fft", "fft-checked", "pooled", "constant"],
)
def test_whatever_lambdas_are_tried_a_model_is_trained_once(
    defence: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Every model takes its batches from a stream of its own, a batch a step."""
    taken: list[int] = []
    take = Stream.take

    def counting(stream: Stream, steps: int) -> Any:
        taken.append(steps)
        return take(stream, steps)

    monkeypatch.setattr(Stream, "take", counting)
    caplog.set_level(logging.INFO, "developer.inference")
    base, tuned = train(people(), BITS, SEEDS, asked(defence))
    recorded, begun, tune = COSTS[defence]
    assert sum(taken) == len(BITS) * (recorded + begun)
    models = [tuned(strength) for strength in LAMBDAS]
    assert sum(taken) == len(BITS) * (recorded + begun + len(LAMBDAS) * tune)
    # Each stage is said to be done once, in order, and is done when it is said to be.
    done = [found[1] for said in caplog.messages if (found := re.fullmatch("(.*): 100%", said))]
    expected = ["training none", *([f"training {defence}"] if begun or defence == "constant" else [])]
    assert done == expected + [f"tuning {defence}, lambda {strength:g}" for strength in LAMBDAS if tune]
    # And the models are those that would have been trained for each lambda anew.
    settings = settings_of(asked(defence))
    assert same(base, DEFENCES["none"](people(), BITS, SEEDS, settings))
    for strength, released in zip(LAMBDAS, models, strict=True):
        assert same(released, DEFENCES[defence](people(), BITS, SEEDS, replace(settings, strength=strength)))


def test_the_costs_of_every_defence_are_counted() -> None:
    assert set(COSTS) == set(DEFENCES)
