"""The Pareto front of a run: what no other cell beats in accuracy, risk difference and epsilon; also by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from rich.console import Group
from rich.text import Text

from fairwall.errors import UserError
from sim.games.game import Front, Line
from sim.games.training.report.cells import models_of, swept_in
from sim.games.training.report.columns import EPSILON, FEW, MANY, MODELS, PROMISED, swept_notes
from sim.games.training.report.fronts import MEANS, OF, Placed, placed
from sim.games.training.scenario import TrainingScenario
from sim.report.columns import Measure, Sheet
from sim.report.notation import plural
from sim.report.page import Page, Section
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


def frontier(sweep: Sweep[TrainingScenario], lines: Sequence[Line], summary: Sequence[Line]) -> Front:
    """Find the front of a run.

    Parameters
    ----------
    lines : sequence of mapping
        The lines of ``trials.jsonl``.
    summary : sequence of mapping
        What they come to, for each cell.

    Raises
    ------
    UserError
        If no cell has a model.
    """
    axes, models = sweep.scenario.axes, models_of(summary)
    if not models:
        raise UserError('training.model: "rates" trains no model, and a front is one of models')
    fronts = {of: placed(axes, models, of, private=True) for of in OF}
    return Front(_shown(sweep, fronts), lambda: _page(sweep, lines, fronts))


def _shown(sweep: Sweep[TrainingScenario], fronts: dict[str, list[Placed]]) -> Group:
    overall = fronts[OF[0]]
    on = [one for one in overall if not one.dominated]
    columns: list[Measure[Placed]] = [
        *(one for one in MODELS if one.name in ("accuracy", "gap")),
        EPSILON,
        *(replace(one, of=partial(_starred, one, fronts[of])) for one, of in ((FEW, OF[1]), (MANY, OF[2]))),
    ]
    caption = f"{_SHORT} Here: {len(on)} of {plural(len(overall), 'cell')}. *: the cell is on that group's front, too."
    swept = swept_in(sweep.scenario.axes)
    table = Sheet("front", "The front", swept, on, columns, caption=caption, cell=lambda one: one.cell)
    return Group(fitted(table, f"{sweep.scenario.scenario.name}: the front"), *_only(fronts))


def _starred(column: Measure[Placed], front: Sequence[Placed], one: Placed) -> str | None:
    """Write a group's accuracy, with a star where the cell is on that group's front, too."""
    own = next((other for other in front if other.name == one.name), None)
    return None if own is None else column.text(one, brief=True) + (" " if own.dominated else "*")


def _only(fronts: dict[str, list[Placed]]) -> list[Text]:
    """Name the cells that are on a group's front alone."""
    there = {one.name for one in fronts[OF[0]] if not one.dominated}
    said = []
    for of in OF[1:]:
        alone = [one.name for one in fronts[of] if not one.dominated and one.name not in there]
        if alone:
            said.append(Text(f"On the {of} group's front alone: {'; '.join(alone)}.", style="dim"))
    return said


def _page(sweep: Sweep[TrainingScenario], lines: Sequence[Line], fronts: dict[str, list[Placed]]) -> Page:
    from sim.games.training.report.figures import frontier_figure  # brings the drawing library
    from sim.games.training.report.words import ASSUMPTIONS, named, played, settings

    axes, overall = sweep.scenario.axes, fronts[OF[0]]
    on = [one for one in overall if not one.dominated]
    findings = [
        f"{len(on)} of {plural(len(overall), 'cell')} are on the front over {_WHAT}: "
        f"{named([one.name for one in on])}.",
        f"Of the others, {sum(one.clear for one in overall)} are clearly dominated, by the 95% intervals.",
        *(text.plain for text in _only(fronts)),
    ]
    ordered = {
        of: sorted(own, key=lambda one: (one.dominated, one.epsilon, one.distance.mean)) for of, own in fronts.items()
    }
    notes = (f"{MEANS.format(what=_WHAT)} {_ROUNDED}", *swept_notes(axes))
    sections = [
        Section(
            f"front-{of}",
            "Everybody's accuracy" if of == OF[0] else f"The {of} group's accuracy",
            table=Sheet("", "", swept_in(axes), own, _COLUMNS, notes, cell=lambda one: one.cell).on_page(),
            figures=(frontier_figure(of, fronts[of]),),
        )
        for of, own in ordered.items()
        if own
    ]
    return Page(played(sweep, lines), findings, settings(sweep), sections, ASSUMPTIONS)
