"""The command ``fairwall certificates``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def certificates(
    folder: Annotated[Path, typer.Argument(help="The folder that gets a folder for each.", metavar="DIR")],
    deployment: Annotated[str, typer.Option(help="The deployment's name, as in its policy.")],
    developer: Annotated[list[str], typer.Option(help="A developer's name. May be repeated.")],
    days: Annotated[int, typer.Option(min=1, max=3650, help="How long the certificates hold.")] = 365,
) -> None:
    """Mint a deployment's certificates. Compliance gets one, and each developer."""
    from sim.deployment.certificates import write

    for path in write(folder, deployment, developer, days):
        typer.echo(path)
