"""The command ``fairwall deploy console``."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from sim.cli.deploy.ledger_copies import Policy, place_of
from sim.cli.status import Interrupted


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
