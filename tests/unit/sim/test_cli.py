"""The command line as a shell sees it: exit status, standard output, standard error."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import fairwall as package
from sim.cli.main import app
from sim.games import read
from sim.scenarios.sweep import minutes, shipped
from tests.support import command

ROOT = Path(__file__).parents[3]

OWN = """
[scenario]
name = "own"
game = "reveal"
[data]
source = "people.csv"
protected = "group"
advantaged = "a"
disadvantaged = "b"
label = "y"
positive = "1"
test_size = 5
[compliance]
mechanism = "exact"
[developer]
strategy = "single"
"""


def sweep(seeds: int, sizes: int) -> str:
    """A sweep of so many cells."""
    return f"""[sweep]
"scenario.seed" = {[*range(seeds)]}
"data.test_size" = {[*range(3, 3 + sizes)]}
"""


PEOPLE = "group,y,x,always\n" + "".join(f"{'ab'[i % 2]},{i // 2 % 2},{i},1\n" for i in range(20))


def fairwall(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command.fairwall(*arguments, cwd=folder, seconds=300)


def test_the_version_is_the_packages(tmp_path: Path) -> None:
    done = fairwall(tmp_path, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"fairwall {package.__version__}\n", "")


def test_the_list_names_every_shipped_scenario_and_what_it_is_about(tmp_path: Path) -> None:
    done = fairwall(tmp_path, "list")
    assert (done.returncode, done.stderr) == (0, "")
    # A line that begins with a space goes on with what the scenario above is about.
    assert [line.split()[0] for line in done.stdout.splitlines() if line[0] != " "] == list(shipped())
    told = " ".join(done.stdout.split())
    assert all(f"{name} {read(name).scenario.scenario.about}" in told for name in shipped())
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_list_tells_minutes_and_what_must_be_installed(tmp_path: Path) -> None:
    done = fairwall(tmp_path, "list", "--json")
    listed = {one["name"]: one for one in json.loads(done.stdout)}
    assert list(listed) == list(shipped())
    assert set(minutes()) <= set(shipped())
    assert all(one["minutes"] == minutes().get(name) for name, one in listed.items())
    assert all(0 < taken < 10_000 for taken in minutes().values())
    assert listed["demo"]["needs"] == []
    assert listed["dia-german"]["needs"] == ["fairwall[training]"]
    assert listed["dia-lsac-sex"]["needs"] == ["fairwall[training]", "a file of lsac"]
    assert listed["ldp-demo"]["needs"] == ["fairwall[release]"]
    assert listed["minority-noise"]["needs"] == []
    assert listed["mitigations-synthetic"]["needs"] == ["fairwall[training]", "fairwall[synthetic]"]
    assert listed["private-fair-adult"]["needs"] == ["fairwall[training]"]
    told = " ".join(fairwall(tmp_path, "list").stdout.split())
    assert f"{listed['demo']['about']} (under a minute)" in told
    assert "fairwall[training]; a file of lsac)" in told
    extras = set(re.findall(r"fairwall\[(\w+)\]", json.dumps([one["needs"] for one in listed.values()])))
    assert extras <= set(metadata("fairwall").get_all("Provides-Extra") or ())


def test_without_a_command_the_help_is_shown(tmp_path: Path) -> None:
    done = fairwall(tmp_path)
    text = (done.stdout + done.stderr).strip()
    assert text.startswith("Usage: fairwall")
    assert "run" in text


def groups(command: Any, *words: str) -> Iterator[tuple[str, ...]]:
    """List the command's groups, by the words that lead there."""
    if hasattr(command, "commands"):
        yield words
        for name, inner in command.commands.items():
            yield from groups(inner, *words, name)


COMMANDS: Any = get_command(app)
GROUPS = [*groups(COMMANDS)]


def test_the_commands_are_few_and_in_groups(tmp_path: Path) -> None:
    """A newcomer reads the whole list."""
    _, _, listed = fairwall(tmp_path, "--help").stdout.partition("Commands:\n")
    assert len(listed.splitlines()) <= 13
    assert {("deploy",), ("papers",), ("plan",), ("results",), ("test",), ("deploy", "ledger")} <= {*GROUPS}


def test_every_command_is_listed_with_a_whole_sentence(tmp_path: Path) -> None:
    for group in GROUPS:
        done = fairwall(tmp_path, *group, "--help")
        _, _, listed = done.stdout.partition("Commands:\n")
        assert listed
        assert all(line.endswith(".") and not line.endswith("..") for line in listed.splitlines()), listed
        assert max(map(len, done.stdout.splitlines())) <= 80


def named(text: str) -> Iterator[list[str]]:
    """List the words of each command line that a text quotes, or builds as a list of Python; bytes are for digests."""
    for quoted in re.findall(r"(?:``?|(?<!b)['\"]|^\$ |^)fairwall ((?:[a-z][a-z-]*\b ?)+)", text, re.MULTILINE):
        yield quoted.split()
    for listed in re.findall(r"[\[(][\"']fairwall[\"']((?:, [\"'][a-z-]+[\"'])+)", text):
        yield re.findall(r"[a-z-]+", listed)


def unknown(words: list[str]) -> str | None:
    """Give the word by which no command is known, if there is one; what a command is given is its own matter."""
    found = COMMANDS
    for word in words:
        if not hasattr(found, "commands"):
            return None
        if word not in found.commands:
            return word
        found = found.commands[word]
    return None


TOLD = [
    *(
        path
        for room in ("sim", "compliance", "developer", "adversary", "proto")
        for path in (ROOT / room).rglob("*.py")
    ),
    *(
        path
        for path in (*ROOT.glob("docs/*.md"), ROOT / "README.md", *ROOT.glob("deploy/*"), *ROOT.glob("sim/*/*.toml"))
    ),
]


@pytest.mark.check
def test_every_command_that_is_named_anywhere_is_there() -> None:
    assert unknown(["frontier"]) == "frontier"
    assert unknown(["plan", "recommend"]) == "recommend"
    assert [*named("then {shlex.join(['fairwall', 'frontier', folder])}")] == [["frontier"]]
    assert [*named("run `fairwall ledger show FILE`\nfairwall run demo")] == [["ledger", "show"], ["run", "demo"]]
    count, wrong = 0, []
    for path in TOLD:
        if not path.is_file():
            continue
        for words in named(path.read_text(encoding="utf-8")):
            count += 1
            if unknown(words) is not None:
                wrong.append((path.relative_to(ROOT).as_posix(), " ".join(words)))
    assert wrong == []
    assert count > 100


def test_help_and_usage_errors_do_not_wait_for_what_a_game_needs() -> None:
    heavy = "{'numpy', 'grpc', 'pydantic', 'rich', 'google', 'cryptography'}"
    code = f"import sys, sim.cli.main; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


BAD_ARGUMENTS = [
    ("frobnicate", "frobnicate"),
    ("run", "SCENARIO"),
    ("run demo --frobnicate", "--frobnicate"),
    ("run demo --set", "--set"),
    ("run demo --trials many", "--trials"),
    ("run demo --trials 0", "scenario.trials"),
    ("run dmeo", "did you mean demo?"),
    ("run .", "no scenario or file '.'"),
    ("run broken.toml", "broken.toml: not valid TOML"),
    ("run demo --set compliance.epsilon=0", "compliance.epsilon"),
    ("run demo --set data.test_sise=5", "did you mean data.test_size?"),
    ("run demo --resume", "--resume"),
    ("run demo --resume nowhere", "nowhere: not a run's folder"),
    ("run demo --resume . --out runs", "--out"),
    ("run dots.toml", "dots.toml: not valid TOML: a key has more than 32 parts"),
    ("run demo --set demo=" + "a." * 50_000 + "a", "demo: unknown key"),
    ("run long.toml", "long.toml: not valid TOML: more than 4,194,304 bytes"),
    ("run cells.toml", "cells.toml: sweep: has 200,000 cells; more than 10,000 need --force"),
    (r'run demo --set scenario.name="two\nlines"', "scenario.name: must be one line of printable characters"),
    (r'run demo --set scenario.about="\u001b[2J"', "scenario.about: must be one line of printable characters"),
]
BAD_DATA = [
    ("run own.toml --set data.source=nowhere.csv", "nowhere.csv"),
    ("run own.toml --set data.source=own.toml", "own.toml"),
    ("run own.toml --set data.source=empty.csv", "empty.csv"),
    ("run own.toml --set data.protected=race", "'race'"),
    ("run own.toml --set data.label=always", "'always'"),
    ("run own.toml --set data.test_size=11", "data.test_size: 11 people wanted"),
    ("run own.toml --set data.n0=4 --set data.test_size=10 --set data.train_share=0.8", "data.test_size"),
    ('run own.toml --set adversary.attack=["loss-test"]', "adversary.probes"),
    ("run own.toml --set data.source=only_a.csv --set data.disadvantaged=b", "'b'"),
    ("run own.toml --set data.source=b_refused.csv --set compliance.metric=eo", "data.test_size"),
]


@pytest.mark.few(1)
@pytest.mark.parametrize("part", range(3))
def test_bad_input_ends_with_status_2_and_one_line_before_anything_is_started(part: int, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    (tmp_path / "broken.toml").write_text("[scenario")
    (tmp_path / "dots.toml").write_text("a." * 50_000 + "a = 1\n")
    (tmp_path / "long.toml").write_text("#" * 2**22 + "\n")
    (tmp_path / "cells.toml").write_text(OWN + sweep(400, 500))
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "empty.csv").write_text("")
    header, *rows = PEOPLE.splitlines(keepends=True)
    (tmp_path / "only_a.csv").write_text(header + "".join(row for row in rows if row.startswith("a")))
    # Nobody in group b has the favourable outcome, so that equal opportunity has one group empty.
    (tmp_path / "b_refused.csv").write_text(PEOPLE.replace("b,1,", "b,0,"))
    before = set(tmp_path.iterdir())
    for line, named in (BAD_ARGUMENTS + BAD_DATA)[part::3]:
        done = fairwall(tmp_path, *line.split())
        assert done.returncode == 2
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert done.stderr.startswith("fairwall: ")
        assert named in done.stderr
        # Parties write their logs into the run's folder, so without one none was started.
        assert set(tmp_path.iterdir()) == before


@pytest.mark.check
def test_a_large_sweep_is_played_if_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "cells.toml").write_text(OWN + sweep(100, 101))
    done = fairwall(tmp_path, "run", "cells.toml", "--force")
    # Past its cells: it is the data that are missing.
    assert (done.returncode, done.stderr) == (2, "fairwall: people.csv: no such file\n")


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    # The data are not there: that it is not said shows that they were not looked for.
    (tmp_path / "own.toml").write_text(OWN)
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    for out in ["file", "file/below", "x" * 300, "loop"]:
        done = fairwall(tmp_path, "run", "own.toml", "--out", out)
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch(rf"fairwall: --out: .*{out.partition('/')[0]}.*\n", done.stderr), done.stderr


def test_a_file_in_place_of_the_folder_of_runs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    done = fairwall(tmp_path, "run", "demo")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"fairwall: --out: .*runs: is a file.*\n", done.stderr), done.stderr
