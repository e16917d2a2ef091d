"""The commands ``fairwall deploy ...``: a compliance service between real teams."""

import typer

from sim.cli.deploy import certificates, ledger
from sim.cli.deploy.serve import check, console, health, open_requests, serve

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Serve audits between real teams, with keys and a ledger."
)
app.command()(serve)
app.command()(check)
app.command()(health)
app.command()(console)
app.command("open")(open_requests)
app.add_typer(certificates.app, name="certificates")
app.add_typer(ledger.app, name="ledger")
