import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.records.metrics import METRICS, MetricSums, gaps
from fairwall.laws.metrics.sensitivity import LabelGroupCounts, sensitivities
from fairwall.laws.metrics.values import part_values, sums_over

Labels = NDArray[np.uint8]


def audit(metric: str, predictions: NDArray[np.float64], labels: Labels, protected: Labels) -> NDArray[np.float64]:
    parts = []
    for inside, values in part_values(metric, predictions, labels):
        advantaged, disadvantaged = inside & (protected == 1), inside & (protected == 0)
        parts.append(
            MetricSums(
                sum1=sums_over(advantaged, values),
                sum0=sums_over(disadvantaged, values),
                n1=int(advantaged.sum()),
                n0=int(disadvantaged.sum()),
            )
        )
    return gaps(metric, parts)


def test_values_by_hand() -> None:
    labels = np.array([1, 1, 1, 0, 0], dtype=np.uint8)
    protected = np.array([1, 0, 0, 1, 0], dtype=np.uint8)
    predictions = np.array([[1.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.5, 1.0, 0.5, 0.0]])
    by_hand = {
        "sp": [1 / 2 - 1 / 3, 1 / 4 - 1 / 2],
        "abs_sp": [1 / 6, 1 / 4],
        "eo": [1 - 1 / 2, 0 - 3 / 4],
        "abs_eo": [1 / 2, 3 / 4],
        "fpr": [0, 1 / 2],
        "abs_fpr": [0, 1 / 2],
        "eodds_max": [1 / 2, 3 / 4],
        "eodds_sum": [1 / 2, 5 / 4],
        "oad": [1 - 2 / 3, (0 + 0.5) / 2 - (0.5 + 1 + 1) / 3],
        "abs_oad": [1 / 3, 7 / 12],
        "di": [(1 / 3) / (1 / 2), (1 / 2) / (1 / 4)],
    }
    for metric, values in by_hand.items():
        assert audit(metric, predictions, labels, protected) == pytest.approx(values), metric
    assert {*by_hand, "ppv"} == set(METRICS)
    binary = np.array([[1.0, 1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0, 1.0]])
    assert audit("ppv", binary, labels, protected) == pytest.approx([1 / 2 - 1 / 2, 1 - 1 / 2])


def test_arithmetic_is_two_divisions_and_a_subtraction_bit_for_bit() -> None:
    rng = np.random.default_rng(5)
    sum1, sum0 = 71 * rng.random(1000), 29 * rng.random(1000)
    gap = gaps("sp", [MetricSums(sum1, sum0, n1=71, n0=29)])
    assert gap.tolist() == [s1 / 71 - s0 / 29 for s1, s0 in zip(sum1.tolist(), sum0.tolist(), strict=True)]
    assert gaps("abs_sp", [MetricSums(sum1, sum0, n1=71, n0=29)]).tolist() == np.abs(gap).tolist()


@pytest.mark.check
@pytest.mark.parametrize("seed", range(6))
def test_fairlearn_says_the_same(seed: int) -> None:
    fairlearn = pytest.importorskip("fairlearn.metrics")
    from sklearn.metrics import accuracy_score, precision_score

    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 300))
    labels, protected = (rng.permutation(np.arange(n) < rng.integers(8, n - 8)).astype(np.uint8) for _ in range(2))
    # A pair of people in each of the four cells, one accepted and one not: Fairlearn defines all its rates then.
    labels[:8], protected[:8] = np.repeat([0, 1], 4), np.tile([0, 0, 1, 1], 2)
    predictions = (rng.random(n) < 0.2 + 0.3 * labels + 0.2 * protected).astype(float)
    predictions[:8] = np.tile([0, 1], 4)

    def ours(metric: str) -> float:
        return float(audit(metric, predictions[None], labels, protected)[0])

    def theirs(metric: Callable[..., Any], **options: Any) -> float:
        return float(metric(labels, predictions, sensitive_features=protected, **options))

    def signed(metric: Callable[..., Any]) -> float:
        by_group = fairlearn.MetricFrame(
            metrics=metric, y_true=labels, y_pred=predictions, sensitive_features=protected
        ).by_group
        return float(by_group[1] - by_group[0])

    exactly = functools.partial(pytest.approx, abs=1e-12)
    assert ours("sp") == exactly(signed(fairlearn.selection_rate))
    assert ours("abs_sp") == exactly(theirs(fairlearn.demographic_parity_difference))
    assert ours("eo") == exactly(signed(fairlearn.true_positive_rate))
    assert ours("abs_eo") == exactly(theirs(fairlearn.equal_opportunity_difference))
    assert ours("fpr") == exactly(signed(fairlearn.false_positive_rate))
    assert ours("abs_fpr") == exactly(theirs(fairlearn.false_positive_rate_difference))
    assert ours("eodds_max") == exactly(theirs(fairlearn.equalized_odds_difference))
    assert ours("eodds_sum") == exactly(2 * theirs(fairlearn.equalized_odds_difference, agg="mean"))
    assert ours("ppv") == exactly(signed(precision_score))
    assert ours("oad") == exactly(signed(accuracy_score))
    assert ours("abs_oad") == exactly(theirs(fairlearn.accuracy_score_difference))
    assert min(ours("di"), 1 / ours("di")) == exactly(theirs(fairlearn.demographic_parity_ratio))


def test_a_precision_that_is_not_defined_leaves_a_gap_of_zero() -> None:
    labels, protected = np.array([1, 0, 1], dtype=np.uint8), np.array([1, 0, 0], dtype=np.uint8)
    predictions = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    assert audit("ppv", predictions, labels, protected).tolist() == [0.0, 0.0, 0.0, 1.0]


def test_a_ratio_by_zero_is_not_hidden() -> None:
    labels, protected = np.zeros(3, dtype=np.uint8), np.array([1, 0, 0], dtype=np.uint8)
    ratio = audit("di", np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]), labels, protected)
    assert ratio[0] == np.inf
    assert np.isnan(ratio[1])


def test_every_metric_comes_from_estimates_of_the_sums_too() -> None:
    # What a mechanism that adds noise to counts has: sums and sizes that need not be whole.
    part = MetricSums(np.array([3.25]), np.array([2.5]), n1=6.5, n0=10.25)
    for metric, found in METRICS.items():
        assert np.isfinite(gaps(metric, [part] * len(found.parts))).all()
    assert gaps("sp", [part]) == pytest.approx([3.25 / 6.5 - 2.5 / 10.25])


def test_swapping_the_groups_turns_the_sign() -> None:
    rng = np.random.default_rng(6)
    predictions, labels = rng.random((4, 30)), np.ones(30, dtype=np.uint8)
    protected = (np.arange(30) < 7).astype(np.uint8)
    swapped = audit("eo", predictions, labels, 1 - protected)
    assert swapped.tolist() == (-audit("eo", predictions, labels, protected)).tolist()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("metric", "n"), [("sp", 3), ("abs_eo", 4), ("abs_sp", 4), ("eodds_sum", 4), ("ppv", 4), ("oad", 4)]
)
def test_no_flip_moves_a_metric_by_more_than_its_sensitivity(metric: str, n: int) -> None:
    # Every Y, every A, every neighbour, every 0/1 prediction; scores are covered where the sensitivity is tested.
    predictions = np.array(list(itertools.product((0.0, 1.0), repeat=n)))
    reached, overall = 0.0, 0.0
    for labels, protected in itertools.product(itertools.product((0, 1), repeat=n), repeat=2):
        y, a = np.array(labels, dtype=np.uint8), np.array(protected, dtype=np.uint8)
        cells = [int(((y == label) & (a == group)).sum()) for label in (0, 1) for group in (0, 1)]
        try:
            here = audit(metric, predictions, y, a)
        except ValueError:  # an empty group
            continue
        law = sensitivities(metric, LabelGroupCounts(*cells), scores=False)
        overall = max(overall, law.overall)
        for person in range(n):
            other = a.copy()
            other[person] ^= 1
            try:
                change = float(np.abs(audit(metric, predictions, y, other) - here).max())
            except ValueError:
                continue
            # Predictive parity goes to 0 where a precision is undefined; such neighbours the law leaves out.
            assert change <= (1.0 if metric == "ppv" else law.local) + 1e-12
            reached = max(reached, change)
    assert reached == pytest.approx(overall)


def test_an_empty_group_is_refused_and_not_named() -> None:
    for n1, n0 in ((0, 3), (3, 0)):
        with pytest.raises(ValueError, match=r"^a group of the metric's stratum is empty$"):
            gaps("sp", [MetricSums(np.zeros(2), np.zeros(2), n1, n0)])


def test_sums_must_be_vectors_of_one_length() -> None:
    for shape1, shape0 in (((2,), (3,)), ((2, 1), (2, 1))):
        with pytest.raises(ValueError, match="vectors of one length"):
            gaps("sp", [MetricSums(np.zeros(shape1), np.zeros(shape0), 2, 2)])


def test_a_metric_gets_as_many_parts_as_it_has() -> None:
    part = MetricSums(np.zeros(2), np.zeros(2), 2, 2)
    with pytest.raises(ValueError, match="metric eodds_max has 2 parts, not 1"):
        gaps("eodds_max", [part])
