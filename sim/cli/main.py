"""The command ``fairwall``: its commands, and their exit statuses.

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
from sim.cli import deploy, papers, plan, results, test
from sim.cli.common import BAD_INPUT, FAILED, INTERRUPTED, Interrupted
from sim.cli.lesson import lesson
from sim.cli.list import list_scenarios
from sim.cli.replay import replay
from sim.cli.report import report
from sim.cli.run import run
from sim.cli.verify import verify
from sim.cli.view import view

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Security games about fairness audits, played between separate processes.",
)

# In the order in which `fairwall --help` lists them: a run and what is done with it, then groups.
app.command("list")(list_scenarios)
app.command()(run)
app.command()(report)
app.command()(view)
app.command()(verify)
app.command()(replay)
app.command()(lesson)
app.add_typer(papers.app, name="papers")
app.add_typer(results.app, name="results")
app.add_typer(plan.app, name="plan")
app.add_typer(test.app, name="test")
app.add_typer(deploy.app, name="deploy")

# Typer exports only the most specific of its usage errors, and has had its own copy of click since 0.16.
_USAGE_ERROR: type[Any] = typer.BadParameter.__bases__[0]


def main() -> NoReturn:
    """Run the command line; errors that a user can correct are one line, with an exit status."""
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
