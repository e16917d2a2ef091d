"""The line of an overfit trial, and the summary of a cell's lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairwall.laws.overfitting import bound, expected_gap
from sim.games.game import Line
from sim.games.overfit.deal import OverfitDeal
from sim.games.overfit.outcome import OverfitOutcome
from sim.games.overfit.scenario import OverfitScenario
from sim.games.overfit.score import Patched, gap, shares, told
from sim.games.summary import mean, sd
from sim.scenarios.scenario import plain
from sim.scenarios.sweep import Cell

PASSES, STAYS = 0.02, 0.08
"""The largest audited gap and the smallest gap of the population with which the developer wins."""

_MEANS = ("n0", "answers", "gap_before", "gap", "fall", "population_before", "population", "population_fall")
_PARTS = ("overfit", "from_x", "from_answers")


def record(_cell: Cell[OverfitScenario], _trial: int, dealt: OverfitDeal, outcome: OverfitOutcome) -> list[Line]:
    """Return the trial's line, with the score of the patches.

    `gap` is the audited one with all patches, `gap_before` without; `population` likewise. `overfit` is the
    population's gap less the audited one. It is split at the audited gap expected from the developer's view before its
    requests: `from_x` is the part up to there, `from_answers` the rest, see `fairwall.laws.overfitting`. `sigma` is the
    gap's sub-Gaussian constant, `nats` the most information in the answers. `won` is whether the patches that the
    developer expects to suffice pass, `to_pass` the number of its patches that would; null where none do.
    """
    scenario, asked, pool, report = dealt.scenario, dealt.scenario.overfit, dealt.pool, outcome.report
    model, protected, flips = Patched(dealt, outcome), pool.protected[dealt.audited], asked.flips
    gaps = [gap(model.decisions(dealt.audited, count), protected) for count in range(flips + 1)]
    held, of_held = dealt.population, pool.protected[dealt.population]
    population, before = (gap(model.decisions(held, count), of_held) for count in (flips, 0))
    stays = gap(model.decisions(held, enough := outcome.patches.enough), of_held)
    mean, sigma = expected_gap(
        model.decisions(dealt.audited, flips),
        dealt.cells[dealt.audited],
        *shares(dealt.cells, pool.protected),
        np.random.default_rng([*dealt.referee]),
    )
    return [
        {
            "n": len(protected),
            "n0": int((protected == 0).sum()),
            "rows": asked.rows,
            "attack": asked.attack,
            "flips": flips,
            "rounds": asked.rounds,
            "mechanism": scenario.compliance.mechanism,
            "epsilon": plain(scenario.epsilon),
            "answers": report.answered,
            "epsilon_spent": plain(report.epsilon_spent),
            "gap_before": gaps[0],
            "gap": gaps[-1],
            "fall": gaps[0] - gaps[-1],
            "population_before": before,
            "population": population,
            "population_fall": before - population,
            "overfit": population - gaps[-1],
            "from_x": population - mean,
            "from_answers": mean - gaps[-1],
            "sigma": sigma,
            "nats": told(dealt, report.audits, report.epsilon_spent),
            "enough": enough,
            "won": bool(abs(gaps[enough]) <= PASSES and stays >= STAYS),
            "to_pass": next((count for count, one in enumerate(gaps) if abs(one) <= PASSES), None),
        }
    ]


def summarise(swept: Mapping[str, Any], lines: Sequence[Line]) -> Line:
    """Return the summary of a cell: means over trials, each with `_sd`, None for one trial.

    `sigma` is the root mean square, `nats` the mean, `bound` the largest expected `from_answers` under both. `won`
    counts trials; `to_pass` is the median number of patches, None where half of the trials passed with none.
    """
    sigma = float(np.sqrt(np.mean([line["sigma"] ** 2 for line in lines])))
    nats = float(np.mean([line["nats"] for line in lines]))
    needed = float(np.median([np.inf if line["to_pass"] is None else line["to_pass"] for line in lines]))
    return {
        **swept,
        "trials": len(lines),
        **{key: lines[0][key] for key in ("n", "rows", "attack", "flips", "rounds", "mechanism", "epsilon")},
        **{key: mean(lines, key) for key in (*_MEANS, *_PARTS)},
        **{f"{key}_sd": sd(lines, key) for key in (*_MEANS, *_PARTS)},
        "sigma": sigma,
        "nats": nats,
        "bound": bound(sigma, nats),
        "won": sum(line["won"] for line in lines),
        "to_pass": needed if np.isfinite(needed) else None,
    }
