"""The commands ``fairwall deploy serve``, ``check`` and ``health``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer


def serve(
    policy: Annotated[Path, typer.Option(help="The policy, a TOML file.", metavar="FILE")],
    listen: Annotated[
        str | None,
        typer.Option(help="Listen here, and not where the policy says: for several on one host.", metavar="HOST:PORT"),
    ] = None,
    new_ledger: Annotated[
        bool, typer.Option("--new-ledger", help="Begin a ledger where one was lost; forgets what was spent.")
    ] = False,
    even_if_worthless: Annotated[
        bool, typer.Option("--even-if-worthless", help="Serve answers that err by more than a guess for nothing.")
    ] = False,
    even_if_revealing: Annotated[
        bool, typer.Option("--even-if-revealing", help="Serve what gives away more than the policy says.")
    ] = False,
) -> NoReturn:
    """Answer audits by a policy until Ctrl-C. The noise is the operating system's."""
    # Ctrl-C and the exit status are the service's own, and it prints its address as a party of a game does. With -I no
    # folder of the caller's that is called as one of ours is served in its place.
    command = [sys.executable, "-I", "-m", "compliance", "--policy", str(policy.resolve())]
    command += ["--listen", listen] if listen is not None else []
    command += ["--new-ledger"] if new_ledger else []
    command += ["--even-if-worthless"] if even_if_worthless else []
    command += ["--even-if-revealing"] if even_if_revealing else []
    os.execv(sys.executable, command)  # noqa: S606 - our own interpreter and packages


def check(
    policy: Annotated[Path, typer.Option(help="The policy, a TOML file.", metavar="FILE")],
) -> None:
    """Tell what answers by a policy will be worth. Its data are read as at a start; nothing is served or written."""
    from sim.deployment.check import check

    for line in check(policy):
        typer.echo(line)


def health(
    policy: Annotated[Path, typer.Option(help="The policy of the service, a TOML file.", metavar="FILE")],
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to wait for an answer.")] = 5.0,
    listen: Annotated[
        str | None, typer.Option(help="Where it listens, if not where the policy says.", metavar="HOST:PORT")
    ] = None,
) -> None:
    """Ask whether a policy's service can work. Status 0 if so, else 1."""
    from sim.deployment.health import is_serving

    serving = is_serving(policy, seconds, listen)
    typer.echo("serving" if serving else "not serving")
    raise typer.Exit(0 if serving else 1)
