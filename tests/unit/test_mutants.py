"""The list of mutants, which `make slow` tries in shards: each changes the code as it stands, and names its tests."""

from __future__ import annotations

import ast
import importlib.util
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = tomllib.loads((ROOT / "scripts" / "mutants.toml").read_text(encoding="utf-8"))["module"]
MUTANTS = [{**table, **mutant} for table in MODULES.values() for mutant in table["mutant"]]


def test_each_text_that_is_replaced_stands_in_its_file_once() -> None:
    assert len(MUTANTS) > 300
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in {mutant["file"] for mutant in MUTANTS}}
    assert [mutant for mutant in MUTANTS if texts[mutant["file"]].count(mutant["old"]) != 1] == []


def test_each_test_is_there() -> None:
    named: dict[str, set[str]] = {}
    for mutant in MUTANTS:
        for test in mutant["tests"]:
            file, *inside = test.partition("[")[0].split("::")
            named.setdefault(file, set()).update(inside)
    for file, inside in named.items():
        if not inside:
            assert (ROOT / file).exists(), file
            continue
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assert inside <= defined, (file, inside - defined)


def test_each_drawn_mutant_that_may_survive_changes_a_line_that_is_there() -> None:
    modules = tomllib.loads((ROOT / "scripts" / "drawn_mutants.toml").read_text(encoding="utf-8"))["module"]
    excused = [one["mutant"] for module in modules.values() for one in module.get("survives", ())]
    assert len(excused) > 10
    for mutant in excused:
        place, _, change = mutant.partition(": ")
        # A line that holds " -> " itself would need more than this.
        old, new = (ast.literal_eval(line) for line in change.split(" -> "))
        lines = (ROOT / place.split()[0]).read_text(encoding="utf-8").split("\n")
        assert old in map(str.strip, lines), mutant
        assert old != new


FARES = {
    "def test_it():\n    assert False": "failed",
    "def test_it():\n    raise ValueError": "failed",
    "def test_first():\n    nowhere\ndef test_it():\n    assert False": "failed",
    "def test_it():\n    nowhere": "raised",
    "def test_it():\n    import nowhere": "raised",
    "import pytest\n@pytest.fixture\ndef own():\n    raise ValueError\ndef test_it(own):\n    pass": "raised",
    "import nowhere": "not tried",
    "def test_it():\n    pass": "passed",
}
"""Tests, and how a mutant fares on which they run so: killed only where one of them finds something wrong."""


@pytest.mark.check
@pytest.mark.parametrize("test", FARES)
def test_a_mutant_that_raises_is_not_killed(test: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "scripts" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    mutants = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutants", mutants)
    spec.loader.exec_module(mutants)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o700)
    (tmp_path / "test_one.py").write_text(test)
    status, _ = mutants.run(tmp_path, ["test_one.py"])
    fares = {0: "passed", mutants.TESTS_FAILED: "failed", mutants.RAISED: "raised"}
    assert fares.get(status, "not tried") == FARES[test]
