"""The command that prints who may learn what, and the page that shows it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from fairwall.rpc.access import CALLERS, SERVED_BY
from fairwall.rpc.identity import PARTIES
from sim.cli.test.protocol import boundary as print_boundary
from sim.transcripts import boundary

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
Fairwall = Callable[..., subprocess.CompletedProcess[str]]


def test_the_protocol_page_shows_the_boundary_as_it_is() -> None:
    (shown,) = re.findall(r"<!-- boundary -->\n(.*?)\n<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert shown == boundary.as_markdown(), "put the output of `fairwall test boundary --markdown` there"


def test_the_diagram_has_an_arrow_for_every_caller_of_every_service() -> None:
    arrows = re.findall(r'^    (\w+) -->\|"(\w+)<br/>.*"\| (\w+)$', boundary.as_markdown(), re.MULTILINE)
    assert set(arrows) == {
        (caller, prefix.strip("/").rpartition(".")[2], server)
        for prefix, server in SERVED_BY.items()
        for method in CALLERS
        if method.startswith(prefix)
        for caller in CALLERS[method]
    }
    assert len(arrows) == len(set(arrows))


def test_the_command_prints_each_party_within_80_columns(fairwall: Fairwall) -> None:
    printed = fairwall("test", "boundary")
    assert printed.returncode == 0, printed.stderr
    lines = printed.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split(",")[0] for line in lines if ", cleared for " in line] == list(PARTIES)


def test_the_command_prints_the_same_for_programs(fairwall: Fairwall) -> None:
    printed = json.loads(fairwall("test", "boundary", "--json").stdout)
    assert printed == boundary.as_values()
    assert printed["violations"] == []
    assert list(printed["parties"]["adversary"]["may_learn"]) == ["OUTSIDE"]
    assert {method["method"]: frozenset(method["callers"]) for method in printed["methods"]} == {
        name: callers for name, callers in CALLERS.items() if not name.startswith("/grpc.health")
    }


def test_the_command_fails_if_something_crosses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(boundary.CLEARANCE, "developer", boundary.CLEARANCE["adversary"])
    with pytest.raises(typer.Exit) as left:
        print_boundary()
    assert left.value.exit_code == 1
    assert "DeveloperDeal.labels is DEVELOPMENT, and reaches developer in " in capsys.readouterr().err
