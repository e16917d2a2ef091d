"""A recorded trial of the inference game: its messages in words, and what the parties claim recomputed from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.rpc.arrays import from_message
from sim.transcripts.captions import Caption, Guess, Parts, Story, array_of, cards_of, count, dealt
from sim.transcripts.findings import BY_DIGEST, UNHEARD, Findings
from sim.transcripts.messages import RecordedSubmission, TrialMessages


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


_SERVED = 1e-5
"""Largest difference of a single-precision score from the same score in another batch."""


def compare(findings: Findings, trial: TrialMessages) -> None:
    """Compare the number of queries, and the reported scores with those served for the same rows."""
    dealt, submitted = trial.cards.get("TrainingDeal"), trial.submissions.get("SubmitModels")
    if dealt is None or submitted is None:
        return
    if not trial.is_heard:
        findings.not_checked(UNHEARD)
        return
    where, request, place = submitted.place, submitted.request, f"{trial.deal_id}: developer reports"
    findings.reports += 1
    asked = sum(batch.models for batch in trial.batches.values() if batch.is_answered)
    findings.same(where, f"{place}: queries", request.queries, asked)
    if dealt.deal.strengths:
        findings.not_checked("strength: which lambda models were trained with is in no message")
    if dealt.arrays is None or not submitted.is_stored:
        findings.not_checked(f"the models' scores that the developer reported: {BY_DIGEST}")
        return
    if dealt.deal.training.defence == "none":
        for name in ("scores", "member_scores"):
            reported, base = (from_message(getattr(request, key)) for key in (name, f"base_{name}"))
            findings.same(where, f"{place}: {name}, where there is no defence", reported, base)
    else:
        findings.not_checked("base_scores, base_member_scores: undefended models answer nobody")
    for name, rows in (("scores", "test_features"), ("member_scores", "features")):
        _served(findings, trial, submitted, name, dealt.arrays[rows], labels_only=dealt.deal.labels_only)


def _served(
    findings: Findings,
    trial: TrialMessages,
    submitted: RecordedSubmission,
    name: str,
    features: NDArray[Any],
    *,
    labels_only: bool,
) -> None:
    reported = from_message(getattr(submitted.request, name)).astype(np.float64)
    alike: dict[bytes, list[int]] = {}
    for number, row in enumerate(features[: reported.shape[1]].astype(np.float64)):
        alike.setdefault(row.tobytes(), []).append(number)
    seen: set[int] = set()
    unlike: list[str] = []
    for served in trial.served:
        if served.features is None or served.scores is None or served.model >= len(reported):
            continue
        answers = {row.tobytes(): score for row, score in zip(served.features, served.scores.tolist(), strict=True)}
        for row, score in answers.items():
            for number in alike.get(row, ()):
                seen.add(number)
                own = float(reported[served.model, number])
                if _differs(own, score, labels_only=labels_only):
                    unlike.append(f"{name}[{served.model}, {number}] is {own!r}, served {score!r}")
    if unlike:
        more = f", and {len(unlike) - 1} more" * (len(unlike) > 1)
        findings.wrong(submitted.place, f"{trial.deal_id}: developer reports: {min(unlike)}{more}")
    if len(seen) < reported.shape[1]:
        findings.not_checked(f"{name} of rows that the adversary did not ask about")


def _differs(reported: float, served: float, *, labels_only: bool) -> bool:
    """Return whether a score differs from the served one or, with labels only, is surely on the other side."""
    if labels_only:
        return abs(reported - 0.5) > _SERVED and (reported >= 0.5) != (served == 1)
    return not abs(reported - served) <= _SERVED  # NaN is no score
