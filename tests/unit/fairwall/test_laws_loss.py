"""What every mechanism that claims pure epsilon really costs, over the whole universe; and the calibrations behind it.

Laplace, Conceal and Cauchy split a batch's budget evenly, and what one query costs depends on epsilon/m alone. So the
universe n = 4..200, m = 1..100, epsilon = 0.1..10 is one of n and epsilon/m.
"""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from numpy.typing import NDArray

from fairwall.laws.mechanisms.calibration import (
    aggregate_law,
    aggregate_loss,
    block_count,
    cauchy_loss,
    conceal_laplace_beta,
    conceal_laplace_law,
    conceal_loss,
    laplace_loss,
)
from fairwall.laws.mechanisms.selection import permute_and_flip_exponents, sparse_vector
from fairwall.laws.metrics.group_size_range import DEFAULT_SHARES, Shares
from fairwall.laws.metrics.sensitivity import global_sensitivity, local_sensitivity, smooth_sensitivity
from fairwall.laws.noise import cauchy
from fairwall.laws.noise.cauchy import Tuning, largest_alpha, tune, tuned_law, tuned_loss
from fairwall.laws.noise.count_noise import (
    Totals,
    counts_loss,
    expected_sums,
    gaussian_scales,
    laplace_scales,
    share_of_size,
    shrunk_sums,
)
from fairwall.laws.noise.distributions import Cauchy, Gaussian, Laplace
from fairwall.laws.noise.gaussian import gaussian_delta, gaussian_epsilon, gaussian_multiplier, gridded_multiplier
from fairwall.laws.noise.randomized_response import response_loss, turning_probability
from tests.support.choice_costs import (
    permute_and_flip_gap_loss,
    permute_and_flip_loss,
    permute_and_flip_probabilities,
    sparse_vector_gap_loss,
    sparse_vector_loss,
)

METRICS = ["sp", "abs_sp"]  # the other differences of means share their laws: only the stratum differs
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0)
ROUNDING = 1 + 1e-11
SAMPLE_N = (4, 5, 6, 7, 10, 31, 32, 100, 199, 200)
SAMPLE_M = (1, 2, 5, 25, 100)


def pure_losses(metric: str, n: int, queries: int, epsilon: float) -> tuple[float, float, float]:
    """The worst loss over all neighbouring counts, as a share of epsilon: Laplace, Conceal, Cauchy."""
    counts = [(n0, n - n0) for n0 in range(1, n // 2 + 1)]
    return (
        max(laplace_loss(metric, *pair, queries, epsilon) for pair in counts) / epsilon,
        max(conceal_loss(metric, *pair, queries, epsilon) for pair in counts) / epsilon,
        float(tuned_loss(metric, n, queries, epsilon).max()) / epsilon,
    )


@pytest.mark.parametrize(("metric", "n"), [("sp", 4), ("abs_sp", 31)])
def test_pure_losses_in_a_sample_of_the_universe(metric: str, n: int) -> None:
    for queries, epsilon in itertools.product(SAMPLE_M, EPSILONS):
        laplace, conceal, cauchy = pure_losses(metric, n, queries, epsilon)
        assert laplace == pytest.approx(1, rel=1e-11)
        assert 0 < conceal <= math.sqrt(2) / 6 * ROUNDING
        # Tight everywhere, not only in the worst case.
        assert 0.99 <= cauchy <= ROUNDING


@pytest.mark.slow(seconds=70)
@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("metric", METRICS)
def test_cauchy_loss_in_the_whole_universe(metric: str, part: int) -> None:
    """Each number of people and each share, and of their pairs a third."""
    shares = sorted({epsilon / queries for queries in range(1, 101) for epsilon in EPSILONS})
    worst = 0.0
    for n, (place, share) in itertools.product(range(4 + part, 201, 3), enumerate(shares)):
        if (n // 3 + place) % 3:
            continue
        loss = float(tuned_loss(metric, n, 1, share).max()) / share
        assert loss <= ROUNDING
        worst = max(worst, loss)
    assert worst >= 0.99


@pytest.mark.slow(seconds=50)
@pytest.mark.parametrize("metric", METRICS)
def test_laplace_and_conceal_losses_in_the_whole_universe(metric: str) -> None:
    for n, queries, epsilon in itertools.product(range(4, 201), (1, 10, 100), EPSILONS):
        laplace, conceal, _ = pure_losses(metric, n, queries, epsilon)
        assert laplace <= ROUNDING
        assert conceal <= math.sqrt(2) / 6 * ROUNDING


def test_counts_loss_is_epsilon_whatever_the_counts() -> None:
    for queries, epsilon in itertools.product(range(1, 101), EPSILONS):
        assert counts_loss(queries, epsilon) == pytest.approx(epsilon, rel=1e-12)
        assert counts_loss(queries, epsilon, size_known=True) == pytest.approx(epsilon, rel=1e-12)
    assert counts_loss(3, math.inf) == math.inf


def test_twin_without_centring_overspends() -> None:
    # Sums of h, not of h - 1/2, move by 1.
    assert counts_loss(25, 5.0, change=1.0) > 1.8 * 5.0


# --- Randomized response, choices, blocks

POSITIVES = (1, 3, 100)


def worst_over_counts(loss: Callable[[int, int], float], n: int) -> float:
    return max(loss(n0, n - n0) for n0 in range(1, n // 2 + 1))


def check_choices_and_blocks(metric: str, n: int, queries: int, epsilon: float) -> None:
    for positives in POSITIVES:
        worst = worst_over_counts(lambda n0, n1: sparse_vector_gap_loss(metric, n0, n1, positives, epsilon), n)  # noqa: B023
        assert worst == pytest.approx(epsilon, rel=1e-11)
    worst = worst_over_counts(lambda n0, n1: permute_and_flip_gap_loss(metric, n0, n1, queries, epsilon), n)
    assert worst == pytest.approx(epsilon if queries > 1 else 0.0, rel=1e-11)
    worst = worst_over_counts(lambda n0, n1: aggregate_loss(metric, n0, n1, queries, epsilon), n)
    # One block is everybody, and moves as the gap does.
    moves = global_sensitivity(metric, n) if n < 64 else 1.0
    assert worst == pytest.approx(epsilon * moves, rel=1e-11)


def test_randomized_response_costs_epsilon_whatever_is_asked() -> None:
    for epsilon in np.geomspace(0.1, 10, 200):
        loss = response_loss(turning_probability(float(epsilon)))
        assert loss == pytest.approx(epsilon, rel=1e-11)
        assert loss <= epsilon * (1 + 1e-14)
    assert response_loss(turning_probability(math.inf)) == math.inf
    with pytest.raises(ValueError, match="probability"):
        response_loss(math.nan)


@pytest.mark.parametrize(("metric", "n"), [("sp", 4), ("abs_sp", 31), ("sp", 64)])
def test_losses_of_choices_and_of_blocks_in_a_sample_of_the_universe(metric: str, n: int) -> None:
    for queries, epsilon in itertools.product(SAMPLE_M, EPSILONS):
        check_choices_and_blocks(metric, n, queries, epsilon)


@pytest.mark.slow(seconds=100)
@pytest.mark.parametrize("metric", METRICS)
def test_losses_of_choices_and_of_blocks_in_the_whole_universe(metric: str) -> None:
    for n, queries, epsilon in itertools.product(range(4, 201), (1, 2, 10, 37, 100), EPSILONS):
        check_choices_and_blocks(metric, n, queries, epsilon)


@pytest.mark.parametrize("queries", [2, 25])
def test_a_choice_costs_what_the_closed_form_says_by_its_probabilities(queries: int) -> None:
    for n, n0, epsilon in itertools.product((4, 10, 200), (1, 2), EPSILONS):
        change, sensitivity = local_sensitivity("abs_sp", n0, n - n0), global_sensitivity("abs_sp", n)
        # The first model is no better than the others and falls while they rise.
        before, after = np.zeros(queries), np.r_[-change, np.full(queries - 1, change)]
        p, q = (
            permute_and_flip_probabilities(permute_and_flip_exponents(scores, sensitivity, epsilon))
            for scores in (before, after)
        )
        losses = np.abs(np.log(p / q))
        assert losses[0] == pytest.approx(permute_and_flip_gap_loss("sp", n0, n - n0, queries, epsilon), rel=1e-9)
        assert losses.max() == losses[0]


def test_twins_that_reckon_with_half_of_what_a_flip_does_overspend_everywhere() -> None:
    for n, queries, epsilon in itertools.product(SAMPLE_N, SAMPLE_M, EPSILONS):
        assert response_loss(turning_probability(2 * epsilon)) > 1.9 * epsilon
        assert response_loss(turning_probability(epsilon) / 2) > epsilon
        change, blocks = global_sensitivity("abs_sp", n), block_count(n)
        for positives in POSITIVES:
            assert sparse_vector_loss(sparse_vector(0.1, change / 2, positives, epsilon), change) > 1.9 * epsilon
        if queries > 1:
            assert permute_and_flip_loss(change, change / 2, queries, epsilon) > 1.9 * epsilon
        assert queries / blocks / aggregate_law(2 * blocks, queries, epsilon).scale > 1.9 * epsilon


def test_no_limit_costs_everything_and_no_neighbours_nothing() -> None:
    for loss in (
        sparse_vector_gap_loss("sp", 2, 5, 3, math.inf),
        permute_and_flip_gap_loss("sp", 2, 5, 3, math.inf),
        aggregate_loss("sp", 2, 5, 3, math.inf),
    ):
        assert loss == math.inf
    assert sparse_vector_gap_loss("sp", 1, 1, 3, 1.0) == aggregate_loss("sp", 1, 1, 3, 1.0) == 0.0
    assert permute_and_flip_gap_loss("sp", 1, 1, 3, 1.0) == 0.0


# --- Cauchy


def test_the_pairs_are_all_neighbouring_counts() -> None:
    metric, n, queries, epsilon = "sp", 23, 5, 3.0
    scales = [tuned_law(metric, n0, n - n0, queries, epsilon).scale for n0 in range(1, n)]
    tuning = tune(metric, n, queries, epsilon)
    for n0, scale in enumerate(scales, start=1):
        assert scale == pytest.approx(smooth_sensitivity(metric, n0, n - n0, tuning.beta) / tuning.alpha, rel=1e-12)
    losses = tuned_loss(metric, n, queries, epsilon)
    assert losses.shape == (n - 2,)
    for s in range(2, n):
        shift = min(local_sensitivity(metric, s, n - s), local_sensitivity(metric, s - 1, n - s + 1))
        # The smaller of the two ends' sensitivities bounds the shift between them; near balance it is the shift.
        assert losses[s - 2] <= queries * cauchy_loss(shift, scales[s - 1], scales[s - 2]) * ROUNDING


def test_largest_alpha_is_safe_and_tight() -> None:
    for epsilon in (1e-3, 0.5, 100.0):
        for part in (0.05, 0.3, 0.6, 0.95):
            beta = part * epsilon
            alpha = largest_alpha(beta, epsilon)
            # Scales 1/alpha and exp(b)/alpha, a shift of the smaller sensitivity, 1.
            losses = [cauchy_loss(1.0, 1 / alpha, math.exp(b) / alpha) for b in np.linspace(0, beta, 200)]
            assert max(losses) == pytest.approx(epsilon, rel=1e-9)


def test_largest_alpha_needs_room() -> None:
    for beta in (0.0, 1.0, 2.0, math.nan):
        with pytest.raises(ValueError, match="beta"):
            largest_alpha(beta, 1.0)


@pytest.mark.parametrize("metric", ["eodds_max"])
def test_other_metrics_get_the_bound_for_all(metric: str) -> None:
    tuning = tune(metric, 100, 5, 2.0)
    assert tuning.alpha == largest_alpha(tuning.beta, 2.0 / 5)


@pytest.mark.parametrize("epsilon", [40.0, 1e6])
def test_a_smoothness_that_rounds_to_all_of_epsilon_is_passed_over(epsilon: float) -> None:
    # log(2 cosh 40 - 1) is 40 in float64, where no scale is large enough.
    tuning = tune("eodds_max", 100, 1, epsilon)
    assert 0 < tuning.beta < epsilon
    assert 0 < tuning.alpha < math.inf


def test_median_noise_near_the_known_optimum() -> None:
    for n, n0, queries, epsilon, known in (
        (100, 10, 25, 5.0, 1.07),
        (100, 10, 25, 10.0, 0.285),
        (1000, 104, 300, 10.0, 1.56),
        (1000, 104, 300, 100.0, 0.032),
        (1000, 104, 1, 1.0, 0.0103),
    ):
        # The known ones were tuned to n0, which is private; ours to a range of shares.
        assert tuned_law("sp", n0, n - n0, queries, epsilon).scale <= 1.06 * known


def test_beta_is_public() -> None:
    assert {tune("sp", 100, 25, 5.0) for _ in range(3)} == {tune("sp", 100, 25, 5.0, DEFAULT_SHARES)}
    assert tune("sp", 100, 25, 5.0, Shares(0.02, 0.05)) != tune("sp", 100, 25, 5.0, Shares(0.4, 0.5))
    assert tune("sp", 100, 1, 1e9).alpha > 0


def test_no_limit_and_no_neighbours_need_no_noise() -> None:
    assert tuned_law("sp", 10, 90, 25, math.inf) == Cauchy(0.0)
    assert tuned_law("sp", 1, 1, 25, 1.0) == Cauchy(0.0)


def test_unbounded_metrics_are_refused() -> None:
    with pytest.raises(ValueError, match="without limit"):
        tune("di", 100, 25, 5.0)


def test_twin_with_beta_from_the_private_counts_overspends() -> None:
    # Each database tunes beta to its own n0 and takes the alpha that is right for that beta.
    n, queries, epsilon = 100, 25, 5.0

    def own(n0: int) -> float:
        tuning: Tuning = tune("sp", n, queries, epsilon, Shares(n0 / n, n0 / n))
        return smooth_sensitivity("sp", n0, n - n0, tuning.beta) / tuning.alpha

    losses = []
    for s in range(2, 40):
        shift = min(local_sensitivity("sp", s, n - s), local_sensitivity("sp", s - 1, n - s + 1))
        losses.append(queries * cauchy_loss(shift, own(s), own(s - 1)))
    assert max(losses) > epsilon


# --- Gaussian


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (5.0, 1e-9), (50.0, 0.1)])
def test_gaussian_multiplier_is_the_least(epsilon: float, delta: float) -> None:
    multiplier = gaussian_multiplier(epsilon, delta)
    assert gaussian_delta(multiplier, epsilon) <= delta
    assert gaussian_delta(multiplier * (1 - 1e-9), epsilon) > delta * (1 - 1e-6)
    law = Gaussian(multiplier)

    def excess(x: float) -> float:
        return max(0.0, math.exp(law.log_density(x - 1)) - math.exp(epsilon + law.log_density(x)))

    # The integrand is positive from where the log-ratio is epsilon.
    start = epsilon * multiplier**2 + 0.5
    measured, _ = scipy.integrate.quad(excess, start, start + 12 * multiplier, epsabs=0, epsrel=1e-10)
    assert measured == pytest.approx(delta, rel=1e-4)


def test_gaussian_noise_states_the_least_epsilon_at_its_delta() -> None:
    for multiplier, delta in ((1.0, 1e-5), (1e-3, 1e-6), (1e6, 1e-3)):
        epsilon = gaussian_epsilon(multiplier, delta)
        assert 0 < epsilon <= 0.5 / multiplier**2 + math.sqrt(2 * math.log(1 / delta)) / multiplier


@pytest.mark.parametrize(("multiplier", "epsilon"), [(1e4, 2e-4), (501.0, 1e-6), (1e6, 3e-6), (400.0, 2e-3)])
def test_delta_is_its_definition_where_two_laws_hardly_differ(multiplier: float, epsilon: float) -> None:
    # In units of the noise: the integral of phi(z - 1/r) - exp(epsilon) phi(z) from where it is positive.
    start = epsilon * multiplier + 0.5 / multiplier

    def excess(z: float) -> float:
        return math.exp(epsilon - z * z / 2) / math.sqrt(2 * math.pi) * math.expm1((z - start) / multiplier)

    measured, _ = scipy.integrate.quad(excess, start, start + 12, epsabs=0, epsrel=1e-12)
    assert gaussian_delta(multiplier, epsilon) == pytest.approx(measured, rel=1e-9, abs=0)


def test_a_known_point_of_the_gaussian_trade_off() -> None:
    # From the definition, by quadrature with 50 digits: multiplier 1, epsilon 1 has delta 0.12693673750664395.
    assert gaussian_epsilon(1.0, 0.12693673750664395) == pytest.approx(1.0, rel=1e-12)


def test_gaussian_agrees_with_dp_accounting() -> None:
    dp_accounting = pytest.importorskip("dp_accounting")
    for epsilon, delta in ((0.5, 1e-5), (3.0, 1e-7)):
        theirs = dp_accounting.get_sigma_gaussian(epsilon, delta)
        assert gaussian_multiplier(epsilon, delta) == pytest.approx(theirs, rel=1e-6)


def test_the_grid_costs_gaussian_noise_next_to_nothing() -> None:
    least = gaussian_multiplier(1.0, 1e-5)
    assert least < gridded_multiplier(1.0, 1e-5, 100, 2.0**20) < least * (1 + 1e-6)
    with pytest.raises(ValueError, match="too coarse"):
        gridded_multiplier(1e-9, 1e-5, 100, 2.0**10)
    # At 32 steps a coordinate costs 1: up to half of epsilon may go to the grid.
    assert gridded_multiplier(2.0, 1e-5, 1, 32.0) == gaussian_multiplier(1.0, 1e-5)


@pytest.mark.parametrize("steps", [8, 64])
def test_the_slack_covers_the_discrete_law(steps: int) -> None:
    # Log-ratio of the discrete Gaussian's and the rounded Gaussian's probabilities, as far as 30 sigma.
    k = np.arange(-30 * steps, 30 * steps + 1)
    sigma = float(steps)
    discrete = -0.5 * (k / sigma) ** 2
    discrete -= np.log(np.exp(discrete).sum())
    rounded = _log_rounded(k, sigma)
    assert np.abs(discrete - rounded).max() <= 1024 / 2 / steps**2


def _log_rounded(k: NDArray[np.int64], sigma: float) -> NDArray[np.float64]:
    low = scipy.stats.norm.logsf((np.abs(k) - 0.5) / sigma)
    high = scipy.stats.norm.logsf((np.abs(k) + 0.5) / sigma)
    log: NDArray[np.float64] = low + np.log1p(-np.exp(high - low))
    return log


def test_gaussian_noise_needs_a_delta_and_without_limit_is_none() -> None:
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="delta"):
            gaussian_multiplier(1.0, delta)
    assert gaussian_multiplier(math.inf, 1e-5) == 0.0


# --- Theorem 8


def test_theorem_8() -> None:
    beta = conceal_laplace_beta(25, 0.5, 1e-5)
    assert beta == pytest.approx(0.5 / (4 * (25 + math.log(2e5))))
    law = conceal_laplace_law("sp", 10, 90, 25, 0.5, 1e-5)
    assert law == Laplace(2 * 25 * smooth_sensitivity("sp", 10, 90, beta) / 0.5)
    with pytest.raises(ValueError, match="delta"):
        conceal_laplace_beta(25, 0.5, 0.0)


@pytest.mark.parametrize(("n0", "queries"), [(2, 1), (3, 5)])
def test_theorem_8_keeps_delta_by_simulation(n0: int, queries: int) -> None:
    # delta is the mean of max(0, 1 - exp(epsilon - loss)), of draws in [0, 1]: Hoeffding, false-alarm rate 1e-7.
    epsilon, delta, draws = 0.95, 0.02, 100_000
    generator = np.random.default_rng(8)
    for other in (n0 - 1, n0 + 1):
        here, there = (conceal_laplace_law("sp", k, 100 - k, queries, epsilon, delta) for k in (n0, other))
        shift = min(local_sensitivity("sp", k, 100 - k) for k in (n0, other))
        x = here.sample(generator, (draws, queries))
        loss = (here.log_density(x) - there.log_density(x - shift)).sum(axis=1)
        measured = np.maximum(0, -np.expm1(epsilon - loss)).mean()
        assert measured <= delta + math.sqrt(math.log(1e7) / (2 * draws))


# --- counts


def test_scales_split_the_budget() -> None:
    assert share_of_size(8) == 1 / 5
    scales = laplace_scales(8, 2.0)
    assert (scales.size, scales.sums) == (pytest.approx(1 / 0.4), pytest.approx(8 * 0.5 / 1.6))
    assert laplace_scales(8, 2.0, size_known=True).sums == pytest.approx(8 * 0.5 / 2.0)
    assert laplace_scales(8, 2.0, size_known=True).size == 0
    for known in (False, True):
        gaussian = gaussian_scales(8, 3.0, size_known=known)
        size = 0.0 if known else gaussian.size**-2
        assert size + 8 * 0.25 / gaussian.sums**2 == pytest.approx(1 / 3.0**2)


def test_expected_sums_are_posterior_means() -> None:
    for gaussian, noisy, widest in ((False, -1.3, 2.0), (False, 25.0, 400.0), (True, 3.0, 400.0), (True, -40.0, 2.0)):
        scale, chance = 1.7, 0.9
        law = Gaussian(scale) if gaussian else Laplace(scale)
        (expected,) = expected_sums(np.array([noisy]), np.array([chance]), widest, scale, gaussian=gaussian)
        spreads = chance * np.geomspace(1, max(2.0, widest / chance), 17)
        weights = np.array([2.0, *np.full(16, 1 / 16)])
        u = np.linspace(-120, 120, 240_001)  # beyond, there is less than 1e-20 of the posterior
        likelihood = np.exp(law.log_density(noisy - u))
        densities = [np.exp(Gaussian(spread).log_density(u)) * likelihood for spread in spreads]
        mass = weights @ [np.trapezoid(density, u) for density in densities]
        mean = weights @ [np.trapezoid(density * u, u) for density in densities] / mass
        assert expected == pytest.approx(mean, abs=1e-6)


def test_expected_sums_of_a_batch_learn_from_one_another() -> None:
    spread, scale = np.full(25, 1.0), 10.0
    alone = expected_sums(np.array([40.0]), spread[:1], 1000.0, scale)[0]
    together = expected_sums(np.full(25, 40.0), spread, 1000.0, scale)[0]
    quiet = expected_sums(np.r_[40.0, np.zeros(24)], spread, 1000.0, scale)[0]
    assert 0 < quiet < alone < together < 40


def test_expected_sums_at_the_ends() -> None:
    assert expected_sums(np.array([5.0, 5.0]), np.array([0.0, 0.0]), 10.0, 1.0).tolist() == [0.0, 0.0]
    # Noise that is nothing against chance changes nothing; chance that is nothing against noise leaves nothing.
    for gaussian in (False, True):
        x = np.array([-30.0, 4.0])
        assert expected_sums(x, np.ones(2) * 10, 1e6, 1e-7, gaussian=gaussian) == pytest.approx(x, rel=1e-6)
        assert expected_sums(x, np.ones(2) * 1e-9, 1e-8, 1e3, gaussian=gaussian) == pytest.approx([0, 0], abs=1e-2)
        far = expected_sums(np.array([1e9]), np.ones(1), 10.0, 1.0, gaussian=gaussian)
        assert np.isfinite(far).all()


def test_shrunk_sums_move_towards_no_gap() -> None:
    totals = Totals(100, np.array([30.0]), np.array([0.21]))
    by_chance = 10 * (0.3 - 0.5)
    for noisy in (-60.0, 3.0, 40.0):
        (shrunk,) = shrunk_sums(np.array([noisy]), 10, totals, 5.0, gaussian=False)
        assert min(noisy, by_chance) < shrunk < max(noisy, by_chance)


# --- shares


def test_shares() -> None:
    assert DEFAULT_SHARES.counts(1000) == tuple(range(50, 501, 50))
    assert DEFAULT_SHARES.counts(4)[0] == 1
    assert Shares(0.3, 0.3).counts(10) == (3,) * 10
    for low, high in ((0.0, 0.5), (0.5, 0.2), (0.2, 1.0), (math.nan, 0.5)):
        with pytest.raises(ValueError, match="shares"):
            Shares(low, high)


def test_among_very_many_cauchy_noise_is_tuned_at_once_and_is_next_to_no_larger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    epsilon = 0.1
    n, shares = 2**17 + 1, DEFAULT_SHARES
    scales = [tuned_law("sp", n0, n - n0, 1, epsilon).scale for n0 in shares.counts(n)]
    assert tuned_loss("sp", n, 1, epsilon).max() <= epsilon * (1 + 1e-12)
    monkeypatch.setattr(cauchy, "_PAIRS_MAX", n)
    cauchy._tuned.cache_clear()
    by_pairs = [tuned_law("sp", n0, n - n0, 1, epsilon).scale for n0 in shares.counts(n)]
    cauchy._tuned.cache_clear()
    assert np.mean(scales) == pytest.approx(np.mean(by_pairs), rel=0.002)
