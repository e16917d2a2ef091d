"""The verdicts of the inference game's page: what the best attack on each defence came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sim.games.inference.report.cells import Cell, advantage_of, defence_of, family_of, has_intervals
from sim.games.inference.report.paper_comparison import loader_only
from sim.games.inference.report.wording import FEW
from sim.report.notation import number
from sim.report.page import Bar, Card


def note(summary: Sequence[Cell]) -> str:
    """Say what the cards leave unsaid."""
    few = "" if has_intervals(summary) else f" {FEW} Nothing here is told from chance."
    return (
        "The best attack of those played on each defence. Distinguished: by how much likelier “trained on group 1” is "
        f"guessed of a model that was; 0 is a coin, 1 is every model.{few}"
    )


def cards(keys: Sequence[str], summary: Sequence[Cell], colours: Mapping[str, str]) -> list[Card]:
    """Write a card for each defence.

    Parameters
    ----------
    keys : sequence of str
        The swept keys.
    summary : sequence of mapping
        Each attack on each cell.
    colours : mapping of str to str
        Of each defence in the page's figures.
    """
    attacks: dict[str, list[Cell]] = {}
    for name, cell in zip(defence_of(keys, summary), summary, strict=True):
        if not loader_only(cell):
            attacks.setdefault(name, []).append(cell)
    return [
        _card(name, max(cells, key=lambda cell: cell["advantage"]), colours[name]) for name, cells in attacks.items()
    ]


def _card(name: str, cell: Cell, colour: str) -> Card:
    found, right = advantage_of(cell), family_of(cell)
    told = f"The adversary distinguishes {found.text(2)} of 1, by {cell['attack']}."
    if right.low is not None and right.high is not None and right.low <= 50 <= right.high:
        told += " Of all attacks at once, that is not told from chance."
    gap = f"The groups’ accuracies differ by {number(cell['gap'])} points"
    before = "" if cell["defence"] == "none" else f", {number(cell['gap_base'])} before the defence"
    bar = Bar.on((0.0, 1.0), 0.0, found.mean, ("0: a coin", "1: every model"), f"{found.mean:.2f} of 1 distinguished")
    return Card("No defence" if name == "none" else f"Defence {name}", f"{told} {gap}{before}.", bar, colour)
