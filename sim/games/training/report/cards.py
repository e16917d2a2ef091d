"""The verdicts of the training game's page: what a model is worth, for each kind of model and promised epsilon."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sim.games.game import Line
from sim.games.training.report.cells import (
    GROUPS,
    accuracy_of,
    distance_of,
    kind_of,
    promised_of,
)
from sim.games.training.report.fronts import Placed
from sim.games.training.report.told_rates import epsilon_looks, told_rates
from sim.games.training.scenario import TrainingScenario
from sim.report.cells import best_of_each
from sim.report.drawing import Look
from sim.report.notation import count, number
from sim.report.page import Bar, Card
from sim.scenarios.sweep import Sweep


def note(models: Sequence[Line]) -> str:
    """Say what the cards leave unsaid."""
    if not models:
        return "Root mean square errors over the trials, of the smallest disadvantaged group at each epsilon of A."
    return (
        "Of each kind of model and promised ε, the most accurate that no other beats both in accuracy and in risk "
        "difference; where there is none, the most accurate. The bar is the absolute risk difference: how far the "
        "groups’ rates of decision 1 are apart."
    )


def model_cards(axes: Sequence[str], front: Sequence[Placed], look: Mapping[str, Look]) -> Iterator[Card]:
    """Write a card for each kind of model and each epsilon that records are promised.

    Parameters
    ----------
    axes : sequence of str
        The swept keys.
    front : sequence of Placed
        By accuracy and risk difference alone.
    look : mapping of str to Look
        Of each kind in the page's figures, as `cells.kind_of` names it.
    """
    for best in best_of_each(
        front,
        # Accountants end a little below what they were asked for.
        lambda one: (kind_of(axes, one.cell), number(promised_of(one.cell), 2)),
        lambda one: (one.dominated, -one.accuracy.mean),
    ):
        kind = kind_of(axes, best.cell)
        yield _model_card(kind, promised_of(best.cell), best, look[kind].colour)


def _model_card(kind: str, epsilon: float, one: Placed, colour: str) -> Card:
    gap = distance_of(one.cell)
    promise = "nothing promised" if epsilon == float("inf") else f"ε = {number(epsilon)} promised"
    text = (
        f"Right about {100 * accuracy_of(one.cell).mean:.1f}% of test rows; the groups’ rates of decision 1 differ by "
        f"{100 * gap.mean:.1f} points. {one.verdict.capitalize()}: {one.name}."
    )
    ends = ("0: groups alike", "100 points")
    bar = Bar.on((0.0, 1.0), 0.0, gap.mean, ends, f"The groups’ rates differ by {100 * gap.mean:.0f} points")
    return Card(f"{kind or one.cell['model']}, {promise}", text, bar, colour)


def rate_cards(sweep: Sweep[TrainingScenario], cells: Sequence[Line]) -> Iterator[Card]:
    """Write a card for each epsilon of A at which groups' rates were told, of the smallest group."""
    told = told_rates(sweep, cells)
    for epsilon, look in epsilon_looks(told).items():
        one = min((one for one in told if one.epsilon == epsilon and one.group == 0), key=lambda one: one.people)
        larger = "noise" if one.noise_is_larger else "sampling"
        text = (
            f"The rate of the {GROUPS[0]} group of {count(one.people)} people is told with noise of "
            f"{number(one.noise, 2)}; which people were drawn makes {number(one.sampling, 2)}. The larger error is "
            f"{larger}."
        )
        alt = f"An error of {number(one.noise, 2)} by noise"
        bar = Bar.on((0.0, 1.0), 0.0, one.noise, ("0", "1: the rate is lost"), alt)
        yield Card(f"ε of A = {number(epsilon)}", text, bar, look.colour)
