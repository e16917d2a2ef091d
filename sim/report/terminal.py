"""The frame that all tables in a terminal have, and what gives way where a terminal is narrow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

_PADDING = (0, 1)


def frame(title: str | None, caption: str | None = None, padding: tuple[int, ...] = _PADDING) -> Table:
    """Begin a table without lines but one below its head, so that 80 columns hold as much as they can.

    Parameters
    ----------
    title, caption : str, optional
    padding : tuple of int
        Of a cell, as `rich.table.Table` has it.
    """
    return Table(
        title=None if title is None else Text(title),
        caption=None if caption is None else Text(caption, style="dim"),
        box=box.SIMPLE_HEAD,
        padding=padding,  # type: ignore[arg-type]  # one to four numbers
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
        caption_justify="left",
    )


@dataclass(frozen=True)
class Fitted:
    """Something that is laid out for as many columns as the terminal has that it is printed in."""

    lay: Callable[[int], RenderableType]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lay it out."""
        yield self.lay(options.max_width)


def width_of(texts: Iterable[str]) -> int:
    """Measure a column."""
    return max((len(line) for text in texts for line in text.split("\n")), default=0)


def kept(
    keys: Iterable[Iterable[str]], columns: Mapping[str, Sequence[str]], main: Collection[str], room: int, gap: int = 2
) -> dict[str, Sequence[str]]:
    """Leave out columns until the others fit: the last first, and never what tells rows apart, nor a main one.

    Parameters
    ----------
    keys : iterable of iterable of str
        Heads and texts of the columns that tell rows apart.
    columns : mapping of str to sequence of str
        The others, by their heads.
    main : collection of str
        The heads of those that stay.
    room : int
        How many columns of letters there are.
    gap : int
        How many of them stand between two columns.
    """
    taken = sum(width_of(texts) + gap for texts in keys) - gap
    widths = {head: width_of((head, *texts)) + gap for head, texts in columns.items()}
    for head in [head for head in reversed(list(columns)) if head not in main]:
        if taken + sum(widths.values()) <= room:
            break
        del widths[head]
    return {head: columns[head] for head in widths}


def left_out(columns: Iterable[str], shown: Collection[str]) -> str:
    """Say which columns there was no room for."""
    without = [head.replace("-\n", "").replace("\n", " ") for head in columns if head not in shown]
    return f" No room here for: {', '.join(without)}." if without else ""
