"""A recorded trial of the disclosure game: its messages in words, and what the parties claim recomputed from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from compliance.answers.studies import Study
from compliance.games.disclosure import open_study
from compliance.ledger.accountant import Budget
from developer.disclosure import MODES, believe
from fairwall.arrays import Floats
from fairwall.laws.studies.disclosure import PRIOR
from fairwall.rpc.arrays import gathered
from sim.games.disclosure.trial import belief_of
from sim.transcripts.captions import Caption, Parts, Story, count, dealt, number
from sim.transcripts.findings import BY_DIGEST, TOLERANCE, UNHEARD, Findings
from sim.transcripts.messages import TrialMessages
from sim.transcripts.methods import short


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


def compare(findings: Findings, trial: TrialMessages) -> None:
    """Compare tables with the study and the seed, and the parties' reports with the values recomputed from them."""
    dealt, told = trial.cards.get("ComplianceDeal"), trial.cards.get("DisclosureDeal")
    believed, reported = trial.submissions.get("SubmitPosterior"), trial.submissions.get("SubmitAuditReport")
    if dealt is None or told is None or believed is None or reported is None:
        return
    if not trial.is_heard:
        findings.not_checked(UNHEARD)
        return
    if dealt.arrays is None or not all(one.is_stored for one in trial.releases):
        findings.not_checked(f"what was released, and what was reported of it: {BY_DIGEST}")
        return
    findings.reports += 1
    study = open_study(dealt.deal, dealt.arrays)
    table, spent = _released(findings, trial, study, dealt.deal.study.terms.epsilon)
    place = f"{trial.deal_id}: compliance reports: epsilon_spent"
    findings.same(reported.place, place, reported.request.epsilon_spent, spent)
    if table is None:
        findings.wrong(believed.place, f"{trial.deal_id}: developer reports what it asked nobody about")
    else:
        _believed(findings, trial, told.deal, table)


def _released(findings: Findings, trial: TrialMessages, study: Study, epsilon: float) -> tuple[Floats | None, float]:
    """Compare tables with the study and its seed; return the first table, if any, and the epsilon spent on all."""
    first = None
    losses = {}
    for one in trial.releases:
        if short(one.method) != "Tabulate":
            continue
        (asked,) = one.requests
        header, *parts = one.answers
        table = gathered(header.header.table, (part.table_chunk for part in parts)).astype(np.float64)
        again = study.tabulated(asked.request_id, asked.epsilon)
        findings.same(one.place, f"{trial.deal_id}: compliance releases {asked.request_id}", table, again)
        losses[asked.request_id] = study.loss(asked.epsilon)
        first = table if first is None else first
    return first, Budget(epsilon).spent(Counter(losses.values()))


def _believed(findings: Findings, trial: TrialMessages, deal: Any, table: Floats) -> None:
    submitted = trial.submissions["SubmitPosterior"]
    place, request = f"{trial.deal_id}: developer reports", submitted.request
    again = believe(deal, table)
    near = again.posterior - TOLERANCE, again.posterior + TOLERANCE
    findings.between(submitted.place, f"{place}: posterior", request.posterior, *near)
    findings.same(submitted.place, f"{place}: guess", request.guess, request.posterior >= PRIOR)
    findings.same(submitted.place, f"{place}: record", belief_of(request).record, again.record)
    findings.same(submitted.place, f"{place}: candidates", request.candidates, again.candidates)
