"""Captions of the messages of RevealService."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sim.games.reveal.score import leakage
from sim.transcripts.captions import Caption, Guess, Parts, Story, always, array_of, count, dealt


def captions() -> Mapping[str, Caption]:
    """Return the captions by message."""
    return {
        "TakeDeveloperDealResponse": _take_developer_deal_response,
        "GetTrainingTableResponse": _get_training_table_response,
        "SubmitRevealRequest": _submit_reveal_request,
        "TakeAdversaryDealResponse": _take_adversary_deal_response,
        "SubmitLossTestRequest": _submit_loss_test_request,
        "GetTrainingTableRequest": always("asks for the training table"),
        "ReleaseModelRequest": always("releases its base model"),
    }


@dealt
def _take_developer_deal_response(_story: Story, deal: Any, _: Parts) -> str:
    shown = deal.HasField("features")
    people = count(deal.features.shape[0], "person") if shown else "people whom you are not shown"
    match deal.queries.WhichOneof("count"):
        case "fixed":
            queries = count(deal.queries.fixed, "query")
        case "at_most":
            queries = "as many queries as it takes"
        case _:
            queries = "a query a person"
    decoder = f" with decoder {deal.decoder}" if deal.decoder else ""
    return f"{deal.deal_id}: {people}, no protected attribute; play {deal.strategy}{decoder}, {queries}"


def _get_training_table_response(_story: Story, message: Any, _: Parts) -> str:
    return f"{count(message.table.features.shape[0], 'row')} to train on"


def _submit_reveal_request(story: Story, message: Any, _: Parts) -> str:
    guess, baseline = array_of(message.guess), array_of(message.baseline)
    people = len(guess) if guess is not None else 0
    protected = story.kept.get("protected")
    if guess is not None:
        story.guess = Guess("person", guess, baseline, protected, ("disadvantaged", "advantaged"))
    if protected is None or guess is None or baseline is None or len(protected) != people:
        return f"guesses the groups of {count(people, 'person')}"
    right = int((guess == protected).sum())
    before = int((baseline == protected).sum())
    score = leakage(guess.astype(np.uint8), protected.astype(np.uint8))
    return (
        f"guesses who belongs where: right for {right} of {people}, leakage {score:.1f}% "
        f"(without a query right for {before})"
    )


@dealt
def _take_adversary_deal_response(_story: Story, deal: Any, _: Parts) -> str:
    return f"{deal.deal_id}: {count(deal.labels.shape[0], 'public row')}; play {deal.attack}"


def _submit_loss_test_request(_story: Story, message: Any, _: Parts) -> str:
    first, second = 100 * message.accuracy_advantaged, 100 * message.accuracy_disadvantaged
    return f"accuracy {first:.1f}% on the advantaged, {second:.1f}% on the disadvantaged"
