"""Captions of the messages of InferenceService."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.transcripts.captions import Caption, Guess, Parts, Story, array_of, cards_of, count, dealt


def captions() -> Mapping[str, Caption]:
    """Return the captions by message."""
    return {
        "TakeTrainingDealResponse": _take_training_deal_response,
        "SubmitModelsRequest": _submit_models_request,
        "TakeAttackDealResponse": _take_attack_deal_response,
        "SubmitGuessesRequest": _submit_guesses_request,
    }


@dealt
def _take_training_deal_response(story: Story, deal: Any, rest: Parts) -> str:
    story.kept |= cards_of(deal, rest)
    story.begin()
    rows, models = count(deal.features.shape[0], "row"), count(deal.bits.shape[0], "model")
    return f"{deal.deal_id}: {rows}, their groups, {models} to train; defence {deal.training.defence}"


def _submit_models_request(_story: Story, message: Any, _: Parts) -> str:
    models, rows = message.scores.header.shape
    return f"{count(models, 'model')} stand, and score {count(rows, 'row')}"


@dealt
def _take_attack_deal_response(_story: Story, deal: Any, _: Parts) -> str:
    rows = count(deal.labels.shape[0], "row")
    return f"{deal.deal_id}: {count(deal.models, 'model')} and {rows}; play {', '.join(deal.attacks)}"


def _submit_guesses_request(story: Story, message: Any, _: Parts) -> str:
    guesses = array_of(message.guesses)
    bits = story.kept.get("bits")
    if guesses is not None and len(guesses):
        story.guess = Guess("model", guesses[0], true=bits)  # of the first attack
    if guesses is None or bits is None or guesses.shape[1:] != bits.shape:
        return "guesses which group each model learned from"
    right = ", ".join(str(int((row == bits).sum())) for row in guesses)
    return f"guesses which group each model learned from: right for {right} of {len(bits)}"
