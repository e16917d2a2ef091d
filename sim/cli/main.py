"""The command ``fairwall``."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import fairwall
from sim.cli import conformance as conformance
from sim.cli import ledger
from sim.cli.privacy_audit import privacy_audit
from sim.cli.sensitivity import sensitivity

if TYPE_CHECKING:
    from sim.play.runner import Run
    from sim.runs.folder import RunFolder
    from sim.scenarios.sweep import Sweep

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Security games about fairness audits, played between separate processes.",
)

# Typer names only the most special of its usage errors, and has brought its own copy of click since 0.16.
_USAGE_ERROR: type[Any] = typer.BadParameter.__bases__[0]

BAD_INPUT = 2
FAILED = 1
INTERRUPTED = 130


class Interrupted(BaseException):
    """Ctrl-C, or a request to terminate; the text says what is left of what was done.

    Not a KeyboardInterrupt, which the command-line library would swallow.
    """


def main() -> NoReturn:
    """Run the command line: for what a user can mend, one clear line and a meaningful exit status."""
    for signum in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a shell's background job inherits it ignored
        signal.signal(signum, _interrupt)
    try:
        status = app(prog_name="fairwall", standalone_mode=False)
    except Interrupted as interrupted:
        status = _say("; ".join(["interrupted", *interrupted.args]), INTERRUPTED)
    except Exception as error:
        status = _explain(error)
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


@app.command("list")
def list_scenarios() -> None:
    """List the shipped scenarios."""
    from rich.console import Console
    from rich.table import Table

    from sim.games import read
    from sim.scenarios.sweep import shipped

    table = Table.grid("name", "about", padding=(0, 2))
    for name, path in shipped().items():
        table.add_row(name, read(str(path)).scenario.scenario.about)
    Console(highlight=False).print(table)


@app.command()
def run(
    scenario: Annotated[str, typer.Argument(help="A shipped scenario's name, or a TOML file.", metavar="SCENARIO")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a dotted key; a list sweeps it. May be repeated."),
    ] = None,
    trials: Annotated[int | None, typer.Option(help="How many trials a cell, in place of the scenario's.")] = None,
    seed: Annotated[int | None, typer.Option(help="The first trial's seed, in place of the scenario's.")] = None,
    out: Annotated[Path | None, typer.Option(help="The folder that gets the run's own folder, or else runs.")] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Go on in this folder of a run with the same options.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Play a scenario: three processes, a referee, a report."""
    from sim.games import read

    if out is not None and resume is not None:
        raise typer.BadParameter("--out is for a new folder, and --resume goes on in an old one: give one of them")
    overrides = list(settings or ())
    overrides += [f"scenario.{key}={value}" for key, value in (("trials", trials), ("seed", seed)) if value is not None]
    sweep = read(scenario, overrides)
    from sim.play import runner
    from sim.runs.folder import RunFolder

    runner.check(sweep)
    if resume is None:
        folder = RunFolder.create((out or Path("runs")).resolve(), sweep.scenario.scenario.name)
    else:
        folder = RunFolder.resume(resume.resolve(), sweep)
    try:
        played = _play(sweep, folder, as_json=as_json)
        from sim.runs.page import write_report

        page = write_report(played.folder)
    except Interrupted:
        again = ["fairwall", "run", scenario, *(f"--set={setting}" for setting in settings or ())]
        again += [f"--{key}={value}" for key, value in (("trials", trials), ("seed", seed)) if value is not None]
        again += [*(["--json"] if as_json else []), "--resume", str(folder.path)]
        raise Interrupted(f"finished trials are kept: {shlex.join(again)}") from None
    if as_json:
        result = {
            "run_dir": str(played.folder),
            "scenario": sweep.scenario.scenario.name,
            "trials": played.trials,
            "summary": played.summary,
        }
        typer.echo(json.dumps(result, allow_nan=False))
        return
    from rich.console import Console

    from sim.games import GAMES

    Console().print(GAMES[sweep.game].terminal(sweep, played.summary))
    typer.echo(f"report: {page}")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A run's folder.", metavar="FOLDER")],
) -> None:
    """Write a run's report again, also of a run that was interrupted."""
    from sim.scenarios.sweep import ScenarioError

    if not (folder / "scenario.toml").is_file():
        raise ScenarioError(f"{folder}: not a run's folder: it has no scenario.toml")
    from sim.report.errors import ReportError
    from sim.runs.page import write_report

    try:
        page = write_report(folder)
    except ScenarioError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        # Files that were played just now are as they should be; these may be anything.
        raise ReportError(f"{folder}: trials.jsonl or result.json is not as a run of its scenario writes it") from error
    typer.echo(f"report: {page}")


@app.command("verify")
def verify_run(
    folder: Annotated[Path, typer.Argument(help="A run's folder.", metavar="RUN")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines.")] = False,
) -> None:
    """Check a run's transcripts: whole, agreeing, within the boundary, and without a protected attribute."""
    from sim.verify import check

    check.show(folder, as_json=as_json)


@app.command("replay")
def replay_run(
    run: Annotated[
        str,
        typer.Argument(help="A run's folder; or a shipped scenario, to be played small and replayed.", metavar="RUN"),
    ],
    party: Annotated[
        str | None,
        typer.Option(help="Run compliance, developer or adversary alone; the others answer from its transcript."),
    ] = None,
    decoder: Annotated[
        str | None, typer.Option(metavar="NAME", help="Try another decoder on the answers already given.")
    ] = None,
    speed: Annotated[
        float | None, typer.Option(min=0.001, help="Show the game, so many messages a second; play nothing.")
    ] = None,
    step: Annotated[bool, typer.Option("--step", help="Show the game, a message with each Enter.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines.")] = False,
) -> None:
    """Play a run again, and name the first message that differs."""
    asked = [party is not None, decoder is not None, speed is not None or step]
    if sum(asked) > 1:
        raise typer.BadParameter("--party, --decoder and --speed or --step are different things: give one of them")
    if party not in (None, "compliance", "developer", "adversary"):
        raise typer.BadParameter(f"--party must be compliance, developer or adversary, not {party!r}")
    from sim.cli import replay

    replay.show(run, party=party, decoder=decoder, speed=speed, step=step, as_json=as_json)


app.command()(sensitivity)


@app.command()
def recommend(
    metric: Annotated[str, typer.Option(help="The metric's key.")],
    n: Annotated[int, typer.Option("--n", help="People whom the metric looks at.")],
    queries: Annotated[int, typer.Option(help="Models in the batch.")],
    epsilon: Annotated[float, typer.Option(help="The batch's whole budget.")],
    delta: Annotated[float, typer.Option(help="0 for pure mechanisms only.")] = 0.0,
    share_min: Annotated[float, typer.Option(help="Least share of the disadvantaged group.")] = 0.05,
    share_max: Annotated[float, typer.Option(help="Largest share of it.")] = 0.5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Tell which mechanism answers a batch best, without a look at protected attributes."""
    from sim.cli import recommend as advice

    found = advice.recommend(metric, n, queries, epsilon, delta, share_min, share_max)
    if as_json:
        typer.echo(json.dumps(advice.as_json(found), allow_nan=False))
        return
    from rich.console import Console

    Console(highlight=False).print(advice.as_text(found))


app.add_typer(ledger.app, name="ledger")
app.command("privacy-audit")(privacy_audit)
app.add_typer(conformance.app, name="conformance")


@app.command()
def boundary(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the diagram and the table of docs/protocol.md.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Print who may learn what: every field of the protocol, by party and label."""
    # Imported here: no other command waits for every service's descriptors.
    from sim.transcripts import boundary as walls

    walls.show(markdown=markdown, as_json=as_json)


@app.command()
def certificates(
    folder: Annotated[Path, typer.Argument(help="The folder that gets a folder for each.", metavar="DIR")],
    deployment: Annotated[str, typer.Option(help="The deployment's name, as in its policy.")],
    developer: Annotated[list[str], typer.Option(help="A developer's name. May be repeated.")],
    days: Annotated[int, typer.Option(min=1, max=3650, help="How long the certificates hold.")] = 365,
) -> None:
    """Mint the certificates of a deployment: compliance's and each developer's."""
    from sim.cli.certificates import write

    for path in write(folder, deployment, developer, days):
        typer.echo(path)


serve = typer.Typer(help="Serve a deployment.", rich_markup_mode=None)
app.add_typer(serve, name="serve")


@serve.command("compliance")
def serve_compliance(
    policy: Annotated[Path, typer.Option(help="The policy, a TOML file.", metavar="FILE")],
) -> None:
    """Answer audits by a policy until Ctrl-C, with noise from the operating system."""
    from sim.cli.serve import compliance

    compliance(policy)


def _play(sweep: Sweep, folder: RunFolder, *, as_json: bool) -> Run:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from sim.play import runner

    total = sum(cell.scenario.scenario.trials for cell in sweep.cells)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=as_json) as progress:
        task = progress.add_task(f"{sweep.scenario.scenario.name}: trials", total=total)
        return runner.play(sweep, folder, lambda finished: progress.update(task, completed=finished))


def _explain(error: Exception) -> int:
    """Turn what went wrong into one line and an exit status; what only we can mend is raised again."""
    if isinstance(error, _USAGE_ERROR):
        return _say(error.format_message(), BAD_INPUT)
    # Imported here: an error in the arguments must not wait for the simulator to load.
    from fairwall.learning import TrainingUnavailable
    from sim.cli.certificates import CertificatesError
    from sim.cli.recommend import RecommendError
    from sim.conformance.errors import ConformanceError
    from sim.datasets import DataError
    from sim.games.cards import DealError
    from sim.games.table import TrialFailed
    from sim.play.launch import ConfinementMissing, PartyDied
    from sim.privacy_audit.catalogue import PrivacyAuditError
    from sim.replay.recorded import ReplayError
    from sim.report.errors import ReportError
    from sim.runs.folder import ResumeError
    from sim.scenarios.sweep import ScenarioError
    from sim.verify.check import NoRun

    user_can_mend = (
        *(ScenarioError, DealError, DataError, ResumeError, ReplayError, ReportError, TrainingUnavailable),
        *(CertificatesError, PrivacyAuditError, RecommendError, ConfinementMissing, NoRun, ConformanceError),
    )
    if isinstance(error, user_can_mend):
        return _say(str(error), BAD_INPUT)
    if isinstance(error, TrialFailed | PartyDied):
        return _say(str(error), FAILED)
    if isinstance(error, OSError):
        return _say(str(error), FAILED)
    raise error


def _say(text: str, status: int) -> int:
    print(f"fairwall: {text}", file=sys.stderr)  # noqa: T201
    return status


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise Interrupted
