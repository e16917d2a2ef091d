"""The figures of a cell that terminal and page show, in the order in which they show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sim.games.game import Line
from sim.report.notation import MISSING


@dataclass(frozen=True)
class CellFigure:
    """A figure of a cell.

    Attributes
    ----------
    key : what `sim.games.release.record.summarise` calls it.
    short, head : what terminal and page call it.
    scale : what it is multiplied by to be shown: 100 for percent and points.
    digits : how many decimals it gets.
    in_terminal : whether there is room for it.
    """

    key: str
    short: str
    head: str
    scale: float = 100.0
    digits: int = 1
    in_terminal: bool = True


FIGURES = (
    CellFigure("acc", "acc", "accuracy, %"),
    CellFigure("f1", "F1", "F1, %"),
    CellFigure("recall", "recall", "recall, %", in_terminal=False),
    CellFigure("auc", "AUC", "AUC, %", in_terminal=False),
    CellFigure("auc_hard", "AUC*", "AUC on decisions (the paper's), %", in_terminal=False),
    CellFigure("sp", "SPD", "SPD, points"),
    CellFigure("di", "DI", "DI", scale=1.0, digits=2),
    CellFigure("eo", "EOD", "EOD, points"),
    CellFigure("oad", "OAD", "OAD, points"),
    CellFigure("epsilon_protected", "ε_A", "ε of the protected attribute", scale=1.0, digits=2, in_terminal=False),
    CellFigure("consistent", "one", "profiles of one person, %", in_terminal=False),
    CellFigure("leakage_baseline", "known", "commoner group, %", scale=1.0, in_terminal=False),
    CellFigure("leakage_release", "guess\nalone", "guessed from the release, %", scale=1.0),
    CellFigure("leakage", "guess\nall", "guessed from everything, %", scale=1.0),
    CellFigure("leakage_mixture", "guess\nmix", "guessed with queries about them, %", scale=1.0),
)


def shown(summary: Sequence[Line]) -> tuple[CellFigure, ...]:
    """Give the figures that are known of some cell."""
    return tuple(figure for figure in FIGURES if any(cell.get(figure.key) is not None for cell in summary))


def text_of(figure: CellFigure, cell: Line) -> str:
    """Write a figure of a cell; a dash where there is none."""
    value = cell.get(figure.key)
    return MISSING if value is None else f"{figure.scale * value:.{figure.digits}f}".replace("-", "−")


def change(key: str, value: float, *, finer: int = 0) -> str:
    """Write a change of a figure, with its sign, and so many decimals more than the figure has."""
    figure = next(figure for figure in FIGURES if figure.key == key)
    return signed(figure.scale * value, figure.digits + finer)


def signed(value: float, digits: int) -> str:
    """Write a number with its sign, if it is not rounded to zero."""
    text = f"{value:+.{digits}f}".replace("-", "−")
    return text if text.strip("+−0.") else text.lstrip("+−")
