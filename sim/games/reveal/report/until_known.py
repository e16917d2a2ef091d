"""The number of answers of a trial, and the number of exact answers until everybody was known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sim.games.reveal.report.cells import ReportCell
from sim.report.notation import number, setting


@dataclass(frozen=True)
class UntilKnown:
    """Cells without noise that differ in the number of queries only.

    Attributes
    ----------
    played : swept values that distinguish these cells from others, as text by dotted key.
    fewest : fewest answers, size query included, with which everybody was known in every trial; for a strategy that
        stops by itself, the most of any trial. None where no number tried was enough.
    tried : most answers tried.
    bound : theoretical minimum for any strategy, log2 C(n, n0) over the bits of an answer.
    printed : number of queries, without the size query, for which a paper prints that everybody was known.
    """

    played: Mapping[str, str]
    fewest: int | None
    tried: int
    bound: int
    printed: int | None


def as_needed(cell: ReportCell) -> bool:
    """Return whether the strategy itself decided the number of answers."""
    given, numbers = cell.scenario.queries, {trial["queries"] for trial in cell.trials}
    return given == "needed" or len(numbers) > 1 or (isinstance(given, int) and numbers != {given})


def asked(cell: Mapping[str, Any]) -> str:
    """Return as text the number of answers of a trial, size queries included: mean and maximum."""
    mean, most = cell["answers"], cell["answers_most"]
    return f"{most:,}" if mean == most else f"{number(mean)} ≤{most:,}"


def until_known(cells: Sequence[ReportCell]) -> tuple[UntilKnown, ...]:
    """Return each strategy's fewest exact answers with everybody known in every trial; empty without a comparison."""
    exact = [cell for cell in cells if not cell.noisy and "answers_bound" in cell.summary]
    groups: dict[tuple[tuple[str, str], ...], list[ReportCell]] = {}
    for cell in exact:
        alike = tuple((key, setting(value)) for key, value in cell.swept.items() if key != "developer.queries")
        groups.setdefault(alike, []).append(cell)
    told_apart = {key for alike in groups for key, text in alike if any(dict(other)[key] != text for other in groups)}
    rows = []
    for alike, group in groups.items():
        enough = [cell.summary["answers_most"] for cell in group if cell.summary["exact"] == len(cell.trials)]
        printed = [cell.queries for cell in group if cell.printed("leakage") == 100]
        played = {key: text for key, text in alike if key in told_apart}
        rows.append(
            UntilKnown(
                played or {"developer.strategy": group[0].scenario.developer.strategy},
                min(enough, default=None),
                max(cell.summary["answers_most"] for cell in group),
                round(max(cell.summary["answers_bound"] for cell in group)),
                min(printed, default=None),
            )
        )
    return tuple(rows) if len(exact) > 1 and any(row.fewest is not None for row in rows) else ()
