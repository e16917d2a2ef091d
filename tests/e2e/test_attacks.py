"""The developer's attacks through the real service: what each metric gives away, and in how many answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Play = Callable[..., dict[str, Any]]

HEAD = """
[scenario]
name = "attack"
game = "reveal"
trials = {trials}
seed = 7
[data]
source = "adult"
protected = "race"
advantaged = "White"
disadvantaged = "Black"
test_size = {n}
n0 = {n0}
[compliance]
mechanism = "{mechanism}"
[developer]
"""


@pytest.fixture
def attack(tmp_path: Path, play: Play) -> Play:
    """Play a scenario made for the test."""

    def attacked(
        developer: str, *settings: str, n: int = 100, n0: int = 10, trials: int = 20, mechanism: str = "exact"
    ) -> dict[str, Any]:
        file = tmp_path / "attack.toml"
        file.write_text(HEAD.format(n=n, n0=n0, trials=trials, mechanism=mechanism) + developer, encoding="utf-8")
        return play(str(file), *(part for setting in settings for part in ("--set", setting)))

    return attacked


def answers(trial: dict[str, Any]) -> int:
    return int(trial["queries"] + trial["size_queries"])


SPLITTING = 'strategy = "splitting"\n'
EVERY_METRIC = ["sp", "abs_sp", "eo", "abs_eo", "fpr", "abs_fpr", "eodds_max", "eodds_sum", "oad", "abs_oad", "di"]


def test_every_metric_gives_everybody_away_whom_it_looks_at(attack: Play) -> None:
    result = attack(SPLITTING, f"compliance.metric={json.dumps(EVERY_METRIC)}", n=200, n0=60, trials=2)
    assert [cell["compliance.metric"] for cell in result["summary"]] == EVERY_METRIC
    for trial in result["trials"]:
        assert trial["targeted_recovered"] == trial["targeted"]
        assert trial["exact"] == (trial["targeted"] == trial["n"])
        everybody = trial["metric"].removeprefix("abs_") not in ("eo", "fpr")
        assert everybody == (trial["targeted"] == trial["n"])
        assert answers(trial) <= 8


def test_every_metric_does_so_from_models_close_to_h0(attack: Play) -> None:
    metrics = [metric for metric in EVERY_METRIC if metric != "eodds_max"]
    result = attack(
        SPLITTING + "perturbation = 0.1\n", f"compliance.metric={json.dumps(metrics)}", n=200, n0=60, trials=2
    )
    for trial in result["trials"]:
        assert trial["targeted_recovered"] == trial["targeted"], trial["metric"]
        assert trial["max_prediction_change"] <= 0.1
        assert abs(trial["accuracy_models"] - trial["accuracy_base"]) < 0.03
        assert answers(trial) <= 12


def test_predictive_parity_gives_everybody_away(attack: Play) -> None:
    result = attack('strategy = "ppv"\n', "compliance.metric=ppv")
    assert all(trial["exact"] for trial in result["trials"])
    assert max(answers(trial) for trial in result["trials"]) <= 40


def test_verdicts_give_everybody_away(attack: Play) -> None:
    result = attack('strategy = "verdicts"\n', mechanism="pass-fail")
    assert all(trial["exact"] for trial in result["trials"])
    # log2 C(100, 10) is 44 bits, and a verdict is one at most.
    assert max(answers(trial) for trial in result["trials"]) <= 60


def test_one_ordinary_answer_gives_a_hundred_people_away(attack: Play) -> None:
    result = attack('strategy = "meet"\nknows = ["n0"]\n', trials=5)
    assert sum(trial["exact"] for trial in result["trials"]) >= 4
    assert all((trial["queries"], trial["max_prediction_change"]) == (1, 0) for trial in result["trials"])
    assert all(trial["accuracy_models"] == trial["accuracy_base"] for trial in result["trials"])


@pytest.mark.parametrize(
    ("n", "n0", "near", "most"), [(100, 10, 1, 3), (100, 10, 0.1, 5), (1000, 104, 1, 13), (1000, 104, 0.1, 16)]
)
def test_exact_answers_until_everybody_is_known(attack: Play, n: int, n0: int, near: float, most: int) -> None:
    result = attack(SPLITTING + f"perturbation = {near}\n", n=n, n0=n0)
    assert all(trial["exact"] for trial in result["trials"])
    assert max(answers(trial) for trial in result["trials"]) <= most
    assert all(trial["max_prediction_change"] <= near for trial in result["trials"])


@pytest.mark.parametrize(("n", "n0", "most"), [(100, 10, 10), (1000, 104, 90)])
def test_answers_of_four_decimals_until_everybody_is_known(attack: Play, n: int, n0: int, most: int) -> None:
    result = attack(SPLITTING, "compliance.precision=4", n=n, n0=n0)
    assert all(trial["exact"] for trial in result["trials"])
    assert max(answers(trial) for trial in result["trials"]) <= most


def test_absolute_answers_until_everybody_is_known(attack: Play) -> None:
    result = attack(SPLITTING, "compliance.metric=abs_sp", n=1000, n0=104)
    assert all(trial["exact"] for trial in result["trials"])
    assert max(answers(trial) for trial in result["trials"]) <= 22


def test_the_differencing_detector_sees_single_changes_and_no_packed_rows(attack: Play) -> None:
    strategies = '["pair", "linear", "splitting", "packed"]'
    result = attack("", f"developer.strategy={strategies}", "compliance.differencing=3", n=60, n0=12, trials=3)
    flagged = {cell["developer.strategy"]: cell["flagged"] / cell["answers"] for cell in result["summary"]}
    assert flagged["linear"] > 0.9
    assert flagged["pair"] == 0.5
    assert flagged["splitting"] < 0.5


def test_features_answers_and_both(attack: Play) -> None:
    result = attack('strategy = "sensing"\nqueries = 20\npublic_sample = 2000\n', trials=10)
    (cell,) = result["summary"]
    assert cell["leakage_features"] == cell["baseline_leakage"]
    assert cell["leakage_features"] > 55
    assert cell["leakage_answers"] > 50
