"""The verdicts of the reveal game's page: what the best attack came to, for each mechanism and epsilon."""

from __future__ import annotations

from collections.abc import Sequence

from compliance.mechanisms import MECHANISMS
from sim.games.reveal.report.cells import ReportCell, rank, target_rate
from sim.report.cells import best_of_each
from sim.report.notation import count, number, plural
from sim.report.page import Bar, Card

_COIN = 50.0


def note(cells: Sequence[ReportCell]) -> str:
    """Say what the cards leave unsaid."""
    equally = (
        ""
        if all(cell.targeted == 1 for cell in cells)
        else "; balanced accuracy is the mean of both groups' shares, so that a coin gets 50%"
    )
    return f"The best attack of those played{equally}."


def best_attacks(cells: Sequence[ReportCell]) -> list[ReportCell]:
    """Choose, for each mechanism and epsilon, the cell in which the developer found out most."""
    return best_of_each(cells, lambda cell: (cell.mechanism if cell.noisy else "exact", cell.epsilon), rank)


def cards(cells: Sequence[ReportCell], colours: dict[str, str]) -> list[Card]:
    """Write a card for each mechanism and epsilon.

    Parameters
    ----------
    cells : sequence of ReportCell
    colours : mapping of str to str
        Of each mechanism in the page's figures.
    """
    return [_card(cell, colours[cell.mechanism]) for cell in best_attacks(cells)]


def _card(cell: ReportCell, colour: str) -> Card:
    asked = plural(int(cell.summary["answers_most"]), "answer")
    title = f"{MECHANISMS[cell.mechanism].title}, ε = {number(cell.epsilon, 6)}" if cell.noisy else "Exact answers"
    if cell.targeted == 1:
        hits = sum(trial["targeted_recovered"] for trial in cell.trials)
        rate = target_rate(cell.summary)
        sure = "" if rate.low is None else f" (95% interval {rate.ends(0)}%)"
        trials = plural(len(cell.trials), "trial")
        text = f"The attacker is right about the one person aimed at in {hits} of {trials}{sure}."
        alt = f"Right in {rate.mean:.0f}% of the trials"
        bar = Bar.on((0.0, 100.0), 0.0, rate.mean, ("0% of trials", "100%"), alt)
        return Card(title, f"{text} {_error(cell)}", bar, colour)
    leakage, before = cell.leakage.mean, cell.baseline.mean
    if cell.summary["exact"] == len(cell.trials):
        reached = f"everybody; its balanced accuracy before asking was {before:.0f}%."
    else:
        people = f"{count(cell.summary['recovered'])} of {cell.summary['n']:,} people"
        reached = f"{people}; its balanced accuracy is {leakage:.0f}%, and was {before:.0f}% before asking."
    useless = WORTHLESS if worthless(cell) else ""
    text = f"With at most {asked} the attacker is right about {reached}{useless} {_error(cell)}"
    alt = f"From {before:.0f}% before asking to {leakage:.0f}%, on a scale from {_COIN:.0f}% to 100%"
    # A reading that went wrong may be worse than a coin.
    bar = Bar.on((_COIN, 100.0), before, leakage, (f"{_COIN:.0f}%: a coin", "100%: everybody"), alt)
    return Card(title, text, bar, colour)


def worthless(cell: ReportCell) -> bool:
    """Tell whether what was read from answers is worse than the guess before asking, as far as trials can tell."""
    return cell.targeted > 1 and cell.gain.sign < 0


WORTHLESS = " Read this way, the answers were of no use: it knew more without them."


def _error(cell: ReportCell) -> str:
    if not cell.noisy:
        return "Answers are exact."
    error = cell.summary.get("query_error_median")
    return "" if error is None else f"A typical answer is off by {number(error, 2)}."
