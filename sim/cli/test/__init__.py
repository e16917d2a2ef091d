"""The commands ``fairwall test ...``: tests of mechanisms, of programs and of the protocol."""

import typer

from sim.cli.test import conformance
from sim.cli.test.privacy import privacy
from sim.cli.test.protocol import boundary, protocol

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Test mechanisms, programs and the protocol's boundary."
)
app.add_typer(conformance.app, name="conformance")
app.command()(privacy)
app.command()(boundary)
app.command()(protocol)
