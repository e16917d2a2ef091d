"""Guaranteed intervals hold the truth as often as they say, whoever is who: the noise is summed over, not drawn.

An interval is a function of two numbers, N0 with noise and a sum with noise. So how often it holds the truth is a sum
over N0's noise of its probability, times the part of many equally likely sums' noises that it holds it with: as if each
were another model's.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.intervals import counts
from compliance.intervals import reach as reaches
from compliance.intervals.counts import CentredSums, intervals
from compliance.intervals.inversion import level_of_parts
from compliance.intervals.reach import Additive, Size
from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion, ends_of
from compliance.mechanisms.recommended import Recommended
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.noise.distributions import Gaussian, Laplace
from fairwall.laws.noise.linf_ball import CubeNoise
from fairwall.laws.noise.quantiles import LEVEL, distribution

_EQUAL = 800
"""Equally likely noises on a sum: coverage is exact to a part in so many."""


def quantiles(law: Additive) -> NDArray[np.float64]:
    """Return equally likely values of a law."""
    share = (np.arange(_EQUAL) + 0.5) / _EQUAL
    x = law.scale * np.sinh(np.linspace(-8, 8, 20_001))
    return np.interp(share, distribution(law)(x), x)


def noise_on_size(law: Additive) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return whole numbers and how likely each is as noise on N0: as drawn, or, of a cube, rounded."""
    k = np.arange(-np.ceil(12 * law.scale) - 3, np.ceil(12 * law.scale) + 4)
    if isinstance(law, CubeNoise):
        below = distribution(law)
        return k, below(k + 0.5) - below(k - 0.5)
    weights = np.exp(-np.abs(k) / law.scale if isinstance(law, Laplace) else -0.5 * (k / law.scale) ** 2)
    return k, weights / weights.sum()


def held(metric: str, n: int, n0: int, means: tuple[float, float], size: Additive, sums: Additive) -> float:
    """Return how often the interval of one metric holds the truth: of values of any kind with these means, 0 and 1."""
    mean0, mean1 = means
    total = np.full(_EQUAL, n0 * mean0 + (n - n0) * mean1)
    truth = mean1 - mean0 if metric == "sp" else mean0 / mean1
    released, kept = n0 * (mean0 - 0.5) + quantiles(sums), 0.0
    anything = np.full(_EQUAL, -1.0 if metric == "sp" else 0.0), np.full(_EQUAL, 1.0 if metric == "sp" else np.inf)
    for k, chance in zip(*noise_on_size(size), strict=True):
        at = Size(float(np.clip(n0 + k, 1, n - 1)), size)
        told = CentredSums(n, total, released, np.full(_EQUAL, 0.5), np.ones(_EQUAL), sums, np.zeros(_EQUAL), anything)
        low, high = intervals(find_metric(metric), [at], 1, [told])
        kept += chance * float(np.mean((low <= truth) & (truth <= high)))
    return kept


LAWS: list[tuple[Additive, Additive]] = [
    (Laplace(2.4), Laplace(0.85)),
    (Laplace(0.4), Laplace(5.0)),
    (Gaussian(2.0), Gaussian(3.0)),
    (Laplace(0.7), CubeNoise(0.2, 30)),
    (CubeNoise(0.3, 3), CubeNoise(1.0, 4)),
    (CubeNoise(1 / 3, 2, 3.0), CubeNoise(1 / 3, 1, 3.0)),
    (CubeNoise(0.2, 3, 5.0), CubeNoise(0.2, 2, 5.0)),
]
WORLDS = [
    (60, 9, (0.3, 0.3)),
    (60, 1, (1.0, 0.02)),
    (60, 30, (0.02, 0.9)),
    (400, 20, (0.95, 0.05)),
    (400, 120, (0.02, 0.02)),
]


@pytest.mark.parametrize("number", range(2 * len(LAWS)))
def test_whoever_is_who_an_interval_holds_the_truth(number: int) -> None:
    """Every law, of differences and of ratios, and each in two of the worlds."""
    (n, n0, means), (size, sums) = WORLDS[number % len(WORLDS)], LAWS[number % len(LAWS)]
    metric = ("sp", "di")[(number + number // len(LAWS)) % 2]
    assert held(metric, n, n0, means, size, sums) >= LEVEL - 1 / _EQUAL


def test_intervals_are_no_wider_than_they_must_be() -> None:
    assert held("sp", 4000, 1500, (0.2, 0.3), Laplace(2.4), Laplace(0.85)) <= LEVEL + 0.006


def test_where_n0_errs_most_a_large_gap_counts() -> None:
    """It moves the gap by what the mean is from the centre, and by the gap itself."""
    assert held("sp", 400, 40, (0.02, 0.5533), Laplace(2.4), Laplace(0.05)) >= LEVEL - 1 / _EQUAL


def test_each_of_two_gaps_of_which_the_larger_counts_holds_in_the_square_root_of_cases() -> None:
    for name, level in (("sp", LEVEL), ("eodds_sum", LEVEL), ("eodds_max", math.sqrt(LEVEL))):
        assert level_of_parts(find_metric(name)) == level


@pytest.mark.parametrize("deviation", [20.0, 1200.0])
def test_noise_of_a_large_deviation_on_n0_has_its_law_on_whole_numbers(deviation: float) -> None:
    size = Size(0.0, Gaussian(deviation))
    k = np.arange(math.ceil(12 * deviation) + 1.0)
    exact = np.exp(-0.5 * (k / deviation) ** 2) * np.where(k > 0, 2.0, 1.0)
    edges, chances = reaches._noise_on_size(size)
    inside = np.cumsum(exact / exact.sum())[np.minimum(edges, k[-1]).astype(np.intp)]
    assert np.cumsum(chances) == pytest.approx(inside, abs=1e-7)


def test_the_twin_that_forgets_the_noise_on_n0_holds_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    of_sums = reaches.of_sums

    def forgetful(size: Size, *of: object) -> Callable[..., NDArray[np.float64]]:
        return of_sums(Size(size.value, Laplace(0.0)), *of)  # type: ignore[arg-type]

    monkeypatch.setattr("compliance.intervals.counts.of_sums", forgetful)
    assert held("sp", 400, 120, (0.02, 0.02), Laplace(2.4), Laplace(0.85)) < LEVEL - 0.01


@pytest.mark.parametrize("sides", [2, 26])
def test_q_of_two_coordinates_of_one_cube_is_the_quantile_of_draws(sides: int) -> None:
    # 10^6 draws err by 2.2e-4 of a level; 5 times that.
    law, generator = CubeNoise(0.7, sides), np.random.default_rng(3)
    drawn = generator.gamma(sides + 1, law.scale, 10**6) * generator.uniform(-1, 1, (2, 10**6))
    weights = np.array([0.0, 0.3, 1.0, 2.5])
    found = reaches._solved(Size(0.0, law, whole=False, shared=True), law, weights, LEVEL)
    for weight, q in zip(weights, found, strict=True):
        assert np.mean(np.abs(drawn[0] + weight * drawn[1]) <= q) == pytest.approx(LEVEL + reaches.BEYOND, abs=1.1e-3)


# 1,500 answers hold fewer than 94% but for 1 time in 30 where 95% do; draws are seeded, and these do.
@pytest.mark.slow(seconds=12)
@pytest.mark.parametrize(
    ("name", "epsilon", "metric", "later"),
    [
        ("cube", 6.0, "sp", False), ("cube", 0.5, "eodds_max", True), ("cube", 6.0, "di", True),
        ("low-rank", 3.0, "sp", True), ("low-rank", 3.0, "eodds_sum", False),
        ("counts", 3.0, "abs_eo", True), ("counts", 3.0, "ppv", False), ("randomized-response", 5.0, "di", False),
    ],
)  # fmt: skip
def test_answers_hold_where_groups_are_small_and_gaps_large(
    name: str, epsilon: float, metric: str, later: bool
) -> None:
    groups = np.repeat([0, 1], [8, 52]).astype(np.uint8)
    labels = (np.arange(60) % 2).astype(np.uint8)
    records, mechanism, inside = Records(labels, groups, ("sp", metric)), MECHANISMS[name], []
    far = np.where(groups == 1, 0.9, 0.1)
    # Those of sums of gaps are wider than they must be, and two cubes' take long.
    for draw in range(60 if (name, metric) == ("low-rank", "eodds_sum") else 500):
        generator = np.random.default_rng((41, draw))
        question = BatchQuestion(metric, (generator.random((3, 60)) < far).astype(np.float64), records)
        facts = NO_FACTS
        if later:
            facts = mechanism.release(
                BatchQuestion("sp", question.predictions, records), facts, epsilon, 0.0, Seeded(generator)
            ).facts
        released = mechanism.release(question, facts, epsilon, 0.0, Seeded(generator))
        assert released.low is not None
        assert released.high is not None
        gaps = question.gaps()
        inside.append((released.low <= gaps + 1e-9) & (gaps - 1e-9 <= released.high))
    assert np.mean(inside) >= LEVEL - 0.01


def scores(models: int, people: int, off: float) -> BatchQuestion:
    """Return scores that are nearly one model's, of people of whom an eighth is disadvantaged."""
    generator = np.random.default_rng(2)
    groups = (np.arange(people) % 8 > 0).astype(np.uint8)
    common = generator.random(people)
    rows = np.clip(common + off * generator.normal(size=(models, people)), 0, 1)
    return BatchQuestion("sp", rows, Records(groups, groups, ("sp",)))


def near(models: int, people: int, against: str, off: float = 0.1) -> BatchQuestion:
    """Return scores near one model's, of people whose groups are against what is measured of them.

    They are those who are highest in what models have in common, or in what the first has of its own, or lie in a tail.
    """
    generator = np.random.default_rng((models, people))
    common, own = generator.normal(size=people), off * generator.normal(size=(models, people))
    of = {"common": common, "own": own[0], "tail": np.abs(common)}[against]
    groups = np.ones(people, np.uint8)
    groups[np.argsort(-of)[: people // 8]] = 0
    labels = (generator.random(people) < 0.6).astype(np.uint8)
    return BatchQuestion("sp", 1 / (1 + np.exp(-common - own)), Records(labels, groups, ("sp", "eo")))


def covered(question: BatchQuestion, epsilon: float, draws: int, *, later: bool = False) -> float:
    """Return how often intervals of low-rank hold."""
    mechanism, inside, gaps = MECHANISMS["low-rank"], [], question.gaps()
    for draw in range(draws):
        noise, facts = Seeded(np.random.default_rng((7, draw))), NO_FACTS
        if later:
            facts = mechanism.release(question, facts, epsilon, 0.0, noise).facts
        low, high = ends_of(mechanism.release(question, facts, epsilon, 0.0, noise))[0]
        inside.append((low <= gaps) & (gaps <= high))
    return float(np.mean(inside))


@pytest.mark.slow(seconds=6)
@pytest.mark.parametrize(
    ("models", "people", "epsilon", "metric", "later", "against"),
    [
        (1, 60, 0.5, "sp", True, "own"), (1, 60, 0.5, "eo", False, "tail"), (5, 200, 1.0, "sp", True, "tail"),
        (25, 300, 3.0, "sp", False, "common"),
    ],
)  # fmt: skip
def test_two_cubes_hold_whoever_is_who(
    models: int, people: int, epsilon: float, metric: str, later: bool, against: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaches, "_MORE", 1)
    question = near(models, people, against)
    question = BatchQuestion(metric, question.predictions, question.records)
    # 600 draws of one model hold fewer than 92.5% once in 300 times where 95% do; more models err together.
    assert covered(question, epsilon, 600 if models == 1 else 200, later=later) >= LEVEL - 0.025


@pytest.mark.check
def test_the_twin_that_forgets_what_sums_have_in_common_holds_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    question = near(5, 300, "own", 0.02)
    assert covered(question, 1.0, 60) > 0.87
    monkeypatch.setattr(CentredSums, "weights", property(lambda self: 0 * self.common.weights.T))
    assert covered(question, 1.0, 60) < 0.8


def test_n0_s_noise_is_that_of_the_common_sums_where_it_is_bought_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, sound = list[Size](), counts.of_common

    def noted(size: Size, *of: object) -> Callable[..., NDArray[np.float64]]:
        sizes.append(size)
        return sound(size, *of)  # type: ignore[arg-type]

    monkeypatch.setattr(counts, "of_common", noted)
    covered(near(5, 300, "own"), 1.0, 1, later=True)
    assert [size.shared for size in sizes] == [True, False]


@pytest.mark.check
def test_q_of_two_cubes_is_the_quantile_of_other_draws() -> None:
    for shared in (True, False):
        # 10^6 draws err by 2.2e-4 of a level; quantiles are those of 10^5, 6.2 deviations up.
        common, own, generator = CubeNoise(1.0, 3), CubeNoise(0.5, 6), np.random.default_rng(12)
        of_common = generator.gamma(4, 1.0, 10**6) * generator.uniform(-1, 1, (3, 10**6))
        of_size = of_common[0] if shared else generator.gamma(4, 1.0, 10**6) * generator.uniform(-1, 1, 10**6)
        of_own = generator.gamma(7, 0.5, 10**6) * generator.uniform(-1, 1, 10**6)
        size = Size(0.0, common, whole=False, shared=shared)
        weights, units = np.array([[0.4, 0.0], [-0.2, 0.5]]), np.array([0.3, 0.0])
        reach = reaches.of_common(size, reaches.Noises(own, common, 2), units, weights, np.zeros(2))
        for least, most in ((0.0, 0.3), (-0.9, 0.2)):
            found = reach(np.full(2, least), np.full(2, most), LEVEL)
            for model in range(2):
                off = weights[:, model] @ of_common[1:] + units[model] * of_own + max(-least, most) * of_size
                assert LEVEL < np.mean((np.abs(off) <= found[model]) & (np.abs(of_size) <= size.reach)) < LEVEL + 0.008


@pytest.mark.few(1)
@pytest.mark.parametrize(("models", "people", "epsilon"), [(25, 1000, 0.5), (100, 2000, 1.0)])
def test_scores_near_one_model_are_promised_more_than_by_counts_and_a_cube(
    models: int, people: int, epsilon: float
) -> None:
    question, widths = near(models, people, "common"), {}
    for name in ("recommended", "counts", "cube"):
        mechanism = Recommended(promise="guaranteed") if name == "recommended" else MECHANISMS[name]
        ends = [
            ends_of(mechanism.release(question, NO_FACTS, epsilon, 0.0, Seeded(np.random.default_rng(draw))))[0]
            for draw in range(3)
        ]
        widths[name] = float(np.median([np.clip(high, -1, 1) - np.clip(low, -1, 1) for low, high in ends]))
    assert widths["recommended"] <= 0.6 * min(widths["counts"], widths["cube"])


@pytest.mark.few(1)
@pytest.mark.parametrize(("models", "people", "epsilon"), [(5, 1000, 1.0), (1, 300, 0.5), (25, 1000, 5.0)])
def test_a_policy_that_wants_guarantees_gets_the_narrowest(models: int, people: int, epsilon: float) -> None:
    question, widths = scores(models, people, 0.05), {}
    for name in ("recommended", "counts", "cube", "low-rank", "laplace", "randomized-response"):
        mechanism = Recommended(promise="guaranteed") if name == "recommended" else MECHANISMS[name]
        halves = []
        for draw in range(5):
            released = mechanism.release(question, NO_FACTS, epsilon, 0.0, Seeded(np.random.default_rng(draw)))
            assert released.low is not None
            assert released.high is not None
            halves.append(np.clip(released.high, -1, 1) - np.clip(released.low, -1, 1))
        widths[name] = float(np.median(halves))
    assert widths["recommended"] <= 1.1 * min(widths.values())


@pytest.mark.check
def test_a_policy_that_wants_guarantees_is_never_answered_without_one() -> None:
    sure, likely = Recommended(promise="guaranteed"), Recommended()
    question = scores(25, 600, 0.02)
    assert likely.chosen("sp", 600, 25, 0.5, 0.0, question).name == "cells"
    for epsilon in (0.1, 0.5, 2.0, 5.0, 10.0):
        for delta in (0.0, 1e-6):
            for limit in (0.55, 1.0):
                asked = Recommended(promise="guaranteed", reveal_max=limit), epsilon, delta
                released = asked[0].release(question, NO_FACTS, epsilon, delta, Seeded(np.random.default_rng(1)))
                assert released.low is not None, asked
    bought = likely.release(question, NO_FACTS, 0.5, 0.0, Seeded(np.random.default_rng(1))).facts
    assert likely.is_free(bought, 0.5, question)
    assert not sure.is_free(bought, 0.5, question)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("counts", "ppv"), ("cube", "di"), ("low-rank", "sp"), ("counts-gaussian", "eodds_sum"),
        ("randomized-response", "di"),
    ],
)  # fmt: skip
def test_whatever_a_model_predicts_its_interval_is_one(name: str, metric: str) -> None:
    groups = np.repeat([0, 1, 1, 1], 5).astype(np.uint8)
    records = Records((np.arange(20) % 2).astype(np.uint8), groups, ("sp", metric))
    rows = np.array([np.zeros(20), np.ones(20), np.arange(20) == 0, np.arange(20) == 19, np.arange(20) != 0, groups])
    question, delta = (
        BatchQuestion(metric, rows.astype(np.float64), records),
        1e-6 if name == "counts-gaussian" else 0.0,
    )
    for epsilon in (1e-3, 0.5, 6.0, 40.0):
        noise = Seeded(np.random.default_rng(1))
        for low, high in ends_of(MECHANISMS[name].release(question, NO_FACTS, epsilon, delta, noise)):
            assert (low <= high).all()


@pytest.mark.parametrize("name", ["counts", "cube"])
def test_precision_of_a_model_that_names_nobody_is_known_and_of_one_that_names_one_is_not(name: str) -> None:
    groups = np.repeat([0, 1], [8, 52]).astype(np.uint8)
    records = Records((np.arange(60) % 2).astype(np.uint8), groups, ("ppv",))
    rows = np.zeros((3, 60))
    rows[1, 20] = rows[2, ::3] = 1
    released = MECHANISMS[name].release(
        BatchQuestion("ppv", rows, records), NO_FACTS, 1.0, 0.0, Seeded(np.random.default_rng(1))
    )
    (low, high), _ = ends_of(released)
    assert (low[0], high[0]) == (0.0, 0.0)
    assert (high - low)[1:].min() > 0.5
