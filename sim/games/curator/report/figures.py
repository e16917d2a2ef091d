"""The figures of the page of a run of the game of the curator: measured beside what the law says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from fairwall.laws.goodness import TESTS
from sim.games.curator.report.columns import accused_of, shift_of
from sim.games.game import Line
from sim.report.cells import Swept
from sim.report.dot_plot import Panel, dot_plot
from sim.report.drawing import Figure
from sim.report.estimates import Estimate

_ANSWERS = (
    "Left, how far answers are from the honest ones on average; right, in which share of the trials compliance is "
    "accused. Filled marks are measured, with 95% intervals; hollow ones are by the law, where there is one: the mean"
    " of the largest of so many noises, and 1 − (1 − f)^s for s openings where a share f of the requests is affected."
)
_SAMPLE = "In which share of the trials each test of goodness of fit is below 5%; the dotted line is what chance does."
_OF_TESTS = {"ks": "KS", "chi2": "χ²", "wasserstein": "Wasserstein", "mmd": "MMD", "energy": "energy"}


def draw(swept: Swept, summary: Sequence[Line]) -> Mapping[str, list[Figure]]:
    """Draw a run's summary: figures by the section that they stand in."""
    return {"answers": list(_answers(swept, summary)), "sample": list(_samples(swept, summary))}


def _answers(swept: Swept, summary: Sequence[Line]) -> Iterator[Figure]:
    cells = [cell for cell in summary if not cell["sample"]]
    if not cells:
        return

    def rows(of: Callable[[Line], Estimate | None]) -> list[tuple[str, Estimate | None]]:
        return [(swept.name(cell) or "the run", of(cell)) for cell in cells]

    def law(name: str) -> list[tuple[str, Estimate | None]]:
        return rows(lambda cell: None if cell[name] is None else Estimate(cell[name]))

    panels = [
        Panel(
            "mean shift, in scales of the noise",
            {"measured": rows(shift_of), "by the law": law("shift_law")},
            level=0.0,
        ),
        Panel("share accused", {"measured": rows(accused_of), "by the law": law("caught_law")}),
    ]
    yield dot_plot("cheats", "What a cheat gains, and how often it is found", _ANSWERS, panels)


def _samples(swept: Swept, summary: Sequence[Line]) -> Iterator[Figure]:
    cells = [cell for cell in summary if cell["sample"]]
    if cells:
        series = {
            swept.name(cell) or "the run": [(_OF_TESTS[test], Estimate(cell["flagged"][test])) for test in TESTS]
            for cell in cells
        }
        yield dot_plot("tests", "Which tests flag a sample", _SAMPLE, [Panel("share flagged", series, level=0.05)])
