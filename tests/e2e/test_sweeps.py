"""A run in several sessions at once, and in shards: the rows of one session, whatever becomes of its workers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from sim.play import jobs
from sim.verify.check import verify
from tests.support.command import SMALL, fairwall, played

SWEEP = f'{SMALL}[sweep]\n"compliance.epsilon" = ["inf", 10.0]\n"developer.queries" = [3, 4]\n'
TRIALS = 12
PARTIES = ("compliance", "developer", "adversary")
RANDOM = ("--set", "scenario.secret=random")
PATIENCE_SECONDS = 300.0
BACKENDS = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(package) is None, reason=f"needs the extra {name}"))
    for name, package in jobs.BACKENDS.items()
]


def rows(folder: Path) -> str:
    """Give a run's lines as they are written, but for the time that each took."""
    return re.sub(r'"seconds": [0-9.e-]+', "", (folder / "trials.jsonl").read_text())


def result_of(folder: Path) -> dict[str, object]:
    result: dict[str, object] = json.loads((folder / "result.json").read_text())
    return result


def said_by(*arguments: object) -> str:
    """Have the command refuse something, and give the one line that it says."""
    done = fairwall(*arguments)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (line,) = done.stderr.splitlines()
    return line


def merged(folders: list[Path], parent: Path) -> Path:
    done = fairwall("results", "merge", *folders, "--out", parent)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.removeprefix("run: ").strip())


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scenario") / "small.toml"
    path.write_text(SWEEP)
    return path


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "key"
    path.touch(mode=0o600)
    path.write_bytes(bytes(range(32)))
    return path


@pytest.fixture(scope="module")
def whole(scenario: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("whole"), scenario)


@pytest.fixture(scope="module")
def shards(scenario: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    parent = tmp_path_factory.mktemp("shards")
    return [played(parent, scenario, "--shard", f"{number}/3") for number in (1, 2, 3)]


# The same rows.


@pytest.fixture(scope="module")
def at_once(scenario: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Where the machine is busy, one session may have played all before the other has started.
    for _ in range(5):
        run = played(tmp_path_factory.mktemp("at-once"), scenario, "--jobs", 2)
        if len(sessions(run)) == 2:
            break
    return run


def sessions(run: Path) -> set[str]:
    """Return the numbers of the sessions that have recorded a run."""
    return {path.stem for path in run.glob("transcript/*/*.bin")}


@pytest.mark.check
def test_the_same_rows_come_out_of_sessions_at_once(at_once: Path, whole: Path) -> None:
    assert rows(at_once) == rows(whole)
    assert result_of(at_once)["summary"] == result_of(whole)["summary"]
    assert len(sessions(at_once)) == 2, "one number a session"
    assert not [*at_once.glob("tray-*")]


@pytest.mark.check
def test_a_run_of_sessions_at_once_verifies_replays_and_resumes(scenario: Path, at_once: Path, whole: Path) -> None:
    for command in ("verify", "replay"):
        done = fairwall(command, at_once)
        assert done.returncode == 0, done.stdout
    again = fairwall("run", scenario, "--jobs", 2, "--resume", at_once, "--json")
    assert (again.returncode, rows(at_once)) == (0, rows(whole))


@pytest.mark.slow
def test_the_same_rows_come_out_of_merged_shards(
    scenario: Path, whole: Path, shards: list[Path], tmp_path: Path
) -> None:
    assert [rows(shard).count("\n") for shard in shards] == [4, 4, 4]
    folder = merged([shards[2], shards[0], shards[1]], tmp_path)
    assert rows(folder) == rows(whole)
    result, other = result_of(folder), result_of(whole)
    assert (result["complete"], result["summary"]) == (True, other["summary"])
    for run in (*shards, folder):
        done = fairwall("verify", run)
        assert done.returncode == 0, done.stdout
    assert fairwall("replay", folder).returncode == 0
    assert fairwall("replay", folder, "--party", "developer").returncode == 0
    assert fairwall("report", folder).returncode == 0
    again = fairwall("run", scenario, "--resume", folder, "--json")
    assert (again.returncode, rows(folder)) == (0, rows(whole))


@pytest.mark.slow
def test_shards_of_a_secret_run_share_its_key(scenario: Path, key: Path, whole: Path, tmp_path: Path) -> None:
    own = ("--secret", key, *RANDOM)
    one = played(tmp_path, scenario, *own)
    parts = [played(tmp_path, scenario, *own, "--shard", f"{number}/2", "--jobs", number) for number in (1, 2)]
    folder = merged(parts, tmp_path / "merged")
    assert rows(folder) == rows(one) != rows(whole)
    assert fairwall("verify", folder).returncode == 0
    assert fairwall("replay", folder).returncode == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in (folder / "secret", *folder.glob("keys/*")))
    other = key.with_name("other")
    other.touch(mode=0o600)
    other.write_bytes(bytes(32))
    foreign = played(tmp_path, scenario, "--secret", other, *RANDOM, "--shard", "2/2")
    line = said_by("results", "merge", parts[0], foreign, "--out", tmp_path / "none")
    assert "was drawn from another secret than" in line


@pytest.mark.slow
def test_a_shard_is_resumed_as_that_shard(scenario: Path, shards: list[Path], tmp_path: Path) -> None:
    folder = shutil.copytree(shards[1], tmp_path / shards[1].name)
    before = rows(folder)
    (folder / "trials.jsonl").write_text("".join((folder / "trials.jsonl").read_text().splitlines(True)[:2]))
    assert "--shard was 2/3, not 1/1" in said_by("run", scenario, "--resume", folder)
    done = fairwall("run", scenario, "--resume", folder, "--shard", "2/3", "--jobs", 2)
    assert (done.returncode, rows(folder)) == (0, before), done.stderr
    assert fairwall("verify", folder).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_the_same_rows_come_out_of_every_backend(backend: str, scenario: Path, whole: Path, tmp_path: Path) -> None:
    folder = played(tmp_path, scenario, "--jobs", 2, "--backend", backend)
    assert rows(folder) == rows(whole)
    assert fairwall("verify", folder).returncode == 0


# What verify finds in a merged run.


@pytest.mark.check
@pytest.mark.parametrize("keys", ["changed", "gone"])
def test_a_part_under_another_key_is_found(keys: str, shards: list[Path], tmp_path: Path) -> None:
    folder = merged(shards, tmp_path)
    (first, *_) = sorted(folder.glob("keys/*"))
    first.write_bytes(bytes(32)) if keys == "changed" else first.unlink()
    done = fairwall("verify", folder)
    assert done.returncode == 1
    assert f"file: keys/{first.name}" in done.stdout
    assert ("for another scenario than scenario.toml, or under another key" in done.stdout) == (keys == "changed")


@pytest.mark.check
def test_a_session_of_another_run_is_found(shards: list[Path], tmp_path: Path) -> None:
    folder = merged(shards, tmp_path)
    result = result_of(folder)
    parts = result["parts"]
    assert isinstance(parts, list)
    (folder / "result.json").write_text(json.dumps(result | {"parts": parts[:2]}))
    done = fairwall("verify", folder)
    assert done.returncode == 1
    assert "chain: transcript: is of run " in done.stdout


# What is refused: with one line.


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--shard", "0/3"], "--shard: 0/3: of 3 shards the number is from 1 to 3"),
        (["--shard", "4/3"], "--shard: 4/3: of 3 shards the number is from 1 to 3"),
        (["--shard", "2"], "--shard: '2': is to be NUMBER/OF, as 2/3"),
        (["--shard", "-1/3"], "--shard: '-1/3': is to be NUMBER/OF, as 2/3"),
        (["--shard", "1/2", *RANDOM], '--shard: with scenario.secret = "random" all 2 shards are drawn from one key'),
        (["--jobs", "0"], "--jobs: 0: at least 1 session is played at once"),
        (["--jobs", "2", "--backend", "spark"], "--backend: 'spark' is none of loky, dask, ray"),
        (["--secret", "nowhere"], "--secret: nowhere: cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_played_is_refused(scenario: Path, tmp_path: Path, options: list[str], said: str) -> None:
    assert said_by("run", scenario, *options, "--out", tmp_path / "runs").startswith(f"fairwall: {said}")
    assert not (tmp_path / "runs").exists()


@pytest.mark.check
def test_data_that_cannot_be_played_end_sessions_that_start(tmp_path: Path) -> None:
    scenario, table = tmp_path / "small.toml", tmp_path / "people.csv"
    table.write_text("group,label\n" + "a,1\nb,0\n" * 5)
    data = f'source = "{table}"\nprotected = "group"\nadvantaged = "a"\nlabel = "label"\npositive = "1"\n'
    data += "test_size = 5\n"
    scenario.write_text(f"{SMALL[: SMALL.index('source')]}{data}{SMALL[SMALL.index('[compliance]') :]}")
    with begun(scenario, tmp_path / "runs") as running:
        _, stderr = running.command.communicate(timeout=300)
    assert running.command.returncode == 2
    (line,) = stderr.splitlines()
    assert "people.csv: no column is left as a feature" in line
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("mode", "size", "said"),
    [
        (0o644, 32, "others than its owner can read it; chmod 600 it"),
        (0o600, 31, "holds 31 bytes, and a run's key has 32"),
    ],
)
def test_a_file_that_is_no_key_is_refused(scenario: Path, tmp_path: Path, mode: int, size: int, said: str) -> None:
    path = tmp_path / "key"
    path.write_bytes(bytes(size))
    path.chmod(mode)
    assert said_by("run", scenario, "--secret", path) == f"fairwall: --secret: {path}: {said}"


@pytest.mark.few(1)
@pytest.mark.parametrize(("backend", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_a_backend_that_is_not_installed_is_refused(backend: str, package: str, scenario: Path) -> None:
    hidden = f"import sys; sys.modules[{package!r}] = None; from sim.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "run", str(scenario), "--backend", backend],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.endswith(f"{backend} needs {package}, which is not installed: pip install 'fairwall[{backend}]'")


@pytest.mark.check
def test_shards_that_are_not_one_run_are_not_merged(
    scenario: Path, shards: list[Path], whole: Path, tmp_path: Path
) -> None:
    first, second, third = shards
    assert said_by("results", "merge", first, third).endswith(
        "4 trials are missing, 2, 5, 8, 11: shard 2 of 3 is not among them"
    )
    assert said_by("results", "merge", first, second, second, third).endswith(f"is shard 2/3, as {second} is")
    assert "is shard 1/3, and" in said_by("results", "merge", whole, first) + said_by("results", "merge", first, whole)
    assert "not a run's folder: result.json: No such file or directory" in said_by("results", "merge", first, tmp_path)
    seeded = played(tmp_path, scenario, "--shard", "2/3", "--seed", 8)
    assert "scenario.seed was 7, not 8" in said_by("results", "merge", first, seeded, third)
    changed = shutil.copytree(second, tmp_path / "changed")
    (changed / "trials.jsonl").write_text((changed / "trials.jsonl").read_text().replace(":", " :", 1))
    assert "trials.jsonl is not what it was when the run ended" in said_by("results", "merge", first, changed, third)
    for values, said in [
        ({"version": "0.0.9"}, "was played by fairwall 0.0.9, this is "),
        ({"complete": False}, "was not played to its end"),
        ({"parts": []}, "was merged already"),
    ]:
        (changed / "result.json").write_text(json.dumps(result_of(second) | values))
        assert said in said_by("results", "merge", first, changed, third)


# Workers that end.


@dataclass(frozen=True)
class Live:
    """A run in several sessions that is being played."""

    command: subprocess.Popen[str]
    parent: Path

    @property
    def folder(self) -> Path:
        return next(path.parent for path in self.parent.glob("*/logs"))

    @property
    def processes(self) -> list[psutil.Process]:
        return psutil.Process(self.command.pid).children(recursive=True)

    def parties(self, of: psutil.Process) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return [child for child in of.children() if {*child.cmdline()} & {*PARTIES}]
        return []

    @property
    def workers(self) -> list[psutil.Process]:
        """Those that have all their parties."""
        return [process for process in self.processes if len(self.parties(process)) == len(PARTIES)]

    def began(self) -> bool:
        return any(self.parent.glob("*/tray-*"))

    def finished(self) -> int:
        return sum(path.read_text().count("\n") for path in self.parent.glob("*/trials.jsonl"))


@contextlib.contextmanager
def begun(scenario: Path, parent: Path, *options: str) -> Iterator[Live]:
    """Begin a run in two sessions, as a terminal does: in a group of its own."""
    command = subprocess.Popen(
        [sys.executable, "-m", "sim", "run", str(scenario), "--jobs", "2", *options, "--out", str(parent)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield Live(command, parent)
    finally:
        command.kill()
        command.communicate(timeout=300)


@contextlib.contextmanager
def live(scenario: Path, parent: Path, *options: str) -> Iterator[Live]:
    """Play a run that is long enough to be broken off, in two sessions that have both begun."""
    with begun(scenario, parent, *options) as running:
        wait_until(lambda: running.finished() > 3 and len(running.workers) == 2)
        yield running


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def assert_all_left(processes: list[psutil.Process], seconds: float = 10.0) -> None:
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    assert not alive


LONG = ("--trials", "100")


@pytest.fixture(scope="module")
def long(scenario: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return rows(played(tmp_path_factory.mktemp("long"), scenario, *LONG))


def assert_resumes(long: str, folder: Path, *arguments: object) -> None:
    assert rows(folder).count("\n") < 400, "it was too quick to be broken off"
    done = fairwall(*arguments)
    assert done.returncode == 0, done.stderr
    assert rows(folder) == long
    assert not [*folder.glob("tray-*")]


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_killed_worker_takes_its_parties_along(backend: str, scenario: Path, long: str, tmp_path: Path) -> None:
    with live(scenario, tmp_path / "runs", *LONG, "--backend", backend) as running:
        folder, worker = running.folder, running.workers[0]
        parties = running.parties(worker)
        worker.kill()
        assert_all_left(parties)
        rest = running.processes
        _, stderr = running.command.communicate(timeout=300)
        assert_all_left(rest)
    assert running.command.returncode == 1
    said = re.fullmatch(
        r"fairwall: a worker was lost(?: \(\w+\))?: (\d+) of 400 trials are missing: [\d, -]+; "
        r"what is finished is kept, and --resume \S+ plays them",
        stderr.splitlines()[-1],
    )
    assert said is not None, stderr
    assert rows(folder).count("\n") == 400 - int(said[1])
    assert result_of(folder)["complete"] is False
    assert_resumes(long, folder, "run", scenario, *LONG, "--jobs", 2, "--resume", folder)


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_interrupt_ends_all_sessions_in_order(
    backend: str, signum: signal.Signals, scenario: Path, long: str, tmp_path: Path
) -> None:
    with live(scenario, tmp_path / "runs", *LONG, "--backend", backend) as running:
        folder, rest = running.folder, running.processes
        if signum == signal.SIGINT:
            os.killpg(running.command.pid, signum)  # as a terminal does at Ctrl-C
        else:
            running.command.send_signal(signum)
        _, stderr = running.command.communicate(timeout=300)
        assert_all_left(rest)
    assert running.command.returncode == 130
    *_, shown, told = stderr.splitlines()
    assert shown.startswith("small: trials "), stderr
    assert told.startswith("fairwall: interrupted; finished trials are kept: fairwall run ")
    assert {finding.check for finding in verify(folder).findings} == {"open"}
    assert_resumes(long, folder, *shlex.split(told.split(": ", 2)[2])[1:])
    assert {finding.check for finding in verify(folder).findings} <= {"open"}, "a session may have been cut off"


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_ctrl_c_while_sessions_start_is_one_line(backend: str, scenario: Path, tmp_path: Path) -> None:
    for number, seconds in enumerate((0.5, 1.5)):
        with begun(scenario, tmp_path / str(number), *LONG, "--backend", backend) as running:
            wait_until(running.began)
            time.sleep(seconds)
            rest = running.processes
            os.killpg(running.command.pid, signal.SIGINT)
            _, stderr = running.command.communicate(timeout=300)
            assert_all_left(rest)
        assert running.command.returncode == 130
        *shown, told = stderr.splitlines()
        assert all(line.startswith("small: trials ") for line in shown), stderr
        assert told.startswith("fairwall: interrupted; finished trials are kept: ")


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_when_the_runs_own_process_is_killed_all_sessions_leave(
    backend: str, scenario: Path, long: str, tmp_path: Path
) -> None:
    with live(scenario, tmp_path / "runs", *LONG, "--backend", backend) as running:
        folder, workers = running.folder, running.workers
        rest = [*workers, *(party for worker in workers for party in running.parties(worker))]
        running.command.kill()
        assert_all_left(rest)
    assert [*folder.glob("tray-*")]
    assert_resumes(long, folder, "run", scenario, *LONG, "--jobs", 2, "--resume", folder)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_when_a_party_dies_the_other_sessions_leave(backend: str, scenario: Path, long: str, tmp_path: Path) -> None:
    with live(scenario, tmp_path / "runs", *LONG, "--backend", backend) as running:
        folder, rest = running.folder, running.processes
        running.parties(running.workers[1])[1].kill()
        _, stderr = running.command.communicate(timeout=300)
        assert_all_left(rest)
    assert running.command.returncode == 1
    assert re.search(r"^fairwall: (compliance|developer|adversary) was killed by SIGKILL", stderr, re.MULTILINE)
    assert_resumes(long, folder, "run", scenario, *LONG, "--jobs", 2, "--resume", folder)
