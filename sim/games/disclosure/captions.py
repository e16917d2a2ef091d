"""Captions of the messages of the disclosure game's services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from developer.disclosure.belief import MODES
from sim.transcripts.captions import Caption, Parts, Story, count, dealt, number


def captions() -> Mapping[str, Caption]:
    """Return the captions by message."""
    return {
        "TakeDisclosureDealResponse": _take_disclosure_deal_response,
        "TabulateRequest": _tabulate_request,
        "TabulateResponse": _tabulate_response,
        "SubmitPosteriorRequest": _submit_posterior_request,
    }


@dealt
def _take_disclosure_deal_response(story: Story, deal: Any, _: Parts) -> str:
    story.begin()
    return f"{deal.deal_id}: {MODES[deal.mode]}; Alice and {count(deal.others, 'other')} are of cell {deal.cell}"


def _tabulate_request(_story: Story, message: Any, _: Parts) -> str:
    return f"the study's table, at epsilon {number(message.epsilon)}?"


def _tabulate_response(_story: Story, message: Any, _: Parts) -> str:
    header = message.header
    what = "record" if len(header.table.shape) == 2 else "count"
    return f"{count(header.table.shape[0], what)}, cost {number(header.epsilon_charged)}"


def _submit_posterior_request(_story: Story, message: Any, _: Parts) -> str:
    record = f"; record {message.record} is hers" if message.HasField("record") else ""
    return f"the secret is 1 with probability {number(message.posterior)}: my guess is {int(message.guess)}{record}"
