"""What docs and docstrings name in backticks is there: files, modules, functions, keys of scenarios."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from compliance.mechanisms import MECHANISMS
from fairwall.laws.metrics.metric import METRICS
from fairwall.rpc.access import SERVICES
from sim.games import GAMES
from tests.broken import table

ROOT = Path(__file__).parents[2]
BROKEN = table()
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "sim/datasets/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
SOURCES = [
    path
    for package in ("sim", "compliance", "developer", "adversary", "proto/fairwall", "tests", "benchmarks", "scripts")
    for path in sorted((ROOT / package).rglob("*.py"))
    if not path.stem.endswith(("_pb2", "_pb2_grpc"))
]
TEXTS = [*PAGES, *SOURCES, *sorted((ROOT / "proto").rglob("*.proto")), *sorted((ROOT / "sim").rglob("*.toml"))]

PATH = re.compile(r"`((?:sim|compliance|developer|adversary|proto|fairwall|tests|docs|benchmarks|scripts)/[\w./*-]+)`")
MODULE = re.compile(r"`((?:sim|compliance|developer|adversary|fairwall)(?:\.\w+)+)`")
NAME_IN_FILE = re.compile(r"`(\w+(?:\.\w+)*)`\s(?:in\s|\()(`[\w./]+\.(?:py|proto)`(?:\sand\sin\s`[\w./]+\.py`)?)")


@cache
def _is_file(path: str) -> bool:
    places = [ROOT, ROOT / "proto"]
    return any(any(place.glob(text)) for place in places for text in (path.rstrip("/"), f"{path}.py"))


@cache
def _names(path: Path) -> frozenset[str]:
    """What a module defines at any depth, and what it imports; of a .proto file every word."""
    if path.suffix == ".proto":
        return frozenset(re.findall(r"\w+", path.read_text()))
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.ImportFrom(names=names):
                found |= {alias.asname or alias.name for alias in names}
    return frozenset(found)


@cache
def _is_module(dotted: str) -> bool:
    """Whether there is a module of that name, or a module with a definition of that name."""
    place = ROOT / "proto" if dotted.startswith("fairwall.") else ROOT
    names = dotted.split(".")
    for number, name in enumerate(names):
        if (place / name).with_suffix(".py").is_file():
            return _names((place / name).with_suffix(".py")).issuperset(names[number + 1 :])
        if not (place / name).is_dir():
            return _names(place / "__init__.py").issuperset(names[number:])
        place = place / name
    return True


@cache
def _is_key(dotted: str) -> bool:
    section, _, key = dotted.partition(".")
    kinds = [game.scenario.model_fields.get(section) for game in GAMES.values()]
    fields = [field for kind in kinds if kind is not None for field in kind.annotation.model_fields.items()]
    return any(key in (field, about.alias) for field, about in fields)


@cache
def _is_service(dotted: str) -> bool:
    return f"fairwall.{dotted}" in {service.full_name for service in SERVICES}


def test_what_is_named_in_backticks_is_there() -> None:
    missing = []
    for text in TEXTS:
        words = text.read_text()
        known = (_is_module, _is_service) if text.suffix == ".proto" else (_is_module, _is_service, _is_key)
        named = [path for path in PATH.findall(words) if not _is_file(path) and path not in BROKEN]
        named += [name for name in MODULE.findall(words) if not any(knows(name) for knows in known)]
        missing += [(str(text.relative_to(ROOT)), name) for name in named]
    assert missing == []


def test_the_architecture_page_names_definitions_where_they_are() -> None:
    found = NAME_IN_FILE.findall((ROOT / "docs" / "architecture.md").read_text())
    assert len(found) > 50
    for dotted, files in found:
        for file in re.findall(r"`([^`]+)`", files):
            assert _names(ROOT / file).issuperset(dotted.split(".")), f"{dotted} in {file}"


def test_the_drawing_has_every_room_of_the_simulator() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    (drawing,) = re.findall(r"```mermaid\n(.*?)```", page, re.DOTALL)
    for room in (path.name for path in (ROOT / "sim").iterdir() if (path / "__init__.py").is_file()):
        assert re.search(rf"\b{room}\b", drawing) or f"`sim/{room}/`" in page, room
    assert all(re.search(rf"\b{game}\b", drawing) for game in GAMES)


@pytest.mark.parametrize(("page", "names"), [("metrics", METRICS), ("mechanisms", MECHANISMS)])
def test_the_tables_of_the_docs_have_every_row(page: str, names: dict[str, object]) -> None:
    lines = (ROOT / "docs" / f"{page}.md").read_text().splitlines()
    assert [name for name in names if not any(line.startswith("|") and f"`{name}`" in line for line in lines)] == []


def test_what_is_wrong_with_a_scenario_is_said_of_a_key_that_there_is() -> None:
    for place in ("scenarios/scenario.py", *(f"games/{game}/scenario.py" for game in GAMES)):
        said = re.findall(
            r"[\"']((?:data|compliance|developer|adversary|release|disclosure|groups)(?:\.\w+)+): ",
            (ROOT / "sim" / place).read_text(),
        )
        assert said, place
        assert [key for key in said if not _is_key(key)] == [], place
