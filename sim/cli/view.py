"""The command ``fairwall view``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from fairwall.plugins import offer
from sim.cli.common import Plugins, open_page, run_folder
from sim.play.processes import NAMES


def view(
    runs: Annotated[
        list[str],
        typer.Argument(
            help="A run's folder, or latest; or a shipped scenario, to be played small first. Several runs: side by "
            "side, what each measured, and figure by figure.",
            metavar="RUN",
        ),
    ],
    trial: Annotated[int | None, typer.Option(min=1, help="Show this trial alone, by its number in the run.")] = None,
    party: Annotated[
        str | None,
        typer.Option("--as", metavar="PARTY", help="Show what this party saw, and leave out what is not for it."),
    ] = None,
    compared: Annotated[
        Path | None,
        typer.Option("--beside", metavar="RUN", help="Hold the run against another, from the first difference on."),
    ] = None,
    replayed: Annotated[
        bool, typer.Option("--replayed", help="Play the run again, and hold it against what comes out.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write the page.")] = None,
    plugin: Plugins = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Write one page that replays a run, or has several side by side."""
    offer(plugin or ())
    if party not in (None, *NAMES, "referee"):
        raise typer.BadParameter(f"--as must be compliance, developer, adversary or referee, not {party!r}")
    if replayed and compared is not None:
        raise typer.BadParameter("--beside and --replayed are different things: give one of them")
    if len(runs) == 1:
        target = _one(runs[0], trial, party, compared, out, replayed=replayed)
    elif replayed or any(option is not None for option in (trial, party, compared)):
        raise typer.BadParameter("--trial, --as, --beside and --replayed are about one RUN")
    else:
        from sim.runs.side_by_side import side_by_side

        target = out or Path("side-by-side.html")
        target.write_text(side_by_side([run_folder(run) for run in runs]), encoding="utf-8")
    typer.echo(f"page: {target}")
    if show:
        open_page(target)


def _one(
    run: str, trial: int | None, party: str | None, other_run: Path | None, out: Path | None, *, replayed: bool
) -> Path:
    from sim.cli.replay import at_replay_size
    from sim.replay.playing import again
    from sim.replay.recorded import open_run as open_to_replay
    from sim.scenarios.sweep import shipped
    from sim.viewer.page import Other, open_run, page, sessions_in
    from sim.viewer.visibility import Sight

    with tempfile.TemporaryDirectory(prefix="fairwall-view-") as place:
        named = run in shipped() and not Path(run).is_dir()
        folder = at_replay_size(run, Path(place)) if named else run_folder(run)
        shown, sight = open_run(folder), Sight(party)
        other = None
        if other_run is not None:
            other = Other(str(other_run), open_run(other_run).sessions)
        elif replayed:
            keep = Path(place, "again")
            keep.mkdir()
            found = again(open_to_replay(folder), keep=keep)
            other = Other("played again", sessions_in(keep), bit_for_bit=found.bit_for_bit)
        text = page(shown, trial=trial, sight=sight, other=other)
    name = "-".join(filter(None, (run if named else "view", party, None if trial is None else f"trial-{trial}")))
    target = out or (Path() if named else folder) / f"{name}.html"
    target.write_text(text, encoding="utf-8")
    return target
