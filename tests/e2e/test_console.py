"""The console as its reader has it: a real process beside a real service, asked over HTTP and in a real browser."""

from __future__ import annotations

import hashlib
import html
import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import psutil
import pytest

from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Neighbours, pure
from compliance.ledger.entries import Reply, Request
from fairwall.client import AuditRefused
from sim.deployment.certificates import authority_of, revoke
from tests.support import forked_programs, postgres_server
from tests.support.browser import AXE, CHROMIUM, cut_off, grave_faults
from tests.support.command import fairwall
from tests.support.loans_deployment import CHARGE, PREDICTIONS, Deployment, ask, free_port

HOSTILE = (
    "<script>document.title='taken'</script>",
    '"><img src=x onerror="document.title=\'taken\'">',
    "</td></table><h1 onclick=x>",
    "$\\frac{$ {{ 7 * 7 }} _",
    "_" + "w" * 3000,
    "a\u202eb\u2066c\x1b[31m\u0000d\u200b",
    "=HYPERLINK(1)",
)


@dataclass(frozen=True)
class Console:
    """A console that runs."""

    process: subprocess.Popen[str]
    port: int

    def ask(self, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
        """Ask it for something: the status, the text and the headers of what it answers."""
        with_it = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            with_it.request(method, path, headers=headers)
            answer = with_it.getresponse()
            return answer.status, answer.read().decode(), dict(answer.getheaders())
        finally:
            with_it.close()

    def page(self) -> str:
        """Return its page once it tells of all that happened before."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(0.3)  # it may have one that was made just before
        status, text, _ = self.ask()
        assert status == 200, text
        return text


@contextmanager
def console(folder: Path, *options: str) -> Iterator[Console]:
    """Start one, end it by Ctrl-C, and see that it ended well and said nothing."""
    words = ["deploy", "console", "--policy", str(folder / "policy.toml"), "--port", "0", *options]
    with (
        (folder / "said").open("w") as said,
        forked_programs.Popen(
            [sys.executable, "-m", "sim", *words], stdout=subprocess.PIPE, stderr=said, text=True
        ) as own,
    ):
        try:
            assert own.stdout is not None
            line = own.stdout.readline()
            assert line.startswith("console: http://127.0.0.1:"), (folder / "said").read_text()
            yield Console(own, int(line.rpartition(":")[2].strip("/\n")))
            own.send_signal(signal.SIGINT)
            assert (own.wait(60), (folder / "said").read_text()) == (0, "")
        finally:
            own.kill()


def hostile(folder: Path, names: Sequence[str] = HOSTILE) -> Deployment:
    """A deployment with a ledger and a log in which others chose the names, and with no service."""
    own = Deployment(folder)
    (folder / "ledger").mkdir()
    ledger = Ledger(folder / "ledger/ledger.sqlite")
    for name in names:
        ledger.set_budget(name, Neighbours.A_FLIP, Budget(3.0))
        for developer in names:
            ledger.allocate(name, developer, 1.5)
        digest = hashlib.sha256(name.encode()).digest()
        asked = Request(name, name, name, digest, "sp", "laplace", Neighbours.A_FLIP, pure(0.25))
        ledger.settle(asked, lambda _: Reply(bytes(24)))
    ledger.close()
    call = {
        "time": "2026-01-02T03:04:05+00:00",
        "outcome": "refused",
        "method": "<b>",
        "caller": "<u>",
        "reason": "<s>",
    }
    lines = [json.dumps(call), "<i>", json.dumps(call | {"caller": "<u>\u202e"})]
    (folder / "service.log").write_text("\n".join(lines))
    return own


class Elements(HTMLParser):
    """What a page consists of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen |= {tag, *(name for name, _ in attributes)}


def taken_in(text: str) -> set[str]:
    """Of the elements and attributes of a page those that only a name can have brought in."""
    return Elements(text).seen & {"script", "img", "b", "u", "s", "onerror", "onclick"}


@pytest.mark.check
def test_what_was_asked_refused_and_issued_is_shown(tmp_path: Path) -> None:
    own = Deployment(tmp_path)
    own.set_budget(4 * CHARGE, bob=2 * CHARGE)
    log = ("--log", str(tmp_path / "log"))
    with own.served() as service, own.client("alice") as alice, console(tmp_path, *log) as shown:
        ask(alice, "first-question")
        with own.client("bob") as bob, pytest.raises(AuditRefused):
            bob.ask(PREDICTIONS, "sp", 3 * CHARGE)
        text = shown.page()
        assert "ε = 0.00293 of 0.00391 is left, after 1 charge." in text
        assert "first-question" in text
        assert "1 call was refused, by the log." in text
        assert "BUDGET_EXHAUSTED" in text
        assert text.count("alice: the last certificate ends on ") == 1
        assert f"Process {service.pid} serves this ledger." in text
        assert "The policy in force is the one in the file." in text
        assert f"certificates revoke alice --dir {tmp_path / 'certificates'}" in html.unescape(
            text.replace("<span>", "").replace("</span>", "")
        )
        assert "Left of the budget of loans: all 0.00293, alice 0.00293, bob 0.00195." in text

        report = fairwall(
            "deploy", "ledger", "report", "--policy", tmp_path / "policy.toml", "--out", tmp_path / "one.html"
        )
        assert report.returncode == 0, report.stderr
        ask(alice, "another")
        folder = tmp_path / "certificates"
        revoke(folder, "alice", authority_of(folder / "authority/authority.pem", folder / "authority/key.pem"))
        (tmp_path / "policy.toml").write_text((tmp_path / "policy.toml").read_text() + "\n")
        text = shown.page()
        assert text.index(">another<") < text.index(">first-question<"), "newest first"
        assert "when the ledger had 5 records; now it has 6 records." in text
        assert "alice: the last certificate" not in text
        assert ">revoked<" in text
        assert "The policy in force is not the one in the file." in text

        (tmp_path / "one.html").write_text("another page")
        assert f"{tmp_path / 'one.html'}: the page is not the one that was signed with this statement" in shown.page()


def test_nothing_but_the_page_is_answered_and_to_nobody_else(tmp_path: Path) -> None:
    Deployment(tmp_path)
    with console(tmp_path) as shown:
        status, text, headers = shown.ask()
        assert (status, headers["Refresh"], headers["Cache-Control"]) == (200, "30; url=/", "no-store")
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src-elem 'sha256-")
        assert "script" not in policy
        assert "frame-ancestors 'none'" in policy
        assert {"script", "form", "button", "input", "iframe"}.isdisjoint(Elements(text).seen)
        status, still, headers = shown.ask("/still")
        assert (status, "Refresh" in headers, "fairwall console" in still) == (200, False, True)
        assert shown.ask(method="HEAD")[:2] == (200, "")

        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE"):
            assert shown.ask(method=method)[:2] == (405, "only GET and HEAD are answered\n"), method
        for path in ("/page", "/?x", "/still/", "/../etc/passwd", "/%2e"):
            assert shown.ask(path)[:2] == (404, "there is no such page\n"), path
        for host in ("evil.example", f"evil.example:{shown.port}", "127.0.0.1", f"127.0.0.1:{shown.port + 1}", ""):
            assert shown.ask(Host=host)[0] == 421, host
        assert shown.ask(Host=f"localhost:{shown.port}")[0] == 200
        for sent in (
            b"GET /\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"<script>\r\n\r\n",
            b"\0\xff\r\n\r\n",
            b"G" * 70_000,
        ):
            with socket.create_connection(("127.0.0.1", shown.port), 60) as own:
                own.sendall(sent)
                own.shutdown(socket.SHUT_WR)
                with suppress(ConnectionError):  # it hung up before it had read all
                    assert b"<script>" not in (told := b"".join(iter(lambda own=own: own.recv(1 << 16), b"")))
                    assert b"200 OK" not in told
        assert [
            each.laddr for each in psutil.Process(shown.process.pid).net_connections() if each.status == "LISTEN"
        ] == [("127.0.0.1", shown.port)]
        assert shown.ask()[0] == 200


@pytest.mark.check
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize(("options", "status"), [((), 403), (("--user", "nobody"), 200)])
def test_other_users_of_the_machine_are_not_answered(tmp_path: Path, options: tuple[str, ...], status: int) -> None:
    """A port is open to all of them, and the ledger's file to one."""
    import pwd

    Deployment(tmp_path)
    with console(tmp_path, *options) as shown:
        os.seteuid(pwd.getpwnam("nobody").pw_uid)
        try:
            found = shown.ask()
        finally:
            os.seteuid(0)
        assert found[0] == status
        assert ("loans" in found[1]) == (status == 200)


@pytest.mark.check
def test_names_that_others_chose_are_text(tmp_path: Path) -> None:
    hostile(tmp_path)
    with console(tmp_path, "--log", str(tmp_path / "service.log")) as shown:
        text = shown.page()
    assert taken_in(text) == set()
    assert "&lt;script&gt;document.title" in text
    assert "{{ 7 * 7 }}" in text
    assert not any(letter in text for letter in "\u202e\u2066\x1b\u0000\u200b")
    assert "w" * 200 not in text
    assert len(text) < 2_000_000
    # A template that does not escape is noticed.
    assert taken_in(html.unescape(text)) >= {"script", "img", "b", "u", "s", "onerror", "onclick"}


@pytest.mark.check
def test_what_cannot_be_read_is_said_and_the_console_goes_on(tmp_path: Path) -> None:
    own = hostile(tmp_path, HOSTILE[:1])
    ledger, policy = tmp_path / "ledger/ledger.sqlite", tmp_path / "policy.toml"
    with console(tmp_path, "--log", str(tmp_path / "none.log")) as shown:
        assert "none.log: cannot be read: No such file or directory" in shown.page()
        kept = ledger.read_bytes()
        ledger.unlink()
        text = shown.page()
        assert f"{ledger}: there is no such file" in text
        assert ">alice<" in text, "certificates are shown all the same"
        assert not ledger.exists()
        ledger.write_bytes(b"no ledger")
        assert "bring back an untouched copy" in shown.page()
        ledger.write_bytes(kept)
        with sqlite3.connect(ledger) as db:
            db.execute("UPDATE entries SET epsilon = 0 WHERE sequence = (SELECT max(sequence) FROM entries)")
        db.close()
        assert "The chain is BROKEN" in shown.page()
        (tmp_path / "certificates/issued.pem").unlink()
        assert "issued.pem: cannot be opened" in shown.page()
        policy.write_text("[deployment\n")
        assert "policy.toml: not valid TOML" in shown.page()
        own.set_budget(1.0)
        assert "not valid TOML" not in shown.page()


@pytest.mark.check
def test_a_ledger_that_is_locked_is_said_to_be(tmp_path: Path) -> None:
    hostile(tmp_path, HOSTILE[:1])
    with console(tmp_path) as shown, sqlite3.connect(tmp_path / "ledger/ledger.sqlite", isolation_level=None) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("BEGIN EXCLUSIVE")
        assert "ledger.sqlite: database is locked" in shown.page()
        db.execute("ROLLBACK")
        assert "is left, after 1 charge" in shown.page()
    db.close()


@pytest.mark.check
def test_a_service_answers_while_the_console_reads(tmp_path: Path) -> None:
    own, over, read = Deployment(tmp_path), threading.Event(), []

    with own.served(), own.client("alice") as alice, console(tmp_path) as shown:

        def look() -> None:
            while not over.is_set():
                read.append(shown.page().count("is left, after"))

        reader = threading.Thread(target=look)
        reader.start()
        try:
            asked = 0
            while len(read) < 3:
                ask(alice, f"question-{asked}")
                asked += 1
        finally:
            over.set()
            reader.join()
        assert set(read) == {1}
        assert f"after {asked:,} charges." in shown.page()
    assert len(own.entries()) == asked


@pytest.mark.check
def test_a_console_that_cannot_be_is_refused_in_a_line(tmp_path: Path) -> None:
    Deployment(tmp_path)
    policy = tmp_path / "policy.toml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for words, said in (
            (("--port", port), f"--port {port}: Address already in use: choose another, or 0 for any"),
            (("--user", "no such"), "--user no such: there is no such user on this machine"),
        ):
            done = fairwall("deploy", "console", "--policy", policy, *words)
            assert (done.returncode, done.stdout, done.stderr) == (2, "", f"fairwall: {said}\n")
    policy.unlink()
    done = fairwall("deploy", "console", "--policy", policy)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


@pytest.mark.check
def test_the_services_of_a_database_are_named(tmp_path: Path) -> None:
    own = Deployment(tmp_path, postgres_server.shared().new_database())
    with own.served() as first, own.served("--listen", f"127.0.0.1:{free_port()}") as second:
        with console(tmp_path) as shown, own.client("alice") as alice:
            ask(alice, "first-question")
            text = shown.page()
        assert "first-question" in text
        host = os.uname().nodename[:40]
        names = sorted(f"fairwall {host} {process.pid}" for process in (first, second))
        assert f"Connected to the ledger&#39;s database, by host and process: {', '.join(names)}." in text


@pytest.mark.slow(seconds=25)
def test_the_page_is_fit_for_everybody_whatever_names_it_has(tmp_path: Path) -> None:
    if CHROMIUM is None or not AXE.exists():
        pytest.skip("no browser is installed, or no axe-core: make browser")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed", exc_type=ImportError)
    hostile(tmp_path)
    with console(tmp_path, "--log", str(tmp_path / "service.log")) as shown, playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width in (1200, 390):
            for scheme in ("light", "dark"):
                # Axe is a script, and the page takes none: it is let in once it was seen that nothing is held back.
                for is_watched in (True, False):
                    context: Any = browser.new_context(
                        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=not is_watched
                    )
                    tab = context.new_page()
                    left: list[str] = []
                    tab.on("request", lambda request, left=left: left.append(request.url))
                    tab.on("console", lambda message, left=left: left.append(message.text))
                    tab.goto(f"http://127.0.0.1:{shown.port}/")
                    assert left == [f"http://127.0.0.1:{shown.port}/"], "nothing is fetched, and nothing held back"
                    assert tab.title() == "loans – fairwall console"
                    assert tab.locator("h1").count() == 1
                    if not is_watched:
                        assert grave_faults(tab) == [], (width, scheme)
                        assert cut_off(tab) == [], (width, scheme)
                        tab.screenshot(path=tmp_path / f"{width}-{scheme}.png", full_page=True)
                    context.close()
        browser.close()
