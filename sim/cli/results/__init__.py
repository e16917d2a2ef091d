"""The commands ``fairwall results ...`` on runs that were played."""

import typer

from sim.cli.results.frontier import frontier
from sim.cli.results.merge import merge
from sim.cli.results.seal import seal

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Join, sign and sum up runs.")
app.command()(merge)
app.command()(seal)
app.command()(frontier)
