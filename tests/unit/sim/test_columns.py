"""A report's columns: a row in a game's tuple of columns is all that page, terminal, CSV and viewer need."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sim.games import MODULES, read
from sim.games.game import Line
from sim.report.cells import Swept
from sim.report.columns import Measure, Sheet, interval_of
from sim.report.page import Page, sections
from sim.report.terminal import in_terminal
from sim.runs.page import rendered
from sim.scenarios.sweep import Sweep
from sim.viewer.page import outcomes
from tests.support import toy_game

COLUMNS: tuple[Measure[Line], ...] = (
    Measure("trials"),
    Measure(
        "heads", unit="flips", digits=1, short="heads", about="how often heads came up", main=True, scale=(0.0, 1.0)
    ),
    Measure("edges", short="edges", about="what is not there"),
)
SCENARIO = '[scenario]\nname = "coins"\ngame = "coin"\ntrials = 2\n[sweep]\n"coin.bias" = [0.2, 0.8]\n'


def tables(sweep: Sweep, _lines: Sequence[Line], summary: Sequence[Line]) -> list[Sheet[Line]]:
    return [Sheet("coins", "Coins", Swept(sweep.scenario.axes, {"coin.bias": "bias"}), summary, COLUMNS)]


def page(sweep: Sweep, lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    return Page("A coin was flipped.", (), (), sections(tables(sweep, lines, summary), {}), ())


GAME = replace(toy_game.GAME, page=page, tables=tables, headline=COLUMNS[1])


def printed(shown: Any, width: int) -> str:
    file = io.StringIO()
    Console(width=width, file=file).print(shown)
    assert max(map(len, file.getvalue().splitlines())) <= width
    return file.getvalue()


def test_a_column_appears_on_the_page_in_the_terminal_in_csv_and_in_the_viewer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODULES, "coin", __name__)
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    lines = [
        {"trial": trial, "seed": trial, "game": "coin", "seconds": 0.1, "coin.bias": bias, "heads": bias > 0.5}
        for bias in (0.2, 0.8)
        for trial in range(2)
    ]
    (tmp_path / "trials.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    sweep = read(str(tmp_path / "scenario.toml"))
    text = rendered(tmp_path)
    assert "heads, flips</th>" in text
    assert "<dd>How often heads came up.</dd>" in text
    (file, *_) = re.findall(r'href="data:text/csv[^,]*,([^"]+)"', text)
    rows = list(csv.reader(io.StringIO(base64.b64decode(html.unescape(file)).decode())))
    assert rows == [["bias", "trials", "heads, flips"], ["0.2", "2", "0.0"], ["0.8", "2", "2.0"]]
    summary = [
        GAME.summarise({"coin.bias": bias}, [line for line in lines if line["coin.bias"] == bias])
        for bias in (0.2, 0.8)
    ]
    shown = printed(in_terminal("coins", tables(sweep, lines, summary)), 80)
    assert [line.split() for line in shown.splitlines()[1:5:2]] == [["bias", "heads"], ["0.2", "0.0"]]
    assert "heads: how often heads came up." in shown
    assert "edges" not in shown + text, "what no row has is not shown"
    assert [one["step"] for one in outcomes(tmp_path, sweep).values()] == [0, 0, 4, 4]


def test_a_narrow_terminal_keeps_the_main_column_and_says_which_it_left_out() -> None:
    cell = {
        "a.one": "a word",
        "a.two": 0.25,
        "rate": 0.5,
        "rate_low": 0.25,
        "rate_high": 0.75,
        "more": 12345.0,
        "most": 7,
    }
    columns: tuple[Measure[Line], ...] = (
        Measure("rate", of=interval_of("rate"), digits=2, short="rate", main=True),
        Measure("more", short="more", digits=2),
        Measure("most", short="the\nmost", kept=True),
    )
    table = Sheet("t", "T", Swept(("a.one", "a.two")), [cell], columns)
    wide, less, words, least = (printed(in_terminal("t", [table]), width) for width in (60, 33, 28, 24))
    assert "a word  0.25  .50 [.25,.75]  12,345.00" in wide
    assert "In brackets: 95% intervals." in wide
    assert "No room here for: more." in " ".join(less.split())
    assert "one" in less
    assert "played" in words
    assert "a word, two" in words
    assert "No room here for: more, the most." in " ".join(least.split())
    assert ".50 [.25,.75]" in least


def test_no_row_is_said() -> None:
    assert "No trial finished." in printed(in_terminal("t", [Sheet("t", "T", Swept(()), [], COLUMNS)]), 80)
