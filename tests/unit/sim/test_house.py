"""The layout that docs/architecture.md shows: no import circle, no branch on a game's name, no loose file."""

from __future__ import annotations

import graphlib
import re
import tomllib
from pathlib import Path
from typing import Any

import grimp

from sim.games import MODULES

ROOT = Path(__file__).parents[3]
PACKAGES = ("compliance", "developer", "adversary", "sim", "fairwall")

GAMES = tuple(
    sorted(folder.name for folder in (ROOT / "sim" / "games").iterdir() if (folder / "__init__.py").is_file())
)
ROOMS = {folder.name for folder in (ROOT / "sim").iterdir() if (folder / "__init__.py").is_file()}

_NAMES = "|".join(GAMES)
_BY_NAME = re.compile(rf"\bgame\b\s*(?:==|!=)|GAME_(?:{_NAMES.upper()})|[\"'](?:{_NAMES})[\"']|match \w*\.?game\b")
"""A game told from others by its name, or by its number on the wire."""

_ALLOWED = (
    re.compile(rf"sim/games/(?:{_NAMES})/"),
    re.compile(r"sim/games/__init__\.py"),
    re.compile(r"(?:developer|adversary)/__main__\.py|compliance/games/__init__\.py"),  # one line a game
    re.compile(r"sim/conformance/reference_referee\.py"),  # plays one trial of one game
)

_OTHERWISE = {
    "release": {
        *(
            "sim/attestation/statement.py",
            "sim/cli/deploy/certificates.py",
            "sim/cli/plan/audit.py",
            "sim/conformance/sample_deployments.py",
        ),
        *("sim/conformance/releases.py", "sim/games/referee.py"),
        *("sim/verify/audit_reports.py", "compliance/games/release.py", "compliance/answers/releases.py"),
        "compliance/deployment/policy/checks.py",
    },
    "groups": {
        *(
            "sim/papers/play.py",
            "sim/cli/plan/advise.py",
            "sim/conformance/sample_deployments.py",
            "sim/verify/protected.py",
        ),
        *("developer/inference.py", "adversary/inference.py", "compliance/games/groups.py"),
        *("sim/games/referee.py", "sim/transcripts/captions.py"),
        "compliance/deployment/policy/checks.py",
    },
    "training": {"sim/cli/plan/training.py"},
    "curator": {"sim/games/referee.py", "sim/verify/audit_reports.py"},
}
"""Where a game's name is a word for something else: a section, cards, a column, what is waited for."""


def circle(imports: dict[str, set[str]]) -> list[str]:
    """Find a circle of imports; an empty list where there is none."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)  # what is imported for types alone, too
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    imports["fairwall"] = set()  # the front, which names the client's parts, and imports each when it is first used
    assert len(imports) > 250
    assert not circle(imports)
    imports["fairwall.laws.metrics.metric"] = {"sim.games.table"}
    assert circle(imports)


def by_name(path: str, text: str) -> list[str]:
    """Lines that tell games apart by name, where none may."""
    if any(allowed.match(path) for allowed in _ALLOWED):
        return []
    code = re.sub(r'"""(?:.|\n)*?"""', lambda m: "\n" * m.group().count("\n"), text)
    for word in words_of(path):
        code = re.sub(rf"(?<!game == )(?<!game != )[\"']{word}[\"']", "''", code)
    return [f"{path}:{number}" for number, line in enumerate(code.split("\n"), 1) if _BY_NAME.search(line)]


def words_of(path: str) -> list[str]:
    return [word for word, paths in _OTHERWISE.items() if path in paths]


def test_only_a_game_s_own_folder_and_the_tables_know_its_name() -> None:
    found = []
    for package in ("sim", "developer", "adversary", "compliance"):
        for path in sorted((ROOT / package).rglob("*.py")):
            found += by_name(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    assert not found
    for path in {path for paths in _OTHERWISE.values() for path in paths}:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert all(f'"{word}"' in text for word in words_of(path)), path


def test_a_branch_on_a_game_s_name_is_found() -> None:
    """Branches as they were, and as they might come back."""
    for game in GAMES:
        for branch in (
            f'if sweep.scenario.scenario.game == "{game}":',
            f"played = GAME_{game.upper()} if infers else other",
            f'if line["game"] in ("{game}",):',
            f"if name in {{'{game}', 'other'}}:",
            "match scenario.game:",
        ):
            assert by_name("sim/play/runner.py", branch), branch
        for path in ("sim/conformance/sample_deployments.py", "compliance/deployment/policy/checks.py"):
            assert by_name(path, f'if scenario.game == "{game}":')


def test_the_games_are_those_of_the_table_and_each_is_apart_from_the_others() -> None:
    assert {*GAMES} == MODULES.keys()
    apart = [one for one in contracts() if one["name"] in ("Games are independent of one another", SHARED_BY_GAMES)]
    assert [{*one.get("modules", one.get("forbidden_modules"))} for one in apart] == 2 * [
        {f"sim.games.{game}" for game in GAMES}
    ]
    shared = {f"sim.games.{path.stem}" for path in (ROOT / "sim" / "games").glob("*.py")} - {"sim.games.__init__"}
    assert {*apart[1]["source_modules"]} == shared


SHARED_BY_GAMES = "What games share knows no game"


def contracts() -> list[dict[str, Any]]:
    """What import-linter holds."""
    linted = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert not linted.get("exclude_type_checking_imports"), "what is imported for types alone counts"
    found: list[dict[str, Any]] = linted["contracts"]
    return found


def in_layers(held: list[dict[str, Any]], package: str) -> set[str]:
    """Find the rooms of a package that have a layer of their own, or share one."""
    names = {name.strip() for one in held for layer in one.get("layers", ()) for name in layer.split("|")}
    return {name for name in names if name.startswith(f"{package}.")}


def uncontracted(held: list[dict[str, Any]], rooms: set[str], imports: dict[str, set[str]]) -> list[str]:
    """Find the rooms that may come to import more than they do: each is a layer, or all else is forbidden to it."""
    layered = in_layers(held, "sim")
    found = []
    for room in sorted(rooms - layered):
        forbidden = [{*one["forbidden_modules"]} for one in held if one.get("source_modules") == [room]]
        if not any(one >= rooms - {room} - imports[room] for one in forbidden):
            found.append(room)
    beside = rooms - layered
    for room in sorted(layered - {"sim.cli", "sim.papers"}):  # which use all of them
        forbidden = [{*one["forbidden_modules"]} for one in held if room in one.get("source_modules", ())]
        if not any(one >= beside for one in forbidden):
            found.append(room)
    return found


def test_every_room_of_the_simulator_stands_in_an_import_contract() -> None:
    graph = grimp.build_graph("sim", cache_dir=None)
    rooms = {f"sim.{name}" for name in ROOMS}
    imports = {
        room: {
            other
            for other in rooms - {room}
            if graph.find_shortest_chains(importer=room, imported=other, as_packages=True)
        }
        for room in rooms
    }
    assert "sim.attestation" in rooms
    assert uncontracted(contracts(), rooms, imports) == []
    assert uncontracted(contracts(), rooms | {"sim.new"}, imports | {"sim.new": set()})[0] == "sim.attestation"
    without = [one for one in contracts() if one.get("source_modules") != ["sim.attestation"]]
    assert uncontracted(without, rooms, imports) == ["sim.attestation"]


def test_every_room_of_compliance_has_its_layer() -> None:
    rooms = {path.parent.name for path in (ROOT / "compliance").glob("*/*.py")}
    assert {f"compliance.{room}" for room in rooms} == in_layers(contracts(), "compliance")
    assert len(rooms) <= 9


def test_every_file_is_in_a_room() -> None:
    for package in ["sim", "compliance"]:
        assert {path.name for path in (ROOT / package).glob("*.py")} == {"__init__.py", "__main__.py"}
        rooms = {folder.name for folder in (ROOT / package).iterdir() if (folder / "__init__.py").is_file()}
        assert {path.parent.name for path in (ROOT / package).glob("*/*.py")} == rooms
