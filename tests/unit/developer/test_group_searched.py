"""A search for questions by group knows how a service counts, and finds what tells more than what was given."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.answers.groups import released
from compliance.noise.sampling import Seeded
from compliance.records.groups import Attribute, Grouped
from developer.climbing import climbed
from developer.groups import subsets as searched
from developer.groups.decode import decode, told
from developer.groups.subsets import SUBSETS, SearchBounds, SubsetPlan, found
from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.laws.privacy.amounts import part_of
from sim.games.groups.trial import leakage

PEOPLE, SHARES = 1000, (0.85, 0.1, 0.03, 0.01, 0.01)


def counted(
    decisions: NDArray[np.float64], cells: NDArray[np.intp], groups: int, epsilon: float, rng: np.random.Generator
) -> wire.GroupRelease:
    attribute = Attribute("group", tuple(map(str, range(groups))))
    people = Grouped((attribute,), cells[np.newaxis].astype(np.uint8), np.zeros(len(cells), np.uint8))
    header = wire.ByGroupHeader(by=("group",), measures=[wire.MEASURE_SELECTION_RATE], epsilon=epsilon)
    return released(people, header, decisions, Seeded(rng))


@pytest.mark.parametrize(
    ("subsets", "parts", "epsilon", "groups"),
    [
        ("blocks", 2, 1.0, 2),
        ("blocks", 3, 0.05, 5),
        ("blocks", 20, 20.0, 40),
        ("blocks", 21, 1.0, 2),
        ("blocks", 200, math.inf, 5),
        ("halves", 1, 1.0, 40),
        ("halves", 3, 0.05, 2),
        ("halves", 5, math.inf, 5),
        ("halves", 12, 20.0, 5),
        # Rows would have .9 of the tables' variance, which is not worth it.
        ("blocks", 4, 1.0, 2),
    ],
)
def test_how_a_service_counts_is_known(subsets: str, parts: int, epsilon: float, groups: int) -> None:
    rng = np.random.default_rng(2)
    decisions, cells = SUBSETS[subsets](rng, PEOPLE, parts), rng.integers(0, groups, PEOPLE)
    rows, _, variances = told([(decisions, counted(decisions, cells, groups, epsilon, rng))])
    foreseen, expected, noise = searched._answered(decisions, epsilon, groups, 400, rng)
    # In what order rows are told is of no account, nor whether one or its mirror image is.
    of_service, of_search = (np.unique(one * np.where(one[:, :1] < 0, -1, 1), axis=0) for one in (rows, foreseen))
    assert (of_service == of_search).all()
    assert variances == pytest.approx(expected)
    assert np.abs(noise.sum(axis=-1)).max() < 1e-6
    assert np.square(noise).mean() == pytest.approx(variances.mean(), rel=0.25, abs=1e-3)


def test_a_climb_ends_near_the_top() -> None:
    def near(number: int, step: float) -> tuple[int, int]:
        return math.floor(number / step), math.ceil(number * step)

    for start in (1, 30, 900):
        assert 33 <= climbed(start, near, lambda number: -abs(number - 37)) <= 42


def played(plan: SubsetPlan, epsilon: float, seed: int) -> float:
    """Play a plan against the service."""
    rng = np.random.default_rng(seed)
    cells = rng.choice(len(SHARES), PEOPLE, p=SHARES)
    batches = [SUBSETS[plan.subsets](rng, PEOPLE, plan.parts) for _ in range(plan.batches)]
    each = part_of(epsilon, plan.batches)
    asked = [(batch, counted(batch, cells, len(SHARES), each, rng)) for batch in batches]
    return leakage(decode(asked, np.array(SHARES)), cells)


@pytest.mark.parametrize(
    ("epsilon", "batches", "models", "gain"),
    [
        (5.0, 12, 4, 5.0),  # too many batches
        (20.0, 1, 9, 5.0),  # too small blocks, and one batch: but of fewer blocks a table tells more
    ],
)
def test_what_is_found_tells_more_than_what_was_given(epsilon: float, batches: int, models: int, gain: float) -> None:
    asked = SearchBounds(SHARES, PEOPLE, epsilon, batches, models)
    plan = found(asked)
    assert plan != asked.given
    assert plan.batches <= batches
    assert plan.parts <= (2**models if plan.subsets == "blocks" else models)
    gains = [played(plan, epsilon, seed) - played(asked.given, epsilon, seed) for seed in range(5)]
    assert np.mean(gains) > gain


def test_the_same_is_found_again_and_what_was_given_where_nothing_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = SearchBounds(SHARES, 200, 3.0, 4, 4)
    plan = found(asked)
    found.cache_clear()
    assert found(asked) == plan
    # What takes too long to read is not tried.
    assert searched._score(SubsetPlan("halves", 3000, 32), asked, 1, 0) == -math.inf
    monkeypatch.setattr(searched, "_score", lambda *_, **__: 0.0)
    found.cache_clear()
    assert found(asked) == asked.given == SubsetPlan("blocks", 16, 4)
    found.cache_clear()
