"""The commands ``fairwall results ...`` on runs that were played."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairwall.errors import UserError
from sim.cli import run
from sim.cli.common import WIDTH, Interrupted, console

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import RenderableType

    from sim.games.game import Line, ParetoCells
    from sim.scenarios.sweep import Sweep


def frontier(
    source: Annotated[
        str,
        typer.Argument(help="A shipped scenario's name, a TOML file, or the folder of a run.", metavar="SCENARIO|RUN"),
    ],
    settings: run.Settings = None,
    trials: run.Trials = None,
    seed: run.Seed = None,
    out: run.Out = None,
    jobs: run.Together = 1,
) -> None:
    """Draw the Pareto-optimal models of a sweep."""
    asked = run.settings_of(settings, trials, seed)
    if Path(source).is_dir():
        if asked or out is not None or jobs != 1:
            raise typer.BadParameter(f"{source} is a run's folder, of which nothing is played: leave the options out")
        folder = Path(source)
    else:
        folder = _played(source, asked, run.writable(out or Path("runs")), jobs)
    shown, page = _written(folder)
    console(WIDTH).print(shown)
    typer.echo(f"frontier: {page}")


def _played(scenario: str, settings: list[str], parent: Path, jobs: int) -> Path:
    from sim.games import read
    from sim.play.jobs import Jobs
    from sim.play.runner import Means
    from sim.runs.folder import RunFolder
    from sim.scenarios.sweep import CELLS_MAX

    sweep = read(scenario, settings, CELLS_MAX)
    _front_of(sweep, scenario)
    means = Means(jobs=Jobs(jobs))
    means.jobs.require()
    folder = RunFolder.create(parent, sweep.scenario.scenario.name)
    try:
        with run.resumable(scenario, settings, folder):
            return run.play(sweep, folder, means, as_json=False)[0].folder
    except Interrupted as error:
        raise Interrupted(
            f"{error}; then {shlex.join(['fairwall', 'results', 'frontier', str(folder.path)])}"
        ) from None


def _front_of(sweep: Sweep, origin: str) -> Callable[[Sweep, Sequence[Line], Sequence[Line]], ParetoCells]:
    from sim.games import GAMES

    front = GAMES[sweep.game].frontier
    if front is None:
        raise UserError(f"{origin}: the {sweep.game} game has no front: it trains no models to choose from")
    return front


def _written(folder: Path) -> tuple[RenderableType, Path]:
    if not (folder / "scenario.toml").is_file():
        raise UserError(f"{folder}: not a run's folder: it has no scenario.toml")
    from sim.games import read
    from sim.runs.page import frontier_page
    from sim.runs.trials import read_trials, summarise

    sweep = read(str(folder / "scenario.toml"))
    find = _front_of(sweep, str(folder))
    lines = read_trials(folder / "trials.jsonl")
    if not lines:
        raise UserError(f"{folder}: no trial finished: fairwall run --resume plays on")
    try:
        front = find(sweep, lines, summarise(sweep, lines))
        text = frontier_page(folder, sweep, lines, front.page())
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise UserError(f"{folder}: trials.jsonl is not as a run of its scenario writes it") from error
    page = folder / "frontier.html"
    page.write_text(text, encoding="utf-8")
    return front.shown, page


def merge(
    folders: Annotated[list[Path], typer.Argument(help="The folders of all shards of one run.", metavar="FOLDER...")],
    out: Annotated[Path, typer.Option(help="The folder that gets the run's own folder.")] = Path("runs"),
) -> None:
    """Join the shards of a run into one folder. The shards stay unchanged."""
    from sim.cli.run import writable

    parent = writable(out)
    from sim.runs.merge import merge
    from sim.runs.page import write_report

    merged = merge(folders, parent)
    write_report(merged)
    typer.echo(f"run: {merged}")


def seal(
    folder: Annotated[Path, typer.Argument(help="A run's folder.", metavar="RUN")],
    key: Annotated[Path, typer.Option(metavar="FILE", help="An Ed25519 private key in PEM, kept outside the run.")],
    new_key: Annotated[
        bool, typer.Option("--new-key", help="Make the key first, and its public key in FILE.pub.")
    ] = False,
) -> None:
    """Sign a run's result. Nobody without the key can change a file of the run unseen."""
    from sim.verify import signature

    signature.require_sealable(folder, key)
    if new_key:
        typer.echo(f"public key: {signature.new_key(key)}")
    typer.echo(f"signature: {signature.sign(folder, key)}")


app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Join, sign and sum up runs.")
app.command()(merge)
app.command()(seal)
app.command()(frontier)
