"""The page of a run: one self-contained HTML file, with the content from its game."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sim.report.columns import Sheet
from sim.report.notation import several
from sim.report.tables import PageTable
from sim.scenarios.sweep import Sweep

if TYPE_CHECKING:
    from sim.report.drawing import Figure

Term = tuple[str, str]
"""A term and its explanation."""


@dataclass(frozen=True)
class Bar:
    """A bar on a scale from ``low`` to ``high``: the value reached, and the value before.

    ``before`` and ``reached`` are in percent of the scale's length; ``alt`` describes it for readers who cannot see it.
    """

    before: float
    reached: float
    low: str
    high: str
    alt: str

    @classmethod
    def on(cls, scale: tuple[float, float], before: float, reached: float, ends: tuple[str, str], alt: str) -> Bar:
        """Return the bar of two numbers on a scale with named ends; numbers beyond an end are placed there."""
        low, high = scale
        start, end = (100.0 * min(1.0, max(0.0, (at - low) / (high - low))) for at in (before, reached))
        return cls(round(start, 2), round(end, 2), *ends, alt)

    @property
    def start(self) -> float:
        """Start of the change's bar, in percent; the value reached may be less than before."""
        return round(min(self.before, self.reached), 2)

    @property
    def width(self) -> float:
        """Length of the change's bar, in percent."""
        return round(abs(self.reached - self.before), 2)


@dataclass(frozen=True)
class Card:
    """A verdict on one thing that was played: its result in plain words, a bar, and its colour in figures."""

    title: str
    text: str
    bar: Bar | None = None
    colour: str = ""

    @property
    def hue(self) -> str:
        """Its CSS colour on the page, where black is the text's colour: light on a dark page."""
        return "var(--ink)" if self.colour == "#000000" else self.colour


@dataclass(frozen=True)
class CellTrials:
    """The page's list of one cell's trials; its name is its id there."""

    name: str
    title: str
    table: PageTable


@dataclass(frozen=True)
class PageSection:
    """A heading of the page and the content below it, in this order.

    ``name`` is its id, unique in the page; ``before`` and ``after`` are paragraphs, ``conclusions`` a sentence or two
    each.
    """

    name: str
    heading: str
    before: Sequence[str] = ()
    conclusions: Sequence[str] = ()
    table: PageTable | None = None
    figures: Sequence[Figure] = ()
    after: Sequence[str] = ()


def sections(tables: Iterable[Sheet[Any]], figures: Mapping[str, Sequence[Figure]]) -> list[PageSection]:
    """Return a section per table, of the table's name, with the figures of that name below it."""
    return [
        PageSection(one.name, one.heading, table=one.on_page(), figures=figures.get(one.name, ())) for one in tables
    ]


def settings(sweep: Sweep[Any], terms: Mapping[str, Callable[[Any], object]]) -> list[Term]:
    """Return a run's settings: each term with its values in the cells' scenarios; terms without any are left out."""
    scenarios = [cell.scenario for cell in sweep.cells]
    told = {term: several(found(one) for one in scenarios) for term, found in terms.items()}
    return [(term, text) for term, text in told.items() if text]


@dataclass(frozen=True)
class Page:
    """A game's account of a run.

    Attributes
    ----------
    played : what was played, and the data of each party.
    findings : one paragraph each.
    assumptions : what was assumed, and what was and was not protected.
    cards : the verdicts, which come first.
    about_cards : what the cards have in common.
    """

    played: str
    findings: Sequence[str]
    settings: Sequence[Term]
    sections: Sequence[PageSection]
    assumptions: Sequence[Term]
    cards: Sequence[Card] = ()
    about_cards: str = ""

    @property
    def figures(self) -> dict[str, Figure]:
        """All figures of the page, by name."""
        return {figure.name: figure for section in self.sections for figure in section.figures}


@dataclass(frozen=True)
class Frame:
    """The part of a run's page that does not depend on the game.

    Attributes
    ----------
    finished, planned : numbers of trials.
    left_out : rows of the table that were not played with.
    secrecy : what parties could have recomputed, or known from elsewhere.
    confinement : the layers around the parties.
    provenance : the sources of the page.
    beside : name of a file of published figures to compare with, if any.
    """

    name: str
    about: str
    finished: int
    planned: int
    complete: bool
    left_out: Sequence[Term]
    secrecy: Sequence[Term]
    confinement: Sequence[Term]
    provenance: Sequence[Term]
    beside: str = ""
    cells: Sequence[CellTrials] = ()


def render(page: Page, frame: Frame) -> str:
    """Return the page: the same bytes for the same arguments."""
    assumptions = (*page.assumptions, *frame.left_out, *frame.secrecy, *frame.confinement)
    named = [
        ("headline", "What happened" if frame.finished else "What was to be played"),
        *((section.name, section.heading) for section in page.sections),
        *([("trials", "Trials")] if frame.cells else []),
        ("assumptions", "What was protected, and what was assumed"),
    ]
    return fill("report.html.j2", page=page, frame=frame, assumptions=assumptions, named=named)


def scripted(template: str, program: str, content: object, **values: object) -> str:
    """Return a page from a template, driven by a program of this folder, with the program's data."""
    script = (Path(__file__).parent / program).read_text(encoding="utf-8")
    # No "<" in the data: nothing in it can end the element that holds it.
    data = json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return fill(template, data=data, script=script, digest=digest(script), **values)


def digest(text: str) -> str:
    """Return the hash by which a content security policy names a program or style that is inline in its page."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["inline"] = Markup  # our own drawings, whose texts matplotlib has escaped


def fill(template: str, **values: object) -> str:
    """Return the text of a template of this folder, filled in."""
    return _TEMPLATES.get_template(template).render(**values)
