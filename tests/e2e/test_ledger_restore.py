"""The ledger is lost, and put back by the documented commands: what goes on exactly, and what is refused."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from compliance.ledger.entries import LOST, LedgerEntry
from compliance.ledger.place import inspect
from fairwall.client import Answer, AuditClient
from fairwall.errors import UserError
from sim.cli.deploy.ledger import app
from tests.e2e.test_ledger_page import documented
from tests.e2e.test_serve import BY_HAND, PREDICTIONS, deployment, refusal, serving
from tests.support import forked_programs
from tests.support.command import fairwall

BACKUP, SHOW, RESTORE, RESTORE_LOST = documented("Backup and restore")


def command(folder: Path, *words: str) -> str:
    done = fairwall(*words, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def refused(folder: Path, *words: str) -> str:
    """The one line of a command that is refused; in this process, since there are many."""
    with contextlib.chdir(folder):
        assert words[:2] == ("deploy", "ledger")
        done = CliRunner().invoke(app, words[2:])
    assert isinstance(done.exception, UserError), done.output
    assert done.stdout == ""
    assert "\n" not in str(done.exception)
    return str(done.exception)


def start_is_refused(folder: Path) -> str:
    ended = forked_programs.run(
        [sys.executable, *BY_HAND, "policy.toml"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 2
    return ended.stderr


def first(audits: AuditClient) -> Answer:
    return audits.ask(PREDICTIONS, "sp", 0.5, request_id="first")


def is_same(one: Answer, other: Answer) -> bool:
    ends = ("gaps", "low", "high", "epsilon_remaining")
    return all(np.array_equal(getattr(one, end), getattr(other, end)) for end in ends)


@pytest.mark.check
def test_the_drill(tmp_path: Path) -> None:
    own = deployment(tmp_path)
    ledger, copy = own / "ledger" / "ledger.sqlite", own / "backups" / "ledger-000005.sqlite"
    with serving(own) as running, running.client() as alice:
        told = first(alice)
        assert "5 records" in command(own, *BACKUP)
        assert is_same(told, first(alice)), "the service was not disturbed"
        assert running.end() == 0
    assert "The chain is whole: 5 records" in command(own, *SHOW)
    assert [path.name for path in copy.parent.iterdir()] == [copy.name], "one file that needs no other"
    assert copy.stat().st_mode & 0o777 == 0o600

    # Over a ledger that is there nothing is put back, nor beside what is left of one.
    assert "is never overwritten: move it away first" in refused(own, *RESTORE)
    shutil.rmtree(own / "ledger")
    assert "it is an old copy: it ends at record 0, and 5 was sealed" in start_is_refused(own)
    assert not ledger.parent.exists(), "that start has left nothing"
    ledger.parent.mkdir()
    ledger.with_name("ledger.sqlite-wal").write_bytes(b"left")
    assert "ledger.sqlite-wal: is there" in refused(own, *RESTORE)
    shutil.rmtree(own / "ledger")

    # The copy is the newest: all goes on as if nothing had been.
    head = (own / "seal" / "head").read_bytes()
    assert "nothing is lost" in refused(own, *RESTORE_LOST)
    assert "5 records" in command(own, *RESTORE)
    assert (own / "seal" / "head").read_bytes() == head
    with serving(own) as running, running.client() as alice, running.client("bob") as bob:
        assert is_same(told, first(alice))
        assert alice.terms().epsilon_remaining == 2.5
        later = bob.ask(PREDICTIONS, "sp", 1.0, request_id="later")
        alice.ask(PREDICTIONS, "sp", 0.3)
        assert running.end() == 0

    # Two more answers have left, and then it is lost: the copy is an old one.
    shutil.move(own / "ledger", tmp_path / "turns-up-later")
    text = "it is an old copy: it ends at record 5, and 7 was sealed"
    assert text in refused(own, *RESTORE)
    assert "--lost loans=EPSILON" in refused(own, *RESTORE)
    assert not ledger.exists()
    (own / "ledger").mkdir()
    shutil.copyfile(copy, ledger)
    assert text in start_is_refused(own)
    ledger.unlink()
    assert "no data set cards: it has loans" in refused(own, *RESTORE, "--lost", "cards=1")
    assert "6 records" in command(own, *RESTORE_LOST)

    # What was lost is charged, what is there is repeated, and what is not is charged anew.
    with serving(own) as running, running.client() as alice, running.client("bob") as bob:
        assert is_same(told, first(alice))
        again = bob.ask(PREDICTIONS, "sp", 1.0, request_id="later")
        assert not np.array_equal(again.gaps, later.gaps)
        assert alice.terms().epsilon_remaining == pytest.approx(4 - 0.5 - 1.3 - 1.0)
        reason, _ = refusal(lambda: alice.ask(PREDICTIONS, "sp", 1.25))
        assert reason == "BUDGET_EXHAUSTED"
        assert running.end() == 0
    (lost,) = [one for one in inspect(ledger)[0].records if isinstance(one, LedgerEntry) and one.request.metric == LOST]
    assert lost.request.loss.epsilon == 1.3
    assert LOST in command(own, "deploy", "ledger", "show", str(ledger))

    # The lost ledger turns up: it is not the one that was sealed.
    shutil.rmtree(own / "ledger")
    shutil.move(tmp_path / "turns-up-later", own / "ledger")
    assert "it is not the ledger that was sealed" in start_is_refused(own)


@pytest.mark.check
def test_what_cannot_be_told_from_another_ledger_is_not_put_back(tmp_path: Path) -> None:
    own = deployment(tmp_path)
    with serving(own) as running, running.client() as alice:
        told = first(alice)
        assert running.end() == 0
    command(own, *BACKUP)
    assert "holds the head" in refused(own, "deploy", "ledger", "backup", ".", "--policy", "policy.toml")
    shutil.rmtree(own / "ledger")

    # Without the key no record can be told from a forged one, and without the head no copy from an older one.
    seal = own / "certificates" / "compliance" / "seal.key"
    shutil.move(seal, tmp_path / "key")
    assert "seal.key: is not there" in refused(own, *RESTORE)
    seal.write_text(hashlib.sha256(b"another").hexdigest())
    seal.chmod(0o600)
    assert "not sealed with this key" in refused(own, *RESTORE)
    shutil.rmtree(own / "seal")
    assert "written without this key" in refused(own, *RESTORE)
    shutil.move(tmp_path / "key", seal)
    assert "the sealed head, which would tell whether that was the last, is missing" in refused(own, *RESTORE)
    assert "6 records" in command(own, *RESTORE, "--lost", "loans=inf")
    with serving(own) as running, running.client() as alice:
        assert is_same(told, first(alice))
        assert alice.terms().epsilon_remaining == 0
        assert running.end() == 0
