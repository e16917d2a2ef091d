"""The Pareto front of a run: the cells that no other beats in accuracy, risk difference and epsilon; also by group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from rich.console import Group
from rich.text import Text

from fairwall.errors import UserError
from sim.games.game import Line, ParetoCells
from sim.games.training.cells import GROUPS, MEANS, OF, Placed, models_of, named, placed, swept_in
from sim.games.training.columns import EPSILON, FEW, MANY, MODELS, PROMISED, swept_notes
from sim.games.training.scenario import TrainingScenario
from sim.report.columns import Measure, Sheet
from sim.report.notation import plural
from sim.report.page import Page, sections
from sim.report.terminal import fitted
from sim.scenarios.sweep import Sweep

_WHAT = "accuracy, absolute risk difference and the ε that records are promised"
_ROUNDED = "Epsilons are compared to three digits, since accountants end a hair below what they were asked for."
_COLUMNS: tuple[Measure[Placed], ...] = (
    Measure("accuracy", of=lambda one: one.accuracy, digits=3),
    Measure("|risk difference|", of=lambda one: one.distance, digits=3),
    replace(PROMISED, about=""),
    Measure("", of=lambda one: one.verdict, words=True),
)
_SHORT = "Not dominated: no other cell's means are at least as good in accuracy, |gap| and ε, and better in one."


def frontier(sweep: Sweep[TrainingScenario], lines: Sequence[Line], summary: Sequence[Line]) -> ParetoCells:
    """Return the front of a run; UserError if it has no models."""
    axes, models = sweep.scenario.axes, models_of(summary)
    if not models:
        raise UserError('training.model: "rates" trains no model, and a front is one of models')
    fronts = {of: placed(axes, models, of, private=True) for of in OF}
    overall = fronts[OF[0]]
    on = [one for one in overall if not one.dominated]
    told = f"{len(on)} of {plural(len(overall), 'cell')}"
    columns = [
        *(one for one in MODELS if one.name in ("accuracy", "gap")),
        EPSILON,
        *(replace(one, of=partial(_starred, one, fronts[of])) for one, of in zip((FEW, MANY), GROUPS, strict=True)),
    ]
    caption = f"{_SHORT} Here: {told}. *: the cell is on that group's front, too."
    table = Sheet("front", "The front", swept_in(axes), on, columns, caption=caption, cell=lambda one: one.cell)
    alone = list(_alone(fronts))
    shown = Group(
        fitted(table, f"{sweep.scenario.scenario.name}: the front"), *(Text(said, style="dim") for said in alone)
    )
    findings = (
        f"{told} are on the front over {_WHAT}: {named([one.name for one in on])}.",
        f"Of the others, {sum(one.clear for one in overall)} are clearly dominated, by the 95% intervals.",
        *alone,
    )
    return ParetoCells(shown, lambda: _page(sweep, lines, fronts, findings))


def _starred(column: Measure[Placed], front: Sequence[Placed], one: Placed) -> str | None:
    """Return a group's accuracy as text, with a star where the cell is on that group's front."""
    own = next((other for other in front if other.name == one.name), None)
    return None if own is None else column.text(one, brief=True) + (" " if own.dominated else "*")


def _alone(fronts: Mapping[str, Sequence[Placed]]) -> Iterator[str]:
    on = {of: [one.name for one in front if not one.dominated] for of, front in fronts.items()}
    for of in GROUPS:
        if alone := [name for name in on[of] if name not in on[OF[0]]]:
            yield f"On the {of} group's front alone: {'; '.join(alone)}."


def _page(
    sweep: Sweep[TrainingScenario],
    lines: Sequence[Line],
    fronts: Mapping[str, Sequence[Placed]],
    findings: Sequence[str],
) -> Page:
    from sim.games.training.figures import frontier_figure  # brings the drawing library
    from sim.games.training.page import ASSUMPTIONS, played, settings

    axes = sweep.scenario.axes
    notes = (f"{MEANS.format(what=_WHAT)} {_ROUNDED}", *swept_notes(axes))
    tables = {
        of: Sheet(
            f"front-{of}",
            "Everybody's accuracy" if of == OF[0] else f"The {of} group's accuracy",
            swept_in(axes),
            sorted(own, key=lambda one: (one.dominated, one.epsilon, one.distance.mean)),
            _COLUMNS,
            notes,
            cell=lambda one: one.cell,
        )
        for of, own in fronts.items()
        if own
    }
    drawn = {table.name: [frontier_figure(of, fronts[of])] for of, table in tables.items()}
    return Page(played(sweep, lines), findings, settings(sweep), sections(tables.values(), drawn), ASSUMPTIONS)
