"""What the page of a run of the training game tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sim.games.game import Line
from sim.games.training.report import canary_audit, practices, printed, told_rates
from sim.games.training.report.by_group import by_group
from sim.games.training.report.cards import model_cards, note, rate_cards
from sim.games.training.report.cells import (
    PRACTICE,
    accuracy_of,
    cell_table,
    gap_of,
    kind_of,
    models_of,
    promised_text,
    rates_of,
    swept_notes,
)
from sim.games.training.report.fronts import MEANS, Placed, placed
from sim.games.training.report.printed import comparisons
from sim.games.training.report.tradeoff import tradeoff
from sim.games.training.report.wording import findings, played, settings
from sim.games.training.scenario import TrainingScenario
from sim.report.drawing import Look, looks
from sim.report.estimates import INTERVALS
from sim.report.notation import MISSING, as_float, number
from sim.report.page import Page, Section, Term, sections
from sim.report.reproduction import Comparison
from sim.report.tables import Column
from sim.scenarios.sweep import Sweep

ASSUMPTIONS: tuple[Term, ...] = (
    (
        "ε of records",
        "What a private model promises, by the steps that were really taken: two tables of which one has a record "
        "more, its group included. Everything that read private rows is in it, sums by group that compliance told "
        "too. How many records there are is public. Layers, steps and strengths were chosen on Adult by hand, which "
        "is not accounted for. “∞”: nothing is promised.",
    ),
    (
        "ε of A",
        "What compliance charged to its ledger: two tables in which one person's protected attribute differs. It is "
        "about what was told of A alone, and is never added to the ε of records. Where the developer holds A, nobody "
        "is asked.",
    ),
    (
        "What is not private",
        "Features and labels of those trained on are the developer's. Test rows' labels and groups are the referee's "
        "alone: it scores, exactly. Where decisions depend on the group, a row's decision is that of its own group.",
    ),
    (
        "Risk difference",
        "The advantaged group's rate of decision 1 less the disadvantaged one's, on the test rows. The absolute "
        "value is that of the mean.",
    ),
    (
        "Splits",
        "A trial is one split of the table. All cells are played on the same splits: compare them trial by trial.",
    ),
    ("Intervals", INTERVALS),
)


def page(sweep: Sweep[TrainingScenario], lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    """Make the page of a run.

    Parameters
    ----------
    sweep : Sweep
    lines : sequence of mapping
        The lines of ``trials.jsonl``.
    summary : sequence of mapping
        What they come to, for each cell.
    """
    models = models_of(summary)
    front = placed(sweep.scenario.axes, models, private=False)
    rows = comparisons(sweep, models)
    look = looks(kind_of(sweep.scenario.axes, cell) for cell in models)
    return Page(
        cards=(*model_cards(sweep.scenario.axes, front, look), *rate_cards(sweep, rates_of(summary))),
        about_cards=note(models),
        played=played(sweep, lines),
        findings=tuple(findings(sweep, lines, summary, front, rows)) if summary else ("No trial finished.",),
        settings=settings(sweep),
        sections=tuple(_sections(sweep, lines, summary, front, rows, look)),
        assumptions=ASSUMPTIONS,
    )


def _sections(
    sweep: Sweep[TrainingScenario],
    lines: Sequence[Line],
    summary: Sequence[Line],
    front: Sequence[Placed],
    rows: Sequence[Comparison],
    look: Mapping[str, Look],
) -> Iterator[Section]:
    axes, models = sweep.scenario.axes, models_of(summary)
    if models:
        yield _models(axes, front, look)
    if rows:
        yield from sections([printed.table(axes, rows)], {})
    if models:
        yield by_group(axes, models, front)
    if models and PRACTICE in axes:
        yield from practices.sections(axes, models, lines)
    if rates := rates_of(summary):
        yield told_rates.section(sweep, rates)
    if audited := canary_audit.audited(summary):
        yield canary_audit.section(axes, audited)


def _models(axes: Sequence[str], front: Sequence[Placed], look: Mapping[str, Look]) -> Section:
    cells = [one.cell for one in front]
    columns = [
        Column("trials", [number(cell["trials"]) for cell in cells]),
        Column(
            "accuracy",
            [accuracy_of(cell).text(3) for cell in cells],
            about="Share of the test rows that the model is right about.",
            stays=True,
        ),
        Column(
            "risk difference",
            [gap_of(cell).text(3) for cell in cells],
            about="The advantaged group’s rate of decision 1 less the disadvantaged one’s; 0 is equal.",
            stays=True,
        ),
        Column(
            "ε of records",
            [promised_text(cell) for cell in cells],
            about="What the model promises each record that it was trained on; ∞ is nothing.",
        ),
        Column(
            "ε of A spent",
            [_spent(cell) for cell in cells],
            about="What compliance’s answers about A, the protected attribute, cost.",
        ),
        Column(
            "of accuracy and |risk difference|",
            [one.verdict for one in front],
            numeric=False,
            about="On the front: no other cell is at least as good in both. A cell is one combination of settings.",
        ),
    ]
    notes = (
        "Means over the trials, with 95% intervals. " + MEANS.format(what="accuracy and absolute risk difference"),
        "ε of records in brackets: of the disadvantaged and of the advantaged group, where they are promised "
        "different ones.",
    )
    groups = any(cell["promised_groups"] for cell in cells)
    return Section(
        "models",
        "The models",
        table=cell_table(axes, cells, columns, (notes[0], *(notes[1:] if groups else ()), *swept_notes(axes))),
        figures=(tradeoff(axes, front, look),),
    )


def _spent(cell: Line) -> str:
    return MISSING if cell["epsilon_spent"] is None else number(as_float(cell["epsilon_spent"]))
