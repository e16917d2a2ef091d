"""``fairwall deploy open``: a regulator checks that requests were answered as committed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def open_requests(
    folder: Annotated[Path, typer.Argument(help="What the developer kept with AuditClient.commit.", metavar="FOLDER")],
    policy: Annotated[Path, typer.Option(help="The policy of the service, a TOML file.", metavar="FILE")],
    openings: Annotated[
        int | None, typer.Option(min=1, help="How many requests to open, drawn at random; left out: all.")
    ] = None,
) -> None:
    """Work requests out again from what compliance committed to. Status 0 if all were answered so, else 1."""
    from sim.deployment.opening import open_requests as opened

    found = opened(policy, folder, openings)
    for name, wrong in found.wrong.items():
        typer.echo(f"request {name}: {wrong}" if name else f"the commitment is not kept: {wrong}")
    if not found.wrong:
        typer.echo(f"opened {len(found.opened):,} of {found.of:,} requests: all were answered as was committed to")
    raise typer.Exit(1 if found.wrong else 0)
