import itertools
import math

import pytest

from compliance.mechanisms import MECHANISMS
from fairwall.laws.choice.prediction import MIDPOINT, SHRUNK, choose, standings
from fairwall.laws.mechanisms.calibration import conceal_loss, laplace_loss
from fairwall.laws.mechanisms.table import NoiseInputs
from sim.privacy_audit.audit import worst_loss
from sim.privacy_audit.catalogue import prepare
from sim.privacy_audit.exact import EXACT, LAWS, exact_loss, numeric_loss

SUPREMA = {"sparse-vector", "exponential"}
"""What costs a batch of m models less than its supremum, which `fairwall.laws.mechanisms.selection` has."""


def test_the_grid_finds_the_closed_form():
    for name, exact in [("laplace", laplace_loss), ("conceal", conceal_loss)]:
        for n0, n1 in [(1, 9), (2, 8), (5, 5), (1, 2)]:
            for metric in ["sp", "abs_eo"]:
                found = numeric_loss(LAWS[name])(NoiseInputs(metric, n0, n1, 3, 2.0), n0 + n1)
                assert found == pytest.approx(exact(metric, n0, n1, 3, 2.0), rel=1e-4)
                assert found <= exact(metric, n0, n1, 3, 2.0) * (1 + 1e-9)


def test_a_law_gives_the_true_loss_of_a_broken_twin():
    for twin, loss in [
        ("abs-half", 4 / 3),
        ("eo-all-people", 1 / (1 / 2 + 1 / 11)),
        ("larger-groups", (1 / 2 + 1 / 11) / (1 / 3 + 1 / 10)),
        ("conceal-printed", 17.087),
        ("noise-reused", math.inf),
        ("seed-known", math.inf),
        ("budget-forgotten", 2.0),
        ("counts-free-size", math.sqrt(2)),
        ("cube-step-forgotten", 1.6),
        ("cells-free-size", 1.15),
        ("cells-by-group", math.inf),
        ("group-one-count", 2.0),
        ("group-own-size", 3.0),
    ]:
        subject, setting = prepare(twin)
        found, n0, n1 = worst_loss(subject, setting.metric, setting.n, setting.queries)
        assert found == pytest.approx(loss, rel=1e-4)
        assert found > subject.claim.epsilon
        assert n0 >= 1
        assert n1 >= 1


@pytest.mark.few(6)
@pytest.mark.parametrize(
    "name",
    [
        "laplace",
        "conceal",
        "cauchy",
        "counts",
        "cube",
        "cells",
        "randomized-response",
        "sample-and-aggregate",
        "recommended",
        "group-counts",
        "group-rows",
        "plain-laplace",
        "plain-conceal",
        "noise-fresh",
        "seed-secret",
        "budget-kept",
        "counts-paid",
        "cube-whole",
        "cells-paid",
    ],
)
def test_what_is_sound_keeps_its_claim_by_its_law(name):
    for metric, epsilon in (("sp", 0.1), ("abs_sp", 1.0)):
        subject, setting = prepare(name, epsilon=epsilon)
        worst = worst_loss(subject, metric, setting.n, setting.queries)
        assert worst[0] <= subject.claim.epsilon * (1 + 1e-9)


def test_whatever_claims_pure_epsilon_has_its_loss_in_the_universe():
    pure = {name for name, mechanism in MECHANISMS.items() if mechanism.guarantee == "pure"}
    assert pure == (EXACT.keys() & pure) | SUPREMA
    for name in SUPREMA | {"propose-test-release", "conceal-laplace"}:
        assert exact_loss(MECHANISMS[name]) is None
    # These two claim epsilon alone at no delta, or never.
    for epsilon in (0.1, 1.0, 10.0):
        assert MECHANISMS["propose-test-release"].refuses("sp", epsilon, 0.0)
        cost = MECHANISMS["recommended"].cost(epsilon, 0.0)
        assert (cost.epsilon, cost.delta) == (epsilon, 0.0)


def check_recommended(n, queries, epsilon):
    """All that can be chosen, and what is chosen, keep epsilon for all counts."""
    rows = standings("sp", n, queries, epsilon)
    assert {row.guarantee for row in rows} == {"pure"}
    names = {row.name.removesuffix(SHRUNK) for row in rows} - {MIDPOINT}
    assert choose("sp", n, queries, epsilon).removesuffix(SHRUNK) in names

    def worst(name):
        return max(EXACT[name](NoiseInputs("sp", n0, n - n0, queries, epsilon), n) for n0 in {1, 2, n // 2})

    losses = {name: worst(name) for name in names}
    assert max(losses.values()) <= epsilon * (1 + 1e-11)
    found = worst("recommended")
    assert found == losses[choose("sp", n, queries, epsilon).removesuffix(SHRUNK)]
    assert found >= 0.99 * epsilon


@pytest.mark.check
@pytest.mark.parametrize(("n", "queries"), [(4, 5), (31, 100)])
def test_what_recommended_chooses_keeps_epsilon_in_a_sample_of_the_universe(n, queries):
    for epsilon in (0.1, 3.0, 10.0):
        check_recommended(n, queries, epsilon)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_what_recommended_chooses_keeps_epsilon_in_the_universe():
    for n, queries, epsilon in itertools.product(
        (4, 5, 10, 31, 32, 63, 64, 100, 200), (1, 2, 5, 25, 100), (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0)
    ):
        check_recommended(n, queries, epsilon)


def test_gaussian_noise_spends_its_epsilon_at_its_delta():
    for name, epsilon in [("gaussian", 0.3), ("counts-gaussian", 1.0), ("gaussian", 30.0)]:
        subject, setting = prepare(name, epsilon=epsilon, delta=1e-6)
        worst = worst_loss(subject, "sp", setting.n, setting.queries)
        assert worst[0] == pytest.approx(epsilon, rel=1e-6)


def test_no_law_speaks_of_two_strata_or_ratios():
    for metric in ("eodds_max", "ppv"):
        subject, _ = prepare("laplace", metric=metric)
        assert worst_loss(subject, metric, 12, 2) is None
