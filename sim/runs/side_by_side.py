"""Several runs of a game on one page: different settings, each run's measurements, and figures beside their like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING

from fairwall.errors import UserError
from sim.games import GAMES, read
from sim.report.notation import MISSING
from sim.report.page import Page, PageSection, render
from sim.report.tables import PageTable, PrintedColumn
from sim.runs.page import Played, together
from sim.runs.trials import read_trials, summarise

if TYPE_CHECKING:
    from sim.report.drawing import Figure

MOST = len(ascii_uppercase)
"""Most runs on a page: each has a letter."""


def side_by_side(folders: Sequence[Path]) -> str:
    """Return the page of up to `MOST` runs, each named by a letter."""
    runs = [(folder, played_in(folder)) for folder in folders]
    games = list(dict.fromkeys(sweep.game for _, (sweep, _) in runs))
    if len(games) > 1:
        raise UserError(f"runs of {' and '.join(games)}: only runs of one game stand side by side")
    if len(runs) > MOST:
        raise UserError(f"{len(runs)} runs: at most {MOST} stand side by side; leave some out")
    game, letters = GAMES[games[0]], ascii_uppercase[: len(runs)]
    told = [(*run, summarise(*run)) for _, run in runs]
    pages = dict(zip(letters, (game.page(*one) for one in told), strict=True))
    tables = dict(zip(letters, (next((t.on_page() for t in game.tables(*one)), None) for one in told), strict=True))
    named = "; ".join(f"{letter}: {folder.name}" for letter, (folder, _) in zip(letters, runs, strict=True))
    page = Page(
        played=f"Side by side: {named}.",
        findings=(),
        settings=(),
        sections=(*_settings(pages), *_measured(tables), *_figures(pages)),
        assumptions=tuple(dict.fromkeys(term for one in pages.values() for term in one.assumptions)),
    )
    return render(page, together(runs))


def played_in(folder: Path) -> Played:
    """Return the sweep of a run, and the lines of its trials; raise `UserError` if the folder holds no run."""
    if not (folder / "scenario.toml").is_file():
        raise UserError(f"{folder}: not a run's folder: it has no scenario.toml")
    return read(str(folder / "scenario.toml")), read_trials(folder / "trials.jsonl")


def _settings(pages: dict[str, Page]) -> Iterator[PageSection]:
    told = [dict(page.settings) for page in pages.values()]
    terms = list(dict.fromkeys(term for one in told for term in one))
    unlike = [term for term in terms if len({one.get(term) for one in told}) > 1]
    alike = "; ".join(f"{term}: {told[0][term]}" for term in terms if term not in unlike)
    columns = [PrintedColumn("setting", unlike, numeric=False)] + [
        PrintedColumn(letter, [one.get(term, MISSING) for term in unlike], numeric=False, stays=True)
        for letter, one in zip(pages, told, strict=True)
    ]
    yield PageSection(
        "settings",
        "What was set otherwise" if unlike else "All was set alike",
        table=PageTable(columns) if unlike else None,
        after=(f"In all of them: {alike}.",) if alike else (),
    )


def _measured(tables: dict[str, PageTable | None]) -> Iterator[PageSection]:
    """Stack the rows of each run's first table; a missing value is a dash."""
    shown = {letter: table for letter, table in tables.items() if table is not None}
    columns = {column.name: column for table in shown.values() for column in table.columns}
    if not columns:
        return
    texts: dict[str, list[str]] = {name: [] for name in columns}
    letters: list[str] = []
    for letter, table in shown.items():
        own = {column.name: column.texts for column in table.columns}
        rows = len(table.columns[0].texts)
        letters += [letter] * rows
        for name, of in texts.items():
            of += own.get(name, [MISSING] * rows)
    joined = [replace(column, texts=texts[name]) for name, column in columns.items()]
    first = PrintedColumn("run", letters, numeric=False, stays=True)
    yield PageSection("measured", "What was measured", table=PageTable([first, *joined]))


def _figures(pages: dict[str, Page]) -> Iterator[PageSection]:
    """Yield the figures of one name side by side, under their name in each run's report."""
    alike: dict[str, list[Figure]] = {}
    for letter, page in pages.items():
        for name, figure in page.figures.items():
            own = replace(figure, name=f"{letter}-{name}", title=f"{letter}: {figure.title}", wide=False)
            alike.setdefault(name, []).append(own)
    for name, figures in alike.items():
        yield PageSection(f"figure-{name}", f"Figure {name}", figures=figures)
