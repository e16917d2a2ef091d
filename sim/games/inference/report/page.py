"""What the page of a run of the inference game tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from compliance.mechanisms import MECHANISMS
from fairwall.laws.metric import METRICS
from sim.games.inference.report import wording
from sim.games.inference.report.cards import cards, note
from sim.games.inference.report.cells import Cell, defence_of
from sim.games.inference.report.tables import sections
from sim.games.inference.scenario import InferenceScenario
from sim.report.cells import Trial
from sim.report.notation import setting, several
from sim.report.page import Page, Section
from sim.scenarios.sweep import Sweep

if TYPE_CHECKING:
    from sim.report.drawing import Look


def page(sweep: Sweep, trials: Sequence[Trial], summary: Sequence[Cell]) -> Page:
    """Make the page of a run.

    Parameters
    ----------
    sweep : Sweep
    trials : sequence of mapping
        The lines of ``trials.jsonl``, one for each attack of a trial; none where no trial finished.
    summary : sequence of mapping
        What the lines come to, for each attack on each cell.
    """
    from sim.report.drawing import looks

    look = looks(defence_of(list(sweep.scenario.axes), summary))
    told = cards(list(sweep.scenario.axes), summary, {name: own.colour for name, own in look.items()})
    return Page(
        cards=told,
        about_cards=note(summary),
        played=wording.played(sweep, trials),
        findings=wording.findings(sweep, summary, trials),
        settings=_settings(sweep),
        sections=(*sections(sweep, summary, trials), *_figures(sweep, summary, trials, look)) if summary else (),
        assumptions=wording.ASSUMPTIONS,
    )


def _figures(
    sweep: Sweep, summary: Sequence[Cell], trials: Sequence[Trial], look: Mapping[str, Look]
) -> tuple[Section, ...]:
    # Imported here: matplotlib costs as much as all the rest.
    from sim.games.inference.report.figures import draw

    return (Section("figures", "Figures", figures=draw(sweep, summary, trials, look)),)


def _settings(sweep: Sweep) -> list[tuple[str, str]]:
    """List how it was played."""
    scenarios = [cell.scenario for cell in sweep.cells]

    shown = [
        ("Data", several([_data(one) for one in scenarios])),
        ("Defence", several([one.developer.defence for one in scenarios])),
        ("λ", several([_strength(one) for one in scenarios])),
        ("Rehearsal, ρ", several([one.developer.rehearsal for one in scenarios])),
        ("Purity, α", several([one.developer.purity for one in scenarios])),
        ("Victims a split", several([one.developer.victims for one in scenarios])),
        ("Splits", several([one.scenario.trials for one in scenarios])),
        ("Shadow models", several([one.adversary.shadows for one in scenarios])),
        ("Probes at most", several([one.adversary.probes for one in scenarios])),
        ("Models answer with", several([one.adversary.answers for one in scenarios])),
    ]
    if any(one.data.include_protected for one in scenarios):
        shown.append(
            ("Models see the group", several(["yes" if one.data.include_protected else "no" for one in scenarios]))
        )
    if any(one.developer.defence == "fft-paper" for one in scenarios):
        shown.append(("The paper's iterations are", several([one.developer.iterations for one in scenarios])))
    private = [one.developer.training_epsilon for one in scenarios if "dp-sgd" in one.developer.defence]
    chosen = [one for one in scenarios if one.developer.lambdas]
    if private:
        shown.append(("ε of DP-SGD", several(private)))
    if chosen:
        shown.append(("Metric", several([METRICS[one.compliance.metric].title for one in chosen])))
        shown.append(("Mechanism", several([MECHANISMS[one.compliance.mechanism].title for one in chosen])))
        shown.append(("Budget of a trial, ε", several([one.epsilon for one in chosen])))
    return shown


def _strength(scenario: InferenceScenario) -> float | str:
    developer = scenario.developer
    if not developer.lambdas:
        return developer.strength
    return f"of {', '.join(map(setting, developer.lambdas))}, chosen by compliance's answers"


def _data(scenario: InferenceScenario) -> str:
    """Name the table and the attribute: of a user's file its format, or what it is called, not where it lies."""
    source, data = scenario.data.source, scenario.data
    name, _, where = source.partition(":")
    named = name if where else PurePath(source).name
    return named + (f", {data.protected}" if data.protected else "")
