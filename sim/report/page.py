"""The page of a run: one HTML file that needs nothing else. What it tells, its game says."""

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
"""A term, and what to know about it."""


@dataclass(frozen=True)
class Bar:
    """How far something got on a scale from ``low`` to ``high``, and how far it was before.

    Attributes
    ----------
    before, reached : in percent of the scale's length, in [0, 100].
    low, high : what the scale's ends are called.
    alt : for readers who cannot see it.
    """

    before: float
    reached: float
    low: str
    high: str
    alt: str

    @classmethod
    def on(cls, scale: tuple[float, float], before: float, reached: float, ends: tuple[str, str], alt: str) -> Bar:
        """Place two numbers on a scale, whose ends have names; what lies beyond one of them is placed there."""
        low, high = scale
        start, end = (100.0 * min(1.0, max(0.0, (at - low) / (high - low))) for at in (before, reached))
        return cls(round(start, 2), round(end, 2), *ends, alt)

    @property
    def start(self) -> float:
        """Where what was added starts; less may be reached than there was before."""
        return round(min(self.before, self.reached), 2)

    @property
    def width(self) -> float:
        """How long that is."""
        return round(abs(self.reached - self.before), 2)


@dataclass(frozen=True)
class Card:
    """A verdict: one thing that was played, what it came to in plain words, a bar, and its colour in figures."""

    title: str
    text: str
    bar: Bar | None = None
    colour: str = ""

    @property
    def hue(self) -> str:
        """Its colour on the page, where black is that of the text, which a dark page has light."""
        return "var(--ink)" if self.colour == "#000000" else self.colour


@dataclass(frozen=True)
class CellTrials:
    """The trials of one cell, as the page lists them; its name is its id there."""

    name: str
    title: str
    table: PageTable


@dataclass(frozen=True)
class Section:
    """A heading of the page and what stands below it, in this order.

    Attributes
    ----------
    name : unique in the page: its id there.
    before, after : paragraphs.
    conclusions : set apart, a sentence or two each.
    """

    name: str
    heading: str
    before: Sequence[str] = ()
    conclusions: Sequence[str] = ()
    table: PageTable | None = None
    figures: Sequence[Figure] = ()
    after: Sequence[str] = ()


def sections(tables: Iterable[Sheet[Any]], figures: Mapping[str, Sequence[Figure]]) -> list[Section]:
    """Give each table a section of its name, with its figures below it."""
    return [Section(one.name, one.heading, table=one.on_page(), figures=figures.get(one.name, ())) for one in tables]


def settings(sweep: Sweep[Any], asked: Mapping[str, Callable[[Any], object]]) -> list[Term]:
    """Say how a run was played: by each term what its cells' scenarios have, left out where they have None."""
    scenarios = [cell.scenario for cell in sweep.cells]
    told = {term: several(found(one) for one in scenarios) for term, found in asked.items()}
    return [(term, text) for term, text in told.items() if text]


@dataclass(frozen=True)
class Page:
    """All that a game tells of a run.

    Attributes
    ----------
    played : what was played, and who held what.
    findings : what happened, a finding a paragraph.
    settings : how it was played.
    sections : what was measured: tables and figures.
    assumptions : what was assumed, and what was and was not protected.
    cards : the verdicts, which come first.
    about_cards : what they have in common.
    """

    played: str
    findings: Sequence[str]
    settings: Sequence[Term]
    sections: Sequence[Section]
    assumptions: Sequence[Term]
    cards: Sequence[Card] = ()
    about_cards: str = ""

    @property
    def figures(self) -> dict[str, Figure]:
        """All its figures, by name."""
        return {figure.name: figure for section in self.sections for figure in section.figures}


@dataclass(frozen=True)
class Frame:
    """What is told of a run of any game.

    Attributes
    ----------
    name, about : the scenario's name, and what it says of itself.
    finished, planned : how many trials.
    complete : whether the run was played to its end.
    left_out : which rows of the table were not played with.
    secrecy : what parties could have recomputed or known besides.
    confinement : what stood around the parties.
    provenance : what the page was made from.
    beside : a file of published figures that the run is held against, if it is.
    cells : the trials of each cell.
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
    """Write the page: the same bytes for the same arguments."""
    assumptions = (*page.assumptions, *frame.left_out, *frame.secrecy, *frame.confinement)
    named = [
        ("headline", "What happened" if frame.finished else "What was to be played"),
        *((section.name, section.heading) for section in page.sections),
        *([("trials", "Trials")] if frame.cells else []),
        ("assumptions", "What was protected, and what was assumed"),
    ]
    return fill("report.html.j2", page=page, frame=frame, assumptions=assumptions, named=named)


def scripted(template: str, program: str, told: object, **values: object) -> str:
    """Fill in a template of a page that a program of this folder moves, with what the program is told."""
    script = (Path(__file__).parent / program).read_text(encoding="utf-8")
    # Nothing in the data can end the element that it stands in.
    data = json.dumps(told, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return fill(template, data=data, script=script, digest=digest(script), **values)


def digest(text: str) -> str:
    """Return by what a content security policy names a program or a style that stands in its page."""
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
    """Fill one of the templates beside this file in."""
    return _TEMPLATES.get_template(template).render(**values)
