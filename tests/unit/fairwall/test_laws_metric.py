import re
from pathlib import Path

import numpy as np
import pytest

from fairwall.laws.metrics import values
from fairwall.laws.metrics.metric import METRICS, Metric, find_metric, stratum
from fairwall.laws.metrics.values import part_values, sums_over
from fairwall.wire.metrics import name_of, number_of

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_metrics_are_keyed_by_their_names() -> None:
    assert {key: metric.name for key, metric in METRICS.items()} == {key: key for key in METRICS}


def test_every_metric_has_a_title_of_its_own_for_reports() -> None:
    titles = [metric.title for metric in METRICS.values()]
    assert all(titles)
    assert len(set(titles)) == len(titles)
    with pytest.raises(TypeError, match="title"):
        Metric("new", parts=METRICS["sp"].parts)  # type: ignore[call-arg]


def test_unknown_metric_is_named_and_the_known_ones_listed() -> None:
    with pytest.raises(ValueError, match="unknown metric 'eq', choose one of: sp, abs_sp, eo, abs_eo"):
        find_metric("eq")


def test_other_names_stand_for_keys_as_the_page_has_them() -> None:
    others = {other: key for key, metric in METRICS.items() for other in metric.also}
    assert len(others) == sum(len(metric.also) for metric in METRICS.values())
    assert not others.keys() & METRICS.keys()
    assert others["demographic_parity"] == others["statistical_parity"] == "sp"
    assert {other: find_metric(other).name for other in others} == others
    section = PAGE.read_text().partition("## Other names")[2].partition("##")[0]
    shown = {
        other: key for key, names in re.findall(r"\| `(\w+)` \| (.*) \|", section) for other in names.split("`")[1::2]
    }
    assert shown == others


def test_a_name_that_is_nearly_one_is_answered_with_that_one() -> None:
    for spelled, meant in (("demografic_parity", "demographic_parity"), ("eodds_mx", "eodds_max"), ("SP", "sp")):
        with pytest.raises(ValueError, match=f"; did you mean {meant}\\?$"):
            find_metric(spelled)


def test_stratum_is_everybody_or_those_with_the_label() -> None:
    labels = np.array([1, 0, 1, 0], dtype=np.uint8)
    everybody = stratum("sp", labels)
    assert everybody.dtype == np.bool_
    assert everybody.tolist() == [True] * 4
    assert stratum("abs_eo", labels).tolist() == [True, False, True, False]
    assert stratum("fpr", labels).tolist() == [False, True, False, True]
    assert stratum("eodds_max", labels).all()  # both strata together
    assert stratum("ppv", labels).all()


def test_every_metric_has_a_number_on_the_wire() -> None:
    numbers = [number_of(key) for key in METRICS]
    assert numbers == list(range(1, 13))
    assert [name_of(number) for number in numbers] == list(METRICS)


def test_what_each_metric_needs() -> None:
    unlabelled = {"sp", "abs_sp", "di"}
    assert {key for key, metric in METRICS.items() if not metric.labelled} == unlabelled
    assert {key for key, metric in METRICS.items() if metric.binary} == {"ppv"}
    assert {key for key, metric in METRICS.items() if not metric.bounded} == {"di"}
    assert {key for key, metric in METRICS.items() if len(metric.strata) > 1} == {"eodds_max", "eodds_sum"}
    assert {key for key, metric in METRICS.items() if not metric.of_means} == {"eodds_max", "eodds_sum", "ppv", "di"}
    assert [METRICS[key].label for key in ("sp", "eo", "abs_fpr", "eodds_sum")] == [None, 1, 0, None]


def test_a_metric_that_needs_labels_says_so() -> None:
    predictions = np.zeros((1, 3))
    for key, metric in METRICS.items():
        if metric.labelled:
            with pytest.raises(ValueError, match=f"^metric {key} needs labels$"):
                next(part_values(key, predictions))
        else:
            ((members, values),) = part_values(key, predictions)
            assert members.tolist() == [True] * 3
            assert np.shares_memory(values, predictions)


@pytest.mark.parametrize("wrong", [0.5, np.nan])
def test_a_metric_that_needs_binary_predictions_says_so(wrong: float) -> None:
    labels = np.ones(3, dtype=np.uint8)
    with pytest.raises(ValueError, match=r"^metric ppv needs binary predictions, each 0 or 1$"):
        next(part_values("ppv", np.array([[0.0, 1.0, wrong]]), labels))
    assert len(list(part_values("ppv", np.array([[0.0, 1.0, 1.0]]), labels))) == 2


def test_what_is_added_up_about_a_person() -> None:
    labels = np.array([1, 0, 1, 0], dtype=np.uint8)
    predictions = np.array([[1.0, 1.0, 0.0, 0.0]])
    ((_, correct),) = part_values("oad", predictions, labels)
    assert correct.tolist() == [[1.0, 0.0, 0.0, 1.0]]
    (_, hits), (_, positives) = part_values("ppv", predictions, labels)
    assert hits.tolist() == [[1.0, 0.0, 0.0, 0.0]]
    assert np.shares_memory(positives, predictions)
    qualified, unqualified = (members.tolist() for members, _ in part_values("eodds_max", predictions, labels))
    assert (qualified, unqualified) == ([True, False, True, False], [False, True, False, True])
    ((_, scored),) = part_values("oad", np.array([[0.25, 0.25, 1e-20, 1e-20]]), labels)
    assert scored.tolist() == [[0.25, 0.75, 1e-20, 1.0]]


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


def test_sums_do_not_depend_on_how_many_add_up() -> None:
    for shape in ((1, 1 << 22), (3, 3 << 19), (1 << 14, 260)):
        rng = np.random.default_rng(2)
        predictions = rng.random(shape)
        members = rng.random(shape[1]) < 0.4
        assert predictions.size >= values._LARGE
        expected = [np.add.reduce(row[members].copy()) for row in predictions]
        assert sums_over(members, predictions).tolist() == expected
        assert sums_over(np.zeros_like(members), predictions).tolist() == [0.0] * shape[0]
