"""The table of laws: every mechanism has its row, and what compliance adds has the law that its row says."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from fairwall.laws.mechanisms.calibration import cauchy_loss
from fairwall.laws.mechanisms.table import CHOICE, MECHANISM_LAWS, NoiseInputs
from fairwall.laws.metrics.group_size_range import Shares
from fairwall.laws.metrics.sensitivity import flip_sensitivity
from fairwall.laws.noise.distributions import Cauchy, Gaussian, Laplace, Uniform

REFERENCES = {Laplace: "laplace", Cauchy: "cauchy", Gaussian: "norm"}
INDEPENDENT = ["laplace", "gaussian", "conceal", "conceal-laplace", "cauchy"]
N0, N1, QUERIES, EPSILON, DELTA = 7, 33, 20, 0.8, 1e-6
BATCH = NoiseInputs("sp", N0, N1, QUERIES, EPSILON, DELTA)
LEAST = 5


def test_every_mechanism_has_a_row() -> None:
    assert MECHANISM_LAWS.keys() == MECHANISMS.keys()


def test_the_rows_say_which_answers_are_gaps_with_noise_of_their_own() -> None:
    """The privacy audit holds these to their law, and to their loss."""
    assert {name for name, row in MECHANISM_LAWS.items() if row.independent} == {*INDEPENDENT}


def test_what_compliance_adds_has_the_law_of_its_row() -> None:
    for name, least in (("laplace", 1), ("cauchy", 1), *((name, LEAST) for name in INDEPENDENT)):
        law = MECHANISM_LAWS[name].error(replace(BATCH, shares=Shares(minimum_group=least)))
        records = Records(np.zeros(N0 + N1, np.uint8), np.repeat([0, 1], [N0, N1]).astype(np.uint8), ("sp",), least)
        asked = BatchQuestion("sp", np.random.default_rng(1).random((QUERIES, N0 + N1)), records)
        noise = Seeded(np.random.default_rng(2))
        delta = 0.0 if MECHANISMS[name].guarantee == "pure" else DELTA
        released = [MECHANISMS[name].release(asked, NO_FACTS, EPSILON, delta, noise).values for _ in range(150)]
        errors = (np.array(released) - asked.gaps()).ravel() / law.scale
        # 3,000 answers; a sound law fails with probability 1e-7, and one of half or twice the scale does not pass.
        reference = REFERENCES[type(law)]
        assert kstest(errors, reference).pvalue > 1e-7
        assert kstest(errors / 2, reference).pvalue < 1e-7
        assert kstest(errors * 2, reference).pvalue < 1e-7


def test_what_is_released_without_noise_has_the_law_of_its_rounding_or_none() -> None:
    assert MECHANISM_LAWS["round"].error(BATCH) == Uniform(0.005)
    for name in ("exact", "randomized-response"):
        assert MECHANISM_LAWS[name].error(BATCH) is None
    for name in ("pass-fail", "sparse-vector", "exponential"):
        assert MECHANISM_LAWS[name].error(BATCH) == CHOICE


def test_no_loss_exceeds_what_is_charged() -> None:
    for name, row in MECHANISM_LAWS.items():
        if row.loss is None:
            continue
        delta = 0.0 if MECHANISMS[name].guarantee == "pure" else DELTA
        loss = row.loss(NoiseInputs("sp", 2, 10, 3, EPSILON, delta))
        assert 0 < loss <= MECHANISMS[name].cost(EPSILON, delta).epsilon * (1 + 1e-9)
        assert not math.isinf(loss)


@pytest.mark.parametrize("n", [3, 9])
def test_the_loss_of_cauchy_noise_is_the_worst_of_both_neighbours_at_all_counts(n: int) -> None:
    row = MECHANISM_LAWS["cauchy"]
    assert row.loss is not None
    for n0 in range(1, n):
        here = row.error(NoiseInputs("sp", n0, n - n0, QUERIES, EPSILON))
        assert isinstance(here, Cauchy)
        worst = 0.0
        for other in (n0 - 1, n0 + 1):
            if 0 < other < n:
                there = row.error(NoiseInputs("sp", other, n - other, QUERIES, EPSILON))
                assert isinstance(there, Cauchy)
                shift = flip_sensitivity("sp", n, n0 if other < n0 else n - n0)
                worst = max(worst, QUERIES * cauchy_loss(shift, here.scale, there.scale))
        assert row.loss(NoiseInputs("sp", n0, n - n0, QUERIES, EPSILON)) == pytest.approx(worst, rel=1e-9)
