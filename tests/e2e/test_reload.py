"""A policy that changes while its service runs: all of it holds from then on or nothing, and no call is lost."""

from __future__ import annotations

import hashlib
import os
import queue
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compliance.deployment.running import read_by, service_of
from compliance.ledger.entries import Admission
from compliance.ledger.place import inspect
from fairwall.client.audit_client import AuditClient, AuditRefused
from fairwall.client.gaps import Audits
from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.rpc import arrays, channel, identity
from fairwall.rpc.errors import reason_of
from fairwall.wire.metrics import number_of
from fairwall.wire.v1 import error_pb2
from tests.support import command
from tests.support.loans_deployment import CHARGE, PREDICTIONS, Deployment, ask


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path)


def policy_of(deployment: Deployment) -> Path:
    return deployment.folder / "policy.toml"


def ledger_of(deployment: Deployment) -> Path:
    return deployment.folder / "ledger" / "ledger.sqlite"


def change(deployment: Deployment, old: str, new: str) -> None:
    """Change a policy's text, where it says something once."""
    text = policy_of(deployment).read_text()
    assert text.count(old) == 1, old
    policy_of(deployment).write_text(text.replace(old, new))


def reload(deployment: Deployment) -> str:
    """Have the policy read again; why it is not in force, empty if it is."""
    process, before = service_of(ledger_of(deployment)), read_by(ledger_of(deployment)).times
    assert process
    os.kill(process, signal.SIGHUP)
    deadline = time.monotonic() + 300
    while (told := read_by(ledger_of(deployment))).times <= before:  # it is none while it is written
        assert time.monotonic() < deadline, deployment.log
        time.sleep(0.005)
    return told.problem


def reason(audits: AuditClient, metric: str = "sp") -> str:
    """Why a question is refused; empty if it is answered."""
    try:
        audits.ask(PREDICTIONS, metric, CHARGE)
    except AuditRefused as refused:
        return refused.reason
    return ""


def records(deployment: Deployment) -> int:
    (found,) = inspect(ledger_of(deployment))
    assert found.fault == ""
    return len(found.records)


def admissions(deployment: Deployment) -> list[Admission]:
    return [each for each in inspect(ledger_of(deployment))[0].records if isinstance(each, Admission)]


@contextmanager
def asking(deployment: Deployment) -> Iterator[list[str]]:
    """Let alice ask all the time, on one connection; what comes of it."""
    outcomes: list[str] = []
    over = threading.Event()

    def keep_asking() -> None:
        with deployment.client("alice") as alice:
            while not over.is_set():
                outcomes.append(reason(alice))

    thread = threading.Thread(target=keep_asking)
    thread.start()
    try:
        while not outcomes:
            time.sleep(0.005)
        yield outcomes
    finally:
        over.set()
        thread.join()


# Carol comes ---------------------------------------------------------------------------------------------------------


def carol_comes(deployment: Deployment) -> list[str]:
    """Admit carol by one command, who asks at once; what alice hears meanwhile."""
    with deployment.served() as process, asking(deployment) as alices:
        done = command.fairwall(
            *("deploy", "certificates", "add", "carol", "--policy", "policy.toml", "--epsilon", "1"),
            cwd=deployment.folder,
            seconds=300,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == [
            "certificates/developer-carol",
            f"the service (process {process.pid}) has read its policy again",
        ]
        with deployment.client("carol") as carol:
            answer = carol.ask(PREDICTIONS, "sp", CHARGE)
            assert answer.epsilon_remaining == 1.0 - CHARGE
        assert process.poll() is None
    return alices


def test_carol_s_first_answer_takes_one_command_and_costs_alice_no_call(deployment: Deployment) -> None:
    assert set(carol_comes(deployment)) == {""}
    before, after = admissions(deployment)
    assert (before.served[0].developers, after.served[0].developers) == (("alice", "bob"), ("alice", "bob", "carol"))
    assert after.policy == hashlib.sha256(policy_of(deployment).read_bytes()).digest()
    export = command.fairwall("deploy", "ledger", "export", "ledger/ledger.sqlite", cwd=deployment.folder).stdout
    assert f'"record": "policy", "sequence": {after.sequence}' in export
    assert after.policy.hex() in export
    show = command.fairwall("deploy", "ledger", "show", "ledger/ledger.sqlite", cwd=deployment.folder).stdout
    assert re.search(rf"{after.sequence} .* {after.policy.hex()[:12]} +loans +sp +alice, bob, carol", show)


CLOSES_FIRST = """
import time
from compliance import __main__ as entry
from compliance.answers.accounts import Accounts
def replace(self, by, sound=Accounts.replace):
    sound(self, Accounts())
    time.sleep(0.5)
    sound(self, by)
Accounts.replace = replace
entry.main()
"""


@pytest.mark.slow
def test_a_service_that_takes_up_a_policy_by_halves_is_caught(deployment: Deployment) -> None:
    deployment.service = ("-c", CLOSES_FIRST)
    assert set(carol_comes(deployment)) == {"", "DEAL_UNKNOWN"}


# All or nothing ------------------------------------------------------------------------------------------------------


def other_people(deployment: Deployment) -> None:
    people = deployment.folder / "people.csv"
    lines = people.read_text().splitlines()
    (deployment.folder / "others.csv").write_text("\n".join([lines[0], *lines[:0:-1]][:-2]) + "\n")
    change(deployment, "people.csv", "others.csv")


def double(path: Path) -> None:
    path.write_bytes(2 * path.read_bytes())


def same_people(deployment: Deployment) -> None:
    """The same people in another order, some of them in the other group, under another name."""
    first, *rows = (deployment.folder / "people.csv").read_text().splitlines()
    moved = [("b" if place % 3 else "a") + row[1:] for place, row in enumerate(rows[1:] + rows[:1])]
    (deployment.folder / "again.csv").write_text("\n".join([first, *moved]) + "\n")
    change(deployment, "people.csv", "again.csv")
    change(deployment, "[data]", '[data]\nname = "new"')


BAD: dict[str, tuple[Callable[[Deployment], object], str]] = {
    "no TOML": (lambda it: change(it, "[audit]", "[audit"), "not valid TOML"),
    "a key that is missing": (lambda it: change(it, "queries_max", "querys_max"), "audit.queries_max: is missing"),
    "more than there is": (lambda it: change(it, "alice.epsilon = ", "alice.epsilon = 9"), "at most budget.epsilon"),
    "groups too small": (lambda it: change(it, "minimum_group = 5", "minimum_group = 50"), "data.minimum_group"),
    "groups smaller than noise was for": (
        lambda it: change(it, "minimum_group = 5", "minimum_group = 4"),
        "data.minimum_group: must be at least 5, not 4",
    ),
    "no data": (lambda it: change(it, "people.csv", "none.csv"), "none.csv: no such file"),
    "a NUL in a path": (
        lambda it: change(it, '"people.csv"', '"people\\u0000.csv"'),
        "data.source: must have no control characters",
    ),
    "a pipe": (
        lambda it: (os.mkfifo(it.folder / "pipe.csv"), change(it, "people.csv", "pipe.csv")),
        "data.source: must be a file, not 'pipe.csv'",
    ),
    "two lists": (
        lambda it: double(it.folder / "certificates/compliance/revoked.pem"),
        "revoked.pem: must hold one list",
    ),
    "other data": (other_people, "this name stands for other data"),
    "another name": (lambda it: change(it, "[data]", '[data]\nname = "new"'), "these people's data are called loans"),
    "the same people": (same_people, "data set new: these people's data are called loans, and have one budget"),
    "another rule": (lambda it: change(it, "[developers]", 'rule = "zcdp"\ndelta = 1e-6\n[developers]'), "not by zcdp"),
    "another address": (lambda it: change(it, it.address, "127.0.0.1:1"), "deployment.listen: cannot change while"),
    "another ledger": (lambda it: change(it, "ledger.sqlite", "new.sqlite"), "deployment.ledger: cannot change while"),
    "another seal": (lambda it: change(it, "seal/head", "seal/other"), "deployment.seal: cannot change while"),
    "a release": (
        lambda it: change(
            it,
            "[developers]",
            '[release]\nsource = "people.csv"\nprotocol = "grr"\nepsilon = 1.0\n[release.columns]\n'
            'group = ["a", "b"]\n[developers]',
        ),
        "release: the first cannot come",
    ),
    "a broken list": (
        lambda it: (it.folder / "certificates/compliance/revoked.pem").write_text(""),
        "revoked.pem: not a list",
    ),
    "no list": (
        lambda it: (it.folder / "certificates/compliance/revoked.pem").unlink(),
        "revoked.pem: cannot be read: No such file",
    ),
    "no authority": (
        lambda it: (it.folder / "certificates/compliance/authority.pem").write_text(""),
        "authority.pem: no certificate in PEM",
    ),
    "a broken key": (lambda it: (it.folder / "certificates/compliance/key.pem").write_text(""), "key.pem: not the"),
}


def spoil(deployment: Deployment, what: str) -> Callable[[], None]:
    """Spoil what a service reads again, and admit carol in the same policy; what puts it all back."""
    files = {
        path: path.read_bytes()
        for path in (policy_of(deployment), *(deployment.folder / "certificates/compliance").glob("*.pem"))
    }
    policy_of(deployment).write_text(policy_of(deployment).read_text() + "carol.epsilon = 1.0\n")
    change(deployment, "bob.epsilon = 1048576.0", "bob.epsilon = 2.0")
    BAD[what][0](deployment)

    def mend() -> None:
        for path, content in files.items():
            path.write_bytes(content)

    return mend


def test_a_policy_that_cannot_be_served_changes_nothing(deployment: Deployment) -> None:
    command.fairwall("deploy", "certificates", "add", "carol", cwd=deployment.folder)
    with deployment.served(), deployment.client("alice") as alice, deployment.client("carol") as carol:
        for what, (_, why) in BAD.items():
            before, logged, told = records(deployment), deployment.log, read_by(ledger_of(deployment)).policy
            mend = spoil(deployment, what)
            problem = reload(deployment)
            assert re.search(why, problem), what
            assert "\n" not in problem, what
            said = [line for line in deployment.log[len(logged) :].splitlines() if "ERROR" in line]
            assert len(said) == 1 + what.endswith((" list", " lists")), what
            assert said[0].endswith(f"SIGHUP: what was in force before stays so: {problem}") or len(said) == 2, what
            assert records(deployment) == before, what
            assert read_by(ledger_of(deployment)).policy == told, what
            mend()
            assert reason(alice) == "", what
            assert reason(carol) == "CALLER_NOT_ALLOWED", what
            assert records(deployment) == before + 1, what
        assert reload(deployment) == ""
    assert "Traceback" not in deployment.log
    assert len(admissions(deployment)) == 1


DROPS_FIRST = """
from compliance import __main__ as entry
from compliance.deployment import reload as deployment
held = []
def cases_of(self, cases, sound=deployment.AuditService.__init__):
    held.append(cases)
    sound(self, cases)
def check(before, after, sound=deployment.check_change):
    held[0].clear()
    sound(before, after)
deployment.AuditService.__init__ = cases_of
deployment.check_change = check
entry.main()
"""

WRITES_FIRST = """
from compliance import __main__ as entry
from compliance.deployment import reload as deployment
def agree(policies, data, ledger, sound=deployment.agree):
    for policy in policies.datasets.values():
        for name, share in policy.developers.items():
            if ledger.standing(policy.data_name).budget:
                ledger.allocate(policy.data_name, name, share.epsilon)
    sound(policies, data, ledger)
deployment.agree = agree
entry.main()
"""


@pytest.mark.slow
def test_a_service_that_drops_the_old_policy_before_the_new_is_checked_is_caught(deployment: Deployment) -> None:
    deployment.service = ("-c", DROPS_FIRST)
    with deployment.served(), deployment.client("alice") as alice:
        spoil(deployment, "groups too small")
        assert reload(deployment)
        assert reason(alice) == "DEAL_UNKNOWN"


@pytest.mark.slow
def test_a_service_that_writes_what_it_then_refuses_is_caught(deployment: Deployment) -> None:
    deployment.service = ("-c", WRITES_FIRST)
    with deployment.served():
        before = records(deployment)
        spoil(deployment, "other data")
        assert reload(deployment)
        assert records(deployment) > before


# What changes --------------------------------------------------------------------------------------------------------


def under_way(deployment: Deployment, meanwhile: Callable[[], object]) -> str:
    """Why bob's question is refused, during which something happens; empty if it is answered."""
    rest: queue.SimpleQueue[audit.AuditRequest | None] = queue.SimpleQueue()
    header = audit.AuditHeader(
        request_id="under way",
        deal_id="loans",
        metric=number_of("sp"),
        epsilon=CHARGE,
        predictions=arrays.header_of(PREDICTIONS[None]),
    )
    own = identity.load(deployment.folder / "certificates" / "developer-bob")
    with channel.connect(deployment.address, "compliance", own) as opened:
        call = Audits(opened).Audit.future(iter(rest.get, None), timeout=300)
        rest.put(audit.AuditRequest(header=header))
        data = PREDICTIONS.tobytes()
        rest.put(audit.AuditRequest(predictions_chunk=data[:100]))
        with deployment.client("bob") as bob:
            bob.terms()  # by now the service is at it
        meanwhile()
        rest.put(audit.AuditRequest(predictions_chunk=data[100:]))
        rest.put(None)
        failed = call.exception(timeout=300)
    return "" if failed is None else error_pb2.Reason.Name(reason_of(failed)).removeprefix("REASON_")


@pytest.mark.check
def test_metrics_budgets_quotas_and_people_change_and_calls_end_as_they_began(deployment: Deployment) -> None:
    with deployment.served(), deployment.client("alice") as alice, deployment.client("bob") as bob:
        paid = ask(bob, "paid")
        # Metrics: the call that began before ends by those that held then.
        change(deployment, '["sp"]', '["eo"]')
        assert under_way(deployment, lambda: reload(deployment)) == ""
        assert (reason(bob, "sp"), reason(bob, "eo")) == ("METRIC_NOT_ALLOWED", "")
        change(deployment, '["eo"]', '["sp", "eo"]')
        assert reload(deployment) == ""
        assert (reason(bob, "sp"), reason(bob, "eo")) == ("", "")
        # A share: what is spent stays spent, what was bought is given again.
        change(deployment, "bob.epsilon = 1048576.0", f"bob.epsilon = {6 * CHARGE!r}")
        assert reload(deployment) == ""
        assert bob.terms().epsilon_remaining == CHARGE
        assert (reason(bob), reason(bob), reason(alice)) == ("", "BUDGET_EXHAUSTED", "")
        assert ask(bob, "paid") == paid
        # The whole budget, below what is spent.
        text = policy_of(deployment).read_text()
        policy_of(deployment).write_text(re.sub(r"epsilon = (1048576\.0|0\.005859375)", "epsilon = 0.005", text))
        assert reload(deployment) == ""
        assert (reason(alice), reason(bob)) == ("BUDGET_EXHAUSTED", "BUDGET_EXHAUSTED")
        assert ask(bob, "paid") == paid
        assert "loans: 0.00683594 is spent, of 0.005: it answers repeats alone" in deployment.log
        policy_of(deployment).write_text(text)
        assert reload(deployment) == ""
        assert reason(alice) == ""
        # A quota: what is used of it stays used.
        change(deployment, "alice.epsilon", "alice.calls_a_day = 7\nalice.epsilon")
        assert reload(deployment) == ""
        outcomes = [reason(alice) for _ in range(8)]
        assert outcomes == [*[""] * outcomes.count(""), *["QUOTA_EXHAUSTED"] * outcomes.count("QUOTA_EXHAUSTED")]
        assert 0 < outcomes.count("") < 7
        # Bob goes, in the middle of a call.
        policy_of(deployment).write_text(re.sub(r"(?m)^bob\.epsilon.*\n", "", policy_of(deployment).read_text()))
        assert under_way(deployment, lambda: reload(deployment)) == "CALLER_NOT_ALLOWED"
        assert reason(bob) == "CALLER_NOT_ALLOWED"
    (found,) = inspect(ledger_of(deployment))
    assert found.books.standing("loans", "bob").remaining == 0
    assert [each.served[0].metrics for each in admissions(deployment)][:3] == [("sp",), ("eo",), ("sp", "eo")]
    assert [each.served[0].developers for each in admissions(deployment)][-1] == ("alice",)
    before = records(deployment)
    with deployment.served():
        assert reload(deployment) == ""
    assert records(deployment) == before


ADMITS_FOR_GOOD = """
from compliance.__main__ import main
from fairwall.rpc import server
def admit(self, deployed, sound=server._Gate.admit):
    admitted = {caller: server.Quota() for caller in self._places} | dict(deployed.admitted)
    sound(self, server.Deployed(admitted, deployed.is_ready, deployed.revoked))
server._Gate.admit = admit
main()
"""


@pytest.mark.slow
def test_a_service_that_lets_nobody_go_is_caught(deployment: Deployment) -> None:
    deployment.service = ("-c", ADMITS_FOR_GOOD)
    with deployment.served(), deployment.client("bob") as bob:
        policy_of(deployment).write_text(re.sub(r"(?m)^bob\.epsilon.*\n", "", policy_of(deployment).read_text()))
        assert reload(deployment) == ""
        assert reason(bob) != "CALLER_NOT_ALLOWED"


# The command ---------------------------------------------------------------------------------------------------------


def refused(deployment: Deployment, *arguments: str) -> tuple[int, str]:
    done = command.fairwall("deploy", "certificates", *arguments, "--policy", "policy.toml", cwd=deployment.folder)
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 1
    return done.returncode, done.stderr


@pytest.mark.check
def test_who_cannot_be_admitted_is_refused_in_one_line_and_gets_no_certificate(deployment: Deployment) -> None:
    before = policy_of(deployment).read_text()
    for arguments, why in {
        ("add", "alice", "--epsilon", "1"): "policy.toml: developers.alice: is there already",
        ("add", "carol", "--epsilon", "1e9"): "developers.carol.epsilon: must be at most budget.epsilon",
        ("add", "carol", "--epsilon", "-1"): "developers.carol.epsilon: must",
        ("add", "carol", "--epsilon", "nan"): "developers.carol.epsilon: must",
        ("add", "carol", "--epsilon", "1", "--release", "1"): "developers.carol.release: there is no section release",
        ("add", "carol"): "--policy, --epsilon: a developer comes into a policy with an epsilon",
        ("add", "Carol", "--epsilon", "1"): "must be 1 to 63 lower-case letters",
    }.items():
        status, said = refused(deployment, *arguments)
        assert (status, why in said) == (2, True), said
    assert policy_of(deployment).read_text() == before
    assert sorted(path.name for path in (deployment.folder / "certificates").iterdir()) == [
        *("authority", "compliance", "developer-alice", "developer-bob", "issued.pem"),
    ]
    policy_of(deployment).chmod(0o640)
    done = command.fairwall(
        *("deploy", "certificates", "add", "carol", "--policy", "policy.toml", "--epsilon", "1", "--delta", "0.0"),
        cwd=deployment.folder,
    )
    assert done.stdout.splitlines()[1] == "the service is not running: it reads its policy when it starts"
    assert policy_of(deployment).read_text() == f"{before}\n[developers.carol]\nepsilon = 1.0\ndelta = 0.0\n"
    assert policy_of(deployment).stat().st_mode & 0o777 == 0o640


@pytest.mark.check
def test_the_command_says_that_the_service_keeps_its_policy(deployment: Deployment) -> None:
    with deployment.served() as process, deployment.client("alice") as alice:
        (deployment.folder / "people.csv").write_text("group,repaid\n")
        status, said = refused(deployment, "add", "carol", "--epsilon", "1")
        assert (status, alice.terms().people) == (1, 60)
        assert said.startswith(f"fairwall: the service (process {process.pid}) keeps the policy that it had: ")


@pytest.mark.check
def test_a_second_service_of_a_ledger_says_that_commands_will_not_find_it(deployment: Deployment) -> None:
    with deployment.served() as process:
        change(deployment, deployment.address, "127.0.0.1:0")
        with deployment.started() as second:
            assert second.stdout is not None
            assert second.stdout.readline()
            assert service_of(ledger_of(deployment)) == process.pid
            second.send_signal(signal.SIGHUP)
        said = ledger_of(deployment).with_name(f"{ledger_of(deployment).name}.service")
        assert said.stat().st_mode & 0o777 == 0o600
    assert "another service uses this ledger; send this one SIGHUP yourself" in deployment.log
    assert service_of(ledger_of(deployment)) is None
