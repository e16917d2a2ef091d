"""All reports of a run, session by session and trial by trial."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from sim.recompute import audit_reports, inference_scores, loss_test, reveal_statistics
from sim.recompute.base_model import BaseModel
from sim.recompute.findings import UNFIT, Findings, Recomputed
from sim.recompute.lines import read_lines
from sim.recompute.messages import Session
from sim.transcripts import Transcript


def recompute(folder: Path, sessions: Mapping[str, Mapping[str, Transcript]]) -> Recomputed:
    """Compute the reports of a run again.

    Parameters
    ----------
    folder : Path
        The run's.
    sessions : mapping of str to mapping of str to Transcript
        The transcripts by number, then by party.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    findings = Findings()
    played = [Session(parties) for parties in sessions.values()]
    # A trial that was broken off is played again, in a later session.
    last = {deal_id: session for session in played for deal_id in session.deals}
    lines = read_lines(findings, folder)
    for session in played:
        comparisons = (
            audit_reports.compare,
            partial(reveal_statistics.compare, base=BaseModel(session)),
            inference_scores.compare,
            loss_test.compare,
        )
        unread = [*session.unread]
        for deal_id in session.deals:
            trial = session.trial(deal_id)
            unread += trial.unread
            for compare in comparisons:
                try:
                    compare(findings, trial)
                except UNFIT as error:
                    findings.not_checked(f"{deal_id}: its messages do not fit together: {error!r}")
            if lines is not None and last[deal_id] is session:
                lines.compare(trial)
        for text in unread:
            findings.not_checked(f"what cannot be understood: {text}")
    if lines is not None:
        lines.close(whole=all("referee" in parties and parties["referee"].is_whole for parties in sessions.values()))
    return findings.result()
