"""The Pareto front of a run: what no other cell beats in accuracy, risk difference and epsilon; also by group."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from fairwall.errors import UserError
from sim.games.game import Front, Line
from sim.games.training.report.cells import axis_columns, gap_of, models_of, promised_text, swept_notes
from sim.games.training.report.fronts import MEANS, OF, Placed, placed
from sim.games.training.report.page import ASSUMPTIONS
from sim.games.training.report.terminal import bracketed, table
from sim.games.training.report.wording import named, played, settings
from sim.games.training.scenario import TrainingScenario
from sim.report.notation import MISSING, number, plural
from sim.report.page import Page, Section
from sim.report.tables import Column, PageTable
from sim.scenarios.sweep import Sweep

_WHAT = "accuracy, absolute risk difference and the ε that records are promised"
_ROUNDED = "Epsilons are compared to three digits, since accountants end a hair below what they were asked for."
_SHORT = "Not dominated: no other cell's means are at least as good in accuracy, |gap| and ε, and better in one."


def frontier(sweep: Sweep[TrainingScenario], lines: Sequence[Line], summary: Sequence[Line]) -> Front:
    """Find the front of a run.

    Parameters
    ----------
    sweep : Sweep
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
    cells = [one.cell for one in on]
    verdicts = {of: {one.name: one for one in own} for of, own in fronts.items()}
    columns = {
        "accuracy": [bracketed(one.accuracy) for one in on],
        "gap": [bracketed(gap_of(one.cell)) for one in on],
        "ε": [number(one.epsilon) for one in on],
        "few": [_star(verdicts[OF[1]].get(one.name)) for one in on],
        "many": [_star(verdicts[OF[2]].get(one.name)) for one in on],
    }
    caption = (
        f"{_SHORT} Here: {len(on)} of {plural(len(overall), 'cell')}. few, many: accuracy of the disadvantaged and of "
        "the advantaged group; * where the cell is on that group's front, too."
    )
    return Group(
        table(sweep.scenario.axes, cells, f"{sweep.scenario.scenario.name}: the front", caption, columns),
        *_only(fronts),
    )


def _only(fronts: dict[str, list[Placed]]) -> list[Text]:
    """Name the cells that are on a group's front alone."""
    there = {one.name for one in fronts[OF[0]] if not one.dominated}
    said = []
    for of in OF[1:]:
        alone = [one.name for one in fronts[of] if not one.dominated and one.name not in there]
        if alone:
            said.append(Text(f"On the {of} group's front alone: {'; '.join(alone)}.", style="dim"))
    return said


def _star(one: Placed | None) -> str:
    if one is None:
        return MISSING
    return bracketed(one.accuracy).partition(" ")[0] + (" " if one.dominated else "*")


def _page(sweep: Sweep[TrainingScenario], lines: Sequence[Line], fronts: dict[str, list[Placed]]) -> Page:
    from sim.games.training.report.tradeoff import frontier_figure  # brings the drawing library

    axes, overall = sweep.scenario.axes, fronts[OF[0]]
    on = [one for one in overall if not one.dominated]
    findings = [
        f"{len(on)} of {plural(len(overall), 'cell')} are on the front over {_WHAT}: "
        f"{named([one.name for one in on])}.",
        f"Of the others, {sum(one.clear for one in overall)} are clearly dominated, by the 95% intervals.",
        *(text.plain for text in _only(fronts)),
    ]
    sections = [
        Section(
            f"front-{of}",
            "Everybody's accuracy" if of == OF[0] else f"The {of} group's accuracy",
            table=PageTable(_columns(axes, own), (f"{MEANS.format(what=_WHAT)} {_ROUNDED}", *swept_notes(axes))),
            figures=(frontier_figure(of, own),),
        )
        for of, own in fronts.items()
        if own
    ]
    return Page(played(sweep, lines), findings, settings(sweep), sections, ASSUMPTIONS)


def _columns(axes: Sequence[str], cells: Sequence[Placed]) -> list[Column]:
    ordered = sorted(cells, key=lambda one: (one.dominated, one.epsilon, one.distance.mean))
    own = [one.cell for one in ordered]
    return [
        *axis_columns(axes, own),
        Column("accuracy", [one.accuracy.text(3) for one in ordered]),
        Column("|risk difference|", [one.distance.text(3) for one in ordered]),
        Column("ε of records", [promised_text(cell) for cell in own]),
        Column("", [one.verdict for one in ordered], numeric=False),
    ]
