"""A trial of the game of the curator without processes: the same deals, answers and verdicts, much sooner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from compliance.answers.audits import values_of
from compliance.games.curator import open_curator
from fairwall.laws.studies.commitment import Commitment, request_id
from fairwall.rpc.turns import generator
from sim.games import lay_out
from sim.games.curator.deal import CuratorDeal, deal
from sim.games.curator.regulator import Answered, Opening
from sim.games.curator.trial import CuratorOutcome, record
from sim.games.referee import _dealt
from sim.games.submissions import AuditReport
from sim.scenarios.sweep import Cell


def cell_of(people: int = 200, minimum_group: int = 5, **asked: Any) -> Cell[Any]:
    """Give the cell of a scenario, each of whose requests has an epsilon of 1."""
    (cell,) = lay_out(
        {
            "scenario": {"name": "trial", "game": "curator"},
            "data": {"source": "adult", "people": people},
            "compliance": {"mechanism": "laplace", "epsilon": max(1, asked.get("requests", 100))},
            "curator": {"minimum_group": minimum_group, **asked},
        },
        "trial",
    ).cells
    return cell


@dataclass(frozen=True)
class Played:
    """What a trial came to, and its line."""

    deal: CuratorDeal
    outcome: CuratorOutcome
    line: dict[str, Any]


def played(cell: Cell[Any], trial: int) -> Played:
    """Play a trial."""
    dealt = deal(cell, trial, f"deal-{trial}")
    curator = open_curator(*_dealt(dealt, dealt.compliance))
    asked, rng = cell.scenario.curator, generator(dealt.seed)
    models = rng.integers(2, size=(asked.requests, cell.scenario.data.people), dtype=np.uint8)
    ids = tuple(request_id(f"audit-{number}", rng.bytes(16)) for number in range(1, asked.requests + 1))
    epsilon = cell.scenario.share_of_epsilon
    answers = [
        values_of(curator.case.answer("developer", each, b"", "sp", model[np.newaxis], epsilon))[0]
        for each, model in zip(ids, models, strict=True)
    ]
    commitment: Commitment | None = curator.commitment() if cell.scenario.committed else None
    opening = Opening(curator.case.records.protected, curator.seed, curator.salt_key, curator.sample.astype(np.intp))
    outcome = CuratorOutcome(
        Answered(ids, models, np.array(answers, np.float64)), commitment, opening, AuditReport((), 0.0)
    )
    (line,) = record(cell, trial, dealt, outcome)
    return Played(dealt, outcome, dict(line))
