"""The verdicts of the disclosure game's page: what the best guess came to, for each mode and epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sim.games.disclosure.report.cells import EPSILON, advantage_of, head
from sim.games.game import Line
from sim.report.cells import best_of_each
from sim.report.notation import number, setting
from sim.report.page import Bar, Card

NAMES = {
    "identity": "Identity disclosure",
    "attribute": "Attribute disclosure",
    "inferential": "Inferential disclosure",
    "presence": "Whether Alice takes part",
}
"""The modes."""

NOTE = (
    "Of each mode and epsilon, the study of whose release the law tells most. Distinguished: how much likelier a guess "
    "of “yes” is where yes is true; 0 is a coin, 1 is certain."
)
"""What the cards leave unsaid."""


_TITLED = ("disclosure.mode", EPSILON)
"""What a card's title says."""


def cards(axes: Sequence[str], summary: Sequence[Line], colours: Mapping[str, str]) -> list[Card]:
    """Write a card for each mode and epsilon.

    Parameters
    ----------
    axes : sequence of str
        The swept keys.
    summary : sequence of mapping
        The run's cells.
    colours : mapping of str to str
        Of each mode in the page's figure.
    """
    most = best_of_each(summary, lambda cell: (cell["mode"], cell["epsilon"]), lambda cell: -cell["advantage_law"])
    return [_card(axes, cell, colours[cell["mode"]]) for cell in most]


def _card(axes: Sequence[str], cell: Line, colour: str) -> Card:
    allowed = (
        f"ε allows {cell['bound']:.2f}"
        if cell["bound_applies"]
        else "ε is no bound here, since the secret goes with other people’s answers"
    )
    law = cell["advantage_law"]
    text = f"The best guess distinguishes {law:.2f} of 1, by the release’s law; {allowed}."
    if cell["advantage"] is not None:
        text += f" Measured: {advantage_of(cell).text(2)}."
    said = ", ".join(f"{head(key)} {setting(cell[key])}" for key in axes if key not in _TITLED)
    bar = Bar.on((0.0, 1.0), 0.0, law, ("0: a coin", "1: certain"), f"{law:.2f} of 1 distinguished")
    title = f"{NAMES[cell['mode']]}, ε = {number(cell['epsilon'], 6)}"
    return Card(title, f"{text} ({said})" if said else text, bar, colour)
