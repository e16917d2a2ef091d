"""What models do to each group: accuracy and false positives, a row a cell."""

from __future__ import annotations

from collections.abc import Sequence

from sim.games.game import Line
from sim.games.training.report.cells import GROUPS, cell_table, name_of, of_group
from sim.games.training.report.fronts import Placed
from sim.report.dot_plot import Panel, dot_plot
from sim.report.drawing import Figure
from sim.report.notation import MISSING, count
from sim.report.page import Section
from sim.report.tables import Column

_RATES = {"accuracies": "accuracy", "false_positives": "false-positive rate"}
_MOST = 30
"""So many cells are drawn; of more, those on the front."""


def by_group(axes: Sequence[str], cells: Sequence[Line], front: Sequence[Placed]) -> Section:
    """Tell the groups' rates of cells with models, at least one.

    Parameters
    ----------
    axes : sequence of str
        The swept keys.
    cells : sequence of mapping
    front : sequence of Placed
        The same cells.
    """
    columns = [
        Column(group, [_text(cell, key, place) for cell in cells], group=told)
        for key, told in (*_RATES.items(), ("positives", "decided 1"))
        for place, group in enumerate(GROUPS)
    ]
    sizes = " and ".join(f"{count(size)} {group}" for size, group in zip(cells[0]["sizes"], GROUPS, strict=True))
    notes = (
        "Means over the trials, on test rows, with 95% intervals where there are five trials or more. A false positive "
        f"is decision 1 for a row of label 0. Trained on in the first trial of the first cell: {sizes}.",
    )
    drawn = cells if len(cells) <= _MOST else [one.cell for one in front if not one.dominated]
    return Section(
        "groups", "By group", table=cell_table(axes, cells, columns, notes), figures=(_figure(axes, drawn, len(cells)),)
    )


def _text(cell: Line, key: str, group: int) -> str:
    found = of_group(cell, key, group)
    return MISSING if found is None else found.text(3)


def _figure(axes: Sequence[str], cells: Sequence[Line], of: int) -> Figure:
    panels = [
        Panel(
            told, {g: [(name_of(axes, cell), of_group(cell, key, i)) for cell in cells] for i, g in enumerate(GROUPS)}
        )
        for key, told in _RATES.items()
    ]
    few = "" if len(cells) == of else f" Of {of} cells, those on the front."
    caption = f"Filled circles: the disadvantaged group. Hollow squares: the advantaged one. Bars: 95% intervals.{few}"
    return dot_plot("by-group", "Accuracy and false positives of each group", caption, panels)
