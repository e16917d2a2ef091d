"""Rows of counts by group with noise from one ball: what they cost, their noise, and what is still told.

Every statistical test has a fixed seed and a false-alarm rate of 1e-7.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from compliance.answers import group_rows, groups
from compliance.answers.group_rows import ball_noise, parts_of
from compliance.answers.groups import released
from compliance.noise.sampling import Noise, Seeded, System
from compliance.records.groups import Attribute, Grouped
from fairwall.client.by_group import MEASURES, ByGroup
from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.laws.groups.group_counts import noise_rate
from fairwall.laws.groups.group_tables import compared, p_values, worst_pair
from fairwall.laws.metrics.group_size_range import Shares
from fairwall.laws.noise.row_noise import SCORE_REACH, Ball, WholeCube, points
from fairwall.laws.privacy.exposure import NO_LIMIT, Limit, of_rows
from fairwall.rpc.arrays import from_message
from tests.support.noise_sources import SILENT

FALSE_ALARM = 1e-7
DECISIONS = ("selection_rate", "true_positive_rate", "false_positive_rate", "accuracy")
SCORES = ("mean_score", "scoring_rate")


def grouped(cells: Any, labels: Any, count: int) -> Grouped:
    attribute = Attribute("kind", tuple(map(str, range(count))))
    return Grouped((attribute,), np.atleast_2d(np.asarray(cells, np.uint8)), np.asarray(labels, np.uint8))


def release_of(
    people: Grouped,
    predictions: Any,
    measures: tuple[str, ...],
    epsilon: float,
    noise: Noise,
    limit: Limit = NO_LIMIT,
    worth: float = math.inf,
) -> wire.GroupRelease:
    numbers = [wire.Measure.Name(MEASURES[measure]) for measure in measures]
    header = wire.ByGroupHeader(by=("kind",), measures=numbers, epsilon=epsilon)
    return released(people, header, np.atleast_2d(predictions).astype(float), noise, limit, worth=worth)


def read(people: Grouped, release: wire.GroupRelease, measures: tuple[str, ...], models: int) -> ByGroup:
    values = tuple((value,) for value in people.attributes[0].values)
    return ByGroup(("kind",), values, measures, models, release, 0.0, 1.0, 0.0, 0.0)


# The law --------------------------------------------------------------------------------------------------------------


def of_row(limit: int, count: int) -> list[tuple[int, ...]]:
    """All rows that sum up to 0 and whose half l1 norm is at most the limit, by looking at each."""
    every = product(range(-limit, limit + 1), repeat=count)
    return [row for row in every if sum(row) == 0 and sum(map(abs, row)) <= 2 * limit]


def size_of(row: tuple[int, ...], reach: int) -> int:
    return -(-sum(map(abs, row)) // (2 * reach))


def test_the_lattice_points_are_counted_right() -> None:
    for count, limit in product((2, 3, 4, 5), range(4)):
        assert points(limit, count) == len(of_row(limit, count))


BALLS = [Ball(0.8, 2, (1, 1, 1)), Ball(1.5, 3, (1, 1)), Ball(3.0, 3, (1, 2)), Ball(0.7, 2, (1, 3))]


def law_of(ball: Ball, sizes: int) -> dict[tuple[tuple[int, ...], ...], float]:
    """The probability of all rows of noise at once by its definition, of those up to a size."""
    every = product(*(of_row(sizes * reach, ball.groups) for reach in ball.reaches))
    weights = {rows: math.exp(-ball.rate * max(map(size_of, rows, ball.reaches))) for rows in every}
    # So many rows of each larger size are beyond.
    within = [math.prod(points(t * reach, ball.groups) for reach in ball.reaches) for t in range(120)]
    beyond = (math.exp(-ball.rate * t) * (within[t] - within[t - 1]) for t in range(sizes + 1, 120))
    whole = math.fsum([*weights.values(), *beyond])
    return {rows: weight / whole for rows, weight in weights.items()}


def p_of(drawn: NDArray[np.int64], law: dict[tuple[tuple[int, ...], ...], float]) -> float:
    seen = Counter(tuple(map(tuple, rows)) for rows in drawn.tolist())
    usual = [rows for rows, p in law.items() if len(drawn) * p >= 10]
    observed = [seen[rows] for rows in usual]
    expected = [len(drawn) * law[rows] for rows in usual]
    observed.append(len(drawn) - sum(observed))
    expected.append(len(drawn) - sum(expected))
    return float(scipy.stats.chisquare(observed, expected).pvalue)


def sizes_apart(noise: Noise, ball: Ball, times: int) -> NDArray[np.int64]:
    """A twin: each row has a size of its own."""
    return np.concatenate([ball_noise(noise, replace(ball, reaches=(each,)), times) for each in ball.reaches], axis=1)


@pytest.mark.check
@pytest.mark.parametrize(
    ("ball", "source"),
    [(BALLS[1], "system"), (BALLS[0], "seeded"), (BALLS[1], "twin"), (BALLS[2], "system"), (BALLS[3], "seeded")],
)
def test_noise_has_its_law(ball: Ball, source: str) -> None:
    noise = System() if source == "system" else Seeded(np.random.default_rng(5))
    drawn = (sizes_apart if source == "twin" else ball_noise)(noise, ball, 2_500)
    assert drawn.shape == (2_500, len(ball.reaches), ball.groups)
    assert not drawn.sum(axis=2).any()
    law = law_of(ball, {2: 12, 3: 3}[ball.groups] // (len(ball.reaches) - 1))
    assert (p_of(drawn, law) > FALSE_ALARM) == (source != "twin")


@pytest.mark.parametrize("ball", [BALLS[3], Ball(1.0, 10, (1,) * 26), Ball(0.3, 4, (1, SCORE_REACH))])
@pytest.mark.few(1)
def test_what_is_simulated_is_what_is_drawn(ball: Ball) -> None:
    """Kolmogorov and Smirnov's test of one number of each row, and of their product."""
    simulated = ball.simulated(np.random.default_rng(6), 3_000, ball.reaches[-1])
    drawn = ball_noise(Seeded(np.random.default_rng(7)), ball, 3_000)[:, [0, -1]].transpose(1, 0, 2)
    looks = [lambda z: z[0, :, 0], lambda z: z[1, :, -1], lambda z: np.abs(z[0]).sum(axis=1) * np.abs(z[1]).sum(axis=1)]
    for look in looks:
        found = scipy.stats.ks_2samp(look(simulated.astype(float)), look(drawn.astype(float)))
        assert found.pvalue > FALSE_ALARM


@pytest.mark.check
@pytest.mark.parametrize("rate", [0.05, 6.0])
def test_sizes_and_variances_are_those_of_the_law(rate: float) -> None:
    ball = Ball(rate, 2, (1,) * 4)
    t = np.arange(4_000)
    likely = np.exp(-rate * t) * (2.0 * t + 1) ** 4
    likely /= likely.sum()
    assert ball.variance(1) == pytest.approx(likely @ (t * (t + 1)) / 3, rel=1e-3)
    assert Ball(1.0, 10, (1,) * 26).variance(1) == pytest.approx(
        float(ball_noise(Seeded(np.random.default_rng(8)), Ball(1.0, 10, (1,) * 26), 2_000)[:, 1].var()), rel=0.05
    )
    # Of two groups a row is one number of a cube, of whose sizes the half of a person is rounded.
    assert WholeCube(1 / rate, 4, rate).variance() == pytest.approx(ball.variance(1) + 1 / 12, rel=1e-3)


def test_a_draw_of_many_models_takes_no_second() -> None:
    import time

    before = time.process_time()
    ball_noise(System(), Ball(1.0, 10, (1,) * 101))
    assert time.process_time() - before < 2.0


# What it costs --------------------------------------------------------------------------------------------------------


def batches(n: int) -> Iterator[tuple[tuple[str, ...], NDArray[np.float64]]]:
    rng = np.random.default_rng(n)
    yield ("selection_rate",), rng.integers(0, 2, (2, n)).astype(float)
    yield DECISIONS, rng.integers(0, 2, (3, n)).astype(float)
    yield ("accuracy",), rng.integers(0, 2, (2, n)).astype(float)
    yield SCORES, rng.random((2, n))
    yield ("mean_score",), np.vstack([np.linspace(0, 1, n), rng.integers(0, 2, n)])


def moved(release: wire.GroupRelease, other: wire.GroupRelease, *, apart: bool) -> float:
    """The loss of two neighbours at worst, by the law that is told: the rate times T of what lies between them.

    With sizes of their own rows cost the sum of theirs.
    """
    loss = 0.0
    for mine, theirs in zip(release.rows, other.rows, strict=True):
        between = np.abs(np.asarray(from_message(mine.counts)) - np.asarray(from_message(theirs.counts))).sum(axis=1)
        sizes = np.ceil(between / (2 * np.array(mine.reach)))
        loss += mine.rate * float(sizes.sum() if apart else sizes.max())
    return loss


def worst_loss(n: int, count: int, epsilon: float, *, apart: bool = False) -> float:
    """The loss at worst over all groups that n people can be in, and all neighbours of these."""
    worst = 0.0
    for measures, predictions in batches(n):
        people = [grouped(cells, np.arange(n) % 3, count) for cells in product(range(count), repeat=n)]
        told = {tuple(each.codes[0]): release_of(each, predictions, measures, epsilon, SILENT) for each in people}
        for cells, release in told.items():
            assert release.rows
            assert not release.tables
            for person, group in product(range(n), range(count)):
                other = told[(*cells[:person], group, *cells[person + 1 :])]
                worst = max(worst, moved(release, other, apart=apart))
    return worst


@pytest.mark.few(1)
@pytest.mark.parametrize(("n", "count", "epsilon"), [(3, 2, 0.1), (3, 3, 3.0), (4, 2, 0.1)])
def test_a_request_costs_its_epsilon_and_no_more(n: int, count: int, epsilon: float) -> None:
    assert 0.9998 * epsilon <= worst_loss(n, count, epsilon) <= epsilon


def test_the_loss_is_attained_both_ways() -> None:
    """By the definition of the law: of two neighbours' rows what is told has e^rate of the probability, and e^-rate."""
    ball = Ball(1.2, 3, (1, 1))
    move = np.array([[1, -1, 0], [-1, 1, 0]])  # from the first group to the second, of whom the model says no
    law = law_of(ball, 4)
    inside = {rows: p for rows, p in law.items() if max(map(size_of, rows, ball.reaches)) < 3}
    ratios = [math.log(law[tuple(map(tuple, (np.array(rows) + move).tolist()))] / p) for rows, p in inside.items()]
    assert max(ratios) == pytest.approx(1.2)
    assert min(ratios) == pytest.approx(-1.2)


def test_twins_that_cost_more_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert worst_loss(3, 2, 1.0, apart=True) > 1.5  # sizes of their own
    monkeypatch.setattr("compliance.answers.group_rows.SCORE_REACH", SCORE_REACH // 2)
    monkeypatch.setattr(groups, "noise_rate", lambda epsilon, distance=2.0: noise_rate(epsilon, distance / 2))
    assert worst_loss(3, 2, 1.0) > 1.0  # half of what one person moves


# What is told ---------------------------------------------------------------------------------------------------------


@pytest.mark.check
@pytest.mark.parametrize(("measures", "scores"), [(DECISIONS, False), (SCORES, True), (("accuracy",), False)])
def test_rows_tell_what_tables_do(measures: tuple[str, ...], scores: bool) -> None:
    rng = np.random.default_rng(9)
    n, people = 300, grouped(rng.choice(4, 300, p=[0.6, 0.3, 0.09, 0.01]), rng.integers(0, 3, 300), 4)
    models = rng.random((5, n)) if scores else rng.integers(0, 2, (5, n)).astype(float)
    models[1], models[2] = 1, 1 - models[0]
    exact = read(people, release_of(people, models, measures, math.inf, SILENT), measures, 5)
    silent = read(people, release_of(people, models, measures, 1.0, SILENT), measures, 5)
    assert silent.release.rows
    for measure, model in product(measures, range(5)):
        one, other = exact.share(measure, model), silent.share(measure, model)
        assert other.top == pytest.approx(one.top, abs=n * 2.0**-16)
        assert other.bottom.tolist() == one.bottom.tolist()
    assert [record["people"] for record in exact.records()] == [record["people"] for record in silent.records()]


def test_scores_that_were_rounded_lie_in_intervals_without_noise() -> None:
    """Scores are rounded before they are added up: the mean of a group is not known to the last digit."""
    rng = np.random.default_rng(3)
    n, cells = 300, np.arange(300) % 3
    people, models = grouped(cells, rng.integers(0, 2, 300), 3), rng.random((5, n)) ** 2
    for epsilon in (1e4, math.inf):
        answer = read(people, release_of(people, models, ("mean_score",), epsilon, SILENT), ("mean_score",), 5)
        assert bool(answer.release.rows) == (epsilon == 1e4)
        for model in range(5):
            share, exact = answer.share("mean_score", model), np.bincount(cells, models[model]) / 100
            low, high = share.interval()
            assert (low <= exact).all()
            assert (exact <= high).all()
            assert (high - low).max() < (0.002 if share.top_noise.any() else 1e-4)


def test_mirror_images_and_constants_need_no_row() -> None:
    model = np.array([1.0, 0, 1, 0, 0])
    (part,) = parts_of([wire.MEASURE_SELECTION_RATE], np.zeros(5, np.uint8), np.array([model, 1 - model, model * 0]))
    assert part.reaches == [1, 1]
    assert part.row == [1, 1, 0]
    assert part.slope == [0.5, -0.5, 0.0]


def test_a_model_of_two_scores_is_as_good_as_decisions() -> None:
    (part,) = parts_of([wire.MEASURE_MEAN_SCORE], np.zeros(4, np.uint8), np.array([[0.2, 0.8, 0.8, 0.2]]))
    assert part.reaches == [1, 1]
    assert part.offset[0] + part.slope[0] * part.steps[1] == pytest.approx([0.2, 0.8, 0.8, 0.2])


def test_many_unlike_models_get_rows_and_few_or_alike_ones_tables() -> None:
    rng = np.random.default_rng(10)
    people, unlike = grouped(rng.integers(0, 10, 2_000), np.ones(2_000), 10), rng.integers(0, 2, (25, 2_000))
    for models, rows in (
        (unlike, True),
        (unlike[:1], False),
        (unlike[:2], False),
        (np.repeat(unlike[:1], 25, 0), False),
    ):
        assert bool(release_of(people, models, ("selection_rate",), 1.0, SILENT, worth=groups.WORTH).rows) == rows


WORLDS = {
    "tiny": ([40, 3, 1], 0.5),
    "alike": ([100, 100, 100], 0.5),
    "none": ([60, 5, 200], 0.0),
    "all": ([60, 5, 200], 1.0),
    "two": ([300, 20], 0.3),
    "two alike": ([150, 150], 0.5),
}


def missed(name: str, epsilon: float, draws: int, *, twin: float = 1.0) -> dict[str, list[bool]]:
    """How often an interval does not hold the exact number: one of each kind and release."""
    rng = np.random.default_rng([11, *name.encode()])
    sizes, rate = WORLDS[name]
    count, n = len(sizes), sum(sizes)
    cells = np.repeat(np.arange(count), sizes)
    people = grouped(cells, np.ones(n), count)
    out: dict[str, list[bool]] = {"rate": [], "difference": [], "pair": [], "size": []}
    measures = ("true_positive_rate",)
    for _ in range(draws):
        # The other models are coins; the one that is looked at has the rate of its world.
        models = np.vstack([rng.random((1, n)) < rate, rng.integers(0, 2, (7, n))])
        told = release_of(people, models, measures, epsilon, Seeded(rng))
        for part in told.rows:
            part.rate *= twin
        counts, exact = read(people, told, measures, 8), np.bincount(cells, models[0], count) / sizes
        group, share = rng.integers(count), counts.share(*measures)
        found, (low, high) = compared(share, np.ones(count, np.bool_)), share.interval()
        out["rate"].append(not low[group] - 1e-9 <= exact[group] <= high[group] + 1e-9)
        far = exact.max() - exact[group]
        out["difference"].append(not found.difference_low[group] - 1e-9 <= far <= found.difference_high[group] + 1e-9)
        pair = worst_pair(share, np.ones(count, np.bool_))
        assert pair is not None
        apart = exact.max() - exact.min()
        out["pair"].append(not pair.difference_low - 1e-9 <= apart <= pair.difference_high + 1e-9)
        people_low, people_high = counts.joined().people[1:]
        out["size"].append(not people_low[group] <= sizes[group] <= people_high[group])
    return out


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "epsilon"), [*zip(WORLDS, (0.3, 1.0, 5.0, 0.3, 1.0, 5.0), strict=True)])
@pytest.mark.parametrize("draws", [12, pytest.param(300, marks=pytest.mark.slow)])
def test_intervals_hold_the_exact_number(name: str, epsilon: float, draws: int) -> None:
    for kind, times in missed(name, epsilon, draws).items():
        assert scipy.stats.binom.sf(sum(times) - 1, len(times), 0.05) > FALSE_ALARM, kind


@pytest.mark.check
def test_intervals_for_half_of_the_noise_are_found_out() -> None:
    times = missed("alike", 0.3, 60, twin=2.0)["rate"]
    assert scipy.stats.binom.sf(sum(times) - 1, len(times), 0.05) <= FALSE_ALARM


def test_groups_that_are_joined_add_up_and_p_values_are_seldom_small() -> None:
    """Noise counted, fewer than 5% have a p-value below 0.05 where groups are drawn alike."""
    rng, small = np.random.default_rng(16), []
    for _ in range(8):
        people, models = grouped(rng.integers(0, 3, 300), np.ones(300), 3), rng.random((6, 300)) < 0.3
        counts = read(people, release_of(people, models, ("selection_rate",), 2.0, Seeded(rng)), ("selection_rate",), 6)
        small.append(p_values(counts.share("selection_rate"))[rng.integers(3)] < 0.05)
    assert scipy.stats.binom.sf(sum(small) - 1, len(small), 0.05) > FALSE_ALARM
    far = rng.random((6, 300)) < np.where(people.codes[0] == 0, 0.05, 0.95)
    told = read(people, release_of(people, far, ("selection_rate",), 20.0, Seeded(rng)), ("selection_rate",), 6)
    assert p_values(told.share("selection_rate")).max() < 0.02
    attributes = (Attribute("kind", ("0", "1")), Attribute("sex", ("f", "m")))
    crossed = Grouped(attributes, rng.integers(0, 2, (2, 300)).astype(np.uint8), np.ones(300, np.uint8))
    header = wire.ByGroupHeader(by=("kind", "sex"), measures=[wire.MEASURE_SELECTION_RATE], epsilon=2.0)
    release = released(crossed, header, models.astype(float), Seeded(rng), worth=math.inf)
    every = tuple(product(*(each.values for each in attributes)))
    bought = ByGroup(("kind", "sex"), every, ("selection_rate",), 6, release, 0.0, 2.0, 0.0, 0.0)
    one, joined = bought.share("selection_rate", 3), bought.share("selection_rate", 3, ("sex",))
    assert joined.top.tolist() == [one.top[[0, 2]].sum(), one.top[[1, 3]].sum()]
    assert len(bought.frame(("sex",))) == 12


# What is given away ---------------------------------------------------------------------------------------------------


def named_right(n: int, least: int, rows: int, epsilon: float, trials: int, count: int = 2) -> tuple[float, float]:
    """Name who is in the first group by all rows: the mean over both sides of how many are right, and its error.

    Each model says yes to a random half. It is told what T is, which it could only guess, and reads rows by approximate
    message passing (Rangan, ISIT 2011): each person's log-odds, given even noise up to T and what the others are by
    now.
    """
    rng, ball, found = np.random.default_rng(12), Ball(epsilon, count, (1,) * (rows + 1)), []
    share = least / n
    for noise in ball_noise(Seeded(rng), ball, trials):
        z = rng.permutation(n) < least
        steps = 2.0 * rng.integers(0, 2, (rows, n)) - 1
        told, size = steps @ z + noise[1:, 0], max(np.abs(noise).sum(axis=1).max() / 2, 1.0) + 0.5
        guess, spread, pull = np.full(n, share), n * share * (1 - share), np.zeros(rows)
        for _ in range(40):
            others = steps @ guess - spread * pull
            a, b = ((told + end - others) / math.sqrt(spread) for end in (-size, size))
            inside = np.maximum(ndtr(b) - ndtr(a), 1e-12)
            at_a, at_b = (np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) for x in (a, b))
            mean, less = (at_a - at_b) / inside, (b * at_b - a * at_a) / inside + ((at_a - at_b) / inside) ** 2
            pull = (pull + mean / math.sqrt(spread)) / 2
            width = spread / max(float(less.sum()), 1e-12)
            odds = (2 * (guess + width * (steps.T @ pull)) - 1) / (2 * width)
            guess = (guess + expit(np.clip(odds + math.log(share / (1 - share)), -50, 50))) / 2
            spread = max(float((guess * (1 - guess)).sum()), 1e-9)
        said = odds > 0
        found.append((said[z].mean() + (~said[~z]).mean()) / 2)
    return float(np.mean(found)), float(np.std(found) / math.sqrt(trials))


CORNERS = [(500, 10, 25, 3.0, 2), (500, 50, 100, 1.0, 5), (500, 150, 60, 8.0, 2), (200, 5, 5, 5.0, 5)]


@pytest.mark.few(1)
@pytest.mark.parametrize(("n", "least", "rows", "epsilon", "count"), CORNERS)
def test_no_attack_that_is_played_finds_out_more_than_is_said(
    n: int, least: int, rows: int, epsilon: float, count: int
) -> None:
    found, error = named_right(n, least, rows, epsilon, 60, count)
    shares = Shares(minimum_group=least, by_policy=True)
    assert found < of_rows([(n, rows + 1)], epsilon, shares) + 5.2 * error
    if count == 2:  # and what is said is no more than that
        assert found > of_rows([(n, rows + 1)], epsilon, shares) - 0.02 - 5.2 * error


def test_what_is_asked_for_too_dearly_gets_more_noise() -> None:
    rng, shares = np.random.default_rng(13), Shares(minimum_group=20, by_policy=True)
    people, models = grouped(rng.integers(0, 3, 2_000), np.ones(2_000), 3), rng.integers(0, 2, (40, 2_000))
    free, limited = (
        release_of(people, models, ("selection_rate",), 5.0, SILENT, limit).rows[0]
        for limit in (NO_LIMIT, Limit(0.6, shares))
    )
    assert free.rate == noise_rate(5.0, 1.0)
    assert limited.rate < 0.5 * free.rate
    assert 0.59 < of_rows([(2_000, len(limited.reach))], limited.rate, shares) <= 0.6


def test_a_ball_s_draws_do_not_depend_on_who_is_who(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(14)
    models, seen = rng.integers(0, 2, (6, 100)), []
    whole = group_rows.ball_noise
    monkeypatch.setattr(groups, "ball_noise", lambda *asked: seen.append(whole(*asked)) or seen[-1])
    for _ in range(2):
        people = grouped(rng.integers(0, 3, 100), np.ones(100), 3)
        release_of(people, models, ("selection_rate",), 1.0, Seeded(np.random.default_rng(15)))
    assert np.array_equal(*seen)
