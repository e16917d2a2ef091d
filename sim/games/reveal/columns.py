"""Columns of the tables of a reveal run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compliance.mechanisms import MECHANISMS
from fairwall.laws.privacy.exposure import odds
from fairwall.laws.privacy.most_exposed import Sure, limit
from sim.games.game import Line
from sim.games.reveal import printed
from sim.games.reveal.cells import (
    LossTestRow,
    ReportCell,
    UntilKnown,
    as_needed,
    asked,
    loss_test_rows,
    report_cells,
    target_rate,
    until_known,
    worthless,
)
from sim.report.cells import Swept
from sim.report.columns import Measure, Sheet
from sim.report.estimates import FEWEST, IntervalEstimate, share
from sim.report.notation import MISSING, as_float, count, number, plural, setting, span
from sim.scenarios.sweep import Sweep

_GUESS = "the developer's guess"
_MODELS = "accuracy of models, %"
_AS_NEEDED = "as needed"

Cells = Sequence[ReportCell]

_ABOUT = "balanced accuracy, the mean of the shares of either group that are guessed right; a coin gets 50%"
LEAKAGE: Measure[Line] = Measure("leakage", unit="%", about=_ABOUT, scale=(50.0, 100.0))


def _told(key: str) -> Callable[[ReportCell], Any]:
    return lambda cell: cell.summary.get(key)


def _percent(key: str) -> Callable[[ReportCell], float | None]:
    return lambda cell: 100 * cell.summary[key] if key in cell.summary else None


def _if_noisy(of: Callable[[ReportCell], Any]) -> Callable[[ReportCell], Any]:
    return lambda cell: of(cell) if cell.noisy else None


def _person_risk(sure: Sure | None) -> IntervalEstimate | None:
    """Return the share that is named, in percent; the interval treats the required confidence as known."""
    if sure is None or sure.named is None:
        return None
    people = int(sure.disadvantaged.sum())
    return replace(share(round(sure.named * people), people), mean=100 * sure.named)


def _spent_whole(cell: ReportCell) -> bool:
    return as_float(cell.summary["epsilon_spent"]) == cell.epsilon


def _own_accuracy(cells: Cells) -> str | None:
    texts = {number(_percent("accuracy_base")(cell)) for cell in cells}
    return texts.pop() if len(texts) == 1 else None


_ASKED: tuple[Measure[ReportCell], ...] = (
    Measure(
        "answers asked",
        of=lambda cell: asked(cell.summary),
        short="answers\nasked",
        kept=True,
        when=lambda cells: any(map(as_needed, cells)),
        about="metric queries, and the size query, a model that accepts one person; on average, and ≤: at most",
    ),
    Measure(
        "least ever",
        of=lambda cell: count(cell.summary["answers_bound"]) if cell.summary.get("answers_bound") else None,
        short="least\never",
        kept=True,
        on_page=False,
        when=lambda cells: any(map(as_needed, cells)),
        about="log2 C(n, n0) bits over the bits of an answer",
    ),
)


def _guessed(cells: Cells) -> Iterator[Measure[ReportCell]]:
    """Yield the columns of the developer's guess; their number and titles depend on the cells."""
    features = any("leakage_features" in cell.summary for cell in cells)
    people = span({trial["n"] for cell in cells for trial in cell.trials})
    yield Measure(
        "leakage",
        "together" if features else "leakage",
        "%",
        of=lambda cell: cell.leakage,
        digits=1,
        group=_GUESS,
        short="leakage\n%",
        main=True,
        about=_ABOUT,
    )
    yield Measure(
        "baseline",
        "features" if features else "no query",
        "%",
        of=lambda cell: cell.baseline,
        digits=1,
        group=_GUESS,
        short="no\nquery",
        bare=True,
        kept=True,
        about="the same before any answer, by " + ("features alone" if features else "the base model h₀ alone"),
    )
    yield Measure(
        "everyone right",
        of=lambda cell: f"{cell.summary['exact']:,}/{len(cell.trials):,}",
        group=_GUESS,
        short="all\nright",
        kept=True,
        about="in how many of a cell's trials nobody was guessed wrong; a cell is one combination of settings",
    )
    yield Measure(
        "people right",
        of=lambda cell: count(cell.summary["recovered"]),
        group=_GUESS,
        short="people\nright",
        about=f"how many of {people} are guessed right, whichever their group",
    )
    yield Measure(
        "right, of those aimed at",
        of=lambda cell: f"{count(cell.mean('targeted_recovered'))} of {count(cell.targeted)}",
        group=_GUESS,
        when=lambda cells: any(1 < cell.targeted < cell.summary["n"] for cell in cells),
    )
    yield Measure(
        "person aimed at right, %",
        of=lambda cell: target_rate(cell.summary) if "targeted_rate" in cell.summary else None,
        digits=1,
        group=_GUESS,
        short="target\nright, %",
        main=any("targeted_rate" in cell.summary for cell in cells),
        about="in how many of a cell's trials the one person aimed at is guessed right",
    )
    yield Measure(
        "either group, %",
        of=_percent("targeted_balanced"),
        group=_GUESS,
        short="either\ngroup",
        kept=True,
        about="the mean of both groups' shares; 50 is a guess",
    )
    yield Measure(
        "answers, %" if features else "answers alone, %",
        of=_told("leakage_answers"),
        group=_GUESS,
        short="answers\nalone",
        about="without what h₀ or public people say",
    )
    yield Measure("smaller group named, %", of=_told("leakage_by_size"), group=_GUESS)
    yield Measure("one person known, %", of=_told("leakage_by_person"), group=_GUESS)


_WORST_OFF = tuple(
    Measure[ReportCell](name, of=_if_noisy(of), digits=digits, group="who is worst off", about=about)
    for name, of, digits, about in (
        (
            "named, 1 in 1,000 wrongly, %",
            lambda cell: _person_risk(cell.sure),
            1,
            "the share of the disadvantaged of whom the attack is so sure, by answers alone, that it names one in "
            "1,000 of the advantaged with them",
        ),
        (
            "by anybody at most, %",
            lambda cell: 100 * limit(cell.epsilon, cell.scenario.compliance.delta),
            None,
            "what that cannot exceed, even where the sizes of both groups are known",
        ),
        (
            "odds of the 100 most exposed, times, of at most e^(2ε)",
            lambda cell: cell.sure and f"{number(cell.sure.surest()[0])} of {number(odds(cell.epsilon))}",
            None,
            "by which factor answers moved the odds of each of them at least, as the attack has it",
        ),
        (
            "right about them, %",
            lambda cell: cell.sure and 100 * cell.sure.surest()[1],
            None,
            "counting both groups equally",
        ),
    )
)
_ANSWERED: tuple[Measure[ReportCell], ...] = (
    Measure("h₀", of=_percent("accuracy_base"), group=_MODELS, when=lambda cells: _own_accuracy(cells) is None),
    Measure("mean", of=_percent("accuracy_models"), group=_MODELS),
    Measure("least", of=_percent("accuracy_models_least"), group=_MODELS),
    Measure(
        "models flagged",
        of=_told("flagged"),
        short="models\nflagged",
        kept=True,
        about="how many models of a trial, on average, differ from an earlier one in few people",
    ),
    *(
        Measure(
            head,
            of=_told(f"query_error_{head}"),
            group="error of an answer",
            short=f"error\n{head}",
            kept=True,
            about=about,
            when=lambda cells: any(cell.summary.get("query_error_mean") != 0 for cell in cells),
        )
        for head, about in (("median", "how far a typical answer is off"), ("mean", ""))
    ),
    Measure(
        "ε spent",
        of=lambda cell: number(cell.summary["epsilon_spent"], 6),
        when=lambda cells: not all(map(_spent_whole, cells)),
    ),
)


def _columns(cells: Cells) -> Iterator[Measure[ReportCell]]:
    yield from _ASKED
    yield from _guessed(cells)
    if any(cell.sure for cell in cells):
        yield from _WORST_OFF
    yield from _ANSWERED


KNOWN: tuple[Measure[UntilKnown], ...] = (
    Measure("answers", of=lambda row: f"more than {row.tried:,}" if row.fewest is None else f"{row.fewest:,}"),
    Measure("least ever", of=lambda row: f"{row.bound:,}"),
    Measure("printed in the paper, m", of=lambda row: None if row.printed is None else f"{row.printed:,}"),
)
TESTS: tuple[Measure[LossTestRow], ...] = (
    Measure("models", of=lambda row: row.models),
    Measure("right about the advantaged", "", "%", of=lambda row: row.advantaged, digits=1),
    Measure("right about the disadvantaged", "", "%", of=lambda row: row.disadvantaged, digits=1),
    Measure("gap", "", "points", of=lambda row: row.gap, digits=1),
)


def swept_in(axes: Sequence[str]) -> Swept:
    """Return the keys that distinguish the cells; a name leaves out values that are usual or the strategy's own."""

    def write(cell: Mapping[str, Any], key: str) -> str:
        if key == "developer.queries" and cell[key] in ("needed", "n", "n-1"):
            return _AS_NEEDED if cell[key] == "needed" else f"{cell.get('queries', cell[key]):,}"
        return MECHANISMS[cell[key]].title if key == "compliance.mechanism" else setting(cell[key])

    def brief(cell: Mapping[str, Any], key: str) -> str:
        return setting(cell[key])

    return Swept(axes, write=write, brief=brief, silent=("own", _AS_NEEDED, "needed", "float64", MISSING))


def tables(sweep: Sweep, lines: Sequence[Line], summary: Sequence[Line]) -> Iterator[Sheet[Any]]:
    """Yield the tables of cells, the paper's figures, answers until everybody was known, and the loss test."""
    cells = report_cells(sweep, lines, summary)
    if not cells:
        return
    axes = list(cells[0].swept)
    useless = ["below no query: read this way, answers were of no use."] if any(map(worthless, cells)) else []
    caption = " ".join(useless)
    yield Sheet(
        "cells",
        "What was measured",
        swept_in(axes),
        cells,
        list(_columns(cells)),
        list(_notes(cells)),
        caption,
        cell=lambda cell: cell.summary,
    )
    if (table := printed.table(sweep, cells)).rows:
        yield table
    if known := until_known(cells):
        trials = span({len(cell.trials) for cell in cells if not cell.noisy})
        notes = (
            f"Everybody right in every trial, of {trials}: the fewest answers of those tried, or, where the strategy "
            "stops by itself, the most that a trial took. The size query counts; the paper's m leaves it out.",
            "Least ever: log2 C(n, n₀) over the bits that an answer has. No strategy whatever can do with fewer.",
        )
        swept, heading = Swept(list(known[0].played)), "Answers until everybody was known"
        yield Sheet("known", heading, swept, known, KNOWN, notes, cell=lambda row: row.played, linked=False)
    if tests := loss_test_rows(cells):
        data: Measure[LossTestRow] = Measure("data", of=lambda row: row.data)
        keys = [data] if any(row.data for row in tests) else []
        heading = "What the outsider saw: the loss test"
        yield Sheet("loss-test", heading, Swept(()), tests, TESTS, keys=keys, linked=False)


def _notes(cells: Cells) -> Iterator[str]:
    features = any("leakage_features" in cell.summary for cell in cells)
    people = span({trial["n"] for cell in cells for trial in cell.trials})
    rights = span({cell.majority for cell in cells})
    many = [len(cell.trials) for cell in cells]
    none = f"fewer than {FEWEST} trials give no interval"
    intervals = " and their 95% intervals" if max(many) >= FEWEST else ""
    few = f"; {none}" if min(many) < FEWEST else ""
    both = "Features alone, answers alone, and both together."
    yield (
        f"Means over trials{intervals}{few}. Leakage is balanced accuracy: 50% is a coin, 100% is everybody. "
        f"{both if features else 'No query is what the developer reached before asking.'}"
    )
    yield (
        f"People right are of {people}. Naming the larger group for everybody gets {rights} people right, with a "
        "leakage of 50%."
    )
    if any(cell.sure and cell.noisy for cell in cells):
        yield (
            "Who is worst off: people of all trials together, by answers alone. What epsilon allows holds for whoever "
            "knows the sizes of both groups; this attack knows nobody's group, and stays below. Rates need at least "
            "1,000 of the advantaged; their intervals take for known how sure the attack has to be."
        )
    if below := sum(map(worthless, cells)):
        yield (
            f"In {below:,} of {plural(len(cells), 'cell')} the developer ends below its guess before asking, and the "
            "interval of the difference too: read this way, the answers were of no use."
        )
    if any(map(as_needed, cells)):
        yield (
            "Answers asked: the size query counts; where the strategy stops by itself, their mean and the most that a "
            "trial took."
        )
    if (own := _own_accuracy(cells)) not in (None, MISSING):
        yield f"The accuracy of the base model h₀ itself is {own}%."
    if any(cell.noisy for cell in cells) and all(map(_spent_whole, cells)):
        yield "Every trial spent its whole budget, ε."
    if any(cell.noisy and cell.mechanism == "conceal" for cell in cells):
        yield "Attribute-Conceal's noise has no mean, so a mean error under it is chance; read the median."
