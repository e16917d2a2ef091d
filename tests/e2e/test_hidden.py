"""A test set that the developer is not given protects nobody while the developer's own server is asked about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Play = Callable[..., dict[str, Any]]

SAME = ("leakage", "baseline_leakage", "recovered", "exact", "n0", "n1", "seed", "size_queries", "epsilon_spent")


ALGORITHM_2 = ("developer.strategy=sensing", "developer.queries=50", "developer.perturbation=0.1")
SENSING = tuple(part for setting in ALGORITHM_2 for part in ("--set", setting))


@pytest.mark.check
def test_everybody_is_revealed_as_if_the_test_set_had_been_dealt_with_one_answer_more(play: Play) -> None:
    result = play("hidden-adult-100", "--trials", "3", "--set", "data.hidden=[false, true]", *SENSING)
    shown, hidden = ([trial for trial in result["trials"] if trial["data.hidden"] is value] for value in (False, True))
    assert len(hidden) == 3
    for one, other in zip(shown, hidden, strict=True):
        assert other["exact"]
        assert [other[key] for key in SAME] == [one[key] for key in SAME]
        assert other["queries"] == one["queries"] + 1 == 51
        assert other["max_prediction_change"] <= 0.1 + 1e-12
        assert (other["accuracy_base"], other["accuracy_models"]) == (None, None)
        assert one["accuracy_base"] is not None
    assert Path(result["run_dir"], "report.html").stat().st_size > 10_000


@pytest.mark.slow
def test_other_games_are_played_about_a_hidden_test_set_too(play: Play) -> None:
    # As many queries as people, whom the developer counts beforehand; noise; a public sample; a model that is released.
    result = play(
        "hidden-adult-100",
        *("--trials", "1", "--set", "compliance.metric=abs_sp", "--set", "developer.strategy=absolute"),
        *("--set", "developer.queries=n", "--set", "compliance.mechanism=gaussian", "--set", "compliance.epsilon=50.0"),
        *("--set", "compliance.delta=1e-5", "--set", "developer.public_sample=200"),
        *("--set", 'adversary.attack=["loss-test"]', "--set", "adversary.probes=200"),
    )
    (trial,) = result["trials"]
    assert (trial["queries"], trial["size_queries"]) == (101, 0)
    assert 0 < trial["epsilon_spent"] <= 50 * (1 + 1e-9)
    assert trial["query_error_mean"] > 0
    assert trial["gap_base"] >= 0
    assert trial["leakage_features"] == trial["baseline_leakage"]


@pytest.mark.check
def test_made_people_can_be_hidden(play: Play, tmp_path: Path) -> None:
    made = tmp_path / "made.toml"
    made.write_text(
        '[scenario]\nname = "made"\ngame = "reveal"\n[compliance]\nmechanism = "exact"\n[developer]\n'
        'strategy = "linear"\n[data]\nsource = "synthetic"\nn = 60\nn0 = 7\nscores = "beta(0.5,2)"\nhidden = true\n'
    )
    (trial,) = play(str(made))["trials"]
    assert trial["exact"]
    assert trial["queries"] == 61
