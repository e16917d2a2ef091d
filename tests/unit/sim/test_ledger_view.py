"""What a person and a program get to read of a ledger."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Loss, LossKind, Neighbours, Rule, pure
from compliance.ledger.entries import Reply, Request
from sim.cli.common import WIDTH
from sim.cli.deploy.ledger import app
from tests.support.command import fairwall

ANSWER = b"\xab\xcd the answer as released"
FACTS = b"a noisy count"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(3.0))
    ledger.allocate("people", "ann", 2.0)
    ledger.allocate("people", "[red]\x1b[2Jbob", 2.0)
    ledger.set_budget("patients", Neighbours.USER, Budget(float("inf"), 1e-6, Rule.ZCDP))
    ledger.allocate("patients", "ann", 8.0, 1e-6)
    for i in range(12):
        ledger.settle(
            Request("people", "ann", f"r{i}", b"d", "abs_sp", "conceal", Neighbours.A_FLIP, pure(0.125)),
            lambda _: Reply(ANSWER, FACTS),
        )
    ledger.settle(
        Request(
            "patients", "ann", "g", b"d", "sp", "gaussian", Neighbours.USER, Loss(1.0, 1e-6, LossKind.GAUSSIAN, 4.0)
        ),
        lambda _: Reply(ANSWER),
    )
    ledger.close()
    return path


def call(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return done.exit_code, done.stdout


def row(text: str, *words: str) -> list[str]:
    rows = [line.split() for line in text.splitlines()]
    return next(cells for cells in rows if cells[: len(words)] == list(words))


def test_show_tells_budget_spent_and_left_of_data_sets_and_developers(path: Path) -> None:
    status, text = call("show", path)
    assert status == 0
    assert row(text, "people", "(all)") == ["people", "(all)", "a-flip", "basic", "3", "0", "1.5", "1.5"]
    assert row(text, "people", "ann") == ["people", "ann", "a-flip", "basic", "2", "0", "1.5", "0.5"]
    assert row(text, "patients", "(all)")[2:6] == ["user", "zcdp", "inf", "1e-06"]
    assert "The chain is whole: 18 records" in text
    last = [line for line in text.splitlines() if "conceal" in line or "gaussian" in line]
    assert [int(line.split()[0]) for line in last] == list(range(9, 19))


def test_show_fits_a_terminal_and_obeys_no_name(path: Path) -> None:
    _, text = call("show", path)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "\x1b" not in text
    assert "[red]" in text


def test_show_of_an_empty_ledger(tmp_path: Path) -> None:
    Ledger(tmp_path / "new").close()
    status, text = call("show", tmp_path / "new")
    assert status == 0
    assert "The chain is whole: 0 records" in text


def test_export_prints_every_record_and_the_chains_end(path: Path) -> None:
    status, text = call("export", path)
    *records, end = map(json.loads, text.splitlines())
    assert status == 0
    assert [record["sequence"] for record in records] == list(range(1, 19))
    assert [record["record"] for record in records] == ["budget"] * 5 + ["charge"] * 13
    assert end == {"record": "end", "sequence": 18, "chain": records[-1]["chain"], "whole": True}
    assert records[3]["epsilon"] == "inf"
    charge = records[5]
    assert (charge["request_id"], charge["neighbours"], charge["epsilon"]) == ("r0", "a-flip", 0.125)
    assert bytes.fromhex(charge["answer"]) == ANSWER
    assert records[-1]["multiplier"] == 4.0


def test_export_never_tells_more_than_the_developer_was_given(path: Path) -> None:
    _, text = call("export", path)
    assert "exact" not in text
    assert FACTS.hex() not in text


@pytest.mark.parametrize("command", ["show", "export"])
def test_a_broken_chain_is_shown_up_to_the_break_and_fails(path: Path, command: str) -> None:
    with sqlite3.connect(path) as db:
        db.execute("UPDATE entries SET epsilon = 0.001 WHERE sequence = 9")
    db.close()
    status, text = call(command, path)
    assert status == 1
    assert "the chain breaks at record 9" in text
    assert '"whole": false' in text or "BROKEN; shown are the 8 records" in text


def test_a_file_that_is_no_ledger_is_refused_in_one_line(tmp_path: Path) -> None:
    for command, content in [("show", None), ("export", b""), ("show", b"words " * 999)]:
        path = tmp_path / "file"
        if content is not None:
            path.write_bytes(content)
        done = fairwall("deploy", "ledger", command, path)
        assert (done.returncode, done.stdout) == (2, "")
        assert str(path) in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_ledger_in_use_can_be_read(path: Path) -> None:
    ledger = Ledger(path)
    ledger.settle(
        Request("people", "ann", "more", b"d", "sp", "exact", Neighbours.A_FLIP, pure(0.25)), lambda _: Reply(b"")
    )
    assert "The chain is whole: 19 records" in call("show", path)[1]
    ledger.close()


def test_what_is_lost_is_said_in_one_way() -> None:
    for text in ["loans", "loans=", "loans=x", "loans=-1", "loans=nan", "loans=1:1", "loans=1:x"]:
        status, _ = call("restore", "copy", "--policy", "policy.toml", "--lost", text)
        assert status == 2
