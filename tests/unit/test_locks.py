"""The lock files are what pyproject.toml asks for, each package with hashes; licences are those that are allowed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKS = [ROOT / "locks" / name for name in ("service.txt", "extras.txt", "tools.txt")]
TOOLS = [line for line in (ROOT / "locks" / "tools.in").read_text().splitlines() if not line.startswith("#")]
SERVICE = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["service"]
EXTRAS = [
    line for extra in PROJECT["optional-dependencies"].values() for line in extra if not line.startswith("fairwall[")
]
ENTRY = re.compile(r"(\S+==[^\\\n]+?)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


def _pinned(lock: Path) -> dict[str, str]:
    """Give the version of each package that a lock file installs here."""
    pins = (Requirement(entry) for entry, _ in ENTRY.findall(lock.read_text()))
    return {
        canonicalize_name(pin.name): str(pin.specifier).removeprefix("==")
        for pin in pins
        if pin.marker is None or pin.marker.evaluate()
    }


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_is_packages_with_hashes_and_nothing_else(lock: Path) -> None:
    left = [line for line in ENTRY.sub("", lock.read_text()).splitlines() if not line.startswith("#")]

    assert left == []
    assert "://" not in lock.read_text()


@pytest.mark.parametrize(
    ("lock", "asked"),
    [(LOCKS[0], SERVICE), (LOCKS[1], PROJECT["dependencies"] + EXTRAS), (LOCKS[2], TOOLS)],
    ids=["service", "extras", "tools"],
)
def test_a_lock_has_all_that_is_asked_for(lock: Path, asked: list[str]) -> None:
    pinned = _pinned(lock)

    for requirement in map(Requirement, asked):
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)], prereleases=False), (
            requirement
        )


def test_the_service_runs_with_the_versions_that_the_tests_may_run_with() -> None:
    extras = _pinned(LOCKS[1])

    assert {name: extras[name] for name in _pinned(LOCKS[0])} == _pinned(LOCKS[0])


def _licences(folder: Path, *components: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Judge the licences of components of an SBOM by the allowed ones."""
    (folder / "sbom.json").write_text(json.dumps({"components": components}))
    script, allowed = ROOT / "scripts" / "licences.py", ROOT / "locks" / "licences.toml"
    return subprocess.run(
        [sys.executable, script, folder / "sbom.json", allowed], capture_output=True, text=True, check=False
    )


def test_licences_that_are_allowed_are_listed(tmp_path: Path) -> None:
    listed = _licences(
        tmp_path,
        {"name": "b", "version": "2", "licenses": [{"expression": "BSD-3-Clause AND MIT OR GPL-3.0-only"}]},
        {"name": "A", "version": "1", "licenses": [{"license": {"id": "MIT"}}]},
        {"name": "protobuf", "version": "6"},
    )

    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout.splitlines() == [
        "A 1: MIT",
        "b 2: BSD-3-Clause AND MIT OR GPL-3.0-only",
        "protobuf 6: BSD-3-Clause",
    ]


@pytest.mark.parametrize(
    ("licences", "why"),
    [
        ([], "no licence declared"),
        ([{"license": {"id": "GPL-3.0-only"}}], "GPL-3.0-only is not allowed"),
        ([{"license": {"name": "Proprietary"}}], "Proprietary is not allowed"),
        ([{"expression": "MIT AND GPL-3.0-only"}], "MIT AND GPL-3.0-only is not allowed"),
        ([{"license": {"id": "MIT"}}, {"license": {"id": "SSPL-1.0"}}], "SSPL-1.0 is not allowed"),
    ],
)
def test_a_licence_that_is_not_allowed_is_told(tmp_path: Path, licences: list[dict[str, Any]], why: str) -> None:
    told = _licences(tmp_path, {"name": "p", "version": "1", "licenses": licences})

    assert (told.returncode, told.stderr) == (1, f"p 1: {why}\n")
