"""What make says at once: which Python is needed, and whether anything failed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def made(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "Makefile").write_text((ROOT / "Makefile").read_text())
    (folder / "pyproject.toml").touch()
    # Not as a part of the make that may have started the tests: it would say that it enters and leaves folders.
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(
        ["make", *words], cwd=folder, env=alone, capture_output=True, text=True, timeout=20, check=False
    )


def written(path: Path, version: str) -> Path:
    """Write a Python that says that it is of another version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    info, text = tuple(map(int, version.split("."))), f"{version} (main)"
    says = f"import sys; sys.version_info, sys.version = {info}, {text!r}; exec(sys.argv[1])"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{says}" "$2"\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("version", ["3.10.13", "3.9.18", "2.7.18"])
@pytest.mark.parametrize("is_there", [False, True])
def test_b1_an_old_python_is_refused_at_once(version: str, is_there: bool, tmp_path: Path) -> None:
    """Also where an environment of it is there already."""
    old = written(tmp_path / (".venv/bin/python" if is_there else "old"), version)
    finished = made(tmp_path, "demo", f"PYTHON={'none' if is_there else old}")
    assert finished.returncode
    assert f"fairwall needs Python 3.11 or later, and this is {version}: make clean" in finished.stderr
    assert (tmp_path / ".venv").exists() == is_there


@pytest.mark.parametrize("status", [0, 1])
def test_b7_the_last_line_of_quick_says_whether_anything_failed(status: int, tmp_path: Path) -> None:
    for name in (".venv/.installed-all", ".venv/.installed", "scripts/quick.py", "docs/serving.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    said = "quick: nothing failed, 1 files of tests"
    (tmp_path / ".venv/bin").mkdir()
    (tmp_path / ".venv/bin/python").write_text(f"#!/bin/sh\necho {said}\nexit {status}\n")
    (tmp_path / ".venv/bin/python").chmod(0o755)
    (tmp_path / "pyproject.toml").touch()
    for name in (".venv/.installed", ".venv/.installed-all"):
        (tmp_path / name).touch()
    finished = made(tmp_path, "quick", "docs/serving.md", "-o", "pyproject.toml")
    assert bool(finished.returncode) == bool(status)
    if not status:
        assert finished.stdout.splitlines()[-1] == said


def test_help_has_a_line_for_each_target_and_the_default_is_the_demo(tmp_path: Path) -> None:
    text = (ROOT / "Makefile").read_text()
    shown = [line.split()[1] for line in made(tmp_path, "help").stdout.splitlines()]
    (phony,) = re.findall(r"(?m)^\.PHONY: (demo .*)$", text)
    assert shown[0] == "demo"
    assert sorted(shown) == sorted(phony.split())
