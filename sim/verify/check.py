"""``fairwall verify RUN``: whether a run's transcripts are whole, agree, stay within the boundary, and hold no secret.

What is checked is what was written: each file as it is stored, against the end of each chain in ``result.json``; the
two sides of every call against one another; every field that arrived against its receiver's clearance; all that a
party other than compliance received against every protected column of the run; and what parties report, with the lines
of ``trials.jsonl``, against what follows from the messages. What a party sent is not searched: a guess is not a
leak, even when it is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fairwall.plugins import missing, named_in
from sim.transcripts.files import Transcript, paths, read
from sim.transcripts.findings import UNFIT, Findings, Recomputed
from sim.transcripts.messages import Session
from sim.verify import audit_reports
from sim.verify.allowed import forbidden
from sim.verify.confinement import changed_confinement
from sim.verify.counterparts import disagreements
from sim.verify.finding import Finding, NoRun, Verification
from sim.verify.lines import read_lines
from sim.verify.protected import ProtectedColumns
from sim.verify.report_page import changed_page
from sim.verify.run_files import broken_chains, changed_files
from sim.verify.scenario_name import misnamed
from sim.verify.signature import wrong_signature


def verify(
    folder: Path, public_key: Path | None = None, scripts: Sequence[Transcript] = (), *, page: bool = True
) -> Verification:
    """Check a run's folder.

    Parameters
    ----------
    public_key : whose signature the result must have.
    scripts : the run's transcripts, where they have been read already.
    page : whether to write the report again, too, and compare it: that takes longer than all the rest of a small run.
    """
    if not (folder / "scenario.toml").is_file():
        raise NoRun(
            f"{folder}: not a run's folder: it has no scenario.toml; name one that fairwall run printed, or latest"
        )
    scripts = scripts or [read(path) for path in paths(folder)]
    if not scripts:
        raise NoRun(f'{folder}: nothing was recorded: its scenario says record = "none", or it is an old run')
    findings = [*changed_files(folder), *broken_chains(folder, scripts), *misnamed(folder, scripts)]
    by_number: dict[str, dict[str, Transcript]] = {}
    for script in scripts:
        by_number.setdefault(script.number, {})[script.party] = script
    notes: list[str] = []
    findings += wrong_signature(folder, public_key, notes)
    lacking = _lacking(folder)
    if page and not lacking:
        findings += changed_page(folder, scripts, notes)
    findings += changed_confinement(folder, list(by_number.values()), notes)
    for parties in by_number.values():
        findings += disagreements(parties, notes)
    for script in scripts:
        findings += forbidden(script, by_number[script.number])
    protected = ProtectedColumns(scripts)
    findings += protected.findings()
    if lacking:
        notes.append(f"not checked: the report, trials.jsonl and what parties report: {lacking}")
    recomputed = Findings().result() if lacking else _recompute(folder, by_number)
    findings += (Finding("reported", *contradiction) for contradiction in recomputed.contradictions)
    return Verification(
        findings=tuple(dict.fromkeys(findings)),
        notes=tuple(dict.fromkeys([*notes, *protected.notes, *recomputed.notes])),
        transcripts=len(scripts),
        messages=sum(len(script.messages) for script in scripts),
        searched_bytes=protected.searched_bytes,
        columns=protected.columns,
        reports=recomputed.reports,
    )


def _lacking(folder: Path) -> str:
    """Say which plug-ins of a run are needed to compute anything again, and are not here."""
    played = folder / "result.json"
    return missing(named_in(played.read_bytes())) if played.exists() else ""


def _recompute(folder: Path, sessions: Mapping[str, Mapping[str, Transcript]]) -> Recomputed:
    """Compute the reports of a run again, from its transcripts by number, then by party."""
    findings = Findings()
    played = [Session(parties) for parties in sessions.values()]
    # A trial that was interrupted is played again, in a later session.
    last = {deal_id: session for session in played for deal_id in session.deals}
    lines = read_lines(findings, folder)
    game = lines.game if lines is not None else None
    for session in played:
        # A game's own first: what batches were asked about may follow from its messages.
        comparisons = [*(game.recompute(session) if game is not None else ()), audit_reports.compare]
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
