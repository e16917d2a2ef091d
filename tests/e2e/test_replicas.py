"""Several services on one PostgreSQL ledger: one budget, one policy, and clients that go where somebody answers."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from compliance.ledger.place import inspect
from fairwall.client import AuditClient, AuditRefused, AuditUnavailable
from tests.support import postgres_server
from tests.support.command import fairwall
from tests.support.loans_deployment import CHARGE, Deployment, ask, free_port, is_ready


@pytest.fixture
def url() -> str:
    return postgres_server.shared().new_database()


@pytest.fixture
def deployment(tmp_path: Path, url: str) -> Deployment:
    return Deployment(tmp_path, url)


@pytest.fixture
def second() -> str:
    return f"127.0.0.1:{free_port()}"


@pytest.fixture
def server() -> Iterator[postgres_server.Server]:
    """A server that a test may stop."""
    server = postgres_server.begin()
    yield server
    postgres_server.remove(server)


def until(what: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not what():
        assert time.monotonic() < give_up, "it does not happen"
        time.sleep(0.05)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(AuditRefused) as caught:
        call()
    return caught.value.reason


# One ledger -----------------------------------------------------------------------------------------------------------


@pytest.mark.check
def test_an_answer_that_one_service_gave_the_other_gives_again(deployment: Deployment, second: str) -> None:
    with (
        deployment.served(),
        deployment.served("--listen", second),
        deployment.client("alice") as one,
        deployment.client("alice", second) as other,
    ):
        first = ask(one, "r")
        assert ask(other, "r") == first
        assert ask(other, "s") != first
        assert ask(one, "s") == ask(other, "s")
        with deployment.client("bob", second) as bob:
            assert ask(bob, "r") != first
    assert len(deployment.entries()) == 3


@pytest.mark.check
def test_developers_at_two_services_never_exceed_the_budget(deployment: Deployment, second: str) -> None:
    deployment.set_budget(20 * CHARGE)
    with deployment.served(), deployment.served("--listen", second), ThreadPoolExecutor(4) as threads:

        def spend(number: int) -> int:
            answered = 0
            developer, address = ("alice", "bob")[number % 2], (deployment.address, second)[number // 2]
            with deployment.client(developer, address) as audits, suppress(AuditRefused):
                while True:
                    ask(audits, f"{number} {answered}")
                    answered += 1
            return answered

        assert sum(threads.map(spend, range(4))) == 20
    assert len(deployment.entries()) == 20


def test_a_client_of_both_goes_on_where_one_dies(deployment: Deployment, second: str) -> None:
    with (
        deployment.served("--listen", second),
        AuditClient([deployment.address, second], deployment.folder / "certificates" / "developer-alice") as audits,
    ):
        with deployment.served() as dying:
            answers = {name: ask(audits, name) for name in map(str, range(20))}
            dying.kill()
            dying.wait()
            answers |= {name: ask(audits, name) for name in map(str, range(20, 40))}
        assert {name: ask(audits, name) for name in answers} == answers
    assert len(deployment.entries()) == 40


def test_addresses_that_cannot_be_are_refused(deployment: Deployment) -> None:
    credentials = deployment.folder / "certificates" / "developer-alice"
    with pytest.raises(ValueError, match="'here' is not host:port"):
        AuditClient(["here", "127.0.0.1:1"], credentials)
    with pytest.raises(ValueError, match=r"no host of nobody\.invalid:1 is known here"):
        AuditClient(["nobody.invalid:1"], credentials)
    with (
        AuditClient(["127.0.0.1:9", "127.0.0.1:10"], credentials) as audits,
        pytest.raises(AuditUnavailable, match=r"no answer from 127\.0\.0\.1:9 and 127\.0\.0\.1:10: nobody is there"),
    ):
        audits.terms()


# One policy -----------------------------------------------------------------------------------------------------------


@pytest.mark.check
def test_a_policy_that_one_service_reads_again_all_follow(deployment: Deployment, second: str) -> None:
    policy = deployment.folder / "policy.toml"
    with deployment.served() as told, deployment.served("--listen", second):
        with deployment.client("bob", second) as bob:
            ask(bob, "first")
            policy.write_text("\n".join(line for line in policy.read_text().splitlines() if "bob" not in line))
            told.send_signal(signal.SIGHUP)
            until(lambda: refused(lambda: ask(bob, "second")))  # whom it admits no more
        with deployment.client("alice", second) as alice:
            until(lambda: not refused_for_now(lambda: ask(alice, "first")))  # bob loses his share before the rest holds
        assert is_ready_as(deployment, "alice", second)


def refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except AuditRefused as error:
        return error.reason != "LEDGER_UNAVAILABLE"  # until it has read the file it answers nothing new
    except AuditUnavailable:  # a certificate that is not admitted
        return True
    return False


def refused_for_now(call: Callable[[], object]) -> bool:
    try:
        call()
    except AuditRefused as error:
        return error.reason == "LEDGER_UNAVAILABLE"
    return False


def is_ready_as(deployment: Deployment, developer: str, address: str) -> bool:
    with suppress(Exception), deployment.client(developer, address) as audits:
        audits.terms()
        return True
    return False


@pytest.mark.check
def test_a_service_with_an_older_file_answers_nothing_new_and_says_why(deployment: Deployment, second: str) -> None:
    policy, older = deployment.folder / "policy.toml", deployment.folder / "older.toml"
    older.write_text(policy.read_text())
    with (
        deployment.served() as told,
        deployment.served("--listen", second, policy="older.toml"),
        deployment.client("alice", second) as audits,
    ):
        first = ask(audits, "first")
        policy.write_text(policy.read_text() + "# another text\n")
        told.send_signal(signal.SIGHUP)
        until(lambda: not is_ready(deployment, second))
        assert refusal(lambda: ask(audits, "second")) == "LEDGER_UNAVAILABLE"
        assert ask(audits, "first") == first
        until(lambda: "is in force, and this service's file is another one" in deployment.log)
        assert is_ready(deployment)
        with deployment.client("alice") as newer:
            second_answer = ask(newer, "second")
        older.write_text(policy.read_text())  # no signal: it notices
        until(lambda: is_ready(deployment, second))
        assert ask(audits, "second") == second_answer
        ask(audits, "third")


@pytest.mark.check
def test_a_service_that_starts_with_an_older_file_does_not_put_it_in_force(deployment: Deployment, second: str) -> None:
    policy, older = deployment.folder / "policy.toml", deployment.folder / "older.toml"
    older.write_text(policy.read_text())
    with deployment.served(), deployment.client("alice") as audits:
        first = ask(audits, "first")
    deployment.set_budget(2.0)
    with deployment.served(), deployment.served("--listen", second, policy="older.toml") as late:
        with deployment.client("alice", second) as audits:
            assert ask(audits, "first") == first
            assert refusal(lambda: ask(audits, "second")) == "LEDGER_UNAVAILABLE"
            assert not is_ready(deployment, second)
            assert "nothing new is answered: policy" in deployment.log
            assert audits.terms().epsilon == 2.0
            late.send_signal(signal.SIGHUP)  # whoever says so puts it in force again
            until(lambda: is_ready(deployment, second))
            ask(audits, "second")
        until(lambda: not is_ready(deployment))  # and the other one, whose file is not that


# The database ---------------------------------------------------------------------------------------------------------


@pytest.mark.check
def test_health_follows_the_database_and_nothing_is_lost(
    tmp_path: Path, server: postgres_server.Server, second: str
) -> None:
    deployment = Deployment(tmp_path, server.url())
    with deployment.served(), deployment.served("--listen", second), deployment.client("alice") as audits:
        first = ask(audits, "first")
        server.stop()
        for address in (deployment.address, second):
            until(lambda address=address: not is_ready(deployment, address))  # type: ignore[misc]
        assert refusal(lambda: ask(audits, "second")) == "LEDGER_UNAVAILABLE"
        server.start()
        for address in (deployment.address, second):
            until(lambda address=address: is_ready(deployment, address))  # type: ignore[misc]
        assert ask(audits, "first") == first
        ask(audits, "second")
    assert len(deployment.entries()) == 2
    assert "Traceback" not in deployment.log


@pytest.mark.check
def test_heads_are_kept_in_another_database_but_not_on_the_same_server(
    tmp_path: Path, url: str, server: postgres_server.Server, second: str
) -> None:
    (tmp_path / "one").mkdir(), (tmp_path / "other").mkdir()
    beside = Deployment(tmp_path / "one", url, postgres_server.shared().new_database())
    with beside.started() as process:
        assert process.wait(60) == 2
    assert "is on the ledger's server, and would be restored with it: keep the head elsewhere" in beside.log
    deployment = Deployment(tmp_path / "other", url, server.url())
    with (
        deployment.served(),
        deployment.served("--listen", second),
        deployment.client("alice") as audits,
        deployment.client("alice", second) as other,
    ):
        first = ask(audits, "first")
        assert ask(other, "first") == first
        server.stop()
        assert refusal(lambda: ask(other, "second")) == "LEDGER_UNAVAILABLE"
        server.start()
        until(lambda: is_ready(deployment))
        ask(other, "second")
    assert len(deployment.entries()) == 2


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("ledger", "why"),
    [
        ("postgresql://ann:s3cret@127.0.0.1/ledger", "deployment.ledger: it has a password in it: write it to a file"),
        ("postgresql://ann@127.0.0.1:9/ledger", "postgresql://127.0.0.1:9/ledger: .*Connection refused"),
        ("postgresql://ann@127.0.0.1:port/ledger", "deployment.ledger: it is no address of a database"),
    ],
)
def test_a_database_that_cannot_be_is_one_line_and_status_2(tmp_path: Path, ledger: str, why: str) -> None:
    deployment = Deployment(tmp_path, ledger)
    with deployment.started() as process:
        assert process.wait(60) == 2
    (line,) = (line for line in deployment.log.splitlines() if line.startswith("compliance: "))
    assert re.search(why, line)
    assert "s3cret" not in deployment.log


@pytest.mark.check
def test_the_health_of_each_service_can_be_asked(deployment: Deployment, second: str) -> None:
    policy = deployment.folder / "policy.toml"
    with deployment.served("--listen", second):
        for address, said in ((second, "serving\n"), (deployment.address, "not serving\n")):
            asked = fairwall("deploy", "health", "--policy", policy, "--listen", address)
            assert (asked.stdout, asked.returncode) == (said, said.startswith("not"))


@pytest.mark.check
def test_where_to_listen_may_be_said_at_the_start(deployment: Deployment) -> None:
    with deployment.started("--listen", "nowhere") as process:
        assert process.wait(60) == 2
    assert deployment.log == "compliance: --listen: must be host:port, such as 127.0.0.1:7443, not nowhere\n"


# What is done with a ledger -------------------------------------------------------------------------------------------


def command(*words: object) -> str:
    done = fairwall("deploy", "ledger", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.check
def test_a_ledger_in_a_database_is_shown_exported_reported_copied_and_restored(
    deployment: Deployment, url: str, tmp_path: Path
) -> None:
    policy = str(tmp_path / "policy.toml")
    with deployment.served(), deployment.client("alice") as audits:
        answers = {name: ask(audits, name) for name in ("a", "b", "c")}
        (found,) = inspect(url)
        head = found.books.head
        shown = command("show", url)
        assert f"The chain of loans is whole: {head.sequence} records, up to\n{head.chain.hex()}" in shown
        lines = command("export", url).splitlines()
        assert len(lines) == head.sequence + 1
        assert head.chain.hex() in lines[-1]
        command("report", "--policy", policy, "--out", str(tmp_path / "page.html"))
        assert head.chain.hex() in (tmp_path / "page.html").read_text()
        copied = command("backup", str(tmp_path / "backups"), "--policy", policy)
    copy = tmp_path / "backups" / f"ledger-loans-{head.sequence:06d}.sqlite"
    assert copied == f"copy: {copy}\n{head.sequence} records, up to\n{head.chain.hex()}\n"
    assert command("show", str(copy)).count("The chain is whole") == 1
    with deployment.started() as process:  # what is lost is not begun anew
        process.kill()
        with psycopg.connect(url) as db:
            db.execute("DROP SCHEMA fairwall CASCADE")
    with deployment.started() as process:
        assert process.wait(60) == 2
    assert "old copy: it ends at record 0" in deployment.log
    restored = command("restore", str(copy), "--policy", policy)
    assert restored.endswith(f"{head.sequence} records, up to\n{head.chain.hex()}\n")
    with deployment.served(), deployment.client("alice") as audits:
        assert {name: ask(audits, name) for name in answers} == answers
        ask(audits, "d")
    assert len(deployment.entries()) == 4
