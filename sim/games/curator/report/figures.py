"""The figures of the page of a run of the game of the curator: measured beside what the law says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fairwall.laws.goodness import TESTS
from sim.games.curator.report.columns import accused_of, shift_of
from sim.games.game import Line
from sim.report.cells import Swept
from sim.report.columns import Sheet
from sim.report.dot_plot import Panel, Row, dot_plot
from sim.report.drawing import Figure
from sim.report.estimates import Estimate

_ANSWERS = (
    "Left, how far answers are from the honest ones on average; right, in which share of the trials compliance is "
    "accused. Filled marks are measured, with 95% intervals; hollow ones are by the law, where there is one: the mean"
    " of the largest of so many noises, and 1 − (1 − f)^s for s openings where a share f of the requests is affected."
)
_SAMPLE = "In which share of the trials each test of goodness of fit is below 5%; the dotted line is what chance does."
_OF_TESTS = {"ks": "KS", "chi2": "χ²", "wasserstein": "Wasserstein", "mmd": "MMD", "energy": "energy"}


def draw(tables: Sequence[Sheet[Line]]) -> Mapping[str, list[Figure]]:
    """Draw what a run's tables show: figures by the section that they stand in."""
    of_each = {"answers": _answers, "sample": _sample}
    return {table.name: [of_each[table.name](table.swept, table.rows)] for table in tables}


def _answers(swept: Swept, cells: Sequence[Line]) -> Figure:
    def panel(title: str, measured: Callable[[Line], Estimate], law: str, level: float | None) -> Panel:
        names = [swept.name(cell) or "the run" for cell in cells]
        found: list[Row] = [(name, measured(cell)) for name, cell in zip(names, cells, strict=True)]
        laws = [None if cell[law] is None else Estimate(cell[law]) for cell in cells]
        return Panel(title, {"measured": found, "by the law": list(zip(names, laws, strict=True))}, level=level)

    panels = [
        panel("mean shift, in scales of the noise", shift_of, "shift_law", 0.0),
        panel("share accused", accused_of, "caught_law", None),
    ]
    return dot_plot("cheats", "What a cheat gains, and how often it is found", _ANSWERS, panels)


def _sample(swept: Swept, cells: Sequence[Line]) -> Figure:
    series = {
        swept.name(cell) or "the run": [(_OF_TESTS[test], Estimate(cell["flagged"][test])) for test in TESTS]
        for cell in cells
    }
    return dot_plot("tests", "Which tests flag a sample", _SAMPLE, [Panel("share flagged", series, level=0.05)])
