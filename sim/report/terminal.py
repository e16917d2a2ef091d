"""A report's tables in a terminal, with fewer columns where it is narrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table as Grid
from rich.text import Text

from sim.report.columns import Measure, Sheet
from sim.report.estimates import IntervalEstimate
from sim.report.tables import PrintedColumn

_WORDS = 12
"""Least width, in letters, of a column of words that distinguishes rows: it wraps over several lines."""


@dataclass(frozen=True)
class Fitted:
    """A renderable with a layout for the terminal's width, in letters."""

    lay: Callable[[int], RenderableType]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the layout for the console's width."""
        yield self.lay(options.max_width)


def in_terminal(title: str, tables: Iterable[Sheet[Any]]) -> RenderableType:
    """Return the tables of a report that have columns for a terminal, the first under a title."""
    shown = [table for table in tables if table.rows and any(one.short for one in table.columns)]
    if not shown:
        return Text("No trial finished.", style="dim")
    first, *others = shown
    return Group(fitted(first, title), *(part for table in others for part in (Text(), fitted(table))))


def fitted(table: Sheet[Any], title: str | None = None) -> Fitted:
    """Return one table for a terminal."""
    columns = [one for one in table.columns if one.short and one.shown(table.rows)]
    return Fitted(lambda room: _laid(table.brief(), title, columns, room))


def _laid(table: Sheet[Any], title: str | None, columns: Sequence[Measure[Any]], room: int) -> Group:
    texts = {one: [one.short, *(one.text(row, brief=True) for row in table.rows)] for one in columns}
    keys, shown, gap = _fitting(table, texts, room)
    explained = "; ".join(f"{_plain(one)}: {one.about}" for one in shown if one.about)
    gone = ", ".join(_plain(one) for one in columns if one not in shown)
    told = [one.value(row) for one in shown if not one.bare for row in table.rows]
    between = any(isinstance(value, IntervalEstimate) and value.low is not None for value in told)
    brackets = "In brackets: 95% intervals." if between else ""
    said = (f"{explained}." if explained else "", brackets, table.caption, f"No room here for: {gone}." if gone else "")
    grid = Grid(
        title=None if title is None else Text(title),
        box=box.SIMPLE_HEAD,
        padding=(0, gap - 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for key in keys:
        grid.add_column(Text(key.head), justify="right" if key.numeric else "left", overflow="fold")
    for one in shown:
        grid.add_column(
            Text(one.short), justify="left" if one.words else "right", no_wrap=not one.words, overflow="fold"
        )
    for row in range(len(table.rows)):
        grid.add_row(*(Text(key.texts[row]) for key in keys), *(Text(texts[one][row + 1]) for one in shown))
    return Group(grid, Text(" ".join(filter(None, said)), style="dim"))


def _fitting(
    table: Sheet[Any], texts: Mapping[Measure[Any], Sequence[str]], room: int
) -> tuple[list[PrintedColumn], list[Measure[Any]], int]:
    """Return the key columns, the columns shown, and the gap between columns.

    Where not all fit, the last columns that are neither main nor kept go first; then the gap shrinks, several keys
    become one column of words, and all columns go but the first main one.
    """
    keys, shown = table.told_apart(), list(texts)
    # Words wrap over several lines.
    widths = {one: min(_width(own), _WORDS) if one.words else _width(own) for one, own in texts.items()}

    def free(gap: int) -> int:
        taken = [*(_width((key.head, *key.texts)) for key in keys), *(widths[one] for one in shown)]
        return room - sum(taken) - gap * (len(taken) - 1)

    def drop(some: Iterable[Measure[Any]], gap: int) -> None:
        for one in some:
            if free(gap) < 0:
                shown.remove(one)

    drop([one for one in reversed(shown) if not (one.main or one.kept)], 2)
    if free(2) >= 0:
        return keys, shown, 2
    joined = free(1) < 0 and len(keys) > 1
    words = table.words()
    if joined:
        keys = [PrintedColumn(words.head, ["x" * min(_WORDS, _width(words.texts))])]
    first = next((one for one in shown if one.main), shown[0])
    drop([one for one in reversed(shown) if one is not first and not one.main], 1)
    return [words] if joined else keys, shown, 1


def _width(texts: Iterable[str]) -> int:
    return max((len(line) for text in texts for line in text.split("\n")), default=0)


def _plain(one: Measure[Any]) -> str:
    """Return a column's head in one line."""
    return one.short.replace("-\n", "").replace("\n", " ")
