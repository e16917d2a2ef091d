import math

import pytest

from fairwall.laws.calibration import conceal_loss, laplace_loss
from sim.privacy_audit.catalogue import prepare
from sim.privacy_audit.exact import LAWS, numeric_loss, worst_loss


@pytest.mark.parametrize(("name", "exact"), [("laplace", laplace_loss), ("conceal", conceal_loss)])
@pytest.mark.parametrize(("n0", "n1"), [(1, 9), (2, 8), (5, 5), (1, 2)])
@pytest.mark.parametrize("metric", ["sp", "abs_eo"])
def test_the_grid_finds_the_closed_form(name, exact, metric, n0, n1):
    found = numeric_loss(LAWS[name])(metric, n0, n1, n0 + n1, 3, 2.0, 0.0)
    assert found == pytest.approx(exact(metric, n0, n1, 3, 2.0), rel=1e-4)
    assert found <= exact(metric, n0, n1, 3, 2.0) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("twin", "loss"),
    [
        ("abs-half", 4 / 3),
        ("eo-all-people", 1 / (1 / 2 + 1 / 11)),
        ("conceal-printed", 17.087),
        ("noise-reused", math.inf),
        ("seed-known", math.inf),
        ("budget-forgotten", 2.0),
        ("counts-free-size", math.sqrt(2)),
    ],
)
def test_a_law_gives_the_true_loss_of_a_broken_twin(twin, loss):
    subject, setting = prepare(twin)
    found, n0, n1 = worst_loss(subject, setting.metric, setting.n, setting.queries)
    assert found == pytest.approx(loss, rel=1e-4)
    assert found > subject.claim.epsilon
    assert n0 >= 1
    assert n1 >= 1


@pytest.mark.parametrize(
    "name",
    [
        "laplace",
        "conceal",
        "plain-laplace",
        "plain-conceal",
        "noise-fresh",
        "seed-secret",
        "budget-kept",
        "counts-paid",
    ],
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
def test_what_is_sound_keeps_its_claim_by_its_law(name, epsilon):
    subject, setting = prepare(name, epsilon=epsilon)
    for metric in ("sp", "abs_sp"):
        worst = worst_loss(subject, metric, setting.n, setting.queries)
        assert worst[0] <= subject.claim.epsilon * (1 + 1e-9)


def test_no_law_speaks_of_two_strata_or_ratios():
    for metric in ("eodds_max", "ppv"):
        subject, _ = prepare("laplace", metric=metric)
        assert worst_loss(subject, metric, 12, 2) is None
