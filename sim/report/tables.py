"""Tables of the page, column by column."""

from __future__ import annotations

import csv
import io
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

_ROWS_FOLDED = 3
"""Least number of rows for which a column with one text in all rows is not worth its width."""

_HELD = 48
"""Most letters of all columns that stay fixed; more would leave no room for the scrolled ones."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a text that a spreadsheet takes for a formula."""

_LETTER = 0.6
"""Width of a letter, in em."""


def as_csv(rows: Iterable[Iterable[str]]) -> bytes:
    """Return rows as a CSV file."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def plain(text: str) -> str:
    """Return a text, which others may have chosen, as no formula to a spreadsheet: after an apostrophe if needed."""
    return f"'{text}" if text.startswith(_FORMULA) else text


@dataclass(frozen=True)
class PrintedColumn:
    """A column of a table.

    ``about`` explains the term. A column that ``wraps`` goes over several lines. One that ``stays`` is the table's
    purpose: it is shown though all rows are equal.
    """

    head: str
    texts: Sequence[str]
    numeric: bool = True
    group: str = ""
    wraps: bool = False
    about: str = ""
    stays: bool = False

    @property
    def name(self) -> str:
        """The full name of the column: its group's head and its own."""
        return f"{self.group}: {self.head}" if self.group else self.head

    @property
    def kind(self) -> str:
        """The column's CSS class."""
        if self.wraps:
            return "wraps"
        return "number" if self.numeric else "text"


@dataclass(frozen=True)
class PageTable:
    """A table of the page, column by column, and notes on it.

    ``links`` are ids that the rows' first texts link to, or none. The first ``keys`` columns distinguish rows: they
    stay fixed while the others scroll.
    """

    columns: Sequence[PrintedColumn]
    notes: Sequence[str] = ()
    links: Sequence[str] = ()
    keys: int = 1

    @cached_property
    def shown(self) -> list[PrintedColumn]:
        """The columns to show: the first, and those in which rows differ."""
        if len(self.columns[0].texts) < _ROWS_FOLDED:
            return list(self.columns)
        varying = [column for column in self.columns if column.stays or len(set(column.texts)) > 1]
        keyed = any(column in varying for column in self.columns[: self.keys])
        return varying if keyed else [self.columns[0], *(c for c in varying if c is not self.columns[0])]

    @property
    def held(self) -> list[str]:
        """The styles of the fixed columns: each begins where the previous one ends."""
        keys = [column for column in self.shown if any(column is key for key in self.columns[: self.keys])]
        widths = [2 + max(map(len, (*column.texts, *column.head.split()))) for column in keys]
        if len(keys) < 2 or sum(widths) > _HELD:
            return []
        # In em, since a bold head has wider letters.
        return [
            f"--at: {_LETTER * sum(widths[:place]):.1f}em; --wide: {_LETTER * width:.1f}em"
            for place, width in enumerate(widths)
        ]

    @property
    def folded(self) -> list[tuple[str, str]]:
        """The names of the other columns, and their text in every row."""
        return [(column.name, column.texts[0]) for column in self.columns if column not in self.shown]

    @property
    def explained(self) -> list[tuple[str, str]]:
        """The names of columns, and their meanings."""
        return [(column.name, column.about) for column in self.columns if column.about]

    @property
    def csv(self) -> str:
        """The whole table as a CSV file, in a data URL."""
        texts = (column.texts if column.numeric else map(plain, column.texts) for column in self.columns)
        rows = zip(*texts, strict=True)
        written = as_csv([[column.name for column in self.columns], *rows])
        return f"data:text/csv;charset=utf-8;base64,{b64encode(written).decode()}"

    @property
    def heads(self) -> list[tuple[PrintedColumn, bool]]:
        """The shown columns, and whether a group of columns starts or has ended there."""
        before = [self.shown[0].group, *(column.group for column in self.shown)]
        return [(column, column.group != group) for column, group in zip(self.shown, before, strict=False)]

    @property
    def rows(self) -> list[list[tuple[str, PrintedColumn, bool]]]:
        """The texts row by row, each with its column as in ``heads``."""
        return [
            [(text, *head) for text, head in zip(texts, self.heads, strict=True)]
            for texts in zip(*(column.texts for column in self.shown), strict=True)
        ]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The heads of the groups: a text and the number of columns that it spans."""
        spans: list[tuple[str, int]] = []
        for column in self.shown:
            if spans and spans[-1][0] == column.group:
                spans[-1] = (column.group, spans[-1][1] + 1)
            else:
                spans.append((column.group, 1))
        return spans
