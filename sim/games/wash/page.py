"""Texts of the page of a washing run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sim.games.game import Line
from sim.games.wash.columns import check_of, tables, way_of
from sim.games.wash.scenario import WashScenario
from sim.report.cells import Swept
from sim.report.columns import mean_of
from sim.report.drawing import Figure, looks
from sim.report.estimates import INTERVALS, PERCENT
from sim.report.interval_plot import DotPanel, dot_plot
from sim.report.notation import span
from sim.report.page import Bar, Card, Page, Term, sections, settings
from sim.scenarios.sweep import Sweep

_TITLE = "Who passes, who is accused, and who gets away"
_CAPTION = (
    "Percent of trials, with 95% intervals. A row is a way of washing, a mark a way of checking. A developer gets away "
    "whose deployed gap is at least 0.05 above tau, who passes the audit, and whom nobody accuses."
)
_ASSUMPTIONS: tuple[Term, ...] = (
    (
        "What is checked",
        "A customer asks the deployed model about audited rows drawn at random, and tells compliance what it saw. "
        "That is compared with what was audited. Of f rows in n that are shown otherwise, k checks hit one with "
        "probability 1 − C(n − f, k) / C(n, k), if they are drawn after the f are settled.",
    ),
    (
        "What is not",
        "A developer that knows which rows customers asked about, and is bound to nothing, shows these as they are. A "
        "commitment before the draw prevents that. It does not show how a model was trained, nor that the deployed one "
        "answers everybody alike.",
    ),
    (
        "What the developer knows",
        "Features of the audited rows, and a public sample in which groups are known. Where it asks who is who, it "
        "spends half of epsilon on that, and half on the audit itself.",
    ),
    ("Intervals", INTERVALS),
)


def page(sweep: Sweep[WashScenario], lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    """Return the page of a run, from its sweep, the lines of `trials.jsonl` and their summary."""
    swept = Swept(sweep.scenario.axes)
    best = max(summary, key=lambda cell: cell["won"], default=None)
    return Page(
        cards=[] if best is None else [_card(swept, best)],
        about_cards="The way of washing that got away most often, of those played.",
        played=_played(lines),
        findings=tuple(_findings(swept, summary)) or ("No trial finished.",),
        settings=settings(
            sweep,
            {
                "Audited people": lambda one: one.data.test_size,
                "Strategy": lambda one: one.wash.strategy,
                "Who is who, from": lambda one: one.wash.knows,
                "Mechanism": lambda one: one.compliance.mechanism,
                "Epsilon": lambda one: one.epsilon,
                "Tau": lambda one: one.wash.tau,
                "Rows checked": lambda one: one.wash.checks,
                "Committed": lambda one: "yes" if one.wash.committed else "no",
                "Trials a cell": lambda one: one.scenario.trials,
            },
        ),
        sections=sections(tables(sweep, lines, summary), {"wash": [_figure(swept, summary)]}) if summary else (),
        assumptions=_ASSUMPTIONS,
    )


def _figure(swept: Swept, summary: Sequence[Line]) -> Figure:
    cells = {(way_of(swept, cell), check_of(swept, cell)): cell for cell in summary}
    ways, checks = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True))
    panels = []
    for key, title in (("passed", "audit passed, %"), ("accused", "accused, %"), ("won", "got away, %")):
        found = mean_of(key, PERCENT)
        series = {
            check: [(way, found(cells[way, check]) if (way, check) in cells else None) for way in ways]
            for check in checks
        }
        panels.append(DotPanel(title, series))
    return dot_plot("washing", _TITLE, _CAPTION, panels, same_scale=True, look=looks(checks))


def _card(swept: Swept, cell: Line) -> Card:
    passed, won = (mean_of(key, PERCENT)(cell) for key in ("passed", "won"))
    text = (
        f"A model with a gap of {cell['deployed_gap']:.3f} is deployed, and one with {cell['shown_gap']:.3f} audited, "
        f"which differs in {cell['flips']:.0f} of {cell['people']:,} rows: it passes in "
        f"{passed.text(0, '%', ends=0)} of trials, and gets away in {won.text(0, '%', ends=0)}."
    )
    bar = Bar.on((0.0, 100.0), 0.0, won.mean, ("never", "always"), f"Got away in {won.mean:.0f}% of trials")
    return Card(swept.name(cell) or way_of(swept, cell), text, bar)


def _played(lines: Sequence[Line]) -> str:
    people = span({line["people"] for line in lines}) if lines else "some"
    return (
        f"The developer deployed a model, and had compliance audit what it showed of it on {people} people. A customer "
        "asked the deployed model about some of them, and compliance compared what it saw with what was audited."
    )


def _findings(swept: Swept, summary: Sequence[Line]) -> Iterator[str]:
    for cell in summary:
        if cell["flips_to_pass"] is not None and cell["strategy"] == "flips" and not cell["checks"]:
            yield (
                f"{way_of(swept, cell)}: {cell['flips_to_pass']:.0f} flips bring a gap of {cell['deployed_gap']:.3f} "
                f"down to {cell['tau']:g}, in the median."
            )
    accused = [cell for cell in summary if cell["strategy"] == "honest" and cell["accused"] > 0]
    if any(cell["strategy"] == "honest" for cell in summary):
        yield f"An honest developer was accused in {'some trials' if accused else 'no trial'}."
