"""The line of a washing trial, and the summary of a cell's lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from developer.wash.shown import flips_to_pass, gap, order
from fairwall.laws.washing import detection, least
from fairwall.wire.queries import AUDITED
from sim.games.game import Line
from sim.games.summary import means, percent
from sim.games.wash.deal import WashDeal
from sim.games.wash.outcome import WashOutcome
from sim.games.wash.scenario import DEPLOYED_OVER, WashScenario
from sim.scenarios.scenario import plain
from sim.scenarios.sweep import Cell

_ASKED = ("strategy", "knows", "checks", "committed", "evades", "wrong")


def record(_cell: Cell[WashScenario], _trial: int, dealt: WashDeal, outcome: WashOutcome) -> list[Line]:
    """Return the trial's line, with its scores.

    `deployed_gap` and `shown_gap` are exact, `audited_gap` is compliance's answer. The audit is `passed` where that is
    at most tau in absolute value; the developer `won` if, moreover, the deployed gap is at least `DEPLOYED_OVER` above
    tau and it is not `accused`. `flips` counts the rows shown with another decision than deployed; `contradictions` the
    rows where the customer's report differed, rightly or wrongly. `detection` is the probability, in percent, of an
    accusation with this number of flips if the checked rows are drawn afterwards. `flips_to_pass` is the smallest
    number of flips, in the developer's order, that brings the exact gap down to tau; null if none does. `learned` is
    the balanced accuracy, in percent, of naming as disadvantaged the right number of people, those with the highest
    belief.
    """
    asked, truly = dealt.scenario.wash, dealt.disadvantaged
    deployed, shown = outcome.deployed, outcome.shown
    (audited,) = (float(one.released[0]) for one in outcome.report.audits if one.request_id == AUDITED)
    deployed_gap, shown_gap = float(gap(deployed, truly)), float(gap(shown, truly))
    flips, verdict = int((deployed != shown).sum()), outcome.verdict
    passed = abs(audited) <= asked.tau
    cheated = abs(deployed_gap) >= asked.tau + DEPLOYED_OVER
    taken = np.zeros(len(truly), np.bool_)
    taken[np.argsort(-outcome.belief, kind="stable")[: int(truly.sum())]] = True
    rights = [float((taken == truly)[truly == group].mean()) for group in (0, 1)]
    from_on = least(asked.checks, asked.wrong, asked.alarm)
    return [
        {
            **{key: getattr(asked, key) for key in _ASKED},
            "epsilon": plain(dealt.scenario.epsilon),
            "people": len(truly),
            "tau": asked.tau,
            "deployed_gap": deployed_gap,
            "shown_gap": shown_gap,
            "audited_gap": audited,
            "flips": flips,
            "flips_to_pass": flips_to_pass(deployed, order(deployed, outcome.belief), truly, asked.tau),
            "learned": 50.0 * sum(rights),
            "passed": passed,
            "contradictions": verdict.contradictions,
            "broken": verdict.broken,
            "accused": verdict.accused,
            "detection": 100.0 * detection(len(truly), flips, asked.checks, asked.wrong, from_on),
            "won": passed and cheated and not verdict.accused,
            "epsilon_spent": plain(outcome.report.epsilon_spent),
        }
    ]


def summarise(swept: Mapping[str, Any], lines: Sequence[Line]) -> Line:
    """Return the summary of a cell; `flips_to_pass` is the median, null where half of the trials never pass."""
    numbers = [math.inf if line["flips_to_pass"] is None else line["flips_to_pass"] for line in lines]
    median = float(np.median(numbers)) if math.isfinite(sorted(numbers)[len(numbers) // 2]) else None
    return {
        **swept,
        "trials": len(lines),
        **{key: lines[0][key] for key in ("people", "tau", "epsilon", *_ASKED)},
        "flips_to_pass": median,
        **means(lines, ("deployed_gap", "shown_gap", "flips", "learned", "detection")),
        **percent(lines, ("passed", "accused", "won")),
    }
