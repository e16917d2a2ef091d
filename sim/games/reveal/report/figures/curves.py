"""Which cells make one line of a figure, what the line is called, and what its figure's text says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from compliance.mechanisms import MECHANISMS
from sim.games.reveal.report.cells import ReportCell
from sim.report.notation import number, setting, symbol

LEAST_ERROR = 1e-6
"""Smaller errors are rounding: they do not decide the scale of a figure."""


def curves_of(cells: Iterable[ReportCell], without: Sequence[str]) -> dict[str, list[ReportCell]]:
    """Group cells into lines: alike in every swept value except some. What differs between lines names them."""
    cells = list(cells)
    keys = [key for key in (cells[0].swept if cells else ()) if key not in without]
    told_apart = [key for key in keys if len({setting(cell.swept[key]) for cell in cells}) > 1]
    lines: dict[str, list[ReportCell]] = {}
    for cell in cells:
        label = label_of({key: setting(cell.swept[key]) for key in told_apart})
        lines.setdefault(label or "mean over trials", []).append(cell)
    return lines


def by_mechanism(cells: Iterable[ReportCell]) -> dict[str, list[ReportCell]]:
    """Group cells into a line for each mechanism, under its name."""
    lines: dict[str, list[ReportCell]] = {}
    for cell in cells:
        lines.setdefault(MECHANISMS[cell.mechanism].title, []).append(cell)
    return lines


def label_of(told: Mapping[str, str]) -> str:
    """Name a line. Names of strategies speak for themselves; a strategy's own decoder needs no name."""
    told = {key: text for key, text in told.items() if text != "own"}
    if "developer.strategy" not in told:
        return ", ".join(f"{symbol(key)} = {text}" for key, text in told.items())
    named = ("developer.strategy", "developer.decoder")
    return ", ".join(dict.fromkeys(text if key in named else f"{symbol(key)} = {text}" for key, text in told.items()))


def values_of(lines: Mapping[str, Iterable[ReportCell]], tell: Callable[[ReportCell], str]) -> str:
    """Tell every cell of every line, for readers who cannot see them."""
    return "; ".join(f"{label}: {', '.join(map(tell, line))}" for label, line in lines.items())


def ticks_at(places: Iterable[float]) -> dict[float, str]:
    """Name the places at which cells stand."""
    return {place: number(place, 6) for place in places}


def people_shown(shown: int, people: int) -> str:
    """Say of how many people a figure shows so many."""
    return f"the first {shown} of {people:,} people" if people > shown else f"all {people:,} people"


def median_error(cell: ReportCell) -> float | None:
    """Give the median error of its answers; None where they are no numbers."""
    error = cell.summary.get("query_error_median")
    return None if error is None else float(error)


def capital(text: str) -> str:
    """Begin a text as a sentence."""
    return text[:1].upper() + text[1:]
