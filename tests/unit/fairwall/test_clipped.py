"""Nothing is clipped without a word, and what cannot be told apart has no standardised difference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairwall.client import practice
from tests.unit.compliance.test_group_practice import Bought
from tests.unit.compliance.test_groups import people_of

PRICES = [0, 20, 110, 40, 90, 60]


def differences(values: Any, bounds: tuple[float, float] | None = None) -> tuple[list[dict[str, Any]], Bought]:
    people = len(values)
    buy = Bought(people_of([0, 1] * (people // 2) + [0] * (people % 2), [0, 1] + [0] * (people - 2)))
    return practice.standardised_differences(buy, values, "kind", 1.0, bounds, None, {}), buy


def test_a7_prices_are_refused_where_scores_are_expected_with_the_range_that_was_seen() -> None:
    with pytest.raises(
        ValueError, match=r"5 of 6 lie outside \[0, 1\], all from 0 to 110: pass bounds=\(least, most\)"
    ):
        differences(PRICES)


def test_a7_what_is_clipped_to_bounds_that_were_given_is_counted() -> None:
    assert [record["clipped"] for record in differences(PRICES, (0, 80))[0]] == [2, 2, 2]
    whole, _ = differences(PRICES, (0, 110))
    assert [record["clipped"] for record in whole] == [0, 0, 0]
    assert whole[0]["mean"] == pytest.approx(np.mean(PRICES[::2]), rel=1e-4)


@pytest.mark.parametrize("people", range(4, 40, 5))
@pytest.mark.parametrize("value", [0.1, 0.3, 0.1 + 0.2, 1.0])
def test_a7_a_constant_is_undefined_whatever_the_number_of_people(people: int, value: float) -> None:
    values = [value, *[0.3 if value == 0.1 + 0.2 else value] * (people - 1)]
    with pytest.raises(ValueError, match="are alike; a difference over no deviation is undefined"):
        differences(values)
