"""Outcome of a release trial: the parties' submissions, as the dealer took them or as a transcript records them."""

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
class SubmittedGuesses:
    """The developer's guesses at the people trained on, 1 = advantaged, shape (people,).

    `consistent` is the share of them whose released columns are each the encoding of one value; `queries` counts the
    audits requested. `from_mixture` is None where no query was about these people.
    """

    from_release: NDArray[np.uint8]
    from_everything: NDArray[np.uint8]
    consistent: float
    queries: int
    from_mixture: NDArray[np.uint8] | None = None


@dataclass(frozen=True, eq=False)
class ReleaseOutcome:
    """The developer's guesses, and compliance's report."""

    beliefs: SubmittedGuesses
    report: AuditReport


def from_messages(
    cell: Cell[ReleaseScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[ReleaseDeal, ReleaseOutcome]:
    """Return a trial's deal, drawn again and checked against the messages, and its outcome from the messages."""
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
    beliefs = SubmittedGuesses(
        from_release=bits_of(request.from_release),
        from_everything=bits_of(request.from_everything),
        consistent=request.consistent,
        queries=request.queries,
        from_mixture=bits_of(request.from_mixture) if request.HasField("from_mixture") else None,
    )
    return dealt, ReleaseOutcome(beliefs, report)
