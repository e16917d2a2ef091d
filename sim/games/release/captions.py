"""Captions of the messages of the release game's services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sim.transcripts.captions import Caption, Guess, Parts, Story, array_of, cards_of, count, dealt, number


def captions() -> Mapping[str, Caption]:
    """Return the captions by message."""
    return {
        "TakeReleaseDealResponse": _take_release_deal_response,
        "SanitiseRequest": lambda _story, message, _: (
            f"their sensitive columns, sanitised at epsilon {number(message.epsilon)}?"
        ),
        "SanitiseResponse": _sanitise_response,
        "HandModelRequest": lambda _story, message, _: (
            f"my model: {count(message.header.nodes.shape[0], 'node')} of trees"
        ),
        "HandModelResponse": lambda _story, message, _: (
            f"accuracy {100 * message.utilities[0]:.1f}%" if message.utilities else "taken"
        ),
        "SubmitBeliefsRequest": _submit_beliefs_request,
    }


@dealt
def _take_release_deal_response(story: Story, deal: Any, rest: Parts) -> str:
    story.kept |= cards_of(deal, rest)
    story.begin()
    story.kept["group_column"] = np.flatnonzero([each.groups for each in deal.terms.columns])
    people, columns = count(deal.labels.shape[0], "person"), count(len(deal.terms.columns), "sensitive column")
    asked = f", {count(deal.terms.queried.queries, 'query')} about them" if deal.terms.HasField("queried") else ""
    return f"{deal.deal_id}: {people} to train on, {columns} released by {deal.terms.protocol}{asked}"


def _sanitise_response(_story: Story, message: Any, _: Parts) -> str:
    header = message.header
    return f"{count(header.encoded.shape[0], 'row')} of bits, cost {number(header.epsilon_charged)}"


def _submit_beliefs_request(story: Story, message: Any, _: Parts) -> str:
    guess, before = array_of(message.from_everything), array_of(message.from_release)
    if guess is not None:
        columns, groups = story.kept.get("release"), story.kept.get("group_column", np.empty(0))
        true = columns[:, groups[0]] if columns is not None and len(groups) else None
        story.guess = Guess("person", guess, before, true, ("disadvantaged", "advantaged"))
    return f"who of {count(message.from_everything.header.shape[0], 'person')} is advantaged, guessed"
