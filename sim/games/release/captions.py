"""What the messages of the release game's services say, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.transcripts.captions import Caption, Parts, Story, cards_of, count


def captions() -> Mapping[str, Caption]:
    """Give the captions by message."""
    return {
        "TakeReleaseDealResponse": _take_release_deal_response,
        "SanitiseRequest": _sanitise_request,
        "SanitiseResponse": _sanitise_response,
        "HandModelRequest": _hand_model_request,
        "HandModelResponse": _hand_model_response,
        "SubmitBeliefsRequest": _submit_beliefs_request,
    }


def _take_release_deal_response(story: Story, message: Any, rest: Parts) -> str:
    if message.WhichOneof("part") == "turn":
        return "the run is over"
    deal = message.deal
    story.kept |= cards_of(deal, rest)
    story.answers, story.left = 0, None
    people, columns = count(deal.labels.shape[0], "person"), count(len(deal.terms.columns), "sensitive column")
    asked = f", {count(deal.terms.queried.queries, 'query')} about them" if deal.terms.HasField("queried") else ""
    return f"{deal.deal_id}: {people} to train on, {columns} released by {deal.terms.protocol}{asked}"


def _sanitise_request(_story: Story, message: Any, _: Parts) -> str:
    return f"their sensitive columns, sanitised at epsilon {message.epsilon:g}?"


def _sanitise_response(_story: Story, message: Any, _: Parts) -> str:
    header = message.header
    return f"{count(header.encoded.shape[0], 'row')} of bits, cost {header.epsilon_charged:g}"


def _hand_model_request(_story: Story, message: Any, _: Parts) -> str:
    return f"my model: {count(message.header.nodes.shape[0], 'node')} of trees"


def _hand_model_response(_story: Story, message: Any, _: Parts) -> str:
    return f"accuracy {100 * message.utilities[0]:.1f}%" if message.utilities else "taken"


def _submit_beliefs_request(_story: Story, message: Any, _: Parts) -> str:
    return f"who of {count(message.from_everything.header.shape[0], 'person')} is advantaged, guessed"
