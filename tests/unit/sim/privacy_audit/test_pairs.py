import numpy as np
import pytest

from fairwall.laws.metrics.metric import METRICS, find_metric
from fairwall.laws.metrics.sensitivity import global_sensitivity
from sim.privacy_audit.pairs import least_people, worst_pairs


def test_neighbours_differ_in_one_person():
    for metric in METRICS:
        for extra in [0, 9]:
            for pair in worst_pairs(metric, least_people(metric) + extra, 2, np.random.default_rng(0)):
                first, second = pair.first, pair.second
                assert np.count_nonzero(first.records.protected != second.records.protected) == 1
                assert np.array_equal(first.records.labels, second.records.labels)
                assert np.array_equal(first.predictions, second.predictions)
                assert pair.about


def test_the_worst_pair_moves_the_metric_by_all_it_can():
    for metric in ["sp", "abs_sp", "eo", "abs_eo", "fpr", "abs_fpr", "oad", "abs_oad", "ppv"]:
        for n in [12]:
            pairs = worst_pairs(metric, n, 1, np.random.default_rng(0))
            moved = max(abs(pair.second.gaps()[0] - pair.first.gaps()[0]) for pair in pairs)
            stratum = n if find_metric(metric).label is None else 3
            assert moved == pytest.approx(global_sensitivity(metric, stratum))
