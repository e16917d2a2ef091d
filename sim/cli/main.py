"""The command ``fairwall``: its commands, and how they end.

A command's module imports what it needs where it runs, so that help and usage errors wait for nothing.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

import fairwall
from fairwall.errors import RunFailed, UserError
from sim.cli import certificates, claims, conformance, ledger, serve
from sim.cli.advise import advise
from sim.cli.boundary import boundary
from sim.cli.compare import compare
from sim.cli.frontier import frontier
from sim.cli.limits import limits
from sim.cli.list import list_scenarios
from sim.cli.merge import merge
from sim.cli.plan import plan
from sim.cli.privacy_audit import privacy_audit
from sim.cli.protocol import protocol
from sim.cli.recommend import recommend
from sim.cli.replay import replay
from sim.cli.report import report
from sim.cli.run import run
from sim.cli.seal import seal
from sim.cli.sensitivity import sensitivity
from sim.cli.status import BAD_INPUT, FAILED, INTERRUPTED, Interrupted
from sim.cli.verify import verify
from sim.cli.view import view

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Security games about fairness audits, played between separate processes.",
)

# In the order in which `fairwall --help` lists them: a run and what is done with it, mechanisms, a deployment.
app.command("list")(list_scenarios)
app.command()(run)
app.command()(merge)
app.command()(report)
app.command()(view)
app.command()(verify)
app.command()(seal)
app.command()(replay)
app.command()(compare)
app.command()(frontier)
app.command()(boundary)
app.command()(protocol)
app.command()(sensitivity)
app.command()(recommend)
app.command()(plan)
app.command()(advise)
app.command()(limits)
app.command()(privacy_audit)
app.add_typer(claims.app, name="claims")
app.add_typer(certificates.app, name="certificates")
app.add_typer(serve.app, name="serve")
app.add_typer(ledger.app, name="ledger")
app.add_typer(conformance.app, name="conformance")

# Typer names only the most special of its usage errors, and has brought its own copy of click since 0.16.
_USAGE_ERROR: type[Any] = typer.BadParameter.__bases__[0]


def main() -> NoReturn:
    """Run the command line: for what a user can mend, one clear line and a meaningful exit status."""
    for signum in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a shell's background job inherits it ignored
        signal.signal(signum, _interrupt)
    try:
        status = app(prog_name="fairwall", standalone_mode=False)
    except Interrupted as interrupted:
        status = _say("; ".join(["interrupted", *interrupted.args]), INTERRUPTED)
    except _USAGE_ERROR as error:
        status = _say(error.format_message(), BAD_INPUT)
    except UserError as error:
        status = _say(str(error), BAD_INPUT)
    except (RunFailed, OSError) as error:
        status = _say(str(error), FAILED)
    sys.exit(status or 0)


@app.callback(invoke_without_command=True)
def top(
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)
    ] = False,
) -> None:
    """Security games about fairness audits, played between separate processes."""
    if show_version:
        typer.echo(f"fairwall {fairwall.__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(BAD_INPUT)


def _say(text: str, status: int) -> int:
    print(f"fairwall: {text}", file=sys.stderr)  # noqa: T201
    return status


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise Interrupted
