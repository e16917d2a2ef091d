"""A metric's name of elsewhere is refused with what differs, and no other metric is suggested for its spelling."""

from __future__ import annotations

import pytest

from fairwall.client.by_group import MEASURES
from fairwall.errors import NotOneOf
from fairwall.laws.metrics.metric import find_metric, meaning

METRICS_MEANT = {
    "statistical_parity_difference": "sp is the advantaged group's rate less the disadvantaged one's: elsewhere",
    "demographic_parity_ratio": "di is the disadvantaged group's selection rate over the advantaged one's",
    "equalized_odds_ratio": "a ratio of rates: only di is one",
    "equal_opportunity_ratio": "is told by group: ask by_group for true_positive_rate",
    "average_odds_difference": "eodds_sum adds up both absolute gaps, and is no mean",
    "predictive_parity_difference": "ppv is the advantaged group's rate less",
    "false_negative_rate": "1 less the rate that eo compares: eo is its gap with the opposite sign",
    "true-negative-rate difference": "fpr is its gap with the opposite sign",
    "Selection Rate": "sp is the gap between two groups' rates, by_group tells each: selection_rate",
    "adverse_impact_ratio": "di is the disadvantaged group's",
}


@pytest.mark.parametrize("name", METRICS_MEANT)
def test_a8_a_metric_of_another_meaning_is_answered_with_what_differs(name: str) -> None:
    with pytest.raises(ValueError, match="unknown metric") as refused:
        find_metric(name)
    assert METRICS_MEANT[name] in str(refused.value)
    assert "did you mean" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("false_negative_rate", "; true_positive_rate is 1 less false_negative_rate"),
        ("error_rate", "; accuracy is 1 less error_rate"),
        ("recall", "; true_positive_rate is the rate of each group"),
        ("precision", "; ppv compares two groups by it: ask for that metric"),
        ("demographic_parity_ratio", "; selection_rate is the rate of each group and its frame has"),
        ("selecton_rate", "; did you mean selection_rate?"),
        ("fairness", ""),
    ],
)
def test_so_is_a_measure_by_group(name: str, said: str) -> None:
    found = meaning(name, MEASURES, by_group=True)
    assert found.startswith(said) if said else found == ""


def test_other_names_are_answered_with_their_nearest() -> None:
    assert NotOneOf(["laplace", "exact"]).hint("laplce") == "; did you mean laplace?"
