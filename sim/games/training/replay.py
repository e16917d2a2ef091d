"""A recorded trial of the training game: its messages in words, and what the parties claim recomputed from them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from adversary.play import guess
from compliance.answers.statistics import Cohort, bounded
from compliance.games.training import open_cohort
from compliance.ledger.accountant import Budget, Rule
from developer.training.models import promised
from developer.training.play import PLAIN, RATES, record_multiplier, settings_of
from fairwall.errors import UserError
from fairwall.rpc.arrays import from_message, gathered
from fairwall.rpc.errors import Refusal
from sim.transcripts.calls import KnownCall
from sim.transcripts.captions import Caption, Parts, Story, array_of, count, dealt, number
from sim.transcripts.findings import BY_DIGEST, TOLERANCE, UNHEARD, Findings
from sim.transcripts.messages import RecordedSubmission, TrialMessages
from sim.transcripts.methods import short


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


def _sums_of(trial: TrialMessages) -> list[KnownCall]:
    return [one for one in trial.releases if short(one.method) == "SumByGroup"]


def told(findings: Findings, trial: TrialMessages) -> None:
    """Compare sums by group, and their cost, with the rows sent, the attributes and the seed."""
    dealt, reported = trial.cards.get("ComplianceDeal"), trial.submissions.get("SubmitAuditReport")
    if dealt is None or reported is None:
        return
    if not trial.is_heard:
        findings.not_checked(UNHEARD)
        return
    calls = _sums_of(trial)
    if dealt.arrays is None or not all(one.is_stored for one in calls):
        findings.not_checked(f"what was told of the groups, and what was reported of it: {BY_DIGEST}")
        return
    findings.reports += 1
    cohort = open_cohort(dealt.deal, dealt.arrays)
    if not dealt.deal.noise_seeded:
        findings.not_checked("the sums that were told: their noise is the operating system's, and was not kept")
    losses = {}
    for one in calls:
        header = one.requests[0].header
        losses[header.request_id] = cohort.loss(header.multiplier)
        if dealt.deal.noise_seeded:
            _summed(findings, trial, cohort, one)
    terms = dealt.deal.statistics.terms
    spent = Budget(terms.epsilon, terms.delta, Rule.TIGHT).spent(Counter(losses.values()))
    place = f"{trial.deal_id}: compliance reports: epsilon_spent"
    findings.same(reported.place, place, reported.request.epsilon_spent, spent)


def _summed(findings: Findings, trial: TrialMessages, cohort: Cohort, one: KnownCall) -> None:
    first, *parts = one.requests
    header = first.header
    rows = gathered(header.rows, (part.rows_chunk for part in parts)).astype(np.float64)
    place = f"{trial.deal_id}: compliance tells {header.request_id}"
    try:
        again = cohort.summed(header.request_id, bounded(rows), header.multiplier)
    except Refusal:
        findings.wrong(one.place, f"{place}, of rows that are longer than 1")
        return
    findings.same(one.place, place, from_message(one.answers[0].sums), again)


def model(findings: Findings, trial: TrialMessages) -> None:
    """Compare the developer's report of its model with its cards, its requests and the served scores."""
    dealt, submitted = trial.cards.get("ModelDeal"), trial.submissions.get("SubmitModel")
    if dealt is None or submitted is None:
        return
    if not trial.is_heard:
        findings.not_checked(UNHEARD)
        return
    findings.reports += 1
    where, request, place = submitted.place, submitted.request, f"{trial.deal_id}: developer reports"
    calls = _sums_of(trial)
    findings.same(where, f"{place}: asked", request.asked, len({one.requests[0].header.request_id for one in calls}))
    _promise(findings, trial, dealt.deal, submitted)
    if not submitted.is_stored:
        findings.not_checked(f"the model's scores that the developer reported: {BY_DIGEST}")
        return
    if dealt.deal.terms.model == RATES:
        return
    scores, decisions = from_message(request.scores).astype(np.float64), from_message(request.decisions)
    if dealt.deal.terms.practice == PLAIN:
        findings.same(where, f"{place}: decisions", decisions, (scores >= 0.5).astype(np.uint8)[None])
    findings.not_checked("scores: the model is in no message, and is not trained again; `fairwall replay` does")


def _promise(findings: Findings, trial: TrialMessages, deal: Any, submitted: RecordedSubmission) -> None:
    request, place = submitted.request, f"{trial.deal_id}: developer reports"
    if deal.terms.practice != PLAIN:
        findings.not_checked("epsilon of what a practice did: it is in no message")
        return
    told = None
    if deal.HasField("statistics"):
        asked = {one.requests[0].header.request_id: one.requests[0].header.multiplier for one in _sums_of(trial)}
        told = math.sqrt(sum(record_multiplier(multiplier) ** -2 for multiplier in asked.values()))
    of_model = None
    if deal.terms.model != RATES:
        try:
            of_model = promised(settings_of(deal.terms), int(deal.features.shape[0] - deal.public_rows), told)
        except UserError as error:
            findings.not_checked(f"{place}: epsilon: {error}")
            return
    again = math.inf if of_model is None else of_model.epsilon
    near = (again, again) if math.isinf(again) else (again - TOLERANCE, again + TOLERANCE)
    findings.between(submitted.place, f"{place}: epsilon", request.epsilon, *near)


def guesses(findings: Findings, trial: TrialMessages) -> None:
    """Compare the adversary's guesses with the scores that it was served."""
    dealt, submitted = trial.cards.get("CanaryDeal"), trial.submissions.get("SubmitCanaries")
    if dealt is None or submitted is None:
        return
    served = [one for one in trial.served if one.scores is not None]
    if dealt.arrays is None or not submitted.is_stored or len(served) != 1:
        findings.not_checked(f"the guesses about canaries: {BY_DIGEST}")
        return
    findings.reports += 1
    (answer,) = served
    assert answer.scores is not None, "chosen so"
    place = f"{trial.deal_id}: adversary reports: guesses"
    again = guess(answer.scores, dealt.arrays["labels"].astype(np.uint8))
    findings.same(submitted.place, place, from_message(submitted.request.guesses), again)
