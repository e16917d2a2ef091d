"""Which run a command is about, its page in a browser, and where tables are printed."""

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
    """Find a run by its folder, or as ``latest`` the one begun last in the folder runs."""
    if name != LATEST or Path(name).is_dir():
        return Path(name)
    begun = list(Path("runs").glob("*/scenario.toml"))
    if not begun:
        raise UserError(f"{LATEST}: there is no run in {Path('runs').absolute()}: name the folder of one")
    return max(begun, key=lambda path: path.stat().st_mtime_ns).parent


def console(width: int | None = None, *, stderr: bool = False) -> Console:
    """Make a console that prints names as they are: nothing in brackets or colons is for rich."""
    from rich.console import Console

    return Console(width=width, stderr=stderr, highlight=False, markup=False, emoji=False)


def open_page(page: Path) -> None:
    """Open a page in a browser. Where there is none, its path has to do: a line on stderr says so."""
    try:
        browser = webbrowser.get()
        # One that shows pages in the terminal would take it over; BROWSER is somebody's choice.
        seen = type(browser) is not webbrowser.GenericBrowser or "BROWSER" in os.environ
        opened = seen and browser.open(page.absolute().as_uri())
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        typer.echo("no browser opened here: open the page yourself", err=True)
