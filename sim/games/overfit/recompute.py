"""Check of the sealed models in the overfit game: compliance scored the models that the developer handed over."""

from __future__ import annotations

from sim.transcripts.findings import Findings
from sim.transcripts.messages import TrialMessages


def compare(findings: Findings, trial: TrialMessages) -> None:
    """Compare the key that compliance was dealt with the key that the developer handed over."""
    dealt, sealed = trial.cards.get("ComplianceDeal"), trial.submissions.get("SubmitSealed")
    if dealt is None or sealed is None:
        return
    findings.reports += 1
    place = f"{trial.deal_id}: key of the sealed models"
    findings.same(sealed.place, place, dealt.deal.audits.sealed.hex(), sealed.request.key.hex())
