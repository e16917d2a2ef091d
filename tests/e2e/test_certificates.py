"""A deployment's people come, go and get new certificates while its service runs."""

from __future__ import annotations

import re
import shlex
import signal
import time
from pathlib import Path

import pytest

from fairwall.client import AuditRefused
from tests.support import command
from tests.support.loans_deployment import CHARGE, PREDICTIONS, Deployment

PAGE = Path(__file__).parents[2] / "docs" / "serving.md"


def run(deployment: Deployment, *arguments: str) -> str:
    """Run a command in the deployment's folder; what it prints."""
    done = command.fairwall(*arguments, cwd=deployment.folder, seconds=300)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path)


def test_the_documented_commands_run(deployment: Deployment) -> None:
    block = next(each for each in re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL) if "renew" in each)
    for line in block.splitlines():
        printed = run(deployment, *shlex.split(line, comments=True)[1:])
    rows = [" ".join(line.split()[2:]) for line in printed.splitlines()]
    first = ["compliance", "alice revoked", "bob revoked", "carol"]
    assert rows == [*first, "alice revoked", "alice", "compliance"]


def test_who_is_revoked_by_the_command_is_refused_within_a_second_and_nobody_else(deployment: Deployment) -> None:
    with deployment.served(), deployment.client("alice") as alice, deployment.client("bob") as bob:
        alice.ask(PREDICTIONS, "sp", CHARGE)
        bob.ask(PREDICTIONS, "sp", CHARGE)
        run(deployment, "deploy", "certificates", "revoke", "bob")
        with pytest.raises(AuditRefused) as caught:
            bob.ask(PREDICTIONS, "sp", CHARGE)
        assert caught.value.reason == "CALLER_UNKNOWN"
        alice.ask(PREDICTIONS, "sp", CHARGE)
    assert [developer for developer, _ in deployment.entries()] == ["alice", "bob", "alice"]


@pytest.mark.check
def test_a_renewed_certificate_of_the_service_needs_no_restart(deployment: Deployment) -> None:
    with deployment.served() as process, deployment.client("alice") as alice:
        alice.terms()
        run(deployment, "deploy", "certificates", "renew", "compliance")
        process.send_signal(signal.SIGHUP)
        wait_for(deployment, "SIGHUP: loans: metrics sp")
        alice.terms()
        with deployment.client("bob") as bob:
            bob.terms()
        (deployment.folder / "certificates/compliance/key.pem").write_text("no key")
        process.send_signal(signal.SIGHUP)
        wait_for(deployment, "SIGHUP: what was in force before stays so: ")
        with deployment.client("bob") as bob:
            bob.terms()
    assert "Traceback" not in deployment.log


def test_a_service_does_not_start_with_a_list_that_cannot_be_relied_on(deployment: Deployment) -> None:
    (deployment.folder / "certificates/compliance/revoked.pem").write_text("")
    with deployment.started() as process:
        assert process.wait(300) == 2
    assert re.fullmatch(r"compliance: .*revoked\.pem: not a list of revoked certificates .*\n", last_line(deployment))


def last_line(deployment: Deployment) -> str:
    return deployment.log.splitlines(keepends=True)[-1]


def wait_for(deployment: Deployment, text: str) -> None:
    """Wait until the service has said something."""
    deadline = time.monotonic() + 300
    while text not in deployment.log:
        assert time.monotonic() < deadline, deployment.log
        time.sleep(0.01)
