"""``fairwall verify RUN``: whether transcripts are complete, agree, respect the boundary, and hold no secret.

The checks compare stored files: each file as stored, with the end of each chain in ``result.json``; the two sides of
every call with each other; every received field with its receiver's clearance; all that the developer and the adversary
received with every protected column of the run; and the parties' reports and the lines of ``trials.jsonl`` with what
follows from the messages. Sent messages are not searched: a guess is not a leak, even when it is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fairwall.plugins import missing, named_in
from sim.transcripts.files import Transcript, paths, read
from sim.transcripts.findings import UNFIT, Findings, Recomputed
from sim.transcripts.messages import PlayedSession
from sim.verify import audit_reports
from sim.verify.call_checks import disagreements, forbidden
from sim.verify.finding import NoRun, Verification, VerifyFinding
from sim.verify.lines import read_lines
from sim.verify.protected import ProtectedColumns
from sim.verify.report_page import changed_page
from sim.verify.run_files import broken_chains, changed_confinement, changed_files, misnamed
from sim.verify.signature import wrong_signature


def verify(
    folder: Path, public_key: Path | None = None, scripts: Sequence[Transcript] = (), *, page: bool = True
) -> Verification:
    """Check a run's folder.

    ``public_key`` is the key that must have signed the result; ``scripts`` are the run's transcripts, if already read.
    ``page``: whether to rewrite the report and compare it, which takes longer than the rest of the checks on a small
    run.
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
    findings += (VerifyFinding("reported", *contradiction) for contradiction in recomputed.contradictions)
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
    """Return which plug-ins are missing here that recomputing needs; "" if none."""
    played = folder / "result.json"
    return missing(named_in(played.read_bytes())) if played.exists() else ""


def _recompute(folder: Path, sessions: Mapping[str, Mapping[str, Transcript]]) -> Recomputed:
    """Recompute the reports of a run from its transcripts, by number, then by party."""
    findings = Findings()
    played = [PlayedSession(parties) for parties in sessions.values()]
    # An interrupted trial is played again in a later session.
    last = {deal_id: session for session in played for deal_id in session.deals}
    lines = read_lines(findings, folder)
    game = lines.game if lines is not None else None
    for session in played:
        # The game's comparison comes first: its messages may determine the cases of batches.
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
