"""The layout that docs/architecture.md shows: no import circle, no branch on a game's name, no loose file."""

from __future__ import annotations

import graphlib
import re
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[3]
PACKAGES = ("compliance", "developer", "adversary", "sim", "fairwall")

_BY_NAME = re.compile(
    r"\bgame\b\s*(?:==|!=)|GAME_(?:REVEAL|INFERENCE|RELEASE)|[\"'](?:reveal|inference)[\"']|match \w*\.?game\b"
)
"""A game told from others by its name, or by its number on the wire."""

_ALLOWED = (
    re.compile(r"sim/games/(?:reveal|inference|release)/"),
    re.compile(r"sim/games/__init__\.py"),
    re.compile(r"(?:developer|adversary)/__main__\.py"),  # one line a game
    re.compile(r"sim/conformance/reference_referee\.py"),  # plays one trial of one game
)


def circle(imports: dict[str, set[str]]) -> list[str]:
    """Find a circle of imports; an empty list where there is none."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 250
    assert not circle(imports)
    imports["fairwall.laws.metric"] = {"sim.games.table"}
    assert circle(imports)


def by_name(path: str, text: str) -> list[str]:
    """Lines that tell games apart by name, where none may."""
    if any(allowed.match(path) for allowed in _ALLOWED):
        return []
    code = re.sub(r'"""(?:.|\n)*?"""', lambda m: "\n" * m.group().count("\n"), text)
    return [f"{path}:{number}" for number, line in enumerate(code.split("\n"), 1) if _BY_NAME.search(line)]


def test_only_a_game_s_own_folder_and_the_tables_know_its_name() -> None:
    found = []
    for package in ("sim", "developer", "adversary", "compliance"):
        for path in sorted((ROOT / package).rglob("*.py")):
            found += by_name(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    assert not found
    # Branches as they were, and as they might come back.
    for branch in (
        'if sweep.scenario.scenario.game == "inference":',
        "played = GAME_INFERENCE if infers else GAME_REVEAL",
        'if line["game"] in ("reveal",):',
        "match scenario.game:",
    ):
        assert by_name("sim/play/runner.py", branch)


def test_every_file_of_the_simulator_is_in_a_room() -> None:
    assert {path.name for path in (ROOT / "sim").glob("*.py")} == {"__init__.py", "__main__.py"}
