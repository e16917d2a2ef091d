"""What every page, terminal and picture says: a balanced accuracy is no share of people, and epsilon prints as 1,000.

The rules are about whatever text there is, so that a new sentence or figure is held to them unseen.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from sim.cli.run import run
from sim.games import read
from sim.runs.trials import summarise
from tests.support.terminal_output import terminal
from tests.unit.sim import test_report, test_verdict_cards

ROOT = Path(__file__).parents[3]
OF_PEOPLE = re.compile(r"\d%( right)?( \([^)]*\))? of (all |the |these )?people|\d% right of|right about [\d.]+% ")
"""A share of people, as no balanced accuracy may be told."""
PLAIN_EPSILON = re.compile(r"(?:ε|epsilon)(?: of| is)?[ =:]{0,3}\d{4,}(?![\d,]*-)|1e\+0\d")
FORMATTED = re.compile(r"\{[^{}()]*(?:epsilon|EPSILON)[^{}]*:(?:g|,?\.[1-3]g)\}")
TYPED = ("sim/planning/commands.py", "-{line['epsilon']:g}", "= {epsilon:g} keeps it", "for epsilon in (0.05")
"""Commands, keys and settings, which are read by programs; and ticks below 1,000."""


def said(page: str) -> str:
    """Give all text of a page, that of drawings and of what stands for them included."""
    seen = re.sub(r"<style>.*?</style>|data:text/csv[^\"]*", "", page, flags=re.DOTALL)
    told = " ".join(re.findall(r'(?:aria-label|alt|title)="([^"]*)"', seen))
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", seen) + " " + told)).replace("\u00a0", " ")


@pytest.mark.usefixtures("rendered")
def test_pages_and_terminals_of_the_reveal_game_say_it_right(tmp_path: Path) -> None:
    settings = ["scenario.trials=5", "compliance.epsilon=[1000.0, 25000.0, inf]", "developer.strategy=best"]
    sweep = read("demo", settings)
    trials = test_report._trials(sweep, 5)
    shown = Console(file=io.StringIO(), width=80)
    shown.print(terminal(sweep, trials, summarise(sweep, trials)))
    whole = test_report._report(tmp_path / "run", sweep, trials)
    test_report.require_whole(whole)
    assert str(tmp_path) not in whole
    page = said(whole)
    for text in (page, shown.file.getvalue()):
        assert not OF_PEOPLE.search(text)
        assert not PLAIN_EPSILON.search(text)
        assert not re.search(r"(?<![\d,.#-])(?:1000|25000)(?:\.0)?(?![\d,])", text)
        assert "1,000" in text
        assert "25,000" in text
    assert "counting both groups equally" in page


@pytest.mark.few(1)
@pytest.mark.parametrize("name", test_verdict_cards.RUNS)
def test_pages_of_every_game_say_it_right(name: str, tmp_path: Path) -> None:
    run = test_verdict_cards.played(name, 6)
    text = said(test_verdict_cards._written(tmp_path, run))
    assert not PLAIN_EPSILON.search(text)
    if run[0].game in ("reveal", "groups"):
        assert not OF_PEOPLE.search(text)


def test_what_would_be_played_is_said_right(capsys: pytest.CaptureFixture[str]) -> None:
    run("conceal-adult-100", ["compliance.epsilon=[1000.0, inf]", "developer.strategy=best"], dry_run=True)
    told = capsys.readouterr()
    assert "compliance.epsilon: 1,000, ∞" in told.out
    assert [line.partition(":")[0] for line in told.err.splitlines()] == ["developer.decoder", "developer.perturbation"]


def formatted() -> Iterator[str]:
    for place in ("sim", "compliance", "developer", "adversary", "proto/fairwall"):
        for path in sorted((ROOT / place).rglob("*.py")):
            if path.parent.name == "checks" or path.name.endswith("_pb2.py"):
                continue
            for line in path.read_text(encoding="utf-8").splitlines():
                if FORMATTED.search(line) and not any(one in f"{path.relative_to(ROOT)} {line}" for one in TYPED):
                    yield f"{path.relative_to(ROOT)}: {line.strip()}"


def test_no_sentence_writes_epsilon_without_its_comma() -> None:
    assert list(formatted()) == []


def test_docs_and_pictures_say_it_right() -> None:
    for path in (*ROOT.glob("docs/*.md"), *ROOT.glob("docs/*.svg"), ROOT / "README.md"):
        text = path.read_text(encoding="utf-8")
        text = said(text) if path.suffix == ".svg" else re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        assert not PLAIN_EPSILON.search(text), path
        for sentence in re.split(r"(?<=[.|])\s", text):
            if re.search(r"[Bb]alanced accuracy|[Ll]eakage", sentence):
                assert not OF_PEOPLE.search(sentence), path


def test_the_rules_notice_what_they_are_for() -> None:
    for wrong in ("right about 89% of people", "89.4% (80 to 99) of the people", "89% right of 100"):
        assert OF_PEOPLE.search(wrong)
    for wrong in ("ε = 1000", "epsilon 25000", "ε 1e+03", "epsilon of 1000"):
        assert PLAIN_EPSILON.search(wrong)
    assert FORMATTED.search('f"epsilon {batch.epsilon:g}"')
    right = "right about 81 of 100 people; counting both groups equally, 89% (80 to 99); ε = 1,000"
    assert not OF_PEOPLE.search(right)
    assert not PLAIN_EPSILON.search(right)
