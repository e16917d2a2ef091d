"""What is counted from draws of many candidates' gaps, against loops over the draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwall.laws.studies.alternatives import Candidates, SearchPosterior


@st.composite
def searches(draw: st.DrawFn) -> SearchPosterior:
    models = draw(st.integers(1, 6))
    # Few different numbers, so that some are the same.
    utilities = draw(st.lists(st.integers(0, 3), min_size=models, max_size=models))
    gaps = draw(st.lists(st.lists(st.integers(-4, 4), min_size=models, max_size=models), min_size=1, max_size=7))
    told = Candidates(
        tuple(f"m{i}" for i in range(models)),
        tuple(map(float, utilities)),
        draw(st.integers(0, models - 1)),
        float(draw(st.sampled_from(utilities))),
    )
    return SearchPosterior(draw(st.sampled_from(("sp", "di"))), told, np.array(gaps) / 4)


@settings(max_examples=40)
@given(searches())
def test_all_is_as_counted_by_hand(found: SearchPosterior) -> None:
    equal = 1.0 if found.metric == "di" else 0.0
    told, count = found.candidates, len(found.draws)
    rows = [[abs(gap - equal) for gap in row] for row in found.draws.tolist()]
    expected = [sum(row[i] for row in rows) / count for i in range(len(told.names))]
    enough = [i for i, utility in enumerate(told.utilities) if utility >= told.at_least]
    assert sorted(told.enough().tolist()) == enough
    least = found.least()
    assert least in enough
    assert expected[least] == pytest.approx(min(expected[i] for i in enough))
    for than in range(len(told.names)):
        for i, share in enumerate(found.better(than)):
            less = sum(row[i] < row[than] for row in rows) + sum(row[i] == row[than] for row in rows) / 2
            assert share == pytest.approx(less / count)
    assert found.better(told.baseline)[told.baseline] == 0.5
    alike = {i for i in enough if i != least and found.better(least)[i] >= 0.05}
    assert set(found.alike()) == alike
    front = set(found.front)
    for i in range(len(told.names)):
        beaten = [
            j
            for j in range(len(told.names))
            if j != i and told.utilities[j] >= told.utilities[i] and expected[j] < expected[i] - 1e-12
        ]
        assert not (i in front and any(told.utilities[j] > told.utilities[i] for j in beaten))
    low, high = found.band(told.utilities)
    for k, utility in enumerate(told.utilities):
        least_of = [min(row[i] for i, other in enumerate(told.utilities) if other >= utility) for row in rows]
        assert (low[k], high[k]) == pytest.approx(tuple(np.quantile(least_of, [0.025, 0.975])))
    records = found.records()
    assert [one["model"] for one in records] == list(told.names)
    assert {i for i, one in enumerate(records) if one["alike"]} == {least, *alike}
    assert {i for i, one in enumerate(records) if one["enough"]} == set(enough)
    assert all(one["low"] <= one["high"] for one in records)


def test_what_is_not_known_is_said_to_be() -> None:
    found = SearchPosterior("abs_sp", Candidates(("a", "b"), (1.0, 2.0), 0, 1.0), np.full((4, 2), np.nan))
    with pytest.raises(ValueError, match="nothing is known"):
        found.least()
    records = found.records()
    assert all(np.isnan(one["better"]) and not one["alike"] and not one["front"] for one in records)
    with pytest.raises(ValueError, match="no candidate has a utility of 3: the most is 2"):
        found.candidates.enough(3.0)
