"""What a policy's minimum of people in each group does to what is released: less noise, and no size below it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion, ends_of
from compliance.mechanisms.noise_on_gaps import bounded
from compliance.mechanisms.propose_test_release import ProposeTestRelease
from compliance.noise.sampling import Noise, Seeded
from compliance.records.people import Records, RecordsError
from fairwall.laws.choice.prediction import choose
from fairwall.laws.mechanisms.calibration import proposed_bound, truncated_scale
from fairwall.laws.mechanisms.table import MECHANISM_LAWS, NoiseInputs
from fairwall.laws.metrics.group_size_range import Shares
from fairwall.laws.metrics.sensitivity import global_sensitivity, sensitivities
from fairwall.laws.privacy.exposure import revealed

N0, N1, LEAST = 7, 33, 5


def records(metrics: tuple[str, ...] = ("sp", "eo"), least: int = LEAST) -> Records:
    """Forty people, of whom half of each group have label 1, or nearly."""
    protected = np.repeat([0, 1], [2 * N0, 2 * N1]).astype(np.uint8)
    return Records((np.arange(2 * (N0 + N1)) % 2).astype(np.uint8), protected, metrics, least)


def question(metric: str = "sp", models: int = 3, least: int = LEAST) -> BatchQuestion:
    return BatchQuestion(metric, np.random.default_rng(3).random((models, 2 * (N0 + N1))), records(least=least))


class Scales:
    """Noise that remembers the scale of all Laplace and Cauchy noise that was asked for."""

    def __init__(self, seed: int) -> None:
        self._noise: Any = Seeded(np.random.default_rng(seed))
        self.scales: list[float] = []

    def laplace(self, values: np.ndarray, scale: float, step: float) -> Any:
        self.scales.append(scale)
        return self._noise.laplace(values, scale, step)

    def cauchy(self, values: np.ndarray, scale: float, step: float) -> Any:
        self.scales.append(scale)
        return self._noise.cauchy(values, scale, step)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._noise, name)


def test_a_question_is_about_groups_of_the_minimum_in_its_own_stratum() -> None:
    for metric, n in (("sp", 80), ("eo", 40)):
        asked = question(metric)
        assert asked.sensitivities().overall == pytest.approx(1 / (LEAST + 1) + 1 / (n - LEAST))
        assert asked.smooth(0.1) == sensitivities(metric, records().counts(metric), 0.1, minimum_group=LEAST).smooth


def test_records_of_smaller_groups_are_refused() -> None:
    for least in (8, 20):
        records(("sp",), 8)
        with pytest.raises(RecordsError, match="a group is too small"):
            records(("sp", "eo"), least)


def test_records_of_which_nobody_could_be_in_the_other_group_are_refused() -> None:
    protected = np.repeat([0, 1], [8, 8]).astype(np.uint8)
    with pytest.raises(RecordsError, match="a group is too small"):
        Records(np.zeros(16, np.uint8), protected, ("sp",), 8)
    assert Records(np.zeros(16, np.uint8), protected, ("sp",), 7).minimum_group == 7


def test_noise_is_less_by_as_much_as_the_sensitivity() -> None:
    for name in ("sparse-vector", "laplace"):
        scales = []
        for least in (1, LEAST):
            noise = Scales(1)
            MECHANISMS[name].release(question(least=least), NO_FACTS, 1.0, 0.0, noise)
            scales.append([scale for scale in noise.scales if scale])
        asked = "abs_sp" if name == "sparse-vector" else "sp"
        ratio = global_sensitivity(asked, 80, minimum_group=LEAST) / global_sensitivity(asked, 80)
        assert np.array(scales[1]) / np.array(scales[0]) == pytest.approx(ratio, rel=1e-5)


def test_cauchy_noise_has_the_scale_of_its_law() -> None:
    for name in ("cauchy", "conceal"):
        # At n = 80 and m = 3 a minimum of 5 has another smoothness than one of 1, too little to be seen in answers.
        noise = Scales(5)
        MECHANISMS[name].release(question(), NO_FACTS, 1.0, 0.0, noise)
        law = MECHANISM_LAWS[name].error(NoiseInputs("sp", 2 * N0, 2 * N1, 3, 1.0, shares=Shares(minimum_group=LEAST)))
        assert law is not None
        assert noise.scales == [pytest.approx(law.scale, rel=1e-6)]


def test_truncated_noise_is_that_of_the_sensitivity() -> None:
    noise = Scales(2)
    bounded(MECHANISMS["laplace"], "truncate").release(question(models=1), NO_FACTS, 2.0, 0.0, noise)
    step = 2.0**-20
    distance = math.ceil(global_sensitivity("sp", 80, minimum_group=LEAST) / step) + 1
    assert noise.scales[-1] == pytest.approx(truncated_scale(distance, int(2 / step), step, 2.0), rel=1e-3)


def test_the_fairest_model_is_chosen_more_often() -> None:
    chosen = []
    for least in (1, LEAST):
        noise: Noise = Seeded(np.random.default_rng(4))
        protected = records().protected
        predictions = np.stack([np.full(80, 0.5), np.where(protected == 1, 1.0, 0.0)])
        asked = BatchQuestion("sp", predictions, records(least=least))
        answers = [MECHANISMS["exponential"].release(asked, NO_FACTS, 1.0, 0.0, noise).values for _ in range(400)]
        chosen.append(np.mean([values[0] for values in answers]))
    # Permute and flip takes the worse one with probability exp(-epsilon / (2 sensitivity)) / 2; 6 standard deviations.
    for least, share in zip((1, LEAST), chosen, strict=True):
        worse = math.exp(-1 / (2 * global_sensitivity("abs_sp", 80, minimum_group=least))) / 2
        assert abs(share - (1 - worse)) < 6 * math.sqrt(worse * (1 - worse) / 400)


def test_a_proposal_of_no_more_than_the_minimum_needs_no_test() -> None:
    mechanism, asked = ProposeTestRelease(), question()
    assert mechanism.distance(2 * N0, 80, LEAST) == math.inf
    assert mechanism.law("sp", asked.records.labels, 1, 1.0, LEAST).scale == pytest.approx(
        proposed_bound("sp", 80, minimum_group=LEAST) / 0.75
    )
    for seed in range(30):  # at an epsilon at which a test would mostly fail
        values = mechanism.release(asked, NO_FACTS, 0.01, 1e-9, Seeded(np.random.default_rng(seed))).values
        assert not np.isnan(values).any()


@pytest.mark.parametrize("name", ["counts-gaussian", "cube", "cells"])
def test_group_sizes_are_read_within_what_is_public(name: str) -> None:
    # At N0 = g half of what noise makes of it is smaller.
    delta = 1e-6 if name == "counts-gaussian" else 0.0
    half = np.repeat([0, 1], [20, 60]).astype(np.uint8)
    who = Records(np.zeros(80, np.uint8), half, ("sp",), 20)
    rows = np.stack([half == 1, np.arange(80) == 0]).astype(np.float64)
    for seed in range(10):
        noise = Seeded(np.random.default_rng(seed))
        released = MECHANISMS[name].release(BatchQuestion("sp", rows, who), NO_FACTS, 0.05, delta, noise)
        # A model that accepts one person has a gap of a 20th at most.
        for told in (released.values, *ends_of(released)[1]):
            assert abs(told[1]) <= 1 / 20 + 1e-9


def test_what_is_told_of_a_batch_counts_on_the_minimum() -> None:
    # Less noise gives more away: who promises a limit has to know.
    least, larger = (revealed("laplace", "sp", 200, 4, 2.0, shares=Shares(0.3, 0.5, g)) for g in (1, 50))
    assert least < larger
    assert choose("sp", 100, 1, 0.5, shares=Shares(0.45, 0.5, 45)) != "midpoint"
