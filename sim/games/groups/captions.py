"""Captions of the messages of the services of the game of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sim.transcripts.captions import Caption, Guess, Parts, Story, array_of, count, dealt, number


def captions() -> Mapping[str, Caption]:
    """Return the captions by message."""
    return {
        "TakeGroupDealResponse": _take_group_deal_response,
        "GetGroupTermsResponse": _get_group_terms_response,
        "ByGroupRequest": _by_group_request,
        "ByGroupResponse": _by_group_response,
        "SubmitGroupsRequest": _submit_groups_request,
    }


@dealt
def _take_group_deal_response(story: Story, deal: Any, _: Parts) -> str:
    story.begin()
    return f"{deal.deal_id}: {count(len(deal.shares), 'group')}; ask by {deal.strategy}, epsilon {number(deal.epsilon)}"


def _get_group_terms_response(story: Story, message: Any, _: Parts) -> str:
    codes = story.kept.get("groups")
    sizes = [len(each.values) for each in message.attributes]
    if codes is not None and len(codes) == len(sizes):
        story.kept["cells"] = np.ravel_multi_index(tuple(codes), sizes)
    return f"{count(message.people, 'person')}, by {', '.join(each.name for each in message.attributes)}"


def _by_group_request(_story: Story, message: Any, _: Parts) -> str:
    header = message.header
    return (
        f"whom do {count(header.predictions.shape[0], 'model')} accept, by group, at epsilon {number(header.epsilon)}?"
    )


def _by_group_response(story: Story, message: Any, _: Parts) -> str:
    tables, rows = len(message.release.tables), sum(len(each.reach) for each in message.release.rows)
    story.answered(tables or rows, message)
    released = count(tables, "table") if tables else count(rows, "row")
    return f"{released} of {count(message.release.groups, 'group')}; ε {number(message.epsilon_charged)} charged"


def _submit_groups_request(story: Story, message: Any, _: Parts) -> str:
    guess = array_of(message.guess)
    if guess is not None:
        story.guess = Guess("person", guess, true=story.kept.get("cells"))
    return f"my guess at the groups of {count(message.guess.header.shape[0], 'person')}"
