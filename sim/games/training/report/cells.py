"""The cells of a run of the training game: what they are called, and what was measured of them."""

from __future__ import annotations

from collections.abc import Sequence

from developer.training.play import RATES
from sim.datasets import FORMATS, SHIPPED
from sim.datasets.case_study import CASE_STUDY
from sim.datasets.roles import Asked
from sim.games.game import Line
from sim.games.training.scenario import TrainingData
from sim.report.cells import Swept, is_word
from sim.report.columns import interval_of
from sim.report.estimates import Estimate
from sim.report.notation import MISSING, as_float, number, setting

_HEADS = {
    "training.epsilon": "ε",
    "compliance.epsilon": "ε of A",
    "training.holds_protected": "A",
    "training.strength": "λ",
    "data.disadvantaged_share": "share",
}
_OWN = "own"
_NAMED = 6

PRACTICE = "training.practice"
GROUPS = ("disadvantaged", "advantaged")
"""In the order in which a pair of figures has them."""


def attribute(data: TrainingData) -> tuple[str, str]:
    """Name the protected attribute, and its groups: what is asked for, or else what the table has by default."""
    if data.source == CASE_STUDY:
        return "group", "the large group advantaged, the small one disadvantaged"
    known = SHIPPED.get(data.source) or next(
        (known.defaults for name, known in FORMATS.items() if data.source.startswith(f"{name}:")), None
    )
    asked = Asked(**data.roles, drop=data.drop)
    roles = asked if known is None else known.roles(asked)
    disadvantaged = "everybody else" if roles.disadvantaged is None else roles.disadvantaged
    return str(roles.protected), f"{roles.advantaged} advantaged, {disadvantaged} disadvantaged"


def value_text(cell: Line, key: str) -> str:
    """Write a swept value."""
    if key == "training.holds_protected":
        return "held" if cell[key] else "told" if cell["asked"] else MISSING
    if key == "training.strength" and cell[key] == 0:
        return _OWN
    return setting(cell[key])


def swept_in(axes: Sequence[str]) -> Swept:
    """Give what tells cells apart; what leaves a model as it is without it is not in a cell's name."""
    return Swept(axes, _HEADS, value_text, silent=(MISSING, _OWN, number("inf")))


def name_of(axes: Sequence[str], cell: Line) -> str:
    """Name a cell in a few words."""
    return swept_in(axes).name(cell) or str(cell["model"])


def named(cells: Sequence[str]) -> str:
    """List the names of cells, of many the first few."""
    more = f"; and {len(cells) - _NAMED} more" if len(cells) > _NAMED else ""
    return "; ".join(cells[:_NAMED]) + more


def kind_of(axes: Sequence[str], cell: Line) -> str:
    """Say what figures tell cells apart by: the first swept word, mostly the model; nothing where it is swept alone."""
    words = [key for key in axes if is_word(cell[key]) and key != "training.epsilon"]
    return value_text(cell, words[0]) if words and len(axes) > 1 else ""


def models_of(summary: Sequence[Line]) -> list[Line]:
    """Keep the cells in which a model was trained."""
    return [cell for cell in summary if cell["model"] != RATES]


def rates_of(summary: Sequence[Line]) -> list[Line]:
    """Keep the cells in which only the groups' rates were asked for."""
    return [cell for cell in summary if cell["model"] == RATES]


accuracy_of = interval_of("accuracy")
"""Give the mean accuracy, in [0, 1], with its interval where there are trials enough."""

gap_of = interval_of("gap")
"""Give the mean risk difference, likewise, in [-1, 1]: the advantaged group's rate less the disadvantaged one's."""


def distance_of(cell: Line) -> Estimate:
    """Give the absolute value of the mean risk difference, and the interval of such values."""
    gap = gap_of(cell)
    if gap.low is None or gap.high is None:
        return Estimate(abs(gap.mean))
    ends = sorted((abs(gap.low), abs(gap.high)))
    return Estimate(abs(gap.mean), 0.0 if gap.low <= 0 <= gap.high else ends[0], ends[1])


def of_group(cell: Line, key: str, group: int) -> Estimate | None:
    """Give a group's mean rate, such as ``accuracies``; None where no test row shows it."""
    mean = cell[key][group]
    return None if mean is None else Estimate(mean, cell[f"{key}_low"][group], cell[f"{key}_high"][group])


def promised_of(cell: Line) -> float:
    """Give the epsilon that records are promised; infinite for nothing.

    To three digits: accountants end a hair below what they were asked for, and no model is better for that.
    """
    return float(f"{as_float(cell['promised']):.3g}")
