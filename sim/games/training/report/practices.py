"""What each practice changes: against plain training at the same epsilon, trial by trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from developer.training.play import PLAIN
from sim.games.game import Line
from sim.games.training.report.cells import PRACTICE
from sim.report.estimates import Estimate, estimate

_MEASURED: tuple[Callable[[Line], float], ...] = (
    lambda line: line["accuracy"],
    lambda line: abs(line["gap"]),
    lambda line: line["accuracies"][0],
)


@dataclass(frozen=True)
class Change:
    """A practice's cell, and what it has more than plain training, on the same splits of the table.

    That is of the accuracy, of the absolute risk difference, and of the disadvantaged group's accuracy; None where
    plain was not played, or no trial in common.
    """

    cell: Line
    accuracy: Estimate | None
    distance: Estimate | None
    minority: Estimate | None


def changes(axes: Sequence[str], cells: Sequence[Line], lines: Sequence[Line]) -> list[Change]:
    """Hold each cell of a model against the one that differs in the practice alone: plain."""
    found = []
    for cell in cells:
        own, plain = (_trials(axes, one, lines) for one in (cell, {**cell, PRACTICE: PLAIN}))
        both = [] if cell[PRACTICE] == PLAIN else [(own[trial], plain[trial]) for trial in own if trial in plain]
        less = ([of(mine) - of(theirs) for mine, theirs in both] for of in _MEASURED)
        found.append(Change(cell, *(estimate(values, (-1.0, 1.0)) if values else None for values in less)))
    return found


def _trials(axes: Sequence[str], swept: Line, lines: Sequence[Line]) -> dict[int, Line]:
    return {line["trial"]: line for line in lines if all(line[key] == swept[key] for key in axes)}
