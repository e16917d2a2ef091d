"""The practices: what each is a function of, learns, reads, refuses, and what it says that it spent.

What was spent is computed anew from what was really done: the batches, noise and releases that there were.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from developer.training import Network, TrainingBudget, TrainingSet
from developer.training.groups import GroupAdder, held_sums
from developer.training.practice import (
    PRACTICES,
    PracticeTask,
    Practised,
    descent,
    fair_representation,
    histogram,
    rates,
)
from fairwall.errors import UserError
from fairwall.learning.batches import Batches, Poisson
from fairwall.learning.ensemble import Ensemble, constant
from fairwall.learning.private import Private, epsilon_spent
from fairwall.learning.training import Recipe

BUDGET = TrainingBudget(3.0, 1e-5)
SETTINGS = Network(Recipe((4,), 4, 120, 2e-2), tellings=1)
SEEDED = [name for name in PRACTICES if name != "synthetic"]
COLUMNS = ("age", "job=a", "job=b", "job=c")


def people(n: int = 600, seed: int = 0) -> tuple[TrainingSet, NDArray[np.uint8]]:
    """Rows whose group shifts the first feature and the label."""
    rng = np.random.default_rng(seed)
    group = (rng.random(n) < 0.6).astype(np.uint8)
    age = rng.normal(size=n) + 1.5 * group
    features = np.column_stack([age, np.eye(3)[rng.integers(0, 3, n)]])
    return TrainingSet(features, (age + 0.5 * rng.normal(size=n) > 1).astype(np.uint8)), group


def task(seed: int = 0, **other: Any) -> PracticeTask:
    table, group = people()
    public = people(200, 9)[0] if other.pop("public", False) else None
    return replace(PracticeTask(table, seed, BUDGET, SETTINGS, group, public, columns=COLUMNS), **other)


def practised(name: str, seed: int = 0) -> Practised:
    return PRACTICES[name].train(task(seed, public=PRACTICES[name].public))


@cache
def coarse(epsilon: float, delta: float, rate: float, steps: int, beside: float = 0.0) -> float:
    """Find enough noise for the budget in a hundredth of the search's time."""
    if epsilon_spent(1000.0, delta, rate, steps, beside) > epsilon:
        raise ValueError("as the search says")
    noise = 0.5
    while epsilon_spent(noise, delta, rate, steps, beside) > epsilon:
        noise *= 1.2
    return noise


@pytest.fixture(autouse=True)
def _quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("fairlearn", reason="Fairlearn is not installed")
    if "slow" not in request.keywords:
        monkeypatch.setattr(descent, "noise_multiplier", coarse)


@dataclass
class Done:
    """What a practice really did to private rows."""

    private: TrainingSet
    steps: list[tuple[Private, Batches, int, int]] = field(default_factory=list)
    releases: list[float] = field(default_factory=list)

    def epsilon(self, group: NDArray[np.uint8] | None = None, of: int = 0) -> float:
        """Account for a record of a group, or of any."""
        ((private, plan, steps, rows),) = self.steps
        parts = (plan,) if isinstance(plan, Poisson) else getattr(plan, "strata", ())
        if group is not None:
            parts = [part for part in parts if (group[part.rows] == of).any()]
        rate = max(part.rate for part in parts)
        beside = math.sqrt(sum(multiplier**-2 for multiplier in self.releases))
        assert rows >= len(self.private.labels)
        return epsilon_spent(private.noise, BUDGET.delta, rate, steps, beside)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Iterator[Done]:
    """Watch the training steps and the releases of private rows."""
    watched = Done(people()[0])
    fit, tell, ask = descent.fit, histogram.tell, fair_representation.held_sums

    def fitted(features: Any, labels: Any, plans: Any, seeds: Any, recipe: Recipe, **other: Any) -> Ensemble:
        watched.steps.append((other["private"][0], plans[0], recipe.steps, len(labels)))
        return fit(features, labels, plans, seeds, recipe, **other)

    def histogram_told(counts: Any, multiplier: float, rng: Any) -> Any:
        watched.releases.append(multiplier)
        return tell(counts, multiplier, rng)

    def sums_held(protected: Any, multiplier: float, rng: Any) -> GroupAdder:
        sums = ask(protected, multiplier, rng)

        def told(rows: Any) -> Any:
            watched.releases.append(multiplier)
            return sums.ask(rows)

        return replace(sums, ask=told)

    monkeypatch.setattr(descent, "fit", fitted)
    monkeypatch.setattr(histogram, "tell", histogram_told)
    monkeypatch.setattr(fair_representation, "held_sums", sums_held)
    return watched


def test_the_practices_say_what_they_need() -> None:
    assert [name for name, practice in PRACTICES.items() if practice.public] == ["public-pretraining"]
    needing = [name for name, practice in PRACTICES.items() if practice.groups]
    assert needing == ["group-epsilon", "thresholds", "oversampling", "synthetic"]
    for practice in PRACTICES.values():
        assert practice.title
        assert practice.trades
        assert "\n" not in practice.title + practice.trades


def test_importing_loads_nothing_heavy() -> None:
    heavy = {"torch", "scipy", "sklearn", "dp_accounting", "fairlearn", "opendp", "polars", "jax", "cvxpy"}
    code = f"import sys, developer.training.practice, developer.reveal; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


@pytest.mark.parametrize(
    "name",
    [
        "oversampling",
        *(
            pytest.param(name, marks=pytest.mark.check)
            for name in ("group-epsilon", "thresholds", "fair-representation")
        ),
    ],
)
def test_a_practice_is_a_function_of_its_seed_and_keeps_the_budget(name: str, done: Done) -> None:
    table, group = people()
    first = practised(name)
    really = done.epsilon()
    again = practised(name)
    other = practised(name, seed=1)
    scores, decisions = first.model.scores(table.features), first.model.decisions(table.features, group)
    for answer in (scores, decisions):
        assert answer.shape == (600,)
        assert 0 <= answer.min() <= answer.max() <= 1
    assert np.array_equal(scores, again.model.scores(table.features))
    assert np.array_equal(decisions, again.model.decisions(table.features, group))
    assert not np.array_equal(scores, other.model.scores(table.features))
    assert first.spent.delta == BUDGET.delta
    assert really <= first.spent.epsilon + 1e-6
    for step in first.steps:
        assert 0 < step.epsilon <= first.spent.epsilon
        assert step.delta <= BUDGET.delta
    allowed = rates.RATIO if name == "group-epsilon" else 1.0
    assert 0.7 * BUDGET.epsilon < first.spent.epsilon <= allowed * BUDGET.epsilon


@pytest.mark.check
def test_each_group_is_promised_what_is_done_to_its_rows(done: Done) -> None:
    _, group = people()
    for name in ("oversampling", "group-epsilon"):
        done.steps.clear()
        made = practised(name)
        assert made.by_group is not None
        for of in (0, 1):
            assert done.epsilon(group, of) <= made.by_group[of].epsilon
        assert made.by_group[0].epsilon > 1.3 * made.by_group[1].epsilon
        assert made.by_group[1].epsilon <= BUDGET.epsilon
        assert made.spent == made.by_group[0]
        assert [step.of for step in made.steps] == ["disadvantaged", "advantaged"]
    # The budget holds for the disadvantaged in the one, and not in the other.
    assert BUDGET.epsilon < made.spent.epsilon <= rates.RATIO * BUDGET.epsilon


@pytest.mark.check
def test_oversampling_without_more_noise_is_caught(done: Done) -> None:
    """Broken: noise for the usual rate, twice as many of one group's rows, and the usual rate's epsilon."""
    given = task()
    steps = descent.descent(given, strata=2)
    made = rates.by_rates(given, steps, (2 * steps.rate, steps.rate))
    assert done.epsilon() > 1.2 * steps.spent.epsilon
    # Accounting by group tells, as it follows the rates that there are.
    assert made.spent.epsilon >= done.epsilon()
    assert made.spent.epsilon > BUDGET.epsilon


@pytest.mark.check
def test_what_a_step_divides_by_does_not_tell_the_groups_sizes(done: Done) -> None:
    _, group = people()
    for protected in (group, 1 - group):
        rates.oversampling(task(protected=protected))
    ((_, first, *_), (_, second, *_)) = done.steps
    assert getattr(first, "expected", 0) == getattr(second, "expected", 1) == 120


@pytest.mark.check
def test_small_batches_cost_less_than_full_ones_at_the_same_noise() -> None:
    (step,) = practised("subsampling").steps
    assert float(step.what.rpartition(" ")[2]) > 3 * step.epsilon


@pytest.mark.check
def test_a_private_step_starts_where_the_public_ones_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """With so small a learning rate that the private steps move nothing, the model has learnt in public."""
    still = replace(SETTINGS, recipe=replace(SETTINGS.recipe, learning_rate=1e-9))
    table, _ = people()
    right = [
        (
            PRACTICES[name].train(task(public=True, settings=still)).model.decisions(table.features) == table.labels
        ).mean()
        for name in ("plain", "public-pretraining")
    ]
    assert right[0] < 0.75
    assert right[1] > 0.8


# Histograms and sums: what one record can change, over all neighbours of small tables.


def neighbours(n: int) -> Iterator[NDArray[np.bool_]]:
    for left_out in range(n):
        yield np.arange(n) != left_out


def reach(told: Callable[..., NDArray[np.float64]], *columns: NDArray[Any]) -> float:
    """Measure how far, in l2 norm, any one record moves what is told."""
    exact = told(*columns)
    return max(
        float(np.linalg.norm(exact - told(*(column[kept] for column in columns))))
        for kept in neighbours(len(columns[0]))
    )


def every_record() -> tuple[NDArray[np.float64], NDArray[np.uint8], NDArray[np.uint8]]:
    """One record of every bin, label and group, and of scores on the bins' edges."""
    scores = np.concatenate([histogram.MIDDLES, np.linspace(0, 1, histogram.BINS + 1)])
    grid = np.meshgrid(scores, [0, 1], [0, 1], indexing="ij")
    return grid[0].ravel(), grid[1].ravel().astype(np.uint8), grid[2].ravel().astype(np.uint8)


def test_a_record_moves_a_histogram_by_1() -> None:
    scores, labels, groups = every_record()
    assert reach(histogram.count, scores, labels, groups) == 1
    assert reach(lambda *columns: histogram.count(*columns, None), scores, labels) == 1
    assert histogram.count(scores, labels, groups).sum() == len(scores)

    def with_overall(scores: Any, labels: Any, groups: Any) -> NDArray[np.float64]:
        """Broken: counts every record in its group and overall, for the noise of one count."""
        return np.concatenate([histogram.count(scores, labels, of) for of in (groups, None)])

    assert reach(with_overall, scores, labels, groups) == pytest.approx(math.sqrt(2))


def test_a_record_moves_the_sums_by_the_square_root_of_2() -> None:
    from developer.training.practice.fair_representation import cut

    rng = np.random.default_rng(1)
    features = rng.normal(size=(12, 3)) * np.array([0, 1e-3, 0.5, 1, 3, 1e6] * 2)[:, None]
    groups = (np.arange(12) % 2).astype(np.uint8)

    def told(features: NDArray[np.float64], groups: NDArray[np.uint8]) -> NDArray[np.float64]:
        return held_sums(groups, 0.0, np.random.default_rng(0)).ask(cut(features, 2.0))

    assert 1.4 < reach(told, features, groups) <= math.sqrt(2) + 1e-9
    uncut = lambda features, groups: held_sums(groups, 0.0, np.random.default_rng(0)).ask(features)  # noqa: E731
    assert reach(uncut, features, groups) > 2


def counted(given: PracticeTask, monkeypatch: pytest.MonkeyPatch, groups: bool = True) -> histogram.ScoreHistogram:
    """Count the scores of a network that is known."""
    monkeypatch.setattr(descent, "fit", lambda features, *_, **__: constant(features.shape[1], [1]))
    return histogram.train_and_count(given, given.protected if groups else None)


@pytest.mark.check
def test_a_histogram_has_the_noise_that_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = np.stack([counted(task(seed), monkeypatch).counts[:, :, -1] for seed in range(60)])
    (_, step) = counted(task(), monkeypatch).steps
    from fairwall.laws.noise.gaussian import gaussian_multiplier

    multiplier = gaussian_multiplier(step.epsilon, step.delta)
    # 240 squares: standard deviation of their mean sqrt(2 / 240); 5 of them, below 1e-6.
    assert abs((draws.std(0) ** 2).mean() / multiplier**2 - 1) < 5 * math.sqrt(2 / 240)


def test_counts_that_cost_nothing_do_not_move_with_private_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    _, group = people(200, 9)
    free = task(public=True, public_protected=group)
    assert len(counted(free, monkeypatch).steps) == 1
    assert not moved(free, monkeypatch)
    # Broken: the private rows, called public.
    assert moved(task(), monkeypatch, called_public=True)
    # Public rows whose groups are not known do not help to count by group; they do to count overall.
    assert len(counted(replace(free, public_protected=None), monkeypatch).steps) == 2
    assert len(counted(replace(free, public_protected=None), monkeypatch, groups=False).steps) == 1


def moved(given: PracticeTask, monkeypatch: pytest.MonkeyPatch, called_public: bool = False) -> bool:
    """Tell whether any of three records moves counts, without a step for them."""
    found = []
    for kept in (slice(None), *(np.arange(600) != left_out for left_out in range(3))):
        table = TrainingSet(given.people.features[kept], given.people.labels[kept])
        assert given.protected is not None
        group = given.protected[kept]
        now = replace(given, people=table, protected=group)
        if called_public:
            now = replace(now, public=table, public_protected=group)
        made = counted(now, monkeypatch)
        assert len(made.steps) == 1
        found.append(made.counts)
    return any(not np.array_equal(found[0], other) for other in found)


# What the practices do.


def test_thresholds_give_both_groups_one_rate() -> None:
    from developer.training.practice.thresholds import ByThreshold, rules

    table, group = people(20_000)
    network = PRACTICES["plain"].train(task()).model.network  # type: ignore[attr-defined]
    model = ByThreshold(network, rules(histogram.count(network.scores(table.features)[0], table.labels, group)))
    rates = [model.decisions(table.features, group)[group == of].mean() for of in (0, 1)]
    halved = (network.scores(table.features)[0] >= 0.5).astype(float)
    assert abs(halved[group == 1].mean() - halved[group == 0].mean()) > 0.2
    # A lottery between two thresholds makes up for the bins; in each group a row or two are added.
    assert abs(rates[1] - rates[0]) < 1e-3


def test_thresholds_can_be_set_where_noise_left_nothing() -> None:
    from developer.training.practice.thresholds import rules

    for rule in rules(np.zeros((2, 2, histogram.BINS))):
        assert sum(part for part, _ in rule) == pytest.approx(1)


def test_a_calibrated_score_is_the_share_of_label_1() -> None:
    from developer.training.practice.calibration import curve

    counts = np.zeros((2, histogram.BINS))
    share = histogram.MIDDLES**2
    counts[:] = 1000 * np.stack([1 - share, share])
    assert np.allclose(np.interp(histogram.MIDDLES, *curve(counts)), share)
    counts[:, 3:5] = 0
    assert (np.diff(curve(counts)[1]) >= 0).all()
    assert np.array_equal(np.interp([0.0, 0.3, 1.0], *curve(np.zeros_like(counts))), [0.0, 0.3, 1.0])


@pytest.mark.check
def test_a_fair_representation_makes_the_groups_means_equal_without_holding_them() -> None:
    table, group = people()
    asked_of: list[float] = []

    def ask(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        asked_of.append(float(np.linalg.norm(rows, axis=1).max()))
        return held_sums(group, 0.0, np.random.default_rng(0)).ask(rows)

    sums = GroupAdder(ask, 5.0)
    made = PRACTICES["fair-representation"].train(task(protected=None, sums=sums))
    (longest,) = asked_of
    assert longest <= 1 + 1e-12
    representation = made.model.representation  # type: ignore[attr-defined]
    left = representation(table.features)
    assert np.allclose(left[group == 1].mean(0), left[group == 0].mean(0))
    asked, steps = made.steps
    assert 0 < asked.epsilon < made.spent.epsilon <= BUDGET.epsilon
    assert steps.epsilon < made.spent.epsilon
    with pytest.raises(UserError, match="with what else is told"):
        PRACTICES["fair-representation"].train(task(sums=replace(sums, multiplier=0.5)))


def test_what_cannot_be_practised_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from developer.training.practice import synthetic, thresholds

    wider = TrainingSet(np.zeros((2, 9)), np.array([0, 1], np.uint8))
    cases: list[tuple[str, Callable[[], object]]] = [
        *(
            ("the group of every row", lambda name=name: PRACTICES[name].train(task(protected=None)))  # type: ignore[misc]
            for name in ("group-epsilon", "thresholds", "oversampling", "synthetic", "fair-representation")
        ),
        *(
            ("no row is in the advantaged group", lambda name=name: PRACTICES[name].train(_of_one()))  # type: ignore[misc]
            for name in ("group-epsilon", "thresholds", "calibration", "oversampling", "fair-representation")
        ),
        ("needs public rows", lambda: PRACTICES["public-pretraining"].train(task())),
        ("other features", lambda: PRACTICES["public-pretraining"].train(replace(task(), public=wider))),
        ("epsilon = 1e-05: no noise", lambda: PRACTICES["plain"].train(task(budget=TrainingBudget(1e-5)))),
        ("delta = 0: a private network", lambda: PRACTICES["plain"].train(task(budget=TrainingBudget(1.0, 0.0)))),
        ("row that is decided", lambda: practised("thresholds").model.decisions(people()[0].features)),
        ("row that is decided", lambda: practised("calibration").model.decisions(people()[0].features)),
    ]
    for says, case in cases:
        refused(says, case)
    for module, name, extra in ((thresholds, "thresholds", "training"), (synthetic, "synthetic", "synthetic")):
        with monkeypatch.context() as patch:
            patch.setattr(module, "find_spec", lambda _: None)
            refused(f"pip install 'fairwall[{extra}]'", lambda name=name: PRACTICES[name].train(task()))  # type: ignore[misc]


def refused(says: str, case: Callable[[], object]) -> None:
    with pytest.raises(UserError) as line:
        case()
    assert says in str(line.value)
    assert "\n" not in str(line.value)


def _of_one() -> PracticeTask:
    return task(protected=np.zeros(600, np.uint8))


# Synthetic rows.


def test_features_are_coded_by_column_and_back() -> None:
    from developer.training.practice.synthetic import columns_of

    columns = columns_of(COLUMNS, 4)
    assert columns.sizes == (4, 3)
    features = np.array([[-2.0, 1, 0, 0], [-0.2, 0, 0, 1], [5.0, 0, 0, 0]])
    codes = columns.encode(features)
    assert [list(code) for code in codes] == [[0, 1, 3], [0, 2, -1]]
    assert np.array_equal(columns.decode(codes), [[-1.5, 1, 0, 0], [-0.5, 0, 0, 1], [1.5, 0, 0, 0]])
    assert columns_of((), 2).sizes == (4, 4)


def test_the_concentrated_budget_is_the_one_that_is_stated() -> None:
    from developer.training import TrainingPromise
    from developer.training.practice.synthetic import concentrated

    for epsilon, delta in ((0.05, 5e-6), (3.0, 1e-3)):
        rho = concentrated(TrainingPromise(epsilon, delta))
        assert rho + 2 * math.sqrt(rho * math.log(1 / delta)) == pytest.approx(epsilon)


@pytest.mark.slow
def test_synthetic_rows_are_like_the_disadvantaged_groups_and_paid_for(done: Done) -> None:
    pytest.importorskip("mbi", reason="OpenDP's extra for synthetic rows is not installed")
    from developer.training import TrainingPromise
    from developer.training.practice.synthetic import columns_of, synthesise

    table, group = people()
    rows = table.features[group == 0], table.labels[group == 0]
    made = synthesise(*rows, columns_of(COLUMNS, 4), TrainingPromise(50.0, 1e-5))
    assert made is not None
    features, labels = made
    assert abs(len(labels) - (group == 0).sum()) < 20
    assert abs(labels.mean() - rows[1].mean()) < 0.05
    assert features[labels == 1, 0].mean() > features[labels == 0, 0].mean() + 1
    practice = practised("synthetic")
    ((_, _, _, trained),) = done.steps
    assert trained > 600
    of_rows, of_steps = practice.steps
    assert practice.spent.epsilon == of_rows.epsilon + of_steps.epsilon <= BUDGET.epsilon
    assert practice.spent.delta == of_rows.delta + of_steps.delta <= BUDGET.delta
    assert practice.by_group is not None
    assert practice.by_group[0] == practice.spent
    assert practice.by_group[1].epsilon == of_steps.epsilon


@pytest.mark.slow
def test_a_search_that_fails_is_one_line() -> None:
    refused("epsilon = 1e-05: no noise", lambda: PRACTICES["plain"].train(task(budget=TrainingBudget(1e-5))))


@pytest.mark.slow
@pytest.mark.parametrize("name", SEEDED)
def test_a_practice_spends_nearly_all_that_it_may(name: str) -> None:
    made = practised(name)
    spent = made.by_group[1] if made.by_group is not None and name == "group-epsilon" else made.spent
    assert 0.98 * BUDGET.epsilon < spent.epsilon <= BUDGET.epsilon
