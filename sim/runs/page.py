"""The page that a run is filed as: one HTML file that needs nothing else."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from compliance.mechanisms import MECHANISMS
from fairwall.laws.metric import METRICS
from sim.games.inference.report import page
from sim.games.reveal.report import wording
from sim.games.reveal.report.answers import UntilKnown, as_needed, asked, until_known
from sim.games.reveal.report.loss_test import LossTestRow, loss_test_rows
from sim.games.reveal.report.printed import PrintedError, printed_errors
from sim.report.cells import ReportCell, Trial, report_cells
from sim.report.notation import (
    MISSING,
    as_float,
    count,
    number,
    plural,
    ratio,
    setting,
    span,
    symbol,
)
from sim.report.tables import Column, PageTable
from sim.runs.folder import read_trials
from sim.scenarios.scenario import Scenario
from sim.scenarios.sweep import Sweep, read

_TEMPLATE = "report.html.j2"
_GUESS = "the developer's guess"
_MODELS = "accuracy of models, %"
_H0 = "h₀"
_LEAST = "accuracy_models_least"


def write_report(folder: Path) -> Path:
    """Write ``report.html`` into a run's folder.

    Every number in it comes from ``trials.jsonl`` and the scenario; ``result.json`` tells the version, whether the run
    was played to its end, and what confined the parties.

    Parameters
    ----------
    folder : Path
        With ``scenario.toml``; ``trials.jsonl`` and ``result.json`` may be missing where a run broke off.

    Returns
    -------
    Path
        Of the page.

    Raises
    ------
    sim.sweep.ScenarioError
        If the scenario cannot be read.
    OSError
        If a file cannot be read or written.
    """
    sweep = read(str(folder / "scenario.toml"))
    path = folder / "trials.jsonl"
    trials = read_trials(path) if path.exists() else []
    result = folder / "result.json"
    recorded = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else MISSING
    page = folder / "report.html"
    page.write_text(_render(sweep, trials, recorded, digest), encoding="utf-8")
    return page


def _render(sweep: Sweep, trials: Sequence[Trial], recorded: dict[str, Any], digest: str) -> str:
    # Importing matplotlib costs as much as all the rest; who only wants the terminal's table is spared it.
    from sim.games.reveal.report.figures.draw import draw_figures

    if sweep.scenario.scenario.game == "inference":
        return _render_inference(sweep, trials, recorded, digest)
    scenario = sweep.scenario
    cells = report_cells(sweep, trials)
    errors = printed_errors(cells)
    tests = loss_test_rows(cells)
    known = until_known(cells)
    planned = sum(cell.scenario.scenario.trials for cell in sweep.cells)
    attribute = scenario.data.protected or "group"
    return _template().render(
        name=scenario.scenario.name,
        about=scenario.scenario.about,
        complete=bool(recorded.get("complete")) and len(trials) == planned,
        finished=len(trials),
        planned=planned,
        played=wording.played(sweep, trials),
        findings=wording.happened(cells, errors, tests, attribute) if cells else (),
        settings=_settings(sweep, cells),
        cells=_cell_table(cells) if cells else None,
        sections=(),
        known=_known_table(known, cells) if known else None,
        figures=draw_figures(cells) if cells else (),
        tests=_test_table(tests) if tests else None,
        printed=_printed_table(errors) if errors else None,
        conclusions=wording.printed_conclusions(errors),
        assumptions=(*wording.assumptions(sweep, trials), *_confinement(recorded.get("confinement", ()))),
        provenance=_provenance(sweep, len(trials), planned, recorded, digest),
    )


def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["inline"] = Markup  # our own drawings, whose texts matplotlib has escaped
    return environment.get_template(_TEMPLATE)


def _provenance(
    sweep: Sweep, finished: int, planned: int, recorded: dict[str, Any], digest: str
) -> tuple[tuple[str, str], ...]:
    scenario = sweep.scenario.scenario
    return (
        ("RevealScenario", scenario.name),
        ("RevealScenario digest (without its seed)", sweep.digest),
        ("Seed", str(scenario.seed)),
        ("Trials", f"{finished:,} of {planned:,}"),
        ("SHA-256 of trials.jsonl", digest),
        ("fairwall", str(recorded.get("version", "version not recorded"))),
    )


def _confinement(starts: Sequence[Mapping[str, Sequence[Mapping[str, Any]]]]) -> Iterator[tuple[str, str]]:
    """Say which layers were active around whom, and warn of those that were not: a term, and what to know about it.

    Parameters
    ----------
    starts : sequence of mapping
        The layers by party, for each time that the parties were started, as ``result.json`` has them.
    """
    active: dict[str, list[str]] = {}
    reasons: dict[tuple[str, str], list[str]] = {}
    for party in dict.fromkeys(party for start in starts for party in start):
        layers = [layer for start in starts for layer in start.get(party, ())]
        missing = dict.fromkeys((layer["name"], layer["why_not"]) for layer in layers if not layer["active"])
        for which in missing:
            reasons.setdefault(which, []).append(party)
        names = dict.fromkeys(layer["name"] for layer in layers)
        own = [name for name in names if name not in {name for name, _ in missing}]
        active.setdefault(_listed(own) or "no layer", []).append(party)
    if active:
        text = " ".join(f"Around {_listed(parties)}: {names}." for names, parties in active.items())
        again = " Parties were started more than once: these were active each time." if len(starts) > 1 else ""
        yield "Layers of confinement that were active", f"{text}{again} What each stops: docs/confinement.md."
    alike: dict[tuple[str, str], list[str]] = {}
    for (name, why_not), parties in reasons.items():
        alike.setdefault((_listed(parties), why_not), []).append(name)
    if alike:
        walls = (f"{_listed(names)} around {parties} ({why_not})" for (parties, why_not), names in alike.items())
        # A reason may name a path, which is to fit a narrow page.
        breakable = escape(f"{'; '.join(walls)}.").replace("/", Markup("/<wbr>"))
        yield "Warning: layers of confinement that were not active", breakable


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _render_inference(sweep: Sweep, trials: Sequence[Trial], recorded: dict[str, Any], digest: str) -> str:
    scenario = sweep.scenario
    planned = sum(cell.scenario.scenario.trials for cell in sweep.cells)
    # A trial has a line for each attack.
    finished = len({tuple(trial[key] for key in ("trial", *scenario.axes)) for trial in trials})
    summary = summarise(sweep, trials)
    return _template().render(
        name=scenario.scenario.name,
        about=scenario.scenario.about,
        complete=bool(recorded.get("complete")) and finished == planned,
        finished=finished,
        planned=planned,
        played=page.played(sweep, trials),
        findings=page.findings(sweep, summary, trials),
        settings=page.settings(sweep),
        cells=None,
        sections=page.sections(sweep, summary, trials),
        known=None,
        figures=page.draw(sweep, summary, trials),
        tests=None,
        printed=None,
        conclusions=(),
        assumptions=(*page.ASSUMPTIONS, *_confinement(recorded.get("confinement", ()))),
        provenance=_provenance(sweep, finished, planned, recorded, digest),
    )


def _settings(sweep: Sweep, cells: Sequence[ReportCell]) -> list[tuple[str, str]]:
    """List how it was played: what one thing had throughout, and what took several values."""
    scenarios = [cell.scenario for cell in sweep.cells]

    def several(values: Sequence[object]) -> str:
        return ", ".join(dict.fromkeys(map(setting, values)))

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


def _cell_table(cells: Sequence[ReportCell]) -> PageTable:
    keys = list(cells[0].swept)
    columns = [
        Column(
            symbol(key),
            [_swept(cell, key) for cell in cells],
            numeric=not any(math.isnan(as_float(cell.swept[key])) for cell in cells),
        )
        for key in keys
    ]
    if any(map(as_needed, cells)):
        columns.append(Column("answers asked", [asked(cell.summary) for cell in cells]))
    features = any("leakage_features" in cell.summary for cell in cells)
    columns += [
        Column("together, %" if features else "leakage, %", [str(cell.leakage) for cell in cells], group=_GUESS),
        Column("features, %" if features else "no query, %", [str(cell.baseline) for cell in cells], group=_GUESS),
        Column(
            "everyone right",
            [f"{cell.summary['exact']:,}/{len(cell.trials):,}" for cell in cells],
            group=_GUESS,
        ),
        Column("people right", [count(cell.summary["recovered"]) for cell in cells], group=_GUESS),
    ]
    if any(1 < cell.targeted < cell.summary["n"] for cell in cells):
        aimed = [f"{count(cell.mean('targeted_recovered'))} of {count(cell.targeted)}" for cell in cells]
        columns.append(Column("right, of those aimed at", aimed, group=_GUESS))
    if any("targeted_rate" in cell.summary for cell in cells):
        columns.append(Column("person aimed at right, %", [_rate(cell) for cell in cells], group=_GUESS))
    if any("targeted_balanced" in cell.summary for cell in cells):
        balanced = [number(_percent(cell, "targeted_balanced")) for cell in cells]
        columns.append(Column("either group, %", balanced, group=_GUESS))
    optional = (
        ("answers, %" if features else "answers alone, %", "leakage_answers"),
        ("smaller group named, %", "leakage_by_size"),
        ("one person known, %", "leakage_by_person"),
    )
    columns += [
        Column(head, [number(cell.summary.get(key)) for cell in cells], group=_GUESS)
        for head, key in optional
        if any(key in cell.summary for cell in cells)
    ]
    columns += [
        Column(head, [number(_percent(cell, key)) for cell in cells], group=_MODELS)
        for head, key in ((_H0, "accuracy_base"), ("mean", "accuracy_models"), ("least", _LEAST))
        if any(key in cell.summary for cell in cells) and (head != _H0 or _own_accuracy(cells) is None)
    ]
    if any("flagged" in cell.summary for cell in cells):
        columns.append(Column("models flagged", [number(cell.summary.get("flagged")) for cell in cells]))
    if any(cell.summary.get("query_error_mean") != 0 for cell in cells):
        columns += [
            Column(head, [number(cell.summary.get(key)) for cell in cells], group="error of an answer")
            for head, key in (("median", "query_error_median"), ("mean", "query_error_mean"))
        ]
    if any(cell.noisy for cell in cells):
        columns.append(Column("ε spent", [number(cell.summary["epsilon_spent"], 6) for cell in cells]))
    papers = [cell.paper for cell in cells]
    printed = (
        ("leakage, %", [None if paper is None else paper.leakage for paper in papers]),
        ("people right", [None if paper is None else paper.recovered for paper in papers]),
        ("average error", [None if paper is None else paper.query_error_mean for paper in papers]),
    )
    columns += [
        Column(head, [number(value, 4) for value in values], group="printed in the paper")
        for head, values in printed
        if any(value is not None for value in values)
    ]
    return PageTable(columns, _cell_notes(cells))


def _own_accuracy(cells: Sequence[ReportCell]) -> str | None:
    """Give h0's accuracy, in percent, where it is one for all cells."""
    texts = {number(_percent(cell, "accuracy_base")) for cell in cells}
    return texts.pop() if len(texts) == 1 else None


def _rate(cell: ReportCell) -> str:
    if "targeted_rate" not in cell.summary:
        return MISSING
    rate, low, high = (100 * cell.summary[f"targeted_{key}"] for key in ("rate", "low", "high"))
    return f"{rate:.1f} ({low:.1f} to {high:.1f})"


def _percent(cell: ReportCell, key: str) -> float | None:
    return 100 * cell.summary[key] if key in cell.summary else None


def _cell_notes(cells: Sequence[ReportCell]) -> list[str]:
    many = {len(cell.trials) for cell in cells}
    people = span({trial["n"] for cell in cells for trial in cell.trials})
    notes = [
        "Means over trials" + (", ± their 95% interval" if many != {1} else "; one trial gives no interval") + ". "
        "Leakage is balanced accuracy: 50% is a coin, 100% is everybody. "
        + (
            "Features alone, answers alone, and both together."
            if any("leakage_features" in cell.summary for cell in cells)
            else "No query is what the developer reached before asking."
        ),
        f"People right are of {people}. {wording.majority_note(cells)}",
    ]
    if any(map(as_needed, cells)):
        notes.append(
            "Answers asked: the size query counts; where the strategy stops by itself, their mean and the most that a "
            "trial took."
        )
    if (own := _own_accuracy(cells)) not in (None, MISSING):
        notes.append(f"The base model h₀ itself decides right for {own}% of the people.")
    if any("flagged" in cell.summary for cell in cells):
        notes.append(
            "Models flagged: how many models of a trial, on average, differ from an earlier one in few people."
        )
    if any(cell.noisy and cell.mechanism == "conceal" for cell in cells):
        notes.append("Attribute-Conceal's noise has no mean, so a mean error under it is chance; read the median.")
    sources = dict.fromkeys(cell.paper.source for cell in cells if cell.paper is not None)
    if sources:
        notes.append(f"Printed figures: {'; '.join(sources)}.")
    return notes


def _swept(cell: ReportCell, key: str) -> str:
    if key == "compliance.mechanism":
        return MECHANISMS[cell.mechanism].title
    if key == "developer.queries":
        return "as needed" if cell.scenario.queries == "needed" else f"{cell.queries:,}"
    return setting(cell.swept[key])


def _known_table(rows: Sequence[UntilKnown], cells: Sequence[ReportCell]) -> PageTable:
    columns = [Column(symbol(key), [row.played[key] for row in rows], numeric=False) for key in rows[0].played]
    columns += [
        Column("answers", [f"more than {row.tried:,}" if row.fewest is None else f"{row.fewest:,}" for row in rows]),
        Column("least ever", [f"{row.bound:,}" for row in rows]),
    ]
    if any(row.printed is not None for row in rows):
        printed = [MISSING if row.printed is None else f"{row.printed:,}" for row in rows]
        columns.append(Column("printed in the paper, m", printed))
    trials = span({len(cell.trials) for cell in cells if not cell.noisy})
    notes = [
        f"Everybody right in every trial, of {trials}: the fewest answers of those tried, or, where the strategy stops "
        "by itself, the most that a trial took. The size query counts; the paper's m leaves it out.",
        "Least ever: log2 C(n, n₀) over the bits that an answer has. No strategy whatever can do with fewer.",
    ]
    return PageTable(columns, notes)


def _test_table(rows: Sequence[LossTestRow]) -> PageTable:
    columns = [
        Column("models", [str(row.models) for row in rows]),
        Column("right about the advantaged, %", [str(row.advantaged) for row in rows]),
        Column("right about the disadvantaged, %", [str(row.disadvantaged) for row in rows]),
        Column("gap, points", [str(row.gap) for row in rows]),
    ]
    if any(row.data for row in rows):
        columns.insert(0, Column("data", [row.data for row in rows], numeric=False))
    return PageTable(columns)


def _printed_table(errors: Sequence[PrintedError]) -> PageTable:
    kinds = {"conceal": "median", "laplace": "mean"}
    return PageTable(
        [
            Column("m", [f"{error.queries:,}" for error in errors]),
            Column("ε", [number(error.epsilon, 6) for error in errors]),
            Column("mechanism", [MECHANISMS[error.mechanism].title for error in errors], numeric=False),
            Column("average error", [number(error.printed, 4) for error in errors], group="printed figure"),
            Column("typical noise", [number(error.formula) for error in errors], group="printed formula"),
            Column("taken", [kinds[error.mechanism] for error in errors], numeric=False, group="printed formula"),
            Column("formula / figure", [ratio(error.ratio) for error in errors]),
            Column("median", [number(error.measured_median) for error in errors], group="measured here"),
            Column("mean", [number(error.measured_mean) for error in errors], group="measured here"),
        ]
    )
