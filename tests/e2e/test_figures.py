"""Figures for papers, runs side by side, the latest run and a page in a browser: by the command and from Python."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

import fairwall
from tests.support import forked_programs
from tests.support.command import SMALL

ROOT = Path(__file__).parents[2]
HEADS = {"pdf": b"%PDF-", "svg": b"<?xml", "png": b"\x89PNG"}
VIEWED = next(
    block.splitlines()
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "runs.md").read_text(), re.DOTALL)
    if "fairwall view latest" in block
)
RUNS = ("20260101-120000-demo-1a2b", "20260101-120500-demo-3c4d")

pytestmark = pytest.mark.check


def command(place: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command where no browser is, unless the environment names one."""
    inside = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}
    return forked_programs.run(
        [sys.executable, "-I", "-m", "sim", *arguments],
        cwd=place,
        env=inside | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs of a small scenario, called as the page calls them."""
    place = tmp_path_factory.mktemp("figures")
    (place / "small.toml").write_text(SMALL)
    for number, name in enumerate(RUNS):
        setting = f"compliance.epsilon=[{10.0 + number}, 100.0, inf]"
        played = command(place, "run", "small.toml", "--trials", "2", "--set", setting, "--json", "--open")
        assert played.returncode == 0, played.stderr
        assert "no browser opened here" in played.stderr
        Path(json.loads(played.stdout)["run_dir"]).rename(place / "runs" / name)
    return place


@pytest.mark.slow(seconds=25)
def test_every_figure_of_a_report_is_written_by_its_name(place: Path) -> None:
    run = fairwall.read_run(place / "runs" / RUNS[0])
    ids = set(re.findall(r'<g id="([\w-]+)-figure_1"', run.report_html()))
    assert set(run.figures) == {name.removesuffix("-narrow") for name in ids} != set()
    for kind, head in HEADS.items():
        drawn = run.figure("leakage", kind, out=place / "drawn")
        assert drawn == place / "drawn" / f"leakage-1.{kind}"
        before = drawn.read_bytes()
        assert before.startswith(head)
        assert run.figure("leakage-1", kind, out=place / "drawn").read_bytes() == before, "not the same twice"
        written = command(place, "report", str(run.folder), "--figures", kind)
        assert [line.partition(":")[0] for line in written.stdout.splitlines()] == list(run.figures)
        assert {path.stem for path in (run.folder / "figures").glob(f"*.{kind}")} == set(run.figures)
    told = (place / "drawn" / "leakage-1.svg").read_text()
    assert "leakage, %" in re.sub(r"<[^>]+>", "", told), "letters stay letters"
    assert 'width="237.6pt"' in told, "a column of 3.3 inches"
    assert b"/Type3" not in (place / "drawn" / "leakage-1.pdf").read_bytes()
    assert command(place, "verify", str(run.folder)).returncode == 0


def test_what_is_no_figure_is_refused_in_one_line(place: Path) -> None:
    run = fairwall.read_run(place / "runs" / RUNS[0])
    with pytest.raises(fairwall.UserError, match=r"no figure is called 'leek': there is .*leakage-1"):
        run.figure("leek")
    with pytest.raises(fairwall.UserError, match="--figures: must be list, pdf, svg, png, not 'gif'"):
        run.figure("leakage", "gif")
    for arguments in (("--only", "leakage"), ("--out", "x"), ("--json",)):
        refused = command(place, "report", str(run.folder), *arguments)
        assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)


def test_frames_have_a_row_a_cell_or_a_trial(place: Path) -> None:
    run = fairwall.read_run(place / "runs" / RUNS[0])
    assert run.frame().to_dict("records")[0].keys() >= {"epsilon", "leakage"}
    assert (len(run.frame()), len(run.frame("trials"))) == (len(run.summary), len(run.trials)) == (3, 6)
    with plt.style.context("fairwall.paper"):
        assert plt.rcParams["figure.figsize"][0] == 3.3


def test_the_commands_of_the_page_show_runs(place: Path) -> None:
    latest, several = VIEWED
    assert all(name in several for name in RUNS)
    for line in (latest, several):
        shown = command(place, *shlex.split(line)[1:])
        assert shown.returncode == 0, shown.stderr
    page = (place / "three.html").read_text()
    assert "Side by side: " + "; ".join(f"{x}: {name}" for x, name in zip("ABC", (*RUNS, RUNS[1]), strict=True)) in page
    words = re.sub(r"\s+", " ", re.sub(r"<style>.*?</style>|<svg.*?</svg>|<[^>]+>", " ", page, flags=re.DOTALL))
    assert "What was set otherwise setting A B C Budget of a trial, ε 10, 100, ∞ 11, 100, ∞ 11, 100, ∞" in words
    assert [words.count(f" {x}: Leakage against") for x in "ABC"] == [1, 1, 1]
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert (place / "runs" / RUNS[1] / "view.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("view", "latest", "latest", "--trial", "1"), "--trial, --as, --beside and --replayed are about one RUN"),
        (("view", "latest", "nowhere"), "nowhere: not a run's folder"),
        (("view", *["latest"] * 27), "27 runs: at most 26 stand side by side"),
    ],
)
def test_what_cannot_stand_side_by_side_is_refused(place: Path, arguments: tuple[str, ...], said: str) -> None:
    refused = command(place, *arguments)
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert said in refused.stderr


def test_latest_needs_a_run(tmp_path: Path) -> None:
    refused = command(tmp_path, "verify", "latest")
    assert (refused.returncode, refused.stderr) == (
        2,
        f"fairwall: latest: there is no run in {tmp_path / 'runs'}: name the folder of one\n",
    )


def test_a_page_is_opened_in_the_browser_that_there_is(place: Path, tmp_path: Path) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    shown = command(place, "view", "latest", "--out", "page.html", "--open", BROWSER=str(browser))
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "page: page.html\n", "")
    assert opened.read_text() == f"{(place / 'page.html').as_uri()}\n"


def cited() -> Mapping[str, Any]:
    import yaml

    found: Mapping[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    return found


def test_what_is_cited_is_this_version_and_the_papers_that_are_checked() -> None:
    import tomllib

    said, page = cited(), (ROOT / "docs" / "citing.md").read_text()
    assert (said["cff-version"], said["version"], said["license"]) == ("1.2.0", fairwall.__version__, "Apache-2.0")
    assert f"version = {{{fairwall.__version__}}}" in page
    assert said["title"] in page
    titles = {key: re.sub(r"[{}]", "", title) for key, title in re.findall(r"@\w+\{(\w+),\s+title\s+= \{(.*)\}", page)}
    papers = [tomllib.loads(path.read_text())["paper"] for path in (ROOT / "sim" / "papers").glob("*.toml")]
    assert titles.keys() == {"fairwall", *(paper["key"] for paper in papers)}
    for paper in papers:
        own = re.sub(r"^[\w, ]+: | \(.*\)$", "", paper["title"].replace("(Local)", "Local"))
        assert own in titles[paper["key"]].replace("(Local)", "Local")
