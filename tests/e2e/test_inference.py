"""The distribution-inference game, played by its three processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from fairwall.game.v1.inference_service_pb2 import ITERATIONS_EPOCHS
from sim.transcripts.files import paths, read
from sim.transcripts.messages import PlayedSession

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="the training extra is not installed")

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
victims = 4
steps = 40
tune_steps = 20
[adversary]
attack = ["loss-test", "threshold-test", "label-meta", "logit-meta"]
shadows = 4
probes = 100
[[sweep]]
"developer.defence" = ["none", "fft", "pooled", "constant"]
"developer.purity" = [1.0]
[[sweep]]
"developer.defence" = ["fft", "fft-checked"]
"developer.purity" = [0.7]
"""

LAMBDAS = (0.1, 1.0)
ASKED = """
[scenario]
name = "asked"
game = "inference"
trials = 2
seed = 7
[data]
source = "german"
protected = "sex"
[compliance]
metric = "eodds_max"
mechanism = "counts"
[developer]
defence = "fft"
lambdas = [0.1, 1.0]
victims = 4
steps = 40
tune_steps = 20
[adversary]
attack = ["loss-test"]
probes = 100
[sweep]
"compliance.epsilon" = [10.0, "inf"]
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    file = tmp_path / "small.toml"
    file.write_text(SMALL, encoding="utf-8")
    return str(file)


@pytest.fixture
def asked(tmp_path: Path) -> str:
    file = tmp_path / "asked.toml"
    file.write_text(ASKED, encoding="utf-8")
    return str(file)


def timeless(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines, but for how long they took."""
    return [{**line, "seconds": 0} for line in lines]


@pytest.mark.check
def test_a_line_for_each_attack_on_each_split(small: str, play: Play) -> None:
    first = play(small)
    lines = first["trials"]
    assert len(lines) == 2 * 6 * 4
    for line in lines:
        assert set(line) >= CONTRACT
        assert line["victims"] == 4
        b0 = line["victims"] - line["victims_b1"]
        assert line["advantage"] == pytest.approx(
            abs(line["correct_b1"] / line["victims_b1"] - (1 - line["correct_b0"] / b0))
        )
        assert line["corrected_bound_holds"]
        for key in ("gap_base", "gap", "eo_base", "eo"):
            together = b0 * line[f"{key}_b0"] + line["victims_b1"] * line[f"{key}_b1"]
            assert together == pytest.approx(line["victims"] * line[key])
        assert line["below_tau_b0"] + line["below_tau_b1"] == line["below_tau"]
    constant = [line for line in lines if line["defence"] == "constant"]
    assert all((line["eo"], line["advantage"]) == (0, 0) for line in constant)
    assert Path(first["run_dir"], "report.html").stat().st_size > 5_000
    assert len(first["summary"]) == 6 * 4
    ends = [cell[f"{name}_low"] for cell in first["summary"] for name in ("family", "accuracy_b", "advantage")]
    assert set(ends) == {None}, "two splits give no interval"
    # A mixture's weight W, measured: 0.7 of its own group and 0.3 of the other make 0.4 by expectation. Its rates are
    # those of a sample, and their error is stated; pure groups have none.
    mixed = [line for line in lines if line["developer.purity"] == 0.7]
    assert all(0.2 < line["w"] < 0.6 and line["sampling_error"] > 0 for line in mixed)
    assert all((line["w"], line["sampling_error"]) == (1, 0) for line in lines if line not in mixed)
    for line in lines:
        if line["defence"].startswith("fft"):
            assert line["accepted"] + line["rejected"] == line["needed"] <= 4
            assert line["size_ratio"] >= 1
    # The split is the same whatever the defence is, and so are the undefended models.
    bases = [
        [[line[key] for key in ("gap_base", "eo_base", "w", "needed")] for line in mixed if line["defence"] == defence]
        for defence in ("fft", "fft-checked")
    ]
    assert bases[0] == bases[1]


@pytest.mark.slow
def test_a_trial_is_the_same_however_many_there_are(small: str, play: Play) -> None:
    two, one = (play(small, "--trials", trials)["trials"] for trials in ("2", "1"))
    assert timeless(line for line in two if line["trial"] == 0) == timeless(one)


@pytest.mark.slow
def test_lambda_is_chosen_by_what_compliance_answers_at_its_price(asked: str, play: Play) -> None:
    """All three parties play; the choice is paid for in full, and the same again for the same seed."""
    first, again = play(asked), play(asked, "--trials", "1")
    lines = first["trials"]
    assert len(lines) == 4
    for line in lines:
        assert (line["metric"], line["mechanism"]) == ("eodds_max", "counts")
        assert line["queries"] == len(LAMBDAS) * line["victims"] == 8
        assert line["lambda"] in LAMBDAS
        assert line["epsilon_spent"] == line["epsilon"] == line["compliance.epsilon"]
        assert line["corrected_bound_holds"]
    paid, free = ([line for line in lines if line["epsilon"] == epsilon] for epsilon in (10.0, "inf"))
    assert len(paid) == len(free) == 2
    # An answer in exchange for nothing is exact, and one that was paid for is not.
    assert all(line["query_error_mean"] == 0 for line in free)
    assert all(line["query_error_mean"] > 0 for line in paid)
    assert timeless(line for line in lines if line["trial"] == 0) == timeless(again["trials"])
    for cell in first["summary"]:
        assert sum(count for _, count in cell["lambdas"]) == cell["trials"] == 2
        assert cell["epsilon_spent"] == cell["epsilon"]


@pytest.mark.slow
def test_of_several_attributes_each_has_its_bounds(small: str, play: Play) -> None:
    result = play(
        *(small, "--trials", "1", "--set", "data.source=adult", "--set", 'data.also_protected={race="White"}'),
        *("--set", "developer.defence=fft-multi", "--set", "developer.purity=1.0", "--set", "developer.victims=2"),
        *("--set", 'adversary.attack=["loss-test"]'),
    )
    (line,), (cell,) = result["trials"], result["summary"]
    assert [each["attribute"] for each in line["attributes"]] == ["sex", "race"]
    assert [each["attribute"] for each in cell["attributes"]] == ["sex", "race"]
    for each in line["attributes"]:
        assert each["corrected_bound_holds"]
        assert all(0 <= each[key] <= 100 for key in ("gap_base", "gap", "eo_base", "eo"))
    # The game's own attribute is the first of them.
    assert (line["attributes"][0]["gap"], line["attributes"][0]["eo"]) == (line["gap"], line["eo"])


@pytest.mark.check
def test_the_printed_protocol_as_the_scenario_reads_it_and_models_that_see_the_group(
    small: str, play: Play, fairwall: Any
) -> None:
    """German Credit is small as a whole, and the developer's part of it is no reason; what was dealt verifies."""
    result = play(
        *(small, "--trials", "1", "--set", 'developer.defence=["plain-finetune", "fft-paper"]'),
        *("--set", "developer.purity=1.0", "--set", "developer.victims=2", "--set", "adversary.shadows=2"),
        *("--set", "data.train_share=0.6", "--set", "data.test_share=0.2", "--set", "data.include_protected=true"),
        *("--set", "developer.iterations=epochs", "--set", 'adversary.attack=["loss-test"]'),
    )
    run = Path(result["run_dir"])
    plain, printed = result["trials"]
    assert (plain["split_seed"], plain["gap_base"]) == (printed["split_seed"], printed["gap_base"])
    assert printed["people"] == 1000
    log = (run / "logs" / "developer.log").read_text(encoding="utf-8")
    assert "tuning plain-finetune" in log
    assert "training fft-paper" in log
    session = PlayedSession({path.parent.name: read(path) for path in paths(run)})
    for name in session.deals:
        cards = session.trial(name).cards["TrainingDeal"]
        assert cards.arrays is not None
        assert len(cards.arrays["labels"]) == 600
        assert (cards.arrays["features"][:, -1] == cards.arrays["groups"][0]).all()
        training = cards.deal.training
        assert (training.small_table, training.iterations) == (True, ITERATIONS_EPOCHS)
    verified = fairwall("verify", str(run))
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("scenario", "settings", "said"),
    [
        ("small", ["developer.defence=fftt"], "developer.defence: must be one of"),
        ("small", ['adversary.attack=["guess"]'], "adversary.attack: must be one of"),
        ("small", ["adversary.attack=[]"], "adversary.attack: is missing"),
        ("small", ["developer.rehearsal=1.5"], "developer.rehearsal: must be"),
        ("small", ["developer.lambda=-1"], "developer.lambda: must be"),
        ("small", ["data.source=synthetic"], "data.source: synthetic people"),
        ("small", ["data.train_share=0.8"], "data.train_share: 800 of 1,000 rows leave the adversary none"),
        ("small", ["developer.rows=390"], "developer.rows: in the developer's part, 390 rows to train on and"),
        ("small", ["data.test_share=1.0"], "data.test_share: must be"),
        ("small", ["developer.iterations=rounds"], "developer.iterations: must be"),
        ("small", ["developer.small_table=-1"], "developer.small_table: must be"),
        ("small", ["data.include_protected=1"], "data.include_protected: must be"),
        ("asked", ["data.include_protected=true"], "data.include_protected: would deal the developer the groups"),
        ("small", ["developer.defence=fft", "developer.lambdas=[0.1,1.0]"], "compliance: is missing"),
        ("small", ["developer.defence=fft-multi"], "data.also_protected: is missing"),
        ("small", ['adversary.attack=["kl"]', "adversary.answers=labels"], "adversary.attack: kl needs scores"),
        ("asked", ["developer.lambdas=[]"], "compliance: is not dealt in"),
        ("asked", ["developer.defence=pooled"], "developer.lambdas: only for a defence that takes one"),
        ("asked", ["compliance.metric=sp"], "compliance.metric: lambda is chosen by eodds_max"),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(each.partition("=")[0] for each in value),
)
def test_bad_input_is_one_line(
    request: pytest.FixtureRequest, fairwall: Any, scenario: str, settings: list[str], said: str
) -> None:
    file = request.getfixturevalue(scenario)
    # One session's parties are started before the scenario is read, those of several only to play it.
    jobs = () if "rows" in said else ("--jobs", "2")
    finished = fairwall("run", file, *(part for setting in settings for part in ("--set", setting)), *jobs)
    assert finished.returncode == 2
    assert finished.stdout == ""
    (line,) = finished.stderr.splitlines()
    assert said in line
    assert not list(Path(file).parent.glob("runs/*"))
