"""The verdicts of the page of the game of groups: what the best attack came to, for each set of groups and epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sim.games.game import Line
from sim.games.groups.report.cells import attack_of, leakage_of, set_of, value_of
from sim.report.cells import best_of_each
from sim.report.page import Bar, Card

NOTE = (
    "The best attack of those played; balanced accuracy is the mean, over the groups that somebody is in, of the share "
    "that is named right."
)
"""What the cards leave unsaid."""


def cards(axes: Sequence[str], summary: Sequence[Line], colours: Mapping[str, str]) -> list[Card]:
    """Write a card for each set of groups and epsilon.

    Parameters
    ----------
    axes : sequence of str
        The swept keys.
    summary : sequence of mapping
        The run's cells.
    colours : mapping of str to str
        Of each attack in the page's figures.
    """
    most = best_of_each(
        summary,
        lambda cell: (set_of(axes, cell), cell["epsilon"]),
        lambda cell: cell["chance"] - cell["leakage"],
    )
    return [_card(axes, cell, colours[attack_of(axes, cell)]) for cell in most]


def _card(axes: Sequence[str], cell: Line, colour: str) -> Card:
    found = leakage_of(cell)
    attack = attack_of(axes, cell)
    told = f" ({attack})" if attack else ""
    text = (
        f"The attacker's balanced accuracy is {found.text(1, '%', ends=0)}{told}; without answers it would be "
        f"{cell['chance']:.1f}%, and ε allows {cell['bound']:.1f}%."
    )
    alt = f"From {cell['chance']:.0f}% without answers to {found.mean:.0f}%"
    bar = Bar.on((0.0, 100.0), cell["chance"], found.mean, ("0%", "100%: everybody"), alt)
    told = set_of(axes, cell)
    title = f"{told}, ε = {value_of(cell['epsilon'])}" if told else f"ε = {value_of(cell['epsilon'])}"
    return Card(title[:1].upper() + title[1:], text, bar, colour)
