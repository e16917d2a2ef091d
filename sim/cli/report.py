"""The command ``fairwall report``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairwall.plugins import offer
from sim.cli.common import Plugins, run_folder
from sim.cli.run import writable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.report.drawing import Figure


def report(
    folder: Annotated[Path, typer.Argument(help="A run's folder, or latest.", metavar="RUN", parser=run_folder)],
    figures: Annotated[
        str | None,
        typer.Option(metavar="list|pdf|svg|png", help="Write each figure by itself, for a paper, or list their names."),
    ] = None,
    only: Annotated[str | None, typer.Option(metavar="NAME", help="With --figures: this one alone.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="With --figures: where to, or else the run's figures.")
    ] = None,
    plugin: Plugins = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --figures: print one JSON object.")] = False,
) -> None:
    """Write a run's report again, or its figures. The run may have been interrupted."""
    from fairwall.errors import UserError

    offer(plugin or ())
    if figures is None and (only is not None or out is not None or as_json):
        raise typer.BadParameter("--only, --out and --json are about figures: give --figures, too")
    if not (folder / "scenario.toml").is_file():
        raise UserError(
            f"{folder}: not a run's folder: it has no scenario.toml; name one that fairwall run printed, or latest"
        )
    from sim.report.drawing import FORMATS
    from sim.runs.page import figures_of, write_report

    if figures not in (None, "list", *FORMATS):
        raise typer.BadParameter(f"--figures: must be list, {', '.join(FORMATS)}, not {figures!r}")
    try:
        if figures is None:
            typer.echo(f"report: {write_report(folder)}")
        else:
            place = folder / "figures" if out is None else writable(out)
            _figures(figures_of(folder, only), figures, place, as_json=as_json)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        # Files of an older run may have any content.
        raise UserError(f"{folder}: trials.jsonl or result.json is not as a run of its scenario writes it") from error


def _figures(figures: Mapping[str, Figure], kind: str, out: Path, *, as_json: bool) -> None:
    told = {name: figure.title for name, figure in figures.items()}
    if kind != "list":
        out.mkdir(parents=True, exist_ok=True)
        for name, figure in figures.items():
            figure.save(out / f"{name}.{kind}")
        told = {name: str((out / f"{name}.{kind}").absolute()) for name in figures}
    if as_json:
        typer.echo(json.dumps(told))
        return
    for name, text in told.items():
        typer.echo(f"{name}: {text}")
