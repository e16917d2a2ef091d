"""The command ``fairwall limits``."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.status import WIDTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from sim.planning.limits import Check

_EPSILON, _RATE = 0.1, 0.5
"""What the picture is drawn for."""


def limits(
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Also draw a rate's errors against the group's size.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Tell which published limits on privacy hold.

    The formulas of sections IV to VI of arXiv 2601.17909, each computed for what it claims.
    """
    from sim.planning.limits import checks

    found = checks()
    if out is not None:
        if out.suffix != ".svg":
            raise typer.BadParameter(f"{out}: name a file that ends in .svg", param_hint="--out")
        from sim.report.drawing import svg

        out.write_text(svg("limits", _draw), encoding="utf-8")
    typer.echo(json.dumps({"formulas": [vars(check) for check in found]}) if as_json else as_text(found))


def as_text(found: Sequence[Check]) -> str:
    """Lay the verdicts out in 80 columns."""
    blocks = []
    for check in found:
        rows = [("says", check.says), ("found", check.found), ("against it", check.counterexample)]
        lines = [line for name, text in rows if text for line in _wrapped(name, text)]
        blocks.append("\n".join([f"{check.formula}: {check.verdict}", *lines]))
    return "\n\n".join(blocks)


def _wrapped(name: str, text: str) -> list[str]:
    # Short formulas in parentheses stay on one line.
    whole = re.sub(r"\((?:[^()]|\([^()]*\)){1,22}\)", lambda found: found[0].replace(" ", "\0"), f"  {name:12}{text}")
    lines = textwrap.wrap(whole, WIDTH, subsequent_indent=" " * 14, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


def _draw(axes: Axes) -> None:
    import numpy as np

    from sim.planning.rate_error import noise_bound_below, of_noise, of_sampling
    from sim.report.drawing import BLACK, GREY, legend

    people = np.logspace(1, 5, 81)
    for errors, dash, colour, label in (
        ([of_noise(_EPSILON, n) for n in people], "-", BLACK, "noise, √2/(ε n)"),
        ([of_sampling(_RATE, n) for n in people], (0, (5, 1.5)), BLACK, f"sampling error at q = {_RATE:g}"),
        ([1 / (_EPSILON * n**0.5) for n in people], (0, (1, 1)), GREY, "noise as printed, 1/(ε √n)"),
    ):
        axes.loglog(people, errors, ls=dash, color=colour, lw=1.8, label=label)
    turns = noise_bound_below(_EPSILON, _RATE)
    axes.plot(
        [turns], [of_noise(_EPSILON, turns)], "o", ms=7, mfc="white", mec=BLACK, label=f"equal at {turns:.0f} people"
    )
    axes.set_xlabel("people in the group, n")
    axes.set_ylabel("standard error of its rate")
    axes.set_title(f"What a group's released rate errs by, ε = {_EPSILON:g}")
    legend(axes, [])
