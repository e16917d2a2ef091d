"""The line of a curator trial, and the summary of a cell's lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from compliance.games.curator import MISLABELLED
from fairwall.laws import cheating
from fairwall.laws.goodness import LEVEL
from sim.games.curator.deal import CuratorDeal
from sim.games.curator.outcome import CuratorOutcome
from sim.games.curator.regulator import answers, judge, scale
from sim.games.curator.scenario import CuratorScenario
from sim.games.game import Line
from sim.games.summary import counts, means
from sim.scenarios.sweep import Cell

_SAME = ("cheat", "strength", "share", "defence", "requests", "openings", "sample")
_MEANS = ("shift", "moved", "affected", "flags", "gap_shown", "gap_of_all")
_COUNTED = ("accused", "won", "opened_affected", "missed")


def record(cell: Cell[CuratorScenario], _trial: int, dealt: CuratorDeal, outcome: CuratorOutcome) -> list[Line]:
    """Return the trial's line, with the scores of compliance's cheating. Figures that do not apply are null.

    - `shift`: mean distance of answers from the honest ones, in scales of the noise; `moved`: share of answers that are
      a scale or more away; `affected`: share of answers that differ from the honest one at all.
    - `opened_affected`: whether an affected answer was opened; `accused`: whether compliance was; `missed`: whether an
      affected answer was opened and compliance was not accused.
    - `won`: whether compliance moved an answer, or showed a sample that passes, and was not accused.
    - `flags`, `gap_shown`, `gap_of_all`: the number of a sample's tests below 5%, its gap, and the gap of all people.
    """
    asked, answered, rows = cell.scenario.curator, outcome.answered, outcome.opening.sample
    verdict = judge(dealt, answered, outcome.commitment, outcome.opening)
    labels, protected = dealt.compliance.labels, dealt.compliance.protected
    line: dict[str, Any] = {key: getattr(asked, key) for key in _SAME} | dict.fromkeys((*_MEANS, *_COUNTED))
    line |= {"accused": verdict.accused, "tests": verdict.tests}
    if asked.sample:
        shown, of_all = (
            float(own[some == 1].mean() - own[some == 0].mean()) if 0 < some.mean() < 1 else 0.0
            for own, some in ((labels[rows], protected[rows]), (labels, protected))
        )
        flags = sum(found < LEVEL for found in verdict.tests.values())
        won = shown <= asked.passes and not verdict.accused
        return [line | {"flags": flags, "gap_shown": shown, "gap_of_all": of_all, "won": won}]
    honest = answers(dealt, answered, protected, dealt.compliance.seed, range(asked.requests))
    moves = (answered.answers - honest) / scale(dealt)
    opened_affected = bool((moves[list(verdict.opened)] != 0).any())
    line |= {
        "shift": float(moves.mean()),
        "moved": float((np.abs(moves) >= 1).mean()),
        "affected": float((moves != 0).mean()),
        "opened_affected": opened_affected,
        "won": bool((np.abs(moves) >= 1).any()) and not verdict.accused,
        "missed": opened_affected and not verdict.accused,
    }
    return [line]


def summarise(swept: Mapping[str, Any], lines: Sequence[Line]) -> Line:
    """Return a cell's summary; `shift_law` and `caught_law` are theoretical values or None, `flagged` is by test."""
    first, trials = lines[0], len(lines)
    cheat, strength, share = (first[key] for key in ("cheat", "strength", "share"))
    bound = first["defence"] == "commitment" and cheat != MISLABELLED
    return {
        **swept,
        "trials": trials,
        **{key: first[key] for key in _SAME},
        "shift_law": share * cheating.expected_shift(strength) if cheat == "best" else None,
        "caught_law": cheating.caught(cheating.affected(cheat, strength, share), first["openings"]) if bound else None,
        **means(lines, _MEANS),
        **counts(lines, _COUNTED),
        "flagged": {test: sum(one["tests"][test] < LEVEL for one in lines) / trials for test in first["tests"]},
    }
