"""A command's run, the opening of its page in a browser, and the console for tables."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fairwall.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

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
