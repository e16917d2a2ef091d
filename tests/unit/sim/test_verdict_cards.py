"""What all games' pages have: verdict cards, tables that lead to trials and can be downloaded, one colour a thing."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from matplotlib.colors import to_hex
from rich.console import Console

from compliance.mechanisms import MECHANISMS
from sim.games import GAMES, read
from sim.games.reveal.cells import best_attacks
from sim.games.reveal.figures import people_figures, tradeoff_figures
from sim.report.drawing import BLACK, COLOURS, looks
from sim.report.notation import count
from sim.report.page import Bar, Card, Page
from sim.report.tables import PageTable, PrintedColumn
from sim.runs.page import rendered as page_of
from sim.runs.trials import summarise
from sim.scenarios.scenario import as_values
from sim.scenarios.sweep import Cell, Sweep
from tests.support.terminal_output import terminal
from tests.unit.sim import test_inference_report, test_report, test_training_report

Lines = list[dict[str, Any]]


def _line(cell: Cell, trial: int, **own: Any) -> dict[str, Any]:
    said = cell.scenario.scenario
    return {"trial": trial, "seed": said.seed + trial, "game": said.game, "seconds": 0.1, **cell.swept, **own}


def _disclosure(cell: Cell, trial: int) -> dict[str, Any]:
    asked = cell.scenario.disclosure
    bound = math.tanh(asked.epsilon / 2)
    own = {
        "mode": asked.mode,
        "people": 1001,
        "takes_part": True,
        "others": 0,
        "epsilon": "inf" if math.isinf(asked.epsilon) else asked.epsilon,
        "secret": trial % 2,
        "prior": 0.5,
        "posterior": 0.4,
        "posterior_of_truth": 0.6,
        "guess": trial % 2 if trial else 1,
        "right": trial != 0,
        "advantage_law": bound / 2 if asked.alice == "in" else bound / 3,
        "bound": bound,
        "bound_applies": asked.mode != "inferential",
        "linked": None,
        "candidates": 0,
        "epsilon_spent": 1.0,
    }
    return _line(cell, trial, **own)


def _groups(cell: Cell, trial: int) -> dict[str, Any]:
    asked = cell.scenario.groups
    many = 2 * len(asked.columns)
    reached = 100 / many + (5 if asked.strategy == "blocks" else 2) + trial
    own = {
        "people": asked.people,
        "groups": many,
        "epsilon": "inf" if math.isinf(asked.epsilon) else asked.epsilon,
        "strategy": asked.strategy,
        "batches": 1,
        "models": asked.models,
        "leakage": reached,
        "chance": 100 / many,
        "bound": 100 / (1 + (many - 1) * math.exp(-asked.epsilon)),
        "recovered": 50,
        "right": {f"{'-'.join(asked.columns)} {group}": reached for group in range(many)},
        "epsilon_spent": "inf",
    }
    return _line(cell, trial, **own)


def _release(cell: Cell, trial: int) -> dict[str, Any]:
    asked = cell.scenario.release
    near = np.random.default_rng([trial, len(asked.protocol)]).uniform
    told = asked.protocol not in ("clean", "dropped", "constant")
    metrics = ("sp", "di", "eo", "oad", "acc", "f1", "recall", "auc", "auc_hard")
    epsilon = "inf" if math.isinf(asked.epsilon) else asked.epsilon
    sides = {f"{metric}_{side}": 0.3 for metric in metrics[:4] for side in ("advantaged", "disadvantaged")}
    own = {
        "split_seed": trial,
        "people": 36177,
        "tested": 9045,
        "protocol": asked.protocol,
        "split": asked.split,
        "epsilon": epsilon,
        "epsilon_protected": 0.2,
        "consistent": 0.5,
        "leakage_baseline": 67.3,
        "leakage_release": 68.0 + trial if told else None,
        "leakage": 70.0 + trial + len(asked.split) if told else None,
        "leakage_mixture": None,
        **{metric: float(near(0.2, 0.8)) for metric in metrics},
        **sides,
    }
    return _line(cell, trial, **own)


def _each(name: str, line: Callable[[Cell, int], dict[str, Any]], trials: int) -> tuple[Sweep, Lines]:
    sweep = read(name, [f"scenario.trials={trials}"])
    return sweep, [line(cell, trial) for cell in sweep.cells for trial in range(trials)]


def _inference(trials: int) -> tuple[Sweep, Lines]:
    sweep = read("dia-german", [f"scenario.trials={trials}"])
    return sweep, test_inference_report.lines(sweep, trials)


def _training(text: str, trials: int) -> tuple[Sweep, Lines]:
    sweep = test_training_report.sweep_of(text, trials)
    return sweep, test_training_report.lines_of(sweep, trials)


def _reveal(name: str, trials: int) -> tuple[Sweep, Lines]:
    own = {"targeted": 1, "targeted_recovered": 1, "target_advantaged": True} if name == "targeted" else {}
    return _each(name, lambda cell, trial: test_report._trial(cell, trial, **own), trials)


RUNS: dict[str, Callable[[int], tuple[Sweep, Lines]]] = {
    "demo": lambda trials: _reveal("demo", trials),
    "targeted": lambda trials: _reveal("targeted", trials),
    "disclosure": lambda trials: _each("disclosure-modes", _disclosure, trials),
    "groups": lambda trials: _each("reveal-groups", _groups, trials),
    "release": lambda trials: _each("ldp-demo", _release, trials),
    "inference": _inference,
    "training": lambda trials: _training(test_training_report.MODELS, trials),
    "rates": lambda trials: _training(test_training_report.TOLD, trials),
}
"""A made-up run of each game."""


@cache
def played(name: str, trials: int) -> tuple[Sweep, Lines]:
    """Make a run up once; nobody changes it."""
    return RUNS[name](trials)


def _page(run: tuple[Sweep, Lines]) -> Page:
    sweep, lines = run
    return GAMES[sweep.game].page(sweep, lines, summarise(sweep, lines))


def _written(folder: Path, run: tuple[Sweep, Lines]) -> str:
    sweep, lines = run
    (folder / "scenario.toml").write_text(tomli_w.dumps(as_values(sweep.scenario)))
    (folder / "trials.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return page_of(folder)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", RUNS)
def test_every_page_leads_with_cards_whose_bars_lie_on_their_scale(name: str) -> None:
    pages = [_page(played(name, trials)) for trials in (1, 6)]
    for page in pages:
        assert page.cards
        assert page.about_cards
        assert len({card.title for card in page.cards}) == len(page.cards)
    for card in (card for page in pages for card in page.cards):
        assert card.colour in COLOURS
        assert not re.search(r"nan|None|  |\.\.|\{", card.text), card.text
        if card.bar is not None:
            assert 0 <= card.bar.start <= card.bar.start + card.bar.width <= 100.01
            assert card.bar.alt


def test_a_run_without_a_trial_has_no_card() -> None:
    for name in RUNS:
        sweep, _ = played(name, 1)
        assert not _page((sweep, [])).cards, name


def _percents(card: Card) -> list[float]:
    return [float(text) for text in re.findall(r"([\d.]+)%", card.text)]


@pytest.mark.check
def test_no_card_claims_more_than_the_summary() -> None:
    for name, keys in (("groups", ("leakage", "chance", "bound")), ("release", ("leakage", "leakage_baseline", "acc"))):
        sweep, lines = played(name, 6)
        summary = summarise(sweep, lines)
        known = [cell[key] * (100 if key == "acc" else 1) for cell in summary for key in keys if cell[key]]
        for card in _page((sweep, lines)).cards:
            means = _percents(card)
            assert all(any(abs(mean - value) < 0.06 for value in known) for mean in means), card.text
    sweep, lines = played("inference", 6)
    by_defence: dict[str, float] = {}
    for cell in summarise(sweep, lines):
        by_defence[cell["defence"]] = max(cell["advantage"], by_defence.get(cell["defence"], 0))
    cards = _page((sweep, lines)).cards
    assert [float(re.findall(r"[\d.]+", card.text)[0]) for card in cards] == pytest.approx(
        list(by_defence.values()), abs=0.006
    )
    bars = [card.bar.reached / 100 for card in cards if card.bar is not None]
    assert bars == pytest.approx(list(by_defence.values()), abs=1e-4)
    sweep, lines = played("disclosure", 6)
    bounds = {cell["mode"]: cell["bound_applies"] for cell in summarise(sweep, lines)}
    said = [card.text for card in _page((sweep, lines)).cards if "ε allows" not in card.text]
    assert len(said) == len([card for card in _page((sweep, lines)).cards if card.title.startswith("Inferential")])
    assert not bounds["inferential"]


@pytest.mark.parametrize(("right", "of_others", "chance"), [(5, 5, False), (3, 2, True)])
def test_an_attack_that_may_be_chance_is_said_to_be(right: int, of_others: int, chance: bool) -> None:
    sweep = read("dia-german", ["scenario.trials=10"])
    # Five of ten victims have bit 1.
    lines = test_inference_report.lines(sweep, 10, correct_b0=of_others, correct_b1=right)
    cards = _page((sweep, lines)).cards
    assert len(cards) == 5
    for card in cards:
        assert ("not told from chance" in card.text) is chance, card.text
        assert card.text.startswith(f"The adversary distinguishes {0 if chance else 1:.2f}"), card.text


def test_too_few_splits_are_said_once(tmp_path: Path) -> None:
    text = test_report._shown(_written(tmp_path, played("inference", 2)))
    assert text.count("undecided") == 2, "a finding, and the verdict on all printed figures, which is one for all rows"
    assert text.count("Fewer than 5 data splits give no interval. Nothing here is told from chance.") == 1


def test_the_cards_of_the_reveal_game_are_the_best_attacks() -> None:
    sweep = read("demo", ["scenario.trials=5"])
    lines = test_report._trials(sweep, 5)
    cells = test_report.cells_of(sweep, lines)
    page = _page((sweep, lines))
    assert len(page.cards) == len({(cell.mechanism if cell.noisy else "exact", cell.epsilon) for cell in cells})
    for card, cell in zip(page.cards, best_attacks(cells), strict=True):
        alike = [one for one in cells if one.mechanism == cell.mechanism and one.epsilon == cell.epsilon]
        assert cell.leakage.mean == max(one.leakage.mean for one in alike)
        leaked, before = f"{cell.leakage.mean:.0f}%", f"{cell.baseline.mean:.0f}%"
        right = count(cell.mean("recovered"))
        reached = f"about {right} of {cell.summary['n']:,} people; counting both groups equally, {leaked}, and {before}"
        assert reached in card.text
        title = f"{MECHANISMS[cell.mechanism].title}, ε = {cell.epsilon:,.6g}" if cell.noisy else "Exact answers"
        assert card.title == title
        bar = card.bar
        assert bar is not None
        assert bar == Bar.on((50, 100), cell.baseline.mean, cell.leakage.mean, (bar.low, bar.high), bar.alt)


def test_balanced_accuracy_is_worded_as_no_share_of_people(tmp_path: Path) -> None:
    for name, trials in (("demo", 1), ("targeted", 6), ("groups", 6)):
        sweep, lines = played(name, trials)
        shown = Console(file=io.StringIO(), width=200)
        shown.print(terminal(sweep, lines, summarise(sweep, lines)))
        for text in (test_report._shown(_written(tmp_path, (sweep, lines))), shown.file.getvalue()):
            assert not re.search(r"%( \([^)]*\))? of (all |the )?people", text)
            assert "balanced accuracy" in text.lower() or name == "targeted"


def test_a_reading_that_is_worse_than_none_is_said_to_be(tmp_path: Path) -> None:
    sweep = read("conceal-adult-100", ["developer.queries=25", "compliance.mechanism=conceal"])
    for gains, said in (([-9.0, -10.0, -11.0, -10.0, -9.5], True), ([-9.0, 1.0, 9.0, 0.0, 2.0], False)):
        lines = [
            test_report._trial(cell, i, leakage=60 + gain, baseline_leakage=60.0)
            for cell in sweep.cells
            for i, gain in enumerate(gains)
        ]
        text = test_report._shown(_written(tmp_path, (sweep, lines)))
        assert ("In 4 of 4 cells the developer ends below its guess before asking" in text) is said
        shown = Console(file=io.StringIO(), width=80)
        shown.print(terminal(sweep, lines, summarise(sweep, lines)))
        told = " ".join(shown.file.getvalue().split())
        assert ("below no query: read this way, answers were of no use" in told) is said
        for card in _page((sweep, lines)).cards:
            assert ("of no use: it knew more without them" in card.text) is said


def test_the_tradeoff_has_a_point_for_each_mechanism_and_epsilon() -> None:
    sweep = read("conceal-attacked", ["scenario.trials=2"])
    cells = test_report.cells_of(sweep, test_report._trials(sweep, 2))
    look = looks(cell.mechanism for cell in cells)
    (figure,) = tradeoff_figures(cells, look)
    assert len(re.findall(r"% at error ", figure.alt)) == len(best_attacks(cells))
    assert all(MECHANISMS[cell.mechanism].title in figure.alt for cell in cells)
    assert not list(tradeoff_figures(cells[:1], look)), "a single point is no figure"


def test_the_grid_of_people_rings_those_that_were_guessed_wrong() -> None:
    sweep = read("demo", ["scenario.trials=1", "developer.strategy=sensing"])
    lines = test_report._trials(sweep, 1)
    group = [0] * 10 + [1] * 90
    lines[0]["trace"] |= {"group": group, "guess": [1, 1, *group[2:]]}
    (figure,) = people_figures(test_report.cells_of(sweep, lines[:1]))
    assert "2 of all 100 people are guessed wrong" in figure.caption
    assert "of 2 of the 10 disadvantaged" in figure.caption
    assert "guessed wrong" in figure.alt


@pytest.mark.few(1)
@pytest.mark.parametrize("name", RUNS)
def test_tables_come_back_from_their_csv_and_lead_to_trials_that_are_there(name: str, tmp_path: Path) -> None:
    run = played(name, 2)
    text = _written(tmp_path, run)
    ids = set(re.findall(r'\bid="([^"]+)"', text))
    linked = re.findall(r'<td[^>]*><a href="#([^"]+)">', text)
    assert linked
    assert set(linked) <= ids
    assert set(linked) == {one for one in ids if one.startswith("trials-")}, "each cell has a row"
    tables = [section.table for section in _page(run).sections if section.table is not None]
    found = re.findall(r'href="data:text/csv[^,]*,([^"]+)"', text)
    files = [base64.b64decode(html.unescape(file)).decode() for file in found]
    for table in tables:
        head, *rows = csv.reader(io.StringIO(base64.b64decode(table.csv.partition(",")[2]).decode()))
        assert head == [column.name for column in table.columns]
        assert rows == [list(row) for row in zip(*(column.texts for column in table.columns), strict=True)]
        assert base64.b64decode(table.csv.partition(",")[2]).decode() in files
        assert not table.links or len(table.links) == len(table.columns[0].texts)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", RUNS)
def test_terms_are_explained_where_they_stand(name: str) -> None:
    explained = [about for one in _page(played(name, 2)).sections if one.table for about in one.table.explained]
    assert len(explained) >= (0 if name == "rates" else 4)
    assert all(text.endswith(".") for _, text in explained)


def test_columns_that_say_one_thing_are_folded_and_keys_stay() -> None:
    texts = {"a": ["x"] * 3, "b": ["1", "2", "3"], "c": ["y"] * 3, "d": ["4", "5", "6"]}
    columns = [PrintedColumn(head, own) for head, own in texts.items()]
    table = PageTable(columns, keys=2)
    assert [column.head for column in table.shown] == ["b", "d"]
    assert table.folded == [("a", "x"), ("c", "y")]
    assert PageTable(columns[2:3] + columns[:1]).shown == columns[2:3], "one column is always left"
    few = [PrintedColumn(column.head, column.texts[:2]) for column in columns]
    assert PageTable(few).shown == few
    wide = PageTable([PrintedColumn("long", ["w" * 9] * 2), PrintedColumn("b", ["1", "2"]), few[3]], keys=2)
    starts = [float(re.findall(r"--at: ([\d.]+)em", style)[0]) for style in wide.held]
    widths = [float(re.findall(r"--wide: ([\d.]+)em", style)[0]) for style in wide.held]
    assert starts == [0.0, widths[0]]
    assert not PageTable([PrintedColumn("long", ["w" * 60] * 2), *few], keys=2).held, "no room would be left"
    assert not PageTable(few).held, "the first column stays by itself"


def _colours(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Watch what colour each label is drawn with, in all figures."""
    from matplotlib.figure import Figure as Canvas

    seen: dict[str, set[str]] = {}

    def savefig(canvas: Canvas, file: Any, **_: Any) -> None:
        handles = [handle for axes in canvas.axes for handle in axes.get_legend_handles_labels()[0]]
        handles += [handle for legend in canvas.legends for handle in legend.legend_handles if handle is not None]
        for axes in canvas.axes:
            seen.setdefault("", set()).update(to_hex(line.get_color()).upper() for line in axes.lines)
        for handle in handles:
            line: Any = handle[0] if isinstance(handle, tuple) else handle
            if hasattr(line, "get_color"):
                seen.setdefault(str(handle.get_label()), set()).add(to_hex(line.get_color()).upper())
        file.write("<svg></svg>")

    monkeypatch.setattr(Canvas, "savefig", savefig)
    return seen


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["demo", "conceal-attacked", "targeted"])
@pytest.mark.usefixtures("rendered")
def test_a_mechanism_has_one_colour_in_all_figures_and_on_its_cards(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = _colours(monkeypatch)
    sweep, lines = _reveal(name, 2)
    page = _page((sweep, lines))
    assert all(figure.svg for figure in page.figures.values())
    mechanisms = {cell.mechanism for cell in test_report.cells_of(sweep, lines)}
    titles = {MECHANISMS[mechanism].title for mechanism in mechanisms}
    for title in titles:
        drawn = {colour for label, colours in seen.items() if label.startswith(title) for colour in colours}
        assert len(drawn) <= 1, (title, drawn)
        on_cards = {card.colour.upper() for card in page.cards if card.title.startswith(f"{title}, ")}
        assert len(on_cards) <= 1
        assert not drawn or not on_cards or drawn == on_cards


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["inference", "groups", "release", "training", "rates", "disclosure"])
@pytest.mark.usefixtures("rendered")
def test_what_a_card_is_about_has_its_colour_in_the_figures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = _colours(monkeypatch)
    page = _page(played(name, 6))
    assert all(figure.svg for figure in page.figures.values())
    told = {card.colour.upper() for card in page.cards}
    drawn = {colour for colours in seen.values() for colour in colours}
    assert told <= drawn
    own = {
        label: colours for label, colours in seen.items() if label[:1] not in ("", "_") and colours & (told - {BLACK})
    }
    assert all(len(colours) == 1 for colours in own.values()), own


@pytest.mark.few(3)
@pytest.mark.parametrize("name", RUNS)
def test_narrow_terminals_keep_what_tells_cells_apart_and_the_main_measure(name: str) -> None:
    main = {
        "demo": ("leakage",),
        "targeted": ("target",),
        "disclosure": ("advantage",),
        "groups": ("leakage",),
        "release": ("acc", "alone", "all"),
        "inference": ("b right, %", "advantage", "gap"),
        "training": ("accuracy", "gap"),
        "rates": ("noise",),
    }[name]
    for width, trials in ((60, 6), (80, 1)):
        sweep, lines = played(name, trials)
        summary = summarise(sweep, lines)
        file = io.StringIO()
        Console(width=width, file=file).print(terminal(sweep, lines, summary))
        text = file.getvalue()
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text, "nothing is cut off"
        above = text.partition("──")[0]
        assert all(head in text for head in main)
        assert any(head in above for head in main)
        # What is folded goes on below, so that letters are looked for one by one.
        body = re.sub(r"\s", "", text)
        for key in sweep.scenario.axes:
            for cell in summary:
                value = str(cell[key])
                if key not in ("developer.queries", "developer.decoder", "compliance.precision"):
                    assert value[:4] in body or value == "inf" or not isinstance(cell[key], str), (key, value)
