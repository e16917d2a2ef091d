"""Texts and the figure of the page of an overfit run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sim.games.game import Line
from sim.games.overfit.columns import above, answers_of, overfit_of, swept_of, tables, unprotected, x_of
from sim.games.overfit.scenario import ROWS, OverfitScenario
from sim.games.overfit.trial import PASSES, STAYS
from sim.report.cells import Swept
from sim.report.drawing import Figure
from sim.report.estimates import INTERVALS, IntervalEstimate
from sim.report.interval_plot import DotPanel, dot_plot
from sim.report.notation import span
from sim.report.page import Page, Term, sections, settings
from sim.scenarios.sweep import Sweep

_CAPTION = (
    "The population's gap less the audited one, and its parts: what X alone makes, which no noise on answers changes, "
    "and what answers make, beside the most that they can. Means with 95% intervals over the trials."
)
_ASSUMPTIONS: tuple[Term, ...] = (
    ("The rows", f"{'; '.join(f'{kind}: {what}' for kind, what in ROWS.items())}."),
    (
        "Patches",
        "A patch turns the decision on one X: on everybody with the same features, in the population, too. A majority "
        "turns the rejected X with the most votes.",
    ),
    (
        "Of X, of answers",
        "The overfit is split at the audited gap that was to be expected with these patches, given what the developer "
        "saw of the rows before it asked. That is known exactly: rows that look alike it cannot tell apart, and the "
        "table says how many of these are disadvantaged.",
    ),
    (
        "The bound",
        "What answers make is at most σ√(2I) in expectation, of a gap that is sub-Gaussian given X (Russo and Zou, "
        "2016); σ is its sub-Gaussian constant. For I stands the least of the entropy of A given X, of what epsilon "
        "allows about each row, and, of counts, of what noise leaves of each sum. What X makes has no such bound.",
    ),
    (
        "The adversary",
        "The developer, which asks by the reveal game's best strategy about models made for it, and knows a public "
        "predictor of A where it sees X. A better predictor makes more of X. In each of several rounds it asks at an "
        "equal part of epsilon, of fresh rows about those of the round; it patches after the last.",
    ),
    ("Intervals", INTERVALS),
)


def page(sweep: Sweep[OverfitScenario], lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    """Return the page of a run, from its sweep, the lines of `trials.jsonl` and their summary."""
    swept = swept_of(sweep)
    return Page(
        played=_played(lines),
        findings=tuple(findings(swept, summary)) or ("No trial finished.",),
        settings=settings(
            sweep,
            {
                "Table": lambda one: one.data.source,
                "Audited rows": lambda one: one.data.test_size,
                "Kind of rows": lambda one: one.overfit.rows,
                "Attack": lambda one: one.overfit.attack,
                "Patches at most": lambda one: one.overfit.flips,
                "Rounds": lambda one: one.overfit.rounds,
                "Mechanism": lambda one: one.compliance.mechanism,
                "Epsilon": lambda one: one.epsilon,
                "Public sample": lambda one: one.overfit.public_sample,
                "Held back at most": lambda one: one.overfit.population,
                "Trials a cell": lambda one: one.scenario.trials,
            },
        ),
        sections=sections(tables(sweep, lines, summary), {"overfit": [_figure(swept, summary)]}) if summary else (),
        assumptions=_ASSUMPTIONS,
    )


def _figure(swept: Swept, summary: Sequence[Line]) -> Figure:
    def rows(of: Callable[[Line], IntervalEstimate | None]) -> list[tuple[str, IntervalEstimate | None]]:
        return [(swept.name(cell) or "the run", of(cell)) for cell in summary]

    bounds, nothing = rows(lambda cell: IntervalEstimate(cell["bound"])), rows(lambda _: None)
    shown = (("overfit", overfit_of, nothing), ("of X", x_of, nothing), ("of answers", answers_of, bounds))
    panels = [DotPanel(title, {"measured": rows(of), "σ√(2I)": most}, level=0.0) for title, of, most in shown]
    return dot_plot("overfit", "Where the overfit comes from", _CAPTION, panels, level="none")


def _played(lines: Sequence[Line]) -> str:
    rows, flips = (span({line[key] for line in lines}) if lines else "some" for key in ("n", "flips"))
    return (
        f"One model was audited on {rows} rows and deployed. The developer turned up to {flips} of its decisions so "
        f"that the audited gap fell; it wins with an audited gap within {PASSES} of 0 beside a population's gap of at "
        f"least {STAYS}."
    )


def findings(swept: Swept, summary: Sequence[Line]) -> Iterator[str]:
    """Yield the findings, and for each cell whether its bound is broken or X alone makes an overfit."""
    if not summary:
        return
    worst = max(summary, key=lambda cell: cell["overfit"])
    yield (
        f"The largest overfit was {overfit_of(worst).text(3)} ({swept.name(worst) or 'the run'}): the audited gap fell "
        f"by {worst['fall']:.3f}, the population's by {worst['population_fall']:.4f}; the developer won {worst['won']} "
        f"of {worst['trials']} trials."
    )
    for cell in summary:
        name, made = swept.name(cell) or "the run", answers_of(cell).text(3)
        if above(cell):
            yield f"{name}: answers made {made}, above the {cell['bound']:.3f} that they can: something is broken."
        if unprotected(cell):
            yield f"{name}: X alone made {x_of(cell).text(3)}; epsilon does not protect against this."
    held = [cell for cell in summary if cell["nats"] > 0 and not above(cell) and not unprotected(cell)]
    if held:
        yield (
            f"In {len(held)} of {len(summary)} cells overfit comes of answers, and one noise serves both purposes: the "
            "less they tell of A, the less a model can be fitted to the audited rows."
        )
