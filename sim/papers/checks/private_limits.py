"""The formulas of sections IV to VI of [SD], each computed for its claim.

[SD]: Watson, "From Statistical Disclosure Control to Fair AI" (arXiv 2601.17909). Numbers in parentheses are its
formulas'. Everything is computed exactly where possible; nothing is drawn. Its Omega, O and "proportional to" leave
constants open: rates are then compared, or counterexamples hold for any constant.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairwall.arrays import Bools, Floats
from sim.papers.finding import CheckResult
from sim.planning.rate_error import RateError, noise_bound_below, of_local_noise, of_noise, of_sampling

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LAST_BITS = 1e-12
"""Largest relative difference between two ways of computing a number."""

MeanError = Callable[[float, int], float]
"""The squared error of a released mean of n yeses and noes, half of which are expected to be yeses."""


def _laplace_error(epsilon: float, people: int) -> float:
    """Return 1/(4n) + 2/(epsilon n)^2: one record moves the mean by 1/n; noise of scale b has variance 2 b^2."""
    return of_sampling(0.5, people) ** 2 + of_noise(epsilon, people) ** 2


def mean_by_range(error: MeanError = _laplace_error) -> CheckResult:
    """Check (13), Delta a record's range: error >= variance/n + Delta^2/(epsilon^2 n)."""
    epsilon, people = 0.1, 1000

    def bound(epsilon: float, n: int) -> float:
        return of_sampling(0.5, n) ** 2 + 1 / (epsilon**2 * n)

    below = [n for n in range(1, 10_001) if error(epsilon, n) < (1 - _LAST_BITS) * bound(epsilon, n)]
    local = of_local_noise(1, 1) ** 2
    figures = {"error": error(epsilon, people), "bound": bound(epsilon, people), "below_from": min(below, default=0)}
    if not below:
        return CheckResult("no case below the bound", figures=figures)
    return CheckResult(
        f"Laplace noise on the mean errs by variance/n + 2 (Delta/(epsilon n))^2, less from {min(below)} records on. "
        "The bound has the rate of local privacy, and randomised response undercuts it too: at epsilon 1 its "
        f"squared noise is {local:.2f} of the bound's",
        f"1,000 answers of yes or no, epsilon 0.1: {figures['error']:.5f}, where the bound is {figures['bound']:.5f}",
        {**figures, "local_noise": local},
    )


def mean_by_sensitivity(error: MeanError = _laplace_error) -> CheckResult:
    """Check (13), Delta the mean's sensitivity, 1/n of a record's range."""
    people, small = 1000, 1e-5

    def noise(epsilon: float, n: int) -> float:
        return (1 / n) ** 2 / (epsilon**2 * n)

    def bound(epsilon: float, n: int) -> float:
        return of_sampling(0.5, n) ** 2 + noise(epsilon, n)

    cases = list(itertools.product((0.01, 0.1, 1.0, 10.0), (1, 10, 100, 1000, 10_000)))
    laplace = all(error(epsilon, n) >= (1 - _LAST_BITS) * bound(epsilon, n) for epsilon, n in cases)
    loose = (error(1, people) - of_sampling(0.5, people) ** 2) / noise(1, people)
    # The constant answer 1/2 is private at every epsilon, and never more than 1/2 off.
    half, printed = 0.25, bound(small, people)
    return CheckResult(
        f"{'true' if laplace else 'false'} of Laplace noise in {len(cases)} cases, and loose: the squared noise is "
        "2 Delta^2/epsilon^2, 2n times the bound's. Not true of any mechanism: a constant answer errs by no more "
        "than it can",
        f"the answer 1/2 to 1,000 people, epsilon 0.00001: {half:.2f} at most, where the bound is {printed:.2f}",
        {"noise_over_bound_at_1000": loose, "constant": half, "bound": printed},
    )


def group_noise(noise: RateError = of_noise) -> CheckResult:
    """Check (17), (18): the noise in a group's rate is proportional to 1/(epsilon sqrt(n_a))."""
    exponent, of_epsilon = _exponents(noise)
    times = noise(1, 100) / noise(1, 10_000)
    local, _ = _exponents(of_local_noise)
    holds = math.isclose(exponent, -0.5, abs_tol=0.01)
    return CheckResult(
        f"it falls like n_a^{exponent:.2f} and epsilon^{of_epsilon:.2f}: sqrt(2)/(epsilon n_a). The printed rate, "
        f"n_a^{local:.2f}, is that of local privacy",
        ""
        if holds
        else f"groups of 10,000 and 100, epsilon 1: {noise(1, 10_000):.5f} and {noise(1, 100):.4f}, printed 0.01 and "
        f"0.1; {times:.0f} times as much for the small group, printed 10",
        {"exponent": exponent, "exponent_local": local, "times": times},
    )


def _exponents(noise: RateError) -> tuple[float, float]:
    """Return the fitted exponents of an error in people, from 100 to 100,000, and in epsilon, up to 0.1."""
    people, epsilons = np.logspace(2, 5, 7), np.logspace(-3, -1, 7)
    of_people = np.polyfit(np.log(people), np.log([noise(0.1, n) for n in people]), 1)[0]
    of_epsilon = np.polyfit(np.log(epsilons), np.log([noise(e, 1000) for e in epsilons]), 1)[0]
    return round(float(of_people), 6), round(float(of_epsilon), 3)


def utility() -> CheckResult:
    """Check (19): U(M) >= U_0 - O(d/(epsilon n)) for any mechanism."""
    cases = list(itertools.product((5, 14, 100), (1_000, 50_000), (0.1, 1.0, 3.0)))
    loss = max(_exponential_loss(d, epsilon * n) * epsilon * n / d for d, n, epsilon in cases)
    coin = 0.84 - 0.5
    return CheckResult(
        "a bound for good mechanisms, not for any: choosing among 2^d models by the exponential mechanism loses at "
        f"most {loss:.2f} d/(epsilon n) in {len(cases)} cases, a coin loses the same at every n. Nor is it a limit "
        "that no mechanism passes, as (23) reads it: a constant costs no epsilon",
        f"a coin, U_0 = 0.84: it loses {coin:.2f} whether n is 100 or 1,000,000; d/(epsilon n) is 0.14 and 0.000014 "
        "at d = 14, epsilon 1",
        {"loss_times_epsilon_n_over_d": loss, "coin": coin},
    )


def _exponential_loss(d: int, strength: float) -> float:
    """Return the expected loss of accuracy of the exponential mechanism, at the worst of many accuracies.

    Of 2^d models one is best and all others are g worse. The number of records decided rightly moves by 1 with a
    record, so that a model is drawn with probability proportional to exp(epsilon n accuracy / 2).
    """
    gaps = np.linspace(0, 1, 200_001)
    others = d * math.log(2) + math.log1p(-(2.0**-d)) - strength * gaps / 2
    return float((gaps * np.exp(-np.logaddexp(0, -others))).max())


Predictor = Callable[[Bools], Floats]
"""A function from the small group's members to decisions, both of shape (people,)."""


def _constant(members: Bools) -> Floats:
    return np.zeros(members.size)


def fairness(predictor: Predictor = _constant) -> CheckResult:
    """Check (20): F(M) >= Omega(1/(epsilon sqrt(n p))) for any mechanism; F is the gap of demographic parity."""
    worlds, largest = 0, 0.0
    for people in range(2, 9):
        for groups in itertools.product((False, True), repeat=people):
            members = np.array(groups)
            if members.any() and not members.all():
                decisions = predictor(members)
                worlds += 1
                largest = max(largest, abs(decisions[members].mean() - decisions[~members].mean()))
    asked = 1 / (0.01 * math.sqrt(100))
    return CheckResult(
        "a constant predictor reads no data, so that it is private at every epsilon, and its gap is "
        f"{largest:g} in all {worlds:,} tables of 2 to 8 people. Noise limits how well a gap is known, not how small "
        "it is; and the noise falls like 1/(epsilon n p)",
        f"100 people in the small group, epsilon 0.01: the bound is {asked:.0f} times its constant; a gap is 1 at "
        "most, and the constant predictor's 0"
        if largest == 0
        else "",
        {"largest_gap": largest, "tables": worlds, "bound": asked},
    )


def errors(noise: RateError = of_noise) -> CheckResult:
    """Check (21): sampling error sqrt(q(1-q)/n_p), noise sqrt(2)/(epsilon n_p)."""
    cases = list(itertools.product((0.1, 1.0), (0.1, 0.5), (20, 60)))
    far = max(abs(noise(e, n) / math.sqrt(2) * e * n - 1) for e, _, n in cases)
    sampling = max(abs(_binomial_error(q, n) / of_sampling(q, n) - 1) for _, q, n in cases)
    whole = _geometric_error(1.0)
    return CheckResult(
        "exact for Laplace noise on one count, if n_p is public and nothing is clamped. Geometric noise, for whole "
        f"numbers, errs by {whole:.2f}/n_p at epsilon 1 in place of 1.41/n_p",
        "" if max(far, sampling) < 1e-9 else f"one is {max(far, sampling):.2g} of itself away",
        {"geometric": whole, "laplace": math.sqrt(2)},
    )


def _binomial_error(rate: float, people: int) -> float:
    yes = np.arange(people + 1)
    chances = np.array([math.comb(people, k) * rate**k * (1 - rate) ** (people - k) for k in yes])
    return math.sqrt(float(chances @ (yes / people - rate) ** 2))


def _geometric_error(epsilon: float) -> float:
    ratio = math.exp(-epsilon)
    return math.sqrt(2 * ratio) / (1 - ratio)


def ratio() -> CheckResult:
    """Check (22): noise over sampling error is sqrt(2)/(epsilon sqrt(n_p q(1-q))), about 1/(epsilon sqrt(n_p))."""
    half, tenth, hundredth = (of_noise(1, 100) / of_sampling(q, 100) * math.sqrt(100) for q in (0.5, 0.1, 0.01))
    turns = noise_bound_below(0.1, 0.5)
    return CheckResult(
        "true, and 1/(epsilon sqrt(n)) belongs here, to the ratio: (17), (18), (20) and (29) have it for the noise. "
        f"The factor left out is {half:.2f} at q = 0.5, {tenth:.1f} at 0.1, {hundredth:.1f} at 0.01. Noise errs more "
        f"below 2/(epsilon^2 q (1-q)) people: {noise_bound_below(1, 0.5):.0f} at epsilon 1, {turns:.0f} at 0.1",
        figures={"factor_half": half, "factor_tenth": tenth, "factor_hundredth": hundredth, "turns": turns},
    )


@dataclass(frozen=True)
class _Demand:
    """The arguments of (23) and (24): d, epsilon, the minority's share p, the gap F, and utility U_0."""

    d: int
    epsilon: float
    share: float
    gap: float
    utility: float = 0.84

    def two(self) -> tuple[float, float]:
        """Return the people required by (23)'s two inequalities, solved for n, the constants 1."""
        return (
            self.d / (self.epsilon * (self.utility - 0.5)),
            1 / (self.epsilon**2 * self.share * self.gap**2),
        )

    def product(self) -> float:
        """Return the people required by (24)."""
        return self.d / (self.epsilon**2 * self.share * self.gap**2)


_ASKED = _Demand(d=14, epsilon=1.0, share=0.1, gap=0.05)


def both_demands() -> CheckResult:
    """Check (23): utility over 0.5 and a gap below F require d/(epsilon n) < U_0 - 0.5, 1/(epsilon sqrt(n p)) < F."""
    alike, people = 19, 25
    first, second = _ASKED.two()
    known = math.sqrt(2) / (_ASKED.epsilon * _ASKED.share * _ASKED.gap)
    return CheckResult(
        "neither is required: they rest on (19) and (20). To know a small group's rate within F by one standard "
        f"deviation of noise takes sqrt(2)/(epsilon p F) people, {known:.0f} at (24)'s figures, not {second:,.0f}",
        f"{people} people, {alike} with the same label: the constant that says it has utility {alike / people}, gap 0 "
        f"and epsilon 0; by (23) it takes {first:.0f} and {second:,.0f} people (d = 14, epsilon 1, p = 0.1, F = 0.05, "
        "U_0 = 0.84)",
        {"first": first, "second": second, "noise_within_gap": known},
    )


def sample_size() -> CheckResult:
    """Check (24): n* = Theta(d/(epsilon^2 p F^2)), by taking the more restrictive of (23)'s two bounds."""
    largest, product = max(_ASKED.two()), _ASKED.product()
    grid = itertools.product((2, 14, 100), (0.1, 1.0, 3.0), (0.01, 0.1, 0.5), (0.01, 0.05, 0.2))
    over = [demand.product() / max(demand.two()) for demand in itertools.starmap(_Demand, grid)]
    return CheckResult(
        "the more restrictive of two bounds is their maximum; this is (23)'s second bound times d. In "
        f"{len(over)} cases it is {min(over):.1f} to {max(over):.0f} times the maximum",
        f"d = 14, epsilon 1, p = 0.1, F = 0.05, U_0 = 0.84: {product:,.0f}, where the maximum of (23) is {largest:,.0f}"
        if max(over) > 1.5 * min(over)
        else "",
        {"product": product, "maximum": largest, "least": min(over), "most": max(over)},
    )


def case_study(noise: RateError = of_noise) -> CheckResult:
    """Check (29) to (31): a group's standard error is proportional to 1/sqrt(n_a epsilon^2)."""
    exponent, _ = _exponents(noise)
    large, small = (0.30, 5000), (0.45, 500)

    def whole(epsilon: float, rate: float, people: int) -> float:
        return math.hypot(of_sampling(rate, people), noise(epsilon, people))

    noises = noise(1, small[1]) / noise(1, large[1])
    sampling = of_sampling(*small) / of_sampling(*large)
    both = whole(1, *small) / whole(1, *large)
    part = noise(1, small[1]) / of_sampling(*small)
    return CheckResult(
        f"1/sqrt(n_a) is sampling error, whatever epsilon: {sampling:.1f} times at the base rates 0.45 and 0.30. Noise "
        f"errs {noises:.0f} times as much, both together {both:.1f} times at epsilon 1, where noise is {part:.0%} of "
        "the small group's sampling error",
        ""
        if math.isclose(exponent, -0.5, abs_tol=0.01)
        else f"500 people, epsilon 1: noise {noise(1, 500):.4f} and sampling error {of_sampling(*small):.3f}, printed "
        f"0.045; at epsilon 10 both together {whole(10, *small):.3f}, printed 0.0045",
        {"noise": noises, "sampling": sampling, "both": both, "exponent": exponent},
    )


def rate_errors(axes: Axes) -> None:
    """Draw the error of a rate against the group's size: noise, sampling error, and noise as printed."""
    from sim.report.drawing import BLACK, GREY, legend

    epsilon, rate, people = 0.1, 0.5, np.logspace(1, 5, 81)
    for found, dash, colour, label in (
        ([of_noise(epsilon, n) for n in people], "-", BLACK, "noise, √2/(ε n)"),
        ([of_sampling(rate, n) for n in people], (0, (5, 1.5)), BLACK, f"sampling error at q = {rate:g}"),
        ([1 / (epsilon * n**0.5) for n in people], (0, (1, 1)), GREY, "noise as printed, 1/(ε √n)"),
    ):
        axes.loglog(people, found, ls=dash, color=colour, lw=1.8, label=label)
    turns = noise_bound_below(epsilon, rate)
    axes.plot(
        [turns], [of_noise(epsilon, turns)], "o", ms=7, mfc="white", mec=BLACK, label=f"equal at {turns:.0f} people"
    )
    axes.set_xlabel("people in the group, n")
    axes.set_ylabel("standard error of its rate")
    axes.set_title(f"What a group's released rate errs by, ε = {epsilon:g}")
    legend(axes, [])
