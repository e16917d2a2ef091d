"""The verdicts of the release game's page: what the best guess came to, for each protocol and epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from sim.games.game import Line
from sim.games.release.report.verdicts import protocol_title
from sim.games.release.scenario import CONTROLS
from sim.report.cells import best_of_each
from sim.report.notation import number, setting, symbol
from sim.report.page import Bar, Card

_GUESSES = {
    "leakage_release": "from the release alone",
    "leakage": "from the release, features and labels",
    "leakage_mixture": "from the release, features, labels and queries",
}
_TITLED = ("release.protocol", "release.epsilon")

NOTE = (
    "The best guess of those played with each protocol and epsilon, of people that the model was trained on: means "
    "over trials. A guess that knows nothing calls everybody by the commoner group."
)
"""What the cards leave unsaid."""


def cards(axes: Sequence[str], summary: Sequence[Line], colour: Callable[[str], str]) -> list[Card]:
    """Write a card for each protocol and epsilon.

    Parameters
    ----------
    axes : sequence of str
        The swept keys.
    summary : sequence of mapping
        The run's cells; controls, in which nothing is guessed, get no card.
    colour : callable
        Gives that of a protocol in the page's figures.
    """
    played = (cell for cell in summary if cell["protocol"] not in CONTROLS and _best(cell) is not None)
    most = best_of_each(played, lambda cell: (cell["protocol"], _epsilon(cell)), lambda cell: -_gained(cell))
    return [_card(axes, cell, colour(cell["protocol"])) for cell in most]


def _epsilon(cell: Line) -> float | str:
    """Give the epsilon that is swept, or else the cell's; a split may leave some of it."""
    value: float | str = cell.get("release.epsilon", cell["epsilon"])
    return value


def _gained(cell: Line) -> float:
    best = _best(cell)
    return -math.inf if best is None else float(cell[best] - cell["leakage_baseline"])


def _best(cell: Line) -> str | None:
    """Name the guess that was right about most."""
    told = [key for key in _GUESSES if cell.get(key) is not None]
    return max(told, key=lambda key: cell[key], default=None)


def _card(axes: Sequence[str], cell: Line, colour: str) -> Card:
    best = _best(cell)
    assert best is not None, "chosen for it"
    reached, before = cell[best], cell["leakage_baseline"]
    told = ", ".join(f"{symbol(key)} {setting(cell[key])}" for key in axes if key not in _TITLED)
    text = (
        f"The developer guesses the group of {reached:.1f}% of people right {_GUESSES[best]}; knowing nothing it would "
        f"be {before:.1f}%. Its models are right about {100 * cell['acc']:.1f}% of test rows"
        f"{f' ({told})' if told else ''}."
    )
    alt = f"From {before:.0f}% to {reached:.0f}%"
    bar = Bar.on((0.0, 100.0), before, reached, ("0%", "100%: everybody"), alt)
    return Card(f"{protocol_title(cell['protocol'])}, ε = {number(_epsilon(cell), 6)}", text, bar, colour)
