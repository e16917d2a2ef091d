"""The options by which plans name a table and its columns."""

from typing import Annotated

import typer

Data = Annotated[str, typer.Option(help="A CSV or Parquet file, or a shipped table's name.")]
Protected = Annotated[str, typer.Option(help="The column that tells the groups apart.")]
Target = Annotated[str, typer.Option(help="The outcome's column.")]
Advantaged = Annotated[str | None, typer.Option(help="Its value; may be left out if there are two.")]
Positive = Annotated[str | None, typer.Option(help="The favourable outcome; the later one of two.")]
