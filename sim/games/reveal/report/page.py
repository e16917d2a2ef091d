"""What the page of a run of the reveal game tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compliance.mechanisms import MECHANISMS
from fairwall.laws.metric import METRICS
from sim.games.reveal.report import printed, tables, wording
from sim.games.reveal.report.accuracy_by_group import loss_test_rows
from sim.games.reveal.report.assumptions import assumptions
from sim.games.reveal.report.cells import ReportCell, report_cells
from sim.games.reveal.report.until_known import until_known
from sim.games.reveal.report.verdicts import cards, note
from sim.games.reveal.scenario import RevealScenario
from sim.report.cells import Trial
from sim.report.notation import MISSING, number, plural, several
from sim.report.page import Page, Section, sections
from sim.scenarios.sweep import Sweep


def page(sweep: Sweep, trials: Sequence[Trial], summary: Sequence[Mapping[str, Any]]) -> Page:
    """Make the page of a run.

    Parameters
    ----------
    sweep : Sweep
    trials : sequence of mapping
        The lines of ``trials.jsonl``; none where no trial finished.
    summary : sequence of mapping
        What the lines come to, cell by cell.
    """
    cells = report_cells(sweep, trials, summary)
    tests = loss_test_rows(cells)
    attribute = sweep.scenario.data.protected or "group"
    from sim.report.drawing import looks

    colours = {name: look.colour for name, look in looks(cell.mechanism for cell in cells).items()}
    return Page(
        cards=cards(cells, colours),
        about_cards=note(cells),
        played=wording.played(sweep, trials),
        findings=wording.happened(cells, tests, attribute),
        settings=_settings(sweep, cells),
        sections=tuple(_sections(sweep, cells)) if cells else (),
        assumptions=tuple(assumptions(sweep, trials)),
    )


def _sections(sweep: Sweep, cells: Sequence[ReportCell]) -> Iterator[Section]:
    # Importing matplotlib costs as much as all the rest; who only wants the terminal's table is spared it.
    from sim.games.reveal.report.figures.draw import draw_figures

    figures = draw_figures(cells)
    if figures:
        yield Section("figures", "Figures", figures=figures)
    yield Section("cells", "What was measured", table=tables.cell_table(cells))
    if (table := printed.table(sweep, cells)).rows:
        yield from sections([table], {})
    if known := until_known(cells):
        yield Section("known", "Answers until everybody was known", table=tables.known_table(known, cells))
    if tests := loss_test_rows(cells):
        yield Section(
            "loss-test",
            "What the outsider saw: the loss test",
            before=(
                "The adversary outside had public rows of either group and the answers of the developer’s released "
                "model, and counted how often the model is right about each group.",
            ),
            table=tables.test_table(tests),
            after=(
                "A gap is what distribution inference starts from: a model tends to be right more often about the "
                "group that its training data held more of. Alone it proves nothing about the training data, since "
                "one group may simply be easier to predict; it tells that the model serves the groups unequally, "
                "which anybody with such rows can see without asking compliance.",
            ),
        )


def _settings(sweep: Sweep, cells: Sequence[ReportCell]) -> list[tuple[str, str]]:
    """List how it was played: what one thing had throughout, and what took several values."""
    scenarios = [cell.scenario for cell in sweep.cells]

    data = [
        scenario.data.source + (f", {scenario.data.protected}" if scenario.data.protected else "")
        for scenario in scenarios
    ]
    return [
        ("Data", several(data)),
        ("Metric", several([METRICS[scenario.compliance.metric].title for scenario in scenarios])),
        ("Mechanism", several([MECHANISMS[scenario.compliance.mechanism].title for scenario in scenarios])),
        ("Budget of a trial, ε", several([scenario.epsilon for scenario in scenarios])),
        ("Metric queries, m", several([_queries(cell) for cell in cells] or [s.queries for s in scenarios])),
        *_public(scenarios),
        ("Strategy", several([scenario.developer.strategy for scenario in scenarios])),
        (
            "Decoder",
            several([scenario.decoder or "none: the strategy reads the answers itself" for scenario in scenarios]),
        ),
        ("Predictions moved by at most", several([float(number(_moved(cell), 3)) for cell in cells]) or MISSING),
        ("Trials of a cell", several([scenario.scenario.trials for scenario in scenarios])),
    ]


def _queries(cell: ReportCell) -> int | str:
    return "as many as it takes" if cell.scenario.queries == "needed" else cell.queries


def _public(scenarios: Sequence[RevealScenario]) -> list[tuple[str, str]]:
    """List what is public besides, where it is not what it usually is."""
    precisions = dict.fromkeys(scenario.compliance.precision for scenario in scenarios)
    rows = []
    if set(precisions) != {"float64"}:
        texts = (text if isinstance(text, str) else plural(text, "decimal") for text in precisions)
        rows.append(("Answers written as", ", ".join(texts)))
    if any(scenario.data.hidden for scenario in scenarios):
        rows.append(("Test set", "compliance alone has it, and asks the developer's models"))
    if any(scenario.compliance.differencing for scenario in scenarios):
        few = max(scenario.compliance.differencing for scenario in scenarios)
        rows.append(("Models flagged", f"if they differ from an earlier one in 1 to {few} people"))
    samples = sorted({scenario.developer.public_sample for scenario in scenarios})
    if samples != [0]:
        rows.append(("Public people whose group is known", ", ".join(f"{many:,}" for many in samples)))
    return rows


def _moved(cell: ReportCell) -> float:
    return float(max(trial["max_prediction_change"] for trial in cell.trials))
