"""The formulas of [SD]: findings follow from what is computed, and that is what compliance's own noise does."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import BatchQuestion
from compliance.noise.sampling import Seeded, step_for
from compliance.records.people import Records
from fairwall.laws.noise.randomized_response import turning_probability
from sim.papers.checks import private_limits
from sim.papers.claim import papers
from sim.planning.rate_error import RateError, noise_bound_below, of_local_noise, of_noise, of_sampling


def printed_noise(epsilon: float, people: float) -> float:
    """A twin: (17), (18) and (29) as they are printed."""
    return 1 / (epsilon * math.sqrt(people))


def printed_error(epsilon: float, people: int) -> float:
    """A twin: (13) as it is printed, Delta a record's range."""
    return 0.25 / people + 1 / (epsilon**2 * people)


def test_a_finding_follows_from_what_is_computed() -> None:
    """With the printed law in place of the true one a check says the opposite."""
    for check, true, twin, refuted in [
        (private_limits.mean_by_range, private_limits._laplace_error, printed_error, True),
        (private_limits.group_noise, of_noise, printed_noise, True),
        (private_limits.case_study, of_noise, printed_noise, True),
        (private_limits.errors, of_noise, printed_noise, False),
        (private_limits.fairness, lambda members: members * 0.0 + 1, lambda members: members * 1.0, True),
    ]:
        assert bool(check(true).counterexample) == refuted
        assert bool(check(twin).counterexample) != refuted


def test_laplace_noise_alone_meets_the_bound_that_a_constant_does_not() -> None:
    for error, said in ((private_limits._laplace_error, "true"), (lambda _, n: 0.25 / n, "false")):
        found = private_limits.mean_by_sensitivity(error)
        assert found.found.startswith(f"{said} of Laplace noise")
        assert found.counterexample


def draws_agree(noise: RateError) -> bool:
    """Draw compliance's Laplace noise on counts: the rate's standard deviation, within 6 standard errors.

    Laplace noise has kurtosis 6, so that a deviation of N draws errs by sqrt(5/N)/2 of itself. Another seed would raise
    a false alarm less than once in 10^7 times.
    """
    draws, source = 20_000, Seeded(np.random.default_rng(14))
    for epsilon in (0.1, 1.0):
        for people in (25, 400, 1600):
            counts = np.full(draws, people // 2, np.float64)
            released = source.laplace(counts, 1 / epsilon, step_for(1 / epsilon)) / people
            if abs(released.std() / noise(epsilon, people) - 1) > 6 * math.sqrt(5 / draws) / 2:
                return False
    return True


def test_the_noise_in_a_rate_is_what_compliance_adds_and_the_printed_one_is_not() -> None:
    assert draws_agree(of_noise)
    assert not draws_agree(printed_noise)


@pytest.mark.check
def test_a_gap_that_compliance_answers_errs_like_one_over_the_small_group() -> None:
    """Mechanism `counts`, whole: the fitted exponent is -1 within 5.5 standard errors of 0.042, and not -1/2.

    Another seed would raise a false alarm less than once in 10^7 times.
    """
    sizes, deviations, source = (100, 200, 400, 800), [], Seeded(np.random.default_rng(14))
    for size in sizes:
        protected = np.repeat(np.array([0, 1], np.uint8), [size, 20_000])
        decisions = (np.arange(protected.size) % 2).astype(np.float64)[None]
        question = BatchQuestion("sp", decisions, Records(protected * 0, protected, ("sp",)))
        answers = [MECHANISMS["counts"].release(question, {}, 1.0, 0.0, source).values[0] for _ in range(300)]
        deviations.append(np.std(answers))
    slope = np.polyfit(np.log(sizes), np.log(deviations), 1)[0]
    assert abs(slope + 1) < 5.5 * 0.042 < abs(slope + 0.5)


def test_randomised_response_answer_by_answer() -> None:
    """Every number of turned noes and yeses, with its probability."""
    for epsilon in [0.2, 1.0, 3.0]:
        for ones, people in [(0, 3), (2, 5), (4, 8)]:
            p = turning_probability(epsilon)
            mean = square = 0.0
            for kept in range(ones + 1):
                for turned in range(people - ones + 1):
                    chance = math.comb(ones, kept) * (1 - p) ** kept * p ** (ones - kept)
                    chance *= math.comb(people - ones, turned) * p**turned * (1 - p) ** (people - ones - turned)
                    rate = ((kept + turned) / people - p) / (1 - 2 * p)
                    mean, square = mean + chance * rate, square + chance * rate**2
            assert mean == pytest.approx(ones / people)
            assert math.sqrt(square - mean**2) == pytest.approx(of_local_noise(epsilon, people))


def test_noise_and_sampling_err_alike_where_it_is_said() -> None:
    for epsilon, rate in [(0.1, 0.5), (1.0, 0.5), (0.3, 0.02)]:
        people = noise_bound_below(epsilon, rate)
        assert of_noise(epsilon, people) == pytest.approx(of_sampling(rate, people))
        assert noise_bound_below(epsilon, 0.0) == math.inf


def test_the_product_against_the_maximum() -> None:
    figures = private_limits.sample_size().figures
    assert (figures["maximum"], figures["product"]) == pytest.approx((4_000, 56_000))


def test_every_formula_is_a_claim() -> None:
    (paper,) = (each for each in papers() if each.key == "SD")
    tried = [own for own in paper.claims if own.test and (own.test.check or "").startswith("private_limits:")]
    numbers = {int(number) for own in tried for number in re.findall(r"\((\d\d)\)", own.where)}
    assert numbers == {13, 17, 18, 19, 20, 21, 22, 23, 24, 29, 30, 31}
