"""Texts and figures of the page of a curator run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fairwall.laws.studies.cheat_detection import NOISE_LEVEL, TESTS
from sim.games.curator.columns import accused_of, shift_of, tables, won_of
from sim.games.curator.scenario import CuratorScenario
from sim.games.game import Line
from sim.report.cells import Swept, best_of_each
from sim.report.drawing import Figure
from sim.report.estimates import INTERVALS, IntervalEstimate
from sim.report.interval_plot import DotPanel, Row, dot_plot
from sim.report.notation import plural
from sim.report.page import Bar, Card, Page, Term, sections, settings
from sim.scenarios.sweep import Sweep

_ANSWERS = (
    "Left, how far answers are from the honest ones on average; right, in which share of the trials compliance is "
    "accused. Filled marks are measured, with 95% intervals; hollow ones are by the law, where there is one: the mean"
    " of the largest of so many noises, and 1 − (1 − f)^s for s openings where a share f of the requests is affected."
)
_SAMPLE = "In which share of the trials each test of goodness of fit is below 5%; the dotted line is what chance does."
_OF_TESTS = {"ks": "KS", "chi2": "χ²", "wasserstein": "Wasserstein", "mmd": "MMD", "energy": "energy"}
_CARDS = "Of each cheat and defence that were played the cell in which compliance won most."
_ASSUMPTIONS: tuple[Term, ...] = (
    (
        "What wins",
        "An answer that is a scale of its noise or more away from the honest one, or a sample that passes, and a "
        "regulator who does not accuse. The honest answer has the attributes that people have, and its own noise.",
    ),
    (
        "Statistics alone do not suffice",
        f"At a level of {NOISE_LEVEL:.0e}, which an honest service needs that is looked at often, openings that find "
        "the best of five noises do not find the better of two.",
    ),
    (
        "What a commitment binds",
        "Attributes, row by row, and the seed of all noise, before anybody asks; each request adds a nonce of the "
        "developer's. What is opened is recomputed to the last bit. Attributes that were wrong before are committed to "
        "as they are: nobody finds them who does not ask people.",
    ),
    (
        "Who sees what",
        "Attributes, salts and seed are opened to the regulator alone. The developer has roots, answers and verdicts.",
    ),
    ("Intervals", INTERVALS),
)


def page(sweep: Sweep[CuratorScenario], lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    """Return the page of a run, from its sweep, the lines of `trials.jsonl` and their summary."""
    told, by_won = tables(sweep, lines, summary), sorted(summary, key=lambda cell: -won_of(cell).mean)
    return Page(
        cards=[*map(_card, best_of_each(by_won, lambda cell: (cell["cheat"], cell["defence"]), lambda _: 0))],
        about_cards=_CARDS,
        played=_played(lines),
        findings=tuple(_findings(summary)) or ("No trial finished.",),
        settings=settings(
            sweep,
            {
                "Cheat": lambda one: one.curator.cheat,
                "Strength": lambda one: one.curator.strength,
                "Share of requests": lambda one: one.curator.share,
                "Defence": lambda one: one.curator.defence,
                "Requests": lambda one: one.curator.requests,
                "Openings": lambda one: one.curator.openings,
                "Sample": lambda one: one.curator.sample,
                "People": lambda one: one.data.people,
                "Trials a cell": lambda one: one.scenario.trials,
            },
        ),
        sections=sections(told, {one.name: [_FIGURES[one.name](one.swept, one.rows)] for one in told}),
        assumptions=_ASSUMPTIONS,
    )


def _of_answers(swept: Swept, cells: Sequence[Line]) -> Figure:
    def rows(of: Callable[[Line], IntervalEstimate | None]) -> list[Row]:
        return [(swept.name(cell) or "the run", of(cell)) for cell in cells]

    def panel(
        title: str, measured: Callable[[Line], IntervalEstimate], law: str, level: float | None = None
    ) -> DotPanel:
        laws = rows(lambda cell: None if cell[law] is None else IntervalEstimate(cell[law]))
        return DotPanel(title, {"measured": rows(measured), "by the law": laws}, level=level)

    shift = panel("mean shift, in scales of the noise", shift_of, "shift_law", 0.0)
    accused = panel("share accused", accused_of, "caught_law")
    return dot_plot("cheats", "What a cheat gains, and how often it is found", _ANSWERS, [shift, accused])


def _of_sample(swept: Swept, cells: Sequence[Line]) -> Figure:
    series = {
        swept.name(cell) or "the run": [(_OF_TESTS[test], IntervalEstimate(cell["flagged"][test])) for test in TESTS]
        for cell in cells
    }
    return dot_plot("tests", "Which tests flag a sample", _SAMPLE, [DotPanel("share flagged", series, level=0.05)])


_FIGURES = {"answers": _of_answers, "sample": _of_sample}

_DONE = {
    "none": "Honest",
    "best": "Best of {:,} noises",
    "quiet": "{:,} times less noise",
    "dropped": "{:,} people left out",
    "relabelled": "{:,} people relabelled",
    "mislabelled": "{:,} people mislabelled before the start",
    "picked": "A picked sample",
}
"""Text of each cheat, with its strength."""

_LOOKED_AT = {
    "none": "nobody looks",
    "statistics": "{:,} answers opened and tested",
    "commitment": "committed, {:,} answers opened",
}
"""Text of each defence, with the number of openings."""


def _title(cell: Line) -> str:
    done = _DONE[cell["cheat"]].format(cell["strength"])
    some = f" at {100 * cell['share']:g}% of the requests" if cell["share"] < 1 else ""
    looked_at = "a sample shown" if cell["sample"] else _LOOKED_AT[cell["defence"]].format(cell["openings"])
    return f"{done}{some}; {looked_at}"


def _card(cell: Line) -> Card:
    won, accused = won_of(cell).mean, accused_of(cell).mean
    did = (
        f"{cell['flags']:.1f} of 5 tests flag the sample, whose gap is {cell['gap_shown']:.3f} where all have "
        f"{cell['gap_of_all']:.3f}".replace("-", "−")
        if cell["sample"]
        else f"Answers move by {shift_of(cell).text(2)} scales of the noise on average"
    )
    text = f"{did}; compliance is accused in {100 * accused:.0f}% of the trials, and wins in {100 * won:.0f}%."
    bar = Bar.on((0.0, 1.0), 0.0, won, ("never wins", "always wins"), f"Won in {100 * won:.0f}% of the trials")
    return Card(_title(cell), text, bar)


def _played(lines: Sequence[Line]) -> str:
    return (
        "The developer asked compliance about models that it drew at random. Compliance answered, in some cells not as "
        "it had promised. A regulator opened some of the requests, by the cell's defence, and said whether it accuses "
        f"compliance, in {plural(len(lines), 'trial')} in all."
    )


def _findings(summary: Sequence[Line]) -> Iterator[str]:
    honest = [cell for cell in summary if cell["cheat"] == "none" and cell["defence"] != "none"]
    if honest:
        accused, trials = (sum(cell[key] for cell in honest) for key in ("accused", "trials"))
        yield f"An honest compliance was accused in {accused:,} of {plural(trials, 'trial')}."
    bound = [cell for cell in summary if cell["defence"] == "commitment"]
    if bound:
        opened = sum(cell["opened_affected"] for cell in bound)
        missed = sum(cell["missed"] for cell in bound if cell["cheat"] != "mislabelled")
        yield (
            f"Under a commitment, requests that were answered otherwise were among those opened in {opened:,} trials; "
            f"leaving out attributes that were wrong before, {missed:,} of them ended without an accusation."
        )
    looked_at = [cell for cell in summary if cell["defence"] == "statistics" and cell["cheat"] != "none"]
    if looked_at:
        least = min(looked_at, key=lambda cell: cell["accused"] / cell["trials"])
        yield (
            f"Statistics alone do not suffice: of all that was tested, “{_title(least)}” is accused least, in "
            f"{100 * least['accused'] / least['trials']:.0f}% of the trials."
        )
