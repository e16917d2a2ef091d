"""The tables of the reveal game's page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compliance.mechanisms import MECHANISMS
from sim.games.reveal.report.accuracy_by_group import LossTestRow
from sim.games.reveal.report.cells import ReportCell, target_rate
from sim.games.reveal.report.until_known import UntilKnown, as_needed, asked
from sim.games.reveal.report.verdicts import worthless
from sim.games.reveal.report.wording import majority_note
from sim.report.cells import trials_id
from sim.report.estimates import FEWEST
from sim.report.notation import MISSING, as_float, count, number, plural, setting, span, symbol
from sim.report.tables import Column, PageTable

_GUESS = "the developer's guess"
_MODELS = "accuracy of models, %"
_BASE = "h₀"


def cell_table(cells: Sequence[ReportCell]) -> PageTable:
    """Lay out what was measured, cell by cell."""
    keys = list(cells[0].swept)
    columns = [
        Column(
            symbol(key),
            [_swept(cell, key) for cell in cells],
            numeric=not any(math.isnan(as_float(cell.swept[key])) for cell in cells),
        )
        for key in keys
    ]
    if any(map(as_needed, cells)):
        about = "Metric queries, and the size query: a model that accepts one person asks how large the groups are."
        columns.append(Column("answers asked", [asked(cell.summary) for cell in cells], about=about))
    features = any("leakage_features" in cell.summary for cell in cells)
    columns += [
        Column(
            "together, %" if features else "leakage, %",
            [str(cell.leakage) for cell in cells],
            group=_GUESS,
            about="The mean of the shares of either group that the developer guesses right. A coin gets 50%.",
            stays=True,
        ),
        Column(
            "features, %" if features else "no query, %",
            [str(cell.baseline) for cell in cells],
            group=_GUESS,
            about="The same before any answer, by the base model h₀ alone: the one that the developer had anyway.",
        ),
        Column(
            "everyone right",
            [f"{cell.summary['exact']:,}/{len(cell.trials):,}" for cell in cells],
            group=_GUESS,
            about="In how many of the cell's trials nobody was guessed wrong. A cell is one combination of settings.",
        ),
        Column(
            "people right",
            [count(cell.summary["recovered"]) for cell in cells],
            group=_GUESS,
            about="How many people are guessed right, whichever their group.",
        ),
    ]
    if any(1 < cell.targeted < cell.summary["n"] for cell in cells):
        aimed = [f"{count(cell.mean('targeted_recovered'))} of {count(cell.targeted)}" for cell in cells]
        columns.append(Column("right, of those aimed at", aimed, group=_GUESS))
    if any("targeted_rate" in cell.summary for cell in cells):
        rates = [_rate(cell) for cell in cells]
        about = "In how many of the cell's trials the one person aimed at is guessed right."
        columns.append(Column("person aimed at right, %", rates, group=_GUESS, about=about, stays=True))
    if any("targeted_balanced" in cell.summary for cell in cells):
        balanced = [number(_percent(cell, "targeted_balanced")) for cell in cells]
        columns.append(Column("either group, %", balanced, group=_GUESS))
    optional = (
        ("answers, %" if features else "answers alone, %", "leakage_answers"),
        ("smaller group named, %", "leakage_by_size"),
        ("one person known, %", "leakage_by_person"),
    )
    columns += [
        Column(head, [number(cell.summary.get(key)) for cell in cells], group=_GUESS)
        for head, key in optional
        if any(key in cell.summary for cell in cells)
    ]
    columns += [
        Column(head, [number(_percent(cell, key)) for cell in cells], group=_MODELS)
        for head, key in ((_BASE, "accuracy_base"), ("mean", "accuracy_models"), ("least", "accuracy_models_least"))
        if any(key in cell.summary for cell in cells) and (head != _BASE or _own_accuracy(cells) is None)
    ]
    if any("flagged" in cell.summary for cell in cells):
        columns.append(Column("models flagged", [number(cell.summary.get("flagged")) for cell in cells]))
    if any(cell.summary.get("query_error_mean") != 0 for cell in cells):
        columns += [
            Column(head, [number(cell.summary.get(key)) for cell in cells], group="error of an answer")
            for head, key in (("median", "query_error_median"), ("mean", "query_error_mean"))
        ]
    if not all(map(_spent_whole, cells)):
        columns.append(Column("ε spent", [number(cell.summary["epsilon_spent"], 6) for cell in cells]))
    return PageTable(columns, _cell_notes(cells), [trials_id(cell.swept) for cell in cells])


def _own_accuracy(cells: Sequence[ReportCell]) -> str | None:
    """Give h0's accuracy, in percent, where it is one for all cells."""
    texts = {number(_percent(cell, "accuracy_base")) for cell in cells}
    return texts.pop() if len(texts) == 1 else None


def _rate(cell: ReportCell) -> str:
    if "targeted_rate" not in cell.summary:
        return MISSING
    return str(target_rate(cell.summary))


def _percent(cell: ReportCell, key: str) -> float | None:
    return 100 * cell.summary[key] if key in cell.summary else None


def _spent_whole(cell: ReportCell) -> bool:
    return as_float(cell.summary["epsilon_spent"]) == cell.epsilon


def _cell_notes(cells: Sequence[ReportCell]) -> list[str]:
    people = span({trial["n"] for cell in cells for trial in cell.trials})
    notes = [
        f"Means over trials{_intervals(cells)}. "
        "Leakage is balanced accuracy: 50% is a coin, 100% is everybody. "
        + (
            "Features alone, answers alone, and both together."
            if any("leakage_features" in cell.summary for cell in cells)
            else "No query is what the developer reached before asking."
        ),
        f"People right are of {people}. {majority_note(cells)}",
    ]
    if below := sum(map(worthless, cells)):
        notes.append(
            f"In {below:,} of {plural(len(cells), 'cell')} the developer ends below its guess before asking, and the "
            "interval of the difference too: read this way, the answers were of no use."
        )
    if any(map(as_needed, cells)):
        notes.append(
            "Answers asked: the size query counts; where the strategy stops by itself, their mean and the most that a "
            "trial took."
        )
    if (own := _own_accuracy(cells)) not in (None, MISSING):
        notes.append(f"The accuracy of the base model h₀ itself is {own}%.")
    if any("flagged" in cell.summary for cell in cells):
        notes.append(
            "Models flagged: how many models of a trial, on average, differ from an earlier one in few people."
        )
    if any(cell.noisy for cell in cells) and all(map(_spent_whole, cells)):
        notes.append("Every trial spent its whole budget, ε.")
    if any(cell.noisy and cell.mechanism == "conceal" for cell in cells):
        notes.append("Attribute-Conceal's noise has no mean, so a mean error under it is chance; read the median.")
    return notes


def _intervals(cells: Sequence[ReportCell]) -> str:
    many = [len(cell.trials) for cell in cells]
    none = f"fewer than {FEWEST} trials give no interval"
    if max(many) < FEWEST:
        return f"; {none}"
    return " and their 95% intervals" + (f"; {none}" if min(many) < FEWEST else "")


def _swept(cell: ReportCell, key: str) -> str:
    if key == "compliance.mechanism":
        return MECHANISMS[cell.mechanism].title
    if key == "developer.queries":
        return "as needed" if cell.scenario.queries == "needed" else f"{cell.queries:,}"
    return setting(cell.swept[key])


def known_table(rows: Sequence[UntilKnown], cells: Sequence[ReportCell]) -> PageTable:
    """Lay out how many answers it took until everybody was known."""
    columns = [Column(symbol(key), [row.played[key] for row in rows], numeric=False) for key in rows[0].played]
    columns += [
        Column("answers", [f"more than {row.tried:,}" if row.fewest is None else f"{row.fewest:,}" for row in rows]),
        Column("least ever", [f"{row.bound:,}" for row in rows]),
    ]
    if any(row.printed is not None for row in rows):
        printed = [MISSING if row.printed is None else f"{row.printed:,}" for row in rows]
        columns.append(Column("printed in the paper, m", printed))
    trials = span({len(cell.trials) for cell in cells if not cell.noisy})
    notes = [
        f"Everybody right in every trial, of {trials}: the fewest answers of those tried, or, where the strategy stops "
        "by itself, the most that a trial took. The size query counts; the paper's m leaves it out.",
        "Least ever: log2 C(n, n₀) over the bits that an answer has. No strategy whatever can do with fewer.",
    ]
    return PageTable(columns, notes)


def test_table(rows: Sequence[LossTestRow]) -> PageTable:
    """Lay out the loss test."""
    columns = [
        Column("models", [str(row.models) for row in rows]),
        Column("right about the advantaged, %", [str(row.advantaged) for row in rows]),
        Column("right about the disadvantaged, %", [str(row.disadvantaged) for row in rows]),
        Column("gap, points", [str(row.gap) for row in rows]),
    ]
    if any(row.data for row in rows):
        columns.insert(0, Column("data", [row.data for row in rows], numeric=False))
    return PageTable(columns)
