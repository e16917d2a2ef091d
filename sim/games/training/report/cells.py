"""The cells of a run of the training game: what they are called, and what was measured of them."""

from __future__ import annotations

from collections.abc import Sequence

from developer.training.play import RATES
from sim.games.game import Line
from sim.report.cells import trials_id
from sim.report.estimates import Estimate
from sim.report.notation import MISSING, as_float, number, setting, symbol
from sim.report.tables import Column, PageTable

_HEADS = {
    "training.epsilon": "ε",
    "compliance.epsilon": "ε of A",
    "training.holds_protected": "A",
    "training.strength": "λ",
    "data.disadvantaged_share": "share",
}
_OWN = "own"

PRACTICE = "training.practice"
GROUPS = ("disadvantaged", "advantaged")
"""In the order in which a pair of figures has them."""


def head(key: str) -> str:
    """Name a swept key."""
    return _HEADS.get(key) or symbol(key)


def value_text(cell: Line, key: str) -> str:
    """Write a swept value."""
    if key == "training.holds_protected":
        return "held" if cell[key] else "told" if cell["asked"] else MISSING
    if key == "training.strength" and cell[key] == 0:
        return _OWN
    return setting(cell[key])


def name_of(axes: Sequence[str], cell: Line) -> str:
    """Name a cell in a few words: what is swept, but for what leaves a model as it is without it."""
    texts = {key: value_text(cell, key) for key in axes}
    said = [key for key, text in texts.items() if text not in (MISSING, _OWN, number("inf"))]
    told = (texts[key] if isinstance(cell[key], str) else f"{head(key)} {texts[key]}" for key in said)
    return ", ".join(told) or str(cell["model"])


def kind_of(axes: Sequence[str], cell: Line) -> str:
    """Say what figures tell cells apart by: the first swept word, mostly the model; nothing where it is swept alone."""
    words = [key for key in axes if isinstance(cell[key], str) and key != "training.epsilon"]
    return value_text(cell, words[0]) if words and len(axes) > 1 else ""


def swept_notes(axes: Sequence[str]) -> tuple[str, ...]:
    """Say what the columns of swept keys mean that do not say it themselves."""
    notes = {
        "training.holds_protected": "A: held by the developer, or told to it by compliance in noisy sums by group; "
        f"{MISSING}: not used.",
        "training.strength": "λ: the weight of a fair model's penalty; own: the model's own one, or it has none.",
    }
    return tuple(note for key, note in notes.items() if key in axes)


def axis_columns(axes: Sequence[str], cells: Sequence[Line]) -> list[Column]:
    """Give the columns that tell cells apart."""
    return [Column(head(key), [value_text(cell, key) for cell in cells], numeric=False) for key in axes]


def cell_table(
    axes: Sequence[str], cells: Sequence[Line], columns: Sequence[Column], notes: Sequence[str] = ()
) -> PageTable:
    """Lay out cells, a row each, that leads to its trials; the columns that tell them apart come first."""
    links = [trials_id({key: cell[key] for key in axes}) for cell in cells]
    return PageTable([*axis_columns(axes, cells), *columns], notes, links, max(1, len(axes)))


def models_of(summary: Sequence[Line]) -> list[Line]:
    """Keep the cells in which a model was trained."""
    return [cell for cell in summary if cell["model"] != RATES]


def rates_of(summary: Sequence[Line]) -> list[Line]:
    """Keep the cells in which only the groups' rates were asked for."""
    return [cell for cell in summary if cell["model"] == RATES]


def accuracy_of(cell: Line) -> Estimate:
    """Give the mean accuracy, in [0, 1], with its interval where there are trials enough."""
    return Estimate(cell["accuracy"], cell["accuracy_low"], cell["accuracy_high"])


def gap_of(cell: Line) -> Estimate:
    """Give the mean risk difference, likewise, in [-1, 1]: the advantaged group's rate less the disadvantaged one's."""
    return Estimate(cell["gap"], cell["gap_low"], cell["gap_high"])


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


def promised_text(cell: Line) -> str:
    """Write it; of groups that are promised different ones, both."""
    both = cell["promised_groups"]
    if not both:
        return number(promised_of(cell))
    return f"{number(promised_of(cell))} ({number(both[0])}, {number(both[1])})"
