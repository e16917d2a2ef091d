"""What a run that was held against published figures comes to: for a terminal of 80 columns, and on a page."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from fairwall.laws.local import CLEAN
from sim.games.release.questions import answers
from sim.games.release.report import studied
from sim.games.release.report.studied import Told
from sim.games.release.report.verdicts import RULES
from sim.games.release.scenario import CONTROLS, ReleaseDeveloper, ReleaseScenario
from sim.games.release.seeds import METRICS, Figures
from sim.papers.compare import BARS, REPRODUCTION_CELLS, REPRODUCTION_SEEDS, ROUNDING, Comparison, Held
from sim.report.notation import MISSING, number, plural
from sim.report.page import Page, Section
from sim.report.tables import Column, PageTable
from sim.scenarios.sweep import Sweep

_WORST = 20
"""So many comparisons stand on the page."""

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
    """Lay out comparisons, all or those beyond their tolerance, and what they come to together, in 80 columns."""
    shown = [each for each in held.comparisons if everything or each.beyond]
    table = [_table(shown, held.exact)] if shown else []
    return Group(*table, *studied.terminal(_told(sweeps, held)), *_summary(held), _verdict(held))


def _told(sweeps: Sequence[Sweep[ReleaseScenario]], held: Held) -> Told:
    """Put the paper's questions to both sides' common cells, if any has a protocol."""
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
    """Tell at length how the runs of these sweeps agree with the published figures of a file."""
    # Imported here: matplotlib costs as much as all the rest.
    from sim.games.release.report.figures import draw

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
        sections=(*questions, _by_metric(held), _worst(held)),
        assumptions=(*_HOW, *([RULES] if any(section.conclusions for section in questions) else [])),
    )


def _by_metric(held: Held) -> Section:
    by_metric = {metric: [each for each in held.compared if each.metric == metric] for metric in METRICS}
    rows = [(metric, found) for metric, found in by_metric.items() if found]

    def beyond(errors: int) -> list[str]:
        return [f"{100 * sum(each.beyond >= errors for each in found) / len(found):.1f}" for _, found in rows]

    columns = [
        Column("metric", [metric for metric, _ in rows], numeric=False),
        Column("comparisons", [str(len(found)) for _, found in rows]),
        Column("differ, %" if held.exact else "beyond 2 standard errors, %", beyond(2)),
        *([] if held.exact else [Column("beyond 3, %", beyond(3))]),
        Column(
            "largest difference", [f"{max((each.difference for each in found), key=abs):+.2g}" for _, found in rows]
        ),
    ]
    return Section("metrics", "Comparisons by metric", table=PageTable(columns))


def _worst(held: Held) -> Section:
    def out(each: Comparison) -> float:
        return abs(each.difference) / each.tolerances[0] if each.tolerances else 0.0

    worst = sorted(held.compared, key=out, reverse=True)[:_WORST]
    texts = zip(*(_texts(each, held.exact) for each in worst), strict=True)
    columns = [Column(head, list(texts), head in _NUMBERS) for head, texts in zip(_HEADS, texts, strict=True)]
    return Section("worst", f"The {plural(len(worst), 'comparison')} farthest out", table=PageTable(columns))


_HEADS = ("data", "protocol", "split", "ε", "metric", "seeds", "difference", "tolerance", "verdict")
_NUMBERS = ("ε", "seeds", "difference", "tolerance")


def _table(shown: Sequence[Comparison], exact: bool) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=0, show_edge=False)
    for head in _HEADS:
        table.add_column(head, justify="right" if head in _NUMBERS else "left", no_wrap=True)
    for each in shown:
        table.add_row(*_texts(each, exact))
    return table


def _texts(each: Comparison, exact: bool) -> tuple[str, ...]:
    """Write a comparison, head by head."""
    cell = each.cell
    return (
        cell.data,
        cell.protocol,
        cell.split or MISSING,
        number(cell.epsilon),
        each.metric,
        str(each.seeds),
        f"{each.difference:+.2g}",
        MISSING if each.tolerances is None else f"{each.tolerances[0]:.2g}",
        _word(each, exact),
    )


def _word(each: Comparison, exact: bool) -> str:
    if each.tolerances is None:
        return "too few"
    if not each.beyond:
        return "agrees"
    return "differs" if exact else f"> {each.beyond} SE"


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
