"""The cells of a run: what each combination of swept values came to, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sim.report.notation import as_float
from sim.runs.trials import summarise
from sim.scenarios.scenario import Scenario, as_values
from sim.scenarios.sweep import Sweep

Trial = Mapping[str, Any]


@dataclass(frozen=True)
class Estimate:
    """A mean over trials and the half width of its 95% t interval; None where there is one trial alone."""

    mean: float
    half: float | None

    def __str__(self) -> str:
        # With spaces that no line breaks at.
        text = f"{self.mean:.1f}" if self.half is None else f"{self.mean:.1f}\u00a0±\u00a0{self.half:.1f}"
        return text.replace("-", "−")

    @property
    def sign(self) -> int:
        """Give 1 or -1 where the whole interval lies above or below zero, else 0."""
        if self.half is None or abs(self.mean) <= self.half:
            return 0
        return 1 if self.mean > 0 else -1


def half_width(sd: float | None, trials: int) -> float | None:
    """Give the half width of the 95% t interval of a mean over trials; None for a single trial.

    Parameters
    ----------
    sd : float or None
        The standard deviation of a single trial, n - 1 in the denominator.
    trials : int
    """
    if sd is None or trials < 2:
        return None
    from scipy.special import stdtrit

    return float(stdtrit(trials - 1, 0.975)) * sd / math.sqrt(trials)


def estimate(values: Sequence[float]) -> Estimate:
    """Estimate the mean of at least one value."""
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Estimate(float(np.mean(values)), half_width(sd, len(values)))


@dataclass(frozen=True)
class ReportCell:
    """A cell that at least one trial was played of.

    Parameters
    ----------
    swept : mapping
        Swept values by dotted key.
    scenario : Scenario
        With the swept values in place.
    summary : mapping
        As `sim.runs.trials.summarise` gives it.
    trials : sequence of mapping
        Its lines of ``trials.jsonl``.
    paper : PaperFigure or None
        What a paper printed about it.
    """

    swept: Mapping[str, Any]
    scenario: Any
    summary: Mapping[str, Any]
    trials: Sequence[Trial]
    paper: Any

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
    def leakage(self) -> Estimate:
        """Balanced accuracy of the guess, in percent."""
        return estimate([trial["leakage"] for trial in self.trials])

    @property
    def baseline(self) -> Estimate:
        """Balanced accuracy of the guess without any query, in percent."""
        return estimate([trial["baseline_leakage"] for trial in self.trials])

    @property
    def gain(self) -> Estimate:
        """What the answers added, trial by trial, in points."""
        return estimate([trial["leakage"] - trial["baseline_leakage"] for trial in self.trials])

    @property
    def majority(self) -> float:
        """How many people naming the larger group for everybody gets right."""
        return float(np.mean([max(trial["n0"], trial["n1"]) for trial in self.trials]))

    @property
    def targeted(self) -> float:
        """How many people the strategy set out to reveal."""
        return float(np.mean([trial["targeted"] for trial in self.trials]))

    @property
    def trace(self) -> Mapping[str, Any] | None:
        """What was kept of its first trial, for figures."""
        return next((trial["trace"] for trial in self.trials if trial.get("trace")), None)

    def mean(self, key: str) -> float:
        """Average a field over the trials."""
        return float(np.mean([trial[key] for trial in self.trials]))


def report_cells(sweep: Sweep, trials: Sequence[Trial]) -> tuple[ReportCell, ...]:
    """Sort the trials into cells, in the order of the first trials."""
    keys = list(sweep.scenario.axes)
    made = []
    for summary in summarise(sweep, trials):
        swept = {key: summary[key] for key in keys}
        lines = [trial for trial in trials if all(trial[key] == value for key, value in swept.items())]
        scenario = scenario_of(sweep, swept)
        made.append(ReportCell(swept, scenario, summary, lines, paper_figure(scenario)))
    return tuple(made)


def scenario_of(sweep: Sweep, swept: Mapping[str, Any]) -> Any:
    """Find the scenario that these swept values were played with."""
    return next(cell.scenario for cell in sweep.cells if all(cell.swept[key] == swept[key] for key in cell.swept))


def paper_figure(scenario: Scenario) -> Any:
    """Find what a paper printed about a cell: the first entry whose every condition the cell's scenario meets."""
    values = as_values(scenario)

    def holds(key: str, wanted: object) -> bool:
        section, _, field = key.partition(".")
        there = values.get(section, {}).get(field)
        # "inf" may also be written as TOML's inf; and 25 is 25.0.
        return there == wanted or as_float(there) == as_float(wanted)

    return next(
        (figure for figure in scenario.paper if all(holds(*condition) for condition in figure.where.items())), None
    )
