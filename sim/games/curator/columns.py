"""Columns of the tables of a curator run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from compliance.games.curator import HONEST
from fairwall.laws.studies.cheat_detection import TESTS
from sim.games.game import Line
from sim.report.cells import Swept
from sim.report.columns import Measure, Sheet, mean_of, share_of
from sim.report.estimates import SHARE
from sim.report.notation import MISSING, setting
from sim.scenarios.sweep import Sweep

_ABOUT = {
    "shift": "how far answers are from the honest ones on average, in scales of the noise",
    "shift_law": "the mean of the largest of so many noises",
    "moved": "which share of the answers is a scale of the noise or more away from the honest ones",
    "accused": "in which share of the trials the regulator accuses compliance",
    "caught_law": "how often s openings find an affected request",
    "won": "in which share of the trials an answer is moved by a scale, or a sample passes, and nobody accuses",
    "missed": "trials in which a request was opened that was not answered honestly, and nobody accused",
    "gap_of_all": "the gap in labels of the people held",
    "gap_shown": "that of the sample",
    "flags": "how many of the five tests are below 5%",
}


def _measure(name: str, title: str = "", short: str = "", digits: int | None = 2, **more: Any) -> Measure[Line]:
    return Measure(name, title, short=short, digits=digits, about=_ABOUT[name], **more)


def _flagged(test: str) -> Measure[Line]:
    about, found = f"in which share of the trials {test} is below 5%", lambda cell: cell["flagged"].get(test)
    return Measure(f"flag-{test}", f"{test} flags", of=found, digits=2, short=test[:5], about=about)


shift_of, accused_of, won_of = mean_of("shift", (-math.inf, math.inf)), share_of("accused"), share_of("won")

MOVED = _measure("moved", "answers moved", "moved", of=mean_of("moved", SHARE), bare=True, scale=SHARE)
_ACCUSED = _measure("accused", short="accused", of=accused_of, main=True)
_WON = _measure("won", short="won", of=won_of, main=True, bare=True)
ANSWERS: tuple[Measure[Line], ...] = (
    Measure("trials"),
    _measure("shift", "mean shift", "shift", of=shift_of, bare=True),
    _measure("shift_law", "by the law", "law"),
    MOVED,
    _ACCUSED,
    _measure("caught_law", "by the law", "1−(1−f)^s"),
    _WON,
    _measure("missed", "found and not accused", digits=None),
)
SAMPLE: tuple[Measure[Line], ...] = (
    Measure("trials"),
    _measure("gap_of_all", "gap of all", "gap of\nall", 3),
    _measure("gap_shown", "gap shown", "gap\nshown", 3),
    _measure("flags", "tests that flag it", "flags\nof 5", of=mean_of("flags", (0.0, float(len(TESTS)))), main=True),
    *map(_flagged, TESTS),
    _ACCUSED,
    _WON,
)

_HEADS = {"curator.strength": "×", "curator.share": "f", "curator.openings": "s"}
_UNSAID = {"curator.share": 1, "curator.openings": 0, "curator.sample": 0, "curator.defence": "none"}


def swept_in(sweep: Sweep) -> Swept:
    """Return the keys that distinguish the cells; values that mean "not done" are left blank."""

    def write(cell: Line, key: str) -> str:
        if cell[key] == _UNSAID.get(key):
            return MISSING
        return "honest" if key == "curator.cheat" and cell[key] == HONEST else setting(cell[key])

    return Swept(sweep.scenario.axes, heads=_HEADS, write=write)


def tables(sweep: Sweep, _lines: Sequence[Line], summary: Sequence[Line]) -> list[Sheet[Line]]:
    """Return the tables of answers and of samples, one row per cell."""
    swept = swept_in(sweep)
    answers, samples = ([cell for cell in summary if bool(cell["sample"]) == is_sample] for is_sample in (False, True))
    told = (
        Sheet("answers", "Answers, and what openings find", swept, answers, ANSWERS),
        Sheet("sample", "The sample", swept, samples, SAMPLE),
    )
    return [sheet for sheet in told if sheet.rows]
