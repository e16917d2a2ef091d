"""The distribution-inference game, played by its three processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the training extra is not installed")

Play = Callable[..., dict[str, Any]]

CONTRACT = {
    *("trial", "seed", "game", "seconds", "split_seed", "defence", "lambda", "rehearsal", "attack", "victims"),
    *("correct_b0", "correct_b1", "advantage", "gap_base", "gap", "eo_base", "eo", "ppr_gap", "label_gap", "w"),
    *("accuracy_base", "accuracy", "bound_holds", "corrected_bound_holds"),
}

SMALL = """
[scenario]
name = "small"
game = "inference"
trials = 2
seed = 7
[data]
source = "german"
protected = "sex"
[developer]
victims = 6
steps = 40
tune_steps = 20
[adversary]
attack = ["loss-test", "threshold-test", "label-meta", "logit-meta"]
shadows = 8
probes = 100
[sweep]
"developer.defence" = ["none", "fft", "pooled", "constant"]
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    file = tmp_path / "small.toml"
    file.write_text(SMALL, encoding="utf-8")
    return str(file)


def test_a_line_for_each_attack_on_each_split_and_the_same_again(small: str, play: Play) -> None:
    first, second = play(small), play(small)
    lines = first["trials"]
    assert len(lines) == 2 * 4 * 4
    for line in lines:
        assert set(line) >= CONTRACT
        assert line["victims"] == 6
        b0 = line["victims"] - line["victims_b1"]
        assert line["advantage"] == pytest.approx(
            abs(line["correct_b1"] / line["victims_b1"] - (1 - line["correct_b0"] / b0))
        )
        assert line["corrected_bound_holds"]
    assert [{**line, "seconds": 0} for line in lines] == [{**line, "seconds": 0} for line in second["trials"]]
    constant = [line for line in lines if line["defence"] == "constant"]
    assert all((line["eo"], line["advantage"]) == (0, 0) for line in constant)
    assert Path(first["run_dir"], "report.html").stat().st_size > 5_000
    cells = {(cell["developer.defence"], cell["attack"]): cell for cell in first["summary"]}
    assert len(cells) == 16
    assert all(cell["family_low"] <= cell["accuracy_b_low"] <= cell["accuracy_b"] for cell in cells.values())


def test_bad_input_is_one_line(small: str, fairwall: Any) -> None:
    for setting, named in (
        ("developer.defence=fftt", "developer.defence"),
        ('adversary.attack=["guess"]', "adversary.attack"),
        ("adversary.attack=[]", "adversary.attack"),
        ("developer.rehearsal=1.5", "developer.rehearsal"),
        ("developer.lambda=-1", "developer.lambda"),
        ("data.source=synthetic", "data.source"),
    ):
        finished = fairwall("run", small, "--set", setting)
        assert finished.returncode == 2, setting
        (line,) = finished.stderr.splitlines()
        assert named in line
