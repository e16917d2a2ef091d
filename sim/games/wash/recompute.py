"""Recomputation of the parties' reports in a washing trial; `sim.verify.audit_reports` compares the answers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adversary.wash.play import reported
from compliance.games.wash import decided, judge
from fairwall.rpc.arrays import from_message
from fairwall.wire.queries import AUDITED
from sim.transcripts.findings import BY_DIGEST, UNHEARD, Findings
from sim.transcripts.messages import TrialMessages


def compare(findings: Findings, trial: TrialMessages) -> None:
    """Compare shown decisions with the audit, the customer's report with served scores, and the verdict with both."""
    submitted, verdict = (trial.submissions.get(name) for name in ("SubmitWash", "SubmitVerdict"))
    sighting = trial.cards.get("SightingDeal")
    if submitted is None or verdict is None or sighting is None:
        return
    if not trial.is_heard:
        findings.not_checked(UNHEARD)
        return
    batch = trial.batches.get(AUDITED)
    audited: NDArray[np.uint8] | None = None
    if batch is not None:
        if batch.predictions is None or sighting.arrays is None or not submitted.is_stored:
            findings.not_checked(f"what was shown, seen and concluded: {BY_DIGEST}")
            return
        audited = decided(batch.predictions[0])
    findings.reports += 1
    place = f"{trial.deal_id}: developer reports"
    shown, deployed = (from_message(array) for array in (submitted.request.shown, submitted.request.deployed))
    if audited is None:
        findings.wrong(submitted.place, f"{place} what it had nobody audit")
    else:
        findings.same(submitted.place, f"{place}: shown", shown, audited)
    _seen(findings, trial, deployed)
    assert sighting.arrays is not None, "looked at above"
    again = judge(audited, sighting.deal, sighting.arrays["seen"])
    for name, value in vars(again).items():
        where = f"{trial.deal_id}: compliance concludes: {name}"
        findings.same(verdict.place, where, getattr(verdict.request, name), value)


def _seen(findings: Findings, trial: TrialMessages, deployed: NDArray[np.generic]) -> None:
    dealt, told, sighting = trial.cards.get("CheckDeal"), trial.submissions.get("SubmitSighting"), None
    if dealt is None or told is None:
        return
    sighting = trial.cards["SightingDeal"].deal
    served = next((one for one in trial.served if one.scores is not None), None)
    if served is None or served.scores is None or not told.is_stored:
        findings.not_checked(f"what the customer saw: {BY_DIGEST}")
        return
    rows = list(sighting.rows)
    place = f"{trial.deal_id}: developer serves what it says is deployed"
    findings.same(told.place, place, decided(served.scores), deployed[rows])
    again = reported(served.scores, dealt.deal.wrong, dealt.deal.seed)
    findings.same(told.place, f"{trial.deal_id}: adversary reports: seen", from_message(told.request.seen), again)
