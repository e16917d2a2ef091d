"""The cells of a run: what each combination of swept values came to, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from compliance.mechanisms import MECHANISMS
from fairwall.laws.risk import Sure
from sim.games.reveal.record import sure_of
from sim.games.reveal.scenario import RevealFigure, RevealScenario
from sim.report.cells import Trial, best_of_each, paper_figure, scenario_of
from sim.report.estimates import PERCENT, POINTS, Estimate, estimate
from sim.report.notation import as_float, number
from sim.scenarios.sweep import Sweep


@dataclass(frozen=True)
class ReportCell:
    """A cell that at least one trial was played of.

    ``scenario`` has the swept values in place, ``summary`` is its entry of the run's summary, and ``trials`` are its
    lines of ``trials.jsonl``.
    """

    swept: Mapping[str, Any]
    scenario: RevealScenario
    summary: Mapping[str, Any]
    trials: Sequence[Trial]
    paper: RevealFigure | None

    @property
    def epsilon(self) -> float:
        """The budget; infinite where the answers are exact."""
        return as_float(self.summary["epsilon"])

    @property
    def queries(self) -> int:
        """m, without the size query."""
        return int(self.summary["queries"])

    @property
    def mechanism(self) -> str:
        """The mechanism's key."""
        return str(self.summary["mechanism"])

    @property
    def noisy(self) -> bool:
        """Whether noise was added to the answers."""
        return math.isfinite(self.epsilon)

    @property
    def noise(self) -> str:
        """Its mechanism and budget, in words."""
        return f"{MECHANISMS[self.mechanism].title}, ε = {number(self.epsilon, 6)}" if self.noisy else "exact answers"

    @property
    def leakage(self) -> Estimate:
        """Balanced accuracy of the guess, in percent."""
        return estimate([trial["leakage"] for trial in self.trials], PERCENT)

    @property
    def baseline(self) -> Estimate:
        """Balanced accuracy of the guess without any query, in percent."""
        return estimate([trial["baseline_leakage"] for trial in self.trials], PERCENT)

    @property
    def gain(self) -> Estimate:
        """What the answers added, trial by trial, in points."""
        return estimate([trial["leakage"] - trial["baseline_leakage"] for trial in self.trials], POINTS)

    @property
    def majority(self) -> float:
        """How many people naming the larger group for everybody gets right."""
        return float(np.mean([max(trial["n0"], trial["n1"]) for trial in self.trials]))

    @property
    def targeted(self) -> float:
        """How many people the strategy set out to reveal."""
        return float(np.mean([trial["targeted"] for trial in self.trials]))

    @cached_property
    def sure(self) -> Sure | None:
        """How sure the developer was of everybody, in all trials; None where its strategy reckons with nothing such."""
        return sure_of(self.trials)

    @property
    def trace(self) -> Mapping[str, Any] | None:
        """What was kept of its first trial, for figures."""
        return next((trial["trace"] for trial in self.trials if trial.get("trace")), None)

    def printed(self, key: str) -> float | None:
        """Give a number that a paper printed of it, if one did."""
        return getattr(self.paper, key, None)

    def mean(self, key: str) -> float:
        """Average a field over the trials."""
        return float(np.mean([trial[key] for trial in self.trials]))


def rank(cell: ReportCell) -> tuple[float, ...]:
    """Order cells by how much the developer found out, the most first; of those alike, the fewest answers first."""
    if cell.targeted == 1:
        return (-cell.summary["targeted_rate"], cell.epsilon)
    return (-cell.leakage.mean, cell.summary["answers_most"], cell.epsilon)


def target_rate(entry: Mapping[str, Any]) -> Estimate:
    """Give the share of trials that were right about the one person aimed at, in percent, from a cell's summary."""
    return Estimate(*(entry[f"targeted_{key}"] for key in ("rate", "low", "high"))).mapped(lambda share: 100 * share)


def report_cells(sweep: Sweep, trials: Sequence[Trial], summary: Sequence[Mapping[str, Any]]) -> tuple[ReportCell, ...]:
    """Sort the trials into cells, in the order of the run's summary."""
    made = []
    for entry in summary:
        swept = {key: entry[key] for key in sweep.scenario.axes}
        lines = [trial for trial in trials if all(trial[key] == value for key, value in swept.items())]
        scenario = scenario_of(sweep, swept)
        made.append(ReportCell(swept, scenario, entry, lines, paper_figure(scenario)))
    return tuple(made)


def worthless(cell: ReportCell) -> bool:
    """Tell whether what was read from answers is worse than the guess before asking, as far as trials can tell."""
    return cell.targeted > 1 and cell.gain.sign < 0


def best_attacks(cells: Sequence[ReportCell]) -> list[ReportCell]:
    """Choose, for each mechanism and epsilon, the cell in which the developer found out most."""
    return best_of_each(cells, lambda cell: (cell.mechanism if cell.noisy else "exact", cell.epsilon), rank)
