"""A pytest plugin: writes down which functions each test calls, and runs those tests alone that a list names.

With ``CALLED=FILE`` it writes a line of JSON for each test: its id, seconds, functions, and whether it starts a
process, in which nobody sees what is called. What a fixture calls counts for every test that uses it. With
``CHOSEN=FILE`` it keeps the tests whose ids are in the file, one file of tests after the other in that order.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
STARTS = {("subprocess.py", "Popen.__init__"), ("process.py", "BaseProcess.start")}
"""What starts a process: the file's name, and the function."""

_calling: list[set[CodeType]] = [set()]
"""What was called by the test, and, above it, by fixtures that are being set up."""
_of_fixtures: dict[str, set[CodeType]] = {}


def _called(frame: FrameType, event: str, arg: object) -> None:  # noqa: ARG001 - the interpreter gives these
    _calling[-1].add(frame.f_code)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Iterator[None]:
    """Note what a fixture calls."""
    _calling.append(set())
    try:
        return (yield)
    finally:
        found = _calling.pop()
        _of_fixtures.setdefault(fixturedef.argname, set()).update(found)
        _calling[-1].update(found)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note what a test calls, and how long it takes."""
    place = os.environ.get("CALLED")
    if place is None:
        return (yield)
    _calling[:] = [set()]
    began = time.monotonic()
    threading.settrace(_called)
    sys.settrace(_called)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)
        codes = _calling[0].union(*(_of_fixtures.get(name, ()) for name in getattr(item, "fixturenames", ())))
        told = {
            "test": item.nodeid,
            "seconds": time.monotonic() - began,
            "calls": sorted(filter(None, map(_name_of, codes))),
            "starts": any((Path(code.co_filename).name, code.co_qualname) in STARTS for code in codes),
        }
        with Path(place).open("a") as file:
            file.write(json.dumps(told) + "\n")


def _name_of(code: CodeType) -> str:
    """Name a function of ours as the list of mutants does; "" for anybody else's."""
    path = Path(code.co_filename)
    if not path.is_relative_to(ROOT) or ".venv" in path.parts:
        return ""
    return f"{path.relative_to(ROOT)} {code.co_qualname.replace('.<locals>', '')}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep what is chosen."""
    if place := os.environ.get("CHOSEN"):
        chosen = {test: number for number, test in enumerate(Path(place).read_text().split("\n"))}
        kept = [item for item in items if item.nodeid in chosen]
        first = {item.nodeid.partition("::")[0]: chosen[item.nodeid] for item in reversed(kept)}
        items[:] = sorted(kept, key=lambda item: first[item.nodeid.partition("::")[0]])
