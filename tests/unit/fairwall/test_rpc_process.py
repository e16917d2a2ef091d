"""A party's process: it takes its configuration once, refuses a bad one in one line, and ends with its stdin."""

from __future__ import annotations

import errno
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from fairwall.game.v1.referee_service_pb2 import GAME_REVEAL
from fairwall.game.v1.referee_service_pb2_grpc import add_RefereeServiceServicer_to_server
from fairwall.rpc import process, server
from fairwall.rpc.identity import Credentials
from fairwall.rpc.process import PartyConfig
from sim.games.referee import Referee
from sim.games.reveal.trial import RevealDealer
from sim.games.table import GameTable
from sim.play.keys import mint

PARTIES = ("compliance", "developer", "adversary")


@pytest.fixture(scope="module")
def credentials() -> dict[str, Credentials]:
    return mint("run-1")


def config_of(credentials: Credentials, referee: str = "127.0.0.1:1") -> dict[str, Any]:
    return {
        "run": credentials.run,
        "party": credentials.party,
        "referee": referee,
        "listen": "127.0.0.1:0",
        "authority": credentials.authority,
        "certificate": credentials.certificate,
        "key": credentials.key,
    }


def command(party: str, source: object) -> list[str]:
    return [sys.executable, "-I", "-m", party, "--config", str(source)]


def ends_with_one_line(party: str, source: object, stdin: str = "") -> str:
    """What a party says on its way out because of a bad configuration."""
    ended = subprocess.run(command(party, source), input=stdin, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"{party}: configuration")
    assert ended.stderr.count("\n") == 1
    assert "PRIVATE KEY" not in ended.stderr
    return ended.stderr.strip()


BAD: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a missing key": (lambda config: config.pop("referee"), "key 'referee' is missing"),
    "an unknown key": (lambda config: config.update(seed="1"), "unknown key 'seed'"),
    "a number": (lambda config: config.update(listen=0), "key 'listen' must be a string"),
    "another party": (lambda config: config.update(party="referee"), "it is for party 'referee'"),
}


def refused(capsys: pytest.CaptureFixture[str], begin: Callable[[], object]) -> str:
    """What a party says, in this process, on its way out because of a bad configuration."""
    with pytest.raises(SystemExit) as ended:
        begin()
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "PRIVATE KEY" not in said.err
    return said.err.strip()


@pytest.mark.parametrize("what", BAD)
def test_a_bad_configuration_is_refused_in_one_line(
    what: str, credentials: dict[str, Credentials], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_of(credentials["developer"])
    spoil, why = BAD[what]
    spoil(config)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    said = refused(capsys, lambda: process.start("developer", str(path)))
    assert said == f"developer: configuration {path}: {why}"


def test_what_is_no_json_object_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.json"
    for text in ("", "{", "[1]", '"compliance"', "null", "\ufeff{}"):
        path.write_text(text, encoding="utf-8")
        assert refused(capsys, lambda: process.start("compliance", str(path))).endswith(": not a JSON object")
    path.write_bytes(b"\xff\xfe")
    refused(capsys, lambda: process.start("compliance", str(path)))
    assert "No such file" in refused(capsys, lambda: process.start("adversary", str(tmp_path / "none.json")))


def test_a_bad_line_on_stdin_is_refused_too() -> None:
    assert ends_with_one_line("adversary", "-", "{}\n").endswith("is missing")


UNUSABLE: dict[str, tuple[str, str]] = {
    "no key": ("key", "the key is no private key in PEM, or under a password"),
    "no certificate": ("certificate", "the certificate is none in PEM"),
    "no authority": ("authority", "the authority is no certificate in PEM"),
    "another's key": ("key", "the key is not the certificate's"),
    "nowhere.invalid:1": ("listen", "the host's name is not known"),
    "nowhere:x": ("listen", "no address that can be used (invalid literal"),
    "192.0.2.1:0": ("listen", "the address is none of this machine's"),  # of documentation (RFC 5737)
    "in use": ("listen", "the address is in use: another process listens there"),
}


@pytest.fixture
def unusable(value: str, credentials: dict[str, Credentials]) -> Iterator[tuple[str, str]]:
    """The key of a configuration that is changed, and to what."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        values = {"in use": f"127.0.0.1:{taken.getsockname()[1]}", "another's key": credentials["referee"].key}
        yield UNUSABLE[value][0], values.get(value, value)


@pytest.mark.parametrize("value", UNUSABLE)
def test_credentials_or_an_address_that_cannot_be_used_are_named_in_one_line(
    value: str, unusable: tuple[str, str], credentials: dict[str, Credentials], capsys: pytest.CaptureFixture[str]
) -> None:
    key, changed = unusable
    config = PartyConfig(**(config_of(credentials["developer"]) | {key: changed}))

    def serve() -> None:
        with process.playing(config):
            server.serve(lambda _: None, config.credentials, config.listen)

    said = refused(capsys, serve)
    assert said.startswith("developer: configuration: ")
    assert f": {UNUSABLE[value][1]}" in said
    assert key != "listen" or f"cannot listen on {changed}: " in said


@pytest.mark.parametrize(
    ("party", "value"),
    [("compliance", "in use"), pytest.param("adversary", "another's key", marks=pytest.mark.check)],
)
def test_so_they_are_by_a_process(
    party: str, value: str, unusable: tuple[str, str], credentials: dict[str, Credentials], tmp_path: Path
) -> None:
    path, (key, changed) = tmp_path / "config.json", unusable
    path.write_text(json.dumps(config_of(credentials[party]) | {key: changed}))
    if party == "adversary":  # which listens nowhere, and has said so by then
        ended = subprocess.run(command(party, path), capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 2
        (said,) = [line for line in ended.stderr.splitlines() if line.startswith("adversary: configuration: ")]
        assert "Traceback" not in ended.stderr
    else:
        said = ends_with_one_line(party, path)
    assert f": {UNUSABLE[value][1]}" in said


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
def test_a_port_that_needs_a_permission_is_named(
    number: int, credentials: dict[str, Credentials], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bind itself is replaced: whoever runs this may have the permission."""

    def refuse(*_: object) -> None:
        raise OSError(number, "refused")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(OSError, match="below 1024 mostly need a permission"):
        server.serve(lambda _: None, credentials["compliance"], "192.0.2.1:80")


def test_a_configuration_does_not_show_its_private_key(credentials: dict[str, Credentials]) -> None:
    assert "PRIVATE KEY" not in repr(PartyConfig(**config_of(credentials["developer"])))


@pytest.fixture
def referee(credentials: dict[str, Credentials]) -> Iterator[str]:
    """The address of a referee who lets nobody in yet."""
    table = GameTable()
    waiting, dealer = Referee("run-1", "digest", GAME_REVEAL, table), RevealDealer(table)

    def register(grpc_server: grpc.Server) -> None:
        add_RefereeServiceServicer_to_server(waiting, grpc_server)
        dealer.register(grpc_server, lambda servicer: servicer)

    listening = server.serve(register, credentials["referee"])
    yield listening.address
    waiting.seat(dict.fromkeys(PARTIES, ""))
    waiting.table.finish()
    listening.stop()


@contextmanager
def started(credentials: Credentials, referee: str, log: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A party that has said where it listens, and that address."""
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            command(credentials.party, "-"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as running,
    ):
        assert running.stdin is not None
        assert running.stdout is not None
        try:
            running.stdin.write(json.dumps(config_of(credentials, referee)) + "\n")
            running.stdin.flush()
            yield running, json.loads(running.stdout.readline())["address"]
        finally:
            running.kill()


@pytest.mark.parametrize("party", ["compliance", pytest.param("adversary", marks=pytest.mark.check)])
def test_a_party_ends_when_its_stdin_closes(
    party: str, credentials: dict[str, Credentials], referee: str, tmp_path: Path
) -> None:
    with started(credentials[party], referee, tmp_path / "log") as (running, address):
        assert address.startswith("127.0.0.1:") == (party != "adversary")
        assert running.poll() is None
        running.stdin.close()
        assert running.wait(300) == 0
    log = (tmp_path / "log").read_text()
    assert "stdin closed: leaving" in log
    assert "Traceback" not in log


def test_a_party_leaves_ctrl_c_to_whoever_started_it_but_ends_when_told_to(
    credentials: dict[str, Credentials], referee: str, tmp_path: Path
) -> None:
    with started(credentials["compliance"], referee, tmp_path / "log") as (running, _):
        running.send_signal(signal.SIGINT)
        running.send_signal(signal.SIGTERM)
        assert running.wait(300) == -signal.SIGTERM


def test_a_party_whose_referee_is_not_there_fails(credentials: dict[str, Credentials], tmp_path: Path) -> None:
    with started(credentials["compliance"], "127.0.0.1:1", tmp_path / "log") as (party, _):
        assert party.wait(300) == 1
    assert "PRIVATE KEY" not in (tmp_path / "log").read_text()
