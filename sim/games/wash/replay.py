"""A recorded trial of the wash game: its messages in words, and what the parties claim recomputed from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adversary.play import reported
from compliance.games.wash import decided, judge
from fairwall.arrays import Bytes
from fairwall.rpc.arrays import from_message
from fairwall.wire.queries import AUDITED
from sim.transcripts.captions import Caption, Parts, Story, array_of, count, dealt
from sim.transcripts.findings import BY_DIGEST, UNHEARD, Findings
from sim.transcripts.messages import TrialMessages


def captions() -> Mapping[str, Caption]:
    """Return the captions by message."""
    return {
        "TakeWashDealResponse": _take_wash_deal_response,
        "SubmitCommitmentRequest": _submit_commitment_request,
        "TakeCheckDealResponse": _take_check_deal_response,
        "SubmitSightingRequest": _submit_sighting_request,
        "TakeAuditDealResponse": _take_audit_deal_response,
        "SubmitWashRequest": _submit_wash_request,
        "TakeSightingDealResponse": _take_sighting_deal_response,
        "SubmitVerdictRequest": _submit_verdict_request,
    }


@dealt
def _take_wash_deal_response(story: Story, deal: Any, _: Parts) -> str:
    story.begin()
    return f"{deal.deal_id}: {count(deal.features.shape[0], 'person')} are audited; {deal.strategy}, {deal.knows}"


def _submit_commitment_request(_story: Story, message: Any, _: Parts) -> str:
    bound = f"I commit to {message.commitment.hex()[:12]}…" if message.commitment else "I commit to nothing"
    return f"my model is deployed; {bound}"


@dealt
def _take_check_deal_response(_story: Story, deal: Any, _: Parts) -> str:
    return f"{deal.deal_id}: ask about {count(deal.features.shape[0], 'row')}"


def _submit_sighting_request(_story: Story, message: Any, _: Parts) -> str:
    seen = array_of(message.seen)
    accepted = "" if seen is None else f", {int(seen.sum())} of them accepted"
    return f"what I saw of {count(message.seen.header.shape[0], 'row')}{accepted}"


@dealt
def _take_audit_deal_response(_story: Story, deal: Any, _: Parts) -> str:
    return f"{deal.deal_id}: have it audited"


def _submit_wash_request(_story: Story, message: Any, _: Parts) -> str:
    shown, deployed = array_of(message.shown), array_of(message.deployed)
    otherwise = "" if shown is None or deployed is None else f": {int((shown != deployed).sum())} differ"
    return f"what I showed of {count(message.shown.header.shape[0], 'person')}, and what I deployed{otherwise}"


@dealt
def _take_sighting_deal_response(_story: Story, deal: Any, _: Parts) -> str:
    return f"a customer saw {count(len(deal.rows), 'row')}"


def _submit_verdict_request(_story: Story, message: Any, _: Parts) -> str:
    why = ", and the commitment is broken" if message.broken else ""
    found = f"{count(message.contradictions, 'row')} contradict the audit{why}"
    return f"{found}: I {'accuse' if message.accused else 'do not accuse'}"


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
    audited: Bytes | None = None
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
