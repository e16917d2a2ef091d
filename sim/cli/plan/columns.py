"""The options for a table and its columns, and the layout of a plan, shared by plans on a table."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.common import WIDTH

if TYPE_CHECKING:
    from sim.planning.table import GroupTable

Data = Annotated[str, typer.Option(help="A CSV or Parquet file, or a shipped table's name.")]
Protected = Annotated[str, typer.Option(help="The column that tells the groups apart.")]
Target = Annotated[str, typer.Option(help="The outcome's column.")]
Advantaged = Annotated[str | None, typer.Option(help="Its value; may be left out if there are two.")]
Positive = Annotated[str | None, typer.Option(help="The favourable outcome; of 0 and 1, or false and true, left out.")]
Disadvantaged = Annotated[list[str] | None, typer.Option(help="Its other value, if there is a third. May be repeated.")]
Negative = Annotated[list[str] | None, typer.Option(help="The other outcome, if there is a third. May be repeated.")]


def laid_out(what: str, people: str, table: GroupTable, rows: Iterable[tuple[str, str]]) -> str:
    """Return a plan in 80 columns: its subject and people, then each row's text after its name."""
    head = [f"{what} on {table.name}", f"{people}; outcome: {table.outcome}", *table.left_out, ""]
    lines = (*head, *(f"{name:17}{text}" for name, text in rows))
    wrapped = (textwrap.wrap(line, WIDTH, subsequent_indent=" " * 17) or [""] for line in lines)
    return "\n".join(part for parts in wrapped for part in parts)
