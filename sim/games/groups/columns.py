"""Columns of the table of a run of the game of groups."""

from __future__ import annotations

from collections.abc import Sequence

from sim.games.game import Line
from sim.report.cells import Swept
from sim.report.columns import Measure, Sheet, mean_of
from sim.report.estimates import PERCENT, IntervalEstimate, estimate_of
from sim.scenarios.sweep import Sweep

_EPSILON = "groups.epsilon"
_SETS = ("groups.source", "groups.columns")
"""The keys that determine the set of groups."""

leakage_of = mean_of("leakage", PERCENT)

LEAKAGE: Measure[Line] = Measure(
    "leakage",
    unit="%",
    of=leakage_of,
    digits=1,
    short="leakage",
    main=True,
    scale=(0.0, 100.0),
    about="balanced accuracy, the mean over the groups of the share of their people who are guessed right",
)
COLUMNS: tuple[Measure[Line], ...] = (
    Measure("trials"),
    LEAKAGE,
    Measure(
        "chance",
        unit="%",
        digits=1,
        short="chance",
        about="the same of a guess without answers, one in as many as there are groups",
    ),
    Measure(
        "bound",
        unit="%",
        digits=1,
        short="bound",
        about="what epsilon allows about one person, how often any guess is right",
    ),
    Measure("groups", short="groups", about="that somebody is in, on average"),
    Measure("recovered", "people right", about="how many people are guessed right, whichever their group"),
)


def tables(sweep: Sweep, _lines: Sequence[Line], summary: Sequence[Line]) -> list[Sheet[Line]]:
    """Return the table of the measured figures, one row per cell."""
    return [Sheet("groups", "Who is in which group", Swept(sweep.scenario.axes), summary, COLUMNS)]


def set_of(swept: Swept, cell: Line) -> str:
    """Return the name of a cell's set of groups; empty unless several are swept."""
    return swept.name(cell, set(swept.axes) - set(_SETS))


def attack_of(swept: Swept, cell: Line) -> str:
    """Return a cell's name apart from epsilon and its set of groups: mostly the developer's attack."""
    return swept.name(cell, (_EPSILON, *_SETS))


def right_of(cell: Line, group: str) -> IntervalEstimate | None:
    """Return the estimated percentage of a group that is guessed right; None where the group was always empty."""
    found = cell["right"][group]
    return estimate_of(found["mean"], found["sd"], found["trials"], PERCENT) if found["trials"] else None
