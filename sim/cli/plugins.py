"""The option ``--plugin``: files of plug-ins that a command may use besides installed ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Plugins = Annotated[
    list[Path] | None,
    typer.Option("--plugin", metavar="FILE", help="Use the plug-ins of this file, too. May be repeated."),
]
