"""A run's folder: the scenario as played, a line a trial, and what the lines come to."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

import fairwall
from sim.games import inference
from sim.scenario import Plan, as_values

_MEANS = (
    "leakage",
    "baseline_leakage",
    "recovered",
    "query_error_mean",
    "accuracy_base",
    "accuracy_models",
    "accuracy_models_least",
    "answers_bound",
    "leakage_features",
    "leakage_answers",
    "flagged",
    "max_prediction_change",
    "leakage_by_size",
    "leakage_by_person",
    "gap_base",
)


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @classmethod
    def create(cls, parent: Path, name: str) -> RunFolder:
        """Make a new folder, named by time and scenario.

        Raises
        ------
        OSError
            If it cannot be made.
        """
        now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower()).strip("-") or "run"
        path = parent / f"{now}-{slug[:40]}-{secrets.token_hex(2)}"
        (path / "logs").mkdir(parents=True)
        return cls(path)

    @property
    def logs(self) -> Path:
        """Where the parties' logs go."""
        return self.path / "logs"

    def write_scenario(self, plan: Plan) -> None:
        """Keep the scenario as it is played."""
        (self.path / "scenario.toml").write_text(tomli_w.dumps(as_values(plan.scenario)), encoding="utf-8")

    def add_trial(self, line: Mapping[str, Any]) -> None:
        """Append one trial to ``trials.jsonl``: it is kept whatever becomes of the run."""
        with (self.path / "trials.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")

    def write_result(self, plan: Plan, trials: Sequence[Mapping[str, Any]], *, complete: bool) -> dict[str, Any]:
        """Write ``result.json``: what was played, by which version, whether to its end, and the summary."""
        result = {
            "scenario": plan.scenario.scenario.name,
            "scenario_digest": plan.digest,
            "version": fairwall.__version__,
            "complete": complete,
            "summary": summarise(trials, list(plan.scenario.axes)),
        }
        (self.path / "result.json").write_text(json.dumps(result, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        return result


def read_trials(path: Path) -> list[dict[str, Any]]:
    """Read a run's ``trials.jsonl``; a last line that was cut off in the middle is no trial."""
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def summarise(trials: Iterable[Mapping[str, Any]], swept: Sequence[str]) -> list[dict[str, Any]]:
    """Sum up each cell of a sweep, from the lines of ``trials.jsonl`` alone.

    Parameters
    ----------
    trials : iterable of mapping
    swept : sequence of str
        The dotted keys that tell the cells apart.

    Returns
    -------
    list of dict
        One a cell, in the order of the first trials: the swept values; ``trials``; the mean over trials of what is
        named alike in a trial; ``leakage_sd`` (of a single trial, n - 1 in the denominator; None for one trial);
        ``exact``, how many trials were; ``answers`` and ``answers_most``, how many answers a trial took, size queries
        counted, their mean and the most; ``targeted_rate`` with ``targeted_low`` and ``targeted_high``, the share of
        those aimed at who were guessed right, with its 95% interval, where a trial aims at one person, and
        ``targeted_balanced``, the mean of either group's share;
        ``query_error_median``, the median over trials; ``epsilon_spent``. What no trial has is left out: there is no
        error of answers that are choices, or that were all refused.
    """
    cells: dict[str, list[Mapping[str, Any]]] = {}
    for trial in trials:
        # In the inference game a trial has a line for each attack.
        of = trial["attack"] if trial["game"] == "inference" else None
        cells.setdefault(json.dumps([of, *(trial[key] for key in swept)]), []).append(trial)
    return [
        inference.summarise(lines, swept) if lines[0]["game"] == "inference" else _summarise_cell(lines, swept)
        for lines in cells.values()
    ]


def share_interval(successes: int, trials: int) -> tuple[float, float]:
    """Give the 95% interval of a share, by Clopper and Pearson: it holds for any share and any number of trials."""
    from scipy.special import betaincinv

    missed = trials - successes
    low = float(betaincinv(successes, missed + 1, 0.025)) if successes else 0.0
    high = float(betaincinv(successes + 1, missed, 0.975)) if missed else 1.0
    return low, high


def _summarise_cell(lines: Sequence[Mapping[str, Any]], swept: Sequence[str]) -> dict[str, Any]:
    first = lines[0]
    cell: dict[str, Any] = {key: first[key] for key in swept}
    cell |= {key: first[key] for key in ("metric", "mechanism", "epsilon", "strategy", "decoder", "queries")}
    cell["trials"] = len(lines)
    for key in _MEANS:
        values = [line[key] for line in lines if line.get(key) is not None]
        if values:
            cell[key] = float(np.mean(values))
    cell["leakage_sd"] = float(np.std([line["leakage"] for line in lines], ddof=1)) if len(lines) > 1 else None
    cell["exact"] = sum(line["exact"] for line in lines)
    answers = [line["queries"] + line["size_queries"] for line in lines]
    cell["answers"], cell["answers_most"] = float(np.mean(answers)), max(answers)
    if all(line["targeted"] == 1 for line in lines):
        right = sum(line["targeted_recovered"] for line in lines)
        cell["targeted_rate"] = right / len(lines)
        cell["targeted_low"], cell["targeted_high"] = share_interval(right, len(lines))
        groups = [
            [x["targeted_recovered"] for x in lines if x["target_advantaged"] is group] for group in (True, False)
        ]
        if all(groups):
            cell["targeted_balanced"] = float(np.mean([np.mean(hits) for hits in groups]))
    medians = [line["query_error_median"] for line in lines if line["query_error_median"] is not None]
    if medians:
        cell["query_error_median"] = float(np.median(medians))
    cell["n"] = first["n"]
    cell["n0"] = float(np.mean([line["n0"] for line in lines]))
    cell["epsilon_spent"] = first["epsilon_spent"]
    return cell
