"""Docstrings have one dialect, numpydoc's: what a parameter is stands behind its name and a colon."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTIES = ("compliance", "developer", "adversary", "sim", "proto/fairwall")
PATHS = sorted(path for party in PARTIES for path in (ROOT / party).rglob("*.py") if "_pb2" not in path.name)


def entries(docstring: str) -> Iterator[str]:
    """Yield the first line of each entry of Parameters and of Attributes."""
    lines, section = inspect.cleandoc(docstring).splitlines(), ""
    for line, after in pairwise([*lines, ""]):
        if line and set(after) == {"-"}:
            section = line
        elif section in ("Parameters", "Attributes") and line[:1].strip() and set(line) != {"-"}:
            yield line


def test_every_parameter_is_a_name_and_what_it_is() -> None:
    wrong = []
    for path in PATHS:
        for docstring in re.findall(r'"""(.*?)"""', path.read_text(encoding="utf-8"), re.DOTALL):
            if "\n    ----" in docstring:
                wrong += [(path.name, line) for line in entries(docstring) if not re.match(r"[\w*, ]+ : \S", line)]
    assert wrong == []


def test_the_dialect_is_told_from_others() -> None:
    one = "Do it.\n\nParameters\n----------\nn : int\n    People.\nm\n    Models.\n\nReturns\n-------\nfloat\n"
    assert [line for line in entries(one) if " : " not in line] == ["m"]
