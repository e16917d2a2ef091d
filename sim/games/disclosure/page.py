"""The page of a run of the disclosure game: its figures and its texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from sim.games.disclosure.columns import advantage_of, linked_of, swept_in, tables
from sim.games.disclosure.scenario import DisclosureScenario
from sim.games.game import Line
from sim.report.cells import Swept, best_of_each
from sim.report.drawing import BLACK, GREY, Figure, MarkStyle, looks
from sim.report.estimates import IntervalEstimate
from sim.report.interval_plot import DotPanel, dot_plot
from sim.report.notation import count, number, span
from sim.report.page import Bar, Card, Page, Term, sections, settings
from sim.scenarios.sweep import Sweep

_CAPTION = (
    "0 is a coin, 1 is certain. Filled marks are measured, with 95% intervals; hollow diamonds are the largest by the "
    "public law. A bar is the bound tanh(ε/2) where it holds; a cross stands in its place where the secret goes with "
    "other people's answers."
)


def draw(swept: Swept, summary: Sequence[Line], look: Mapping[str, MarkStyle]) -> Figure:
    """Draw a run's summary, one row per cell; `look` is by mode. At least one cell must have an advantage."""
    cells = [cell for cell in summary if cell["advantage"] is not None]
    drawn: dict[str, tuple[MarkStyle, Callable[[Line], IntervalEstimate | None]]] = {
        **{f"{mode}, measured": (look[mode], partial(_measured, mode)) for mode in (cell["mode"] for cell in cells)},
        "largest by the law": (
            MarkStyle(BLACK, "D", hollow=True, size=8.5),
            lambda cell: IntervalEstimate(cell["advantage_law"]),
        ),
        "bound tanh(ε/2)": (MarkStyle(GREY, "|", size=16), partial(_bound, True)),
        "tanh(ε/2), no bound here": (MarkStyle(GREY, "x", size=8), partial(_bound, False)),
    }
    series = {told: [(swept.name(cell), found(cell)) for cell in cells] for told, (_, found) in drawn.items()}
    return dot_plot(
        "advantage",
        "Advantage at guessing the secret",
        _CAPTION,
        [DotPanel("advantage", series, level=0.0)],
        look={told: own for told, (own, _) in drawn.items()},
        together=True,
        broad=5.8,
    )


def _measured(mode: str, cell: Line) -> IntervalEstimate | None:
    return advantage_of(cell) if cell["mode"] == mode else None


def _bound(applies: bool, cell: Line) -> IntervalEstimate | None:
    return IntervalEstimate(cell["bound"]) if cell["bound_applies"] is applies else None


_MODES = {
    "identity": "Identity disclosure",
    "attribute": "Attribute disclosure",
    "inferential": "Inferential disclosure",
    "presence": "Whether Alice takes part",
}
_CARDS = (
    "Of each mode and epsilon, the study of whose release the law tells most. Distinguished: how much likelier a guess "
    "of “yes” is where yes is true; 0 is a coin, 1 is certain."
)
_ASSUMPTIONS: tuple[Term, ...] = (
    (
        "The three modes",
        "Dalenius (1977): identity, a record is linked to a person; attribute, something about a person follows from a "
        "release that holds the person; inferential, something about a person becomes likelier, whether the person is "
        "in the data or not.",
    ),
    (
        "What epsilon is about",
        "One person takes part or not, or answers otherwise. A count of yes answers moves by 1 at most, and compliance "
        "adds two-sided geometric noise. Who else takes part, and everybody's quasi-identifiers, are public. Records "
        "without names have no epsilon.",
    ),
    (
        "The bound",
        "For laws of a release that are ε-close, P(guess 1 | secret 1) − P(guess 1 | secret 0) is at most "
        "(e^ε − 1)/(e^ε + 1) = tanh(ε/2), whatever the guess and the prior; for a fair coin, as here, that is "
        "2 P(right) − 1. It applies where the secret changes Alice's own record and nothing else. Where the secret "
        "goes with other people's answers, as in inferential disclosure, it does not.",
    ),
    (
        "The adversary",
        "The developer, which asked for the table: it knows the law of the answers and of the noise, and who takes "
        "part; where it knows the others, also everybody else's answer. Its guess is Bayes's: no other does better.",
    ),
    (
        "Intervals",
        "Trials are independent studies. The advantage's interval is Newcombe's for a difference of two shares, on "
        "Clopper and Pearson's limits, at 95%, each cell's by itself. Cells share their trials' draws of the secret.",
    ),
)


def page(sweep: Sweep[DisclosureScenario], lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    """Return the page of a run, from its sweep, the lines of `trials.jsonl` and their summary."""
    swept, look = swept_in(sweep), looks(cell["mode"] for cell in summary)
    most = best_of_each(summary, lambda cell: (cell["mode"], cell["epsilon"]), lambda cell: -cell["advantage_law"])
    drawn = [draw(swept, summary, look)] if any(cell["advantage"] is not None for cell in summary) else []
    return Page(
        cards=[_card(swept, cell, look[cell["mode"]].colour) for cell in most],
        about_cards=_CARDS,
        played=_played(lines),
        findings=tuple(_findings(swept, summary)) or ("No trial finished.",),
        settings=settings(
            sweep,
            {
                "Modes": lambda one: one.disclosure.mode,
                "People besides Alice": lambda one: one.disclosure.people,
                "Cells": lambda one: one.disclosure.cells,
                "Epsilon": lambda one: one.disclosure.epsilon,
                "The developer knows": lambda one: one.disclosure.knows,
                "Trials a cell": lambda one: one.scenario.trials,
            },
        ),
        sections=sections(tables(sweep, lines, summary), {"secret": drawn}) if summary else (),
        assumptions=_ASSUMPTIONS,
    )


def _card(swept: Swept, cell: Line, colour: str) -> Card:
    law, measured = cell["advantage_law"], advantage_of(cell)
    allowed = (
        f"ε allows {cell['bound']:.2f}"
        if cell["bound_applies"]
        else "ε is no bound here, since the secret goes with other people’s answers"
    )
    said = swept.name(cell, ("disclosure.mode", "disclosure.epsilon"))
    text = (
        f"The best guess distinguishes {law:.2f} of 1, by the release’s law; {allowed}."
        f"{f' Measured: {measured.text(2)}.' if measured else ''}{f' ({said})' if said else ''}"
    )
    bar = Bar.on((0.0, 1.0), 0.0, law, ("0: a coin", "1: certain"), f"{law:.2f} of 1 distinguished")
    return Card(f"{_MODES[cell['mode']]}, ε = {number(cell['epsilon'], 6)}", text, bar, colour)


def _played(lines: Sequence[Line]) -> str:
    people = f" of {span({line['people'] for line in lines})} people" if lines else ""
    return (
        f"Compliance held a study{people}, and released a table of it. The referee drew a secret about one person, "
        "Alice, and dealt the study with her or without her. The developer, which asked for the table, computed how "
        "likely the secret is given what was released, and guessed."
    )


def _findings(swept: Swept, summary: Sequence[Line]) -> Iterator[str]:
    for mode, title in _MODES.items():
        cells = [cell for cell in summary if cell["mode"] == mode and cell["advantage"] is not None]
        if cells:
            most = max(cells, key=lambda cell: cell["advantage"])
            found = advantage_of(most)
            yield (
                f"{title}: the largest advantage was {found.text(2) if found else ''} ({swept.name(most) or mode}), "
                f"where tanh(ε/2) is {most['bound']:.2f}{_judged(most)}"
            )
    if named := [cell for cell in summary if cell["named"]]:
        best = max(named, key=lambda cell: linked_of(cell).mean)
        yield (
            f"Records: of {count(best['named'])} releases the developer named Alice's record in "
            f"{100 * linked_of(best).mean:.0f}% ({swept.name(best) or best['mode']}); her quasi-identifiers were hers "
            f"alone in {100 * best['unique']:.0f}%."
        )


def _judged(cell: Line) -> str:
    beyond = cell["advantage_low"] > cell["bound"]
    if cell["bound_applies"]:
        return ": above what epsilon allows, so something is broken." if beyond else "."
    if beyond:
        return ", which is no bound here: what a study teaches about people like Alice no epsilon hides."
    return ", which is no bound here."
