"""Every mechanism answers through the real service, from a scenario, at its price."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from compliance.mechanisms import MECHANISMS
from fairwall.laws.mechanisms.table import MECHANISM_LAWS

Play = Callable[..., dict[str, Any]]

PRIVATE = [name for name, mechanism in MECHANISMS.items() if mechanism.guarantee != "none"]
WITHOUT_NUMBERS = {*(name for name, law in MECHANISM_LAWS.items() if law.is_choice), "propose-test-release"}


@pytest.mark.slow
def test_every_private_mechanism_answers_with_seeded_and_with_system_noise(play: Play) -> None:
    result = play(
        "reveal-adult-100",
        *("--trials", "1", "--set", "compliance.epsilon=0.9", "--set", "compliance.delta=1e-5"),
        *("--set", f"compliance.mechanism={PRIVATE}", "--set", 'compliance.noise=["seeded", "system"]'),
        *("--set", "developer.queries=20"),
    )
    assert [trial["compliance.mechanism"] for trial in result["trials"][::2]] == PRIVATE
    for trial in result["trials"]:
        assert trial["epsilon_spent"] == pytest.approx(0.9, rel=1e-9), trial["mechanism"]
        if trial["mechanism"] not in WITHOUT_NUMBERS:
            assert trial["query_error_median"] > 0, trial["mechanism"]
    seeded, system = result["trials"][::2], result["trials"][1::2]
    assert all(a["trace"]["exact"] == b["trace"]["exact"] for a, b in zip(seeded, system, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", ["exact", *(pytest.param(name, marks=pytest.mark.slow) for name in ("round", "pass-fail"))]
)
def test_what_adds_no_noise_costs_everything(play: Play, mechanism: str) -> None:
    (trial,) = play(
        "reveal-adult-100",
        *("--trials", "1", "--set", f"compliance.mechanism={mechanism}", "--set", "developer.queries=50"),
    )["trials"]
    assert trial["epsilon_spent"] == "inf"
    released, exact = np.array(trial["trace"]["released"]), np.array(trial["trace"]["exact"])
    expected = {"exact": exact, "round": np.round(exact, 2), "pass-fail": np.abs(exact) > 0.1}[mechanism]
    assert released == pytest.approx(expected.astype(np.float64), abs=1e-12)


@pytest.mark.check
@pytest.mark.parametrize(
    "bounding", ["clamp", *(pytest.param(name, marks=pytest.mark.slow) for name in ("truncate", "boundary-inflate"))]
)
def test_bounded_answers_lie_in_the_metrics_range(play: Play, bounding: str) -> None:
    (trial,) = play(
        "reveal-adult-100",
        *("--trials", "1", "--set", "compliance.mechanism=laplace", "--set", "compliance.epsilon=1.0"),
        *("--set", f"compliance.bounding={bounding}", "--set", "developer.queries=40"),
    )["trials"]
    assert all(-1 <= answer <= 1 for answer in trial["trace"]["released"])
