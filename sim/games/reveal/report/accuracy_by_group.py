"""Results of the outside adversary: the released model's accuracy on each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sim.games.reveal.report.cells import ReportCell
from sim.report.estimates import PERCENT, IntervalEstimate, estimate
from sim.report.notation import setting, symbol


@dataclass(frozen=True)
class LossTestRow:
    """The loss test on one kind of data.

    Attributes
    ----------
    data : swept values that the data depend on; empty where none is swept.
    models : number of distinct trials: fairness queries made afterwards do not change the model.
    advantaged, disadvantaged : share of right decisions on each group's public rows, in percent.
    gap : mean size of their difference, in points.
    """

    data: str
    models: int
    advantaged: IntervalEstimate
    disadvantaged: IntervalEstimate
    gap: IntervalEstimate


def loss_test_rows(cells: Sequence[ReportCell]) -> tuple[LossTestRow, ...]:
    """Return the loss tests over the cells. Cells with the same data share trials' models, which count once."""
    found: dict[str, set[tuple[int, float, float]]] = {}
    for cell in cells:
        # The released model depends on the data and on the seed, not on the audit.
        swept = {key: value for key, value in cell.swept.items() if key.startswith(("data.", "adversary."))}
        data = ", ".join(f"{symbol(key)} = {setting(value)}" for key, value in swept.items())
        for trial in cell.trials:
            if "gap_base" in trial:
                accuracies = 100 * trial["accuracy_advantaged"], 100 * trial["accuracy_disadvantaged"]
                found.setdefault(data, set()).add((trial["seed"], *accuracies))
    rows = []
    for data, tests in found.items():
        _, advantaged, disadvantaged = zip(*sorted(tests), strict=True)
        gaps = [abs(one - other) for one, other in zip(advantaged, disadvantaged, strict=True)]
        rows.append(LossTestRow(data, len(tests), *(estimate(of, PERCENT) for of in (advantaged, disadvantaged, gaps))))
    return tuple(rows)
