"""Captions of the messages of the training game's services."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sim.transcripts.captions import Caption, Parts, Story, array_of, count, dealt, number


def captions() -> Mapping[str, Caption]:
    """Return the captions by message."""
    return {
        "TakeModelDealResponse": _take_model_deal_response,
        "SumByGroupRequest": _sum_by_group_request,
        "SumByGroupResponse": _sum_by_group_response,
        "SubmitModelRequest": _submit_model_request,
        "TakeCanaryDealResponse": _take_canary_deal_response,
        "SubmitCanariesRequest": _submit_canaries_request,
    }


@dealt
def _take_model_deal_response(story: Story, deal: Any, _: Parts) -> str:
    story.begin()
    groups = ", their groups" if deal.holds_protected else ""
    return f"{deal.deal_id}: {count(deal.features.shape[0], 'row')}{groups}; train {deal.terms.model}"


def _sum_by_group_request(_story: Story, message: Any, _: Parts) -> str:
    width = message.header.rows.shape[1]
    return f"the sums of {count(width, 'column')} by group, with noise of {number(message.header.multiplier)}?"


def _sum_by_group_response(story: Story, message: Any, _: Parts) -> str:
    story.answered(1, message)
    return f"told, at epsilon {number(message.epsilon_charged)}; {number(message.epsilon_remaining)} left"


def _submit_model_request(_story: Story, message: Any, _: Parts) -> str:
    if len(message.rates):
        return f"the groups' rates are {number(message.rates[0])} and {number(message.rates[1])}"
    promise = "promises nothing" if math.isinf(message.epsilon) else f"promises epsilon {number(message.epsilon)}"
    return f"the model decides about {count(message.scores.header.shape[0], 'row')}, and {promise}"


@dealt
def _take_canary_deal_response(_story: Story, deal: Any, _: Parts) -> str:
    return f"{deal.deal_id}: which of {count(deal.labels.shape[0], 'mislabelled row')} was it trained on?"


def _submit_canaries_request(_story: Story, message: Any, _: Parts) -> str:
    guesses = array_of(message.guesses)
    if guesses is None:
        return "guesses which canaries the model was trained on"
    return f"trained on {int((guesses == 1).sum())}, not on {int((guesses == 0).sum())}, no guess about the rest"
