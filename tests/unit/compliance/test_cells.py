"""What noisy counts of cells cost, over all neighbours, and how later batches are answered from them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.answers.audits import AuditCase, values_of
from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Neighbours
from compliance.mechanisms.cells import CellsMechanism
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion, Facts
from compliance.mechanisms.posterior_answers import StratumKnowledge, answers
from compliance.mechanisms.recommended import Recommended
from compliance.noise.sampling import Seeded, System
from compliance.records.metrics import METRICS
from compliance.records.people import Records
from fairwall.laws.choice import choose
from fairwall.laws.choice.cell_partition import CELL_MIN, STEPS, cells_scale, cut, discrete_variance
from fairwall.laws.choice.cell_purchases import (
    EPSILON,
    bought_at,
    disadvantaged_among,
    excess,
    fact_names,
    merged,
    planned,
    predicted,
    predicted_with,
    purchases,
    seen_by,
)
from fairwall.laws.choice.public_batch import Stratum
from fairwall.laws.mechanisms.calibration import metric_range
from fairwall.laws.metrics.values import Values
from tests.support.noise_sources import Asked, Spy

CELLS = CellsMechanism()
LABELLED = ("sp", "eo", "oad", "eodds_max")


def seeded(seed: int = 0) -> Seeded:
    return Seeded(np.random.default_rng(seed))


def alike(models: int, people: int, seed: int = 0, *, decisions: bool = False) -> NDArray[np.float64]:
    """Models that agree for the most part."""
    generator = np.random.default_rng((models, people, seed))
    common, own = generator.normal(size=people), generator.normal(size=(models, people))
    scores = 1 / (1 + np.exp(-common - 0.3 * own))
    return (scores > 0.5).astype(np.float64) if decisions else scores


def asking(
    metric: str = "sp",
    models: int = 5,
    people: int = 60,
    seed: int = 0,
    metrics: tuple[str, ...] | None = None,
    protected: NDArray[np.uint8] | None = None,
    decisions: bool = False,
) -> BatchQuestion:
    generator = np.random.default_rng((people, seed))
    labels = (generator.random(people) < 0.5).astype(np.uint8)
    groups = (generator.random(people) < 0.7).astype(np.uint8) if protected is None else protected
    predictions = alike(models, people, seed, decisions=decisions)
    return BatchQuestion(metric, predictions, Records(labels, groups, (metric,) if metrics is None else metrics))


def draws(question: BatchQuestion, epsilon: float, facts: Facts = NO_FACTS) -> list[Asked]:
    """Return what noise is drawn; what is only put on a grid has been released."""
    spy = Spy(seeded())
    CELLS.release(question, facts, epsilon, 0.0, spy)  # type: ignore[arg-type]
    return [asked for asked in spy.asked if asked.scale]


def loss(one: list[Asked], other: list[Asked]) -> float:
    """The largest log-ratio of what is released of two databases."""
    assert [(a.law, a.scale, a.step, len(a.values)) for a in one] == [
        (a.law, a.scale, a.step, len(a.values)) for a in other
    ]
    return sum(float(np.abs(a.values - b.values).sum()) / a.scale for a, b in zip(one, other, strict=True))


def neighbours(groups: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
    for person in range(len(groups)):
        other = groups.copy()
        other[person] ^= 1
        if 0 < other.sum() < len(groups):
            yield other


@pytest.mark.check
@pytest.mark.parametrize("people", [4, 6])
def test_no_neighbours_of_few_people_cost_more_than_epsilon(people: int) -> None:
    worst = 0.0
    for bits in itertools.product((0, 1), repeat=people):
        groups = np.array(bits, np.uint8)
        if 0 < groups.sum() < people:
            here = draws(asking(people=people, metrics=(), protected=groups), 0.7)
            for other in neighbours(groups):
                worst = max(worst, loss(here, draws(asking(people=people, metrics=(), protected=other), 0.7)))
    assert worst == pytest.approx(0.7, rel=1e-15)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("people", "epsilon", "metrics"),
    [(21, 0.3, LABELLED), (60, 4.0, LABELLED), (40, 20.0, ("sp",)), (300, 0.3, ("sp",)), (300, 20.0, LABELLED)],
)
def test_the_worst_neighbours_cost_epsilon_and_none_more(people: int, epsilon: float, metrics: tuple[str, ...]) -> None:
    groups = (np.arange(people) * 7 % 5 > 1).astype(np.uint8)
    asked = asking(people=people, metrics=metrics, protected=groups)
    here, weights = draws(asked, epsilon), np.abs(planned(asked.asked, epsilon).weights).max(axis=0, initial=0)
    # All that they cost is paid by somebody of the largest weight, where there are any.
    losses = {}
    for person in {*range(min(25, people)), int(weights.argmax())}:
        other = groups.copy()
        other[person] ^= 1
        losses[person] = loss(here, draws(asking(people=people, metrics=metrics, protected=other), epsilon))
    assert max(losses.values()) == pytest.approx(epsilon, rel=1e-7)
    assert max(losses.values()) <= epsilon * (1 + 1e-14)
    if not weights.any():
        assert list(losses.values()) == pytest.approx([epsilon] * len(losses), rel=1e-14)


def test_a_sum_that_is_measured_besides_is_paid_for() -> None:
    # The broken twin: the sum "only tells what the counts do not", and they keep all of epsilon.
    asked = asking(people=300, models=5, metrics=("sp",))
    people = planned(asked.asked, 1.0).weights[0]
    other = asked.records.protected.copy()
    other[np.abs(people.astype(int)).argmax()] ^= 1
    one, two = (draws(asking(people=300, protected=of), 1.0) for of in (asked.records.protected, other))
    assert loss(one, two) == pytest.approx(1.0, rel=1e-7)
    assert loss(one, two) <= 1.0
    counts = [replace(each[0], scale=cells_scale(1.0)) for each in (one, two)]
    assert loss([counts[0], *one[1:]], [counts[1], *two[1:]]) > 1.04


def test_cells_and_the_size_besides_cost_too_much() -> None:
    # The broken twin: N0 "is only a number", and is released besides for 0.15 epsilon while the cells keep all of it.
    groups = (np.arange(200) % 3 > 0).astype(np.uint8)
    other = groups.copy()
    other[7] ^= 1
    one, two = (draws(asking(people=200, protected=of), 20.0) for of in (groups, other))
    for asked, of in ((one, groups), (two, other)):
        asked.append(replace(asked[0], values=np.array([float((of == 0).sum())]), scale=1 / (0.15 * 20.0)))
    assert loss(one, two) == pytest.approx(1.15 * 20.0)


def test_cells_that_are_cut_by_group_would_be_seen() -> None:
    # The broken twin looks at A when it cuts; ours has the same cells whatever A is.
    groups = (np.arange(60) % 3 > 0).astype(np.uint8)
    bought = [CELLS.release(asking(protected=of), NO_FACTS, 20.0, 0.0, seeded()) for of in (groups, 1 - groups)]
    of_ours, of_other = (one.facts["cells.0.of"].tolist() for one in bought)
    assert of_ours == of_other
    values = alike(5, 60)
    assert (
        cut(np.vstack([values, groups])).cell_of(2).tolist()
        != cut(np.vstack([values, 1.0 - groups[::-1]])).cell_of(2).tolist()
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("metric", ["sp", "eodds_max", "ppv", "di"])
def test_answers_are_functions_of_what_is_released(metric: str) -> None:
    class Silenced(Seeded):
        """Tells nothing of what it is given, but for what is only put on a grid."""

        def laplace(self, values: NDArray[np.float64], scale: float, step: float) -> NDArray[np.float64]:
            return super().laplace(np.full(np.shape(values), 4.0) if scale else values, scale, step)

    binary = METRICS[metric].binary
    groups = (np.arange(90) % 4 > 0).astype(np.uint8)
    answers = set()
    for of in (groups, groups[::-1].copy(), (np.arange(90) % 2).astype(np.uint8)):
        asked = asking(metric, people=90, protected=of, decisions=binary)
        released = CELLS.release(asked, NO_FACTS, 2.0, 0.0, Silenced(np.random.default_rng(3)))
        assert released.low is None
        assert released.likely is not None
        below, above = released.likely
        answers.add((released.values.tobytes(), below.tobytes(), above.tobytes()))
        low, high = metric_range(metric)
        assert ((low <= released.values) & (released.values <= high)).all()
        assert (below < above).all()
    assert len(answers) == 1


@pytest.mark.parametrize("metric", ["sp", "eodds_max", "ppv", "di"])
def test_a_large_epsilon_leaves_what_cells_cannot_tell(metric: str) -> None:
    # Decisions of one model are two cells, which tell all there is to know; for ratios as well.
    asked = asking(metric, models=1, people=200, decisions=True)
    released = CELLS.release(asked, NO_FACTS, 1e6, 0.0, seeded())
    # Two strata of 100 people each keep up to one thousandth of the prior.
    assert released.values == pytest.approx(asked.gaps(), abs=1e-3)
    assert CELLS.release(asked, NO_FACTS, math.inf, 0.0, seeded()).values.tolist() == asked.gaps().tolist()


def test_the_same_people_cost_nothing_again() -> None:
    first = asking("sp", people=300, metrics=LABELLED)
    bought = CELLS.release(first, NO_FACTS, 4.0, 0.0, seeded())
    assert set(bought.facts) == {EPSILON, *fact_names(0)}
    assert CELLS.is_free(bought.facts, 4.0)
    assert CELLS.is_free(bought.facts, 0.1)
    assert not CELLS.is_free(bought.facts, 4.01)
    assert not CELLS.is_free(NO_FACTS, 0.1)
    for metric in LABELLED:
        later = asking(metric, people=300, models=7, metrics=LABELLED)
        spy = Spy(seeded())
        answered = CELLS.release(later, bought.facts, 0.5, 0.0, spy)  # type: ignore[arg-type]
        assert not answered.facts
        assert all(asked.scale == 0 for asked in spy.asked)
        for groups in (1 - later.records.protected, np.roll(later.records.protected, 1)):
            same = asking(metric, people=300, models=7, metrics=LABELLED, protected=groups.astype(np.uint8))
            assert CELLS.release(same, bought.facts, 0.5, 0.0, seeded(5)).values.tolist() == answered.values.tolist()


def test_what_was_bought_is_read_as_it_was_planned() -> None:
    asked = asking(people=600, metrics=LABELLED)
    planning = planned(asked.asked, 4.0)
    facts = CELLS.release(asked, NO_FACTS, 4.0, 0.0, seeded()).facts
    (bought,) = purchases(facts)
    assert len(planning.weights) == 2
    assert facts["cells.0.weights"].nbytes == 600
    for name in ("cell_of", "variances", "weights", "sum_variances"):
        assert getattr(bought, name).tolist() == getattr(planning, name).tolist(), name
    # And so it is of whoever has bought cells alone, before there were sums.
    (alone,) = purchases({name: of for name, of in facts.items() if name not in fact_names(0)[2:]})
    assert (alone.weights.shape, len(alone.sums)) == ((0, 600), 0)


def test_cells_keep_to_strata_where_labels_matter() -> None:
    asked = asking("sp", people=200, metrics=LABELLED)
    facts = CELLS.release(asked, NO_FACTS, 1.0, 0.0, seeded()).facts
    (bought,) = purchases(facts)
    assert len({*zip(bought.cell_of.tolist(), asked.records.labels.tolist(), strict=True)}) == len(bought.counts)
    assert np.bincount(bought.cell_of).min() >= CELL_MIN


def test_purchases_are_put_together_by_what_they_tell() -> None:
    # The second purchase of the same cells: as one release with the mean of both, neither twice nor once.
    asked, epsilon = asking(people=100), 3.0
    first = CELLS.release(asked, NO_FACTS, epsilon, 0.0, seeded(1)).facts
    second = {**first, **CELLS.release(asked, first, epsilon * (1 + 1e-12), 0.0, seeded(2)).facts}
    one, other = purchases(second)
    assert one.cell_of.tolist() == other.cell_of.tolist()
    members = np.ones(100, np.bool_)
    estimate, variance = disadvantaged_among([one, other], members)
    estimates, variances = zip(*(disadvantaged_among([each], members) for each in (one, other)), strict=True)
    assert estimate == pytest.approx(np.mean(estimates))
    assert variance == pytest.approx(variances[0] / 2)
    one, other = one.narrowed(), other.narrowed()
    (both,) = merged([one, other])
    assert both.counts == pytest.approx((one.counts + other.counts) / 2, abs=0.1)
    assert 1 / both.variances == pytest.approx(1 / one.variances + 1 / other.variances)
    assert both.sum_variances == pytest.approx(one.sum_variances / 2)

    def look(stratum: Stratum) -> StratumKnowledge:
        return StratumKnowledge(*disadvantaged_among([one, other], members), seen_by([both], stratum), excess([both]))

    values = CELLS.release(asked, second, 1.0, 0.0, seeded()).values
    assert values == pytest.approx(answers(asked, look)[0], abs=1e-6)


@pytest.mark.check
def test_rows_of_unlike_cells_know_whom_they_share() -> None:
    question, other = asking(people=300), asking(people=300, seed=9, metrics=LABELLED)
    facts = CELLS.release(question, NO_FACTS, 4.0, 0.0, seeded()).facts
    facts = {**facts, **CELLS.release(other, facts, 9.0, 0.0, seeded()).facts}
    bought = list(purchases(facts))
    members = np.arange(300) % 3 > 0
    centred = np.where(
        members, question.predictions - question.predictions[:, members].mean(axis=1, keepdims=True), 0.0
    )
    stratum = Stratum(None, (0,), members, (Values(question.predictions),))
    seen = seen_by(bought, stratum)
    rows = []
    for one in bought:
        # Of cells without members nothing is to be known.
        rows.append(np.eye(len(one.counts))[one.cell_of].T[one.among(members) > 0])
    assert any(len(one.weights) for one in bought)
    # Sums come after all counts.
    everything = np.concatenate([*rows, *(one.weights / STEPS for one in bought)])
    assert seen.gram == pytest.approx(everything @ everything.T)
    assert seen.cross == pytest.approx(centred @ everything.T, abs=1e-12)
    assert seen.ones == pytest.approx(everything.sum(axis=1))
    assert len(seen.noise) == len(seen.values) == len(everything)


@pytest.mark.check
@pytest.mark.parametrize("metrics", [("sp",), LABELLED])
def test_the_size_is_estimated_without_bias_and_as_well_as_stated(metrics: tuple[str, ...]) -> None:
    asked = asking(people=150, metrics=metrics)
    n0 = int((asked.records.protected == 0).sum())
    found = []
    for seed in range(400):
        facts = CELLS.release(asked, NO_FACTS, 2.0, 0.0, seeded(seed)).facts
        found.append(disadvantaged_among(list(purchases(facts)), np.ones(150, np.bool_)))
    estimates, variances = np.array(found).T
    assert len(set(variances)) == 1
    # 400 draws: 4.5 standard errors of the mean, and of the variance (kurtosis of few Laplace draws up to 6).
    assert abs(estimates.mean() - n0) < 4.5 * math.sqrt(variances[0] / 400)
    assert estimates.var() == pytest.approx(variances[0], rel=0.5)


def test_service_draws_have_the_discrete_law() -> None:
    # The operating system's generator: a false alarm once in 10^4 runs, or fewer.
    noise, scale = System(), cells_scale(1.0)
    drawn = noise.laplace(np.full(20000, 3.0), scale, 1.0) - 3.0
    assert (drawn == np.rint(drawn)).all()
    expected = math.exp(-1 / scale)
    at_zero = (1 - expected) / (1 + expected)
    assert abs((drawn == 0).mean() - at_zero) < 4 * math.sqrt(at_zero * (1 - at_zero) / 20000)
    assert drawn.var() == pytest.approx(discrete_variance(scale), rel=0.1)


def test_models_that_agree_are_answered_together_and_others_are_predicted_to_err() -> None:
    together, apart = (
        BatchQuestion(
            "sp", values, Records(np.zeros(400, np.uint8), (np.arange(400) % 5 > 0).astype(np.uint8), ("sp",))
        )
        for values in (alike(30, 400), np.random.default_rng(1).random((30, 400)))
    )
    assert predicted(together.asked, 1.0) < predicted(together.asked, 0.1)
    assert predicted(together.asked, 1.0) < predicted(apart.asked, 1.0)
    assert predicted(asking(people=12).asked, 1.0) == math.inf
    errors = []
    for seed in range(8):
        errors.append(np.abs(CELLS.release(together, NO_FACTS, 1.0, 0.0, seeded(seed)).values - together.gaps()))
    assert np.median(errors) < 0.06  # one noisy sum of 30 would be off by 0.3


def test_an_account_pays_once() -> None:
    asked = asking(people=100)
    ledger = Ledger()
    ledger.set_budget("loans", Neighbours.A_FLIP, Budget(3.0))
    ledger.allocate("loans", "ann", 3.0, 0.0)
    case = AuditCase("loans", asked.records, CELLS, ledger, 10, seed=b"seed")
    first = case.answer("ann", "r1", b"1", "sp", asked.predictions, 1.0)
    free = case.answer("ann", "r2", b"2", "sp", asked.predictions[:2], 1.0)
    more = case.answer("ann", "r3", b"3", "sp", asked.predictions, 1.5)
    assert [entry.request.loss.epsilon for entry in (first, free, more)] == [1.0, 0.0, 1.5]
    assert ledger.standing("loans").spent == pytest.approx(2.5)
    assert len(values_of(free)) == 2
    assert (values_of(more) != values_of(first)).any()


# What `recommended` gives away of what was bought.


def thresholds(metric: str, score: NDArray[np.float64], records: Records, count: int = 9) -> BatchQuestion:
    cuts = np.quantile(score, np.linspace(0.1, 0.9, count))
    return BatchQuestion(metric, (score > cuts[:, np.newaxis]).astype(np.float64), records)


def two_scores(people: int = 3000) -> tuple[Records, NDArray[np.float64], NDArray[np.float64]]:
    """Two scores that have nothing in common; groups differ by the first one alone."""
    generator = np.random.default_rng(17)
    groups = (generator.random(people) < 0.7).astype(np.uint8)
    labels = (generator.random(people) < 0.5).astype(np.uint8)
    first = generator.normal(size=people) + 0.8 * groups
    return Records(labels, groups, ("sp", "eo")), first, generator.normal(size=people)


def charged(case: AuditCase, number: int, question: BatchQuestion, epsilon: float) -> tuple[float, float]:
    """Ask, and return what it costs and by how much the answer is off."""
    name = f"request-{number}"
    entry = case.answer("alice", name, name.encode(), question.metric, question.predictions, epsilon)
    return entry.request.loss.epsilon, float(np.median(np.abs(values_of(entry) - question.gaps())))


def opened(records: Records) -> AuditCase:
    ledger = Ledger()
    ledger.set_budget("loans", Neighbours.A_FLIP, Budget(100.0))
    ledger.allocate("loans", "alice", 100.0)
    return AuditCase("loans", records, Recommended(), ledger, 10, seed=b"seed")


def test_cells_bought_once_serve_every_metric_of_the_same_models_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records, first, second = two_scores()
    asked = [thresholds(metric, score, records) for score in (first, second) for metric in ("sp", "eo")]
    case = opened(records)
    found = [charged(case, number, question, 0.5) for number, question in enumerate(asked)]
    assert [cost for cost, _ in found] == [0.5, 0.0, 0.5, 0.0]
    assert max(error for _, error in found) < 0.05
    assert charged(case, 4, asked[0], 0.1)[0] == 0.0
    assert charged(case, 5, asked[0], 0.6)[0] == 0.6
    # A twin that answers everybody from the first purchase says that all scores have the gaps of the first.
    monkeypatch.setattr(choose, "_FREE_ERROR", math.inf)
    twin = opened(records)
    assert [charged(twin, number, question, 0.5)[0] for number, question in enumerate(asked)] == [0.5, 0.0, 0.0, 0.0]


@pytest.mark.check
def test_what_is_free_depends_on_public_numbers_and_stays_free() -> None:
    records, first, second = two_scores(600)
    chosen, noise = Recommended(), np.random.default_rng(3)
    bought = [
        CELLS.release(thresholds("sp", score, records), NO_FACTS, 1.0, 0.0, seeded()) for score in (first, second)
    ]
    questions = [
        thresholds(metric, score, records, m) for m in (1, 9) for score in (first, second) for metric in LABELLED
    ]
    for epsilon in (0.2, 1.0, 1.1):
        for question in questions:
            alone = [chosen.is_free(one.facts, epsilon, question) for one in bought]
            turned = replace(records, protected=1 - records.protected)
            assert alone == [chosen.is_free(one.facts, epsilon, replace(question, records=turned)) for one in bought]
            noisy = {**bought[0].facts, "cells.0.counts": bought[0].facts["cells.0.counts"].copy()}
            noisy["cells.0.counts"][:, 0] = noise.integers(0, 50, len(noisy["cells.0.counts"]))
            assert chosen.is_free(noisy, epsilon, question) == alone[0]
            later = {name.replace("cells.0.", "cells.1."): values for name, values in bought[1].facts.items()}
            both = {**bought[0].facts, **later, EPSILON: np.array([1.0, 1.0])}
            assert chosen.is_free(both, epsilon, question) == any(alone)
    assert not chosen.is_free(bought[0].facts, 1.0)


def test_what_is_free_draws_nothing_and_what_is_not_buys() -> None:
    records, first, second = two_scores()
    chosen, epsilon = Recommended(), 0.5
    facts = chosen.release(thresholds("sp", first, records), NO_FACTS, epsilon, 0.0, seeded()).facts
    assert len(bought_at(facts, epsilon)) == 1
    for metric in ("sp", "eo"):
        spy = Spy(seeded())
        assert not chosen.release(thresholds(metric, first, records), facts, epsilon, 0.0, spy).facts  # type: ignore[arg-type]
        assert all(asked.scale == 0 for asked in spy.asked)
    more = {**facts, **chosen.release(thresholds("sp", second, records), facts, epsilon, 0.0, seeded()).facts}
    assert len(bought_at(more, epsilon)) == 2
    assert not bought_at(more, 2 * epsilon)


def test_a_purchase_promises_what_it_was_planned_to() -> None:
    asked = asking(people=400, metrics=LABELLED)
    (bought,) = purchases(CELLS.release(asked, NO_FACTS, 0.5, 0.0, seeded()).facts)
    told, of_plan = predicted_with(asked.asked, [bought, planned(asked.asked, 0.5)])
    assert told == of_plan
