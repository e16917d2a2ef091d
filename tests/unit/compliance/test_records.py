"""The protected attributes: counted and added up by stratum, never shown, refused where nothing could be audited."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compliance.records.metrics import METRICS
from compliance.records.people import STRATUM_MIN, Records, RecordsError

LABELS = (1, 1, 1, 0, 0)
PROTECTED = (1, 0, 0, 1, 0)


EVERYBODY_OR_QUALIFIED = tuple(
    key for key, metric in METRICS.items() if 0 not in metric.strata
)  # two people have label 0


def records(
    labels: Any = LABELS, protected: Any = PROTECTED, metrics: tuple[str, ...] = EVERYBODY_OR_QUALIFIED
) -> Records:
    return Records(np.array(labels, np.uint8), np.array(protected, np.uint8), metrics)


def test_each_group_of_a_metric_s_stratum_is_counted() -> None:
    for metric, counts in {"sp": (3, 2), "eo": (2, 1), "abs_eo": (2, 1), "di": (3, 2), "ppv": (3, 2)}.items():
        assert records().counts(metric) == counts
        assert records().people == 5


def test_predictions_are_added_up_by_group_within_the_stratum() -> None:
    predictions = np.array([[1.0, 0.5, 0.25, 0.125, 0.0625], [0.0, 1.0, 1.0, 0.0, 1.0]])
    (everybody,), (qualified,) = (records().group_sums(metric, predictions) for metric in ("sp", "eo"))
    assert (everybody.sum1.tolist(), everybody.sum0.tolist()) == ([1.125, 0.0], [0.8125, 3.0])
    assert (everybody.n1, everybody.n0) == (2, 3)
    assert (qualified.sum1.tolist(), qualified.sum0.tolist()) == ([1.0, 0.0], [0.75, 2.0])
    assert (qualified.n1, qualified.n0) == (1, 2)


def test_a_metric_gets_its_parts_in_their_order() -> None:
    held = records((1, 1, 1, 0, 0, 0), (1, 0, 0, 1, 1, 0), ("ppv", "eodds_max", "oad"))
    predictions = np.array([[1.0, 1.0, 0.0, 1.0, 0.0, 1.0]])
    assert held.counts("eodds_max") == (3, 3)
    qualified, unqualified = held.group_sums("eodds_max", predictions)
    assert (qualified.n1, qualified.n0, unqualified.n1, unqualified.n0) == (1, 2, 2, 1)
    assert [qualified.sum1, qualified.sum0, unqualified.sum1, unqualified.sum0] == [[1.0], [1.0], [1.0], [1.0]]
    hits, positives = held.group_sums("ppv", predictions)
    assert [hits.sum1, hits.sum0, positives.sum1, positives.sum0] == [[1.0], [1.0], [2.0], [2.0]]
    (correct,) = held.group_sums("oad", predictions)
    assert [correct.sum1, correct.sum0] == [[2.0], [1.0]]


def test_scores_are_refused_where_a_metric_needs_binary_predictions() -> None:
    with pytest.raises(ValueError, match="metric ppv needs binary predictions"):
        records().group_sums("ppv", np.full((1, 5), 0.5))


def test_equalized_odds_needs_both_groups_in_both_strata() -> None:
    for metric in ("eodds_max", "eodds_sum"):
        with pytest.raises(RecordsError, match=f"metric {metric}: a group is too small"):
            records((1, 1, 1, 0, 0, 0), (1, 0, 0, 1, 1, 1), (metric,))
        with pytest.raises(RecordsError, match=f"metric {metric}: a group is too small"):
            records((1, 1, 1, 0, 0), (1, 0, 0, 1, 0), (metric,))


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown metric 'x'"):
        records(metrics=("x",))


def test_columns_that_do_not_fit_together_are_refused() -> None:
    for labels, protected in (((1, 1, 1), (0, 1)), ([[1, 1, 1]], [[0, 1, 1]]), ((), (0, 1, 1)), (1, 1)):
        with pytest.raises(RecordsError, match="one value a person"):
            records(labels, protected, ("sp",))


def test_a_value_that_is_neither_0_nor_1_is_refused() -> None:
    for labels, protected in (((1, 1, 2), (0, 1, 1)), ((1, 1, 1), (0, 1, 255))):
        with pytest.raises(RecordsError, match="neither 0 nor 1"):
            records(labels, protected, ("sp",))
    for value in (0.5, -1.0, np.nan):
        with pytest.raises(RecordsError, match="neither 0 nor 1"):
            Records(np.ones(3, np.uint8), np.array([0.0, 1.0, value]), ("sp",))  # type: ignore[arg-type]


def test_a_stratum_that_lacks_a_group_is_refused() -> None:
    for metric in METRICS:
        for group in (0, 1):
            with pytest.raises(RecordsError, match=f"metric {metric}: a group is too small"):
                records((1,) * 5 + (0,) * 5, (group,) * 10, (metric,))


def test_a_group_may_be_missing_where_no_allowed_metric_looks() -> None:
    labels, protected = (1, 1, 1, 0), (1, 1, 1, 0)
    assert records(labels, protected, ("sp",)).counts("sp") == (1, 3)
    with pytest.raises(RecordsError, match="metric eo"):
        records(labels, protected, ("sp", "eo"))


def test_a_stratum_in_which_nobody_could_be_protected_is_refused() -> None:
    assert STRATUM_MIN == 3
    with pytest.raises(RecordsError, match="too small"):
        records((1, 1), (0, 1), ("sp",))
    assert records((1, 1, 1), (0, 1, 1), ("sp",)).counts("sp") == (1, 2)
    with pytest.raises(RecordsError, match="metric eo"):
        records((1, 1, 0, 0), (0, 1, 0, 1), ("sp", "eo"))


def test_nobody_at_all_is_refused() -> None:
    with pytest.raises(RecordsError):
        records((), (), ("sp",))


def test_the_refusal_tells_the_same_whichever_group_is_missing_and_whoever_is_in_it() -> None:
    texts = set()
    for protected in ((0, 0, 0), (1, 1, 1)):
        with pytest.raises(RecordsError) as refused:
            records((1, 1, 1), protected, ("sp",))
        texts.add(str(refused.value))
    assert len(texts) == 1


def test_the_protected_attributes_are_not_shown() -> None:
    text = repr(records())
    assert "protected" not in text
    assert text == repr(records(protected=(0, 1, 1, 0, 1)))


def test_sums_do_not_change_the_records_nor_the_predictions() -> None:
    held = records()
    predictions = np.random.default_rng(8).random((2, 5))
    before = predictions.copy()
    (first,) = held.group_sums("eo", predictions)
    (second,) = held.group_sums("eo", predictions)
    assert (predictions == before).all()
    assert (first.sum1.tolist(), first.sum0.tolist()) == (second.sum1.tolist(), second.sum0.tolist())
    assert (held.protected.tolist(), held.labels.tolist()) == (list(PROTECTED), list(LABELS))


def test_a_fingerprint_knows_whose_attributes_these_are_whatever_they_are_called() -> None:
    labels, protected = np.array([1, 0, 1, 0, 1], np.uint8), np.array([1, 1, 0, 0, 1], np.uint8)

    def halves(labels: np.ndarray, protected: np.ndarray, key: bytes = b"key") -> tuple[bytes, bytes]:  # type: ignore[type-arg]
        both = Records(labels, protected, ()).fingerprint(key)
        return both[:16], both[16:]

    whose, what = halves(labels, protected)
    assert halves(labels, protected) == (whose, what)
    for other in (halves(1 - labels, protected), halves(labels, 1 - protected)):
        assert other[0] == whose
        assert other[1] != what
    assert halves(labels, protected[::-1].copy())[0] != whose
    assert not {whose, what} & set(halves(labels, protected, b"other"))
