"""Errors that people meet say what was found, where, and what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairwall.client import practice
from fairwall.client.audit_client import _threshold
from fairwall.laws.metrics.metric import find_metric
from sim.cli.common import run_folder
from sim.verify.check import verify
from tests.unit.compliance.test_group_practice import Bought
from tests.unit.compliance.test_groups import asked, people_of

PEOPLE = people_of([0, 1, 2, 0], [0, 1, 1, 1])


def counts(*measures: str) -> Any:
    return asked(PEOPLE, [0, 1, 1, 0], measures)


SAID = {
    "groups of nothing": (
        lambda: counts("selection_rate").joined(["sex"]),
        "over: groups were counted by kind: name some of these, not ['sex']",
    ),
    "a reference that is none": (
        lambda: counts("selection_rate").practice(reference="no"),
        "reference: no group has these values of kind: no",
    ),
    "rates that were not asked for": (
        lambda: counts("accuracy").practice(),
        "which were not asked for: name them in measures",
    ),
    "scores for decisions": (
        lambda: practice.by_segment(Bought(PEOPLE), [0.5, 1, 0, 1], ["a"] * 4, "kind", 1.0, {}),
        "decisions must be 0 or 1; make them of scores, as by scores >= 0.5, or ask by_quantile",
    ),
    "scores that are missing": (
        lambda: practice.by_quantile(Bought(PEOPLE), [0.1, np.nan, np.nan, 1], "kind", 1.0, 2, {}, labels=False),
        "none missing; 2 of 4 are missing",
    ),
    "a threshold that no gap reaches": (
        lambda: _threshold(10, "sp"),
        "threshold: sp is from -1 to 1: pass one of its values, not 10",
    ),
    "a threshold below all gaps without a sign": (
        lambda: _threshold(-0.1, "eodds_sum"),
        "threshold: eodds_sum is from 0 to 2: pass one of its values, not -0.1",
    ),
    "predictions in the place of a metric": (
        lambda: find_metric(np.ones(3)),  # type: ignore[arg-type]
        "metric: must be a name, such as 'sp', not a value of type ndarray",
    ),
}


@pytest.mark.parametrize("kind", SAID)
def test_b8_an_error_says_what_was_found_and_what_to_do(kind: str) -> None:
    cause, said = SAID[kind]
    with pytest.raises(ValueError, match=r".") as refused:
        cause()
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_run_that_is_none_is_named_with_what_to_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for cause in (lambda: verify(tmp_path), lambda: run_folder("latest")):
        with pytest.raises(Exception, match=r"name (one|the folder)"):
            cause()
