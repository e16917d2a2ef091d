"""From inside the deployed service nothing is in reach that it does not need; without the layers, everything is."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from pathlib import Path

import psutil
import pytest

from tests.e2e.test_confine import LACKING, REFUSED, WITHOUT_LANDLOCK, needs_landlock
from tests.support.loans_deployment import Deployment, ask

HOSTILE = """
import errno, json, os, signal, socket, subprocess, sys
from pathlib import Path
from compliance.__main__ import main
from fairwall.rpc import confine, process

targets = json.loads({targets!r})
if not {confined}:
    confine.deployed = lambda **_: confine.guard()
    confine.filtered = lambda layers, **_: layers
announce = process.announce

def connect(port, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as stranger:
        stranger.connect(("127.0.0.1", port))

def listen():
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        own.listen()

def fork():
    if (child := os.fork()) == 0:
        os._exit(0)
    os.waitpid(child, 0)

def attack(*arguments):
    announce(*arguments)
    attempts = dict(
        read=lambda: Path(targets["secret"]).read_bytes(),
        list=lambda: os.listdir(os.path.dirname(targets["secret"])),
        create=lambda: Path(targets["secret"] + ".new").write_text("x"),
        change_policy=lambda: Path(targets["policy"]).open("ab").close(),
        change_data=lambda: Path(targets["data"]).open("ab").close(),
        add_authority=lambda: Path(targets["authority"]).open("ab").close(),
        replace_key=lambda: Path(targets["key"]).with_name("seal.key").open("ab").close(),
        add_file_there=lambda: Path(targets["key"] + ".new").write_text("x"),
        open_to_others=lambda: os.chmod(targets["data"], 0o600),
        call_home=lambda: connect(targets["port"]),
        call_home_by_udp=lambda: connect(targets["port"], socket.SOCK_DGRAM),
        local_socket=lambda: socket.socket(socket.AF_UNIX).close(),
        listen=listen,
        run=lambda: subprocess.run(["/bin/true"], check=True),
        fork=fork,
        signal=lambda: os.kill(targets["process"], 0),
    )
    outcomes = {{}}
    for name, attempt in attempts.items():
        try:
            attempt()
            outcomes[name] = "done"
        except OSError as error:
            outcomes[name] = errno.errorcode[error.errno]
    print(json.dumps(outcomes), flush=True)

process.announce = attack
main()
"""


def outcomes(folder: Path, secrets: Path, *, confined: bool) -> dict[str, str]:
    """What comes of each attempt to break out; the service goes on meanwhile, and is told to read again."""
    deployment = Deployment(folder)
    with deployment.served(), deployment.client("alice") as audits:
        first = ask(audits, "first")  # it makes the seal's key at its first start alone
    (secrets / "secret").write_text("x")
    certificates = folder / "certificates" / "compliance"
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        targets = {
            "secret": str(secrets / "secret"),
            "policy": str(folder / "policy.toml"),
            "data": str(folder / "people.csv"),
            "authority": str(certificates / "authority.pem"),
            "key": str(certificates / "key.pem"),
            "port": stranger.getsockname()[1],
            "process": os.getpid(),
        }
        deployment.service = ("-c", HOSTILE.format(targets=json.dumps(targets), confined=confined))
        with deployment.served() as process:
            assert process.stdout is not None
            found: dict[str, str] = json.loads(process.stdout.readline())
            with deployment.client("alice") as audits:
                assert ask(audits, "first") == first
                ask(audits, "second")
                process.send_signal(signal.SIGHUP)
                ask(audits, "third")
            assert len(psutil.Process(process.pid).children()) <= 1
            process.terminate()
            assert process.wait(300) == 0
    assert "Traceback" not in deployment.log
    return found


@needs_landlock
def test_nothing_that_the_service_does_not_need_is_in_reach(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")  # the service sets it itself: no thread may run before it is confined
    found = outcomes(tmp_path, tmp_path_factory.mktemp("elsewhere"), confined=True)
    assert {name: outcome for name, outcome in found.items() if outcome not in REFUSED} == {}


@pytest.mark.check
def test_the_same_attempts_succeed_in_a_service_that_is_not_confined(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = outcomes(tmp_path, tmp_path_factory.mktemp("elsewhere"), confined=False)
    assert {name: outcome for name, outcome in found.items() if outcome != "done" and outcome not in LACKING} == {}


def test_a_service_that_cannot_be_confined_says_so_and_serves(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path)
    deployment.service = ("-c", WITHOUT_LANDLOCK, *deployment.service)
    with deployment.served(), deployment.client("alice") as audits:
        ask(audits, "one")
    assert re.search(r"WARNING .*confined by .*syscalls; not by landlock \(.*\), tcp-ports \(", deployment.log)


@pytest.mark.check
@needs_landlock
def test_threads_that_run_already_are_said_to_stay_free(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path)
    threaded = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
    deployment.service = ("-c", f"{threaded}; from compliance.__main__ import main; main()")
    with deployment.served(), deployment.client("alice") as audits:
        ask(audits, "one")
    assert "not by landlock (other threads run already, and would stay free)" in deployment.log


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.check
def test_a_service_that_listens_everywhere_and_by_name_is_confined_too(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "localhost", *(["[::1]"] if has_ipv6() else [])):  # noqa: S104
        folder = tmp_path / host.strip("[]")
        folder.mkdir()
        deployment = Deployment(folder)
        policy = folder / "policy.toml"
        policy.write_text(policy.read_text().replace("127.0.0.1", host))
        deployment.address = deployment.address.replace("127.0.0.1", host)
        with deployment.served(), deployment.client("alice") as audits:
            ask(audits, "one")
