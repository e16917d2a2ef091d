"""The laws against scipy's, and their samples against the laws.

Every statistical test has a fixed seed and a false-alarm rate of 1e-7 over the choice of that seed.
"""

import math

import numpy as np
import pytest
import scipy.stats

from fairwall.laws.noise.distributions import Cauchy, Gaussian, Laplace, NoiseDistribution

FALSE_ALARM = 1e-7
LAWS = [(Laplace, scipy.stats.laplace), (Cauchy, scipy.stats.cauchy)]


def test_log_density() -> None:
    for law, reference in LAWS:
        for scale in (1e-6, 700.0):
            x = scale * np.array([[-40.0, -1.0, 0.0], [1e-9, 0.5, 600.0]])
            np.testing.assert_allclose(law(scale).log_density(x), reference.logpdf(x, scale=scale), rtol=1e-12)


def test_log_density_far_out_does_not_overflow() -> None:
    assert float(Cauchy(1.0).log_density(1e200)) == pytest.approx(-math.log(math.pi) - 400 * math.log(10))


@pytest.mark.parametrize(("law", "reference"), LAWS)
def test_samples_follow_the_law(law: type[Laplace | Cauchy], reference: scipy.stats.rv_continuous) -> None:
    sample = law(2.5).sample(np.random.default_rng(20230612), 200_000)
    assert scipy.stats.kstest(sample, reference(scale=2.5).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("law", [Laplace(0.7), Cauchy(0.7)])
def test_median_of_absolute_noise(law: NoiseDistribution) -> None:
    # The count of draws below the true median is binomial(n, 1/2).
    sample = np.abs(law.sample(np.random.default_rng(7), 100_000))
    below = int((sample < law.median_abs()).sum())
    assert scipy.stats.binomtest(below, 100_000, 0.5).pvalue > FALSE_ALARM


def test_mean_of_absolute_noise() -> None:
    assert Laplace(0.7).median_abs() == pytest.approx(0.7 * math.log(2))
    # |Laplace| is exponential with standard deviation = mean; 5.5 standard errors is about 4e-8 for a normal mean.
    sample = np.abs(Laplace(0.7).sample(np.random.default_rng(8), 100_000))
    assert abs(sample.mean() - 0.7) < 5.5 * 0.7 / math.sqrt(100_000)


@pytest.mark.parametrize(("law", "reference"), [(Laplace, scipy.stats.laplace), (Gaussian, scipy.stats.norm)])
def test_variance(law: type[Laplace | Gaussian], reference: scipy.stats.rv_continuous) -> None:
    assert law(0.7).variance() == pytest.approx(reference.var(scale=0.7))
    assert law(0.0).variance() == 0


@pytest.mark.parametrize("law", [Laplace(0.0), Cauchy(0.0)])
def test_scale_zero_is_no_noise(law: NoiseDistribution) -> None:
    rng = np.random.default_rng(3)
    assert law.sample(rng, (2, 3)).tolist() == [[0.0] * 3] * 2
    assert rng.random() == np.random.default_rng(3).random()
    assert law.log_density([-1.0, 0.0, 2.0]).tolist() == [-math.inf, 0.0, -math.inf]
    assert law.median_abs() == 0


@pytest.mark.parametrize("law", [Laplace, Cauchy])
def test_sample_has_the_shape_asked_for(law: type[Laplace | Cauchy]) -> None:
    rng = np.random.default_rng(0)
    assert law(1.0).sample(rng, 4).shape == (4,)
    assert law(1.0).sample(rng, (2, 5)).shape == (2, 5)
    assert law(1.0).sample(rng, 4).dtype == np.float64


@pytest.mark.parametrize("law", [Laplace, Cauchy])
def test_scale_out_of_range_is_refused(law: type[Laplace | Cauchy]) -> None:
    for scale in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="scale"):
            law(scale)
