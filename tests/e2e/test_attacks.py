"""The developer's attacks through the real service: what each metric gives away, and in how many answers."""

from __future__ import annotations

import json
import tomllib
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


@pytest.mark.slow
def test_every_metric_gives_everybody_away_whom_it_looks_at(attack: Play) -> None:
    result = attack(SPLITTING, f"compliance.metric={json.dumps(EVERY_METRIC)}", n=200, n0=60, trials=2)
    assert [cell["compliance.metric"] for cell in result["summary"]] == EVERY_METRIC
    for trial in result["trials"]:
        assert trial["targeted_recovered"] == trial["targeted"]
        assert trial["exact"] == (trial["targeted"] == trial["n"])
        everybody = trial["metric"].removeprefix("abs_") not in ("eo", "fpr")
        assert everybody == (trial["targeted"] == trial["n"])
        assert answers(trial) <= 8


@pytest.mark.slow
def test_every_metric_does_so_from_models_close_to_h0(attack: Play) -> None:
    metrics = [metric for metric in EVERY_METRIC if metric != "eodds_max"]
    result = attack(
        SPLITTING + "perturbation = 0.1\n", f"compliance.metric={json.dumps(metrics)}", n=200, n0=60, trials=2
    )
    for trial in result["trials"]:
        assert trial["targeted_recovered"] == trial["targeted"], trial["metric"]
        assert trial["max_prediction_change"] <= 0.1
        # Of 200 people few are within 0.1 of a half, but on one side of it are more.
        assert abs(trial["accuracy_models"] - trial["accuracy_base"]) < 0.04
        assert answers(trial) <= 12


@pytest.mark.slow
def test_predictive_parity_gives_everybody_away(attack: Play) -> None:
    result = attack('strategy = "ppv"\n', "compliance.metric=ppv", trials=8)
    assert all(trial["exact"] for trial in result["trials"])
    assert max(answers(trial) for trial in result["trials"]) <= 40


@pytest.mark.slow
def test_verdicts_give_everybody_away(attack: Play) -> None:
    result = attack('strategy = "verdicts"\n', mechanism="pass-fail", trials=8)
    assert all(trial["exact"] for trial in result["trials"])
    # log2 C(100, 10) is 44 bits, and a verdict is one at most.
    assert max(answers(trial) for trial in result["trials"]) <= 60


@pytest.mark.check
def test_one_ordinary_answer_gives_a_hundred_people_away(attack: Play) -> None:
    result = attack('strategy = "meet"\nknows = ["n0"]\n', trials=2)
    assert all(trial["exact"] for trial in result["trials"])
    assert all((trial["queries"], trial["max_prediction_change"]) == (1, 0) for trial in result["trials"])
    assert all(trial["accuracy_models"] == trial["accuracy_base"] for trial in result["trials"])


@pytest.mark.parametrize(
    ("n", "n0", "near", "most", "trials"),
    [
        pytest.param(100, 10, 1, 3, 20, marks=pytest.mark.slow),
        (100, 10, 0.1, 5, 3),
        pytest.param(100, 10, 0.1, 5, 20, marks=pytest.mark.check),
        pytest.param(1000, 104, 1, 13, 20, marks=pytest.mark.slow),
        pytest.param(1000, 104, 0.1, 16, 20, marks=pytest.mark.slow),
    ],
)
def test_exact_answers_until_everybody_is_known(
    attack: Play, n: int, n0: int, near: float, most: int, trials: int
) -> None:
    result = attack(SPLITTING + f"perturbation = {near}\n", n=n, n0=n0, trials=trials)
    assert len(result["trials"]) == trials
    assert all(trial["exact"] for trial in result["trials"])
    assert max(answers(trial) for trial in result["trials"]) <= most
    assert all(trial["max_prediction_change"] <= near for trial in result["trials"])


@pytest.mark.check
@pytest.mark.parametrize(
    ("n", "n0", "most", "trials"), [(100, 10, 10, 20), pytest.param(1000, 104, 90, 6, marks=pytest.mark.slow)]
)
def test_answers_of_four_decimals_until_everybody_is_known(
    attack: Play, n: int, n0: int, most: int, trials: int
) -> None:
    # limit-adult-1000 plays 20 of the larger ones.
    result = attack(SPLITTING, "compliance.precision=4", n=n, n0=n0, trials=trials)
    assert all(trial["exact"] for trial in result["trials"])
    assert max(answers(trial) for trial in result["trials"]) <= most


@pytest.mark.slow
def test_absolute_answers_until_everybody_is_known(attack: Play) -> None:
    result = attack(SPLITTING, "compliance.metric=abs_sp", n=1000, n0=104)
    assert all(trial["exact"] for trial in result["trials"])
    assert max(answers(trial) for trial in result["trials"]) <= 22


@pytest.mark.slow
def test_the_differencing_detector_sees_single_changes_and_no_packed_rows(attack: Play) -> None:
    strategies = '["pair", "linear", "splitting", "packed"]'
    result = attack("", f"developer.strategy={strategies}", "compliance.differencing=3", n=60, n0=12, trials=3)
    flagged = {cell["developer.strategy"]: cell["flagged"] / cell["answers"] for cell in result["summary"]}
    assert flagged["linear"] > 0.9
    assert flagged["pair"] == 0.5
    assert flagged["splitting"] < 0.5


@pytest.mark.slow
def test_features_answers_and_both(attack: Play) -> None:
    result = attack('strategy = "sensing"\nqueries = 20\npublic_sample = 2000\n', trials=10)
    (cell,) = result["summary"]
    assert cell["leakage_features"] == cell["baseline_leakage"]
    assert cell["leakage_features"] > 55
    assert cell["leakage_answers"] > 50


BEST = 'strategy = "best"\nqueries = 40\n'


RANDOM_ROWS = 'strategy = "random-binary"\ndecoder = "best"\nqueries = 40\n'
CONCEAL = [
    (100.0, 63),
    pytest.param(1000.0, 82, marks=pytest.mark.slow),
    pytest.param(10_000.0, 97, marks=pytest.mark.slow),
]


@pytest.mark.check
@pytest.mark.parametrize(("epsilon", "least"), CONCEAL)
def test_printed_conceal_against_the_best_decoder(attack: Play, epsilon: float, least: float) -> None:
    # Of 25 trials the mean's standard error is about 2; `test_noise_decoders` has 200 games, without processes.
    result = attack(RANDOM_ROWS, f"compliance.epsilon={epsilon}", mechanism="conceal", trials=25)
    assert result["summary"][0]["leakage"] >= least - 4


@pytest.mark.slow(seconds=50)
def test_the_best_strategy_set_on_a_scenario_of_another_one_gains_by_asking(play: Play) -> None:
    settings = (
        "developer.strategy=best",
        "compliance.epsilon=1000.0",
        "compliance.mechanism=conceal",
        "developer.queries=40",
    )
    result = play("conceal-adult-100", "--trials", "12", *(part for setting in settings for part in ("--set", setting)))
    (cell,) = result["summary"]
    # 12 points above; the seeds are the scenario's.
    assert cell["decoder"] == "best"
    assert cell["leakage"] > cell["baseline_leakage"] + 5
    kept = tomllib.loads((Path(result["run_dir"]) / "scenario.toml").read_text(encoding="utf-8"))
    # The file's decoder is left to the strategy, whose own is `best`.
    assert kept["developer"]["strategy"] == "best"
    assert "decoder" not in kept["developer"]


@pytest.mark.slow
def test_the_best_strategy_is_never_worse_than_not_asking(attack: Play) -> None:
    mechanisms = '["conceal", "laplace", "cauchy", "counts", "randomized-response", "recommended"]'
    result = attack(BEST, f"compliance.mechanism={mechanisms}", "compliance.epsilon=[1.0, 100.0]", trials=8)
    for cell in result["summary"]:
        # Eight trials; a mean below its baseline by five points would be no accident.
        assert cell["leakage"] > cell["baseline_leakage"] - 5, cell
        assert cell["epsilon_spent"] == pytest.approx(cell["epsilon"])
    at_100 = {cell["mechanism"]: cell["leakage"] for cell in result["summary"] if cell["epsilon"] == 100}
    assert at_100["conceal"] > 63
    assert min(at_100["counts"], at_100["randomized-response"], at_100["recommended"]) > 95


@pytest.mark.slow
def test_the_best_strategy_reads_every_metric_under_noise(attack: Play) -> None:
    metrics = json.dumps(EVERY_METRIC)
    result = attack(
        BEST, f"compliance.metric={metrics}", "compliance.epsilon=100.0", mechanism="counts", n=200, n0=60, trials=2
    )
    assert [cell["compliance.metric"] for cell in result["summary"]] == EVERY_METRIC
    assert all(cell["epsilon_spent"] == pytest.approx(100) for cell in result["summary"])


@pytest.mark.check
@pytest.mark.parametrize(
    ("settings", "most"),
    [
        pytest.param(("compliance.precision=2",), 40, marks=pytest.mark.slow),
        pytest.param(("compliance.precision=1",), 100, marks=pytest.mark.slow),
        pytest.param(("compliance.mechanism=round",), 40, marks=pytest.mark.slow),
        (("compliance.mechanism=pass-fail",), 60),
        pytest.param(("compliance.metric=ppv",), 40, marks=pytest.mark.slow),
        pytest.param(("compliance.precision=6", "developer.knows=[]"), 10, marks=pytest.mark.slow),
        pytest.param(("compliance.precision=float32", "developer.knows=[]"), 8, marks=pytest.mark.slow),
    ],
)
def test_the_best_strategy_adapts_to_what_answers_are(attack: Play, settings: tuple[str, ...], most: int) -> None:
    result = attack("", *settings, trials=4)
    assert all(trial["exact"] for trial in result["trials"])
    assert max(answers(trial) for trial in result["trials"]) <= most


@pytest.mark.slow
def test_features_answers_and_both_under_noise(attack: Play) -> None:
    result = attack(BEST + "public_sample = 2000\n", "compliance.epsilon=100.0", mechanism="conceal", trials=20)
    (cell,) = result["summary"]
    assert cell["leakage_features"] > 62
    assert cell["leakage_answers"] > 58
    assert cell["leakage"] > max(cell["leakage_features"], cell["leakage_answers"])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_10_000_people_in_130_exact_answers(play: Play) -> None:
    result = play(
        "limit-synthetic-10000",
        "--trials",
        "5",
        "--set",
        "developer.strategy=best",
        "--set",
        "developer.perturbation=1.0",
    )
    assert all(trial["exact"] for trial in result["trials"])
    assert max(answers(trial) for trial in result["trials"]) <= 130
