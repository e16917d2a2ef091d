"""All reports of a run, session by session and trial by trial."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sim.transcripts.files import Transcript
from sim.transcripts.findings import UNFIT, Findings, Recomputed
from sim.transcripts.messages import Session
from sim.verify import audit_reports
from sim.verify.lines import read_lines


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
    game = lines.game if lines is not None else None
    for session in played:
        comparisons = [audit_reports.compare, *(game.recompute(session) if game is not None else ())]
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
