"""Columns of the table of a washing run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from sim.games.game import Line
from sim.report.cells import Swept
from sim.report.columns import Measure, Sheet, mean_of
from sim.report.estimates import PERCENT
from sim.scenarios.sweep import Sweep

CHECKED = ("wash.checks", "wash.committed", "wash.evades", "wash.wrong", "wash.alarm")
"""The keys about the check of the developer and about its evasion."""

_WON = "the audit is passed, the deployed gap is 0.05 above tau or more, and nobody accuses"


def _share(name: str, title: str, short: str, about: str) -> Measure[Line]:
    of = mean_of(name, PERCENT)
    return Measure(name, title, unit="%", of=of, digits=0, short=short, bare=True, about=f"trials in which {about}")


WON = replace(_share("won", "won", "won", _WON), main=True, scale=(0.0, 1.0))
COLUMNS: tuple[Measure[Line], ...] = (
    Measure("trials"),
    Measure(
        "flips_to_pass",
        "flips to pass",
        digits=0,
        short="to\npass",
        about="how many of the flips that the developer holds best bring the exact gap to tau: the median",
    ),
    Measure(
        "flips",
        "shown otherwise",
        of=mean_of("flips", (0.0, math.inf)),
        digits=0,
        short="flips",
        bare=True,
        about="rows that are shown otherwise than deployed",
    ),
    _share("passed", "passed", "pass", "the audit is passed"),
    _share("accused", "accused", "accused", "compliance accuses"),
    Measure(
        "detection",
        "accused by the law",
        unit="%",
        digits=0,
        short="law",
        about="how many it would accuse of as many flips if rows were drawn after them",
        when=lambda cells: any(cell["checks"] for cell in cells),
    ),
    WON,
    Measure("learned", unit="%", digits=0, about="balanced accuracy of what the developer believes of groups"),
    Measure("deployed_gap", "deployed gap", digits=3, about="of the deployed model, exact"),
    Measure("shown_gap", "shown gap", digits=3, about="of the model that was audited, exact"),
)


def tables(sweep: Sweep, _lines: Sequence[Line], summary: Sequence[Line]) -> list[Sheet[Line]]:
    """Return the table of the measured figures, one row per cell."""
    return [Sheet("wash", "Who gets away with it", Swept(sweep.scenario.axes), summary, COLUMNS)]


def way_of(swept: Swept, cell: Line) -> str:
    """Return the name of a cell's way of washing."""
    return swept.name(cell, CHECKED) or f"{cell['strategy']}, {cell['knows']}"


def check_of(swept: Swept, cell: Line) -> str:
    """Return the name of a cell's way of checking."""
    return swept.name(cell, set(swept.axes) - set(CHECKED)) or f"{cell['checks']} checks"
