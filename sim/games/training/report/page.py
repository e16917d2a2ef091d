"""What the page of a run of the training game tells."""

from __future__ import annotations

from collections.abc import Sequence

from sim.games.game import Line
from sim.games.training.report.cells import accuracy_of, gap_of, head
from sim.games.training.scenario import TrainingScenario
from sim.report.notation import setting
from sim.report.page import Page, Section
from sim.report.tables import Column, PageTable
from sim.scenarios.sweep import Sweep


def page(sweep: Sweep[TrainingScenario], lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    """Make the page of a run."""
    columns = [
        *(Column(head(key), [setting(cell[key]) for cell in summary], numeric=False) for key in sweep.scenario.axes),
        *(
            [
                Column("accuracy", [accuracy_of(cell).text(3) for cell in summary]),
                Column("risk difference", [gap_of(cell).text(3) for cell in summary]),
            ]
            if summary and "accuracy" in summary[0]
            else []
        ),
        Column("ε", [setting(cell["promised"]) for cell in summary]),
    ]
    return Page(
        played="A developer trained models.",
        findings=("No trial finished.",) if not summary else ("Done.",),
        settings=[],
        sections=(Section("models", "The models", table=PageTable(columns, ())),) if summary else (),
        assumptions=(),
    )
