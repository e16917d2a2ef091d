"""Columns of the table of an overfit run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from sim.games.game import Line
from sim.games.overfit.trial import PASSES, STAYS
from sim.report.cells import Swept
from sim.report.columns import Measure, Sheet, mean_of
from sim.report.estimates import Range, share
from sim.scenarios.sweep import Sweep

_GAPS: Range = (-math.inf, math.inf)

overfit_of, x_of, answers_of = (mean_of(name, _GAPS) for name in ("overfit", "from_x", "from_answers"))


def _gap(name: str, title: str, about: str, short: str = "", digits: int = 3) -> Measure[Line]:
    return Measure(name, title, of=mean_of(name, _GAPS), digits=digits, short=short, bare=True, about=about)


OVERFIT = replace(
    _gap("overfit", "overfit", "the population's gap less the audited one, of the patched model", "overfit"),
    of=lambda row: row["overfit"] if "trial" in row else overfit_of(row),
    main=True,
    scale=(0.0, 0.3),
)
_WON = (
    f"an audited |gap| of at most {PASSES} beside a population's of at least {STAYS}, by the patches taken to be enough"
)
COLUMNS: tuple[Measure[Line], ...] = (
    Measure("trials"),
    _gap("fall", "audited gap falls", "by how much patches lower the audited gap", "gap\nfalls"),
    _gap("population_fall", "population's falls", "by how much they lower the population's gap", digits=4),
    OVERFIT,
    _gap("from_x", "of X", "the part of the overfit that X alone makes: no noise on answers changes it", "of\nX"),
    _gap("from_answers", "of answers", "the part that answers make", "of\nanswers"),
    Measure("bound", "σ√(2I)", digits=3, short="σ√(2I)", about="what answers can make of it at most, in expectation"),
    Measure("sigma", "σ", digits=4, about="the audited gap's sub-Gaussian constant under A given X"),
    Measure("nats", "I", unit="nats", about="what answers tell about A given X, at most"),
    Measure(
        "won",
        of=lambda cell: share(cell["won"], cell["trials"]),
        unit="%",
        digits=1,
        short="won",
        bare=True,
        about=_WON,
    ),
    Measure("to_pass", "patches to pass", about="the median of how many would have done; none where half fail"),
)


def tables(sweep: Sweep, _lines: Sequence[Line], summary: Sequence[Line]) -> list[Sheet[Line]]:
    """Return the table of the measured figures, one row per cell."""
    return [Sheet("overfit", "How far the model is fitted to the audited rows", swept_of(sweep), summary, COLUMNS)]


def swept_of(sweep: Sweep) -> Swept:
    """Return the keys that distinguish the cells."""
    return Swept(
        sweep.scenario.axes, heads={"overfit.rows": "rows", "overfit.attack": "attack", "overfit.rounds": "rounds"}
    )


def above(cell: Line) -> bool:
    """Return whether the part due to answers exceeds its bound by more than three standard errors."""
    error = (cell["from_answers_sd"] or math.inf) / math.sqrt(cell["trials"])
    return bool(cell["from_answers"] - cell["bound"] > 3 * error)


def unprotected(cell: Line) -> bool:
    """Return whether the part due to X exceeds three standard errors and half of the overfit."""
    error = (cell["from_x_sd"] or math.inf) / math.sqrt(cell["trials"])
    return bool(cell["from_x"] > max(3 * error, cell["overfit"] / 2))
