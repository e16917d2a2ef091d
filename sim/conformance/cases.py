"""Read cases: data files that anybody can add to, in one folder per kind of thing under test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from fairwall import toml
from sim.conformance.errors import ConformanceError
from sim.conformance.files import read_text
from sim.conformance.steps import Step
from sim.conformance.vocabulary import Words
from sim.conformance.world import Service

SHIPPED = Path(__file__).with_name("cases")


class ConformanceCase(Words):
    """One numbered check: a letter for what is tested, and three digits.

    `sentence` is quoted verbatim from a page in docs/: it is what is tested. `subject` is the file's name. With
    `accounts` callers' remaining budgets are checked, as in every case but those that do so otherwise. A case is
    written for audits, and is run on each of the `services` (`sim.conformance.services`): each step on all of them or,
    if `apart`, the whole case on one after another.
    """

    number: str = Field(pattern=r"^[A-Z][0-9]{3}$")
    title: str
    sentence: str
    subject: str
    deployment: str = "main"
    accounts: bool = True
    services: tuple[Service, ...] = ("audit",)
    apart: bool = False
    steps: tuple[Step, ...] = Field(min_length=1)


def read(kind: str, folders: Iterable[Path] = ()) -> list[ConformanceCase]:
    """Read the shipped cases of one kind, a folder of ``cases/``, and the ``*.toml`` of other folders, by number."""
    found: dict[str, ConformanceCase] = {}
    for folder in (SHIPPED / kind, *folders):
        paths = sorted(folder.glob("*.toml"))
        if not paths:
            raise ConformanceError(f"{folder}: no case in it: a case stands in a file that ends in .toml")
        for path in paths:
            for case in _read(path):
                if case.number in found:
                    raise ConformanceError(f"{path}: {case.number}: there is a case of that number already")
                found[case.number] = case
    return [found[number] for number in sorted(found)]


def _read(path: Path) -> Iterator[ConformanceCase]:
    try:
        values = toml.loads(read_text(path))
    except toml.TomlError as error:
        raise ConformanceError(f"{path}: not valid TOML: {error}") from None
    if set(values) != {"case"} or not isinstance(values["case"], list):
        raise ConformanceError(f"{path}: a file of cases has [[case]] sections and nothing else")
    for entry in values["case"]:
        try:
            yield ConformanceCase.model_validate({"subject": path.stem, **entry})
        except ValidationError as error:
            raise ConformanceError(f"{path}: {_first(entry, error)}") from None


def _first(entry: Any, error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    number = entry.get("number", "a case without a number") if isinstance(entry, dict) else "a case"
    return f"{number}: {where}: {first['msg']}"
