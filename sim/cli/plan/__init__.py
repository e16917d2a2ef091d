"""The commands ``fairwall plan ...``: plans made before anything is spent."""

import typer

from sim.cli.plan.advise import advise
from sim.cli.plan.audit import audit
from sim.cli.plan.mechanism import mechanism
from sim.cli.plan.sensitivity import sensitivity
from sim.cli.plan.training import training

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Tell what a budget buys, before anything is spent."
)
app.command()(audit)
app.command()(training)
app.command()(mechanism)
app.command()(sensitivity)
app.command()(advise)
