"""The page of a run: one HTML file that needs nothing else. What it tells, its game says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sim.report.tables import PageTable

if TYPE_CHECKING:
    from sim.report.drawing import Figure

Term = tuple[str, str]
"""A term, and what to know about it."""


@dataclass(frozen=True)
class Section:
    """A heading of the page and what stands below it, in this order.

    Parameters
    ----------
    name : str
        Unique in the page: its id there.
    heading : str
    before : sequence of str
        Paragraphs.
    conclusions : sequence of str
        Set apart, a sentence or two each.
    table : PageTable, optional
    figures : sequence of Figure
    after : sequence of str
        Paragraphs.
    """

    name: str
    heading: str
    before: Sequence[str] = ()
    conclusions: Sequence[str] = ()
    table: PageTable | None = None
    figures: Sequence[Figure] = ()
    after: Sequence[str] = ()


@dataclass(frozen=True)
class Page:
    """All that a game tells of a run.

    Parameters
    ----------
    played : str
        What was played, and who held what.
    findings : sequence of str
        What happened, a finding a paragraph.
    settings : sequence of (str, str)
        How it was played.
    sections : sequence of Section
        What was measured: tables and figures.
    assumptions : sequence of (str, str)
        What was assumed, and what was and was not protected.
    """

    played: str
    findings: Sequence[str]
    settings: Sequence[Term]
    sections: Sequence[Section]
    assumptions: Sequence[Term]


@dataclass(frozen=True)
class Frame:
    """What is told of a run of any game.

    Parameters
    ----------
    name, about : str
        The scenario's name, and what it says of itself.
    finished, planned : int
        How many trials.
    complete : bool
        Whether the run was played to its end.
    left_out : sequence of (str, str)
        Which rows of the table were not played with.
    secrecy : sequence of (str, str)
        What parties could have recomputed or known besides.
    confinement : sequence of (str, str)
        What stood around the parties.
    provenance : sequence of (str, str)
        What the page was made from.
    beside : str
        A file of published figures that the run is held against, if it is.
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


def render(page: Page, frame: Frame) -> str:
    """Write the page: the same bytes for the same arguments."""
    assumptions = (*page.assumptions, *frame.left_out, *frame.secrecy, *frame.confinement)
    return fill("report.html.j2", page=page, frame=frame, assumptions=assumptions)


def fill(template: str, **values: object) -> str:
    """Fill one of the templates beside this file in."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["inline"] = Markup  # our own drawings, whose texts matplotlib has escaped
    return environment.get_template(template).render(**values)
