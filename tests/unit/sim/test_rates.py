"""Which tables of rates a signed page has of a request by several attributes, and that each adds the others up."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from compliance.answers.groups import released
from compliance.records.groups import Attribute, Grouped
from fairwall.compliance.v1.group_service_pb2 import ByGroupHeader, GroupAttribute, Measure
from sim.attestation.rates import rates_of
from tests.support.noise_sources import SILENT

NAMES = ("sex", "race", "age", "place")
PEOPLE = 900
CODES = np.random.default_rng(5).choice(2, (4, PEOPLE), p=(0.7, 0.3)).astype(np.uint8)
CHOSEN = np.random.default_rng(6).random(PEOPLE) < 0.2 + 0.3 * CODES[0] + 0.2 * CODES[1]


@pytest.mark.parametrize(
    ("attributes", "ways"),
    [
        (1, ["sex"]),
        (2, ["sex", "race", "sex race"]),
        (3, ["sex", "race", "age", "sex race", "sex age", "race age", "sex race age"]),
        (4, ["sex", "race", "age", "place", "sex race age place"]),
    ],
)
def test_a_page_has_tables_by_each_attribute_and_by_all_and_by_two_of_three(attributes: int, ways: list[str]) -> None:
    by = NAMES[:attributes]
    people = Grouped(tuple(Attribute(name, ("a", "b")) for name in by), CODES[:attributes], np.zeros(PEOPLE, np.uint8))
    header = ByGroupHeader(by=by, measures=[Measure.MEASURE_SELECTION_RATE], epsilon=np.inf)
    release = released(people, header, CHOSEN[np.newaxis].astype(float), SILENT)
    release.by.extend(GroupAttribute(name=name, values="ab") for name in by)
    release.measures.extend(header.measures)
    told = rates_of(release.SerializeToString())
    assert list(dict.fromkeys(" ".join(row["over"]) for row in told["rates"])) == ways
    for row in told["rates"]:
        whose = np.all([CODES[NAMES.index(n)] == (v == "b") for n, v in zip(row["over"], row["group"], strict=True)], 0)
        assert row["people"] == pytest.approx(whose.sum())
        assert row["rate"] == pytest.approx(CHOSEN[whose].mean())
    groups = {(*row["over"], *row["group"]) for row in told["rates"]}
    assert groups == {(*way.split(), *each) for way in ways for each in product("ab", repeat=len(way.split()))}
