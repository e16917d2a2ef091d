"""From inside a confined party, all that is another's is out of reach; the same attempts, unconfined, succeed."""

from __future__ import annotations

import base64
import contextlib
import ctypes
import errno
import json
import os
import platform
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Neighbours, Rule
from compliance.ledger.head import Seal, load_key
from fairwall.rpc import confine
from sim.deployment.certificates import write
from tests.support.system_call_filter import without

ROOT = Path(__file__).parents[2]
HOSTILE = Path(__file__).with_name("hostile_party.py")
SUPERUSER = os.geteuid() == 0

REFUSED = {"EACCES", "EPERM", "EXDEV"}
LACKING = {"ENOSYS", "ENOENT", "ENODEV", "ENOTSUP", "EAFNOSUPPORT", "EPROTONOSUPPORT"}
"""What a kernel says of what it was built without."""

ARM = platform.machine() == "aarch64"
WITHOUT_LANDLOCK = without(444)
WITHOUT_SECCOMP = without(277 if ARM else 317)
WITHOUT_DUMPABLE = {error: without(167 if ARM else 157, error, argument=4) for error in (0, errno.EPERM)}
"""Where the memory cannot be closed, and where it only seems that it can."""


def _has_landlock() -> bool:
    asked = subprocess.run(
        [sys.executable, "-c", "import ctypes; print(ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(asked.stdout) >= 6  # the first version with every layer


needs_landlock = pytest.mark.skipif(
    sys.platform != "linux" or not _has_landlock(), reason="no Landlock here, or one without all of its layers"
)


@contextlib.contextmanager
def listening(family: int, address: Any) -> Iterator[socket.socket]:
    with socket.socket(family) as server:
        if family == socket.AF_INET:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(address)
        server.listen(64)
        yield server


SMALL = """
[scenario]
name = "small"
game = "reveal"
trials = 1
secret = "random"

[data]
source = "synthetic"
n = 20
n0 = 6
scores = "uniform"

[compliance]
mechanism = "exact"
epsilon = "inf"

[developer]
strategy = "single"
"""


@dataclass(frozen=True)
class Running:
    """A run that is being played: the command's process, the parties' by name, and its folder."""

    command: subprocess.Popen[str]
    parties: dict[str, psutil.Process]
    folder: Path


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    place = tmp_path_factory.mktemp("run")
    (place / "small.toml").write_text(SMALL)
    command = subprocess.Popen(
        [sys.executable, "-m", "sim", "run", "small.toml", "--trials", "100000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=place,
        text=True,
    )
    parties: dict[str, psutil.Process] = {}
    try:
        deadline = time.monotonic() + 300
        while not any(place.glob("runs/*/trials.jsonl")):
            assert time.monotonic() < deadline, "it did not play a trial in time"
            time.sleep(0.02)
        children = psutil.Process(command.pid).children()
        parties = {name: child for child in children for name in confine.USERS if name in child.cmdline()}
        (folder,) = place.glob("runs/*")
        # Looked at as it stands: played on, it would take a core for as long as the tests take. Its parties, too, which
        # would leave when their calls to the referee take too long.
        command.send_signal(signal.SIGSTOP)
        for party in parties.values():
            party.suspend()
        yield Running(command, parties, folder)
    finally:
        for party in parties.values():
            party.kill()
        command.kill()
        command.wait()


@pytest.fixture
def targets(running: Running, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What there is to attack: a run that is played, a deployment's files, sockets; and the party's own folder."""
    run = running.folder
    place = tmp_path / "deployment"
    write(place / "certificates", "loans", ("alice", "bob"), 1)
    for name in ("ledger", "seal"):
        (place / name).mkdir()
    seal = Seal(place / "seal/head", load_key(place / "certificates/compliance/seal.key"))
    ledger = Ledger(place / "ledger/ledger.sqlite", seal)
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(1.0, 0.0, Rule.BASIC))
    table = tmp_path / "people.csv"
    table.write_text("income,race\n1,0\n")
    own = tmp_path / "own"
    own.mkdir()
    credentials = place / "certificates" / "compliance"
    files = {
        "the ledger": place / "ledger/ledger.sqlite",
        "the ledger's seal": place / "seal/head",
        "the seal's key": credentials / "seal.key",
        "compliance's key": credentials / "key.pem",
        "compliance's certificate": credentials / "certificate.pem",
        "another developer's key": place / "certificates/developer-bob/key.pem",
        "a table": table,
        "the trials": run / "trials.jsonl",
        "the scenario and its seed": run / "scenario.toml",
        "the run's key": run / "secret",
        "compliance's log": run / "logs/compliance.log",
        "compliance's transcript": run / "transcript/compliance/1.bin",
        "the referee's transcript": run / "transcript/referee/1.bin",
        "a shipped table": ROOT / "sim/datasets/adult.csv.gz",
        "the simulator": ROOT / "sim/games/reveal/deal.py",
        "compliance's code": ROOT / "compliance/noise/sampling.py",
        "the tests": Path(__file__),
        "the users": Path("/etc/passwd"),
        "the first process": Path("/proc/1/environ"),
    }
    processes = {"the referee": running.command.pid, "compliance": running.parties["compliance"].pid}
    queue = f"/fairwall-{os.getpid()}"
    with (
        contextlib.ExitStack() as after,
        listening(socket.AF_INET, ("127.0.0.1", 0)) as stranger,
        listening(socket.AF_INET, ("127.0.0.1", 0)) as referee,
        listening(socket.AF_INET, ("127.0.0.1", 0)) as counterpart,
        listening(socket.AF_UNIX, f"\0fairwall-{tmp_path.name}-{os.getpid()}") as abstract,
        listening(socket.AF_UNIX, str(tmp_path / "stream")),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unix_datagrams,
        socket.socket() as taken,
        socket.socket() as other,
    ):
        after.callback(ctypes.CDLL(None).mq_unlink, queue.encode())
        datagrams.bind(("127.0.0.1", 0))
        unix_datagrams.bind(str(tmp_path / "datagrams"))
        for free in (taken, other):
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", 0))
        ports = {
            name: each.getsockname()[1]
            for name, each in {
                "stranger": stranger,
                "referee": referee,
                "counterpart": counterpart,
                "own": taken,
                "other": other,
            }.items()
        }
        yield {
            "read": {name: str(path) for name, path in files.items()},
            "write": {name: str(files[name]) for name in ("the ledger", "a table", "the trials")},
            "list": {"the run": str(run), "the deployment": str(place), "the tests' folder": str(tmp_path)},
            "processes": processes,
            "connect": {"a stranger": ports["stranger"]},
            "counterpart": ports["counterpart"],
            "datagrams": {
                "port": datagrams.getsockname()[1],
                "path": str(tmp_path / "datagrams"),
                "stream": str(tmp_path / "stream"),
            },
            "bind": {"another port": ports["other"], "its own port": ports["own"]},
            "abstract": abstract.getsockname()[1:].decode(),
            "program": sys.executable,
            "queue": queue,
            "true": base64.b64encode(Path(shutil.which("true") or "").read_bytes()).decode(),
            "folder": str(own),
            "ports": ports,
        }


@dataclass(frozen=True)
class Attempts:
    """What became of a hostile party's attempts, by who holds them, and the layers that it announced, and why not."""

    outcomes: dict[str, dict[str, str]]
    layers: dict[str, str]

    def done(self, *holders: str) -> set[str]:
        """Name those that succeeded."""
        return {name for holder in holders for name, how in self.outcomes[holder].items() if how == "done"}

    def not_refused(self, *holders: str) -> dict[str, str]:
        """Name those that were not refused."""
        return {name: how for each in holders for name, how in self.outcomes[each].items() if how not in REFUSED}


def attempt(party: str, targets: dict[str, Any], *, confined: bool, where: str = "") -> Attempts:
    """Let a hostile party try everything, perhaps where the kernel lacks something."""
    ports = targets["ports"]
    config = dict.fromkeys(("run", "authority", "certificate", "key"), "") | {
        "party": party,
        "referee": f"127.0.0.1:{ports['referee']}",
        "counterpart": f"127.0.0.1:{ports['counterpart']}",
        "listen": f"127.0.0.1:{ports['own']}",
        "scratch": targets["folder"],
    }
    asked = targets | {"party": party, "confined": confined}
    asked["package"] = str(ROOT / party / "__main__.py")
    with subprocess.Popen(
        [sys.executable, *(("-c", where) if where else ()), "-I", str(HOSTILE), json.dumps(asked)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(config) + "\n")
        process.stdin.flush()  # and left open: a party ends with its stdin
        announced, line = process.stdout.readline(), process.stdout.readline()
        process.stdin.close()
        assert line, process.stderr.read()
    return Attempts(json.loads(line), {layer["name"]: layer["why_not"] for layer in json.loads(announced)["layers"]})


@pytest.mark.few(1)
@needs_landlock
@pytest.mark.parametrize("party", confine.OUTSIDERS)
def test_a_hostile_party_is_refused_all_that_is_not_its_own(party: str, targets: dict[str, Any]) -> None:
    attempts = attempt(party, targets, confined=True)
    denied = {name for name, how in attempts.outcomes["own"].items() if how in REFUSED}
    # The adversary serves nothing.
    serving = {"listen on its own port", "listen anywhere before it is ready"}
    assert denied == (set() if party == "developer" else serving)
    assert attempts.not_refused("landlock", "syscalls", "privileged") == {}
    assert [attempts.layers[name] for name in confine.WALLS] == [""] * 4


@needs_landlock
def test_each_wall_holds_what_is_its_own_alone_and_claims_no_more(targets: dict[str, Any]) -> None:
    landlock = attempt("developer", targets, confined=True, where=WITHOUT_SECCOMP)
    assert landlock.not_refused("landlock") == {}
    # So the ports are not held, whatever rules there are.
    assert {"Multipath TCP to a stranger", "fast open to a stranger", "listen without an address"} <= landlock.done(
        "syscalls"
    )
    missing = {name: landlock.layers[name] for name in confine.WALLS if landlock.layers[name]}
    assert missing == {
        "tcp-ports": "Landlock's rules leave out Multipath TCP and fast open: no layer syscalls",
        "syscalls": "no filter of system calls here: function not implemented",
    }

    syscalls = attempt("developer", targets, confined=True, where=WITHOUT_LANDLOCK)
    assert syscalls.not_refused("syscalls", "privileged") == {}
    # Both hold these.
    assert {name for name in syscalls.done("landlock") if "signal" in name or name.startswith("start")} == set()
    assert {name for name in confine.WALLS if syscalls.layers[name]} == set(confine.LANDLOCK)


def test_the_same_attempts_succeed_where_nothing_confines(targets: dict[str, Any]) -> None:
    attempts = attempt("developer", targets, confined=False)
    # Whoever holds protected attributes has closed its memory, from all but the superuser.
    closed = ("the first process", *(() if SUPERUSER else ("environ", "maps", "mem", "descriptor", "attach", "copy")))
    failed = {
        name: how
        for holder, outcomes in attempts.outcomes.items()
        for name, how in outcomes.items()
        if how != "done" and not (holder == "privileged" and not SUPERUSER) and not any(word in name for word in closed)
    }
    assert {name: how for name, how in failed.items() if how not in LACKING} == {}
    assert {name for name in failed if name not in attempts.outcomes["syscalls"]} == set()
    assert len(attempts.done("landlock")) > 45
    assert len(attempts.done("syscalls")) > 35


@pytest.mark.skipif(not SUPERUSER, reason="a party shows its sockets to the superuser alone")
def test_no_party_listens_on_a_socket_that_landlock_does_not_cover(running: Running) -> None:
    for party in running.parties.values():
        named = [
            each for each in party.net_connections("unix") if isinstance(each.laddr, str) and each.laddr.startswith("/")
        ]
        assert named == []


def layers(result: dict[str, Any]) -> dict[str, set[str]]:
    """Each party's active layers, by the run's result."""
    (session,) = result["confinement"]
    return {party: {layer["name"] for layer in own if layer["active"]} for party, own in session.items()}


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A scenario that is played in no time."""
    (tmp_path / "small.toml").write_text(SMALL)
    return str(tmp_path / "small.toml")


@needs_landlock
def test_a_run_says_what_confined_each_party_and_may_demand_it(play: Callable[..., dict[str, Any]], small: str) -> None:
    demanded = json.dumps([*confine.LANDLOCK, "non-dumpable", "limits"])
    folder = Path(play(small, "--set", f"scenario.require={demanded}")["run_dir"])
    active = layers(json.loads((folder / "result.json").read_text()))
    assert active["referee"] == {"limits", "non-dumpable"}
    assert active["compliance"] - {"users"} == {"limits", "no-capabilities", "non-dumpable", "syscalls"}
    for party in confine.OUTSIDERS:
        assert active[party] - {"users"} == set(confine.LAYERS) - {"users"}
        (said,) = [line for line in (folder / f"logs/{party}.log").read_text().splitlines() if "confined by" in line]
        assert " INFO " in said
        assert "landlock, tcp-ports, scope" in said


def run_where(lacking: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command where the kernel lacks something, or says so."""
    return subprocess.run(
        [sys.executable, "-c", lacking, "-m", "sim", "run", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
        check=False,
    )


@pytest.mark.check
@pytest.mark.skipif(sys.platform != "linux", reason="filters system calls")
def test_without_landlock_a_run_warns_in_one_line_and_the_rest_stands(tmp_path: Path, small: str) -> None:
    finished = run_where(WITHOUT_LANDLOCK, tmp_path, small, "--json")
    assert finished.returncode == 0, finished.stderr
    warnings = [line for line in finished.stderr.splitlines() if line.startswith("fairwall: ")]
    assert len(warnings) == 1
    assert re.search(r"not confined by landlock \(no Landlock here: function not implemented\)", warnings[0])
    folder = Path(json.loads(finished.stdout)["run_dir"])
    active = layers(json.loads((folder / "result.json").read_text()))
    for party in confine.OUTSIDERS:
        assert active[party] - {"users"} == {"limits", "no-capabilities", "non-dumpable", "syscalls"}
        log = (folder / f"logs/{party}.log").read_text()
        assert len([line for line in log.splitlines() if " WARNING " in line]) == 1


@pytest.mark.check
@needs_landlock
def test_without_a_filter_of_system_calls_a_run_warns_in_one_line_and_does_not_claim_the_ports(
    tmp_path: Path, small: str
) -> None:
    finished = run_where(WITHOUT_SECCOMP, tmp_path, small, "--json")
    assert finished.returncode == 0, finished.stderr
    (warning,) = [line for line in finished.stderr.splitlines() if line.startswith("fairwall: ")]
    assert "not confined by " in warning
    assert "syscalls (no filter of system calls here: function not implemented)" in warning
    assert "tcp-ports (Landlock's rules leave out Multipath TCP and fast open: no layer syscalls)" in warning
    active = layers(json.loads((Path(json.loads(finished.stdout)["run_dir"]) / "result.json").read_text()))
    for party in confine.OUTSIDERS:
        assert active[party] - {"users"} == {"limits", "no-capabilities", "non-dumpable", "landlock", "scope"}


OUTSIDE = "around developer and adversary"
NO_CALL = "function not implemented"


@pytest.mark.check
@pytest.mark.skipif(sys.platform != "linux", reason="filters system calls")
@pytest.mark.parametrize(
    ("lacking", "layer", "why_not", "around"),
    [
        (WITHOUT_LANDLOCK, "landlock", f"no Landlock here: {NO_CALL}", OUTSIDE),
        pytest.param(
            *(WITHOUT_SECCOMP, "tcp-ports"),
            *("Landlock's rules leave out Multipath TCP and fast open: no layer syscalls", OUTSIDE),
            marks=(needs_landlock, pytest.mark.slow),
        ),
        (WITHOUT_DUMPABLE[errno.EPERM], "non-dumpable", "operation not permitted", "around referee.*"),
        pytest.param(
            *(WITHOUT_DUMPABLE[0], "non-dumpable", "set, and not kept", "around referee.*"), marks=pytest.mark.slow
        ),
    ],
    ids=["Landlock", "the filter", "closed memory", "memory that only seems closed"],
)
def test_a_scenario_that_demands_a_layer_is_not_played_where_it_does_not_hold(
    lacking: str, layer: str, why_not: str, around: str, tmp_path: Path, small: str
) -> None:
    finished = run_where(lacking, tmp_path, small, "--set", f'scenario.require=["{layer}"]')
    assert finished.returncode == 2
    (said,) = [line for line in finished.stderr.splitlines() if line.startswith("fairwall: ")]
    refused = re.escape(f"fairwall: scenario.require: no layer {layer} ({why_not}) ")
    assert re.fullmatch(refused + around, said)
    assert "Traceback" not in finished.stderr
    assert [path.read_text() for path in tmp_path.glob("runs/*/trials.jsonl") if path.read_text()] == []


def test_a_layer_that_there_is_not_cannot_be_demanded(fairwall: Callable[..., Any]) -> None:
    refused = fairwall("run", "demo", "--set", 'scenario.require=["moat"]')
    assert refused.returncode == 2
    assert "scenario.require: must be among limits, " in refused.stderr


@pytest.mark.skipif(not SUPERUSER, reason="only the superuser becomes another user")
def test_a_party_started_by_the_superuser_becomes_a_user_that_reaches_no_other_process(tmp_path: Path) -> None:
    # Whether another user could read this installation is not the question here.
    script = """if True:
        import json, os, sys
        from pathlib import Path
        from fairwall.rpc import confine
        confine.libraries = tuple
        confine._packages = lambda party: (Path("/"), Path("/"))
        folder = Path(sys.argv[1])
        os.chmod(folder, 0o700)
        layer = confine._layer("users", confine._become, "compliance", (), ())
        said = {"active": layer.active, "users": os.getresuid(), "groups": os.getgroups()}
        for name, attempt in {"signal": lambda: os.kill(os.getppid(), 0), "back": lambda: os.setuid(0),
                              "look": lambda: os.listdir(folder)}.items():
            try:
                attempt()
                said[name] = "done"
            except OSError as error:
                said[name] = error.strerror
        print(json.dumps(said))
    """
    ended = subprocess.run(
        [sys.executable, "-I", "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    said = json.loads(ended.stdout)
    user = confine.USERS["compliance"]
    assert (said["active"], said["users"], said["groups"]) == (True, [user] * 3, [])
    assert (said["signal"], said["back"]) == ("Operation not permitted",) * 2
    assert said["look"] == "Permission denied"


@pytest.mark.skipif(not SUPERUSER, reason="only the superuser becomes another user")
def test_a_program_that_the_new_user_could_not_read_stays_with_its_user_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, own = tmp_path / "closed" / "package", tmp_path / "own"
    closed.mkdir(parents=True)
    own.mkdir()
    closed.parent.chmod(0o700)
    groups, group = os.getgroups(), os.getresgid()
    given: list[Any] = []  # not even for a try: another session's party may be opening a file in there
    monkeypatch.setattr(os, "chown", lambda *arguments: given.append(arguments))
    layer = confine._layer("users", confine._become, "compliance", (closed,), (own,))
    assert given == []
    assert (layer.active, layer.why_not) == (False, f"{closed} is closed to other users")
    assert (os.getresuid(), os.getresgid(), os.getgroups(), own.stat().st_uid) == ((0, 0, 0), group, groups, 0)


@pytest.mark.skipif(not SUPERUSER, reason="only the superuser becomes another user")
def test_where_a_folder_cannot_be_given_away_all_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    ids, groups, given = (os.getresuid(), os.getresgid()), os.getgroups(), list[Path]()

    def once(folder: Path, user: int, group: int) -> None:
        if folder.name == "second":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        given.append(folder)
        chown(folder, user, group)

    chown = os.chown
    monkeypatch.setattr(os, "chown", once)
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        first, second = Path(place) / "first", Path(place) / "second"
        first.mkdir()
        second.mkdir()
        layer = confine._layer("users", confine._become, "compliance", (), (first, second))
        assert (layer.active, layer.why_not) == (False, "read-only file system")
        assert (given, first.stat().st_uid) == ([first, first], ids[0][0])
    assert ((os.getresuid(), os.getresgid()), os.getgroups()) == (ids, groups)


@pytest.mark.few(1)
@needs_landlock
@pytest.mark.parametrize(
    "layout",
    ["installed", "environment in a checkout", "checkout in an environment", "overlay", "overlay of a checkout"],
)
def test_what_is_another_s_is_left_out_wherever_it_lies(layout: str, tmp_path: Path) -> None:
    checkout = tmp_path / ("venv/src" if layout == "checkout in an environment" else "checkout")
    environment = checkout / "venv" if layout == "environment in a checkout" else tmp_path / "venv"
    venv.create(environment, symlinks=True)
    (libraries,) = environment.glob("lib/python*/site-packages")
    if layout.startswith("overlay"):
        overlay, beneath = libraries, tmp_path / "beneath"
        venv.create(beneath, symlinks=True)
        (libraries,) = beneath.glob("lib/python*/site-packages")
        (overlay / "beneath.pth").write_text(f"import site; site.addsitedir({str(libraries)!r})\n")
    together = layout in ("installed", "overlay")
    home, shared = (libraries, libraries) if together else (checkout, checkout / "proto")
    for package in ("compliance", "developer", "adversary", "sim"):
        shutil.copytree(ROOT / package, home / package, ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copytree(ROOT / "proto/fairwall", shared / "fairwall", ignore=shutil.ignore_patterns("*.pyc"))
    (home / "README.md").write_text("secret")
    if not together:
        (libraries / "checkout.pth").write_text(f"{home}\n{shared}\n")
    (libraries / "library").mkdir()
    (libraries / "library" / "__init__.py").touch()
    script = """if True:
        import json, sys
        from pathlib import Path
        from fairwall.rpc import confine
        home, shared = map(Path, sys.argv[1:3])
        def read(name):
            try:
                return len(name.read_bytes()) > 0
            except OSError as error:
                return error.strerror
        names = [shared / "fairwall/rpc/process.py"]
        names += [home / name for name in ("developer/reveal/play.py", "sim/datasets/german.csv.gz",
                                           "compliance/noise/sampling.py", "adversary/play.py", *sys.argv[3:])]
        before = [read(name) for name in names]
        confine.confine("developer", listen="127.0.0.1:0", connects=("127.0.0.1:1", "127.0.0.1:2"))
        import library, decimal
        print(json.dumps([confine.__file__, before, [read(name) for name in names]]))
    """
    others = () if together else ("README.md",)
    command = [str(environment / "bin/python"), "-I", "-c", script, str(home), str(shared), *others]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    denied = ["Permission denied"] * (3 + len(others))
    where = str(shared / "fairwall/rpc/confine.py")
    assert json.loads(ended.stdout) == [where, [True] * (5 + len(others)), [True, True, *denied]]


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    """An environment that has no library but through a line that names another's, as pipx and uv make them."""
    environment = tmp_path / "overlay"
    venv.create(environment, symlinks=True)
    (libraries,) = environment.glob("lib/python*/site-packages")
    beneath = sysconfig.get_path("purelib")
    (libraries / "beneath.pth").write_text(f"import site; site.addsitedir({beneath!r})\n")
    return environment / "bin/python"


@pytest.mark.check
@needs_landlock
def test_a_run_of_an_environment_over_another_is_confined(overlay: Path, small: str, tmp_path: Path) -> None:
    demanded = f"scenario.require={json.dumps(confine.WALLS)}"
    finished = subprocess.run(
        [str(overlay), "-m", "sim", "run", small, "--set", demanded, "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert len(json.loads(finished.stdout)["trials"]) == 1


def started(party: str, before: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Start a party by hand, and do something else before."""
    config = dict.fromkeys(("run", "authority", "certificate", "key"), "") | {
        "party": party,
        "referee": "127.0.0.1:1",
        "counterpart": "127.0.0.1:1",
        "listen": "127.0.0.1:0",
    }
    (folder / "config.json").write_text(json.dumps(config))
    run = f"import runpy, sys\n{before}\nrunpy.run_module({party!r}, alter_sys=True, run_name='__main__')"
    return subprocess.run(
        [sys.executable, "-I", "-c", run, "--config", str(folder / "config.json")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@needs_landlock
def test_libraries_that_a_party_may_not_read_are_one_line(tmp_path: Path) -> None:
    beneath = sysconfig.get_path("purelib")
    ended = started(
        "developer",
        "from fairwall.rpc import confine\n"
        "grants = confine._grants\n"
        f"confine._grants = lambda *of: [each for each in grants(*of) if each[0] != {beneath!r}]",
        tmp_path,
    )
    assert (ended.returncode, ended.stderr) == (2, f"developer: the libraries in {beneath} cannot be read\n")


@pytest.mark.parametrize(
    ("party", "module"),
    [("compliance", "numpy"), ("compliance", "grpc"), ("developer", "numpy"), ("adversary", "grpc")],
)
def test_a_party_that_cannot_import_says_so_in_one_line(party: str, module: str, tmp_path: Path) -> None:
    ended = started(party, f"sys.modules[{module!r}] = None", tmp_path)
    lines = [line for line in ended.stderr.splitlines() if " INFO " not in line]
    assert (ended.returncode, len(lines)) == (2, 1)
    assert re.fullmatch(rf"{party}: cannot import {module}[.\w]*: .*{module}.*", lines[0])


@needs_landlock
def test_a_library_that_lies_anywhere_is_not_opened_to_a_party_which_says_where_it_may_not_read(tmp_path: Path) -> None:
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy/__init__.py").touch()
    found = f"importlib.util.spec_from_file_location('numpy', {str(tmp_path / 'numpy/__init__.py')!r})"
    ended = started(
        "developer",
        f"import importlib.util\nsys.path.insert(0, {str(tmp_path)!r})\n"
        # Whether Python looks elsewhere for what it may not list depends on its version: here it does not look.
        "class Found:\n    def find_spec(name, *_):\n"
        f"        return {found} if name == 'numpy' else None\n"
        "sys.meta_path.insert(0, Found)",
        tmp_path,
    )
    lines = [line for line in ended.stderr.splitlines() if " INFO " not in line]
    assert ended.returncode == 2
    (line,) = lines
    assert line.startswith("developer: cannot import ")
    assert line.endswith(f"(the party may not read {tmp_path})")


def test_a_party_whose_counterpart_is_not_known_says_that_tcp_stays_open(tmp_path: Path) -> None:
    script = """if True:
        import json
        from fairwall.rpc import confine
        layers = confine.confine("adversary", connects=("127.0.0.1:1", ""))
        print(json.dumps({layer.name: layer.why_not for layer in layers}))
    """
    ended = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout)["tcp-ports"] != ""


def test_where_other_threads_run_a_party_does_not_claim_to_be_confined() -> None:
    script = """if True:
        import json, threading
        from fairwall.rpc import confine
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        layers = confine.confine("adversary", connects=("127.0.0.1:1", "127.0.0.1:2"))
        print(json.dumps({layer.name: layer.why_not for layer in layers if not layer.active}))
    """
    ended = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    missing = json.loads(ended.stdout)
    for name in (*confine.LANDLOCK, "no-capabilities"):
        assert missing[name] == "other threads run already, and would stay free"


@pytest.mark.few(3)
@pytest.mark.parametrize("party", ["developer", "compliance", "a deployment's compliance"])
@pytest.mark.parametrize("files", [200, 5000])
def test_no_party_writes_core_files_opens_many_files_or_gets_new_privileges(party: str, files: int) -> None:
    """In a deployment the operator says how many files, and Landlock alone needs that no privilege comes back."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < files and not SUPERUSER:
        pytest.skip(f"this user may not have {files} open files")
    script = f"""if True:
        import ctypes, json, resource
        from fairwall.rpc import confine
        resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files}))
        if {party!r} in confine.USERS:
            layers = confine.confine({party!r}, listen="127.0.0.1:1", connects=("127.0.0.1:2",))
        else:
            layers = confine.deployed(listen="127.0.0.1:1", connects=(), reads=(), folders=())
        limits = [resource.getrlimit(kind) for kind in (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE)]
        is_locked_in = any(layer.name in ("landlock", "syscalls") and layer.active for layer in layers)
        print(json.dumps([limits, is_locked_in, ctypes.CDLL(None).prctl(39, 0, 0, 0, 0)]))
    """
    ended = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    limits, is_locked_in, no_new_privileges = json.loads(ended.stdout)
    most = files if party not in confine.USERS else min(files, 4096)
    assert limits == [[0, 0], [most, most]]
    assert no_new_privileges == is_locked_in


@pytest.mark.check
def test_the_page_tells_of_every_layer() -> None:
    page = (ROOT / "docs/confinement.md").read_text()
    assert set(confine.LAYERS) == set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE))
