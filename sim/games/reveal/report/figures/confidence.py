"""Figures of an attack's confidence about people against its accuracy, with the limits of epsilon for one person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from compliance.mechanisms import MECHANISMS
from fairwall.laws.exposure import one_person
from sim.games.reveal.report.cells import ReportCell, best_attacks
from sim.report.drawing import GREY, Figure, MarkStyle
from sim.report.line_plot import Axis, Curve, Level, LinePanel, line_plot
from sim.report.notation import number

_PANELS = 3
_EVEN = Curve([(0, 0), (100, 100)], MarkStyle(GREY, "", (0, (1, 1))), "as sure as it is right", style={"lw": 0.9})


def confidence_figures(cells: Sequence[ReportCell], look: Mapping[str, MarkStyle]) -> Iterator[Figure]:
    """Draw the best attack of each mechanism, a panel for each of the greatest epsilons."""
    told = [cell for cell in best_attacks(cells) if cell.noisy and cell.sure is not None and cell.sure.curve()]
    epsilons = sorted({cell.epsilon for cell in told})[-_PANELS:]
    if not epsilons:
        return
    shown = [cell for cell in told if cell.epsilon in epsilons]
    title = "How sure the attack was of each person, and how often it was right"
    caption = (
        "The probability that a person is disadvantaged as the best attack of those played has it by the answers "
        "alone, and as it was, each group counting as much as the other, with 95% intervals. Above or below the lines "
        "of the guarantee nobody can be right about anybody, not even who knows how large both groups are."
    )
    panels = [
        LinePanel(
            [_EVEN, *(_curve(cell, look) for cell in shown if cell.epsilon == epsilon)],
            [
                Level(100 * one_person(epsilon), "guarantee, e^(2ε)/(1+e^(2ε))", dash="-"),
                Level(100 - 100 * one_person(epsilon), dash="-"),
            ],
            f"ε = {number(epsilon, 6)}",
        )
        for epsilon in epsilons
    ]
    values = "; ".join(
        f"{cell.noise}: {', '.join(f'{100 * right:.0f}% at {100 * said:.0f}%' for said, right, _ in cell.sure.curve())}"
        for cell in shown
        if cell.sure is not None
    )
    x, y = Axis("disadvantaged, says the attack, %", low=-2, high=102), Axis("disadvantaged, %", low=-2, high=102)
    inches = (2.1 + 2.6 * len(panels), 3.9)
    alt = f"Line chart. {title}. {values}."
    yield line_plot("confidence", title, caption, alt, [panels], x, [y], inches=inches, wide=len(panels) > 1)


def _curve(cell: ReportCell, look: Mapping[str, MarkStyle]) -> Curve:
    assert cell.sure is not None, "chosen for it"
    points = cell.sure.curve()
    bars = [100 * 1.96 * error * right * (1 - right) for _, right, error in points]
    label = MECHANISMS[cell.mechanism].title
    return Curve([(100 * said, 100 * right) for said, right, _ in points], look[cell.mechanism], label, bars=bars)
