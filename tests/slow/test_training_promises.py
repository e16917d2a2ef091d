"""What the training game's private models promise: a second accountant says the same, and canaries refute no more.

The developer's own code trains, told of groups by compliance's own; only the wire between them is left out.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from adversary.play import NO_GUESS, guess
from compliance.answers.charging import DEVELOPER
from compliance.answers.statistics import Cohort, bounded, game_cohort
from developer.training import network
from developer.training.play import GroupSumClient, ModelSubmission, made, record_multiplier
from fairwall.learning.batches import Poisson
from fairwall.learning.private import Private
from fairwall.rpc.arrays import gathered, to_message
from sim.games import lay_out
from sim.games.training.canaries import epsilon_refuted
from sim.games.training.deal import TrainingDeal, deal
from sim.games.training.trial import _model_deal, _TrainingTrial

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the extra for training"),
]

Law = NDArray[np.float64]
DELTA, OVERFLOW = 1e-5, 1e-9


def dealt(model: str, epsilon: float, trial: int = 0, **more: Any) -> TrainingDeal:
    values = {
        "scenario": {"name": "toy", "game": "training"},
        "data": {"source": "german", "protected": "sex", "people": more.pop("people", 0)},
        "compliance": {"mechanism": "gaussian", "epsilon": more.pop("purse", 1.0), "delta": DELTA},
        "training": {"model": model, "epsilon": epsilon, "delta": DELTA, **more},
    }
    return deal(lay_out(values, "toy").cells[0], trial, "deal-1")


@dataclass
class Compliance:
    """Stands for the stub of StatisticsService: a cohort behind it, and no wire."""

    cohort: Cohort
    multipliers: list[float] = field(default_factory=list)

    def SumByGroup(self, parts: Iterator[Any], **_: Any) -> Any:  # noqa: N802
        first, *chunks = parts
        header = first.header
        rows = bounded(gathered(header.rows, (part.rows_chunk for part in chunks)).astype(np.float64))
        entry = self.cohort.answer(DEVELOPER, header.request_id, b"", rows, header.multiplier)
        self.multipliers.append(header.multiplier)
        return SimpleNamespace(sums=to_message(self.cohort.sums(entry)))


def trained(table: TrainingDeal) -> tuple[Any, ModelSubmission, list[float]]:
    """Train what a deal says; the model, what is said of it, and the multipliers of the sums that were told."""
    (message, _), compliance = _model_deal(_TrainingTrial(table)), None
    if table.compliance is not None:
        terms = message.statistics
        protected, seed = table.compliance.protected, table.compliance.seed
        compliance = Compliance(game_cohort("deal-1", protected, terms.epsilon, terms.delta, seed))
    cards: dict[str, Any] = {
        "features": table.people.features,
        "labels": table.people.labels,
        "test_features": table.test.features,
    }
    model, said = made(message, cards, GroupSumClient(compliance, message) if compliance is not None else None)  # type: ignore[arg-type]
    return model, said, [] if compliance is None else compliance.multipliers


# A second accountant.

STEP = 2e-4
"""Of the grid of losses. Each is shared out between its two neighbours, so that the mean stays; no bound, but close."""


def losses(sigma: float, rate: float, *, adding: bool) -> Law:
    """Give the law of a subsampled Gaussian's privacy loss, on the grid; its middle is a loss of 0."""
    x = np.linspace(-12 * sigma, 12 * sigma + 1, 400_001)
    without, beside = (scipy.stats.norm(mean, sigma).pdf(x) for mean in (0, 1))
    with_it = (1 - rate) * without + rate * beside
    here, there = (without, with_it) if adding else (with_it, without)
    kept = (here > 0) & (there > 0)
    found = np.log(here[kept] / there[kept]) / STEP
    mass = here[kept] / here[kept].sum()
    half = math.ceil(np.abs(found).max()) + 1
    low = np.floor(found).astype(int)
    law = np.bincount(low + half, mass * (1 - (found - low)), 2 * half + 1)
    law += np.bincount(low + 1 + half, mass * (found - low), 2 * half + 1)
    return np.asarray(law)


def composed(laws: list[tuple[Law, int]]) -> tuple[Law, Law]:
    """Convolve laws, each so often; the losses and their probabilities."""
    size = 1 << 21  # losses from -210 to 210
    transformed: Any = 1.0
    for law, times in laws:
        half = len(law) // 2
        assert half < size // 2
        placed = np.zeros(size)
        placed[: half + 1] = law[half:]
        placed[-half:] = law[:half]
        transformed = transformed * np.fft.rfft(placed) ** times
    total = np.fft.fftshift(np.fft.irfft(transformed, size))
    return (np.arange(size) - size // 2) * STEP, total


def second_epsilon(noise: float, rate: float, steps: int, told: list[float], delta: float) -> float:
    """Account again, by Fourier transform of the loss, for neighbours either way."""
    worst = 0.0
    for adding in (True, False):
        laws = [(losses(noise, rate, adding=adding), steps)]
        laws += [(losses(multiplier, 1.0, adding=adding), told.count(multiplier)) for multiplier in set(told)]
        values, law = composed(laws)

        def delta_at(epsilon: float, values: Law = values, law: Law = law) -> float:
            beyond = values > epsilon
            return float((law[beyond] * -np.expm1(epsilon - values[beyond])).sum())

        low, high = 0.0, 100.0
        while high - low > 1e-7:
            middle = (low + high) / 2
            low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
        worst = max(worst, high)
    return worst


def renyi_epsilon(noise: float, rate: float, steps: int, told: list[float], delta: float) -> float:
    """Account a third time, by Rényi divergences: an upper bound."""
    dp = importlib.import_module("dp_accounting")
    accountant = importlib.import_module("dp_accounting.rdp").RdpAccountant()
    accountant.compose(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(noise)), steps)
    for multiplier in told:
        accountant.compose(dp.GaussianDpEvent(multiplier))
    return float(accountant.get_epsilon(delta))


def test_the_second_accountant_knows_the_gaussian() -> None:
    from fairwall.laws.noise.gaussian import gaussian_epsilon

    for multiplier, times in ((2.0, 1), (5.0, 9)):
        exact = gaussian_epsilon(multiplier / math.sqrt(times), DELTA)
        assert second_epsilon(multiplier, 1.0, times, [], DELTA) == pytest.approx(exact, abs=1e-3)
        assert second_epsilon(1e6, 1.0, 1, [multiplier] * times, DELTA) == pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize(
    ("model", "epsilon", "steps", "batch", "purse", "asked"),
    [
        ("dp-nn", 1.0, 30, 64, 0.0, 0),
        ("dp-nn", 6.0, 12, 128, 0.0, 0),
        ("dpf-nn", 1.0, 30, 64, 0.8, 1 + 10),
        ("dpf-nn", 4.0, 12, 200, 2.0, 1 + 6),  # the rates every second step: at ten tellings at most
    ],
)
def test_what_is_promised_is_what_the_steps_that_were_taken_cost(
    monkeypatch: pytest.MonkeyPatch, model: str, epsilon: float, steps: int, batch: int, purse: float, asked: int
) -> None:
    taken: list[tuple[Poisson, Private]] = []
    honest = network.fit

    def watched(features: Any, labels: Any, plans: Any, seeds: Any, recipe: Any, **more: Any) -> Any:
        assert recipe.steps == plans[0].steps
        taken.append((plans[0], more["private"][0]))
        return honest(features, labels, plans, seeds, recipe, **more)

    monkeypatch.setattr(network, "fit", watched)
    _, said, multipliers = trained(dealt(model, epsilon, purse=purse or 1.0, steps=steps, batch=batch))
    ((plan, private),) = taken
    assert (plan.steps, plan.rate) == (steps, batch / 800)
    assert len(multipliers) == said.asked == asked
    told = [record_multiplier(multiplier) for multiplier in multipliers]
    again = second_epsilon(private.noise, plan.rate, plan.steps, told, said.delta - OVERFLOW)
    assert said.epsilon <= epsilon
    # The accountant in use rounds upwards: never below, and little above.
    assert again - 1e-3 < said.epsilon < again * 1.02 + 5e-3
    assert said.epsilon <= renyi_epsilon(private.noise, plan.rate, plan.steps, told, said.delta - OVERFLOW)
    if told:
        without = second_epsilon(private.noise, plan.rate, plan.steps, [], said.delta - OVERFLOW)
        assert without < 0.97 * said.epsilon, "the sums' cost is in it"


# Canaries.

TRAININGS = 40


def refuted(model: str, epsilon: float, **more: Any) -> tuple[float, float]:
    """Train often on canaries and next to nobody else; what is promised, and the largest epsilon that is refuted."""
    counts, promised = np.zeros(3, int), 0.0
    for trial in range(TRAININGS):
        table = dealt(model, epsilon, trial, people=4, canaries=60, steps=60, batch=64, **more)
        released, said, _ = trained(table)
        guesses = guess(released.scores(table.canaries.features), table.canaries.labels)
        guessed = guesses != NO_GUESS
        counts += [len(guesses), guessed.sum(), (guesses == table.inside)[guessed].sum()]
        promised = max(promised, said.epsilon)
    return promised, epsilon_refuted(*map(int, counts), DELTA)


@pytest.mark.parametrize(("model", "more"), [("dp-nn", {}), ("dpf-nn", {"purse": 0.5, "strength": 1.0})])
def test_canaries_refute_no_more_than_is_promised_unless_noise_is_left_out(
    monkeypatch: pytest.MonkeyPatch, model: str, more: dict[str, Any]
) -> None:
    promised, shown = refuted(model, 0.8, **more)
    assert shown < promised <= 0.8
    monkeypatch.setattr(network, "Private", lambda _, clip: Private(1e-6, clip))
    promised, shown = refuted(model, 0.8, **more)
    assert promised <= 0.8 < shown
