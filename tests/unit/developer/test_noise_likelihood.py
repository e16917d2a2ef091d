"""The laws that a developer reckons with are those of compliance's real mechanisms; what they say of a number.

Every statistical test has a fixed seed and a false-alarm rate of 1e-7 over the choice of that seed.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion, Facts, MechanismAnswer
from compliance.mechanisms.randomized_response import ATTRIBUTES
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from developer.reveal.decode.ep import settled
from developer.reveal.decode.likelihood import (
    counts_size,
    law_of,
    noisy_attributes,
    size_prior,
    size_weights,
    smeared,
    told_by_size,
)
from developer.reveal.strategies.sizes import alone
from developer.reveal.strategies.strategy import PublicTerms
from fairwall.laws.noise.distributions import Cauchy, Gaussian, Laplace, NoiseDistribution, Uniform
from fairwall.laws.noise.linf_ball import CubeNoise

FALSE_ALARM = 1e-7
N, N0 = 40, 10
N1 = N - N0
A = np.where(np.random.default_rng(1).permutation(N) < N0, 0, 1).astype(np.uint8)
RECORDS = Records(np.zeros(N, np.uint8), A, ("sp",))
DISTRIBUTIONS: dict[type, Callable[[float], Any]] = {
    Laplace: lambda scale: scipy.stats.laplace(scale=scale),
    Cauchy: lambda scale: scipy.stats.cauchy(scale=scale),
    Gaussian: lambda scale: scipy.stats.norm(scale=scale),
    Uniform: lambda scale: scipy.stats.uniform(-scale, 2 * scale),
}


def balanced(m: int, seed: int = 2) -> NDArray[np.float64]:
    """Rows that accept half of the people."""
    half = np.tile(np.repeat([0.0, 1.0], N // 2), (m, 1))
    return np.random.default_rng(seed).permuted(half, axis=1)


def ask(
    mechanism: str, rows: NDArray[np.float64], epsilon: float, delta: float, facts: Facts = NO_FACTS
) -> MechanismAnswer:
    noise = Seeded(np.random.default_rng(3))
    return MECHANISMS[mechanism].release(BatchQuestion("sp", rows, RECORDS), facts, epsilon, delta, noise)


def gap(rows: NDArray[np.float64], n0: int = N0) -> NDArray[np.float64]:
    return rows @ np.where(A == 1, 1 / (N - n0), -1 / n0)


def p_value(errors: NDArray[np.float64], law: NoiseDistribution, factor: float = 1.0) -> float:
    return float(scipy.stats.kstest(errors, DISTRIBUTIONS[type(law)](law.scale * factor).cdf).pvalue)


def test_the_law_is_that_of_the_mechanism() -> None:
    for mechanism, epsilon, delta in (
        ("laplace", 50.0, 0.0),
        ("gaussian", 50.0, 1e-5),
        ("conceal", 2000.0, 0.0),
        ("conceal-laplace", 0.9, 1e-3),
        ("cauchy", 2000.0, 0.0),
        ("propose-test-release", 5000.0, 1e-3),
        ("round", 1.0, 0.0),
    ):
        m = 3000
        rows = np.random.default_rng(4).random((m, N))
        law = law_of(PublicTerms(mechanism=mechanism, delta=delta), n0=N0, n1=N1, queries=m, epsilon=epsilon)
        assert law is not None
        errors = ask(mechanism, rows, epsilon, delta).values - gap(rows)
        assert p_value(errors, law) > FALSE_ALARM
        assert p_value(errors, law, 2.0) < FALSE_ALARM
        assert p_value(errors, law, 0.5) < FALSE_ALARM


@pytest.mark.parametrize(("mechanism", "epsilon", "delta"), [("counts", 6000.0, 0.0), ("counts-gaussian", 300.0, 1e-5)])
def test_the_law_is_that_of_noisy_counts(mechanism: str, epsilon: float, delta: float) -> None:
    m, rows = 3000, balanced(3000)
    bought = ask(mechanism, alone(N, 0)[None], 3.0, max(delta, 0.0)).facts
    answers = ask(mechanism, rows, epsilon, delta, bought).values
    n0 = int(bought["n0"][0])
    law = law_of(PublicTerms(mechanism=mechanism, delta=delta), n0=n0, n1=N - n0, queries=m, epsilon=epsilon)
    assert law is not None
    # Not the sums that were moved to what is possible, 0 or all: with this little noise there are few.
    sums = (rows.sum(axis=1) / (N - n0) - answers) / (1 / n0 + 1 / (N - n0))
    inside = (sums > 1e-6) & (sums < n0 - 1e-6)
    assert inside.mean() > 0.99
    # As decoders see them: rows less their means.
    errors = (answers - gap(rows - 0.5, n0))[inside]
    assert p_value(errors, law) > FALSE_ALARM
    assert p_value(errors, law, 2.0) < FALSE_ALARM
    assert counts_size(N, rows[:20], answers[:20], law.scale / (1 / n0 + 1 / (N - n0))) == n0


@pytest.mark.parametrize(("mechanism", "epsilon", "delta"), [("counts", 6000.0, 0.0), ("counts-gaussian", 300.0, 1e-5)])
def test_a_first_batch_of_noisy_counts_buys_the_size_too(mechanism: str, epsilon: float, delta: float) -> None:
    m, rows = 3000, balanced(3000)
    bought = ask(mechanism, rows, epsilon, delta)
    n0 = int(bought.facts["n0"][0])
    terms = PublicTerms(mechanism=mechanism, delta=delta, n0=N0, first=True)
    first, later = (
        law_of(one, n0=n0, n1=N - n0, queries=m, epsilon=epsilon) for one in (terms, replace(terms, first=False))
    )
    assert first is not None
    assert later is not None
    assert first.median_abs() > 1.005 * later.median_abs()
    sums = (rows.sum(axis=1) / (N - n0) - bought.values) / (1 / n0 + 1 / (N - n0))
    inside = (sums > 1e-6) & (sums < n0 - 1e-6)
    assert p_value((bought.values - gap(rows - 0.5, n0))[inside], first) > FALSE_ALARM


@pytest.mark.parametrize("epsilon", [2.0])
def test_who_knows_n0_finds_out_how_many_noisy_attributes_are_1(epsilon: float) -> None:
    rows = balanced(36)
    bought = ask("randomized-response", rows, epsilon, 0.0)
    terms = PublicTerms(mechanism="randomized-response", epsilon=epsilon, n0=N0, first=True)
    evidence = settled(terms, None, rows, bought.values, size_epsilon=0.0, epsilon=epsilon)
    noisy = bought.facts[ATTRIBUTES]
    assert (evidence.n0, evidence.n1) == (N - noisy.sum(), noisy.sum())


def test_sizes_are_public_or_asked_for() -> None:
    with pytest.raises(ValueError, match="public or asked for"):
        told_by_size(PublicTerms(), None, N, math.inf)


def test_randomized_response_is_exact_about_noisy_attributes() -> None:
    for epsilon, first in ((1.0, 0), (3.0, 2), (8.0, 4)):
        rows = balanced(20)
        bought = ask("randomized-response", alone(N, first)[None], epsilon, 0.0)
        (noisy,) = bought.facts[ATTRIBUTES]
        answers = ask("randomized-response", rows, epsilon, 0.0, bought.facts).values
        n0, n1, gaps = noisy_attributes(N, float(bought.values[0]), answers, epsilon)
        assert (n0, n1) == (N - noisy.sum(), noisy.sum())
        own = rows @ np.where(noisy == 1, 1 / n1, -1 / n0)
        # Where an estimated sum was moved to what is possible it says less.
        assert np.mean(np.abs(gaps - own) < 1e-9) > 0.6


def test_no_noise_has_no_law() -> None:
    for mechanism in ("exact", "randomized-response", "recommended"):
        about = {"n0": N0, "n1": N1, "queries": 5}
        assert law_of(PublicTerms(mechanism=mechanism), **about, epsilon=10.0) is None
        assert law_of(PublicTerms(mechanism="laplace"), **about, epsilon=math.inf) is None
        assert law_of(PublicTerms(mechanism=mechanism, precision=3), **about, epsilon=10.0) == Uniform(0.0005)
        assert law_of(PublicTerms(mechanism="laplace", precision=3), **about, epsilon=10.0) == law_of(
            PublicTerms(mechanism="laplace"), **about, epsilon=10.0
        )


def test_every_mechanism_and_metric_has_an_answer() -> None:
    for metric in ("abs_sp", "eodds_sum", "ppv"):
        for mechanism in MECHANISMS:
            terms = PublicTerms(metric=metric, mechanism=mechanism, delta=1e-5)
            law = law_of(terms, n0=N0, n1=N1, queries=5, epsilon=0.5)
            assert law is None or law.scale > 0


def test_an_unknown_mechanism_has_none() -> None:
    with pytest.raises(ValueError, match="unknown mechanism"):
        law_of(PublicTerms(mechanism="hope"), n0=N0, n1=N1, queries=5, epsilon=0.5)


def test_smeared_densities_and_their_slopes() -> None:
    for law, variance in (
        (Laplace(0.3), 0.2),
        (Cauchy(0.3), 40.0),
        (Gaussian(0.3), 1e-3),
        (Uniform(0.3), 0.2),
        (Laplace(1e-6), 1e-3),
    ):
        r = np.array([-2.0, -0.29, -0.1, 0.0, 0.05, 0.4, 3.0])
        t = math.sqrt(variance)
        if isinstance(law, Uniform):
            r = r[np.abs(r) < law.scale + 8 * t]
        log, g, h = smeared(law, r, np.full(r.size, variance))
        # Against brute force: a fine sum over the law's error, dense around 0 and around r.
        if law.scale > 1e-3:
            grid = np.concatenate([np.linspace(-400, 400, 160_001), np.linspace(-1, 1, 40_001)])
            grid = np.unique(grid)
            width = np.gradient(grid)
            density = np.exp(law.log_density(grid)) * width
            reference = [np.log(density @ scipy.stats.norm(x, t).pdf(grid)) for x in r]
            assert log == pytest.approx(reference, abs=2e-3)
        step = 1e-4 * max(t, law.scale)
        up, down = (smeared(law, r + sign * step, np.full(r.size, variance)) for sign in (1, -1))
        assert g == pytest.approx((down[0] - up[0]) / (2 * step), rel=1e-4, abs=1e-4 / t)
        assert h == pytest.approx((up[1] - down[1]) / (2 * step), rel=1e-3, abs=1e-3 / variance)


def test_smeared_stays_finite() -> None:
    r = np.array([-1e9, -1e3, 0.0, 1e-9, 50.0, 1e6])
    laws = (Laplace(0.3), Cauchy(0.3), Gaussian(0.3), Uniform(0.3), CubeNoise(0.3, 7), CubeNoise(0.3, 2, 3.0))
    for law, variance in itertools.product(laws, (1e-10, 1e-3, 1.0, 1e6)):
        assert all(np.isfinite(part).all() for part in smeared(law, r, np.full(r.size, variance)))


def test_a_cubes_smeared_density_and_its_slopes() -> None:
    for law, variance in ((CubeNoise(0.3, 1), 1e-3), (CubeNoise(0.05, 60), 0.1), (CubeNoise(1 / 3, 2, 3.0), 4.0)):
        r, t = law.scale * law.sides * np.array([-1.2, -0.9, -0.2, 0.0, 0.05, 0.5, 1.1]), math.sqrt(variance)
        log, g, h = smeared(law, r, np.full(r.size, variance))
        grid = np.linspace(-40, 40, 80_001)
        density = np.exp(law.log_density(grid)) * (grid[1] - grid[0])
        # T stands at some of its quantiles only, where the spread is large.
        exact = [np.log(density @ scipy.stats.norm(x, t).pdf(grid)) for x in r]
        assert log == pytest.approx(exact, abs=0.05)
        step = 1e-3 * t
        up, down = (smeared(law, r + sign * step, np.full(r.size, variance)) for sign in (1, -1))
        assert g == pytest.approx((down[0] - up[0]) / (2 * step), rel=1e-3, abs=1e-3 / t)
        assert h == pytest.approx((up[1] - down[1]) / (2 * step), rel=1e-3, abs=1e-3 / variance)


@pytest.mark.check
@pytest.mark.parametrize("first", [True])
def test_the_law_is_that_of_a_cube(first: bool) -> None:
    # One answer of each of many batches: those of one share a size. Two say the same, and one is the same for all.
    # No decisions: with (N1 - N0) / N = 1/2 N0 and N1 would be as likely.
    scores = np.random.default_rng(2).random((12, N))
    rows = np.vstack([scores, np.full((1, N), 0.3), 1 - scores[:1]])
    noise = Seeded(np.random.default_rng(3))
    rows[1] = 0.4 + rows[1] / 5
    question, errors, epsilon = BatchQuestion("sp", rows, RECORDS), [], 200.0
    bought = ask("cube", alone(N, 0)[None], 30.0, 0.0).facts
    for _ in range(400):
        answer = MECHANISMS["cube"].release(question, NO_FACTS if first else bought, epsilon, 0.0, noise)
        n0 = round(float((answer.facts if first else bought)["n0"][0]))
        terms = PublicTerms(mechanism="cube", first=first)
        seen = settled(terms, 0.0, rows, answer.values, size_epsilon=1.0, epsilon=epsilon)
        assert (seen.n0, seen.rows.shape) == (n0, (12, N))
        assert isinstance(seen.noise, CubeNoise)
        assert seen.noise.sides == 12 + first
        # Answers that were moved to what is possible have no such law; with so little noise there are none.
        errors.append(((seen.gaps - gap(seen.rows - 0.5, n0)) / seen.noise.scale)[:4])
    law = CubeNoise(1.0, 12 + first)
    for of_row in np.abs(np.array(errors)).T:
        for level in (0.2, 0.5, 0.9):
            within = int((of_row < law.reach(level)).sum())
            assert scipy.stats.binomtest(within, 400, level).pvalue > FALSE_ALARM


def test_uniform_is_a_law() -> None:
    law = Uniform(0.5)
    assert law.log_density([0.0, 0.5, 0.6]).tolist() == [0.0, 0.0, -math.inf]
    assert law.log_density(0.2).shape == ()
    assert p_value(law.sample(np.random.default_rng(5), 3000), law) > FALSE_ALARM
    assert law.median_abs() == 0.25
    assert Uniform(0.0).sample(np.random.default_rng(5), 3).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="scale"):
        Uniform(-1.0)


def test_an_exact_size_query_tells_the_size() -> None:
    for n0 in (1, 20, 39):
        for answer in (1 / (N - n0), -1 / n0):
            told = told_by_size(PublicTerms(), answer, N, math.inf)
            assert int(np.argmax(told)) + 1 == n0
            settled_ = settled(PublicTerms(), answer, np.eye(N), np.zeros(N), size_epsilon=math.inf, epsilon=math.inf)
            assert (settled_.n0, settled_.noise) == (n0, None)


def test_a_public_size_is_believed() -> None:
    terms = PublicTerms(mechanism="conceal", epsilon=10.0, n0=12)
    told = told_by_size(terms, 5.0, N, 1.0)
    assert size_weights(terms, told, np.eye(N), np.zeros(N), 9.0).tolist() == [float(k == 12) for k in range(1, N)]


def test_the_size_prior_is_a_distribution_over_the_public_range() -> None:
    weights = size_prior(100)
    assert weights.sum() == pytest.approx(1)
    assert (np.flatnonzero(weights)[[0, -1]] + 1).tolist() == [5, 50]


def test_sizes_are_weighed_by_the_spread_of_answers() -> None:
    """Right sizes get more weight than wrong ones, on average: the mean log-weight of the truth beats the prior's."""
    terms, rng, gained = PublicTerms(mechanism="conceal", epsilon=1e4), np.random.default_rng(6), []
    for _ in range(30):
        rows = rng.integers(0, 2, (40, N)).astype(np.float64)
        law = law_of(terms, n0=N0, n1=N1, queries=40, epsilon=1e4)
        assert law is not None
        gaps = gap(rows) + law.sample(rng, 40)
        weights = size_weights(terms, np.log(np.maximum(size_prior(N), 1e-300)), rows, gaps, 1e4)
        gained.append(math.log(weights[N0 - 1] / size_prior(N)[N0 - 1]))
    assert np.mean(gained) > 0.3
