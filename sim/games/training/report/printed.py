"""What a paper printed of cells, beside what was measured, and whether it is reproduced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sim.games.game import Line
from sim.games.training.report.attribute import attribute
from sim.games.training.report.cells import GROUPS, accuracy_of, gap_of, name_of, of_group
from sim.games.training.scenario import TrainingFigure, TrainingScenario
from sim.report.cells import paper_figure, scenario_of
from sim.report.estimates import Estimate, Range
from sim.report.notation import number
from sim.report.page import Section
from sim.report.reproduction import NOT_AS_DESCRIBED, judged, region
from sim.report.tables import Column, PageTable
from sim.scenarios.sweep import Sweep

ACCURACY_MARGIN = 1.0
"""Points of accuracy within which a printed one counts as the same."""

RATE_MARGIN = 0.02
"""The same of a risk difference, or another rate."""

RULE = (
    "A printed figure stands for the region of its standard deviation, where one is printed, and a margin around it: "
    f"{ACCURACY_MARGIN:g} point of accuracy, {RATE_MARGIN:g} of a risk difference or a rate. The margin is for what a "
    "paper does not print: which rows it tested on, which moves an accuracy on a fifth of Adult by 0.7 points and a "
    "risk difference by 0.015 (95% of the time), and how it prepared the table. Reproduced: our 95% interval lies "
    "wholly inside the region. Not reproduced: wholly outside. Undecided: neither, or fewer than five trials. Not "
    "reproducible as described: the paper leaves out what is named beside it, whatever was measured."
)

OTHER_DATA = "measured on other data"


@dataclass(frozen=True)
class Comparison:
    """One printed figure beside ours.

    Attributes
    ----------
    cell : what was played.
    what : what is compared.
    printed : as it is written.
    region : what counts as that.
    measured : ours, in the same unit.
    digits : how many decimals it gets.
    verdict : whether it is reproduced.
    missing : what the paper leaves out, if it is said.
    source : where the printed one stands.
    """

    cell: Line
    what: str
    printed: str
    region: Range
    measured: Estimate
    digits: int
    verdict: str
    missing: str
    source: str


def comparisons(sweep: Sweep[TrainingScenario], cells: Sequence[Line]) -> list[Comparison]:
    """Put a paper's figures beside the cells that they are about."""
    found = []
    for cell in cells:
        scenario = scenario_of(sweep, cell)
        figure = paper_figure(scenario)
        if figure is not None:
            found += list(_compared(figure, scenario, cell))
    return found


def _compared(figure: TrainingFigure, scenario: TrainingScenario, cell: Line) -> Iterator[Comparison]:
    for what, printed, sd, margin, measured in _figures(figure, cell):
        if printed is None or measured is None:
            continue
        within = region(printed, sd, margin)
        digits = 1 if margin == ACCURACY_MARGIN else 3
        spread = "" if sd is None else f" ± {number(sd)}"
        verdict = OTHER_DATA if _elsewhere(figure, scenario) else judged(measured, within, figure.missing)
        yield Comparison(
            cell, what, f"{printed:g}{spread}", within, measured, digits, verdict, figure.missing or "", figure.source
        )


def _elsewhere(figure: TrainingFigure, scenario: TrainingScenario) -> bool:
    """Say whether a figure is about other data than those that were played."""
    played = f"{scenario.data.source.partition(':')[0]}, {attribute(scenario.data)[0]}"
    return figure.data is not None and figure.data.casefold() != played.casefold()


def _figures(
    figure: TrainingFigure, cell: Line
) -> Iterator[tuple[str, float | None, float | None, float, Estimate | None]]:
    """Give what may be printed: what it is, printed, its standard deviation, the margin, ours."""
    yield "accuracy, %", figure.accuracy, figure.accuracy_sd, ACCURACY_MARGIN, _percent(accuracy_of(cell))
    yield "risk difference", figure.gap, figure.gap_sd, RATE_MARGIN, gap_of(cell)
    for place, group in enumerate(GROUPS):
        right, wrong = of_group(cell, "accuracies", place), of_group(cell, "false_positives", place)
        if figure.group_accuracy is not None and right is not None:
            yield f"accuracy of the {group}", figure.group_accuracy[place], None, ACCURACY_MARGIN / 100, right
        if figure.group_fpr is not None:
            yield f"false positives of the {group}", figure.group_fpr[place], None, RATE_MARGIN, wrong


def _percent(found: Estimate) -> Estimate:
    low, high = (None if end is None else 100 * end for end in (found.low, found.high))
    return Estimate(100 * found.mean, low, high)


def section(axes: Sequence[str], rows: Sequence[Comparison]) -> Section:
    """Tell what is reproduced, of at least one comparison."""
    columns = [
        Column("cell", [name_of(axes, row.cell) for row in rows], numeric=False),
        Column("figure", [row.what for row in rows], numeric=False),
        Column("printed", [row.printed for row in rows]),
        Column(
            "region",
            [f"{row.region[0]:.{row.digits}f} to {row.region[1]:.{row.digits}f}".replace("-", "−") for row in rows],
        ),
        Column("measured", [row.measured.text(row.digits, ends=row.digits + (row.digits == 1)) for row in rows]),
        Column("verdict", [row.verdict for row in rows], numeric=False),
        Column("source", [row.source for row in rows], numeric=False),
    ]
    lacking = dict.fromkeys((name_of(axes, row.cell), row.missing) for row in rows if row.missing)
    notes = (RULE, *(f"{name}: {NOT_AS_DESCRIBED}. Missing: {missing}." for name, missing in lacking))
    return Section(
        "printed", "Beside the printed figures", conclusions=[counted(rows)], table=PageTable(columns, notes)
    )


def counted(rows: Sequence[Comparison]) -> str:
    """Say how many of the printed figures got which verdict."""
    verdicts = [row.verdict for row in rows]
    many = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    return f"Of {len(rows)} printed figures: {many}."
