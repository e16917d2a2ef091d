"""The cells of a reveal run: results with intervals, answers until everybody was known, loss tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from compliance.mechanisms import MECHANISMS
from fairwall.laws.privacy.most_exposed import Sure
from sim.games.reveal.scenario import RevealFigure, RevealScenario
from sim.games.reveal.trial import sure_of
from sim.report.cells import Trial, best_of_each, paper_figure, scenario_of
from sim.report.estimates import PERCENT, POINTS, IntervalEstimate, estimate
from sim.report.notation import as_float, number, setting, symbol
from sim.scenarios.sweep import Sweep


@dataclass(frozen=True)
class ReportCell:
    """A cell with at least one played trial: its scenario with swept values, its summary, and its trials' lines."""

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
        """Number of metric queries, m, without the size query."""
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
        """The mechanism and the budget, in words."""
        return f"{MECHANISMS[self.mechanism].title}, ε = {number(self.epsilon, 6)}" if self.noisy else "exact answers"

    @property
    def leakage(self) -> IntervalEstimate:
        """Balanced accuracy of the guess, in percent."""
        return estimate([trial["leakage"] for trial in self.trials], PERCENT)

    @property
    def baseline(self) -> IntervalEstimate:
        """Balanced accuracy of the guess without any query, in percent."""
        return estimate([trial["baseline_leakage"] for trial in self.trials], PERCENT)

    @property
    def gain(self) -> IntervalEstimate:
        """Gain of leakage from the answers, trial by trial, in points."""
        return estimate([trial["leakage"] - trial["baseline_leakage"] for trial in self.trials], POINTS)

    @property
    def majority(self) -> float:
        """Mean number of people guessed right by naming the larger group for everybody."""
        return float(np.mean([max(trial["n0"], trial["n1"]) for trial in self.trials]))

    @property
    def targeted(self) -> float:
        """Mean number of people that the strategy aims at."""
        return float(np.mean([trial["targeted"] for trial in self.trials]))

    @cached_property
    def sure(self) -> Sure | None:
        """The developer's confidence about all people of all trials; None where the strategy computes none."""
        return sure_of(self.trials)

    @property
    def trace(self) -> Mapping[str, Any] | None:
        """The trace of the cell's first trial, for figures."""
        return next((trial["trace"] for trial in self.trials if trial.get("trace")), None)

    def printed(self, key: str) -> float | None:
        """Return a number that a paper printed about the cell, or None."""
        return getattr(self.paper, key, None)

    def mean(self, key: str) -> float:
        """Return the mean of a field over the trials."""
        return float(np.mean([trial[key] for trial in self.trials]))


def rank(cell: ReportCell) -> tuple[float, ...]:
    """Return a sort key: most leakage first, then fewest answers."""
    if cell.targeted == 1:
        return (-cell.summary["targeted_rate"], cell.epsilon)
    return (-cell.leakage.mean, cell.summary["answers_most"], cell.epsilon)


def target_rate(entry: Mapping[str, Any]) -> IntervalEstimate:
    """Return the share of trials that were right about the one person aimed at, in percent, from a cell's summary."""
    return IntervalEstimate(*(entry[f"targeted_{key}"] for key in ("rate", "low", "high"))).mapped(
        lambda share: 100 * share
    )


def report_cells(sweep: Sweep, trials: Sequence[Trial], summary: Sequence[Mapping[str, Any]]) -> tuple[ReportCell, ...]:
    """Return the cells with their trials, in the order of the run's summary."""
    made = []
    for entry in summary:
        swept = {key: entry[key] for key in sweep.scenario.axes}
        lines = [trial for trial in trials if all(trial[key] == value for key, value in swept.items())]
        scenario = scenario_of(sweep, swept)
        made.append(ReportCell(swept, scenario, entry, lines, paper_figure(scenario)))
    return tuple(made)


def worthless(cell: ReportCell) -> bool:
    """Return whether the guess from answers is worse than the one before any query, as far as trials can tell."""
    return cell.targeted > 1 and cell.gain.sign < 0


def best_attacks(cells: Sequence[ReportCell]) -> list[ReportCell]:
    """Return, for each mechanism and epsilon, the cell with the most leakage."""
    return best_of_each(cells, lambda cell: (cell.mechanism if cell.noisy else "exact", cell.epsilon), rank)


@dataclass(frozen=True)
class UntilKnown:
    """Cells without noise that differ in the number of queries only.

    Attributes
    ----------
    played : swept values that distinguish these cells from others, as text by dotted key.
    fewest : fewest answers, size query included, with which everybody was known in every trial; for a strategy that
        stops by itself, the most of any trial. None where no number tried was enough.
    tried : most answers tried.
    bound : theoretical minimum for any strategy, log2 C(n, n0) over the bits of an answer.
    printed : number of queries, without the size query, for which a paper prints that everybody was known.
    """

    played: Mapping[str, str]
    fewest: int | None
    tried: int
    bound: int
    printed: int | None


def as_needed(cell: ReportCell) -> bool:
    """Return whether the strategy itself decided the number of answers."""
    given, numbers = cell.scenario.queries, {trial["queries"] for trial in cell.trials}
    return given == "needed" or len(numbers) > 1 or (isinstance(given, int) and numbers != {given})


def asked(cell: Mapping[str, Any]) -> str:
    """Return as text the number of answers of a trial, size queries included: mean and maximum."""
    mean, most = cell["answers"], cell["answers_most"]
    return f"{most:,}" if mean == most else f"{number(mean)} ≤{most:,}"


def until_known(cells: Sequence[ReportCell]) -> tuple[UntilKnown, ...]:
    """Return each strategy's fewest exact answers with everybody known in every trial; empty without a comparison."""
    exact = [cell for cell in cells if not cell.noisy and "answers_bound" in cell.summary]
    groups: dict[tuple[tuple[str, str], ...], list[ReportCell]] = {}
    for cell in exact:
        alike = tuple((key, setting(value)) for key, value in cell.swept.items() if key != "developer.queries")
        groups.setdefault(alike, []).append(cell)
    told_apart = {key for alike in groups for key, text in alike if any(dict(other)[key] != text for other in groups)}
    rows = []
    for alike, group in groups.items():
        enough = [cell.summary["answers_most"] for cell in group if cell.summary["exact"] == len(cell.trials)]
        printed = [cell.queries for cell in group if cell.printed("leakage") == 100]
        played = {key: text for key, text in alike if key in told_apart}
        rows.append(
            UntilKnown(
                played or {"developer.strategy": group[0].scenario.developer.strategy},
                min(enough, default=None),
                max(cell.summary["answers_most"] for cell in group),
                round(max(cell.summary["answers_bound"] for cell in group)),
                min(printed, default=None),
            )
        )
    return tuple(rows) if len(exact) > 1 and any(row.fewest is not None for row in rows) else ()


@dataclass(frozen=True)
class LossTestRow:
    """The loss test on one kind of data.

    Attributes
    ----------
    data : swept values that the data depend on; empty where none is swept.
    models : number of distinct trials: fairness queries made afterwards do not change the model.
    advantaged, disadvantaged : share of right decisions on each group's public rows, in percent.
    gap : mean size of their difference, in points.
    """

    data: str
    models: int
    advantaged: IntervalEstimate
    disadvantaged: IntervalEstimate
    gap: IntervalEstimate


def loss_test_rows(cells: Sequence[ReportCell]) -> tuple[LossTestRow, ...]:
    """Return the loss tests over the cells. Cells with the same data share trials' models, which count once."""
    found: dict[str, set[tuple[int, float, float]]] = {}
    for cell in cells:
        # The released model depends on the data and on the seed, not on the audit.
        swept = {key: value for key, value in cell.swept.items() if key.startswith(("data.", "adversary."))}
        data = ", ".join(f"{symbol(key)} = {setting(value)}" for key, value in swept.items())
        for trial in cell.trials:
            if "gap_base" in trial:
                accuracies = 100 * trial["accuracy_advantaged"], 100 * trial["accuracy_disadvantaged"]
                found.setdefault(data, set()).add((trial["seed"], *accuracies))
    rows = []
    for data, tests in found.items():
        _, advantaged, disadvantaged = zip(*sorted(tests), strict=True)
        gaps = [abs(one - other) for one, other in zip(advantaged, disadvantaged, strict=True)]
        rows.append(LossTestRow(data, len(tests), *(estimate(of, PERCENT) for of in (advantaged, disadvantaged, gaps))))
    return tuple(rows)
