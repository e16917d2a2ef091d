"""The frame that all tables in a terminal have."""

from __future__ import annotations

from rich import box
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
