"""What is measured in a run of the game of the curator, column by column."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from compliance.games.curator import HONEST
from fairwall.laws.goodness import TESTS
from sim.games.game import Line
from sim.report.cells import Swept
from sim.report.columns import Measure, Sheet
from sim.report.estimates import FEWEST, SHARE, Estimate, Range, estimate_of
from sim.report.notation import MISSING, setting
from sim.scenarios.sweep import Sweep

_ANY: Range = (-math.inf, math.inf)


def _mean(name: str, within: Range) -> Callable[[Line], Estimate | None]:
    return lambda cell: (
        None if cell[name] is None else estimate_of(cell[name], cell[f"{name}_sd"], cell["trials"], within)
    )


def share_of(name: str) -> Callable[[Line], Estimate | None]:
    """Estimate in which share of a cell's trials something was so; None where it could not be."""

    def of(cell: Line) -> Estimate | None:
        if cell[name] is None:
            return None
        ends = (cell[f"{name}_low"], cell[f"{name}_high"]) if cell["trials"] >= FEWEST else (None, None)
        return Estimate(cell[name] / cell["trials"], *ends)

    return of


shift_of, accused_of = _mean("shift", _ANY), share_of("accused")

MOVED: Measure[Line] = Measure(
    "moved",
    "answers moved",
    of=_mean("moved", SHARE),
    digits=2,
    short="moved",
    bare=True,
    scale=SHARE,
    about="which share of the answers is a scale of the noise or more away from the honest ones",
)
_ACCUSED: Measure[Line] = Measure(
    "accused",
    of=accused_of,
    digits=2,
    short="accused",
    main=True,
    about="in which share of the trials the regulator accuses compliance",
)
_WON: Measure[Line] = Measure(
    "won",
    of=share_of("won"),
    digits=2,
    short="won",
    main=True,
    bare=True,
    about="in which share of the trials an answer is moved by a scale, or a sample passes, and nobody accuses",
)
ANSWERS: tuple[Measure[Line], ...] = (
    Measure("trials"),
    Measure(
        "shift",
        "mean shift",
        of=shift_of,
        digits=2,
        short="shift",
        bare=True,
        about="how far answers are from the honest ones on average, in scales of the noise",
    ),
    Measure("shift_law", "by the law", digits=2, short="law", about="the mean of the largest of so many noises"),
    MOVED,
    _ACCUSED,
    Measure(
        "caught_law", "by the law", digits=2, short="1−(1−f)^s", about="how often s openings find an affected request"
    ),
    _WON,
    Measure(
        "missed",
        "found and not accused",
        about="trials in which a request was opened that was not answered honestly, and nobody accused",
    ),
)
SAMPLE: tuple[Measure[Line], ...] = (
    Measure("trials"),
    Measure("gap_of_all", "gap of all", digits=3, short="gap of\nall", about="the gap in labels of the people held"),
    Measure("gap_shown", "gap shown", digits=3, short="gap\nshown", about="that of the sample"),
    Measure(
        "flags",
        "tests that flag it",
        of=_mean("flags", (0.0, float(len(TESTS)))),
        digits=2,
        short="flags\nof 5",
        main=True,
        about="how many of the five tests are below 5%",
    ),
    *(
        Measure[Line](
            f"flag-{test}",
            f"{test} flags",
            of=lambda cell, test=test: cell["flagged"].get(test),  # type: ignore[misc]
            digits=2,
            short=f"{test[:5]}",
            about=f"in which share of the trials {test} is below 5%",
        )
        for test in TESTS
    ),
    _ACCUSED,
    _WON,
)


_HEADS = {"curator.strength": "×", "curator.share": "f", "curator.openings": "s"}
_UNSAID = {"curator.share": 1, "curator.openings": 0, "curator.sample": 0, "curator.defence": "none"}


def swept_in(sweep: Sweep) -> Swept:
    """Give what tells cells apart; what is not done is not said."""

    def write(cell: Line, key: str) -> str:
        if cell[key] == _UNSAID.get(key):
            return MISSING
        return "honest" if key == "curator.cheat" and cell[key] == HONEST else setting(cell[key])

    return Swept(sweep.scenario.axes, heads=_HEADS, write=write)


def tables(sweep: Sweep, _lines: Sequence[Line], summary: Sequence[Line]) -> list[Sheet[Line]]:
    """Lay out answers, and samples, a row a cell."""
    swept = swept_in(sweep)
    answers, samples = ([cell for cell in summary if bool(cell["sample"]) == is_sample] for is_sample in (False, True))
    kinds = (
        ("answers", "Answers, and what openings find", answers, ANSWERS),
        ("sample", "The sample", samples, SAMPLE),
    )
    return [Sheet(name, heading, swept, cells, measures) for name, heading, cells, measures in kinds if cells]
