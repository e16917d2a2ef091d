"""0 over 0 is one value with one spelling: NaN beside NaN in numbers, null in JSON, and "undefined" on pages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from compliance.noise.sampling import Seeded
from fairwall.client.by_group import ByGroup
from fairwall.tools.pytest_plugin import AuditFixture
from sim.attestation import law, rates
from tests.support.noise_sources import SILENT
from tests.unit.compliance.test_groups import asked, people_of

GROUPS, LABELS = [0, 1, 2] * 10, [0] * 30
RATIO = [f"selection_rate_ratio{end}" for end in ("", "_low", "_high")] + ["selection_rate_below_four_fifths"]


def counted(chosen: Any, measures: tuple[str, ...], epsilon: float, labels: Any = LABELS) -> ByGroup:
    noise = SILENT if math.isinf(epsilon) else Seeded(np.random.default_rng(1))
    return asked(people_of(GROUPS, labels), chosen, measures, epsilon, noise)


def told(record: dict[str, Any], names: list[str]) -> list[float]:
    return [record[name] for name in names]


@pytest.mark.parametrize("epsilon", [math.inf, 1.0])
def test_a6_ratios_where_nobody_is_selected_are_undefined_everywhere(epsilon: float) -> None:
    counts = counted([0] * 30, ("selection_rate", "true_positive_rate", "false_positive_rate"), epsilon, [0, 1] * 15)
    for record in counts.records():
        assert np.isnan(told(record, RATIO)).all()
        assert record["selection_rate_difference"] == 0
    for record in counts.however_filled():
        ends = [f"selection_rate_ratio_{end}" for end in ("least", "most", "low", "high")]
        assert np.isnan(told(record, ends)).all()
    for record in counts.practice():
        assert np.isnan(told(record, [f"selection_rate_odds_ratio{end}" for end in ("", "_low", "_high")])).all()
    _, _, pair = counts.worst_pair("selection_rate") or pytest.fail("two groups are there")
    assert np.isnan([pair.ratio, pair.ratio_low, pair.ratio_high, pair.below]).all()


@pytest.mark.parametrize("epsilon", [math.inf, 1.0])
def test_a6_rates_of_people_who_are_not_there_are_undefined_everywhere(epsilon: float) -> None:
    """Nobody has the label 1: what noise puts there is no rate of anybody."""
    counts = counted([0, 1] * 15, ("true_positive_rate",), epsilon)
    for record in counts.records():
        numbers = [value for name, value in record.items() if name.startswith("true_positive_rate")]
        assert np.isnan(numbers).all()


def test_pages_and_tools_say_undefined() -> None:
    counts = counted([0] * 30, ("selection_rate",), math.inf)
    rows = list(rates._rows(counts, counts.by))
    assert all(row["ratio"] is row["ratio_low"] is row["below_four_fifths"] is None for row in rows)
    assert rates.with_ends("ratio", rows, "impact ratio").texts == ["undefined"] * 3
    worst = list(rates._worst(counts, counts.by))
    assert rates._verdicts(worst, 1) == ["impact ratios are undefined: no group has a rate above 0."]
    assert law._side(worst[0], 0.8) == "undefined"
    audit = AuditFixture(None, None, 1.0)  # type: ignore[arg-type]
    ratio = audit._ratio(counts, "ours", None, "ratio_low")
    assert math.isnan(ratio)
    assert "is undefined" in repr(ratio)
