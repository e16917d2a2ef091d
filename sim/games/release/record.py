"""The line of a release trial, and the summary of a cell's lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.local import CLEAN, LOCAL_LAWS
from fairwall.laws.utility import RATED, UTILITIES
from sim.games.game import Line
from sim.games.release.deal import ReleaseDeal
from sim.games.release.outcome import ReleaseOutcome
from sim.games.release.scenario import ReleaseScenario
from sim.games.summary import means
from sim.scenarios.scenario import plain
from sim.scenarios.sweep import Cell

GROUP_RATES = tuple(f"{metric}_{group}" for metric in RATED for group in ("advantaged", "disadvantaged"))
"""Keys of the groups' rates behind the gaps, in the order of compliance's report."""


def record(cell: Cell[ReleaseScenario], _trial: int, dealt: ReleaseDeal, outcome: ReleaseOutcome) -> list[Line]:
    """Return the trial's line.

    Fairness figures and utilities are compliance's, of the test rows; leakage is in percent of the people trained on.
    """
    scenario, beliefs, report = cell.scenario, outcome.beliefs, outcome.report
    release, protected = dealt.release, dealt.release.protected
    (column,) = (column for column in release.columns if column.protected)
    queried = release.queried.epsilon if release.queried else 0.0
    # Queries are about the protected attribute alone.
    own = math.inf if release.protocol == CLEAN else column.share * release.epsilon + queried
    # Where nothing is released there is nothing to guess from.
    told = dealt.releases and report.release_spent

    def right(guess: NDArray[np.uint8] | None) -> float | None:
        return None if guess is None else 100 * float((guess == protected).mean())

    return [
        {
            "split_seed": dealt.seed,
            "people": len(dealt.labels),
            "tested": len(dealt.compliance.labels),
            "protocol": release.protocol,
            "split": scenario.release.split,
            "sensitive": [each.name for each in release.columns],
            "epsilon": plain(release.budget),
            "epsilon_queried": queried,
            "epsilon_protected": plain(own),
            "loss": plain(_loss(dealt, queried)),
            "release_spent": plain(report.release_spent),
            "audit_epsilon_spent": plain(report.epsilon_spent),
            "queries": beliefs.queries,
            **{audit.metric: _number(audit.exact) for audit in report.audits},
            **{f"{audit.metric}_released": _number(audit.released) for audit in report.audits},
            **dict(zip(GROUP_RATES, report.group_rates, strict=True)),
            **dict(zip(UTILITIES, report.utilities, strict=True)),
            "consistent": beliefs.consistent,
            "leakage_baseline": 100 * float(max(protected.mean(), 1 - protected.mean())),
            "leakage_release": right(beliefs.from_release) if told else None,
            "leakage": right(beliefs.from_everything) if told else None,
            "leakage_mixture": right(beliefs.from_mixture),
        }
    ]


_MEANS = (
    "epsilon",
    "epsilon_protected",
    *("sp", "di", "eo", "oad"),
    *GROUP_RATES,
    *UTILITIES,
    "consistent",
    "leakage_baseline",
    "leakage_release",
    "leakage",
    "leakage_mixture",
)


def summarise(swept: Mapping[str, Any], lines: Sequence[Line]) -> Line:
    """Return the summary of a cell: means and standard deviations over the trials that have a number."""
    return {**swept, "trials": len(lines), "protocol": lines[0]["protocol"], **means(lines, _MEANS)}


def _loss(dealt: ReleaseDeal, queried: float) -> float:
    """Return the exact loss of release and queries, for some protocols less than epsilon."""
    release = dealt.release
    if release.protocol not in LOCAL_LAWS:
        return math.inf if release.protocol == CLEAN else 0.0
    law, columns = LOCAL_LAWS[release.protocol], release.columns if dealt.releases else ()
    return queried + math.fsum(law.loss(column.domain, column.share * release.epsilon) for column in columns)


def _number(measured: NDArray[np.float64]) -> float | None:
    value = float(measured[0])
    return value if math.isfinite(value) else None
