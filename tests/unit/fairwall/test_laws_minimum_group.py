"""Noise for neighbours whose groups have at least g people: its loss is epsilon, over every n, g and pair of counts."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fairwall.laws.mechanisms.calibration import cauchy_loss, laplace_law, proposed_bound, proposed_size
from fairwall.laws.mechanisms.table import MECHANISM_LAWS, NoiseInputs
from fairwall.laws.metrics.group_size_range import Shares
from fairwall.laws.metrics.sensitivity import flip_sensitivity, global_sensitivity, smooth_sensitivity
from fairwall.laws.noise.cauchy import tune, tuned_law
from fairwall.laws.noise.distributions import Cauchy, Laplace

PEOPLE = (5, 6, 12, 25)
WHOLE = 1 + 1e-9


def losses(name: str, metric: str, n: int, least: int, believed: int, epsilon: float, queries: int = 3) -> list[float]:
    """What noise for groups of `believed` costs each two neighbours of at least `least`: from the laws themselves."""
    found = []
    for n0 in range(least, n - least):
        laws = []
        for other in (n0, n0 + 1):
            assumed = min(max(other, believed), n - believed)  # a twin knows no smaller groups
            error = MECHANISM_LAWS[name].error
            laws.append(
                error(
                    NoiseInputs(metric, assumed, n - assumed, queries, epsilon, shares=Shares(minimum_group=believed))
                )
            )
        here, there = laws
        shift = flip_sensitivity(metric, n, n0 + 1)
        if isinstance(here, Laplace):
            assert here == there
            found.append(queries * shift / here.scale)
        else:
            assert isinstance(here, Cauchy)
            assert isinstance(there, Cauchy)
            found.append(queries * cauchy_loss(shift, here.scale, there.scale))
    return found


@pytest.mark.parametrize("metric", ["sp", "abs_sp"])
def test_cauchy_noise_follows_the_smooth_sensitivity_and_is_no_larger(metric: str) -> None:
    for n in PEOPLE:
        for least in range(1, (n - 1) // 2 + 1):
            shares = Shares(minimum_group=least)
            tuning = tune(metric, n, 3, 2.0, shares)
            for n0 in range(least, n - least + 1):
                smooth = smooth_sensitivity(metric, n0, n - n0, tuning.beta, minimum_group=least)
                scale = tuned_law(metric, n0, n - n0, 3, 2.0, shares).scale
                assert scale == pytest.approx(smooth / tuning.alpha, rel=1e-12), (n, least, n0)


def test_the_worst_neighbours_cost_epsilon_and_no_more() -> None:
    for name, spent, metric in (("laplace", 0.99, "sp"), ("cauchy", 0.99, "abs_sp"), ("conceal", 0.0, "sp")):
        for n in PEOPLE:
            for least in range(1, (n - 1) // 2 + 1):
                for epsilon in (0.3, 4.0):
                    found = losses(name, metric, n, least, least, epsilon)
                    assert spent * epsilon <= max(found) <= epsilon * WHOLE, (n, least)
                    told = MECHANISM_LAWS[name].loss
                    assert told is not None
                    worst = max(
                        told(NoiseInputs(metric, n0, n - n0, 3, epsilon, shares=Shares(minimum_group=least)))
                        for n0 in range(least, n - least + 1)
                    )
                    assert worst == pytest.approx(max(found), rel=1e-9)


@pytest.mark.parametrize("name", ["laplace", "cauchy"])
def test_the_twin_that_counts_on_one_person_more_overspends(name: str) -> None:
    for n in PEOPLE:
        for least in range(1, (n - 1) // 2):
            assert max(losses(name, "sp", n, least, least + 1, 1.0)) > 1.0 * WHOLE, (n, least)


@pytest.mark.parametrize("least", [1, 5])
def test_gaussian_noise_costs_its_epsilon_and_no_more(least: int) -> None:
    loss = MECHANISM_LAWS["gaussian"].loss
    assert loss is not None
    for n in (2 * least + 1, 30):
        worst = max(
            loss(NoiseInputs("sp", n0, n - n0, 4, 0.8, 1e-6, shares=Shares(minimum_group=least)))
            for n0 in range(least, n - least + 1)
        )
        assert 0.99 * 0.8 <= worst <= 0.8 * WHOLE


def test_larger_groups_need_less_noise() -> None:
    scales = [laplace_law("sp", 1000, 1, 0.5, least).scale for least in (1, 20, 100)]
    assert scales == pytest.approx([2 * (1 / (g + 1) + 1 / (1000 - g)) for g in (1, 20, 100)])
    for name in ("laplace", "gaussian", "conceal", "conceal-laplace", "cauchy", "propose-test-release"):
        laws = [
            MECHANISM_LAWS[name].error(NoiseInputs("sp", 104, 896, 2, 0.5, 1e-6, shares=Shares(minimum_group=least)))
            for least in (1, 20, 100)
        ]
        scales = [law.scale for law in laws if law is not None]
        assert scales == sorted(scales, reverse=True)
    # Nothing is proposed that a policy does not say already; and the bound never is that of a group of g or fewer.
    for least in range(1, 50):
        assert proposed_size(100, minimum_group=least) >= least + 1
        assert proposed_bound("sp", 100, minimum_group=least) <= global_sensitivity("sp", 100, minimum_group=least)


def test_the_serving_page_says_what_a_larger_minimum_buys() -> None:
    docs = Path(__file__).parents[3] / "docs"
    people = len((docs / "example" / "loans.csv").read_text().splitlines()) - 1
    told = [laplace_law("sp", people, 1, 0.25, least).scale * math.log(20) for least in (1, 20, 100)]
    one, twenty, hundred = (f"{half:.2g}" for half in told)
    said = f"is known to &plusmn;{one}.0 at 1, &plusmn;{twenty} at 20 and &plusmn;{hundred} at 100."
    assert said in (docs / "serving.md").read_text().replace("\n", " ")


def test_where_nobody_may_leave_there_is_no_noise_and_no_loss() -> None:
    # Such a policy is refused at the start: these are what is left of the formulas.
    batch = NoiseInputs("sp", 5, 5, 1, 1.0, 1e-6, shares=Shares(minimum_group=5))
    for name in ("laplace", "cauchy", "conceal", "gaussian"):
        law = MECHANISM_LAWS[name]
        found = law.error(batch)
        assert found is not None
        assert found.scale == 0
        if name != "cauchy":  # of no pairs
            assert law.loss is not None
            assert law.loss(batch) == 0


def test_a_range_of_shares_holds_no_groups_smaller_than_there_are() -> None:
    assert Shares(0.05, 0.5, 20).counts(100)[0] == 20
    assert Shares(0.05, 0.95, 20).counts(100)[-1] == 80
    assert math.isclose(Shares(0.05, 0.5).counts(100)[0], 5)
