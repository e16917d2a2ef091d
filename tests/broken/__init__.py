"""Broken servers and clients, in one module a topic: functions that each override something of the product.

``python -m tests.broken NAME --policy FILE`` starts one. The functions of `FOLDERS` are named with their module, as in
``client/no_deadline``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

HERE = Path(__file__).parent
FOLDERS = ("client", "developer", "held_back", "referee")
PROGRAMS = {
    "C": "compliance.__main__",
    "D": "sim.conformance.reference_developer",
    "K": "sim.conformance.reference_client",
    "R": "sim.conformance.reference_referee",
}
"""The sound program by the first letter of a check's number: its ``main`` is started once a function has overridden."""

Override = TypeVar("Override", bound=Callable[[], None])


class Broken(NamedTuple):
    """A row of the table: the check that must convict the server, its defect, and the function that breaks it."""

    check: str
    defect: str
    raises: bool
    module: str
    function: str


def broken(check: str, defect: str, /, *, raises: bool = False) -> Callable[[Override], Override]:
    """Mark a function as a row of the table, which `table` reads from the source.

    raises: the server raises where a sound one answers, and that is the defect.
    """
    return lambda override: override


def table(function: str = "") -> dict[str, Broken]:
    """Return the rows by name, or those of the modules that define one function; no module is imported."""
    rows: dict[str, Broken] = {}
    for path in HERE.glob("*.py"):
        if f"def {function}" not in (source := path.read_text()):
            continue
        for node in ast.parse(source).body:
            match node:
                case ast.FunctionDef(
                    name=function_name,
                    decorator_list=[
                        ast.Call(ast.Name("broken"), [ast.Constant(check), ast.Constant(defect)], keywords)
                    ],
                ):
                    name = f"{path.stem}/{function_name}" if path.stem in FOLDERS else function_name
                    assert name not in rows, f"two functions are called {name}"
                    rows[name] = Broken(check, defect, bool(keywords), f"{__name__}.{path.stem}", function_name)
    return dict(sorted(rows.items()))
