"""The command ``fairwall results seal``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def seal(
    folder: Annotated[Path, typer.Argument(help="A run's folder.", metavar="RUN")],
    key: Annotated[Path, typer.Option(metavar="FILE", help="An Ed25519 private key in PEM, kept outside the run.")],
    new_key: Annotated[
        bool, typer.Option("--new-key", help="Make the key first, and its public key in FILE.pub.")
    ] = False,
) -> None:
    """Sign a run's result. Nobody without the key can change a file of the run unseen."""
    from sim.verify import signature

    signature.require_sealable(folder, key)
    if new_key:
        typer.echo(f"public key: {signature.new_key(key)}")
    typer.echo(f"signature: {signature.sign(folder, key)}")
