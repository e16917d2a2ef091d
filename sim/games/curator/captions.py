"""Captions of the messages of the curator game's service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.transcripts.captions import Caption, Parts, Story, count, dealt, number


def captions() -> Mapping[str, Caption]:
    """Return the captions by message."""
    return {
        "ReleaseCommitmentRequest": lambda _story, message, _: (
            f"I am bound to {count(message.commitment.rows, 'row')} and to my noise by root "
            f"{message.commitment.root.hex()[:8]}…"
        ),
        "TakeCuratorDealResponse": _take_curator_deal_response,
        "SubmitAnswersRequest": lambda _story, message, _: (
            f"what I asked, and the {count(len(message.request_ids), 'answer')} that I got"
        ),
        "SubmitAnswersResponse": lambda _story, message, _: f"verdict: {_TOLD[message.verdict]}",
        "SubmitOpeningRequest": lambda _story, message, _: (
            f"the attributes of {count(message.attributes.header.shape[0], 'row')}, my salts and my seed"
        ),
    }


_TOLD = ("none yet", "compliance did as it promised", "compliance cheated")
"""Indexed by the number of the verdict."""


@dealt
def _take_curator_deal_response(story: Story, deal: Any, _: Parts) -> str:
    story.begin()
    by = f"bound by root {deal.commitment.root.hex()[:8]}…" if deal.HasField("commitment") else "not bound"
    return f"{deal.deal_id}: {count(deal.requests, 'request')} at epsilon {number(deal.epsilon)}; compliance is {by}"
