"""The example, as docs/serving.md has it: its own commands and its own program, on the files as they lie there."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import command, forked_programs

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "serving.md").read_text()
README = (DOCS.parent / "README.md").read_text()
(PROGRAM,) = (text for text in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "csv.DictReader" in text)
HALF_WIDTH_MOST = 0.15

THE_SAME_NOISE_EACH_TIME = """
import itertools
from compliance.answers import audits as case
drawn, numbers = case.noise_for, itertools.count()
case.noise_for = lambda *_: drawn(b"example", str(next(numbers)))
from compliance.__main__ import main
main()
"""


def shown(section: str, kind: str) -> list[str]:
    """The first commands that a section of the page shows, as words without the first."""
    (block, *_) = re.findall(rf"```{kind}\n(.*?)```", PAGE.split(f"## {section}")[1], re.DOTALL)
    lines = (line.removeprefix("$ ") for line in block.splitlines())
    commands = [shlex.split(line, comments=True) for line in lines]
    assert {words[0] for words in commands} == {"fairwall"}
    return commands[0][1:]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The example's folder with the certificates that the page makes, on a port of the system's choice."""
    folder = tmp_path / "example"
    shutil.copytree(DOCS / "example", folder)
    made = command.fairwall(*shown("1. Certificates", "console"), cwd=folder)
    assert made.returncode == 0, made.stderr
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text().replace('"127.0.0.1:7443"', '"127.0.0.1:0"'))
    return folder


def check_first_line(line: str) -> str:
    """Hold what a service prints against what the page shows of it; the address."""
    (text,) = re.findall(r'```text\n(\{"address".*)\n```', PAGE)
    shown, told = json.loads(text.replace(", ...]", "]")), json.loads(line)
    assert ", ...]" in text
    assert len(told["layers"]) > 1
    assert [*told] == [*shown]
    assert told["layers"][0] == shown["layers"][0]
    assert re.sub(r"\d+$", "7443", told["address"]) == shown["address"]
    return str(told["address"])


def test_another_first_line_is_noticed() -> None:
    limits = {"name": "limits", "active": True, "why_not": ""}
    line = {"address": "127.0.0.1:1", "layers": [limits, limits]}
    assert check_first_line(json.dumps(line)) == "127.0.0.1:1"
    for other in ({"address": "127.0.0.1:1"}, line | {"more": 1}, line | {"layers": [{"name": "limits"}, limits]}):
        with pytest.raises((AssertionError, KeyError)):
            check_first_line(json.dumps(other))


@contextmanager
def served(place: Path, start: tuple[str, ...]) -> Iterator[str]:
    with (
        (place / "log").open("w") as log,
        forked_programs.Popen(
            [sys.executable, *start], stdout=subprocess.PIPE, stderr=log, text=True, cwd=place
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (place / "log").read_text()
            yield check_first_line(line)
        finally:
            process.kill()


def answers(place: Path, address: str) -> list[tuple[float, float, float, float]]:
    """Run the program; of each question the exact gap, the answer, and the ends of its interval."""
    assert "127.0.0.1:7443" in PROGRAM
    ran = forked_programs.run(
        [sys.executable, "-c", PROGRAM.replace("127.0.0.1:7443", address)],
        capture_output=True, text=True, cwd=place, timeout=300, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    expected, *asked, left = ran.stdout.splitlines()
    assert max(map(len, ran.stdout.splitlines())) <= 80
    error, nothing = re.findall(r"0\.\d{3}", expected)
    assert float(error) < float(nothing)
    assert left == "epsilon left: 1.5"
    number = r"(-?\d\.\d{3})"
    read = [re.fullmatch(rf"(sp|eo) of incomes above (\d+): {number}, between {number} and {number}", x) for x in asked]
    return [
        (exact(place, each[1], float(each[2])), float(each[3]), float(each[4]), float(each[5])) for each in read if each
    ]


def exact(place: Path, metric: str, least: float) -> float:
    with (place / "loans.csv").open() as file:
        people = [row for row in csv.DictReader(file) if metric == "sp" or row["repaid"] == "1"]
    above = {group: [float(row["income"]) > least for row in people if row["group"] == group] for group in "ab"}
    return sum(above["a"]) / len(above["a"]) - sum(above["b"]) / len(above["b"])


@pytest.mark.check
def test_the_first_answer_is_worth_having_and_six_questions_can_be_asked(place: Path) -> None:
    with served(place, ("-c", THE_SAME_NOISE_EACH_TIME, "--policy", "policy.toml")) as address:
        (gap, _, low, high), *others = answers(place, address)
        give_up = time.monotonic() + 300
        while "budgets that keep" not in (place / "log").read_text():  # said behind the answers
            assert time.monotonic() < give_up
            time.sleep(0.05)
    assert low < gap < high
    assert (high - low) / 2 <= HALF_WIDTH_MOST
    assert len(others) == 5
    log = (place / "log").read_text().splitlines()
    told = log[next(i for i, line in enumerate(log) if "95% interval" in line) :][:4]
    assert max(map(len, told)) <= 80
    assert all(f" INFO {line.partition(' INFO ')[2]}\n" in PAGE for line in told)
    assert [line.partition(" INFO ")[2].split()[:2] for line in told[2:]] == [["loans:", "sp"], ["loans:", "eo"]]


@pytest.mark.check
def test_the_readme_s_audit_is_answered(place: Path) -> None:
    """Its commands on the example's folder, and its eight lines beside the service."""
    (block,) = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    new, serve = (shlex.split(line)[1:] for line in block.splitlines())
    assert new == shown("1. Certificates", "console")
    (program,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(program.splitlines()) == 8
    with served(place, ("-m", "sim", *serve)) as address:
        ran = forked_programs.run(
            [sys.executable, "-c", program.replace("127.0.0.1:7443", address)],
            capture_output=True, text=True, cwd=place, timeout=300, check=False,
        )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    gap, low, high = map(float, re.findall(r"-?\d\.\d\d", ran.stdout))
    assert low <= gap <= high
    assert high - low <= 2 * HALF_WIDTH_MOST


@pytest.mark.check
def test_so_it_is_with_the_system_s_noise(place: Path) -> None:
    """Where each interval holds 19 times in 20, fewer than three of six hold once in ten thousand times."""
    with served(place, ("-m", "sim", *shown("2. The service", "sh"))) as address:
        found = answers(place, address)
    assert len(found) == 6
    assert all((high - low) / 2 <= HALF_WIDTH_MOST for _, _, low, high in found)
    assert sum(low - 0.001 <= gap <= high + 0.001 for gap, _, low, high in found) >= 3
