"""What each mechanism promises, checked exactly: a noise source that notes what it was asked for tells the loss.

Every statistical test has a fixed seed and a false-alarm rate of 1e-7 over the choice of that seed.
"""

import functools
import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from compliance.answers.audits import AuditCase
from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, LossKind, Neighbours, Rule, pure
from compliance.mechanisms import MECHANISMS, Mechanism
from compliance.mechanisms.counts import CountsGaussian, CountsMechanism
from compliance.mechanisms.cube import CubeMechanism, LowRankMechanism
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion, candidates, chosen
from compliance.mechanisms.noise_on_gaps import (
    CauchyMechanism,
    Conceal,
    ConcealLaplace,
    Exact,
    GaussianMechanism,
    LaplaceMechanism,
    Round,
    bounded,
)
from compliance.mechanisms.recommended import Recommended, answerers
from compliance.noise.sampling import Seeded, System
from compliance.records.metrics import METRICS
from compliance.records.people import Records
from fairwall.laws.choice import choose as choice
from fairwall.laws.choice.prediction import MIDPOINT, SHRUNK, choose, midpoint, standings
from fairwall.laws.mechanisms.calibration import cauchy_loss, conceal_law, laplace_law, metric_range
from fairwall.laws.metrics.group_size_range import DEFAULT_SHARES
from fairwall.laws.metrics.values import possible_sums
from fairwall.laws.noise.cauchy import tuned_law
from fairwall.laws.noise.distributions import Laplace
from fairwall.laws.noise.gaussian import gaussian_delta
from tests.support.noise_sources import Asked, Spy

FALSE_ALARM = 1e-7
OURS: dict[str, Mechanism] = {
    mechanism.name: mechanism
    for mechanism in (
        Exact(), Round(), LaplaceMechanism(), GaussianMechanism(), Conceal(), ConcealLaplace(), CauchyMechanism(),
        CountsMechanism(), CountsGaussian(), CubeMechanism(), LowRankMechanism(),
        Recommended(),
    )
}  # fmt: skip
LABELS = np.array([0, 1, 1, 0, 1, 0, 1, 0, 1], dtype=np.uint8)
GROUPS = np.array([1, 1, 0, 0, 1, 1, 0, 0, 1], dtype=np.uint8)


def question(
    metric: str = "sp",
    predictions: NDArray[np.float64] | None = None,
    protected: NDArray[np.uint8] = GROUPS,
    labels: NDArray[np.uint8] = LABELS,
) -> BatchQuestion:
    if predictions is None:
        predictions = (np.random.default_rng(3).random((7, labels.size)) < 0.5).astype(np.float64)
    return BatchQuestion(metric, predictions, Records(labels, protected, (metric,)))


def people(n0: int, n1: int, queries: int) -> BatchQuestion:
    """Ask the same question so often: is h = 1 for every other person."""
    protected = np.repeat(np.array([0, 1], np.uint8), (n0, n1))
    predictions = np.tile(np.arange(n0 + n1) % 2.0, (queries, 1))
    return question("sp", predictions, protected, np.zeros(n0 + n1, np.uint8))


def seeded(seed: int = 9) -> Seeded:
    return Seeded(np.random.default_rng(seed))


def delta_for(name: str) -> float:
    return 1e-5 if OURS[name].guarantee == "approximate" else 0.0


# --- the contract


def test_every_mechanism_is_listed_under_its_name_and_has_a_title_of_its_own_for_reports() -> None:
    assert all(MECHANISMS[name] == mechanism for name, mechanism in OURS.items())
    assert all(mechanism.name == name for name, mechanism in MECHANISMS.items())
    titles = [mechanism.title for mechanism in MECHANISMS.values()]
    assert all(titles)
    assert len(set(titles)) == len(titles)
    assert hasattr(Mechanism, "title"), "so that one without it is a type error in the table of all"


@pytest.mark.parametrize("metric", ["eodds_max", "di"])
def test_contract(metric: str) -> None:
    epsilon = 0.9
    for mechanism, noise in itertools.product(OURS.values(), (seeded(), System())):
        delta, asked = delta_for(mechanism.name), question(metric)
        before = asked.predictions.copy()
        if mechanism.refuses(metric, epsilon, delta) is not None:
            assert not METRICS[metric].bounded
            with pytest.raises(ValueError, match="without limit"):
                mechanism.release(asked, NO_FACTS, epsilon, delta, noise)
            continue
        released = mechanism.release(asked, NO_FACTS, epsilon, delta, noise)
        assert released.values.shape == (7,)
        assert released.values.dtype == np.float64
        assert mechanism.name == "exact" or np.isfinite(released.values).all()
        assert np.array_equal(before, asked.predictions)


def test_seeded_releases_replay() -> None:
    for mechanism in OURS.values():
        one, again, other = (
            mechanism.release(question(), NO_FACTS, 0.9, 1e-5, seeded(seed)).values.tolist() for seed in (1, 1, 2)
        )
        assert one == again
        assert (one != other) == (mechanism.guarantee != "none")


def test_a_budget_out_of_range_is_refused() -> None:
    for epsilon, delta in ((0.0, 0.0), (math.nan, 0.0), (0.5, 1.0), (0.5, -0.1)):
        for mechanism in OURS.values():
            with pytest.raises(ValueError, match="must be"):
                mechanism.cost(epsilon, delta)
            with pytest.raises(ValueError, match="must be"):
                mechanism.release(question(), NO_FACTS, epsilon, delta, seeded())


def test_cost() -> None:
    for name in ("exact", "round"):
        assert OURS[name].cost(1.0, 0.0).epsilon == math.inf
    for name in ("laplace", "conceal", "cauchy", "counts", "cube", "low-rank", "recommended"):
        loss = OURS[name].cost(0.5, 0.0)
        assert (loss.epsilon, loss.delta) == (0.5, 0.0)
    for name in ("gaussian", "counts-gaussian"):
        loss = OURS[name].cost(0.5, 1e-5)
        assert (loss.epsilon, loss.delta, loss.law) == (0.5, 1e-5, LossKind.GAUSSIAN)
    for name in ("conceal-laplace", "recommended"):
        loss = OURS[name].cost(0.5, 1e-5)
        assert (loss.epsilon, loss.delta) == (0.5, 1e-5)


def test_refusals_are_public() -> None:
    assert OURS["conceal-laplace"].refuses("sp", 1.0, 1e-5) is not None
    for name in ("gaussian", "counts-gaussian", "conceal-laplace"):
        assert "delta" in (OURS[name].refuses("sp", 0.5, 0.0) or "")
        assert OURS[name].refuses("sp", 0.5, 1e-5) is None
    for name in ("laplace", "gaussian", "conceal", "conceal-laplace", "cauchy"):
        assert "without limit" in (OURS[name].refuses("di", 0.5, 1e-5) or "")


def test_no_limit_on_epsilon_is_exact_and_costs_infinitely() -> None:
    for name in OURS.keys() - {"conceal-laplace", "round"}:
        assert OURS[name].cost(math.inf, 1e-5).epsilon == math.inf
        released = OURS[name].release(question(), NO_FACTS, math.inf, 1e-5, seeded())
        assert released.values.tolist() == question().gaps().tolist()


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="queries must be"):
        question(predictions=np.zeros((0, LABELS.size)))


def test_round_rounds_whatever_the_budget() -> None:
    for epsilon in (1.0, math.inf):
        released = OURS["round"].release(question(), NO_FACTS, epsilon, 0.0, seeded())
        assert released.values.tolist() == np.round(question().gaps(), 2).tolist()
        assert released.values.tolist() != question().gaps().tolist()
        assert not np.signbit(released.values[released.values == 0]).any()
        assert released.low is None


# --- laws


@pytest.mark.parametrize(
    ("name", "scale", "reference"),
    [
        ("laplace", laplace_law("sp", 100, 40_000, 5.0).scale, scipy.stats.laplace),
        ("conceal", conceal_law("sp", 10, 90, 40_000, 5.0).scale, scipy.stats.cauchy),
        ("cauchy", tuned_law("sp", 10, 90, 40_000, 5.0).scale, scipy.stats.cauchy),
    ],
)
def test_noise_follows_its_law(name: str, scale: float, reference: scipy.stats.rv_continuous) -> None:
    asked = people(10, 90, 40_000)
    noise = OURS[name].release(asked, NO_FACTS, 5.0, 0.0, seeded(1)).values - asked.gaps()
    assert scipy.stats.kstest(noise, reference(scale=scale).cdf).pvalue > FALSE_ALARM


def test_neighbours_release_on_one_grid() -> None:
    for name in ("laplace", "gaussian", "conceal", "cauchy"):
        steps = set()
        for protected in (GROUPS, *neighbours_of(GROUPS)):
            spy = Spy(System())
            released = OURS[name].release(question(protected=protected), NO_FACTS, 0.9, delta_for(name), spy).values
            (drawn,) = spy.asked
            assert all((value / drawn.step).is_integer() for value in released.tolist())
            assert math.log2(drawn.step).is_integer()
            assert drawn.step <= drawn.scale * 2.0**-20
            steps.add(drawn.step)
        assert len(steps) == 1


# --- privacy, exactly: all neighbours, nasty predictions


def neighbours_of(protected: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
    for person in range(protected.size):
        flipped = protected.copy()
        flipped[person] ^= 1
        yield flipped


def asked_for(mechanism: Mechanism, asked: BatchQuestion, epsilon: float, delta: float) -> list[Asked]:
    spy = Spy(seeded())
    mechanism.release(asked, NO_FACTS, epsilon, delta, spy)  # type: ignore[arg-type]
    return spy.asked


def pure_loss(one: list[Asked], other: list[Asked]) -> float:
    """The largest log-ratio between what two databases release, given what noise they ask for."""
    if len(one) != len(other) or not one:
        return math.inf
    total = 0.0
    for a, b in zip(one, other, strict=True):
        assert (a.law, a.step) == (b.law, b.step)
        if a.law == "laplace":
            assert a.scale == b.scale
            # The discrete law: the rounded values, in whole steps.
            total += float(np.abs(np.rint(a.values / a.step) - np.rint(b.values / b.step)).sum()) * a.step / a.scale
        elif a.law == "cube":
            assert a.scale == b.scale
            total += float(np.abs(np.rint(a.values / a.step) - np.rint(b.values / b.step)).max()) * a.step / a.scale
        else:
            assert a.law == "cauchy"
            total += sum(cauchy_loss(float(shift), a.scale, b.scale) for shift in a.values - b.values)
    return total


def gaussian_distance(one: list[Asked], other: list[Asked]) -> float:
    """How far apart two databases' numbers are on the grid, in standard deviations."""
    total = 0.0
    for a, b in zip(one, other, strict=True):
        assert (a.law, a.step, a.scale) == (b.law, b.step, b.scale)
        moved = (np.rint(a.values / a.step) - np.rint(b.values / b.step)) * a.step
        total = math.hypot(total, float(np.linalg.norm(moved)) / a.scale)
    return total


def nasty(labels: NDArray[np.uint8], binary: bool) -> NDArray[np.float64]:
    """Every prediction of 0 or 1 for few people, or of 1/2: the scores that move an absolute gap most hold it."""
    return np.array(list(itertools.product((0.0, 1.0) if binary else (0.0, 0.5, 1.0), repeat=labels.size)))


def pairs(metric: str) -> Iterator[tuple[BatchQuestion, BatchQuestion]]:
    """Neighbours of six people who admit the metric, asked one question of all; repeated, a batch of the worst."""
    labels = np.array([1, 1, 1, 0, 0, 0], dtype=np.uint8)
    for groups in itertools.product((0, 1), repeat=labels.size):
        protected = np.array(groups, dtype=np.uint8)
        for other in neighbours_of(protected):
            for strata in METRICS[metric].strata:
                members = labels >= 0 if strata is None else labels == strata
                if {*protected[members].tolist()} != {0, 1} or {*other[members].tolist()} != {0, 1}:
                    break
            else:
                if groups < tuple(other.tolist()):
                    yield (
                        question(metric, nasty(labels, METRICS[metric].binary), protected, labels),
                        question(metric, nasty(labels, METRICS[metric].binary), other, labels),
                    )


QUERIES = 5


@functools.cache
def worst_batches(metric: str, of_counts: bool) -> tuple[tuple[BatchQuestion, BatchQuestion], ...]:
    """For all neighbouring counts the flip and the prediction that move what gets noise most, asked QUERIES times.

    A batch's budget is split evenly, so no other batch costs these neighbours more. Of counts each decision is as bad.
    """
    worst: dict[object, tuple[float, BatchQuestion, BatchQuestion]] = {}
    for one, other in pairs(metric):
        moved = np.zeros(one.queries) if of_counts else np.abs(one.gaps() - other.gaps())
        row, key = int(moved.argmax()), (one.counts(), other.counts())
        if key not in worst or worst[key][0] < moved[row]:
            batch = np.tile(one.predictions[row], (QUERIES, 1))
            worst[key] = moved[row], *(BatchQuestion(metric, batch, q.records) for q in (one, other))
    return tuple((one, other) for _, one, other in worst.values())


def worst_loss(mechanism: Mechanism, metric: str, epsilon: float) -> float:
    return max(
        pure_loss(asked_for(mechanism, one, epsilon, 0.0), asked_for(mechanism, other, epsilon, 0.0))
        for one, other in worst_batches(metric, mechanism.name in ("counts", "cube", "low-rank"))
    )


# Steps that are apart by four are rounded to with errors of both signs, so that no allowance can be left out.
@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("name", "metric", "epsilon"),
    [
        *itertools.product(["laplace"], ["sp", "abs_eo", "eodds_max", "eodds_sum", "ppv"], [0.5]),
        *itertools.product(["counts", "cube", "low-rank"], ["sp", "eodds_max"], [2.0]),
    ],
)
def test_the_worst_batch_costs_epsilon(name: str, metric: str, epsilon: float) -> None:
    mechanism = OURS[name]
    if mechanism.refuses(metric, epsilon, 0.0):
        assert not METRICS[metric].bounded
        return
    worst = worst_loss(mechanism, metric, epsilon)
    assert worst == pytest.approx(epsilon, rel=1e-4)
    assert worst <= epsilon * (1 + 1e-12)


@pytest.mark.few(1)
@pytest.mark.parametrize("metric", ["abs_eo", "sp", "eodds_sum"])
def test_the_worst_batch_costs_what_the_smooth_sensitivity_leaves(metric: str) -> None:
    epsilon = 2.0
    worst = worst_loss(OURS["cauchy"], metric, epsilon)
    assert worst == pytest.approx(epsilon, rel=1e-4)
    assert worst <= epsilon
    # Conceal spends little of its epsilon: what it leaves, and no more.
    beta = epsilon / (6 * QUERIES)
    left = max(
        QUERIES * cauchy_loss(float((one.gaps() - other.gaps())[0]), one.smooth(beta) / beta, other.smooth(beta) / beta)
        for one, other in worst_batches(metric, of_counts=False)
    )
    assert worst_loss(OURS["conceal"], metric, epsilon) == pytest.approx(left)


@pytest.mark.few(2)
@pytest.mark.parametrize("metric", ["sp", "eodds_max"])
@pytest.mark.parametrize(("name", "epsilon"), [("gaussian", 0.3), ("counts-gaussian", 1.3)])
def test_the_worst_batch_costs_delta(name: str, metric: str, epsilon: float) -> None:
    mechanism, delta, worst = OURS[name], 1e-3, 0.0
    if mechanism.refuses(metric, epsilon, delta):
        assert not METRICS[metric].bounded
        return
    for one, other in worst_batches(metric, name == "counts-gaussian"):
        distance = gaussian_distance(*(asked_for(mechanism, q, epsilon, delta) for q in (one, other)))
        if distance:  # else the flip is outside the stratum
            worst = max(worst, gaussian_delta(1 / distance, epsilon))
    assert worst == pytest.approx(delta, rel=1e-4)
    assert worst <= delta


def test_conceal_laplace_keeps_delta_for_one_query() -> None:
    epsilon, delta, protected = 0.9, 0.01, np.array([1, 1, 1, 1, 1, 1, 1, 0, 0], dtype=np.uint8)
    for other in neighbours_of(protected):
        if {*other.tolist()} != {0, 1}:
            continue
        for row in nasty(LABELS[:9], binary=True)[::74]:
            (a,), (b,) = (
                asked_for(ConcealLaplace(), question("sp", row[None], groups), epsilon, delta)
                for groups in (protected, other)
            )
            x = np.linspace(-40, 40, 100_001) * a.scale
            p = np.exp(Laplace(a.scale).log_density(x - a.values[0]))
            q = np.exp(Laplace(b.scale).log_density(x - b.values[0]))
            for first, second in ((p, q), (q, p)):
                assert np.trapezoid(np.maximum(first - math.exp(epsilon) * second, 0), x) <= delta


@pytest.mark.parametrize("metric", ["sp", "eodds_sum"])
def test_conceal_laplace_is_the_theorems_for_a_batch(metric: str) -> None:
    # The theorem is loose, so that no loss tells whether its noise is: smooth for the batch, and as wide.
    epsilon, delta = 0.9, 0.01
    beta = epsilon / (4 * (QUERIES + math.log(2 / delta)))
    for asked in {id(asked): asked for pair in worst_batches(metric, of_counts=False) for asked in pair}.values():
        (drawn,) = asked_for(OURS["conceal-laplace"], asked, epsilon, delta)
        assert drawn.scale == pytest.approx(2 * QUERIES * asked.smooth(beta) / epsilon, rel=1e-4)
        assert drawn.law == "laplace"


@pytest.mark.parametrize("name", ["counts", "counts-gaussian"])
def test_a_sum_that_float64_rounds_over_to_the_next_step_costs_no_more(name: str) -> None:
    # One person counts fully. The other's score is the last number below the middle of two steps, which 1 added to it
    # is no longer: the neighbours' sums are half a person and one step apart.
    protected, flipped, labels = (
        np.array([0, 0, 1, 1], np.uint8),
        np.array([1, 0, 1, 1], np.uint8),
        np.zeros(4, np.uint8),
    )
    mechanism, epsilon, delta = OURS[name], 2.0, 1e-3

    def sums(score: float) -> list[list[Asked]]:
        predictions = np.array([[1.0, score, 0.0, 0.0]])
        asked = (question("sp", predictions, groups, labels) for groups in (protected, flipped))
        return [asked_for(mechanism, one, epsilon, delta if name == "counts-gaussian" else 0.0) for one in asked]

    step = sums(0.3)[0][1].step
    one, other = sums(math.nextafter((2 * round(0.15 / step) + 1.5) * step, 0.0))
    assert abs(np.rint(one[1].values / step) - np.rint(other[1].values / step)).tolist() == [0.5 / step + 1]
    if name == "counts":
        assert epsilon * (1 - 1e-4) <= pure_loss(one, other) <= epsilon
    else:
        assert delta * (1 - 1e-4) <= gaussian_delta(1 / gaussian_distance(one, other), epsilon) <= delta


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_the_interval_of_an_answer_is_what_noise_keeps_to_19_times_in_20(name: str) -> None:
    spy = Spy(seeded())
    released = OURS[name].release(question(), NO_FACTS, 0.9, delta_for(name), spy)  # type: ignore[arg-type]
    (drawn,) = spy.asked
    assert released.low is not None
    assert released.high is not None
    reach = drawn.scale * (math.log(20) if name == "laplace" else scipy.stats.norm.isf(0.025)) + drawn.step
    assert released.values - released.low == pytest.approx(np.full(7, reach))
    assert released.high - released.values == pytest.approx(np.full(7, reach))


def test_known_bad_mechanisms_are_convicted() -> None:
    one, other = next(pairs("sp"))
    for name in ("exact", "round"):
        assert pure_loss(asked_for(OURS[name], one, 2.0, 0.0), asked_for(OURS[name], other, 2.0, 0.0)) == math.inf
        assert (OURS[name].release(one, NO_FACTS, 2.0, 0.0, seeded()).values
                != OURS[name].release(other, NO_FACTS, 2.0, 0.0, seeded()).values).any()  # fmt: skip


def test_twin_with_too_little_noise_is_convicted() -> None:
    class Half(Spy):
        def laplace(self, values: NDArray[np.float64], scale: float, step: float) -> NDArray[np.float64]:
            return super().laplace(values, scale / 2, step)

    worst = 0.0
    for one, other in pairs("sp"):
        asked = []
        for q in (one, other):
            spy = Half(seeded())
            # One query that is the worst, as often as it takes.
            worst_row = np.tile(q.predictions[1], (5, 1)) * 0 + np.array([1.0, 0, 0, 0, 0, 0])
            LaplaceMechanism().release(BatchQuestion("sp", worst_row, q.records), NO_FACTS, 2.0, 0.0, spy)  # type: ignore[arg-type]
            asked.append(spy.asked)
        worst = max(worst, pure_loss(*asked))
    assert worst > 2.0


# --- counts


def test_counts_answer_exactly_at_a_large_epsilon() -> None:
    for metric in ("sp", "abs_eo", "eodds_max", "ppv", "di"):
        for mechanism in (CountsMechanism(), CountsMechanism(shrinks=True), CountsGaussian(), CubeMechanism()):
            asked = question(metric)
            exact = asked.gaps()
            sane = np.isfinite(exact)  # a ratio to nobody is estimated as one to half a person
            if metric == "di":
                sane &= (exact > 0) & (exact < 50)
            released = mechanism.release(asked, NO_FACTS, 1e8, 1e-5, seeded()).values
            assert released[sane] == pytest.approx(exact[sane], abs=1e-3)


@pytest.mark.check
@pytest.mark.parametrize("name", ["counts", "counts-gaussian"])
def test_counts_lie_around_the_gap_and_shrunk_ones_below_where_noise_hides_it(name: str) -> None:
    # A standard deviation of 0.13 over 400 answers: 6 of their mean's are 0.04, a false-alarm rate below 1e-8.
    ones = np.arange(400) % 200 < np.repeat([60, 120], 200)
    protected = np.repeat(np.array([0, 1], np.uint8), 200)
    asked = question("sp", ones[np.newaxis].astype(np.float64), protected, np.zeros(400, np.uint8))
    shrinking: dict[str, Mechanism] = {
        "counts": CountsMechanism(shrinks=True), "counts-gaussian": CountsGaussian(shrinks=True)
    }  # fmt: skip
    plain, shrunk = (
        np.mean([mechanism.release(asked, NO_FACTS, 0.1, 1e-3, noise).values[0] for _ in range(400)])
        for mechanism, noise in ((MECHANISMS[name], seeded()), (shrinking[name], seeded()))
    )
    assert plain == pytest.approx(0.3, abs=0.04)
    assert 0.05 < shrunk < 0.25


def exact_delta(name: str, models: int, epsilon: float, delta: float) -> tuple[float, set[float]]:
    """The delta that a mechanism's noise really has where one person counts fully in every sum, and N0's grids."""
    import mpmath

    n = 8
    protected = np.arange(n, dtype=np.uint8) % 2
    flipped = protected.copy()
    flipped[0] = 1
    predictions, labels = np.ones((models, n)), np.zeros(n, np.uint8)
    one, other = (
        asked_for(OURS[name], question("sp", predictions, who, labels), epsilon, delta) for who in (protected, flipped)
    )
    with mpmath.workdps(60):
        square = mpmath.mpf(0)
        for a, b in zip(one, other, strict=True):
            # A grid lays apart by a whole step what may lie on two sides of its rounding, wherever the records are.
            apart = np.abs(a.values - b.values)
            worst = np.ceil(apart / a.step) * a.step
            square += sum((mpmath.mpf(float(w)) / mpmath.mpf(a.scale)) ** 2 for w in worst)
        mu, e = mpmath.sqrt(square), mpmath.mpf(epsilon)
        exact = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
        return float(exact), {one[0].step}


def test_counts_gaussian_keeps_a_tiny_delta_by_exact_arithmetic() -> None:
    for epsilon, delta, models in ((1e-12, 1e-12, 1), (1e-9, 1e-6, 3), (1.0, 1e-12, 3)):
        exact, steps = exact_delta("counts-gaussian", models, epsilon, delta)
        assert max(steps) <= 1
        assert 0 < exact <= delta * (1 + 1e-9)


@pytest.mark.parametrize("name", ["counts", "counts-gaussian"])
def test_the_size_is_bought_once(name: str) -> None:
    mechanism, delta = OURS[name], delta_for(name)
    spy = Spy(seeded())
    first = mechanism.release(question(), NO_FACTS, 1.0, delta, spy)  # type: ignore[arg-type]
    assert [asked.values.size for asked in spy.asked] == [1, 7]
    size, *_ = first.facts["n0"]
    assert size in range(1, 9)
    again = Spy(seeded(10))
    second = mechanism.release(question(), first.facts, 1.0, delta, again)  # type: ignore[arg-type]
    assert [asked.values.size for asked in again.asked] == [7]
    assert not second.facts
    # The sums get what the size no longer needs.
    assert again.asked[0].scale < spy.asked[1].scale
    other = mechanism.release(question("eodds_max"), first.facts, 1.0, delta, seeded())
    assert set(other.facts) == {"n0 of y=1", "n0 of y=0"}


@pytest.mark.check
def test_counts_answers_are_possible() -> None:
    for metric in METRICS:
        low, high = metric_range(metric)
        for seed in range(20):
            values = CountsMechanism().release(question(metric), NO_FACTS, 0.05, 0.0, seeded(seed)).values
            assert (low - 1e-12 <= values).all()
            assert (values <= high + 1e-12).all()


@pytest.mark.parametrize("sorted_", [9, 0])
def test_possible_sums_are_those_of_the_extreme_people(sorted_: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairwall.laws.metrics.values._SORTED", sorted_)
    values = np.random.default_rng(8).random((5, 9))
    values[1] = np.arange(9) % 2
    ordered = np.sort(values, axis=1)
    for first in range(1, 9):
        for last in range(first, 9):
            low, high = possible_sums([values[:2], values[2:]], first, last)
            for at, size in enumerate(range(first, last + 1)):
                assert low[:, at] == pytest.approx(ordered[:, :size].sum(axis=1))
                assert high[:, at] == pytest.approx(ordered[:, 9 - size :].sum(axis=1))


# --- recommended


@pytest.mark.check
def test_recommended_is_the_best_that_is_worth_its_price() -> None:
    rows = standings("sp", 1000, 25, 5.0)
    assert [row.error for row in rows] == sorted(row.error for row in rows)
    assert {row.name for row in rows} == {
        "counts", "counts" + SHRUNK, "cauchy", "conceal", "laplace", "randomized-response", MIDPOINT
    }  # fmt: skip
    assert choose("sp", 1000, 25, 2.0) == "counts" + SHRUNK
    # Half the median of counts, and six times the root mean square, without an interval.
    assert choose("sp", 1000, 1, 5.0) == "counts"
    assert choose("sp", 1000, 25, 5.0) == "randomized-response"
    assert choose("sp", 1000, 1, 10.0) == "randomized-response"
    assert choose("sp", 1000, 25, 2.0, 1e-6) == "counts-gaussian" + SHRUNK
    for metric in ("di", "ppv"):
        assert choose(metric, 1000, 25, 1.0).startswith("counts")
        assert choose(metric, 1000, 25, 10.0) == "randomized-response"
    # Where nothing can be said the midpoint is as good.
    errors = {row.name: row.median_error for row in standings("sp", 100, 400, 1.0)}
    assert errors["counts" + SHRUNK] == pytest.approx(errors[MIDPOINT], rel=0.02)
    assert errors["counts"] > 4 * errors[MIDPOINT]


@pytest.mark.check
@pytest.mark.parametrize(("n", "queries", "epsilon"), [(1000, 25, 2.0), (100, 40, 3.5)])
def test_the_error_of_randomized_response_is_the_one_predicted(n: int, queries: int, epsilon: float) -> None:
    # The prediction, 20 medians of 200 draws, has a standard error of 2%, what is measured half of that; fixed seeds.
    predicted = {row.name: row.median_error for row in standings("sp", n, queries, epsilon)}["randomized-response"]
    generator, medians = np.random.default_rng(12), []
    for n0 in DEFAULT_SHARES.counts(n):
        protected = (np.arange(n) >= n0).astype(np.uint8)
        rates = np.where(protected, 0.25 + 0.1 * n0 / n, 0.15 + 0.1 * n0 / n)
        for decisions in (False, True):
            errors = []
            for _ in range(250):  # an answer's law does not depend on how many there are
                uniform = generator.random((4, n))
                predictions = (uniform < rates).astype(np.float64) if decisions else uniform
                asked = BatchQuestion("sp", predictions, Records(np.zeros(n, np.uint8), protected, ("sp",)))
                answers = answerers()["randomized-response"].release(asked, NO_FACTS, epsilon, 0.0, Seeded(generator))
                errors.append(np.abs(answers.values - asked.gaps()))
            medians.append(np.median(errors))
    assert np.mean(medians) == pytest.approx(predicted, rel=0.06)


def test_recommended_answers_for_nothing_only_from_what_was_bought() -> None:
    recommended, response = Recommended(), answerers()["randomized-response"]
    n, queries, epsilon = question().people(), question().queries, 8.0
    assert choose("sp", n, queries, epsilon) == "randomized-response"
    counted = recommended.release(question(), NO_FACTS, 0.5, 0.0, seeded())
    assert counted.facts
    assert not recommended.is_free(counted.facts, epsilon)
    bought = response.release(question(), counted.facts, epsilon, 0.0, seeded())
    facts = {**counted.facts, **bought.facts}
    assert recommended.is_free(facts, epsilon)
    assert not recommended.is_free(facts, 2 * epsilon)
    # Whatever would be chosen: a function of the facts, for neighbours the same.
    for metric, later in itertools.product(("sp", "eo"), (0.1, 8.0)):
        expected = response.release(question(metric), facts, epsilon, 0.0, seeded()).values
        for protected in itertools.islice(neighbours_of(GROUPS), 3):
            asked = question(metric, protected=protected)
            free = recommended.release(asked, facts, later, 0.0, seeded())  # type: ignore[arg-type]
            assert free.values.tolist() == expected.tolist()
            assert not free.facts


def test_recommended_never_looks_at_the_groups() -> None:
    chosen = {
        choice.nearest(question(protected=protected).asked, choose("sp", 9, 7, 0.9), choice.Allowance(0.9)).name
        for protected in neighbours_of(GROUPS)
    }
    assert len(chosen) == 1
    for protected in neighbours_of(GROUPS):
        spy = Spy(seeded())
        Recommended().release(question(protected=protected), NO_FACTS, 0.9, 0.0, spy)  # type: ignore[arg-type]
        inner = Spy(seeded())
        answerers()[next(iter(chosen))].release(question(protected=protected), NO_FACTS, 0.9, 0.0, inner)  # type: ignore[arg-type]
        assert [(a.law, a.scale, a.step) for a in spy.asked] == [(a.law, a.scale, a.step) for a in inner.asked]


def test_recommended_keeps_to_the_range() -> None:
    for metric in ("abs_sp", "eodds_sum", "di"):
        values = Recommended().release(question(metric), NO_FACTS, 0.1, 0.0, seeded()).values
        low, high = metric_range(metric)
        assert ((low <= values) & (values <= high)).all()
    assert [midpoint(metric) for metric in ("sp", "abs_sp", "eodds_sum", "di")] == [0.0, 0.5, 1.0, 1.0]


def test_standings_need_a_batch() -> None:
    for n, epsilon in ((2, 1.0), (10, math.inf)):
        with pytest.raises(ValueError, match="n must be"):
            standings("sp", n, 1, epsilon)
    with pytest.raises(ValueError, match="queries"):
        standings("sp", 100, 0, 1.0)


@pytest.mark.check
def test_recommended_charges_what_it_chose() -> None:
    # 20 batches at (0.5, 1e-8): 10 by the plain sum, a fifth of that where the ledger knows the noise.
    n, models, epsilon, delta = 1000, 100, 0.5, 1e-8
    protected = (np.arange(n) % 3 > 0).astype(np.uint8)
    records = Records(np.zeros(n, np.uint8), protected, ("sp",))
    predictions = np.random.default_rng(0).random((models, n))
    assert choose("sp", n, models, epsilon, delta).removesuffix(SHRUNK) == "counts-gaussian"
    spent = {}
    for name in ("recommended", "counts-gaussian"):
        ledger = Ledger()
        ledger.set_budget("loans", Neighbours.A_FLIP, Budget(10.0, 1e-6, Rule.TIGHT))
        ledger.allocate("loans", "ann", 10.0, 1e-6)
        case = AuditCase(
            "loans", records, bounded(MECHANISMS[name], "clamp"), ledger, models, delta=delta, seed=b"seed"
        )
        entries = [case.answer("ann", f"r{i}", b"", "sp", predictions, epsilon) for i in range(20)]
        assert {entry.request.mechanism for entry in entries} == {"counts-gaussian"}
        spent[name] = ledger.standing("loans").spent
    assert spent["recommended"] == spent["counts-gaussian"] < 2.2


def test_recommended_charges_no_delta_for_a_pure_mechanism() -> None:
    assert choose("sp", 1000, 1, 1.0, 1e-8) == "counts" + SHRUNK
    assert chosen(MECHANISMS["recommended"], "sp", 1000, 1, 1.0, 1e-8).cost(1.0, 1e-8) == pure(1.0)
    assert {kind.guarantee for kind in candidates(MECHANISMS["recommended"], 0.0)} == {"pure"}
    for metric, n, models, epsilon in (("sp", 50, 1, 5.0), ("eodds_max", 60, 3, 0.1), ("di", 50, 2, 1.0)):
        kind = chosen(MECHANISMS["recommended"], metric, n, models, epsilon, 1e-8)
        assert kind.name in {one.name for one in candidates(MECHANISMS["recommended"], 1e-8)}
