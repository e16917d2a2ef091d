"""The commands ``fairwall deploy serve``, ``check``, ``health``, ``console`` and ``open``."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from sim.cli.common import Interrupted
from sim.cli.deploy.ledger import Policy, place_of

_Policy = Annotated[Path, typer.Option(help="The policy, a TOML file.", metavar="FILE")]
_Listen = Annotated[
    str | None,
    typer.Option(help="Listen here, and not where the policy says: for several on one host.", metavar="HOST:PORT"),
]
_NewLedger = Annotated[
    bool, typer.Option("--new-ledger", help="Begin a ledger where one was lost; forgets what was spent.")
]
_EvenIfWorthless = Annotated[
    bool, typer.Option("--even-if-worthless", help="Serve answers that err by more than a guess for nothing.")
]
_EvenIfRevealing = Annotated[
    bool, typer.Option("--even-if-revealing", help="Serve what gives away more than the policy says.")
]


def serve(
    policy: _Policy,
    listen: _Listen = None,
    new_ledger: _NewLedger = False,
    even_if_worthless: _EvenIfWorthless = False,
    even_if_revealing: _EvenIfRevealing = False,
) -> NoReturn:
    """Answer audits by a policy until Ctrl-C. The noise is the operating system's."""
    # The service handles Ctrl-C and the exit status, and prints its address as a party of a game does. With -I, a
    # package of the same name in the caller's folder is not imported instead.
    command = [sys.executable, "-I", "-m", "compliance", "--policy", str(policy.resolve())]
    command += ["--listen", listen] if listen is not None else []
    command += ["--new-ledger"] if new_ledger else []
    command += ["--even-if-worthless"] if even_if_worthless else []
    command += ["--even-if-revealing"] if even_if_revealing else []
    os.execv(sys.executable, command)  # noqa: S606 - our own interpreter and packages


def check(
    policy: _Policy,
    listen: _Listen = None,
    new_ledger: _NewLedger = False,
    even_if_worthless: _EvenIfWorthless = False,
    even_if_revealing: _EvenIfRevealing = False,
) -> None:
    """Tell what answers are worth, or why a start is refused.

    What a start with these options refuses is one line and status 2. Nothing is served or written, and the policy's
    own service may be running. Run it as the service's user. It refuses a full disk too, on which a ledger that is
    begun is still read; and a ledger of an older format, which a start brings up to date, it cannot read.
    """
    from sim.deployment.service import check

    for line in check(
        policy,
        listen=listen,
        new_ledger=new_ledger,
        even_if_worthless=even_if_worthless,
        even_if_revealing=even_if_revealing,
    ):
        typer.echo(line)


def health(
    policy: Annotated[Path, typer.Option(help="The policy of the service, a TOML file.", metavar="FILE")],
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to wait for an answer.")] = 5.0,
    listen: Annotated[
        str | None, typer.Option(help="Where it listens, if not where the policy says.", metavar="HOST:PORT")
    ] = None,
) -> None:
    """Ask whether a policy's service can work. Status 0 if so, else 1."""
    from sim.deployment.service import is_serving

    serving = is_serving(policy, seconds, listen)
    typer.echo("serving" if serving else "not serving")
    raise typer.Exit(0 if serving else 1)


def console(
    policy: Policy,
    log: Annotated[
        list[Path] | None, typer.Option(help="Count refused calls in this log of the service.", metavar="FILE")
    ] = None,
    pages: Annotated[
        Path | None, typer.Option(help="Where signed pages are kept; by default beside the policy.", metavar="FOLDER")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="On 127.0.0.1; 0 for any.")] = 8443,
    user: Annotated[
        list[str] | None,
        typer.Option(help="Answer this user's browser, too; by default your own alone.", metavar="NAME"),
    ] = None,
) -> None:
    """Show budgets, questions and certificates in a browser. It changes nothing."""
    from sim.deployment.console import SECONDS, Sources, page, styles
    from sim.deployment.local_page import HOST, LocalPage, users_of

    place_of(policy)  # one that cannot be read ends the command; later the page says so
    sources = Sources(policy, log or (), pages or policy.parent)
    with LocalPage(port, lambda: page(sources), users_of(user or ()), styles(), SECONDS) as served:
        typer.echo(f"console: http://{HOST}:{served.port}/")
        with suppress(Interrupted):
            served.serve_forever()


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
