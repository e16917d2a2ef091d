"""Lines of figures: the grouping of cells into lines, the lines' names, and their values as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from compliance.mechanisms import MECHANISMS
from sim.games.reveal.report.cells import ReportCell
from sim.report.notation import number, setting, symbol

LEAST_ERROR = 1e-6
"""Largest error that counts as rounding, and does not decide the scale of a figure."""


def curves_of(cells: Iterable[ReportCell], without: Sequence[str]) -> dict[str, list[ReportCell]]:
    """Group cells into lines of equal swept values, some keys excepted. A line's name has the values that differ."""
    cells = list(cells)
    keys = [key for key in (cells[0].swept if cells else ()) if key not in without]
    told_apart = [key for key in keys if len({setting(cell.swept[key]) for cell in cells}) > 1]
    lines: dict[str, list[ReportCell]] = {}
    for cell in cells:
        label = label_of({key: setting(cell.swept[key]) for key in told_apart})
        lines.setdefault(label or "mean over trials", []).append(cell)
    return lines


def by_mechanism(cells: Iterable[ReportCell]) -> dict[str, list[ReportCell]]:
    """Group cells into one line per mechanism, by its title."""
    lines: dict[str, list[ReportCell]] = {}
    for cell in cells:
        lines.setdefault(MECHANISMS[cell.mechanism].title, []).append(cell)
    return lines


def label_of(values: Mapping[str, str]) -> str:
    """Return the name of a line. Strategies are named without their key, and a strategy's usual decoder not at all."""
    values = {key: text for key, text in values.items() if text != "own"}
    if "developer.strategy" not in values:
        return ", ".join(f"{symbol(key)} = {text}" for key, text in values.items())
    named = ("developer.strategy", "developer.decoder")
    return ", ".join(dict.fromkeys(text if key in named else f"{symbol(key)} = {text}" for key, text in values.items()))


def values_of(lines: Mapping[str, Iterable[ReportCell]], tell: Callable[[ReportCell], str]) -> str:
    """Return every cell's value in words, line by line, for readers who cannot see the figure."""
    return "; ".join(f"{label}: {', '.join(map(tell, line))}" for label, line in lines.items())


def ticks_at(places: Iterable[float]) -> dict[float, str]:
    """Return axis labels by place."""
    return {place: number(place, 6) for place in places}


def people_shown(drawn: int, people: int) -> str:
    """Return in words how many of the people a figure shows."""
    return f"the first {drawn} of {people:,} people" if people > drawn else f"all {people:,} people"


def median_error(cell: ReportCell) -> float | None:
    """Return the median error of a cell's answers; None where they are not numbers."""
    error = cell.summary.get("query_error_median")
    return None if error is None else float(error)


def capital(text: str) -> str:
    """Return a text with its first letter as a capital."""
    return text[:1].upper() + text[1:]
