"""What the messages of the game of the curator's service say, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairwall.game.v1 import curator_service_pb2 as wire
from sim.transcripts.captions import Caption, Parts, Story, count, dealt, number


def captions() -> Mapping[str, Caption]:
    """Give the captions by message."""
    return {
        "ReleaseCommitmentRequest": _release_commitment_request,
        "TakeCuratorDealResponse": _take_curator_deal_response,
        "SubmitAnswersRequest": _submit_answers_request,
        "SubmitAnswersResponse": _submit_answers_response,
        "SubmitOpeningRequest": _submit_opening_request,
    }


def _release_commitment_request(_story: Story, message: Any, _: Parts) -> str:
    return f"I am bound to {count(message.commitment.rows, 'row')} and to my noise by root {_root(message)}…"


@dealt
def _take_curator_deal_response(story: Story, deal: Any, _: Parts) -> str:
    story.begin()
    bound = f"compliance is bound by root {_root(deal)}…" if deal.HasField("commitment") else "compliance is not bound"
    return f"{deal.deal_id}: {count(deal.requests, 'request')} at epsilon {number(deal.epsilon)}; {bound}"


def _submit_answers_request(_story: Story, message: Any, _: Parts) -> str:
    return f"what I asked, and the {count(len(message.request_ids), 'answer')} that I got"


def _submit_answers_response(_story: Story, message: Any, _: Parts) -> str:
    told = {wire.VERDICT_CLEAR: "compliance did as it promised", wire.VERDICT_ACCUSED: "compliance cheated"}
    return f"verdict: {told.get(message.verdict, 'none yet')}"


def _submit_opening_request(_story: Story, message: Any, _: Parts) -> str:
    return f"the attributes of {count(message.attributes.header.shape[0], 'row')}, my salts and my seed"


def _root(message: Any) -> str:
    root: str = message.commitment.root.hex()[:8]
    return root
