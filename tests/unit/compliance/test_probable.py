"""Groups by probabilities: how far one person moves what is released, and what it still tells.

Every statistical test has a fixed seed and a false-alarm rate of 1e-7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from compliance.answers import groups as module
from compliance.answers.groups import GroupCase, balanced_noise, released
from compliance.noise.sampling import Noise, Seeded
from compliance.records import groups as records
from compliance.records.groups import Attribute, Grouped, Probable
from fairwall.client.by_group import ByGroup
from fairwall.laws.groups import proxy_attributes as probable
from fairwall.laws.groups.group_tables import Share
from fairwall.laws.groups.proxy_attributes import GRID, rate_of, rounded
from fairwall.laws.metrics.group_size_range import Shares
from fairwall.laws.privacy.exposure import Limit
from fairwall.rpc.arrays import ArrayError, from_message
from tests.support.noise_sources import SILENT
from tests.unit.compliance.test_groups import header

FALSE_ALARM = 1e-7
ACS = Path(__file__).parents[4] / "shared" / "data" / "db_ACSCoverage.csv.gz"
SEXES = Attribute("sex", ("f", "m"))
Floats = NDArray[np.float64]


def people_of(parts: Any, own: Any, golden: Any, sex: Any = None, labels: Any = None) -> Grouped:
    """Make people of rounded probabilities; whose own value counts in the golden sample alone."""
    parts, golden = np.asarray(parts, np.int64), np.asarray(golden, np.bool_)
    race = Attribute("race", tuple("abcdef"[: parts.shape[1]]))
    known = np.where(golden, own, 0).astype(np.uint8)
    likely = Probable("race", parts, golden)
    some = np.zeros(len(parts), np.uint8) if labels is None else np.asarray(labels, np.uint8)
    if sex is None:
        return Grouped((race,), known[np.newaxis], some, likely)
    return Grouped((SEXES, race), np.stack([np.asarray(sex, np.uint8), known]), some, likely)


def asked(
    people: Grouped,
    predictions: Any,
    epsilon: float,
    noise: Noise = SILENT,
    measures: tuple[str, ...] = ("selection_rate",),
    by: tuple[str, ...] = ("race",),
) -> ByGroup:
    """Release as the service does, and read it as the client does."""
    told, batch = header(measures, epsilon, by), np.atleast_2d(np.asarray(predictions, np.float64))
    release = released(people, told, batch, noise)
    release.by.extend(GroupCase.attributes(GroupCase(None, people, 0.0), by))  # type: ignore[arg-type]
    release.measures.extend(told.measures)
    return ByGroup.read(release, epsilon_charged=epsilon, epsilon_remaining=0.0, epsilon_remaining_now=0.0)


# What one person moves ------------------------------------------------------------------------------------------------


def vectors(grid: int, values: int) -> list[tuple[int, ...]]:
    return [each for each in product(range(grid + 1), repeat=values) if sum(each) == grid]


def worst_loss(grid: int, values: int, golden: tuple[bool, ...], *, sexes: bool, epsilon: float) -> Iterator[float]:
    """The exact loss at worst: over everybody's probabilities, value and sex, and all neighbours of these.

    The law of the noise gives every table o the probability exp(-rate |o - counts|) but for one constant.
    """
    n, whose = len(golden), [(parts, own) for parts in vectors(grid, values) for own in range(values)]
    each = list(product(whose, range(2 if sexes else 1)))
    batches = [np.eye(1, n), np.vstack([np.ones(n), np.arange(n) % 2])]
    for predictions, labels in product(batches, (np.arange(n) % 2, np.ones(n, np.uint8))):
        told: dict[tuple[Any, ...], tuple[list[Floats], list[float]]] = {}
        for all_of in product(each, repeat=n):
            (parts, own), sex = zip(*(mine for mine, _ in all_of), strict=True), [its for _, its in all_of]
            people = people_of(parts, own, golden, sex if sexes else None, labels)
            asks = header(("selection_rate", "true_positive_rate"), epsilon, ("race", "sex") if sexes else ("race",))
            tables = released(people, asks, predictions, SILENT).tables
            numbers = [np.hstack([from_message(table.counts), from_message(table.golden)]) for table in tables]
            told[all_of] = numbers, [table.rate for table in tables]
        worst = 0.0
        for all_of, (numbers, rates) in told.items():
            for person, other in product(range(n), each):
                others = told[(*all_of[:person], other, *all_of[person + 1 :])][0]
                moved = (np.abs(mine - theirs).sum() for mine, theirs in zip(numbers, others, strict=True))
                worst = max(worst, math.fsum(rate * far for rate, far in zip(rates, moved, strict=True)))
        yield worst


WORLDS = [
    (4, 2, (True,), False, 3.0),
    pytest.param(4, 2, (True, False), False, 0.1, marks=pytest.mark.check),
    pytest.param(2, 3, (True,), True, 0.1, marks=pytest.mark.check),
    pytest.param(2, 2, (False, True), True, 3.0, marks=pytest.mark.check),
    pytest.param(2, 2, (True, True, False), False, 3.0, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("grid", "values", "golden", "sexes", "epsilon"), WORLDS)
def test_a_request_costs_its_epsilon_and_no_more(
    grid: int, values: int, golden: tuple[bool, ...], sexes: bool, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (probable, records):
        monkeypatch.setattr(place, "GRID", grid)
    losses = list(worst_loss(grid, values, golden, sexes=sexes, epsilon=epsilon))
    assert max(losses) <= epsilon
    assert min(losses) >= 0.9998 * epsilon


@pytest.mark.parametrize(
    "twin",
    [lambda epsilon: rate_of(2 * epsilon), lambda epsilon: GRID * rate_of(epsilon)],
    ids=["counts one of two cells", "takes the golden sample's probabilities for whole people"],
)
def test_a_twin_that_costs_more_is_found(twin: Callable[[float], float], monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (probable, records):
        monkeypatch.setattr(place, "GRID", 2)
    monkeypatch.setattr(module, "rate_of", twin)
    assert max(worst_loss(2, 2, (True, False), sexes=False, epsilon=1.0)) > 1.5


def lost(table: Any, numbers: str, other: Any, draws: int = 40_000) -> tuple[float, float]:
    """The loss of neighbours who differ in one table, as drawn, and its standard error: of what lies beyond both."""
    (here,), (there,) = (from_message(getattr(each, numbers)) for each in (table, other))
    noise = balanced_noise(Seeded(np.random.default_rng(4)), table.rate, draws, len(here))
    beyond = [(((each + noise - here) * np.sign(here - there)) >= 0).all(axis=1).sum() for each in (here, there)]
    return math.log(beyond[0] / beyond[1]), math.sqrt(1 / beyond[0] + 1 / beyond[1])


def test_neighbours_are_told_apart_by_epsilon_and_by_no_more_nor_less() -> None:
    """A person who is surely of one group, and then surely of the other; in the golden sample, or not."""
    sure = GRID * np.eye(2, dtype=np.int64)
    for golden, numbers in (([True, True], "golden"), ([False, True], "counts")):
        tables = []
        for group in (0, 1):
            people = people_of([sure[group], [300, GRID - 300]], [group, 1], golden)
            tables += released(people, header(("selection_rate",), 1.0, ("race",)), np.ones((1, 2)), SILENT).tables
        loss, error = lost(tables[0], numbers, tables[1])
        assert loss == pytest.approx(1.0, abs=6 * error)
        tables[0].rate *= 2
        twin, error = lost(tables[0], numbers, tables[1])
        assert twin > 1 + 6 * error


def test_noise_is_no_less_than_a_golden_sample_of_so_few_asks_for() -> None:
    rng = np.random.default_rng(1)
    people = people_of(rounded(rng.dirichlet([1, 1], 4_000)), rng.integers(0, 2, 4_000), np.arange(4_000) < 200)
    limit = Limit(0.55, Shares(0.1, 0.9, 20, by_policy=True))
    scores = rng.integers(0, 2, (3, 4_000)).astype(float)
    (few,) = released(people, header(("selection_rate",), 3.0, ("race",)), scores[:1], SILENT, limit).tables
    assert few.rate < 0.8 * rate_of(3.0)
    assert len(released(people, header(("selection_rate",), 3.0, ("race",)), scores, SILENT, limit).tables) == 3


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(sum), min_size=1, max_size=9))
def test_probabilities_are_rounded_to_what_sums_up_to_1(numbers: list[list[float]]) -> None:
    given_ = np.array(numbers)
    found = rounded(given_)
    assert (found >= 0).all()
    assert (found.sum(axis=1) == GRID).all()
    assert np.abs(found / GRID - given_ / given_.sum(axis=1, keepdims=True)).max() < 1 / GRID


# What is told ---------------------------------------------------------------------------------------------------------


def test_without_noise_rates_are_the_difference_estimator_and_parts_its_variance() -> None:
    rng, n, m = np.random.default_rng(2), 3_000, 400
    parts = rounded(rng.dirichlet([2, 1, 0.5], n))
    likely, own = parts / GRID, rng.integers(0, 3, n)  # which has nothing to do with them
    chosen, sex = rng.random(n) < 0.3 + 0.2 * own / 2, rng.integers(0, 2, n)
    golden = np.isin(np.arange(n), rng.choice(n, m, replace=False))
    counts = asked(people_of(parts, own, golden, sex), chosen, math.inf, by=("race", "sex"))
    sure = np.eye(3)[own]
    inside = golden[:, np.newaxis]
    for record in counts.records():
        race, its = "abc".index(record["race"]), sex == "fm".index(record["sex"])
        x = [(likely + n / m * inside * (sure - likely))[its & who, race].sum() for who in (chosen, its)]
        assert record["selection_rate"] == pytest.approx(x[0] / x[1])
        assert record["people"] == round(x[1])
        assert record["selection_rate_noise"] == 0
        # One person's residuals, less the rate: their mean square in the golden sample.
        square = ((chosen - x[0] / x[1]) * (sure - likely)[:, race])[its & golden] @ (
            (chosen - x[0] / x[1]) * (sure - likely)[:, race]
        )[its & golden]
        total = 1.96 * math.sqrt(n * (n - m) / m * square / m) / x[1]
        sampling, proxy = (record[f"selection_rate_{part}"] for part in ("sampling", "proxy"))
        assert math.hypot(sampling, proxy) == pytest.approx(total, rel=0.1)
        assert sampling == pytest.approx(math.sqrt(m / (n - m)) * proxy, rel=0.1)
    by_sex = {record["sex"]: record for record in counts.records(("sex",))}
    assert by_sex["f"]["selection_rate"] == pytest.approx(chosen[sex == 0].mean()), "which is known"
    assert by_sex["f"]["selection_rate_proxy"] == pytest.approx(0, abs=1e-6)
    assert by_sex["f"]["selection_rate_proxy_p_value"] == 1


def test_whoever_is_surely_of_a_group_is_counted_there() -> None:
    rng = np.random.default_rng(3)
    own, chosen = rng.integers(0, 3, 900), rng.integers(0, 2, 900)
    people = people_of(GRID * np.eye(3, dtype=np.int64)[own], own, np.arange(900) % 5 == 0)
    for group, record in enumerate(asked(people, chosen, math.inf).records()):
        assert record["people"] == (own == group).sum()
        for end in ("", "_low", "_high"):
            assert record[f"selection_rate{end}"] == pytest.approx(chosen[own == group].mean(), abs=2e-3)


def test_what_needs_counts_of_people_is_refused() -> None:
    people = people_of([[GRID, 0], [0, GRID], [512, 512]], [0, 1, 0], [True, True, False])
    counts = asked(people, [1, 0, 1], math.inf)
    for ask in (counts.practice, counts.however_filled):
        with pytest.raises(ValueError, match="needs counts of people, and race is known by probabilities"):
            ask()


def test_tables_of_other_groups_than_a_release_says_are_none() -> None:
    release = asked(people_of([[GRID, 0], [0, GRID]], [0, 1], [True, False]), [1, 0], math.inf).release
    release.by[0].values.append("another")
    release.groups = 3
    with pytest.raises(ArrayError, match="of other groups than the release says"):
        ByGroup.read(release, epsilon_charged=1.0, epsilon_remaining=0.0, epsilon_remaining_now=0.0).records()


# What it holds --------------------------------------------------------------------------------------------------------

RATES = np.array([0.6, 0.4, 0.5, 0.3])


def made(rng: np.random.Generator, depends: float = 0.0) -> tuple[Floats, NDArray[np.int64], NDArray[np.bool_]]:
    """Draw people whose probabilities are right, and decide by these, and by the group as far as that depends."""
    likely = rng.dirichlet([0.6, 0.2, 0.12, 0.08], 8_000)
    own = (rng.random((len(likely), 1)) > likely.cumsum(axis=1)).sum(axis=1).clip(0, 3)
    return likely, own, rng.random(len(own)) < likely @ RATES + depends * (own == 0)


class Acs:
    """People of a real table by their race; probabilities are each race's share among those with equal columns."""

    def __init__(self) -> None:
        import pandas as pd

        if not ACS.is_file():
            pytest.skip(f"{ACS.name} is not at hand")
        table = pd.read_csv(ACS)
        self.own = table["RAC1P"].to_numpy()
        cell = table.groupby(["CIT", "ANC", "NATIVITY", "MIL", "ESR", "MAR"]).ngroup().to_numpy()
        counts = np.zeros((cell.max() + 1, 2))
        np.add.at(counts, (cell, self.own), 1)
        self.likely = (counts / counts.sum(axis=1, keepdims=True))[cell]
        self.chance = np.random.default_rng(0).beta(2, 2, len(counts))[cell]

    def __call__(
        self, rng: np.random.Generator, depends: float = 0.0
    ) -> tuple[Floats, NDArray[np.int64], NDArray[np.bool_]]:
        """Draw people; each cell of equal columns has a rate, and so decisions say nothing else of races."""
        drawn = rng.choice(len(self.own), 8_000, replace=False)
        own = self.own[drawn]
        return self.likely[drawn], own, rng.random(len(drawn)) < self.chance[drawn] + depends * (own == 0)


def worlds(kind: str) -> Callable[..., tuple[Floats, NDArray[np.int64], NDArray[np.bool_]]]:
    return made if kind == "made" else Acs()


def drawn_records(world: Any, rng: np.random.Generator, epsilon: float, golden: int) -> tuple[list[Any], Floats]:
    """Ask about people drawn anew; and give the exact rates."""
    likely, own, chosen = world
    known = np.isin(np.arange(len(own)), rng.choice(len(own), golden, replace=False))
    counts = asked(people_of(rounded(likely), own, known), chosen, epsilon, Seeded(rng))
    return counts.records(), np.array([chosen[own == group].mean() for group in range(likely.shape[1])])


@pytest.mark.parametrize("number", [4, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("epsilon", "golden"), [(1.0, 1_000), pytest.param(3.0, 400, marks=pytest.mark.check)])
@pytest.mark.parametrize("kind", ["made", pytest.param("acs", marks=pytest.mark.check)])
def test_the_interval_in_three_parts_holds_the_exact_rate(kind: str, epsilon: float, golden: int, number: int) -> None:
    rng, draw = np.random.default_rng([len(kind), golden, number]), worlds(kind)
    groups = 4 if kind == "made" else 2
    held, ratios, said = np.zeros(groups), np.zeros(groups), 0
    for _ in range(number):
        told, exact = drawn_records(draw(rng), rng, epsilon, golden)
        for group, (record, rate) in enumerate(zip(told, exact, strict=True)):
            held[group] += record["selection_rate_low"] <= rate <= record["selection_rate_high"]
            ratio = rate / exact.max()
            ratios[group] += record["selection_rate_ratio_low"] <= ratio <= record["selection_rate_ratio_high"]
        said += min(record["selection_rate_proxy_p_value"] for record in told) < 0.05
    assert (held >= scipy.stats.binom.ppf(FALSE_ALARM, number, 0.94)).all()
    assert (held <= scipy.stats.binom.isf(FALSE_ALARM, number, 0.98)).all()
    assert (ratios >= scipy.stats.binom.ppf(FALSE_ALARM, number, 0.94)).all()
    assert said <= scipy.stats.binom.isf(FALSE_ALARM, number, 0.06)


@pytest.mark.check
@pytest.mark.parametrize("number", [8, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["made", pytest.param("acs", marks=pytest.mark.check)])
def test_probabilities_whose_assumption_is_broken_are_found_out_and_the_interval_holds(kind: str, number: int) -> None:
    """Decisions depend on the group beyond what probabilities are made of: by 20 points for one of them."""
    rng, draw = np.random.default_rng([len(kind), number]), worlds(kind)
    held, said = 0, 0
    for _ in range(number):
        told, exact = drawn_records(draw(rng, -0.2), rng, 2.0, 2_000)
        held += all(
            record["selection_rate_low"] <= rate <= record["selection_rate_high"]
            for record, rate in zip(told[:2], exact[:2], strict=True)
        )
        said += min(record["selection_rate_proxy_p_value"] for record in told) < 0.05
    assert held >= scipy.stats.binom.ppf(FALSE_ALARM, number, 0.9)
    assert said >= scipy.stats.binom.ppf(FALSE_ALARM, number, 0.9)


@pytest.mark.check
def test_an_interval_that_forgets_what_the_sample_leaves_open_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Share.interval

    def narrow(share: Share, missed: float = 0.05) -> Any:
        return whole(share, 0.9) if missed == 0.05 else whole(share, missed)

    monkeypatch.setattr(Share, "interval", narrow)
    with pytest.raises(AssertionError):
        test_the_interval_in_three_parts_holds_the_exact_rate("made", 1.0, 1_000, 20)
