import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.metrics import METRICS, GroupSums, gaps, stratum, sums_over
from fairwall.laws.sensitivity import global_sensitivity, local_sensitivity


def audit(
    metric: str, predictions: NDArray[np.float64], labels: NDArray[np.uint8], protected: NDArray[np.uint8]
) -> NDArray[np.float64]:
    inside = stratum(metric, labels)
    advantaged, disadvantaged = inside & (protected == 1), inside & (protected == 0)
    return gaps(
        metric,
        GroupSums(
            sum1=sums_over(advantaged, predictions),
            sum0=sums_over(disadvantaged, predictions),
            n1=int(advantaged.sum()),
            n0=int(disadvantaged.sum()),
        ),
    )


def test_values_by_hand() -> None:
    labels = np.array([1, 1, 1, 0, 0], dtype=np.uint8)
    protected = np.array([1, 0, 0, 1, 0], dtype=np.uint8)
    predictions = np.array([[1.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.5, 1.0, 0.5, 0.0]])
    assert audit("sp", predictions, labels, protected) == pytest.approx([1 / 2 - 1 / 3, 1 / 4 - 1 / 2])
    assert audit("abs_sp", predictions, labels, protected) == pytest.approx([1 / 6, 1 / 4])
    assert audit("eo", predictions, labels, protected) == pytest.approx([1 - 1 / 2, 0 - 3 / 4])
    assert audit("abs_eo", predictions, labels, protected) == pytest.approx([1 / 2, 3 / 4])


def test_arithmetic_is_two_divisions_and_a_subtraction_bit_for_bit() -> None:
    rng = np.random.default_rng(5)
    sum1, sum0 = 71 * rng.random(1000), 29 * rng.random(1000)
    gap = gaps("sp", GroupSums(sum1, sum0, n1=71, n0=29))
    assert gap.tolist() == [s1 / 71 - s0 / 29 for s1, s0 in zip(sum1.tolist(), sum0.tolist(), strict=True)]
    assert gaps("abs_sp", GroupSums(sum1, sum0, n1=71, n0=29)).tolist() == np.abs(gap).tolist()


def test_swapping_the_groups_turns_the_sign() -> None:
    rng = np.random.default_rng(6)
    predictions, labels = rng.random((4, 30)), np.ones(30, dtype=np.uint8)
    protected = (np.arange(30) < 7).astype(np.uint8)
    swapped = audit("eo", predictions, labels, 1 - protected)
    assert swapped.tolist() == (-audit("eo", predictions, labels, protected)).tolist()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n", [3, 4, 5])
def test_no_flip_moves_a_metric_by_more_than_its_sensitivity(metric: str, n: int) -> None:
    # Every Y, every A, every neighbour, every 0/1 prediction; scores are covered where the sensitivity is tested.
    predictions = np.array(list(itertools.product((0.0, 1.0), repeat=n)))
    reached = 0.0
    for labels, protected in itertools.product(itertools.product((0, 1), repeat=n), repeat=2):
        y, a = np.array(labels, dtype=np.uint8), np.array(protected, dtype=np.uint8)
        inside = stratum(metric, y)
        n1 = int(a[inside].sum())
        n0 = int(inside.sum()) - n1
        if not (n0 and n1):
            continue
        here = audit(metric, predictions, y, a)
        for person in range(n):
            other = a.copy()
            other[person] ^= 1
            if not 0 < other[inside].sum() < n0 + n1:
                continue
            change = float(np.abs(audit(metric, predictions, y, other) - here).max())
            assert change <= (local_sensitivity(metric, n0, n1) if inside[person] else 0.0) + 1e-12
            reached = max(reached, change)
    if not METRICS[metric].absolute:
        strata = range(3, n + 1) if METRICS[metric].label is not None else [n]
        assert reached == pytest.approx(max(global_sensitivity(metric, size) for size in strata))


@pytest.mark.parametrize(("n1", "n0"), [(0, 3), (3, 0)])
def test_an_empty_group_is_refused_and_not_named(n1: int, n0: int) -> None:
    with pytest.raises(ValueError, match=r"^a group of the metric's stratum is empty$"):
        gaps("sp", GroupSums(np.zeros(2), np.zeros(2), n1, n0))


@pytest.mark.parametrize(("shape1", "shape0"), [((2,), (3,)), ((2, 1), (2, 1))])
def test_sums_must_be_vectors_of_one_length(shape1: tuple[int, ...], shape0: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="vectors of one length"):
        gaps("sp", GroupSums(np.zeros(shape1), np.zeros(shape0), 2, 2))
