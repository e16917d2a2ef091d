"""Recomputation of the parties' reports in a training trial from its messages."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from adversary.training.play import guess
from compliance.answers.statistics import Cohort
from compliance.answers.statistics_service import bounded
from compliance.games.training import open_cohort
from compliance.ledger.accountant import Budget, Rule
from developer.training.models import promised
from developer.training.play import PLAIN, RATES, record_multiplier, settings_of
from fairwall.errors import UserError
from fairwall.rpc.arrays import from_message, gathered
from fairwall.rpc.errors import Refusal
from sim.transcripts.findings import BY_DIGEST, TOLERANCE, UNHEARD, Findings
from sim.transcripts.messages import RecordedSubmission, TrialMessages
from sim.transcripts.methods import short
from sim.transcripts.sides import KnownCall


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
