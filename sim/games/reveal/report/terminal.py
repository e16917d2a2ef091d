"""The table at the end of a run, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from sim.games.reveal.report.cells import target_rate
from sim.games.reveal.report.until_known import asked
from sim.report.cells import scenario_of
from sim.report.estimates import PERCENT, estimate_of
from sim.report.notation import MISSING, count, number, setting, span, symbol
from sim.report.terminal import Fitted, frame, kept, left_out
from sim.scenarios.sweep import Sweep

_ALWAYS = ("leakage\n%", "no\nquery", "all\nright", "error\nmedian")

_MAIN = ("target\nright, %", "leakage\n%")
"""What a run is about: the first of these that it has."""

_GIVE_WAY = ("people\nright", "error\nmean", "error\nmedian")
"""What is left to the report where a terminal has no room for it."""

_PLAYED = 12
"""So many letters the column of words gets at least."""


def terminal(sweep: Sweep, summary: Sequence[Mapping[str, Any]]) -> Fitted:
    """Lay out a run's summary for the terminal.

    Parameters
    ----------
    sweep : Sweep
    summary : sequence of mapping
        What the run came to, cell by cell.

    Returns
    -------
    Fitted
        A table; its caption says what the columns are. The names of swept keys give way where it is crowded.
    """
    return Fitted(lambda room: _laid(sweep, summary, room))


def _laid(sweep: Sweep, summary: Sequence[Mapping[str, Any]], room: int) -> Table:
    keys = list(sweep.scenario.axes)
    scenarios = [scenario_of(sweep, cell) for cell in summary]
    table = frame(sweep.scenario.scenario.name)
    columns = {
        "answers\nasked": [
            asked(cell) if any(scenario.queries == "needed" for scenario in scenarios) else MISSING for cell in summary
        ],
        "least\never": [count(cell["answers_bound"]) if cell.get("answers_bound") else MISSING for cell in summary],
        "leakage\n%": [_leakage(cell) for cell in summary],
        "no\nquery": [f"{cell['baseline_leakage']:.1f}" for cell in summary],
        "all\nright": [f"{cell['exact']}/{cell['trials']}" for cell in summary],
        "people\nright": [count(cell["recovered"]) for cell in summary],
        "target\nright, %": [_targeted(cell) for cell in summary],
        "either\ngroup": [
            f"{100 * cell['targeted_balanced']:.1f}" if "targeted_balanced" in cell else MISSING for cell in summary
        ],
        "answers\nalone": [_optional(cell, "leakage_answers") for cell in summary],
        "models\nflagged": [_optional(cell, "flagged") for cell in summary],
        "error\nmedian": [number(cell.get("query_error_median")) for cell in summary],
        "error\nmean": [number(cell.get("query_error_mean")) for cell in summary],
    }
    shown = {head: texts for head, texts in columns.items() if set(texts) - {MISSING} or (head in _ALWAYS)}
    if "answers\nasked" not in shown:
        shown.pop("least\never", None)
    swept = [[symbol(key), *(setting(cell[key]) for cell in summary)] for key in keys]
    for head in _GIVE_WAY:
        if head in shown and sum(map(_width, (*swept, *([name, *texts] for name, texts in shown.items())))) > room:
            del shown[head]
    total = sum(map(_width, (*swept, *([name, *texts] for name, texts in shown.items()))))
    crowded = total > room and len(keys) > 1
    first = [["x" * _PLAYED]] if crowded else swept
    fitting = kept(first, shown, [next(head for head in _MAIN if head in shown)], room)
    if crowded:
        # One column of words, that may take two lines, says what several no longer have the room for.
        told = [key for key in keys if key != "developer.queries" or "answers\nasked" not in fitting]
        words = [", ".join(filter(None, (_words(key, cell[key]) for key in told))) for cell in summary]
        table.add_column(Text("played"), overflow="fold")
        rows = [[word] for word in words]
    else:
        for key in keys:
            justify: Any = "right" if _numeric(key, summary) else "left"
            table.add_column(Text(symbol(key)), justify=justify, overflow="fold")
        rows = [[setting(cell[key]) for key in keys] for cell in summary]
    for head in fitting:
        table.add_column(Text(head), justify="right", no_wrap=True)
    for row, own in enumerate(rows):
        table.add_row(*(Text(text) for text in own), *(Text(texts[row]) for texts in fitting.values()))
    table.caption = Text(_legend(summary, fitting) + left_out(shown, fitting), style="dim")
    return table


def _words(key: str, value: object) -> str:
    """Say a swept value where no head of a column does; nothing of what a strategy decides itself, or what is usual."""
    if value in ("own", "needed", "float64"):
        return ""
    return setting(value) if isinstance(value, str) else f"{symbol(key)} {setting(value)}"


def _numeric(key: str, summary: Sequence[Mapping[str, Any]]) -> bool:
    return all(cell[key] == "inf" or not isinstance(cell[key], str) for cell in summary)


def _targeted(cell: Mapping[str, Any]) -> str:
    if "targeted_rate" not in cell:
        return MISSING
    return target_rate(cell).text(1, ends=0)


def _optional(cell: Mapping[str, Any], key: str) -> str:
    return f"{cell[key]:.1f}" if key in cell else MISSING


def _width(texts: Iterable[str]) -> int:
    """Measure a column, and the two blanks between it and the next."""
    return max(len(line) for text in texts for line in text.split("\n")) + 2


def _leakage(cell: Mapping[str, Any]) -> str:
    return estimate_of(cell["leakage"], cell["leakage_sd"], cell["trials"], PERCENT).text(1, ends=0)


def _below(cell: Mapping[str, Any]) -> bool:
    """Tell whether a cell's leakage, and its interval, lies below what the developer knew before asking."""
    if "targeted_rate" in cell:
        return False
    high = estimate_of(cell["leakage"], cell["leakage_sd"], cell["trials"], PERCENT).high
    return high is not None and high < cell["baseline_leakage"]


def _legend(summary: Sequence[Mapping[str, Any]], shown: Iterable[str]) -> str:
    if not summary:
        return "No trial finished."
    people = span({cell["n"] for cell in summary})
    features = any("leakage_features" in cell for cell in summary)
    unasked = "features alone told" if features else "the developer knew"
    said = {
        "answers\nasked": "answers asked: the size query counted; ≤: at most, where a strategy stops by itself. ",
        "least\never": "least ever: log2 C(n, n0) bits over the bits of an answer. ",
        "leakage\n%": "leakage: balanced accuracy, and its 95% interval; 50 is a guess. ",
        "no\nquery": f"no query: what {unasked} before asking. ",
        "all\nright": "all right: trials with everybody right. ",
        "people\nright": f"people right: of {people}. ",
        "target\nright, %": "target right: how often the one person aimed at was, and its 95% interval. ",
        "either\ngroup": "either group: the mean of both groups' shares; 50 is a guess. ",
        "answers\nalone": "answers alone: without what h0 or public people say. ",
        "models\nflagged": "models flagged: a trial's, by the differencing detector. ",
        "error\nmedian": "error: of the answers. ",
    }
    text = "".join(words for head, words in said.items() if head in set(shown))
    if any(_below(cell) for cell in summary):
        text += "below no query: read this way, answers were of no use. "
    return text.rstrip()
