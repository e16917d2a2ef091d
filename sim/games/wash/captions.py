"""Captions of the messages of the washing game's service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.transcripts.captions import Caption, Parts, Story, array_of, count, dealt


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
