"""What a paper printed of cells beside what was measured, and whether it is reproduced: one rule for every figure.

A printed number stands for a region: what the paper's own seeds and a stated margin make of it. Ours is an interval, of
95%. It is reproduced if the interval lies wholly inside the region, not reproduced if wholly outside, and undecided if
it has points on both sides, or there is no interval: more trials may decide that. A paper that leaves out what it takes
to do the same again is not reproducible as described, whatever was measured. Beside which cells a figure stands at all,
`sim.report.cells.paper_figure` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sim.report.cells import Swept, paper_figure, scenario_of
from sim.report.columns import Measure, Sheet
from sim.report.estimates import FEWEST, Estimate, Range
from sim.report.notation import MISSING, number
from sim.scenarios.sweep import Sweep

REPRODUCED, NOT_REPRODUCED, UNDECIDED = "reproduced", "not reproduced", "undecided"
NOT_AS_DESCRIBED = "not reproducible as described"


def region(printed: float, sd: float | None, margin: float) -> Range:
    """Give what counts as the printed number: from so much below it to so much above, both included.

    That is the standard deviation that is printed beside it, if one is, and a margin, of what a paper cannot print.
    """
    around = (sd or 0.0) + margin
    return printed - around, printed + around


def judged(measured: Estimate, printed: Range, missing: str | None = None) -> str:
    """Judge a printed figure, of which `region` says what counts as it, by the interval of a measured one.

    A paper of which something is missing is not reproducible as described.
    """
    if missing:
        return NOT_AS_DESCRIBED
    if measured.low is None or measured.high is None:
        return UNDECIDED
    low, high = printed
    if low <= measured.low and measured.high <= high:
        return REPRODUCED
    return NOT_REPRODUCED if measured.high < low or high < measured.low else UNDECIDED


@dataclass(frozen=True)
class Comparison:
    """One printed figure, as it is written, beside ours.

    Attributes
    ----------
    region : what counts as the printed one, in the unit of ours.
    digits : how many decimals ours gets.
    tally : how ours is written where it is a count.
    verdict : whether it is reproduced, or why that is not asked.
    source : where the printed one stands.
    missing : what the paper leaves out, if it is said.
    """

    what: str
    printed: str
    region: Range
    measured: Estimate
    digits: int = 1
    tally: str = ""
    cell: Mapping[str, Any] = field(default_factory=dict)
    verdict: str = ""
    source: str = ""
    missing: str = ""

    @property
    def ours(self) -> str:
        """What was measured, as it is written."""
        return self.tally or self.measured.text(self.digits)

    @property
    def in_brief(self) -> str:
        """The same for a terminal."""
        return self.ours if self.tally or self.digits < 2 else self.measured.brief(self.digits)


def comparisons(
    sweep: Sweep,
    cells: Iterable[Mapping[str, Any]],
    beside: Callable[[Any, Mapping[str, Any]], Iterator[Comparison]],
    instead: Callable[[Mapping[str, Any]], str | None] = lambda _: None,
) -> list[Comparison]:
    """Put what a paper printed of cells, which have the swept values, beside what was measured.

    Parameters
    ----------
    beside : gives what a figure has printed beside what a cell has measured; verdicts and sources are added here.
    instead : says why nothing is asked of a cell, where nothing is.
    """
    rows = []
    for cell in cells:
        figure = paper_figure(scenario_of(sweep, cell))
        if figure is None:
            continue
        other = instead(cell)
        for row in beside(figure, cell):
            verdict = other or judged(row.measured, row.region, figure.missing)
            rows.append(replace(row, cell=cell, verdict=verdict, source=figure.source, missing=figure.missing or ""))
    return rows


def counted(rows: Sequence[Comparison]) -> str:
    """Say how many of the printed figures got which verdict."""
    verdicts = [row.verdict for row in rows]
    many = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    return f"Of {len(rows)} printed figures: {many}."


def beside_ours(
    rows: Sequence[Comparison], name: Callable[[Mapping[str, Any]], str], margins: str
) -> Sheet[Comparison]:
    """Lay out printed figures beside ours; say what the margins around printed numbers are, and what they are for."""
    lacking = dict.fromkeys(
        f"{name(row.cell)}: {NOT_AS_DESCRIBED}. Missing: {row.missing}." for row in rows if row.missing
    )
    key = Measure[Comparison]("cell", of=lambda row: name(row.cell) or MISSING)
    caption = counted(rows) + " Verdicts by the 95% interval; the page has the rule." if rows else ""
    return Sheet(
        "printed",
        "Beside the printed figures",
        Swept(()),
        rows,
        _COLUMNS,
        (_RULE.format(margins=margins), *lacking),
        caption,
        keys=(key,),
        linked=False,
    )


_RULE = (
    "A printed figure stands for a region: its standard deviation, where one is printed, and a margin around it: "
    "{margins}. Reproduced: our 95% interval lies wholly inside the region. Not reproduced: wholly outside. Undecided: "
    f"neither, or fewer than {FEWEST} trials. Not reproducible as described: the paper leaves out what is named below, "
    "whatever was measured."
)

_COLUMNS: tuple[Measure[Comparison], ...] = (
    Measure("figure", of=lambda row: row.what, words=True, short="figure"),
    Measure("printed", of=lambda row: row.printed, short="printed", kept=True),
    Measure("region", of=lambda row: region_text(row.region)),
    Measure("measured", of=lambda row: row.ours),
    Measure("brief", of=lambda row: row.in_brief, short="measured", kept=True, on_page=False),
    Measure("verdict", of=lambda row: row.verdict, words=True, short="verdict", kept=True),
    Measure("source", of=lambda row: row.source, words=True),
)


def region_text(region: Range) -> str:
    """Write what counts as a printed number."""
    low, high = map(short, region)
    if low == high:
        return low
    if math.isinf(region[1]):
        return f"at least {low}"
    return f"at most {high}" if math.isinf(region[0]) else f"{low} to {high}"


def short(value: float) -> str:
    """Write a number with three digits, and a count whole."""
    return f"{value:.0f}".replace("-", "\N{MINUS SIGN}") if abs(value) >= 1000 else number(value)
