"""The results of comparing a run with published figures: for a terminal of 80 columns, and on a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rich.console import Group

from fairwall.laws.local import CLEAN
from sim.games.release import studied
from sim.games.release.questions import answers
from sim.games.release.scenario import CONTROLS, ReleaseDeveloper, ReleaseScenario
from sim.games.release.seeds import METRICS, Figures
from sim.games.release.studied import RULES, Told
from sim.papers.compare import BARS, REPRODUCTION_CELLS, REPRODUCTION_SEEDS, ROUNDING, CellComparison, Held
from sim.report.cells import Swept
from sim.report.columns import Measure, Sheet
from sim.report.notation import MISSING, plural
from sim.report.page import Page, sections
from sim.report.terminal import fitted
from sim.scenarios.sweep import Sweep

_WORST = 20
"""Most comparisons on the page."""

_HOW = (
    (
        "How figures are compared",
        "Under a protocol both sides drew noise of their own, so that only laws can agree. The mean difference of each "
        "metric of each cell is held against its standard error: paired by seed where two seeds or more are in common, "
        "else Welch's. Few seeds know their standard error badly: the tolerance is Student's quantile that lies as far "
        "out as 2, or 3, of the normal law. Without a protocol each seed must agree but for rounding.",
    ),
    (
        "How the questions are",
        "Of both sides, the cells that both have. The published file has no clean models. Where the run's learner is "
        "as published, the run's clean models stand in for them, in the seeds that it played: as the file of clean "
        "models shows, they are the same seed by seed, but for rounding. Else nothing is said of the published RQ1.",
    ),
)


def terminal(sweeps: Sequence[Sweep[ReleaseScenario]], held: Held, *, everything: bool) -> Group:
    """Return the comparisons, all or those beyond their tolerance, and a summary, in 80 columns."""
    shown = [each for each in held.comparisons if everything or each.beyond]
    table = [fitted(_table("shown", "", shown, _columns(held.exact)))] if shown else []
    return Group(*table, *studied.terminal(_told(sweeps, held)), *_summary(held), _verdict(held))


def _told(sweeps: Sequence[Sweep[ReleaseScenario]], held: Held) -> Told:
    """Answer the paper's questions from both sides' common cells, if any has a protocol."""
    if held.exact:
        return ()
    controls = {cell: seeds for cell, seeds in held.ours.items() if cell.protocol in CONTROLS}
    as_published = all(cell.scenario.developer == ReleaseDeveloper() for sweep in sweeps for cell in sweep.cells)
    clean = {cell: seeds for cell, seeds in controls.items() if cell.protocol == CLEAN and as_published}
    sides: dict[str, Figures] = {
        "published": {**clean, **held.theirs},
        "this run": {**controls, **{cell: held.ours[cell] for cell in held.theirs}},
    }
    return [(side, answered) for side, figures in sides.items() for answered in answers(figures)]


def page(sweeps: Sequence[Sweep[ReleaseScenario]], held: Held, file: str) -> Page:
    """Return a page on how the runs of these sweeps agree with the published figures of a file."""
    # Imported here: matplotlib takes as long to import as everything else.
    from sim.games.release.figures import draw

    data = list(dict.fromkeys(cell.data for cell in held.theirs))
    trees = dict.fromkeys(str(sweep.scenario.developer.trees or "as published") for sweep in sweeps)
    told = _told(sweeps, held)
    questions = [
        section
        for each in ([] if held.exact else data)
        for section in studied.sections(each, told, draw(held.ours, each, held.theirs))
    ]
    return Page(
        played=f"A run of the release game was held against the published figures of {file}, seed by seed.",
        findings=[f"{'; '.join(map(str.strip, _summary(held)))}.", f"{_verdict(held)}."],
        settings=[("Data", ", ".join(data)), ("Trees", ", ".join(trees))],
        sections=(*questions, *sections([_by_metric(held), _worst(held)], {})),
        assumptions=(*_HOW, *([RULES] if any(section.conclusions for section in questions) else [])),
    )


def _by_metric(held: Held) -> Sheet[Sequence[CellComparison]]:
    by_metric = ([each for each in held.compared if each.metric == metric] for metric in METRICS)

    def beyond(errors: int, rows: Sequence[CellComparison]) -> float:
        return 100 * sum(each.beyond >= errors for each in rows) / len(rows)

    columns: list[Measure[Sequence[CellComparison]]] = [
        Measure("metric", of=lambda rows: rows[0].metric, words=True),
        Measure("comparisons", of=lambda rows: str(len(rows))),
        Measure("differ, %" if held.exact else "beyond 2 standard errors, %", of=partial(beyond, 2), digits=1),
        *([] if held.exact else [Measure[Any]("beyond 3, %", of=partial(beyond, 3), digits=1)]),
        Measure("largest difference", of=lambda rows: f"{max((each.difference for each in rows), key=abs):+.2g}"),
    ]
    return _table("metrics", "Comparisons by metric", list(filter(None, by_metric)), columns)


def _worst(held: Held) -> Sheet[CellComparison]:
    def out(comparison: CellComparison) -> float:
        return abs(comparison.difference) / comparison.tolerances[0] if comparison.tolerances else 0.0

    worst = sorted(held.compared, key=out, reverse=True)[:_WORST]
    return _table("worst", f"The {plural(len(worst), 'comparison')} farthest out", worst, _columns(held.exact))


def _table(name: str, heading: str, rows: Sequence[Any], columns: Sequence[Measure[Any]]) -> Sheet[Any]:
    return Sheet(name, heading, Swept(()), rows, columns, linked=False)


def _columns(exact: bool) -> list[Measure[CellComparison]]:
    columns: dict[str, Callable[[CellComparison], Any]] = {
        "data": lambda row: row.cell.data,
        "protocol": lambda row: row.cell.protocol,
        "split": lambda row: row.cell.split or MISSING,
        "ε": lambda row: row.cell.epsilon,
        "metric": lambda row: row.metric,
        "seeds": lambda row: str(row.seeds),
        "difference": lambda row: f"{row.difference:+.2g}",
        "tolerance": lambda row: MISSING if row.tolerances is None else f"{row.tolerances[0]:.2g}",
        "verdict": lambda row: _word(row, exact),
    }
    words = ("data", "protocol", "split", "metric", "verdict")
    return [Measure(head, of=of, short=head, words=head in words, kept=True) for head, of in columns.items()]


def _word(comparison: CellComparison, exact: bool) -> str:
    if comparison.tolerances is None:
        return "too few"
    if not comparison.beyond:
        return "agrees"
    return "differs" if exact else f"> {comparison.beyond} SE"


def _summary(held: Held) -> list[str]:
    compared = held.compared
    lines = [
        f"cells: {held.cells():,} of the file's {held.published:,}, "
        f"{held.cells(REPRODUCTION_SEEDS):,} of them in {REPRODUCTION_SEEDS} seeds or more"
    ]
    if held.exact:
        worst = max(abs(each.difference) for each in compared)
        lines.append(f"{plural(len(compared), 'comparison')}, each seed by itself: largest difference {worst:.2g}")
    else:
        shares = (
            f"{100 * held.share(errors):.1f}% beyond {errors} standard errors (at most {100 * bar:g}%)"
            for errors, bar in zip((2, 3), BARS, strict=True)
        )
        lines += [plural(len(compared), "comparison"), *(f"  {share}" for share in shares)]
        study = "drawn by each seed (appendix)" if held.drawn else "the same in each trial (main study)"
        lines.append(f"sensitive columns: {study}; the file does not say")
    if held.otherwise:
        lines.append(f"trained otherwise than what is published: {held.otherwise}")
    few = len(held.comparisons) - len(compared)
    if few:
        lines.append(f"not compared, too few seeds: {few:,}")
    if held.left_out:
        lines.append(f"skipped, not a number: {plural(held.left_out, 'figure')}")
    return lines


def _verdict(held: Held) -> str:
    if held.exact:
        return f"{'agrees' if held.well else 'DIFFERS'}: tolerance {ROUNDING:g} for each seed"
    found = "agrees" if held.well else "DIFFERS"
    if held.reproduction:
        return f"{found}: a reproduction of the published study" if held.well else f"{found}: no reproduction"
    return f"{found}; a reproduction takes {REPRODUCTION_CELLS} cells in {REPRODUCTION_SEEDS} seeds or more each"
