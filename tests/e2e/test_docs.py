"""The documentation is true: its commands run, its tables are what the code holds, its links lead somewhere."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import tomllib
from collections.abc import Callable
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import fairwall
from fairwall.rpc.access import CALLERS
from fairwall.rpc.errors import CATALOGUE
from fairwall.rpc.turns import PROTOCOL_VERSION
from fairwall.wire.v1.error_pb2 import Reason
from sim.games import GAMES, lay_out, read
from sim.scenarios.sweep import shipped

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")),
    *sorted((ROOT / "docs").glob("*.md")),
]
COMMANDS = [
    line.removeprefix("$ fairwall ")
    for page in PAGES
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
    for line in block.splitlines()
]


LONG = (
    *("run limit-", "run conceal-", "run dia-", "run fft-", "run targeted", "run synthetic-", "run ldp-"),
    *("run disclosure-modes", "run private-fair-", "run mitigations", "run minority-noise", "run reveal-groups"),
    *("run wash", "run overfit", "run curator"),
    *("results frontier private-fair-", "lesson", "run bayes-limit"),
    *("run reveal-adult-100 --trials 1", "run hidden-adult-100 --trials 1"),
    *("view demo", "replay demo", "replay conceal", "replay limit"),
)
"""How commands begin that take longer than all others together; they run with the slow tests, five trials each."""


@pytest.mark.check
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=pytest.mark.slow(seconds=6) if command.startswith(LONG) else ())
        for command in COMMANDS
    ],
)
def test_a_command_that_is_shown_runs(fairwall: Callable[..., subprocess.CompletedProcess[str]], command: str) -> None:
    few = (
        ("--trials", "5")
        if command.startswith(LONG) and command.startswith("run") and "--trials" not in command
        else ()
    )
    finished = fairwall(*shlex.split(command), *few)
    assert finished.returncode == 0, finished.stderr
    if "--json" not in command:
        # A path is as long as it is.
        assert max(len(line) for line in finished.stdout.splitlines() if "/runs/" not in line) <= 80


def test_a_long_command_that_is_shown_can_be_played() -> None:
    for command in (each for each in COMMANDS if each.startswith(LONG) and each.startswith("run")):
        _, scenario, *options = shlex.split(command)
        assert read(scenario, [value for option, value in pairwise(options) if option == "--set"]).cells, command


SOURCES = [
    path for room in ("sim", "compliance", "developer", "adversary", "proto") for path in (ROOT / room).rglob("*.py")
]
SHARE_OF_PEOPLE = re.compile(
    r"(right (for|about)|names)[^.;:%]{0,40}([%}] of (the )?people|(nine|\d) (people )?in ten)"
)


@pytest.mark.parametrize("paths", [[*PAGES, ROOT / "docs" / "notebook.ipynb"], SOURCES], ids=["pages", "sources"])
def test_how_well_an_attack_guesses_is_worded_as_no_share_of_people(paths: list[Path]) -> None:
    found = []
    for path in paths:
        # Strings that go on in the next line are one text.
        text = " ".join(re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8")).split())
        found += [f"{path.name}: {hit[0]}" for hit in SHARE_OF_PEOPLE.finditer(text)]
    assert not found


def test_there_are_commands_to_run() -> None:
    assert len(COMMANDS) >= 4


def test_the_counterexamples_are_ones() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "inference.md").read_text(), re.DOTALL)
    assert len(blocks) >= 4
    exec(compile("\n".join(blocks), "inference.md", "exec"), {})  # noqa: S102 - what the page shows


def test_the_model_that_is_shown_trains() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "training.md").read_text(), re.DOTALL)
    exec(compile(block, "training.md", "exec"), {})  # noqa: S102 - what the page shows


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target, mark in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text()):
            to = page.parent / target if target else page
            assert to.exists(), (page, target)
            assert not mark or to.suffix != ".md" or mark in _marks(to), (page, target, mark)


def test_pages_that_are_named_elsewhere_are_there() -> None:
    """By programs, scenarios, tests and the files of a deployment."""
    places = ("sim", "compliance", "developer", "adversary", "proto", "tests", "benchmarks", "scripts", "deploy")
    files = [
        *(ROOT / name for name in ("Makefile", "pyproject.toml", "CHANGELOG.md")),
        *(path for place in places for path in (ROOT / place).rglob("*") if "node_modules" not in path.parts),
    ]
    named = {
        (path.name, page)
        for path in files
        if path.is_file() and path.suffix not in (".csv", ".gz", ".bin", ".pyc")
        for page in re.findall(r"\bdocs/[a-z-]+\.md\b", path.read_text(encoding="utf-8", errors="ignore"))
    }
    assert len(named) > 20
    assert [each for each in sorted(named) if not (ROOT / each[1]).exists()] == []


def _marks(page: Path) -> set[str]:
    """The names by which a page's headings are linked, as the site and code hosts make them."""
    headings = re.findall(r"(?m)^#+ (.*)$", re.sub(r"(?ms)^```.*?^```$", "", page.read_text()))
    plain = [re.sub(r"&\w+;|[^\w\s-]", "", re.sub(r"\]\([^)]*\)", "", heading).lower()) for heading in headings]
    return {re.sub(r"\s", "-", heading.strip()) for heading in plain}


def test_the_scenario_that_is_shown_is_valid() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "scenarios.md").read_text(), re.DOTALL)
    whole, own_table, _ = (tomllib.loads(block) for block in blocks)
    assert len(lay_out(whole, "docs").cells) == 4
    own = {**whole, **own_table, "sweep": {}}
    own["data"].pop("n0", None)
    assert lay_out(own, "docs").scenario.data.label == "repaid"


def test_the_keys_of_the_training_game_are_valid() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "training.md").read_text(), re.DOTALL)
    values = tomllib.loads(block)
    values |= {"scenario": {"name": "docs", "game": "training"}, "data": {"source": "german", **values["data"]}}
    (cell,) = lay_out(values, "docs").cells
    shown = [*tomllib.loads(block)["training"]]
    assert shown == [*type(cell.scenario.training).model_fields], "all keys, in their order"
    assert cell.scenario.told


def test_every_key_of_a_scenario_is_documented() -> None:
    pages = ("scenarios", "inference", "release", "training", "overfit", "wash", "curator")
    page = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in pages)
    sections = {
        (name, section.annotation)
        for game in GAMES.values()
        for name, section in game.scenario.model_fields.items()
        if name in {"scenario", "data", "compliance", "developer", "adversary"}
        or name in {"release", "training", "overfit", "wash", "curator"}
    }
    assert len(sections) == 19, "two that any game has, and others of seven games"
    for name, section in sections:
        for field, about in section.model_fields.items():
            assert re.search(rf"\b{about.alias or field}\b", page), f"{name}.{field}"


def test_the_protocol_page_says_which_version_it_is() -> None:
    assert f"Version {PROTOCOL_VERSION}. " in (ROOT / "docs" / "protocol.md").read_text()


def test_the_scenario_of_the_inference_game_is_valid() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "inference.md").read_text(), re.DOTALL)
    (cell,) = lay_out(tomllib.loads(block), "docs").cells
    assert (cell.scenario.developer.defence, cell.scenario.developer.strength) == ("fft", 1.0)


def _rows(page: str, name: str) -> list[list[str]]:
    (block,) = re.findall(rf"<!-- {name} -->\n(.*?)<!-- end -->", (ROOT / "docs" / page).read_text(), re.DOTALL)
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]


def test_the_protocol_page_names_every_method_and_its_callers() -> None:
    documented, service = {}, ""
    for where, methods, callers in _rows("protocol.md", "methods"):
        service = where.split("`")[0] if where else service
        package = service if service.startswith("grpc.") else f"fairwall.{service}"
        documented |= {f"/{package}/{method}": frozenset(callers.split(", ")) for method in methods.split("`, `")}
    assert documented == CALLERS


def test_the_protocol_page_names_every_reason() -> None:
    held = [
        [Reason.Name(reason).removeprefix("REASON_"), status.name, text] for reason, (status, text) in CATALOGUE.items()
    ]
    assert _rows("protocol.md", "reasons") == held


def _closure(extra: str) -> set[str]:
    """Name the distributions that fairwall with an extra needs, of those installed here."""
    found: set[tuple[str, str]] = set()
    left = [("fairwall", extra)]
    while left:
        name, wanted = left.pop()
        if (name, wanted) in found:
            continue
        found.add((name, wanted))
        for line in metadata.requires(name) or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": wanted}):
                left += [(needed.name, each) for each in (needed.extras or {""})]
    return {name for name, _ in found}


@pytest.mark.check
@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
@pytest.mark.parametrize("extra", ["service", "games", "training"])
def test_what_an_install_takes_is_said(page: str, extra: str) -> None:
    (said,) = re.findall(
        rf"^\|[^|]*\| [^|]*(?:fairwall|\.)\[{extra}\].*?(\d\.\d) GB", (ROOT / page).read_text(), re.MULTILINE
    )
    pip = 0.02
    size = pip + sum(
        file.stat().st_size / 1e9
        for name in _closure(extra)
        for each in metadata.files(name) or ()
        if (file := Path(str(each.locate()))).is_file()
    )
    # Compiled code, and blocks of the disk that are not full, come besides.
    assert 0.7 * float(said) < size < 1.2 * float(said), size


def test_the_readme_says_what_the_games_need_and_take() -> None:
    assert re.search(r"pip install '\.\[games\]'` \| \d\.\d GB, two to three minutes", README)


def test_the_readme_is_short_and_has_five_links() -> None:
    assert README.count("\n") <= 70
    assert len(re.findall(r"(?<!!)\[[^\]]+\]\(docs/", README)) == 5


@pytest.mark.check
def test_the_readme_s_table_is_what_is_printed(fairwall: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    (line,) = (line for line in README.splitlines() if line.startswith("$ fairwall "))
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    printed = [row.rstrip() for row in fairwall(*shlex.split(line)[2:]).stdout.splitlines()]
    assert [row for row in shown.splitlines() if row not in printed] == []


@pytest.mark.check
def test_the_readme_s_picture_is_what_is_drawn() -> None:
    drawn = runpy.run_path(str(ROOT / "scripts/picture.py"))
    assert drawn["PICTURE"].read_text(encoding="utf-8") == drawn["picture"]()


def test_every_shipped_scenario_is_listed_under_its_game() -> None:
    sections = (ROOT / "docs/games.md").read_text().split("\n## The ")[1:]
    listed = {
        name: section.split(" game\n")[0]
        for section in sections
        for row in re.findall(r"(?m)^\| (`.*?`) \|", section.partition("\n## ")[0])
        for name in re.findall(r"`([^`]+)`", row)
    }
    texts = {name: shipped()[name].read_text() for name in fairwall.scenarios()}
    assert listed == {name: tomllib.loads(text)["scenario"]["game"] for name, text in texts.items()}


def test_the_glossary_is_short_and_used() -> None:
    terms = re.findall(r"(?m)^### (.*)$", (ROOT / "docs/glossary.md").read_text())
    assert len(terms) <= 40
    assert sum(page.read_text().count("(glossary.md") for page in PAGES) >= 10
