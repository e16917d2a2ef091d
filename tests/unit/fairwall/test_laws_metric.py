import numpy as np
import pytest

from fairwall.laws.metric import METRICS, find_metric, stratum, sums_over


def test_metrics_are_keyed_by_their_names() -> None:
    assert {key: metric.name for key, metric in METRICS.items()} == {key: key for key in METRICS}


def test_unknown_metric_is_named_and_the_known_ones_listed() -> None:
    with pytest.raises(ValueError, match="unknown metric 'eq', choose one of: sp, abs_sp, eo, abs_eo"):
        find_metric("eq")


def test_stratum_is_everybody_or_those_with_the_label() -> None:
    labels = np.array([1, 0, 1, 0], dtype=np.uint8)
    everybody = stratum("sp", labels)
    assert everybody.dtype == np.bool_
    assert everybody.tolist() == [True] * 4
    assert stratum("abs_eo", labels).tolist() == [True, False, True, False]


@pytest.mark.parametrize("order", ["C", "F"])
def test_sums_do_not_depend_on_how_the_predictions_lie_in_memory(order: str) -> None:
    rng = np.random.default_rng(1)
    predictions = rng.random((7, 1001))
    members = rng.random(1001) < 0.4
    # What the protocol promises, spelt out: each model by itself.
    one_by_one = [np.add.reduce(row[members].copy()) for row in predictions]
    sums = sums_over(members, np.asarray(predictions, order=order))  # type: ignore[call-overload]
    assert sums.dtype == np.float64
    assert sums.tolist() == one_by_one
    # The obvious expression adds in another order. If this fails, numpy has changed and the docstring is out of date.
    assert np.add.reduce(predictions[:, members], axis=1).tolist() != one_by_one
