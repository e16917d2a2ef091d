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
    about : what it is, for those who have not met it.
    """

    key: str
    short: str
    head: str
    scale: float = 100.0
    digits: int = 1
    in_terminal: bool = True
    about: str = ""


FIGURES = (
    CellFigure("acc", "acc", "accuracy, %", about="Share of the test rows that the model is right about."),
    CellFigure(
        "f1", "F1", "F1, %", about="Harmonic mean of precision, the share of predicted 1 that is right, and recall."
    ),
    CellFigure(
        "recall", "recall", "recall, %", in_terminal=False, about="Share of the rows of label 1 that are predicted so."
    ),
    CellFigure(
        "auc",
        "AUC",
        "AUC, %",
        in_terminal=False,
        about="How often a row of label 1 has the higher score of two: area under the ROC curve.",
    ),
    CellFigure(
        "auc_hard",
        "AUC*",
        "AUC on decisions (the paper's), %",
        in_terminal=False,
        about="The same of decisions in place of scores.",
    ),
    CellFigure(
        "sp",
        "SPD",
        "SPD, points",
        about="Statistical parity difference: the advantaged group’s rate of predicted 1 less the disadvantaged one’s.",
    ),
    CellFigure(
        "di",
        "DI",
        "DI",
        scale=1.0,
        digits=2,
        about="Disparate impact: the disadvantaged group’s rate of predicted 1 over the advantaged one’s; 1 is equal.",
    ),
    CellFigure("eo", "EOD", "EOD, points", about="Equal opportunity difference: as SPD, of rows of label 1 alone."),
    CellFigure(
        "oad",
        "OAD",
        "OAD, points",
        about="Overall accuracy difference: the advantaged group’s accuracy less the disadvantaged one’s.",
    ),
    CellFigure(
        "epsilon_protected",
        "ε_A",
        "ε of the protected attribute",
        scale=1.0,
        digits=2,
        in_terminal=False,
        about="What of epsilon the protected attribute’s release was given.",
    ),
    CellFigure(
        "consistent",
        "one",
        "profiles of one person, %",
        in_terminal=False,
        about="Share of people whose released columns could all be those of one person.",
    ),
    CellFigure(
        "leakage_baseline",
        "known",
        "commoner group, %",
        scale=1.0,
        in_terminal=False,
        about="Right if everybody is called by the commoner group.",
    ),
    CellFigure(
        "leakage_release",
        "guess\nalone",
        "guessed from the release, %",
        scale=1.0,
        about="Share of those trained on whose group is guessed right from the release alone.",
    ),
    CellFigure(
        "leakage",
        "guess\nall",
        "guessed from everything, %",
        scale=1.0,
        about="The same from the release, features and labels.",
    ),
    CellFigure(
        "leakage_mixture",
        "guess\nmix",
        "guessed with queries about them, %",
        scale=1.0,
        about="The same with answers to queries about them besides.",
    ),
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
