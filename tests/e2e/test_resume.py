"""A run that was interrupted, by Ctrl-C or by a kill, and resumed: its results are those of a run without a break."""

from __future__ import annotations

import contextlib
import fcntl
import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from sim.runs.page import write_report
from tests.support.command import fairwall

PATIENCE_SECONDS = 300.0

REVEAL = """
[scenario]
name = "small"
game = "reveal"
trials = 3
seed = 7
[data]
source = "german"
test_size = 20
[compliance]
mechanism = "conceal"
[developer]
strategy = "sensing"
queries = 4
[sweep]
"compliance.epsilon" = ["inf", 10.0]
"""

INFERENCE = """
[scenario]
name = "small"
game = "inference"
trials = 3
seed = 7
[data]
source = "german"
protected = "sex"
[developer]
victims = 4
steps = 20
tune_steps = 10
[adversary]
attack = ["loss-test", "label-meta"]
shadows = 4
probes = 50
[sweep]
"developer.defence" = ["none", "fft"]
"""

CHEATING = """
[scenario]
name = "small"
game = "{game}"
trials = 3
seed = 7
[data]
source = "german"
{data}
[compliance]
mechanism = "laplace"
epsilon = 8.0
[{game}]
{asked}
"""
WASH = CHEATING.format(
    game="wash", data="test_size = 60\ntraining = 300\nsample = 300", asked="committed = true\nchecks = 20"
)
OVERFIT = CHEATING.format(
    game="overfit",
    data="test_size = 60",
    asked='attack = "both"\nrounds = 2\nflips = 5\npublic_sample = 100\npopulation = 300',
)
CURATOR = CHEATING.format(
    game="curator",
    data="people = 60",
    asked='cheat = "best"\nstrength = 3\ndefence = "commitment"\nminimum_group = 5\nrequests = 6\nopenings = 3',
)

CELLS = 2
SCENARIOS = {
    "reveal": (REVEAL, 1),
    "inference": (INFERENCE, 2),
    "wash": (WASH, 1),
    "overfit": (OVERFIT, 1),
    "curator": (CURATOR, 1),
}
"""By game, with how many lines a trial has."""


@dataclass(frozen=True)
class Whole:
    """A small run that was played without a break, with what it printed."""

    scenario: Path
    folder: Path
    printed: dict[str, Any]
    lines_a_trial: int

    @property
    def trials(self) -> list[str]:
        """The text of each trial."""
        lines = (self.folder / "trials.jsonl").read_text().splitlines(keepends=True)
        return ["".join(lines[i : i + self.lines_a_trial]) for i in range(0, len(lines), self.lines_a_trial)]

    def broken_off(self, parent: Path, text: str) -> Path:
        """Make the folder that would be there, had the run got so far."""
        folder = parent / self.folder.name
        shutil.copytree(self.folder, folder)
        (folder / "trials.jsonl").write_text(text)
        # What keeps a layer from holding may name the folder.
        result = json.loads((folder / "result.json").read_text().replace(str(self.folder), str(folder)))
        (folder / "result.json").write_text(json.dumps(result | {"complete": False, "summary": []}))
        (folder / "report.html").unlink()
        return folder


def patched(python: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in an interpreter that something is done to first."""
    program = [sys.executable, "-c", f"{python}; from sim.cli.main import main; main()"]
    return subprocess.run([*program, *arguments], capture_output=True, text=True, cwd=cwd, timeout=300, check=False)


def timeless(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**line, "seconds": 0} for line in lines]


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]


def result_of(folder: Path) -> dict[str, Any]:
    """Read what came out, without what tells when and how often parties were started."""
    result = json.loads((folder / "result.json").read_text())
    return {key: value for key, value in result.items() if key not in ("confinement", "files", "transcripts")}


def report_of(folder: Path, parent: Path) -> bytes:
    """Write the report of a run as if it had taken no time and no second start."""
    copy = parent / "timeless"
    shutil.copytree(folder, copy)
    (copy / "trials.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in timeless(lines_of(folder))))
    (copy / "result.json").write_text((copy / "result.json").read_text().replace(str(folder), "the run"))
    page = write_report(copy).read_bytes()
    shutil.rmtree(copy)
    return page.replace(b" Parties were started more than once: these were active each time.", b"")


def written(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Tell what is in a folder, and when it was written."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def whole_run(game: str, parent: Path) -> Whole:
    text, lines_a_trial = SCENARIOS[game]
    scenario = parent / "small.toml"
    scenario.write_text(text)
    done = fairwall("run", str(scenario), "--out", str(parent), "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    return Whole(scenario, Path(printed["run_dir"]), printed, lines_a_trial)


@pytest.fixture(scope="module", params=["reveal", pytest.param("inference", marks=pytest.mark.slow)])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    if request.param == "inference":
        pytest.importorskip("torch", reason="the training extra is not installed")
        return whole_run("inference", tmp_path_factory.mktemp("inference"))
    alone: Whole = request.getfixturevalue("reveal")
    return alone


@pytest.fixture(scope="module")
def reveal(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return whole_run("reveal", tmp_path_factory.mktemp("reveal"))


@dataclass(frozen=True)
class Live:
    """A run that is being played."""

    command: subprocess.Popen[str]
    parent: Path

    @property
    def folder(self) -> Path:
        return next(path.parent for path in self.parent.glob("*/logs"))

    @property
    def parties(self) -> list[psutil.Process]:
        return psutil.Process(self.command.pid).children()

    def finished(self) -> int:
        """How many lines of trials there are."""
        return sum(path.read_text().count("\n") for path in self.parent.glob("*/trials.jsonl"))

    def logged(self, party: str, text: str) -> bool:
        return any(text in log.read_text() for log in self.parent.glob(f"*/logs/{party}.log"))


@contextlib.contextmanager
def live(parent: Path, scenario: str, *options: str) -> Iterator[Live]:
    command = subprocess.Popen(
        [sys.executable, "-m", "sim", "run", scenario, *options, "--out", str(parent)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Live(command, parent)
    finally:
        command.kill()
        command.communicate()


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def assert_all_left(parties: list[psutil.Process], seconds: float) -> None:
    _, alive = psutil.wait_procs(parties, timeout=seconds)
    assert not alive


# What is resumed.


@pytest.mark.check
def test_a_run_that_is_gone_on_with_equals_one_without_a_break(whole: Whole, tmp_path: Path) -> None:
    first, second, third, fourth, *_ = whole.trials
    # Of the second trial a line is missing, a disk that was full left a hole, and the fifth was being written.
    damaged = second[: second.rfind("{")] + "\0" * 9 + "\n"
    folder = whole.broken_off(tmp_path, f"{first}{damaged}{third}{fourth}{whole.trials[4][:-9]}")
    done = fairwall("run", str(whole.scenario), "--resume", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    # What was finished is there as it was, to the byte; the rest was played again, and in the order of the others.
    kept = (folder / "trials.jsonl").read_text()
    assert all(trial in kept for trial in (first, third, fourth))
    log = (folder / "logs" / "developer.log").read_text()
    assert [log.count(f" deal deal-{number}:") for number in range(1, 7)] == [1, 2, 1, 1, 2, 2]
    assert timeless(lines_of(folder)) == timeless(lines_of(whole.folder))
    assert (folder / "scenario.toml").read_bytes() == (whole.folder / "scenario.toml").read_bytes()
    assert result_of(folder) == result_of(whole.folder)
    assert report_of(folder, tmp_path) == report_of(whole.folder, tmp_path)
    printed = json.loads(done.stdout)
    assert printed == whole.printed | {"run_dir": str(folder), "trials": lines_of(folder)}


@pytest.mark.check
@pytest.mark.parametrize("game", ["wash", "overfit", "curator"])
def test_a_game_of_cheating_is_gone_on_with(game: str, tmp_path: Path) -> None:
    (before := tmp_path / "before").mkdir()
    (after := tmp_path / "after").mkdir()
    whole = whole_run(game, before)
    folder = whole.broken_off(after, whole.trials[0] + whole.trials[1][:-9])
    done = fairwall("run", str(whole.scenario), "--resume", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    assert lines_of(folder)[0] == lines_of(whole.folder)[0]
    assert timeless(lines_of(folder)) == timeless(lines_of(whole.folder))
    assert result_of(folder) == result_of(whole.folder)
    assert fairwall("verify", str(folder)).returncode == 0


@pytest.mark.check
def test_a_finished_run_plays_nothing_and_prints_the_same(whole: Whole) -> None:
    before = written(whole.folder)
    done = fairwall("run", str(whole.scenario), "--resume", str(whole.folder), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == whole.printed
    after = written(whole.folder)
    assert {name: text for name, (text, _) in after.items()} == {name: text for name, (text, _) in before.items()}
    for name in ("trials.jsonl", "compliance.log", "developer.log", "adversary.log"):
        assert after[name] == before[name], "nothing was written, nobody started"


@pytest.mark.slow
def test_a_folder_that_was_renamed_is_gone_on_with(reveal: Whole, tmp_path: Path) -> None:
    folder = reveal.broken_off(tmp_path, reveal.trials[0]).rename(tmp_path / "The best of my runs!")
    done = fairwall("run", str(reveal.scenario), "--resume", str(folder))
    assert done.returncode == 0, done.stderr
    assert "6/6" in done.stderr
    assert result_of(folder) == result_of(reveal.folder)


# What is refused: with one line, and not a byte written.


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("--seed 8", "scenario.seed was 7, not 8"),
        ("--trials 4", "scenario.trials was 3, not 4"),
        ("--set compliance.epsilon=[10.0]", 'sweep.compliance.epsilon was ["inf", 10.0], not [10.0]'),
    ],
)
def test_another_configuration_is_refused_by_name(reveal: Whole, tmp_path: Path, options: str, named: str) -> None:
    folder = reveal.broken_off(tmp_path, reveal.trials[0])
    before = written(folder)
    done = fairwall("run", str(reveal.scenario), *options.split(), "--resume", str(folder))
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"fairwall: {folder}: was played differently: ")
    assert named in line
    assert written(folder) == before


def test_another_version_is_refused_by_name(reveal: Whole, tmp_path: Path) -> None:
    folder = reveal.broken_off(tmp_path, reveal.trials[0])
    older = json.loads((folder / "result.json").read_text()) | {"version": "0.0.9"}
    (folder / "result.json").write_text(json.dumps(older))
    done = fairwall("run", str(reveal.scenario), "--resume", str(folder))
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert "was played by fairwall 0.0.9, this is " in line


def test_a_folder_that_another_process_holds_is_refused(reveal: Whole, tmp_path: Path) -> None:
    folder = reveal.broken_off(tmp_path, reveal.trials[0])
    before = written(folder)
    with (folder / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = fairwall("run", str(reveal.scenario), "--resume", str(folder))
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr.splitlines()[-1]
        == f"fairwall: {folder}: another process is playing in it: wait for its end, or end it"
    )
    assert written(folder) == before


# Broken off for real.


@pytest.mark.check
@pytest.mark.parametrize("signum", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGKILL])
@pytest.mark.parametrize("game", ["reveal", pytest.param("inference", marks=pytest.mark.slow)])
def test_a_run_goes_on_after_it_was_ended_from_outside(game: str, signum: signal.Signals, tmp_path: Path) -> None:
    text, lines_a_trial = SCENARIOS[game]
    scenario = tmp_path / "small.toml"
    scenario.write_text(text)
    changed = {"reveal": "developer.perturbation=0.5", "inference": "adversary.probes=60"}[game]
    options = (str(scenario), "--trials", "12", "--set", changed)
    with live(tmp_path, *options) as running:
        wait_until(lambda: running.finished() >= 2 * lines_a_trial)
        parties, folder = running.parties, running.folder
        running.command.send_signal(signum)
        _, stderr = running.command.communicate(timeout=300)
    assert len(parties) == 3
    assert_all_left(parties, 10)
    assert json.loads((folder / "result.json").read_text())["complete"] is False
    assert fairwall("report", str(folder)).returncode == 0
    kept = (folder / "trials.jsonl").read_text()
    assert kept.count("\n") < int(options[2]) * CELLS * lines_a_trial, "it was too quick to be interrupted"
    resumed = ["run", *options, "--resume", str(folder)]
    if signum == signal.SIGKILL:
        (folder / "trials.jsonl").write_text(kept + kept[:99])
    else:
        assert running.command.returncode == 130
        told = stderr.splitlines()[-1]
        assert told.startswith("fairwall: interrupted; finished trials are kept: fairwall run ")
        program, *resumed = shlex.split(told.split(": ", 2)[2])
        assert program == "fairwall"
    done = fairwall(*resumed)
    assert done.returncode == 0, done.stderr
    assert (folder / "trials.jsonl").read_text().startswith(kept[: kept.rfind('{"trial"')])
    done = fairwall("run", *options, "--out", str(tmp_path / "whole"), "--json")
    assert timeless(lines_of(folder)) == timeless(json.loads(done.stdout)["trials"])
    assert json.loads((folder / "result.json").read_text())["summary"] == json.loads(done.stdout)["summary"]


LONG = INFERENCE.split("[sweep]", maxsplit=1)[0]
LONG_SWEEPS = {
    "developer": '[sweep]\n"developer.steps" = [20, 100000]\n',
    "adversary": '[sweep]\n"adversary.shadows" = [4, 2000]\n',
}


@pytest.mark.parametrize(
    ("party", "signum"),
    [
        pytest.param("developer", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("adversary", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("developer", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("adversary", signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_in_the_middle_of_training_ends_everybody(
    party: str, signum: signal.Signals, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="the training extra is not installed")
    scenario = tmp_path / "long.toml"
    # In the second cell either the developer's models take long, or as many of the adversary's as there are.
    steps = {"developer": "steps = 20", "adversary": "steps = 500"}[party]
    scenario.write_text(LONG.replace("steps = 20", steps, 1) + LONG_SWEEPS[party])
    with live(tmp_path, str(scenario), "--trials", "1") as running:
        wait_until(lambda: running.logged(party, " deal deal-2:"))
        time.sleep(0.5)  # into the training, which takes far longer
        parties, folder = running.parties, running.folder
        running.command.send_signal(signum)
        _, stderr = running.command.communicate(timeout=300)
    assert running.command.returncode == 130
    assert stderr.splitlines()[-1].startswith("fairwall: interrupted; finished trials are kept: fairwall run ")
    assert "Traceback" not in stderr
    assert len(parties) == 3
    assert_all_left(parties, 0.1)
    assert [line["trial"] for line in lines_of(folder)] == [0, 0], "of the first cell"
    assert not any("Traceback" in log.read_text() for log in (folder / "logs").iterdir())
    result = json.loads((folder / "result.json").read_text())
    assert (result["complete"], len(result["summary"])) == (False, 2)
    assert fairwall("report", str(folder)).returncode == 0


@pytest.mark.slow
def test_a_run_is_not_joined_by_another_and_ends_parties_that_hang(tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(REVEAL)
    with live(tmp_path, str(scenario), "--trials", "100000") as running:
        wait_until(lambda: running.finished() > 0)
        second = fairwall("run", str(scenario), "--trials", "100000", "--resume", str(running.folder))
        assert second.returncode == 2
        assert "another process is playing in it" in second.stderr
        parties = running.parties
        for party in parties:
            party.suspend()
        running.command.send_signal(signal.SIGINT)
        running.command.communicate(timeout=300)
    assert running.command.returncode == 130
    assert_all_left(parties, 0.1)


# The extra that is missing.


@pytest.mark.check
@pytest.mark.parametrize(
    "hidden", ["sys.modules['torch'] = None", pytest.param("sys.meta_path.insert(0, Hidden())", marks=pytest.mark.slow)]
)
def test_without_the_training_extra_a_line_says_what_to_install(tmp_path: Path, hidden: str) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(INFERENCE)
    finder = """
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
"""
    done = patched(f"import sys\n{finder}\n{hidden}\npass", "run", str(scenario), "--out", "runs", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "pip install 'fairwall[training]'" in line
    assert not (tmp_path / "runs").exists(), "nothing was started"


@pytest.mark.check
def test_a_party_without_the_extra_ends_with_one_line(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the training extra is not installed")
    scenario = tmp_path / "small.toml"
    scenario.write_text(INFERENCE)
    # An interpreter of the parties' own, which does not find PyTorch.
    other = tmp_path / "python"
    other.write_text(
        f"#!{sys.executable}\n"
        "import runpy, sys\n"
        "sys.modules['torch'] = None\n"
        "sys.argv = sys.argv[3:]\n"
        "runpy.run_module(sys.argv[0], run_name='__main__')\n"
    )
    other.chmod(0o700)
    done = fairwall("run", scenario, "--out", tmp_path, python=str(other))
    assert (done.returncode, done.stdout) == (1, "")
    assert "fairwall: developer ended with exit status 2 before the run was over" in done.stderr
    assert "  developer| developer: training neural networks needs PyTorch: pip install" in done.stderr
    assert "Traceback" not in done.stderr
