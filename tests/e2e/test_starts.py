"""What a start refuses, `deploy check` says before, in the same line; it leaves all as it is, also beside a service."""

from __future__ import annotations

import ast
import runpy
import shutil
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1.health_pb2 import HealthCheckResponse

import compliance.deployment
from compliance.deployment import serve
from compliance.ledger.head import Head, Seal, load_key
from fairwall.client import AuditUnavailable
from fairwall.rpc import identity
from sim.deployment import certificates, service
from sim.deployment.service import status
from tests.support import forked_programs, postgres_server, small_disks
from tests.support.command import fairwall
from tests.support.loans_deployment import Deployment, ask

ROOT = Path(__file__).parents[2]


def replace(old: str, new: str, count: int = 1) -> Callable[[Path], None]:
    """Change the policy."""

    def change(folder: Path) -> None:
        path = folder / "policy.toml"
        assert path.read_text().count(old) == count, path.read_text()
        path.write_text(path.read_text().replace(old, new))

    return change


def people(*rows: str, header: str = "group,repaid") -> Callable[[Path], object]:
    """Write other people."""
    return lambda folder: (folder / "people.csv").write_text("\n".join([header, *rows]) + "\n")


def remove(*names: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for name in names:
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return change


def both(*changes: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for each in changes:
            each(folder)

    return change


def swap(certificate: str) -> Callable[[Path], None]:
    """Give the service somebody else's certificate and key, or those of another validity."""

    def change(folder: Path) -> None:
        other = folder / "other"
        certificates.write(other, "loans" if certificate != "another" else "another", ("alice",), 1)
        own = folder / "certificates" / "compliance"
        for part in ("authority", "certificate", "key"):
            shutil.copy(other / "compliance" / f"{part}.pem", own / f"{part}.pem")
        shutil.rmtree(other)

    return change


def mode(name: str, bits: int) -> Callable[[Path], None]:
    return lambda folder: (folder / name).chmod(bits)


def write(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


def spoil_a_record(folder: Path) -> None:
    import sqlite3

    with sqlite3.connect(folder / "ledger" / "ledger.sqlite") as db:
        db.execute("UPDATE entries SET epsilon = epsilon / 2")
    db.close()


def seal_more(folder: Path) -> None:
    """Seal a record that is not in the ledger, as where that is an old copy."""
    seal = Seal(folder / "seal" / "head", load_key(folder / "certificates" / "compliance" / "seal.key"))
    head = seal.read()
    assert head is not None
    seal.begin(Head(head.sequence + 5, head.chain))


def seal_less(folder: Path) -> None:
    seal = Seal(folder / "seal" / "head", load_key(folder / "certificates" / "compliance" / "seal.key"))
    seal.begin(Head(1, b"0" * 32))


RELEASED = '[release]\nsource = "released.csv"\nprotocol = "grr"\nepsilon = 1.0\n[release.columns]\n'


def twice(folder: Path) -> None:
    """Serve the same people under two names."""
    path = folder / "policy.toml"
    deployment, _, rest = path.read_text().partition("[data]")
    rest = f"[data]{rest}"
    parts = []
    for name in ("one", "two"):
        part = rest
        for section in ("data", "audit", "budget", "developers"):
            part = part.replace(f"[{section}]", f"[datasets.{name}.{section}]")
        parts.append(part)
    path.write_text(deployment + "\n".join(parts))


def likely(known: str, count: int) -> Callable[[Path], None]:
    """Have an attribute by probabilities, of which a value is known of so many people."""

    def change(folder: Path) -> None:
        header, *rows = (folder / "people.csv").read_text().splitlines()
        told = (f"{row},0.5,0.5,{known if number < count else ''}" for number, row in enumerate(rows))
        (folder / "people.csv").write_text("\n".join([f"{header},p,q,known", *told, ""]))
        section = '[data.probabilities.kind]\ncolumns = { a = "p", b = "q" }\ngolden = "known"\n[audit]'
        replace("[audit]", section)(folder)

    return change


def featured(folder: Path) -> None:
    """Have models given a column of texts."""
    header, *rows = (folder / "people.csv").read_text().splitlines()
    (folder / "people.csv").write_text("\n".join([f"{header},place", *(f"{row},north" for row in rows), ""]))
    replace("[audit]", '[sealed]\nfeatures = ["place"]\n[audit]')(folder)


@dataclass(frozen=True)
class Case:
    """What is wrong, with a ledger that is begun or not, and what is said of it."""

    change: Callable[[Path], object]
    said: str
    begun: bool = False
    options: tuple[str, ...] = ("--even-if-worthless",)


CERTIFICATE = "certificates/compliance"
GROUP = '[data.groups]\ngroup = ["a", "c"]\n[audit]'
CASES = {
    "no policy": Case(remove("policy.toml"), "policy.toml: cannot be read"),
    "no TOML": Case(write("policy.toml", "["), "policy.toml: not valid TOML"),
    "a feature of texts": Case(featured, " has no numbers: leave it out, or give it as numbers"),
    "an unknown key": Case(
        replace("queries_max = 1", "queries_max = 1\nquerys_max = 1"), "unknown key; did you mean queries_max?"
    ),
    "a bad value": Case(replace('mechanism = "laplace"', 'mechanism = "none"'), "audit.mechanism: must be one of"),
    "an address that is none": Case(replace("127.0.0.1", "192.0.2.1"), "the address is none of this machine's"),
    "a host without a name": Case(replace("127.0.0.1", "nowhere.invalid"), "the host's name is not known"),
    "no certificate": Case(remove(f"{CERTIFICATE}/certificate.pem"), "certificate.pem: cannot be read"),
    "a key for all": Case(mode(f"{CERTIFICATE}/key.pem", 0o644), "key.pem: others than its owner can use it"),
    "a developer's certificate": Case(
        replace(CERTIFICATE, "certificates/developer-bob"), ", not for compliance of loans"
    ),
    "another deployment's certificate": Case(swap("another"), "is for compliance of another, not for compliance"),
    "no list of the revoked": Case(write(f"{CERTIFICATE}/revoked.pem", "?"), "revoked.pem: "),
    "a seal's key for all": Case(mode(f"{CERTIFICATE}/seal.key", 0o644), "seal.key: others can read this key", True),
    "a seal's key that is none": Case(write(f"{CERTIFICATE}/seal.key", "?"), "seal.key: not a key of 32 bytes", True),
    "another seal's key": Case(write(f"{CERTIFICATE}/seal.key", "00" * 32), "the chain breaks at record 1", True),
    "no seal's key": Case(remove(f"{CERTIFICATE}/seal.key"), "seal.key: is missing, with which", True),
    "ledger and head gone": Case(remove("ledger", "seal"), "the ledger and its head", True),
    "a new ledger where one is": Case(lambda _: None, "is there: leave out --new-ledger", True, ("--new-ledger",)),
    "an old copy": Case(seal_more, "it is an old copy: it ends at record", True),
    "no ledger": Case(remove("ledger"), "it is an old copy: it ends at record 0", True),
    "no head": Case(remove("seal"), "the sealed head is missing: bring", True),
    "another's head": Case(seal_less, "it is not the ledger that was sealed as", True),
    "a changed record": Case(spoil_a_record, "bring back an untouched copy of the ledger", True),
    "no ledger in the file": Case(write("ledger/ledger.sqlite", "no ledger" * 999), "file is not a database", True),
    "other data under the name": Case(
        people(*[f"{'ab'[i % 2]},{i // 3 % 2}" for i in range(60)]), "this name stands for other data", True
    ),
    "another rule": Case(replace("[developers]", 'rule = "advanced"\ndelta = 1e-6\n[developers]'), "", True),
    "smaller groups than noise was for": Case(
        both(replace("minimum_group = 5", "minimum_group = 4")), "data.minimum_group: must be at least 5", True
    ),
    "these people under another name": Case(
        replace("[data]", '[data]\nname = "others"'), "these people's data are called loans", True
    ),
    "the same people twice": Case(twice, "these people's data are called"),
    "no data": Case(remove("people.csv"), "data.source: "),
    "no such column": Case(replace('"repaid"', '"paid"'), "'paid'"),
    "no value": Case(people("a,1", ",0"), "missing values: group 1 of 2 rows"),
    "neither group": Case(
        both(replace('"a"', '"a"\ndisadvantaged = "b"'), people("a,1", "b,0", "c,1")), "some rows are in neither group"
    ),
    "two of one id": Case(
        both(replace("[audit]", 'id = "id"\n[audit]'), people(*["a,1,x", "b,0,y"] * 9, header="group,repaid,id")),
        "data.id: ",
    ),
    "small groups": Case(replace("minimum_group = 5", "minimum_group = 31"), "looks at a group of fewer than 31"),
    "groups that are equal": Case(
        replace("minimum_group = 5", "minimum_group = 30"), "people, so that both groups have 30"
    ),
    "nobody that a metric looks at": Case(
        both(replace('["sp"]', '["eo"]'), people(*["a,0", "b,0", "a,1"] * 9)), "audit.metrics: "
    ),
    "a golden value that is not listed": Case(likely("c", 50), ".golden: some rows have a value that is not among"),
    "a golden sample of few": Case(likely("a", 50), "kind.golden: the value is known of 50 of 60 people"),
    "a group that is not listed": Case(replace("[audit]", GROUP), "data.groups.group: some rows have a value"),
    "no file of a release": Case(replace("[budget]", f'{RELEASED}group = ["a", "b"]\n[budget]'), "release.source: "),
    "a release in another order": Case(
        both(
            replace("[budget]", f'{RELEASED}label = ["0", "1"]\ngroup = ["a", "b"]\n[budget]'),
            write("released.csv", "group,label\na,0\nb,1\n"),
        ),
        "release.columns: must stand in the order of the file",
    ),
    "a release of another value": Case(
        both(replace("[budget]", f'{RELEASED}group = ["a", "c"]\n[budget]'), write("released.csv", "group\na\nb\n")),
        "release.columns.group: some rows have a value that is not listed",
    ),
    "a release that is too large": Case(
        both(
            replace("[budget]", f"{RELEASED}group = [{', '.join(f'{str(i)!r}' for i in range(256))}]\n[budget]"),
            lambda folder: (folder / "released.csv").write_text("group\n" + "1\n" * 300_000),
        ),
        "release.source: a release of 300,000 people takes",
    ),
    "no table of people": Case(
        both(
            replace('"people.csv"', '"parquet:people-*.parquet"\nid = "id"'),
            replace('"laplace"', '"cube"'),
            replace("[budget]", '[tables.t]\nsource = "parquet:t.parquet"\ndevelopers = ["bob"]\n[budget]'),
        ),
        "data.source: ",
    ),
    "answers that are worth nothing": Case(
        both(replace("minimum_group = 5", "minimum_group = 1"), replace("epsilon = 1048576.0", "epsilon = 0.1", 3)),
        "--even-if-worthless serves all the same",
        options=(),
    ),
    "a budget that reveals too much": Case(
        replace("[audit]", "[audit]\nreveal_total = 0.6"), "audit.reveal_total: a budget of epsilon"
    ),
    "a batch that reveals too much": Case(
        both(
            replace("[audit]", "[audit]\nreveal_max = 0.55"),
            replace('"laplace"', '"counts"'),
            replace("epsilon = 1048576.0", "epsilon = 2.0", 3),
        ),
        "audit.reveal_max: sp of 1 at epsilon",
    ),
    "a password": Case(replace('"ledger/ledger.sqlite"', '"postgresql://u:secret@h/d"'), "it has a password in it"),
    "no such option of a database": Case(
        replace('"ledger/ledger.sqlite"', '"postgresql://u@127.0.0.1:1/d?nonsense=1"'), "nonsense"
    ),
    "no database": Case(replace('"ledger/ledger.sqlite"', '"postgresql://u@127.0.0.1:1/d"'), "127.0.0.1"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Deployment, Path, Path]:
    """Lay out a deployment that was never served, and a copy of it that was, and sold an answer."""
    folder = tmp_path_factory.mktemp("made") / "new"
    folder.mkdir()
    deployment, begun = Deployment(folder), folder.with_name("begun")
    shutil.copytree(folder, begun)
    deployment.folder = begun
    with deployment.served() as process:
        with deployment.client("alice") as audits:
            ask(audits, "a")
        process.terminate()
        assert process.wait(300) == 0
    return deployment, folder, begun


@pytest.fixture
def place(made: tuple[Deployment, Path, Path], tmp_path: Path) -> Path:
    """Copy the one that was served."""
    return Path(shutil.copytree(made[2], tmp_path / "own"))


def files(folder: Path) -> dict[str, bytes]:
    """What there is, but for the log, and what readers of a database mark beside it while it is open."""
    found = [
        path for path in folder.rglob("*") if path.is_file() and path.suffix != ".sqlite-shm" and path.name != "log"
    ]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def started(folder: Path, *options: str) -> tuple[int, str]:
    """Start the service, which ends: its status, and the line with which it does."""
    command = [sys.executable, "-I", "-m", "compliance", "--policy", str(folder / "policy.toml"), *options]
    done = forked_programs.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == ""
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("compliance: "))
    assert line == done.stderr.splitlines()[-1]
    return done.returncode, line.removeprefix("compliance: ")


def checked(folder: Path, *options: str) -> tuple[int, str]:
    done = fairwall("deploy", "check", "--policy", folder / "policy.toml", *options)
    assert "Traceback" not in done.stderr
    return done.returncode, "".join(done.stderr.splitlines()[-1:]).removeprefix("fairwall: ")


def assert_alike(folder: Path, said: str, *options: str) -> None:
    """Both refuse with one line, and the check changes nothing."""
    before = files(folder)
    check = checked(folder, *options)
    assert files(folder) == before
    start = started(folder, *options)
    assert check == start
    assert check[0] == 2
    assert said in check[1]


@pytest.mark.check
@pytest.mark.parametrize("name", CASES)
def test_a_check_says_what_a_start_would(made: tuple[Deployment, Path, Path], tmp_path: Path, name: str) -> None:
    case, folder = CASES[name], tmp_path / "own"
    shutil.copytree(made[2] if case.begun else made[1], folder)
    case.change(folder)
    assert_alike(folder, case.said, *case.options)


@pytest.mark.check
def test_somebody_else_at_the_address_is_refused(place: Path, made: tuple[Deployment, Path, Path]) -> None:
    with socket.create_server(("127.0.0.1", int(made[0].address.rpartition(":")[2]))):
        assert_alike(place, "the address is in use", "--even-if-worthless")


@pytest.mark.check
def test_a_full_disk_begins_no_ledger(made: tuple[Deployment, Path, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(made[1], tmp_path / "own"))
    with small_disks.small_disk(folder / "ledger") as disk:
        (disk / "filler").write_bytes(bytes(900_000))
        assert_alike(folder, "ledger: its disk is full", "--even-if-worthless")


@pytest.mark.check
def test_what_a_server_refuses_of_a_ledger_is_said(made: tuple[Deployment, Path, Path], tmp_path: Path) -> None:
    server = postgres_server.shared()
    url = server.new_database()
    for number, (query, said) in enumerate(
        [
            ("options=-csynchronous_commit%3Doff", "synchronous_commit is off"),
            ("options=-cdefault_transaction_read_only%3Don", "it is only to be read"),
        ]
    ):
        folder = Path(shutil.copytree(made[1], tmp_path / str(number)))
        replace('"ledger/ledger.sqlite"', f'"{url}{"&" if "?" in url else "?"}{query}"')(folder)
        assert_alike(folder, said, "--even-if-worthless")
    folder = Path(shutil.copytree(made[1], tmp_path / "together"))
    replace('"ledger/ledger.sqlite"', f'"{url}"')(folder)
    replace('"seal/head"', f'"{server.new_database()}"')(folder)
    assert_alike(folder, "is on the ledger's server", "--even-if-worthless")


@pytest.mark.check
def test_a_check_beside_the_service_finds_all_well_and_changes_nothing(made: tuple[Deployment, Path, Path]) -> None:
    deployment, over = made[0], threading.Event()

    def ask_on() -> None:
        number = 0
        while not over.is_set():
            ask(audits, f"on-{number}")
            number += 1

    with deployment.served() as process, deployment.client("bob") as audits, ExitStack() as stack:
        asking = threading.Thread(target=ask_on)
        asking.start()
        stack.callback(asking.join)
        stack.callback(over.set)
        for _ in range(3):
            assert checked(deployment.folder, "--even-if-worthless") == (0, "")
        over.set()
        asking.join()
        before = files(deployment.folder)
        assert checked(deployment.folder, "--even-if-worthless") == (0, "")
        after = files(deployment.folder)
        process.terminate()
        assert process.wait(300) == 0
    assert after.keys() == before.keys()
    assert after["seal/head"] == before["seal/head"]
    before = files(deployment.folder)
    assert checked(deployment.folder, "--even-if-worthless") == (0, "")
    assert files(deployment.folder) == before


WAITS = """
import sys, time
from pathlib import Path
from compliance.__main__ import main
from compliance.deployment import serve
read = serve.load_all
def load_all(policies):
    while not Path({!r}).exists():
        time.sleep(0.05)
    return read(policies)
serve.load_all = load_all
main()
"""
"""The service, which reads its data once it may."""


@pytest.mark.check
@pytest.mark.parametrize("sound", [True, False])
def test_a_service_that_starts_says_so_and_answers_nothing_else(tmp_path: Path, sound: bool) -> None:
    deployment, may = Deployment(tmp_path), tmp_path / "certificates" / "may"
    deployment.service = ("-c", WAITS.format(str(may)))
    own = identity.load(tmp_path / "certificates" / "compliance")
    with (
        deployment.started() as process,
        deployment.client("alice") as audits,
        ThreadPoolExecutor(1) as thread,
    ):
        give_up = time.monotonic() + 60
        while (found := status(deployment.address, own, 5)) is None:
            assert time.monotonic() < give_up
        assert found == HealthCheckResponse.NOT_SERVING
        assert deployment.log.splitlines()[0].endswith(f"INFO starting: {tmp_path / 'policy.toml'}: loans")
        assert fairwall("deploy", "health", "--policy", tmp_path / "policy.toml").stdout == "not serving\n"
        assert checked(tmp_path, "--even-if-worthless") == (0, "")
        early = thread.submit(ask, audits, "early")
        with pytest.raises(TimeoutError):
            early.result(1)
        if not sound:
            (tmp_path / "people.csv").unlink()
        may.touch()
        assert process.stdout is not None
        line = process.stdout.readline()
        if sound:
            assert status(deployment.address, own, 5) == HealthCheckResponse.SERVING
            early.result(60)  # whoever asked too early has waited
        else:
            assert (line, process.wait(60)) == ("", 2)
            with pytest.raises(AuditUnavailable, match="no answer from"):
                early.result(60)
            assert deployment.log.splitlines()[-1].startswith("compliance: data.source: ")
            assert not (tmp_path / "ledger").exists()
            assert status(deployment.address, own, 5) is None


@pytest.mark.slow(seconds=15)
def test_a_service_of_many_people_is_ready_in_three_seconds_where_a_bare_server_takes_a_tenth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    measure = runpy.run_path(str(ROOT / "benchmarks" / "first_answer.py"))
    measure["lay_out"](tmp_path, 100_000, "recommended", 25, {"alice": ""})
    pairs = [(measure["bare_server"](), measure["ready"](tmp_path)) for _ in range(5)]
    assert statistics.median(ready / bare for bare, ready in pairs) < 30, pairs


def called(function: Callable[..., Any]) -> set[str]:
    """Name what a function calls."""
    tree = ast.parse(Path(function.__code__.co_filename).read_text())
    (own,) = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == function.__name__)
    return {ast.unparse(each.func) for each in ast.walk(own) if isinstance(each, ast.Call)}


UNCHECKED = {
    "LOG.info",
    "Accounts",
    "Deployed",
    "RunningService",
    "Running",
    "Writable",
    "admitted",
    "any",
    "', '.join",
    "databases",  # `check_at_once` calls it
    "open_ledger",  # `check_ledger`, which writes nothing
    "server.check",  # `_check_address`, which knows the deployment's own service
    "begin",  # what it would refuse, `server.check` has
    "ScorerProcess",  # `check_at_once` looks for its libraries
    "_confined",  # folders: `check_folders`
    "confine.filtered",
    "_connects",
    "_telemetry",  # `check_at_once` has it imported
    "listening.stop",
    "listening.admit",
    "service.put_in_force",
    "service.running.says",
    "service.follow",
    "process.announce",
}


def test_each_step_of_a_start_is_one_of_a_check_or_refuses_nothing() -> None:
    assert called(serve._start) - called(service.check) - UNCHECKED == set()
    assert called(serve._start) >= UNCHECKED


ELSEWHERE = {
    "cannot be imported without an extra": ("needs psycopg and Ibis", "deployment.telemetry: cannot import"),
    "while somebody writes": ("it changed while it was read",),
    "of people in an engine, whose sums `look` asks for": (
        ", which is protected: leave it out",
        "PostgreSQL cannot read",
    ),
    "as superuser everything can be written": (": this user cannot write ",),
}


def texts(of: ast.AST) -> list[str]:
    return [each.value for each in ast.walk(of) if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def refusals() -> Iterator[list[str]]:
    """Give what is said where a deployment's own code refuses, but for what a policy's text alone shows."""
    folder = Path(next(iter(compliance.deployment.__path__)))
    for path in (*folder.glob("*.py"), folder / "policy" / "loading.py"):
        for each in ast.walk(ast.parse(path.read_text())):
            if isinstance(each, ast.Raise) and isinstance(each.exc, ast.Call) and len("".join(texts(each.exc))) > 8:
                yield texts(each.exc)


def test_each_place_that_refuses_has_a_case() -> None:
    """A line that no case above has made is one of which nobody knows whether a check says it."""
    known = [case.said for case in CASES.values() if case.said] + [
        each for those in ELSEWHERE.values() for each in those
    ]
    known += ["its disk is full"]
    missing = [
        parts
        for parts in refusals()
        if not any(part.strip(": ") in said or said in part for part in parts if len(part) > 8 for said in known)
    ]
    assert missing == []
