"""Exit statuses, the folder of a named run, the console, the browser and the option ``--plugin``, for all commands."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairwall.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130

WIDTH = 80
"""Most columns of output that does not depend on the terminal."""


class Interrupted(BaseException):
    """Ctrl-C, or a request to terminate; the text says what is left of what was done.

    Not a KeyboardInterrupt, which the command-line library would swallow.
    """


LATEST = "latest"


def run_folder(name: str) -> Path:
    """Return a run's folder by its path, or for ``latest`` the run begun last in the folder runs."""
    if name != LATEST or Path(name).is_dir():
        return Path(name)
    begun = list(Path("runs").glob("*/scenario.toml"))
    if not begun:
        raise UserError(f"{LATEST}: there is no run in {Path('runs').absolute()}: name the folder of one")
    return max(begun, key=lambda path: path.stat().st_mtime_ns).parent


def console(width: int | None = None, *, stderr: bool = False) -> Console:
    """Return a console that prints names literally: rich interprets neither brackets nor colons."""
    from rich.console import Console

    return Console(width=width, stderr=stderr, highlight=False, markup=False, emoji=False)


def open_page(page: Path) -> None:
    """Open a page in a browser; where there is none, print a line on stderr."""
    try:
        browser = webbrowser.get()
        # A browser in the terminal would take the terminal over, unless the user chose it with BROWSER.
        seen = type(browser) is not webbrowser.GenericBrowser or "BROWSER" in os.environ
        opened = seen and browser.open(page.absolute().as_uri())
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        typer.echo("no browser opened here: open the page yourself", err=True)


Plugins = Annotated[
    list[Path] | None,
    typer.Option("--plugin", metavar="FILE", help="Use the plug-ins of this file, too. May be repeated."),
]
