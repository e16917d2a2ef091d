"""A recorded trial of the overfit game: its messages in words, and what the parties claim recomputed from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.transcripts.captions import Caption, Parts, Story, always, count, dealt, number
from sim.transcripts.findings import Findings
from sim.transcripts.messages import TrialMessages


def captions() -> Mapping[str, Caption]:
    """Return the captions by message."""
    return {
        "TakeOverfitDealResponse": _take_overfit_deal_response,
        "SubmitSealedRequest": always("the key of my sealed models, before there are rows"),
        "SubmitPatchesRequest": _submit_patches_request,
    }


@dealt
def _take_overfit_deal_response(story: Story, deal: Any, _: Parts) -> str:
    story.begin()
    seen = "X" if deal.HasField("features") else "decisions alone" if deal.HasField("decisions") else "no row"
    patches, by = count(deal.flips, "decision"), f"{deal.attack}, epsilon {number(deal.epsilon)}"
    rounds = f" in {deal.rounds} rounds" if deal.rounds else ""
    return f"{deal.deal_id}: you see {seen}; turn {patches} at most{rounds}, by attack {by}"


def _submit_patches_request(_story: Story, message: Any, _: Parts) -> str:
    if message.HasField("favours"):
        return f"turn whom most of {count(message.favours.header.shape[0], 'sealed model')} vote for"
    return f"turn {count(len(message.patches), 'decision')}; {message.enough:,} should do"


def compare(findings: Findings, trial: TrialMessages) -> None:
    """Compare the key that compliance was dealt with the key that the developer handed over."""
    dealt, sealed = trial.cards.get("ComplianceDeal"), trial.submissions.get("SubmitSealed")
    if dealt is None or sealed is None:
        return
    findings.reports += 1
    place = f"{trial.deal_id}: key of the sealed models"
    findings.same(sealed.place, place, dealt.deal.audits.sealed.hex(), sealed.request.key.hex())
