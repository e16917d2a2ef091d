"""A paper's printed figures compared with ours, and the verdict on each: one rule for every figure.

A printed number stands for a region: its spread over the paper's own seeds, and a stated margin. Ours is a 95%
interval. The figure is reproduced if the interval is wholly inside the region, not reproduced if wholly outside, and
undecided if the interval has points on both sides, or is missing: more trials may decide it. A paper that leaves out
what a repetition needs is not reproducible as described, whatever was measured. Which cells a figure applies to is
decided by `sim.report.cells.paper_figure`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sim.report.cells import Swept, paper_figure, scenario_of
from sim.report.columns import Measure, Sheet
from sim.report.estimates import FEWEST, IntervalEstimate, Range
from sim.report.notation import MISSING, number
from sim.scenarios.sweep import Sweep

REPRODUCED, NOT_REPRODUCED, UNDECIDED = "reproduced", "not reproduced", "undecided"
NOT_AS_DESCRIBED = "not reproducible as described"


def region(printed: float, sd: float | None, margin: float) -> Range:
    """Return the region that counts as a printed number: the margin, plus any printed deviation, on both sides."""
    around = (sd or 0.0) + margin
    return printed - around, printed + around


def judged(measured: IntervalEstimate, printed: Range, missing: str | None = None) -> str:
    """Return the verdict on a printed figure's region, by a measured interval; ``missing`` rules reproduction out."""
    if missing:
        return NOT_AS_DESCRIBED
    if measured.low is None or measured.high is None:
        return UNDECIDED
    low, high = printed
    if low <= measured.low and measured.high <= high:
        return REPRODUCED
    return NOT_REPRODUCED if measured.high < low or high < measured.low else UNDECIDED


@dataclass(frozen=True)
class FigureComparison:
    """A printed figure and ours.

    Attributes
    ----------
    region : the values that count as the printed one, in the unit of ours.
    tally : the text of ours if it is a count.
    verdict : whether it is reproduced, or why that is not judged.
    source : the printed one's place in the paper.
    missing : what the paper leaves out, if stated.
    """

    what: str
    printed: str
    region: Range
    measured: IntervalEstimate
    digits: int = 1
    tally: str = ""
    cell: Mapping[str, Any] = field(default_factory=dict)
    verdict: str = ""
    source: str = ""
    missing: str = ""

    @property
    def ours(self) -> str:
        """The text of the measured figure."""
        return self.tally or self.measured.text(self.digits)

    @property
    def in_brief(self) -> str:
        """The text of the measured figure for a terminal."""
        return self.ours if self.tally or self.digits < 2 else self.measured.brief(self.digits)


def comparisons(
    sweep: Sweep,
    cells: Iterable[Mapping[str, Any]],
    compare: Callable[[Any, Mapping[str, Any]], Iterator[FigureComparison]],
    instead: Callable[[Mapping[str, Any]], str | None] = lambda _: None,
) -> list[FigureComparison]:
    """Return the printed figures of cells with the measured ones, and verdicts. Cells have the swept values.

    ``compare`` yields the printed and measured figures of a cell, without verdicts and sources. ``instead`` returns the
    reason why a cell is not judged, or None.
    """
    rows = []
    for cell in cells:
        figure = paper_figure(scenario_of(sweep, cell))
        if figure is None:
            continue
        other = instead(cell)
        for row in compare(figure, cell):
            verdict = other or judged(row.measured, row.region, figure.missing)
            rows.append(replace(row, cell=cell, verdict=verdict, source=figure.source, missing=figure.missing or ""))
    return rows


def counted(rows: Sequence[FigureComparison]) -> str:
    """Return the number of printed figures by verdict, in words."""
    verdicts = [row.verdict for row in rows]
    many = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    return f"Of {len(rows)} printed figures: {many}."


def beside_ours(
    rows: Sequence[FigureComparison], name: Callable[[Mapping[str, Any]], str], margins: str
) -> Sheet[FigureComparison]:
    """Return a table of printed figures beside ours; ``margins`` describes the margins around printed numbers."""
    lacking = dict.fromkeys(
        f"{name(row.cell)}: {NOT_AS_DESCRIBED}. Missing: {row.missing}." for row in rows if row.missing
    )
    key = Measure[FigureComparison]("cell", of=lambda row: name(row.cell) or MISSING)
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

_COLUMNS: tuple[Measure[FigureComparison], ...] = (
    Measure("figure", of=lambda row: row.what, words=True, short="figure"),
    Measure("printed", of=lambda row: row.printed, short="printed", kept=True),
    Measure("region", of=lambda row: region_text(row.region)),
    Measure("measured", of=lambda row: row.ours),
    Measure("brief", of=lambda row: row.in_brief, short="measured", kept=True, on_page=False),
    Measure("verdict", of=lambda row: row.verdict, words=True, short="verdict", kept=True),
    Measure("source", of=lambda row: row.source, words=True),
)


def region_text(region: Range) -> str:
    """Return the text of a region that counts as a printed number."""
    low, high = map(short, region)
    if low == high:
        return low
    if math.isinf(region[1]):
        return f"at least {low}"
    return f"at most {high}" if math.isinf(region[0]) else f"{low} to {high}"


def short(value: float) -> str:
    """Return a number with three significant digits, or whole from 1000 on."""
    return f"{value:.0f}".replace("-", "\N{MINUS SIGN}") if abs(value) >= 1000 else number(value)
