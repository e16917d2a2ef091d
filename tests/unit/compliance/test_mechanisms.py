"""Every statistical test has a fixed seed and a false-alarm rate of 1e-7 over the choice of that seed."""

import math

import numpy as np
import pytest
import scipy.stats

from compliance.mechanisms import MECHANISMS, Mechanism
from fairwall.laws.calibration import conceal_law, laplace_law

FALSE_ALARM = 1e-7
EVERY = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=list(MECHANISMS))


def test_table_is_keyed_by_names() -> None:
    assert {name: mechanism.name for name, mechanism in MECHANISMS.items()} == {name: name for name in MECHANISMS}
    assert list(MECHANISMS) == ["exact", "laplace", "conceal"]


def test_cost() -> None:
    assert MECHANISMS["exact"].cost(1.0) == math.inf
    assert MECHANISMS["laplace"].cost(0.5) == MECHANISMS["conceal"].cost(0.5) == 0.5


@EVERY
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_epsilon_out_of_range_is_refused(mechanism: Mechanism, epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon must be above 0"):
        mechanism.cost(epsilon)
    with pytest.raises(ValueError, match="epsilon must be above 0"):
        mechanism.release(np.zeros(2), "sp", 4, 5, epsilon, np.random.default_rng(0))


@EVERY
def test_contract(mechanism: Mechanism) -> None:
    exact = np.linspace(-1, 1, 7)
    before = exact.copy()
    first = mechanism.release(exact, "sp", 4, 5, 1.0, np.random.default_rng(9))
    assert first.shape == (7,)
    assert first.dtype == np.float64
    assert first is not exact
    assert exact.tolist() == before.tolist()
    assert mechanism.release(exact, "sp", 4, 5, 1.0, np.random.default_rng(9)).tolist() == first.tolist()


@EVERY
def test_no_limit_on_epsilon_is_exact_and_costs_infinitely(mechanism: Mechanism) -> None:
    exact = np.array([0.25, -0.5])
    assert mechanism.cost(math.inf) == math.inf
    assert mechanism.release(exact, "sp", 4, 5, math.inf, np.random.default_rng(0)).tolist() == exact.tolist()


@pytest.mark.parametrize("metric", ["sp", "abs_eo"])
def test_laplace_noise_follows_its_law(metric: str) -> None:
    # One batch of many queries: the scale counts them all.
    exact = np.full(100_000, 0.3)
    noise = MECHANISMS["laplace"].release(exact, metric, 10, 90, 5.0, np.random.default_rng(1)) - exact
    law = laplace_law(metric, 100, 100_000, 5.0)
    assert scipy.stats.kstest(noise, scipy.stats.laplace(scale=law.scale).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("metric", ["sp", "abs_eo"])
def test_conceal_noise_follows_its_law(metric: str) -> None:
    exact = np.full(100_000, 0.3)
    noise = MECHANISMS["conceal"].release(exact, metric, 10, 90, 5.0, np.random.default_rng(2)) - exact
    law = conceal_law(metric, 10, 90, 100_000, 5.0)
    assert scipy.stats.kstest(noise, scipy.stats.cauchy(scale=law.scale).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", ["laplace", "conceal"])
def test_an_empty_batch_and_an_unknown_metric_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="queries must be"):
        MECHANISMS[name].release(np.zeros(0), "sp", 4, 5, 1.0, np.random.default_rng(0))
    with pytest.raises(ValueError, match="unknown metric"):
        MECHANISMS[name].release(np.zeros(1), "x", 4, 5, 1.0, np.random.default_rng(0))
