"""Local protocols' public laws: every output listed for small domains, what it costs, and how budgets are split."""

import math

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from fairwall.laws.local import (
    LOCAL_LAWS,
    Bits,
    EncodingDistribution,
    LocalPrivacyError,
    Numbers,
    Subsets,
    enumerated_loss,
    split,
    the_threshold,
    uniform_at_k_based,
)
from fairwall.laws.local.protocols import the_server

EPSILONS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0)
DOMAINS = (2, 3, 4, 5)
OF_ANY_DOMAIN = [name for name, law in LOCAL_LAWS.items() if law.domain is None]
SMALL = [(k, epsilon) for k in DOMAINS for epsilon in EPSILONS]


def the_formula(epsilon: float) -> float:
    """What THE's bits cost, with the threshold found by the search that the paper describes."""

    def variance(t: float) -> float:
        numerator = 2 * math.exp(epsilon * t / 2) - 1
        return numerator / (1 + math.exp(epsilon * (t - 0.5)) - 2 * math.exp(epsilon * t / 2)) ** 2

    t = scipy.optimize.minimize_scalar(variance, bounds=(0, 1), method="bounded", options={"xatol": 1e-10}).x
    return epsilon / 2 + math.log((2 - math.exp(-(1 - t) * epsilon / 2)) * (2 - math.exp(-t * epsilon / 2)))


def costs(law: EncodingDistribution, epsilon: float) -> bool:
    """Whether a law costs epsilon, neither more nor less."""
    return math.isclose(enumerated_loss(law.probabilities()[1]), epsilon, rel_tol=0, abs_tol=1e-6)


def test_enumerated_loss_is_the_formula() -> None:
    for name in OF_ANY_DOMAIN:
        for k, epsilon in SMALL:
            law = LOCAL_LAWS[name].law(k, epsilon)
            outputs, probabilities = law.probabilities()
            assert outputs.shape == probabilities.shape
            assert len(np.unique(outputs, axis=0)) == len(outputs)
            np.testing.assert_allclose(probabilities.sum(axis=0), 1, rtol=0, atol=1e-12)
            assert costs(law, the_formula(epsilon) if name == "the" else epsilon), (k, epsilon)
            assert costs(law, LOCAL_LAWS[name].loss(k, epsilon)), (k, epsilon)


def test_thresholding_at_home_costs_less() -> None:
    for k, epsilon in SMALL:
        assert LOCAL_LAWS["the"].loss(k, epsilon) < LOCAL_LAWS["the-server"].loss(k, epsilon) == epsilon


def test_enumeration_catches_wrong_parameters() -> None:
    for k, epsilon in ((2, 0.05), (2, 8.0), (3, 1.0), (5, 0.25), (5, 5.0)):
        grr = LOCAL_LAWS["grr"].law(k, epsilon)
        assert not costs(Subsets(k, 1, grr.missing * 0.999), epsilon)
        oue = LOCAL_LAWS["oue"].law(k, epsilon)
        assert not costs(Bits(k, oue.missing, oue.extra / 2), epsilon)
        olh = LOCAL_LAWS["olh"].law(k, epsilon)
        assert not costs(Bits(k, olh.missing, 1 / (round(1 / olh.extra) + 1)), epsilon)  # one hash more for others only
        server = LOCAL_LAWS["the-server"].law(k, epsilon)
        assert not costs(Numbers(k, 2 * epsilon, server.threshold), epsilon)  # noise for a sensitivity of 1
        # What the person's bits cost is not what the paper says they do.
        assert not costs(LOCAL_LAWS["the"].law(k, epsilon), epsilon)


def test_enumeration_catches_a_subset_size_that_its_probability_was_not_made_for() -> None:
    for k, epsilon in SMALL:
        ss = LOCAL_LAWS["ss"].law(k, epsilon)
        assert k == 2 or not costs(Subsets(k, ss.size + 1, ss.missing), epsilon)


def test_a_value_that_an_output_rules_out_costs_everything() -> None:
    assert enumerated_loss(np.array([[0.5, 0.0], [0.5, 1.0], [0.0, 0.0]])) == math.inf


def test_log_likelihood_is_the_log_of_the_probability_and_inconsistent_rates_are_sums() -> None:
    for name in [name for name in OF_ANY_DOMAIN if name != "the-server"]:
        for k, epsilon in ((2, 0.05), (2, 8.0), (3, 1.0), (4, 0.5), (5, 0.25), (5, 5.0)):
            law = LOCAL_LAWS[name].law(k, epsilon)
            outputs, probabilities = law.probabilities()
            off = law.log_likelihood(outputs) - np.log(probabilities)
            np.testing.assert_allclose(off, off[:, :1].repeat(k, axis=1), rtol=0, atol=1e-9)
            consistent = law.consistent(outputs)
            assert consistent.tolist() == [sum(row) == 1 for row in outputs.tolist()]
            np.testing.assert_allclose(1 - consistent @ probabilities, law.inconsistent, rtol=0, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.05, 8.0])
def test_log_likelihood_of_numbers_is_the_log_of_the_density(epsilon: float) -> None:
    numbers = np.random.default_rng(1).uniform(-3, 4, (200, 4))
    from_true = np.abs(numbers[:, None, :] - np.eye(4)).sum(axis=2)
    off = LOCAL_LAWS["the-server"].law(4, epsilon).log_likelihood(numbers) + from_true * epsilon / 2
    np.testing.assert_allclose(off, off[:, :1].repeat(4, axis=1), rtol=0, atol=1e-9)


def test_what_the_server_thresholds_is_what_the_person_would() -> None:
    for epsilon in (0.05, 1.0, 8.0):
        numbers, bits = (LOCAL_LAWS[name].law(4, epsilon) for name in ("the-server", "the"))
        assert numbers.bits.missing == pytest.approx(bits.missing, rel=1e-12)
        assert numbers.bits.extra == pytest.approx(bits.extra, rel=1e-12)
        assert numbers.inconsistent == pytest.approx(bits.inconsistent, abs=1e-12)
        assert numbers.thresholded(np.array([[0.0, numbers.threshold, 1.0, 0.4]])).tolist() == [[0, 0, 1, 0]]
        assert numbers.consistent(np.array([[0, 2.0, 0, 0], [2.0, 2.0, 0, 0], [0.0, 0, 0, 0]])).tolist() == [
            True,
            False,
            False,
        ]


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 50.0])
def test_no_threshold_is_better(epsilon: float) -> None:
    def variance(t: float) -> float:
        bits = Numbers(2, epsilon, t).bits
        return bits.extra * (1 - bits.extra) / (1 - bits.missing - bits.extra) ** 2

    best = the_threshold(epsilon)
    assert 0.5 < best < 1
    assert variance(best) <= min(map(variance, np.linspace(0, 1, 2001)[:-1]))


def test_extreme_budgets() -> None:
    for name in OF_ANY_DOMAIN:
        for epsilon in (1e-6, 50.0, 700.0):
            law = LOCAL_LAWS[name].law(74, epsilon)
            assert 0 <= law.inconsistent <= 1
            assert np.isfinite(law.log_likelihood(np.zeros((1, 74)))).all()
            if not isinstance(law, Numbers):
                # Nothing is certain, however large epsilon: what costs epsilon does not round to what costs everything.
                assert 0 < law.missing < 1
                assert law.weight == pytest.approx(LOCAL_LAWS[name].loss(74, epsilon), rel=1e-9)


def test_parameters_of_the_program() -> None:
    assert LOCAL_LAWS["ss"].law(74, 1.0).size == 20  # 19.9: the paper's text would round it down
    assert LOCAL_LAWS["ss"].law(5, 8.0).size == 1
    assert LOCAL_LAWS["olh"].law(74, 1.0).extra == 1 / 4  # e = 2.7 is rounded, and one added
    assert LOCAL_LAWS["blh"].law(74, 1.0).extra == 1 / 2
    assert isinstance(the_server(5, 1.0), Numbers)


def test_splits() -> None:
    assert split("uniform", (2, 5, 41, 74), 4) == (1, 1, 1, 1)
    assert split("k-based", (2, 5, 41, 74), 122) == (2, 5, 41, 74)
    assert split((0.25, 0.75), (2, 5), 4) == (1, 3)
    assert split("k-based", (7,), 3) == (3,)


# The sensitive columns of Adult, public coverage and LSAC, in the order of their files, and the protected one's place.
TABLES = [((74, 41, 2, 5), 2, 8 / 122), ((50, 24, 2, 2), 3, 8 / 78), ((5, 2, 2, 2), 3, 8 / 11)]


def test_the_control_for_k_based_leaves_the_protected_attribute_as_much() -> None:
    for domains, place, spent in TABLES:
        for epsilon in (0.25, 10):
            budget = uniform_at_k_based(domains, place, epsilon)
            assert budget == pytest.approx(spent * epsilon, rel=1e-15)
            assert split("uniform", domains, budget)[place] == split("k-based", domains, epsilon)[place]


@given(st.lists(st.integers(2, 200), min_size=1, max_size=8), st.floats(0.01, 600), st.data())
def test_splits_spend_everything(domains: list[int], epsilon: float, data: st.DataObject) -> None:
    raw = data.draw(st.lists(st.floats(0.01, 1), min_size=len(domains), max_size=len(domains)))
    for how in ("uniform", "k-based", [weight / math.fsum(raw) for weight in raw]):
        shares = split(how, domains, epsilon)
        assert math.fsum(shares) == pytest.approx(epsilon, rel=1e-12)
        assert min(shares) > 0


def test_bad_splits() -> None:
    for how, domains, epsilon, said in (
        ("uniform", (2, 1), 1.0, "domain of at least 2 values, this one has 1"),
        ("uniform", (), 1.0, "no sensitive attribute"),
        ("uniform", (2, 2), 0.0, "epsilon must be above 0 and at most 700, it is 0"),
        ("k-based", (2, 2), math.inf, "it is inf"),
        ("k-based", (2, 2), math.nan, "it is nan"),
        ("uniform", (2, 2), 5e-324, "too little to be split among 2"),
        ("by size", (2, 2), 1.0, "unknown split 'by size', choose one of: uniform, k-based"),
        ((0.5, 0.4), (2, 2), 1.0, "weights must sum to 1, these sum to 0.9"),
        ((0.5, 0.5 + 2e-9), (2, 2), 1.0, "weights must sum to 1"),
        ((1.0, 0.0), (2, 2), 1.0, "finite numbers above 0"),
        ((math.nan, 1.0), (2, 2), 1.0, "finite numbers above 0"),
        ((1.0,), (2, 2), 1.0, "2 sensitive attributes need as many weights, there are 1"),
    ):
        with pytest.raises(LocalPrivacyError) as caught:
            split(how, domains, epsilon)
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)


def test_bad_laws() -> None:
    for name in OF_ANY_DOMAIN:
        for k, epsilon in ((1, 1.0), (0, 1.0), (2, 0.0), (2, -1.0), (2, math.inf), (2, math.nan), (2, 701.0)):
            with pytest.raises(LocalPrivacyError):
                LOCAL_LAWS[name].law(k, epsilon)
            with pytest.raises(LocalPrivacyError):
                LOCAL_LAWS[name].loss(k, epsilon)
        with pytest.raises(ValueError, match="too many outputs to list"):
            LOCAL_LAWS[name].law(13, 1.0).probabilities()
