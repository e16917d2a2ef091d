"""The option ``--plugin``: files of plug-ins that a command may use besides installed ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairwall import plugins


def _offer(files: list[Path] | None) -> list[Path] | None:
    plugins.offer(files or ())
    return files


Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin", metavar="FILE", callback=_offer, help="Use the plug-ins of this file, too. May be repeated."
    ),
]
"""Offered as the command line is read: who has it as a parameter need not look at it."""
