"""A run's folder, the line of a trial, and the summary that is worked out from the lines."""

from __future__ import annotations

import itertools
import json
import math
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairwall as package
from sim.games import lay_out
from sim.games.cards import WRITTEN_DOWN, ComplianceCards
from sim.games.reveal.deal import DeveloperCards, PublicSample, RevealDeal
from sim.games.reveal.trial import RevealGuess, RevealOutcome, SubmittedLossTest, record
from sim.games.submissions import AuditRecord
from sim.runs.folder import ResumeError, RunFolder
from sim.runs.trials import read_trials, summarise, written
from sim.scenarios.sweep import Cell, Sweep

REVEAL = {
    "n",
    "n0",
    "n1",
    "metric",
    "mechanism",
    "epsilon",
    "delta",
    "queries",
    "size_queries",
    "strategy",
    "decoder",
    "leakage",
    "baseline_leakage",
    "recovered",
    "exact",
    "max_prediction_change",
    "accuracy_base",
    "accuracy_models",
    "query_error_mean",
    "query_error_median",
    "epsilon_spent",
}
"""What DESIGN.md promises of a trial of a reveal game."""

PROTECTED = np.array([0, 1, 1, 0, 1], np.uint8)


def plan_of(sweep: dict[str, list[Any]] | None = None, metric: str = "sp", **compliance: Any) -> Sweep:
    return lay_out(
        {
            "scenario": {"name": "Mine, again", "game": "reveal", "seed": 11, "trials": 3},
            "data": {"source": "synthetic", "n": 5, "n0": 2, "scores": "uniform"},
            "compliance": {"metric": metric, "mechanism": "laplace", "epsilon": 2.0, **compliance},
            "developer": {"strategy": "sensing", "queries": 2} if metric == "sp" else {"strategy": "absolute"},
            "sweep": sweep or {},
        },
        "mine.toml",
    )


def dealt(cell: Cell, *, adversary: bool = False) -> RevealDeal:
    features, labels = np.linspace(0, 1, 5)[:, None], np.array([0, 1, 0, 1, 1], np.uint8)
    return RevealDeal(
        deal_id="deal-1",
        scenario=cell.scenario,
        compliance=ComplianceCards(labels, PROTECTED, b"c"),
        developer=DeveloperCards(features, labels, scored=True, training=None, seed=b"d"),
        adversary=PublicSample(features, labels, 2) if adversary else None,
    )


def outcome(guess: list[int], *, size_queries: int = 1, spent: float = 2.0, **changes: Any) -> RevealOutcome:
    """Two metric queries, 0.1 and 0.3 off, after a size query that is far off."""
    audits = (AuditRecord("size-1", "sp", np.array([0.5]), np.array([9.5]), 0),) * size_queries
    audits += (AuditRecord("metric-2", "sp", np.array([0.2, -0.4]), np.array([0.3, -0.1]), 0),)
    return RevealOutcome(
        reveal=RevealGuess(
            baseline=np.array([0, 0, 1, 1, 1], np.uint8),
            guess=np.array(guess, np.uint8),
            targeted=np.ones(5, np.bool_),
            polarity_known=changes.pop("polarity_known", True),
            reconstruction=np.linspace(0, 1, 5),
            queries=2,
            size_queries=size_queries,
            max_prediction_change=0.1,
            accuracy_base=0.6,
            accuracy_models=np.array([0.4, 0.6]),
            guess_from_answers=None,
        ),
        audits=audits,
        epsilon_spent=spent,
        loss_test=changes.pop("loss_test", None),
    )


def line_of(cell: Cell, guess: list[int], trial: int = 0, **changes: Any) -> dict[str, Any]:
    (line,) = record(cell, trial, dealt(cell), outcome(guess, **changes))
    return written(cell, trial, line, 0.25)


RIGHT, ONE_WRONG, MIRRORED = [0, 1, 1, 0, 1], [0, 1, 1, 1, 1], [1, 0, 0, 1, 0]


# A line.


def test_a_trial_has_every_key_that_the_contract_promises() -> None:
    (cell,) = plan_of().cells
    assert {"trial", "seed", "game", "seconds", *REVEAL} <= set(line_of(cell, RIGHT))


def test_a_trial_says_what_was_played_and_what_came_of_it() -> None:
    (cell,) = plan_of().cells
    line = line_of(cell, ONE_WRONG, trial=2)
    assert line["trial"] == 2
    assert line["seed"] == 13
    assert (line["n"], line["n0"], line["n1"]) == (5, 2, 3)
    assert (line["metric"], line["mechanism"], line["epsilon"], line["delta"]) == ("sp", "laplace", 2.0, 0.0)
    assert (line["strategy"], line["decoder"], line["queries"], line["size_queries"]) == ("sensing", "l1", 2, 1)
    assert (line["recovered"], line["exact"], line["leakage"]) == (4, False, 75)
    assert line["baseline_leakage"] == pytest.approx(50 * (1 / 2 + 2 / 3))
    assert line["epsilon_spent"] == 2.0


def test_the_error_of_the_size_query_is_none_of_the_metric_queries() -> None:
    line = line_of(plan_of().cells[0], RIGHT)
    assert line["query_error_mean"] == pytest.approx(0.2)
    assert line["query_error_median"] == pytest.approx(0.2)
    assert line["trace"]["exact"] == [0.2, -0.4]


def test_size_queries_are_told_by_their_ids_wherever_they_come() -> None:
    """With two strata the order is size, metrics, size, metrics; and one batch may hold both."""
    played = outcome(RIGHT, size_queries=3)
    ids = ("size-1", "metric-2", "reference-3", "sized-4")
    exact = ([0.5], [0.1, 0.2], [0.6], [0.7, 0.3])
    audits = tuple(
        AuditRecord(name, "sp", np.array(gaps), np.array(gaps), 0) for name, gaps in zip(ids, exact, strict=True)
    )
    (cell,) = plan_of().cells
    (line,) = record(cell, 0, dealt(cell), replace(played, audits=audits))
    assert line["trace"]["exact"] == [0.1, 0.2, 0.3]


def test_of_a_hidden_test_set_no_accuracy_is_known_and_the_size_query_comes_second() -> None:
    sweep = plan_of({"data.hidden": [True]})
    (cell,) = sweep.cells
    size = AuditRecord("size-2", "sp", np.array([0.5]), np.array([9.5]), 0)
    look, rest = (
        AuditRecord(name, "sp", np.array([exact]), np.array([exact + 0.25]), 0)
        for name, exact in (("look-1", 0.2), ("metric-3", -0.4))
    )
    played = outcome(RIGHT)
    guess = replace(played.reveal, accuracy_base=None, accuracy_models=None)
    (told,) = record(cell, 0, dealt(cell), replace(played, reveal=guess, audits=(look, size, rest)))
    line = written(cell, 0, told, 0.25)
    assert {"trial", "seed", "game", "seconds", *REVEAL} <= set(line)
    assert [line[key] for key in ("accuracy_base", "accuracy_models", "accuracy_models_least")] == [None] * 3
    assert line["query_error_mean"] == pytest.approx(0.25)
    assert line["trace"]["exact"] == [0.2, -0.4]
    (summary,) = summarise(sweep, [line])
    assert not {"accuracy_base", "accuracy_models", "accuracy_models_least"} & set(summary)


def test_swept_values_stand_under_their_dotted_keys() -> None:
    cell = plan_of({"developer.queries": [2, 3], "compliance.mechanism": ["laplace", "conceal"]}).cells[1]
    line = line_of(cell, RIGHT)
    assert line["developer.queries"] == 2
    assert line["compliance.mechanism"] == line["mechanism"] == "conceal"


def test_infinity_is_the_string_inf_however_the_scenario_writes_it(tmp_path: Path) -> None:
    for infinite in ["inf", math.inf]:
        sweep = plan_of({"compliance.epsilon": [infinite, 1.0]})
        line = line_of(sweep.cells[0], RIGHT, spent=math.inf)
        assert line["epsilon"] == line["epsilon_spent"] == line["compliance.epsilon"] == "inf"
        folder = RunFolder.create(tmp_path, "x")
        folder.add_trial(line)
        folder.write_result(sweep, [line], complete=True)
        assert read_trials(folder.path / "trials.jsonl") == [line]


def test_only_the_first_trial_of_a_cell_keeps_a_trace() -> None:
    (cell,) = plan_of().cells
    assert line_of(cell, RIGHT)["trace"]["s"] == pytest.approx([5 / 6, 0, 0, 5 / 6, 0])
    assert "trace" not in line_of(cell, RIGHT, trial=1)


def test_a_partition_is_scored_up_to_polarity_and_says_whether_it_is_named() -> None:
    for known in [True, False]:
        (cell,) = plan_of(metric="abs_sp").cells
        line = line_of(cell, MIRRORED, size_queries=0, polarity_known=known)
        assert set(line) >= REVEAL
        assert (line["leakage"], line["recovered"], line["exact"]) == (100, 5, True)
        assert line["polarity_known"] is known
        assert line["leakage_by_size"] == (0 if known else None)
        assert line["leakage_by_person"] == 100


def test_a_loss_test_is_recorded_as_a_gap_in_percent() -> None:
    (cell,) = plan_of().cells
    line = line_of(cell, RIGHT, loss_test=SubmittedLossTest(0.75, 0.5))
    assert line["attack"] == "loss-test"
    assert line["gap_base"] == 25


# The summary.


def test_a_summary_has_one_entry_a_cell_in_the_order_of_the_trials() -> None:
    sweep = plan_of({"compliance.epsilon": ["inf", 1.0]})
    lines = [
        line_of(cell, guess, trial) for cell in sweep.cells for trial, guess in enumerate([RIGHT, ONE_WRONG, RIGHT])
    ]
    summary = summarise(sweep, lines)
    assert [cell["compliance.epsilon"] for cell in summary] == ["inf", 1.0]
    assert [cell["trials"] for cell in summary] == [3, 3]


def test_a_summary_adds_up_the_trials_of_its_cell() -> None:
    sweep = plan_of()
    lines = [line_of(sweep.cells[0], guess, trial) for trial, guess in enumerate([RIGHT, ONE_WRONG, RIGHT])]
    (summary,) = summarise(sweep, lines)
    assert summary["leakage"] == pytest.approx((100 + 75 + 100) / 3)
    assert summary["leakage_sd"] == pytest.approx(math.sqrt(625 / 3))
    assert summary["recovered"] == pytest.approx(14 / 3)
    assert summary["exact"] == 2
    assert (summary["n"], summary["n0"]) == (5, 2)
    assert summary["query_error_mean"] == pytest.approx(0.2)
    assert "gap_base" not in summary


def test_one_trial_has_no_spread() -> None:
    sweep = plan_of()
    (summary,) = summarise(sweep, [line_of(sweep.cells[0], RIGHT)])
    assert summary["leakage_sd"] is None


def test_the_share_of_targets_that_were_right_has_an_interval_from_five_trials_on() -> None:
    for trials, ends in [(4, (None, None)), (5, (0.4782, 1.0))]:
        sweep = plan_of()
        aimed = {"targeted": 1, "targeted_recovered": 1, "target_advantaged": True}
        (summary,) = summarise(sweep, [line_of(sweep.cells[0], RIGHT, trial) | aimed for trial in range(trials)])
        assert summary["targeted_rate"] == 1
        assert (summary["targeted_low"], summary["targeted_high"]) == pytest.approx(ends, abs=1e-4)


def test_trials_whose_groups_could_not_be_named_do_not_count_in_the_leakage_by_size() -> None:
    sweep = plan_of(metric="abs_sp")
    (cell,) = sweep.cells
    lines = [line_of(cell, RIGHT, i, size_queries=0, polarity_known=known) for i, known in enumerate([True, False])]
    assert summarise(sweep, lines)[0]["leakage_by_size"] == 100


# The folder.


def test_the_summary_recomputes_from_the_lines_on_disk(tmp_path: Path) -> None:
    sweep = plan_of({"developer.queries": [2, 3]})
    folder = RunFolder.create(tmp_path, "x")
    lines = [line_of(cell, guess, trial) for cell in sweep.cells for trial, guess in enumerate([RIGHT, ONE_WRONG])]
    for line in lines:
        folder.add_trial(line)
    written = folder.write_result(sweep, lines, complete=True)
    result = json.loads((folder.path / "result.json").read_text(encoding="utf-8"))
    assert result == written
    assert result["summary"] == summarise(sweep, read_trials(folder.path / "trials.jsonl"))
    assert result["scenario"] == "Mine, again"
    assert result["scenario_digest"] == sweep.digest
    assert result["complete"] is True


def test_a_run_that_never_finished_a_trial_still_has_a_result(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    result = folder.write_result(plan_of(), [], complete=False)
    assert result["complete"] is False
    assert result["summary"] == []


def test_the_scenario_is_kept_as_it_is_played(tmp_path: Path) -> None:
    played = plan_of({"compliance.epsilon": ["inf", 1.0]})
    folder = RunFolder.create(tmp_path, "x")
    folder.write_scenario(played)
    assert lay_out(tomllib.loads((folder.path / "scenario.toml").read_text(encoding="utf-8")), "again") == played


def test_a_line_is_a_line_whatever_its_texts_hold(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    line = {"data.source": "one\ntwo\u2028three\x85four\u00e9.csv"}
    folder.add_trial(line)
    folder.add_trial(line)
    assert read_trials(folder.path / "trials.jsonl") == [line, line]


def test_what_is_not_strict_json_is_not_written(tmp_path: Path) -> None:
    for number in [math.nan, math.inf, -math.inf]:
        folder = RunFolder.create(tmp_path, "x")
        with pytest.raises(ValueError, match="JSON"):
            folder.add_trial({"leakage": number})
        assert not (folder.path / "trials.jsonl").exists() or read_trials(folder.path / "trials.jsonl") == []


def test_a_folders_name_is_safe_as_a_folder_and_as_a_part_of_a_host_name(tmp_path: Path) -> None:
    for name in [
        "demo",
        "../../etc/passwd",
        "/root",
        "...",
        "",
        "a b\nc",
        "Größe",
        "日本語",
        "-x-",
        "CON",
        "x" * 80,
        "a" + " " * 60,
    ]:
        folder = RunFolder.create(tmp_path, name)
        assert folder.path.parent == tmp_path
        assert folder.logs.is_dir()
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", folder.path.name)


def test_runs_of_one_moment_get_folders_of_their_own(tmp_path: Path) -> None:
    assert len({RunFolder.create(tmp_path, "demo").path for _ in range(3)}) == 3


def test_missing_parents_of_a_folder_are_made(tmp_path: Path) -> None:
    assert RunFolder.create(tmp_path / "a" / "b", "demo").path.is_dir()


# A run that was broken off.


def keep(folder: RunFolder, played: Sweep, *lines: dict[str, Any]) -> None:
    """Leave what a run leaves when it is broken off after these lines."""
    folder.write_scenario(played)
    for line in lines:
        folder.add_trial(line)
    folder.write_result(played, lines, complete=False)


def infers(attacks: list[str]) -> Sweep:
    values = {
        "scenario": {"name": "x", "game": "inference", "trials": 2, "seed": 7},
        "data": {"source": "german", "protected": "sex"},
        "adversary": {"attack": attacks},
        "sweep": {"developer.rehearsal": [0.5, 1]},
    }
    return lay_out(values, "x")


ATTACKS = ["loss-test", "label-meta"]
WHOLE = [
    {"trial": trial, "seed": 7 + trial, "game": "inference", "developer.rehearsal": rehearsal, "attack": attack}
    for rehearsal in (0.5, 1.0)
    for trial in (0, 1)
    for attack in ATTACKS
]
TEXTS = [json.dumps(line) + "\n" for line in WHOLE]


def settled(folder: RunFolder, text: str) -> list[int]:
    (folder.path / "trials.jsonl").write_text(text, encoding="utf-8")
    kept = folder.settle(infers(ATTACKS))
    left = (folder.path / "trials.jsonl").read_text(encoding="utf-8")
    assert left == "".join(TEXTS[2 * (number - 1)] + TEXTS[2 * number - 1] for number in kept)
    assert read_trials(folder.path / "trials.jsonl") == [line for lines in kept.values() for line in lines]
    assert folder.settle(infers(ATTACKS)) == kept
    return list(kept)


def test_wherever_the_file_is_cut_off_only_whole_trials_are_kept(tmp_path: Path) -> None:
    folder, text = RunFolder.create(tmp_path, "x"), "".join(TEXTS)
    ends = [len("".join(TEXTS[: 2 * number])) for number in range(1, 5)]
    for length in sorted({*range(0, len(text) + 1, 17), *ends, *(end - 1 for end in ends)}):
        assert settled(folder, text[:length]) == [number for number, end in enumerate(ends, 1) if end <= length]


def test_whatever_lines_are_missing_or_spoilt_the_other_trials_are_kept_in_order(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    for chosen in [*itertools.product([True, False], repeat=len(TEXTS))][::7]:
        whole = [number for number in range(1, 5) if all(chosen[2 * number - 2 : 2 * number])]
        assert settled(folder, "".join(text for text, kept in zip(TEXTS, chosen, strict=True) if kept)) == whole
    for spoilt in ("\0\0\n", "{\n", "[1]\n", "7\n", "\n", '{"trial": 0}\n', TEXTS[2][:20] + "\n"):
        assert settled(folder, "".join([*TEXTS[:2], spoilt, *TEXTS[4:]])) == [1, 3, 4]
    assert settled(folder, "".join([*TEXTS[6:], *TEXTS[:2]])) == [1, 4], "played later, scheduled first"


def test_a_trial_of_another_configuration_counts_as_not_played(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    for change in ({"seed": 9}, {"trial": 2}, {"developer.rehearsal": 0.75}, {"attack": "logit-meta"}):
        other = json.dumps(WHOLE[0] | change) + "\n"
        assert settled(folder, "".join([other, *TEXTS[1:]])) == [2, 3, 4], change
    assert settled(folder, "".join([TEXTS[1], TEXTS[0], *TEXTS[2:]])) == [2, 3, 4], "attacks in another order"


def test_a_folder_that_nothing_was_played_in_has_no_trials(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    assert folder.settle(plan_of()) == {}
    assert not (folder.path / "trials.jsonl").exists()


def test_a_run_of_the_same_plan_is_gone_on_with(tmp_path: Path) -> None:
    played = plan_of({"compliance.epsilon": ["inf", 1.0]})
    folder = RunFolder.create(tmp_path, "x")
    keep(folder, played, line_of(played.cells[0], RIGHT))
    moved = folder.path.rename(tmp_path / "moved")
    assert RunFolder.resume(moved, plan_of({"compliance.epsilon": ["inf", 1.0]})) == RunFolder(moved, folder.run)


def test_other_programs_are_refused(tmp_path: Path) -> None:
    for before, now, named in [
        ({}, {"developer": "mine"}, '--developer was unset, not "mine"'),
        ({"developer": "mine"}, {}, '--developer was "mine", not unset'),
        ({"developer": "mine"}, {"developer": "yours"}, '--developer was "mine", not "yours"'),
        ({"developer": "mine"}, {"adversary": "mine"}, '--adversary was unset, not "mine"'),
    ]:
        folder = RunFolder.create(tmp_path, "x")
        folder.write_scenario(plan_of())
        folder.write_result(plan_of(), [], complete=False, programs=before)
        assert RunFolder.resume(folder.path, plan_of(), before) == folder
        with pytest.raises(ResumeError) as refused:
            RunFolder.resume(folder.path, plan_of(), now)
        assert str(refused.value) == f"{folder.path}: was played differently: {named}"


def test_the_key_is_32_bytes_of_its_owners(tmp_path: Path) -> None:
    one, other = RunFolder.create(tmp_path, "x"), RunFolder.create(tmp_path, "x")
    assert len(one.key) == len(other.key) == 32
    assert one.key != other.key
    assert (one.path / "secret").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        one.keep(bytes(32))


def test_without_its_key_no_run_is_gone_on_with(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    keep(folder, plan_of())
    (folder.path / "secret").unlink()
    with pytest.raises(ResumeError, match=r"secret: is missing: without its key"):
        RunFolder.resume(folder.path, plan_of())
    # By the seed alone every draw is the same without it.
    assert folder.secret(plan_of()) == WRITTEN_DOWN


def test_another_plan_is_refused_by_the_key_that_differs(tmp_path: Path) -> None:
    for sweep, options, named in [
        ({}, {"epsilon": 3.0}, "compliance.epsilon was 2.0, not 3.0"),
        ({"compliance.epsilon": [1.0, 2.0]}, {}, "sweep.compliance.epsilon was unset, not [1.0, 2.0]"),
        ({"scenario.seed": [7, 8]}, {}, "sweep.scenario.seed was unset, not [7, 8]"),
        ({"scenario.trials": [5]}, {}, "scenario.trials was 3, not 5"),
    ]:
        folder = RunFolder.create(tmp_path, "x")
        keep(folder, plan_of())
        with pytest.raises(ResumeError) as refused:
            RunFolder.resume(folder.path, plan_of(sweep, **options))
        assert named in str(refused.value)
        assert "\n" not in str(refused.value)


def test_a_folder_that_does_not_say_what_was_played_is_refused(tmp_path: Path) -> None:
    for file, change, named in [
        ("result.json", {"version": "0.0.9"}, f"was played by fairwall 0.0.9, this is {package.__version__}"),
        ("result.json", {"scenario_digest": "0" * 64}, "its scenario.toml is not what its result.json is of"),
        ("result.json", {"seed": -1}, "its scenario.toml is not what its result.json is of"),
        ("result.json", {"cells": []}, "its scenario.toml is not what its result.json is of"),
        ("result.json", {"run": None}, "does not say which run it is of"),
        ("result.json", None, "result.json: No such file or directory"),
        ("scenario.toml", None, "scenario.toml: No such file or directory"),
        ("result.json", "{", "cannot be read"),
        ("result.json", "[]", "does not say which run it is of"),
        ("scenario.toml", "[", "cannot be read"),
    ]:
        folder = RunFolder.create(tmp_path, "x")
        keep(folder, plan_of())
        path = folder.path / file
        if change is None:
            path.unlink()
        else:
            path.write_text(change if isinstance(change, str) else json.dumps(json.loads(path.read_text()) | change))
        with pytest.raises(ResumeError) as refused:
            RunFolder.resume(folder.path, plan_of())
        assert str(refused.value).startswith(f"{folder.path}: ")
        assert named in str(refused.value)
        assert "\n" not in str(refused.value)


def test_a_folder_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    with folder.held(), pytest.raises(ResumeError, match="another process is playing in it"), folder.held():
        pass
    with folder.held():
        pass
