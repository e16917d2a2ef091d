"""What practice asks of counts by group: exact counts give what references do, and intervals hold the exact number.

Nothing new is released: every question is models of one ordinary request, whose sensitivity `test_groups.py`
brute-forces.
Every statistical test has a fixed seed and a false-alarm rate of 1e-7.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from numpy.typing import NDArray

from compliance.answers import groups as module
from compliance.answers.groups import released
from compliance.noise.sampling import Noise, Seeded
from compliance.records.groups import Attribute, Grouped
from fairwall.client import practice
from fairwall.client.by_group import ByGroup
from fairwall.laws.groups.group_counts import balanced, noise_rate
from fairwall.laws.groups.group_tables import NoisyTable
from fairwall.laws.groups.practice_measures import (
    GroupEstimate,
    MeasureCounts,
    balanced_accuracy,
    common_odds_ratio,
    counts_of_tables,
    treatment_equality,
)
from tests.support.noise_sources import SILENT
from tests.unit.compliance.test_groups import TABLES, asked, grouped_of, header, people_of, shipped_table

FALSE_ALARM = 1e-7
DECISIONS = ("selection_rate", "true_positive_rate", "false_positive_rate")


class Bought:
    """Buys as a client does, of these people; it keeps what was asked."""

    def __init__(self, people: Grouped, noise: Noise = SILENT) -> None:
        self.people, self.noise = people, noise
        self.asked: list[tuple[int, tuple[str, ...], float]] = []

    def __call__(self, predictions: Any, by: Any, epsilon: float, measures: tuple[str, ...]) -> ByGroup:
        batch = np.asarray(predictions, np.float64)
        self.asked.append((len(batch), measures, epsilon))
        return asked(self.people, batch, measures, epsilon, self.noise, (by,) if isinstance(by, str) else tuple(by))


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(expected, float), rtol=1e-12, atol=1e-12)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", TABLES)
def test_exact_counts_give_what_references_do(name: str) -> None:
    from fairlearn.metrics import MetricFrame, selection_rate
    from scipy.stats.contingency import odds_ratio as sample_odds_ratio
    from sklearn.metrics import balanced_accuracy_score, confusion_matrix

    columns, label, positive = TABLES[name]
    frame = shipped_table(name).sample(1_000, random_state=1)
    people = grouped_of(frame, columns, label, positive)
    rng = np.random.default_rng(1)
    scores = np.round(rng.beta(2, 3, len(frame)) + 0.2 * people.labels, 2)  # some are alike
    chosen = (scores > 0.5).astype(float)
    by = columns[1]
    group, buy = frame[by].astype(str).to_numpy(), Bought(people)
    inside = {value: group == value for value in people.attributes[1].values}

    bought = asked(people, chosen, DECISIONS, by=columns)
    reference = next(iter(inside))
    for record in bought.practice((by,), reference):
        mine, theirs = inside[record[by]], inside[reference]
        close(record["balanced_accuracy"], balanced_accuracy_score(people.labels[mine], chosen[mine]))
        _, false_positives, false_negatives, _ = confusion_matrix(people.labels[mine], chosen[mine]).ravel()
        close(record["treatment_equality"], false_negatives / false_positives)
        for measure, among in (("selection_rate", people.labels >= 0), ("true_positive_rate", people.labels == 1)):
            table = [[int(sum(chosen[who & among] == value)) for value in (1, 0)] for who in (mine, theirs)]
            close(record[f"{measure}_odds_ratio"], sample_odds_ratio(table, kind="sample").statistic)
        assert record["balanced_accuracy"] == record["balanced_accuracy_low"] == record["balanced_accuracy_high"]

    bands = practice.by_quantile(buy, scores, by, math.inf, 8, {}, labels=True)
    for quantile, threshold in zip(bands.quantiles, bands.thresholds, strict=True):
        rates = {value: (scores[who] >= threshold).mean() for value, who in inside.items()}
        of = {each[by]: each for each in bands.records() if each["threshold"] == threshold}
        assert {each["quantile"] for each in of.values()} == {quantile}
        close(quantile, (scores < threshold).mean())
        for value, rate in rates.items():
            close(of[value]["selection_rate_ratio"], rate / max(rates.values()))
    calibration = bands.calibration()
    assert len(calibration) == len(inside) * (len(bands.thresholds) + 1)
    for record in calibration:
        among = inside[record[by]] & (scores >= record["from"]) & (scores < record["below"])
        close(record["positives"], people.labels[among].mean() if among.any() else math.nan)

    segments = rng.choice(["east", "north", "west"], len(frame), p=[0.2, 0.3, 0.5])
    found = practice.by_segment(buy, chosen, segments, by, math.inf, {})
    theirs = MetricFrame(
        metrics=selection_rate,
        y_true=chosen,
        y_pred=chosen,
        sensitive_features=pd.Series(group),
        control_features=pd.Series(segments),
    )
    for record in found.records():
        close(record["selection_rate"], theirs.by_group[record["segment"], record[by]])
        if record["selection_rate_ratio"] != 1:
            least = record["selection_rate"] == theirs.group_min()[record["segment"]]
            assert not least or record["selection_rate_ratio"] == pytest.approx(theirs.ratio()[record["segment"]])
    for record in found.common_odds_ratio(reference=reference):
        top = bottom = 0.0
        for segment in set(segments):  # as written by Mantel and Haenszel
            a, b, c, d = (
                float(np.sum((segments == segment) & who & (chosen == value)))
                for who in (inside[record[by]], inside[reference])
                for value in (1, 0)
            )
            top, bottom = top + a * d / (a + b + c + d), bottom + b * c / (a + b + c + d)
        close(record["common_odds_ratio"], top / bottom)

    prices = 100 * rng.lognormal(0, 1, len(frame)) + 50 * people.labels
    clipped = np.clip(prices, 20, 400)
    for record in practice.standardised_differences(buy, prices, by, math.inf, (20, 400), reference, {}):
        mine = clipped[inside[record[by]]].mean()
        close(record["mean"], mine)
        close(record["standardised_difference"], (mine - clipped[inside[reference]].mean()) / clipped.std())
    assert [(measures, epsilon) for _, measures, epsilon in buy.asked] == [
        (DECISIONS, math.inf),
        (("selection_rate",), math.inf),
        (("mean_score",), math.inf),
    ]


@pytest.mark.parametrize("kind", ["one table", "a table for each", "rows"])
def test_counts_are_the_same_however_they_were_released(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SILENT noise at a finite epsilon: exact numbers in the release's own form."""
    rng = np.random.default_rng(2)
    people = people_of(rng.integers(0, 3, 3_000), rng.integers(0, 2, 3_000))
    scores = rng.random(3_000)
    models = (scores >= np.array([[0.2], [0.5], [0.9]])).astype(float)
    if kind == "a table for each":
        monkeypatch.setattr("fairwall.laws.groups.group_counts.PEOPLE_A_STRATUM", math.inf)
    worth = math.inf if kind == "rows" else 0
    release = released(people, header(DECISIONS, 1.0), models, SILENT, worth=worth)
    assert (len(release.tables), len(release.rows)) == {"one table": (1, 0), "rows": (0, 2)}.get(kind, (3, 0))
    bought = ByGroup(("kind",), (("0",), ("1",), ("2",)), DECISIONS, 3, release, 0.0, 1.0, 0.0, 0.0)
    wanted = [(measure, model) for measure in DECISIONS for model in (2, 0, 1)]
    counts = bought.counts(wanted)
    cell, labels = people.codes[0], people.labels
    of = {"selection_rate": labels >= 0, "true_positive_rate": labels == 1, "false_positive_rate": labels == 0}
    expected = []
    for measure, model in wanted:
        for who in (of[measure], of[measure] & (models[model] == 1)):
            expected.append(np.bincount(cell[who], minlength=3))
    close(counts.released, expected)
    assert counts.noise.shape[0] == len(expected)
    # What is counted twice has one noise, and what lies in another less than it has together.
    selected, chosen, alarms = (counts.noise[1 + 2 * place] for place in (0, 3, 6))
    assert np.allclose(selected, chosen + alarms, atol=1e-9)
    drawn = counts.noise.std(axis=(1, 2))
    shares = [bought.share(measure, model).top_noise.std() for measure, model in wanted]
    np.testing.assert_allclose(drawn[1::2], shares, rtol=0.1)


# How sure it is -------------------------------------------------------------------------------------------------------

WORLDS = {
    "alike": [300, 300, 400],
    "two": [100, 900],
    "few": [15, 40, 60, 300],
    "tiny": [3, 5, 8, 200],
    "rare": [50, 100, 500],
}
SEGMENTS = 3
_FOUR = np.array([[1.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]])
_TWO = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1]])


def questions(strata: NoisyTable, of_segments: NoisyTable, reference: int) -> dict[str, GroupEstimate]:
    """All that is asked of hits and misses of both labels, and of hits and others in each segment."""
    band = counts_of_tables([(strata, np.eye(4)[[0, 2]])])
    share = band.share(0, 1)
    return {
        "balanced accuracy": balanced_accuracy(counts_of_tables([(strata, _FOUR)])),
        "treatment equality": treatment_equality(counts_of_tables([(strata, _FOUR)])),
        "odds ratio": common_odds_ratio(counts_of_tables([(strata, _TWO)]), reference),
        "calibration": GroupEstimate(share.estimate, *share.interval()),
        "common odds ratio": common_odds_ratio(counts_of_tables([(of_segments, np.eye(2 * SEGMENTS))]), reference),
    }


def world(rng: np.random.Generator, sizes: list[int], rate: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw strata by label and decision, and segments by decision, of groups of these sizes."""
    k = len(sizes)
    places = np.array([rng.multinomial(size, rng.dirichlet(np.full(SEGMENTS, 3.0))) for size in sizes]).T
    positives = rng.binomial(places, rng.beta(10 * rate, 10 - 10 * rate, (SEGMENTS, k)))
    hits = rng.binomial(positives, rng.beta(5, 3, k))
    alarms = rng.binomial(places - positives, rng.beta(3, 5, k))
    strata = np.stack([hits, positives - hits, alarms, places - positives - alarms]).sum(axis=1)
    return strata, np.concatenate([hits + alarms, places - hits - alarms])


def held(name: str, epsilon: float, worlds: int, twin: float = 1.0) -> dict[str, list[bool]]:
    """Whether intervals held the exact number, of one group in each world; a twin takes the noise for narrower."""
    rng, sizes, rate = np.random.default_rng(list(name.encode())), WORLDS[name], noise_rate(epsilon)
    out: dict[str, list[bool]] = {}
    for _ in range(worlds):
        exact = world(rng, sizes, 0.1 if name == "rare" else 0.4)
        group, reference = int(rng.integers(len(sizes) - 1)), len(sizes) - 1
        noisy = (each + balanced(rng, rate, *each.shape) for each in exact)
        found = questions(*(NoisyTable(each.astype(float), rate * twin) for each in noisy), reference)
        for kind, was in questions(*(NoisyTable(each.astype(float), math.inf) for each in exact), reference).items():
            value, ends = was.value[group], found[kind]
            if not np.isnan(value):
                near = 1e-9 * max(1.0, value) if math.isfinite(value) else 0.0
                out.setdefault(kind, []).append(bool(ends.low[group] - near <= value <= ends.high[group] + near))
    return out


@pytest.mark.check
@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "epsilon"), [*zip(WORLDS, (0.3, 1.0, 3.0, 0.3, 1.0), strict=True)])
@pytest.mark.parametrize("worlds", [15, pytest.param(300, marks=pytest.mark.slow)])
def test_intervals_hold_the_exact_number_in_94_worlds_of_100(name: str, epsilon: float, worlds: int) -> None:
    for kind, times in held(name, epsilon, worlds).items():
        assert scipy.stats.binom.cdf(sum(times), len(times), 0.94) > FALSE_ALARM, kind


@pytest.mark.check
def test_intervals_for_half_of_the_noise_are_found_out() -> None:
    for kind, times in held("alike", 0.3, 300, twin=2.0).items():
        assert scipy.stats.binom.cdf(sum(times), len(times), 0.94) <= FALSE_ALARM, kind


@pytest.mark.check
@pytest.mark.parametrize(("kind", "sizes"), [("tables", [150, 850]), ("rows", [6, 30, 80, 400])], ids=["two", "few"])
@pytest.mark.parametrize("worlds", [15, pytest.param(300, marks=pytest.mark.slow)])
def test_intervals_of_what_is_asked_of_a_service_hold_it(
    kind: str, sizes: list[int], worlds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Common odds ratios, bands' positives, impact ratios and standardised differences, through a whole release."""
    monkeypatch.setattr(module.released, "__kwdefaults__", {"worth": math.inf if kind == "rows" else 0})
    rng, cells = np.random.default_rng(len(sizes)), np.repeat(np.arange(len(sizes)), sizes)
    out: dict[str, list[bool]] = {}
    for _ in range(worlds):
        scores = rng.beta(3 + rng.random(len(sizes))[cells], 3)
        labels = rng.random(len(cells)) < scores
        people, epsilon = people_of(cells, labels, len(sizes)), float(rng.choice([0.5, 1.0, 3.0]))
        segments = rng.integers(0, 2, len(cells))
        noisy, exact = Bought(people, Seeded(rng)), Bought(people)
        pairs: dict[str, list[list[dict[str, Any]]]] = {}
        for buy, cost in ((noisy, epsilon), (exact, math.inf)):
            bands = practice.by_quantile(buy, scores, "kind", cost, 4, {}, labels=True)
            for column, records in (
                ("selection_rate_ratio", bands.records()),
                ("positives", bands.calibration()),
                (
                    "common_odds_ratio",
                    practice.by_segment(buy, scores > 0.5, segments, "kind", cost, {}).common_odds_ratio(
                        reference=str(len(sizes) - 1)
                    ),
                ),
                (
                    "standardised_difference",
                    practice.standardised_differences(buy, scores, "kind", cost, (0.0, 1.0), str(len(sizes) - 1), {}),
                ),
            ):
                pairs.setdefault(column, []).append(records)
        for column, (told, was) in pairs.items():
            place = int(rng.choice([i for i in range(len(was)) if was[i]["kind"] != str(len(sizes) - 1)]))
            value, record = was[place][column], told[place]
            if not (math.isnan(value) or math.isnan(record[column])):
                near = 1e-4 if column == "standardised_difference" else 1e-9  # scores are rounded
                out.setdefault(column, []).append(
                    record[f"{column}_low"] - near <= value <= record[f"{column}_high"] + near
                )
    for column, times in out.items():
        assert scipy.stats.binom.cdf(sum(times), len(times), 0.94) > FALSE_ALARM, column


# What cannot be asked -------------------------------------------------------------------------------------------------


def test_what_is_undefined_has_an_undefined_interval_and_what_is_lost_in_noise_may_be_anything() -> None:
    nobody = MeasureCounts(np.zeros((4, 2)), np.zeros((4, 1, 2)), np.ones(2, np.int64))
    for found in (balanced_accuracy(nobody), treatment_equality(nobody), common_odds_ratio(nobody, 0)):
        assert np.isnan([found.value, found.low, found.high]).all()
    lost = MeasureCounts(np.zeros((4, 2)), np.random.default_rng(3).normal(0, 9, (4, 500, 2)), np.ones(2, np.int64))
    found = balanced_accuracy(lost)
    assert (found.low.tolist(), found.high.tolist()) == ([0, 0], [1, 1])
    found = common_odds_ratio(lost, 0)
    assert (found.low[1], found.high[1]) == (0, math.inf)


NOT_ASKED: list[tuple[Any, str]] = [
    (lambda buy: practice.by_quantile(buy, [0.1, 0.2, 0.9], "kind", 1.0, 1, {}, labels=False), "at least 2, not 1"),
    (lambda buy: practice.by_quantile(buy, [0.5, 0.5, 0.5], "kind", 1.0, 4, {}, labels=False), "no threshold"),
    (lambda buy: practice.by_quantile(buy, [0.5, math.nan, 1], "kind", 1.0, 4, {}, labels=False), "none missing"),
    (lambda buy: practice.by_quantile(buy, [[0.5, 1, 1]], "kind", 1.0, 4, {}, labels=False), "of one model"),
    (lambda buy: practice.by_segment(buy, [0.5, 1, 0], ["a", "b", "a"], "kind", 1.0, {}), "must be 0 or 1"),
    (lambda buy: practice.by_segment(buy, [1, 1, 0], ["a", "b"], "kind", 1.0, {}), "not one for each of 3"),
    (lambda buy: practice.by_segment(buy, [1, 1, 0], ["a", "b", None], "kind", 1.0, {}), "some people have none"),
    (
        lambda buy: practice.by_segment(
            buy, pd.Series([1, 1, 0], [7, 8, 9]), pd.Series(["a", "b", "a"], [7, 9, 8]), "kind", 1.0, {}
        ),
        "in another order",
    ),
    (
        lambda buy: practice.standardised_differences(buy, [1, 2, 3], "kind", 1.0, (4, 4), None, {}),
        "the lower one first",
    ),
    (
        lambda buy: practice.standardised_differences(buy, [1, 2, 3], "kind", 1.0, (4, 5), None, {}),
        "all 3 are alike, 3 of them clipped to the bounds 4 to 5",
    ),
]


def test_what_cannot_be_asked_is_one_line_and_nothing_is_sent() -> None:
    buy = Bought(people_of([0, 1, 2], [0, 1, 1]))
    for ask, line in NOT_ASKED:
        with pytest.raises(ValueError, match=line):
            ask(buy)
        assert not buy.asked


def test_what_was_not_asked_for_is_said() -> None:
    people = people_of([0, 1, 2, 0], [0, 1, 1, 1])
    scores = asked(people, [0.1, 0.2, 0.3, 0.4], ("mean_score",))
    with pytest.raises(ValueError, match="needs selection_rate or true_positive_rate"):
        scores.practice()
    bands = practice.by_quantile(Bought(people), [0.1, 0.2, 0.3, 0.4], "kind", 1.0, 2, {}, labels=False)
    with pytest.raises(ValueError, match="needs true_positive_rate, which was not asked for"):
        bands.calibration()
    with pytest.raises(ValueError, match="reference: no group has these values of kind"):
        bands.counts.practice(reference="nobody")
    assert "true_positive_rate_odds_ratio" not in bands.counts.practice()[0]


def filled(cells: NDArray[np.int64], chosen: NDArray[np.int64], known: int) -> list[list[float]]:
    """Give every group's impact ratio for every way in which the unknown, cell `known`, may belong to a group."""
    unknown = np.flatnonzero(cells == known)
    ratios = []
    for fill in product(range(known), repeat=len(unknown)):
        cells[unknown] = fill
        rates = np.array([chosen[cells == group].mean() for group in range(known)])
        if rates.max() > 0:
            ratios.append((rates / rates.max()).tolist())
    return ratios


@pytest.mark.few(1)
@pytest.mark.parametrize("known", [2, 3])
def test_ratios_are_bounded_by_those_of_every_way_to_fill_in_the_unknown(known: int) -> None:
    """The least is reached; the most is with two groups, and never exceeded."""
    rng, looked_at = np.random.default_rng(known), 0
    while looked_at < 50:
        cells = np.append(np.arange(known), rng.integers(0, known + 1, 5))
        chosen = rng.integers(0, 2, len(cells))
        attribute = Attribute("kind", (*map(str, range(known)), "unknown"))
        people = Grouped((attribute,), cells[np.newaxis].astype(np.uint8), np.zeros(len(cells), np.uint8))
        told = asked(people, chosen, ("selection_rate",)).however_filled()
        ratios = filled(cells, chosen, known)
        if not ratios:
            continue
        looked_at += 1
        for group, record in enumerate(told[:known]):
            least, most = (end(each[group] for each in ratios) for end in (min, max))
            close(record["selection_rate_ratio_least"], least)
            close(record["selection_rate_ratio_low"], least)
            found = record["selection_rate_ratio_most"]
            assert found == pytest.approx(most) if known == 2 else found >= most - 1e-12
        assert math.isnan(told[known]["selection_rate_ratio_least"])


def test_whoever_is_known_in_part_may_be_of_the_groups_that_fit() -> None:
    attributes = Attribute("race", ("a", "b", "unknown")), Attribute("sex", ("f", "m"))
    # Of women of no known race two are chosen; men are all known.
    codes = np.array([[0, 0, 1, 1, 2, 2, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]], np.uint8)
    chosen = np.array([1, 0, 1, 0, 1, 1, 1, 0, 1, 0])
    people = Grouped(attributes, codes, np.zeros(10, np.uint8))
    told = asked(people, chosen, ("selection_rate",), by=("race", "sex")).however_filled()
    found = {(each["race"], each["sex"]): each["selection_rate_ratio_least"] for each in told}
    close([found["a", "f"], found["a", "m"]], [0.5 / 0.75, 0.5 / 0.75])  # the other women may have three of four chosen
    by_sex = {each["sex"]: each for each in asked(people, chosen, ("selection_rate",), by=("sex",)).however_filled()}
    close(by_sex["m"]["selection_rate_ratio_least"], 0.5 / (4 / 6))  # nobody's sex is unknown


@pytest.mark.few(1)
@pytest.mark.parametrize("worlds", [30, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_bounds_hold_whoever_the_unknown_are(epsilon: float, worlds: int) -> None:
    """Against the worst fills: all who may make the first group's ratio smallest, and largest."""
    rng, missed = np.random.default_rng(round(10 * epsilon)), 0
    hits, others = np.array([20, 150, 30]), np.array([80, 150, 20])
    cells = np.repeat([0, 0, 1, 1, 2, 2], np.column_stack([hits, others]).ravel())
    chosen = np.repeat([1, 0, 1, 0, 1, 0], np.column_stack([hits, others]).ravel())
    people = Grouped(
        (Attribute("kind", ("0", "1", "unknown")),), cells[np.newaxis].astype(np.uint8), np.zeros(len(cells), np.uint8)
    )
    smallest, largest = (20 / (100 + 20)) / (180 / 330), (50 / 130) / (150 / 320)
    for _ in range(worlds):
        (record, *_) = asked(people, chosen, ("selection_rate",), epsilon, Seeded(rng)).however_filled()
        low, high = record["selection_rate_ratio_low"], record["selection_rate_ratio_high"]
        missed += not low <= smallest <= largest <= high
    assert missed <= scipy.stats.binom.isf(FALSE_ALARM, worlds, 0.05)
