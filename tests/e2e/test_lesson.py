"""The lesson in a real browser: it shows what the run's records say, by mouse and by keyboard, to everybody."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import fairwall
from sim.games.reveal.lesson import AXES
from tests.support import command
from tests.support.browser import AXE, cut_off, grave_faults, launched

MECHANISMS, EPSILONS, QUERIES = ("counts", "conceal", "randomized-response"), (1.0, math.inf), (1, 40)
PLAYED = ['compliance.epsilon=[1.0, "inf"]', "developer.queries=[1, 40]"]

pytestmark = pytest.mark.check


def played(folder: Path, *options: str) -> Path:
    finished = command.fairwall("run", *options, "--out", str(folder), cwd=folder.parent)
    assert finished.returncode == 0, finished.stderr
    (run,) = folder.iterdir()
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> fairwall.Run:
    settings = [option for setting in PLAYED for option in ("--set", setting)]
    return fairwall.read_run(played(tmp_path_factory.mktemp("lesson") / "runs", "lesson", "--trials", "2", *settings))


@pytest.fixture(scope="module")
def page(run: fairwall.Run) -> Path:
    target = run.folder / "class.html"
    finished = command.fairwall("lesson", str(run.folder), "--out", str(target), cwd=run.folder)
    assert (finished.returncode, finished.stdout) == (0, f"page: {target}\n"), finished.stderr
    again = command.fairwall("lesson", str(run.folder), cwd=run.folder)
    assert again.returncode == 0
    assert (run.folder / "lesson.html").read_bytes() == target.read_bytes(), "the same run gives the same bytes"
    return target


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as started:
        yield started


@contextmanager
def opened(browser: Any, page: Path, width: int = 1280, scheme: str = "light", motion: str = "reduce") -> Iterator[Any]:
    """Open the page; nothing may be fetched, and nothing go wrong."""
    size = {"width": width, "height": 900}
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion=motion)
    tab, wrong = context.new_page(), []
    tab.on("console", lambda message: wrong.append(message.text))
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("request", lambda sent: None if sent.url.startswith("file:") else wrong.append(sent.url))
    tab.goto(f"file://{page}")
    yield tab
    context.close()
    assert wrong == []


def dots(tab: Any) -> list[str]:
    found: list[str] = tab.evaluate("[...document.querySelectorAll('#people i')].map((dot) => dot.className)")
    return found


def test_every_setting_shows_what_the_run_recorded(browser: Any, page: Path, run: fairwall.Run) -> None:
    summary = {tuple(cell[axis] for axis in AXES): cell for cell in run.summary}
    traces = {tuple(line[axis] for axis in AXES): line["trace"] for line in run.trials if "trace" in line}
    with opened(browser, page) as tab:
        tab.locator("#guess").fill("61")
        for mechanism in range(len(MECHANISMS)):
            tab.locator("[name=mechanism]").nth(mechanism).check()
            for epsilon in range(len(EPSILONS)):
                tab.locator("#epsilon").fill(str(epsilon))
                for queries in range(len(QUERIES)):
                    tab.locator("#queries").fill(str(queries))
                    assert tab.locator("#found").inner_text() == ""
                    assert not any("is-" in dot or "wrong" in dot for dot in dots(tab)), "nothing is shown beforehand"
                    tab.locator("#ask").click()
                    asked = (MECHANISMS[mechanism], EPSILONS[epsilon], QUERIES[queries])
                    cell, trace = summary[asked], traces[asked]
                    said = tab.locator("#found").inner_text()
                    right = math.floor(cell["recovered"] + 0.5)
                    assert f"You guessed 61 of 100. On average over 2 trials it had {right} of 100 right" in said
                    assert (
                        f"counting both groups equally, {cell['leakage']:.0f}%." in said or cell["leakage"] % 1 == 0.5
                    )
                    assert ("Answers were exact: nobody is promised anything." in said) == (
                        EPSILONS[epsilon] == math.inf
                    )
                    assert ("up to 88.1% at most" in said) == (EPSILONS[epsilon] == 1.0)
                    shown = dots(tab)
                    assert [int("is-1" in dot) for dot in shown] == trace["guess"]
                    wrong = [guess != group for guess, group in zip(trace["guess"], trace["group"], strict=True)]
                    assert ["wrong" in dot for dot in shown] == wrong
                    assert f": {100 - sum(wrong)} of 100 right in this trial" in tab.locator("#now").inner_text()


def test_dots_turn_as_answers_arrive_and_stop_where_something_else_is_chosen(browser: Any, page: Path) -> None:
    with opened(browser, page, motion="no-preference") as tab:
        tab.locator("#queries").fill("1")
        tab.locator("#ask").click()
        first = dots(tab)
        assert tab.locator("#now").inner_text() == "After 1 question"
        assert not any("wrong" in dot for dot in first)
        tab.locator("#found p").first.wait_for()
        last = dots(tab)
        for before, after in zip(first, last, strict=True):
            changed = ("is-1" in before) != ("is-1" in after)
            assert (("turned" in before) != ("turned" in after)) == changed
        tab.locator("#ask").click()
        tab.locator("#epsilon").fill("0")
        tab.wait_for_timeout(1500)
        assert tab.locator("#found").inner_text() == ""


def test_the_keyboard_is_enough(browser: Any, page: Path) -> None:
    with opened(browser, page) as tab:
        for key in ("Tab", "ArrowDown", "Tab", "Home", "Tab", "End", "Tab", "ArrowRight", "Tab", "Enter"):
            tab.keyboard.press(key)
        assert tab.locator("[name=mechanism]").nth(1).is_checked()
        assert [tab.locator(f"#{name}-told").inner_text() for name in ("epsilon", "queries", "guess")] == [
            "1",
            "40",
            "51",
        ]
        assert tab.locator("#epsilon").get_attribute("aria-valuetext") == "1"
        assert "You guessed 51 of 100." in tab.locator("#found").inner_text()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_fit_for_everybody(browser: Any, page: Path, width: int, scheme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make browser")
    with opened(browser, page, width, scheme) as tab:
        tab.locator("#ask").click()
        tab.locator("main > details > summary").click()
        assert grave_faults(tab) == []
        assert cut_off(tab) == []


def test_what_is_no_lesson_is_refused_in_a_line(run: fairwall.Run, tmp_path: Path) -> None:
    settings = ["--trials", "1", "--set", "compliance.epsilon=1.0", "--set", "developer.queries=1"]
    other = played(tmp_path / "other", "lesson", *settings)
    for arguments, told in (
        ([str(other)], "a lesson is of a run of the reveal game that sweeps compliance.mechanism"),
        ([str(tmp_path)], "not a run's folder"),
        ([str(run.folder), "--out", str(tmp_path / "no" / "page.html")], "--out: there is no folder"),
    ):
        finished = command.fairwall("lesson", *arguments, cwd=tmp_path)
        assert finished.returncode == 2
        assert told in finished.stderr
        assert finished.stderr.count("\n") == 1
    lines = (run.folder / "trials.jsonl").read_text().splitlines(keepends=True)
    cut = tmp_path / "cut"
    cut.mkdir()
    (cut / "scenario.toml").write_bytes((run.folder / "scenario.toml").read_bytes())
    (cut / "trials.jsonl").write_text("".join(lines[:3]))
    finished = command.fairwall("lesson", str(cut), cwd=tmp_path)
    assert (finished.returncode, finished.stderr.count("\n")) == (2, 1)
    assert "the first trial of a cell was not played: counts" in finished.stderr
