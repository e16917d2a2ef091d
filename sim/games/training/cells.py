"""The cells of a training run: names, measures, domination, and changes by practices against plain training."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from developer.training.play import PLAIN, RATES
from sim.datasets import FORMATS, SHIPPED
from sim.datasets.shipped import NamedRoles
from sim.datasets.synthetic import CASE_STUDY
from sim.games.game import Line
from sim.games.training.scenario import TrainingData
from sim.report.cells import Swept, is_word
from sim.report.columns import interval_of
from sim.report.estimates import IntervalEstimate, Range, estimate
from sim.report.notation import MISSING, as_float, number, setting
from sim.report.pareto import dominated

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
"""The order of a pair of figures."""


def attribute(data: TrainingData) -> tuple[str, str]:
    """Return the names of the protected attribute and of its groups: the scenario's, or the table's defaults."""
    if data.source == CASE_STUDY:
        return "group", "the large group advantaged, the small one disadvantaged"
    known = SHIPPED.get(data.source) or next(
        (known.defaults for name, known in FORMATS.items() if data.source.startswith(f"{name}:")), None
    )
    asked = NamedRoles(**data.roles, drop=data.drop)
    roles = asked if known is None else known.roles(asked)
    disadvantaged = "everybody else" if roles.disadvantaged is None else roles.disadvantaged
    return str(roles.protected), f"{roles.advantaged} advantaged, {disadvantaged} disadvantaged"


def value_text(cell: Line, key: str) -> str:
    """Return a swept value as text."""
    if key == "training.holds_protected":
        return "held" if cell[key] else "told" if cell["asked"] else MISSING
    if key == "training.strength" and cell[key] == 0:
        return _OWN
    return setting(cell[key])


def swept_in(axes: Sequence[str]) -> Swept:
    """Return the keys that distinguish the cells; a name leaves out values that do not change a model."""
    return Swept(axes, _HEADS, value_text, silent=(MISSING, _OWN, number("inf")))


def name_of(axes: Sequence[str], cell: Line) -> str:
    """Return a short name of a cell."""
    return swept_in(axes).name(cell) or str(cell["model"])


def named(cells: Sequence[str]) -> str:
    """Return the first names of cells, and the number of further ones."""
    more = f"; and {len(cells) - _NAMED} more" if len(cells) > _NAMED else ""
    return "; ".join(cells[:_NAMED]) + more


def kind_of(axes: Sequence[str], cell: Line) -> str:
    """Return the first swept word of a cell, mostly the model, which figures distinguish; empty for a single axis."""
    words = [key for key in axes if is_word(cell[key]) and key != "training.epsilon"]
    return value_text(cell, words[0]) if words and len(axes) > 1 else ""


def models_of(summary: Sequence[Line]) -> list[Line]:
    """Return the cells with a trained model."""
    return [cell for cell in summary if cell["model"] != RATES]


def rates_of(summary: Sequence[Line]) -> list[Line]:
    """Return the cells in which only the groups' rates were requested."""
    return [cell for cell in summary if cell["model"] == RATES]


accuracy_of = interval_of("accuracy")
"""Mean accuracy of a cell, in [0, 1], with its interval where there are enough trials."""

gap_of = interval_of("gap")
"""Mean risk difference, in [-1, 1], likewise: the advantaged group's rate less the disadvantaged one's."""


def distance_of(cell: Line) -> IntervalEstimate:
    """Return the absolute value of the mean risk difference, and the interval of such values."""
    gap = gap_of(cell)
    if gap.low is None or gap.high is None:
        return IntervalEstimate(abs(gap.mean))
    ends = sorted((abs(gap.low), abs(gap.high)))
    return IntervalEstimate(abs(gap.mean), 0.0 if gap.low <= 0 <= gap.high else ends[0], ends[1])


def of_group(cell: Line, key: str, group: int) -> IntervalEstimate | None:
    """Return a group's mean rate, such as `accuracies`; None where no test row shows it."""
    mean = cell[key][group]
    return None if mean is None else IntervalEstimate(mean, cell[f"{key}_low"][group], cell[f"{key}_high"][group])


def promised_of(cell: Line) -> float:
    """Return the epsilon promised to records, infinite for none, to three digits: accountants end slightly low."""
    return float(f"{as_float(cell['promised']):.3g}")


OF = ("overall", *GROUPS)
"""The people whose accuracy is meant: everybody, or a group."""

MEANS = (
    "Dominated: another cell's means are at least as good in {what}, and better in one of them. Means are compared, "
    "and a few trials more may change that. Where the intervals settle it, so that the worst ends of another cell's "
    "95% intervals are at least as good as the best ends of this one's, a cell is clearly dominated."
)
"""A page's explanation of domination; `what` is the list of coordinates."""


@dataclass(frozen=True)
class Placed:
    """A cell with its accuracy (everybody's or a group's), absolute risk difference and domination.

    `dominated`: by the means of another cell; `clear`: for all means within the intervals.
    """

    cell: Line
    name: str
    accuracy: IntervalEstimate
    distance: IntervalEstimate
    epsilon: float
    dominated: bool
    clear: bool

    @property
    def verdict(self) -> str:
        """The domination in words."""
        return "on the front" if not self.dominated else "clearly dominated" if self.clear else "dominated"


def placed(axes: Sequence[str], cells: Sequence[Line], of: str = OF[0], *, private: bool) -> list[Placed]:
    """Return the cells with the accuracy `of`, each with its domination; `private`: whether epsilon counts, too."""
    there = [(cell, found) for cell in cells if (found := _accuracy(cell, of)) is not None]
    rows = [(found, distance_of(cell), -promised_of(cell) if private else 0.0) for cell, found in there]
    means = dominated([(found.mean, -gap.mean, cost) for found, gap, cost in rows])
    best = [(_ends(found)[1], -_ends(gap)[0], cost) for found, gap, cost in rows]
    worst = [(_ends(found)[0], -_ends(gap)[1], cost) for found, gap, cost in rows]
    clear = dominated(best, worst)
    return [
        Placed(cell, name_of(axes, cell), found, gap, promised_of(cell), beaten, beaten and surely)
        for (cell, _), (found, gap, _), beaten, surely in zip(there, rows, means, clear, strict=True)
    ]


def _accuracy(cell: Line, of: str) -> IntervalEstimate | None:
    return accuracy_of(cell) if of == OF[0] else of_group(cell, "accuracies", GROUPS.index(of))


def _ends(interval: IntervalEstimate) -> Range:
    if interval.low is None or interval.high is None:
        return -math.inf, math.inf
    return interval.low, interval.high


_MEASURED: tuple[Callable[[Line], float], ...] = (
    lambda line: line["accuracy"],
    lambda line: abs(line["gap"]),
    lambda line: line["accuracies"][0],
)


@dataclass(frozen=True)
class Change:
    """A practice's cell, and its differences from plain training on the same splits; None without a common trial."""

    cell: Line
    accuracy: IntervalEstimate | None
    distance: IntervalEstimate | None
    minority: IntervalEstimate | None


def changes(axes: Sequence[str], cells: Sequence[Line], lines: Sequence[Line]) -> list[Change]:
    """Return each cell's changes against the cell that differs in the practice alone, plain training."""
    found = []
    for cell in cells:
        own, plain = (_trials(axes, one, lines) for one in (cell, {**cell, PRACTICE: PLAIN}))
        both = [] if cell[PRACTICE] == PLAIN else [(own[trial], plain[trial]) for trial in own if trial in plain]
        less = ([of(mine) - of(theirs) for mine, theirs in both] for of in _MEASURED)
        found.append(Change(cell, *(estimate(values, (-1.0, 1.0)) if values else None for values in less)))
    return found


def _trials(axes: Sequence[str], swept: Line, lines: Sequence[Line]) -> dict[int, Line]:
    return {line["trial"]: line for line in lines if all(line[key] == swept[key] for key in axes)}
