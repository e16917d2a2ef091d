"""Tables of the page, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A column of a table: its head, its texts, whether they are numbers, and whether they go over several lines."""

    head: str
    texts: Sequence[str]
    numeric: bool = True
    group: str = ""
    wraps: bool = False

    @property
    def kind(self) -> str:
        """How it is set."""
        if self.wraps:
            return "wraps"
        return "number" if self.numeric else "text"


@dataclass(frozen=True)
class PageTable:
    """A table of the page, column by column, and what to know about it."""

    columns: Sequence[Column]
    notes: Sequence[str] = ()

    @property
    def heads(self) -> list[tuple[Column, bool]]:
        """The columns, and whether a group of columns starts or has ended there."""
        before = [self.columns[0].group, *(column.group for column in self.columns)]
        return [(column, column.group != group) for column, group in zip(self.columns, before, strict=False)]

    @property
    def rows(self) -> list[list[tuple[str, Column, bool]]]:
        """The texts row by row, each with its column as in ``heads``."""
        return [
            [(text, *head) for text, head in zip(texts, self.heads, strict=True)]
            for texts in zip(*(column.texts for column in self.columns), strict=True)
        ]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The heads above the heads: a text and how many columns it spans."""
        spans: list[tuple[str, int]] = []
        for column in self.columns:
            if spans and spans[-1][0] == column.group:
                spans[-1] = (column.group, spans[-1][1] + 1)
            else:
                spans.append((column.group, 1))
        return spans
