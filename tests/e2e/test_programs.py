"""A program of somebody else's in a party's place: started, recorded, resumed with, refused, and never left behind."""

from __future__ import annotations

import json
import secrets
import shlex
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.command import SMALL, fairwall

RANDOM = SMALL.replace("seed = 7", 'seed = 7\nsecret = "random"')
OURS = shlex.join([sys.executable, "-I", "-m", "developer"])


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "small.toml"
    file.write_text(RANDOM)
    return file


def shell(text: str) -> str:
    """Give a command that runs a script; what the launcher adds is "$@" there."""
    return shlex.join(["sh", "-c", text, "sh"])


def one_line(done: subprocess.CompletedProcess[str], status: int, text: str) -> None:
    assert (done.returncode, done.stdout) == (status, "")
    assert text in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.check
def test_a_run_says_whose_programs_played_and_goes_on_with_the_same_alone(scenario: Path, tmp_path: Path) -> None:
    done = fairwall("run", scenario, "--developer", OURS, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = Path(json.loads(done.stdout)["run_dir"])
    assert json.loads((folder / "result.json").read_text())["programs"] == {"developer": OURS}
    assert "as the program itself says" in (folder / "report.html").read_text()
    assert fairwall("verify", folder).returncode == 0
    # The other parties can be played again, and no command of a folder is run.
    one_line(fairwall("replay", folder), 2, "developer was a program that is not fairwall's: cannot be replayed")
    one_line(fairwall("replay", folder, "--party", "developer"), 2, "cannot be replayed")
    one_line(fairwall("replay", folder, "--decoder", "ep"), 2, "cannot be replayed")
    assert fairwall("replay", folder, "--party", "compliance").returncode == 0
    whole = (folder / "trials.jsonl").read_text()
    (folder / "trials.jsonl").write_text(whole.splitlines(keepends=True)[0])
    one_line(fairwall("run", scenario, "--resume", folder), 2, "was played differently: --developer was ")
    one_line(fairwall("run", scenario, "--developer", "true", "--resume", folder), 2, "was played differently")
    assert fairwall("run", scenario, "--developer", OURS, "--resume", folder).returncode == 0
    assert [line.split('"n":')[1] for line in (folder / "trials.jsonl").read_text().splitlines()] == [
        line.split('"n":')[1] for line in whole.splitlines()
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("command", "text"),
    [
        pytest.param("true", "developer ended with exit status 0 before the run was over", marks=pytest.mark.slow),
        (shell("echo ready; exec cat"), "developer: its first line is no JSON object: 'ready\\n'"),
        (shell("""echo '{"address": "example.org:80"}'; exec cat"""), "its first line is to have an address"),
    ],
)
def test_a_program_that_says_something_else_ends_the_run(
    scenario: Path, tmp_path: Path, command: str, text: str
) -> None:
    done = fairwall("run", scenario, "--developer", command, "--out", tmp_path / "runs", cwd=tmp_path, seconds=300)
    one_line(done, 1, text)
    (folder,) = (tmp_path / "runs").iterdir()
    assert json.loads((folder / "result.json").read_text())["complete"] is False


@pytest.mark.check
def test_what_a_program_started_ends_with_it(scenario: Path, tmp_path: Path) -> None:
    mark = f"1{secrets.randbelow(10**8):08}"
    done = fairwall("run", scenario, "--developer", shell(f'sleep {mark} & exec {OURS} "$@"'), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not [one for one in psutil.process_iter(["cmdline"]) if mark in (one.info["cmdline"] or ())]


@pytest.mark.parametrize("party", ["compliance", pytest.param("adversary", marks=pytest.mark.slow)])
def test_every_party_can_be_another(scenario: Path, tmp_path: Path, party: str) -> None:
    command = shlex.join([sys.executable, "-I", "-m", party])
    done = fairwall("run", scenario, "--trials", "1", f"--{party}", command, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert fairwall("verify", json.loads(done.stdout)["run_dir"]).returncode == 0
