"""Utility against scikit-learn, and group figures against the metrics that compliance answers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from compliance.records.metrics import MetricSums, gaps
from fairwall.laws.metrics.utility import UTILITIES
from fairwall.laws.metrics.values import part_values, sums_over
from tests.support.fairness_figures import fairness_figures, group_rates

CLOSE = 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_utilities_are_those_of_scikit_learn(seed: int) -> None:
    from sklearn.metrics import accuracy_score, f1_score, recall_score, roc_auc_score

    draws = np.random.default_rng(seed)
    n = int(draws.integers(2, 200))
    labels = draws.integers(0, 2, n, dtype=np.uint8)
    labels[:2] = (0, 1)
    decisions = draws.integers(0, 2, n, dtype=np.uint8)
    scores = draws.normal(size=n).round(int(draws.integers(0, 3)))
    expected = {
        "acc": accuracy_score(labels, decisions),
        "f1": f1_score(labels, decisions),
        "recall": recall_score(labels, decisions),
        "auc": roc_auc_score(labels, scores),
        "auc_hard": roc_auc_score(labels, decisions),
    }
    found = {key: utility.measure(labels, decisions, scores) for key, utility in UTILITIES.items()}
    assert found == pytest.approx(expected, abs=CLOSE)


def test_utilities_that_divide_by_zero_are_no_number() -> None:
    ones, zeros = np.ones(3, np.uint8), np.zeros(3, np.uint8)
    found = {key: utility.measure(zeros, zeros, ones.astype(np.float64)) for key, utility in UTILITIES.items()}
    assert found.pop("acc") == 1
    assert all(np.isnan(value) for value in found.values())


def test_figures_of_every_world_of_three_are_the_metrics_that_compliance_answers() -> None:
    group = np.array([0, 1, 1], np.uint8)
    for bits in product((0, 1), repeat=6):
        decisions, labels = np.array(bits, np.uint8).reshape(2, 3)
        figures = fairness_figures(decisions, labels, group)
        for metric, name in (("sp", "SPD"), ("eo", "EOD"), ("oad", "OAD"), ("di", "DI")):
            ((members, value),) = part_values(metric, decisions[None].astype(np.float64), labels)
            of = [members & (group == which) for which in (1, 0)]
            if not all(side.any() for side in of):
                assert np.isnan(figures[name])
                continue
            sums = MetricSums(*(sums_over(side, value) for side in of), *(int(side.sum()) for side in of))
            assert figures[name] == pytest.approx(gaps(metric, [sums])[0], abs=0, nan_ok=True)


def test_a_metric_of_two_parts_has_no_one_rate() -> None:
    ones = np.ones(2, np.uint8)
    with pytest.raises(ValueError, match="eodds_max"):
        group_rates("eodds_max", ones, ones, np.array([0, 1], np.uint8))
