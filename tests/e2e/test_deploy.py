"""What deploy/ has is sound: the unit's command runs as it stands, within what the unit leaves it, and answers."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fairwall.client import AuditClient
from sim.deployment.certificates import write
from tests.support.loans_deployment import free_port

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "fairwall-compliance.service"
NUMBERS = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
EXPOSED_MOST = 18
"""Of a hundred, as `systemd-analyze security` counts."""

needs_analyze = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")


def lines(key: str) -> list[str]:
    return re.findall(rf"(?m)^{key}=(.*)$", UNIT.read_text())


@dataclass(frozen=True)
class Place:
    """A folder that stands for the machine."""

    folder: Path
    port: int

    def moved(self, text: str) -> str:
        """Let a text that names the machine's places name the folder's, and the environment that the tests run in."""
        own = Path(sys.executable).parent
        text = text.replace("/opt/fairwall/bin", str(own)).replace("7443", str(self.port))
        return re.sub(r"(?<![\w.])/(etc|var/lib)/fairwall", rf"{self.folder}/\1/fairwall", text)

    @property
    def policy(self) -> Path:
        return self.folder / "etc/fairwall/policy.toml"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Everything as docs/operating.md says to lay it."""
    place = Place(tmp_path, free_port())
    for folder in ("etc/fairwall/data", "var/lib/fairwall", "var/lib/fairwall-seal"):
        (tmp_path / folder).mkdir(parents=True, mode=0o700)
    place.policy.write_text(place.moved((DEPLOY / "policy.toml").read_text()))
    shutil.copyfile(ROOT / "docs/example/loans.csv", tmp_path / "etc/fairwall/data/loans.csv")
    write(tmp_path / "etc/fairwall/certificates", "loans", ("alice", "bob"), 1)
    return place


LEFT = """
import ctypes, json, os, struct, sys
numbers, command = json.loads(sys.argv[1]), sys.argv[2:]
libc = ctypes.CDLL(None, use_errno=True)
os.umask(0o077)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # NoNewPrivileges=
steps = [(0x20, 0, 0, 0)]  # SystemCallFilter=, SystemCallErrorNumber=
for number in numbers:
    steps += [(0x15, 0, 1, number), (6, 0, 0, 0x7FFF0000)]
steps += [(6, 0, 0, 0x50001 if numbers else 0x7FFF0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
filter_ = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(program))
assert libc.prctl(22, 2, filter_, 0, 0) == 0
os.execv(command[0], command)
"""


def allowed() -> list[int]:
    """The numbers of the system calls that the unit leaves its service; none where they cannot be told here."""
    if shutil.which("systemd-analyze") is None or not NUMBERS.exists():
        return []

    def names(word: str) -> set[str]:
        if not word.startswith("@"):
            return {word}
        told = subprocess.run(["systemd-analyze", "syscall-filter", word], capture_output=True, text=True, check=True)
        return {name for each in re.findall(r"(?m)^ +([@\w-]+)$", told.stdout) for name in names(each)}

    left: set[str] = set()
    for line in lines("SystemCallFilter"):
        found = {name for word in line.removeprefix("~").split() for name in names(word)}
        left = left - found if line.startswith("~") else left | found
    numbers = dict(re.findall(r"#define __NR_(\w+)\s+(\d+)", NUMBERS.read_text()))
    return sorted(int(numbers[name]) for name in left if name in numbers)


@contextmanager
def started(place: Place, numbers: list[int]) -> Iterator[subprocess.Popen[str]]:
    """Start the unit's command, with its environment and within what it leaves of system calls and memory."""
    (command,) = lines("ExecStart")
    environment = dict(line.split("=", 1) for line in lines("Environment"))
    with (
        (place.folder / "log").open("a") as log,
        subprocess.Popen(
            [sys.executable, "-c", LEFT, json.dumps(numbers), *shlex.split(place.moved(command))],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd="/",
            env=environment,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def health(place: Place) -> tuple[int, str]:
    """Run the compose file's health check."""
    ((words),) = re.findall(r"(?m)^      test: (\[.*\])$", (DEPLOY / "compose.yaml").read_text())
    kind, *command = json.loads(place.moved(words))
    assert kind == "CMD"
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    return ended.returncode, ended.stdout


@pytest.mark.check
def test_the_unit_s_command_serves_within_what_the_unit_leaves_it(place: Place) -> None:
    assert health(place) == (1, "not serving\n")
    table = (place.folder / "etc/fairwall/data/loans.csv").read_text().splitlines()
    predictions = np.linspace(0, 1, len(table) - 1)
    ids = [row.rpartition(",")[2] for row in table[1:]]
    alice = place.folder / "etc/fairwall/certificates/developer-alice"
    for start in ("first", "second"):
        with started(place, allowed()) as process:
            assert process.stdout is not None
            ready = process.stdout.readline()
            assert ready, (place.folder / "log").read_text()
            with AuditClient(f"127.0.0.1:{place.port}", alice) as audits:
                audits.ask(predictions, "sp", 0.5, request_id=start, ids=ids)
                assert health(place) == (0, "serving\n")
                (reload,) = lines("ExecReload")
                subprocess.run(shlex.split(reload.replace("$MAINPID", str(process.pid))), check=True)
                audits.ask(predictions, "sp", 0.5, request_id="again", ids=ids)
            layers = {layer["name"]: layer["why_not"] for layer in json.loads(ready)["layers"] if not layer["active"]}
            assert "not permitted" not in str(layers)  # the unit stands in the way of no layer
            process.send_signal(signal.SIGTERM)
            assert process.wait(300) == 0
    log = (place.folder / "log").read_text()
    assert "Traceback" not in log
    assert "SIGHUP: loans" in log


@pytest.mark.check
def test_a_unit_that_leaves_too_little_is_found_out(place: Place) -> None:
    if not (numbers := allowed()):
        pytest.skip("systemd-analyze, or the system's list of calls, is not here")
    with started(place, [number for number in numbers if number != 444]) as process:  # landlock_create_ruleset
        assert process.stdout is not None
        layers = {layer["name"]: layer["why_not"] for layer in json.loads(process.stdout.readline())["layers"]}
    assert "not permitted" in layers["landlock"]


@needs_analyze
def test_systemd_takes_the_unit_and_finds_it_hardly_exposed(place: Place) -> None:
    unit = place.folder / UNIT.name
    unit.write_text(place.moved(UNIT.read_text()).replace("User=fairwall\nGroup=fairwall\n", ""))
    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSED_MOST}", str(UNIT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout


def instructions() -> list[tuple[str, str]]:
    found = [
        line.split(" ", 1) for line in (DEPLOY / "Containerfile").read_text().splitlines() if line and line[0] != "#"
    ]
    return [(word, rest) for word, rest in found]


def test_the_container_runs_what_the_unit_runs() -> None:
    said = dict(instructions())
    (command,) = lines("ExecStart")
    assert [*json.loads(said["ENTRYPOINT"]), *json.loads(said["CMD"])] == shlex.split(command)
    assert said["ENV"] in lines("Environment")
    assert said["USER"] in (DEPLOY / "compose.yaml").read_text()
    for _, rest in instructions():
        for lock in re.findall(r"-r (\S+)", rest):
            assert (ROOT / lock).exists()


def test_the_compose_file_lays_what_the_policy_names() -> None:
    compose, policy = (DEPLOY / "compose.yaml").read_text(), (DEPLOY / "policy.toml").read_text()
    mounted = re.findall(r"(?m)^      - [\w./]+:(/[\w./-]+)", compose)
    for path in re.findall(r'(?m)= "(/[^"]+)"', policy):
        assert any(Path(path).is_relative_to(mount) for mount in mounted), path
    writable = {"/etc/fairwall/certificates/compliance", "/var/lib/fairwall", "/var/lib/fairwall-seal"}
    assert set(re.findall(r"(?m)^      - [\w./]+:(/[\w./-]+)(?!\S)", compose)) == writable
    assert writable == {f"/var/lib/{lines('StateDirectory')[0]}", *lines("ReadWritePaths")}
    assert "read_only: true" in compose


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_container_s_commands_install_a_service_that_runs(tmp_path: Path) -> None:
    """As they stand, but in a folder in place of the container's /opt, and by the Python that is here."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / "src" / name)
    for word, rest in instructions():
        if word == "RUN":
            command = rest.replace("/opt/", f"{tmp_path}/opt/").replace("python -m venv", f"{sys.executable} -m venv")
            subprocess.run(command, shell=True, cwd=tmp_path / "src", check=True)  # noqa: S602 - as a container does
    ended = subprocess.run(
        [tmp_path / "opt/fairwall/bin/python", "-I", "-m", "compliance", "--policy", "nowhere.toml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr[:25]) == (2, "compliance: nowhere.toml:")


def builder() -> str | None:
    """A program that builds containers here, its daemon included."""
    found = (name for name in ("podman", "buildah", "docker") if shutil.which(name))
    return next((name for name in found if subprocess.run([name, "info"], capture_output=True).returncode == 0), None)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(builder() is None, reason="nothing builds containers here")
def test_the_container_is_built() -> None:
    subprocess.run([str(builder()), "build", "-f", "deploy/Containerfile", "."], cwd=ROOT, check=True)


def test_health_is_one_line_where_it_cannot_be_asked(place: Place) -> None:
    place.policy.write_text("[deployment]\n")
    command = [sys.executable, "-m", "sim", "deploy", "health", "--policy", str(place.policy)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
    assert ended.returncode == 2
    assert "deployment.listen, deployment.credentials: say where to ask" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
