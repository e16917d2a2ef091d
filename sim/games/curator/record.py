"""The line of a trial of the game of the curator, and what a cell's lines come to."""

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
    """Score what compliance did, and write the trial down.

    ``shift`` is how far answers are from the honest ones on average, in scales of the noise; a share ``moved`` of them
    is by a scale or more, and ``affected`` is the share that is not the honest answer. ``opened_affected`` says whether
    one of these was opened, ``accused`` whether compliance was, ``won`` whether it moved an answer, or showed a sample
    that passes, and was not, and ``missed`` whether it was not though one was opened. Of a sample ``flags`` counts the
    tests below 5%, and ``gap_shown`` stands beside the ``gap_of_all``. What there was none of is null.
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
    """Sum up a cell.

    ``shift_law`` and ``caught_law`` are what the law says of the best of several noises and of openings, None where it
    says nothing; ``flagged`` has the share of trials in which a test was below 5%.
    """
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
