"""What came of a release trial: what its parties submitted, as the dealer took it or as a transcript tells it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.games.recorded import bits_of, drawn_again, report_of, submission_of
from sim.games.release.deal import ReleaseDeal, deal
from sim.games.release.scenario import ReleaseScenario
from sim.games.submissions import AuditReport
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What the developer believes of the people that it trained on: guesses who is advantaged, shape (people,).

    ``consistent`` is the share of them whose released columns are each the encoding of one value; ``queries`` are the
    audits that it asked for. ``from_mixture`` is None where none of them was about these people.
    """

    from_release: NDArray[np.uint8]
    from_everything: NDArray[np.uint8]
    consistent: float
    queries: int
    from_mixture: NDArray[np.uint8] | None = None


@dataclass(frozen=True, eq=False)
class ReleaseOutcome:
    """Everything that the parties submitted in one trial."""

    beliefs: Beliefs
    report: AuditReport


def from_messages(
    cell: Cell[ReleaseScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[ReleaseDeal, ReleaseOutcome]:
    """Find in a trial's messages what came of it; what was dealt is drawn again, and is what the messages hold."""
    request, report = submission_of(trial, "SubmitBeliefs"), report_of(trial)
    dealt = drawn_again(
        deal,
        *(cell, number, trial, secret),
        lambda dealt: {
            "labels": dealt.compliance.labels,
            "release": dealt.release.values,
            "sensitive": dealt.release.tested,
        },
    )
    beliefs = Beliefs(
        from_release=bits_of(request.from_release),
        from_everything=bits_of(request.from_everything),
        consistent=request.consistent,
        queries=request.queries,
        from_mixture=bits_of(request.from_mixture) if request.HasField("from_mixture") else None,
    )
    return dealt, ReleaseOutcome(beliefs, report)
