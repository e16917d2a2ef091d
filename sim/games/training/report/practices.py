"""What each practice changes: against plain training at the same epsilon, trial by trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from developer.training.play import PLAIN
from sim.games.game import Line
from sim.games.training.report.cells import PRACTICE
from sim.report.estimates import Estimate, estimate

_SIGNED = (-1.0, 1.0)


@dataclass(frozen=True)
class Change:
    """A practice less plain, on the same splits of the table.

    Attributes
    ----------
    cell : the practice's.
    accuracy, distance, minority : change of the accuracy, of the absolute risk difference, of the disadvantaged group's
        accuracy; None where plain was not played, or no trial in common.
    """

    cell: Line
    accuracy: Estimate | None
    distance: Estimate | None
    minority: Estimate | None


def changes(axes: Sequence[str], cells: Sequence[Line], lines: Sequence[Line]) -> list[Change]:
    """Hold each cell against the one that differs in the practice alone: plain.

    Parameters
    ----------
    axes : sequence of str
        The swept keys, the practice among them.
    cells : sequence of mapping
        Of models.
    lines : sequence of mapping
        The run's trials.
    """
    found = []
    for cell in cells:
        own = _trials(axes, cell, lines)
        plain = _trials(axes, {**cell, PRACTICE: PLAIN}, lines)
        both = [(own[trial], plain[trial]) for trial in own if trial in plain]
        if cell[PRACTICE] == PLAIN or not both:
            found.append(Change(cell, None, None, None))
            continue
        found.append(
            Change(
                cell,
                estimate([mine["accuracy"] - theirs["accuracy"] for mine, theirs in both], _SIGNED),
                estimate([abs(mine["gap"]) - abs(theirs["gap"]) for mine, theirs in both], _SIGNED),
                estimate([mine["accuracies"][0] - theirs["accuracies"][0] for mine, theirs in both], _SIGNED),
            )
        )
    return found


def _trials(axes: Sequence[str], swept: Line, lines: Sequence[Line]) -> dict[int, Line]:
    return {line["trial"]: line for line in lines if all(line[key] == swept[key] for key in axes)}
