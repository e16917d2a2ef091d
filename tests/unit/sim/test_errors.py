"""What a user can mend ends every command alike: one line, status 2."""

from __future__ import annotations

import ast
import importlib
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairwall
from fairwall.errors import RunFailed, UserError
from sim.cli import main as command
from sim.games.table import TrialFailed
from sim.play.launch import PartyDied

ROOTS = {name: Path(fairwall.__file__).parents[2] / name for name in ("sim", "compliance", "developer", "adversary")}
ROOTS["fairwall"] = Path(fairwall.__file__).parent


def said_to_be_one_line() -> Iterator[tuple[str, str]]:
    """Find the classes whose docstring says that their text is one line for the user."""
    for package, root in ROOTS.items():
        for path in sorted(root.rglob("*.py")):
            code = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(code)) if re.search(r"one\s+line", code) else ():
                if isinstance(node, ast.ClassDef):
                    about = " ".join((ast.get_docstring(node) or "").split())
                    if "one line" in about and ("text" in about or "message" in about):
                        yield ".".join([package, *path.relative_to(root).with_suffix("").parts]), node.name


def ended(monkeypatch: pytest.MonkeyPatch, error: Exception) -> int | str | None:
    """Tell the status that the command ends with if an error is raised in it."""

    def fails(**_: object) -> None:
        raise error

    monkeypatch.setattr(command, "app", fails)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as left:
        command.main()
    return left.value.code


def test_an_error_that_says_it_is_one_line_ends_the_command_with_it_and_status_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = [getattr(importlib.import_module(module), name) for module, name in said_to_be_one_line()]
    assert len(errors) >= 18
    for kind in errors:
        assert issubclass(kind, UserError)
        assert ended(monkeypatch, kind("it\nis\x1b[2J 'so'")) == 2
        assert capsys.readouterr().err == r"fairwall: it\nis\x1b[2J 'so'" + "\n"


def test_a_run_that_broke_off_ends_the_command_with_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in [TrialFailed, PartyDied]:
        assert issubclass(kind, RunFailed)
        assert ended(monkeypatch, kind("developer died\n  developer| why")) == 1
        assert capsys.readouterr().err == "fairwall: developer died\n  developer| why\n"


def test_what_only_we_can_mend_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        ended(monkeypatch, ZeroDivisionError())


def test_a_text_that_quotes_much_keeps_its_beginning_and_its_end() -> None:
    text = str(UserError(f"key: must be less, not {'x' * 10**6}; leave it out"))
    assert text.startswith("key: must be less")
    assert text.endswith("leave it out")
    assert len(text) < 3000
