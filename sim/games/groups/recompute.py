"""Recomputation of the parties' reports in a trial of the game of groups from its messages."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from compliance.answers.groups import GroupCase, released
from compliance.games.groups import open_groups
from compliance.ledger.accountant import Budget
from compliance.noise.sampling import noise_for
from developer.groups.decode import decode
from fairwall.compliance.v1.group_service_pb2 import GroupRelease
from fairwall.rpc.arrays import from_message, gathered
from sim.transcripts.findings import BY_DIGEST, UNHEARD, Findings
from sim.transcripts.messages import TrialMessages
from sim.transcripts.methods import short


def compare(findings: Findings, trial: TrialMessages) -> None:
    """Compare counts with the groups and the seed, and the parties' reports with the values recomputed from them."""
    dealt, told = trial.cards.get("ComplianceDeal"), trial.cards.get("GroupDeal")
    guessed, reported = trial.submissions.get("SubmitGroups"), trial.submissions.get("SubmitAuditReport")
    if dealt is None or told is None or guessed is None or reported is None:
        return
    if not trial.is_heard:
        findings.not_checked(UNHEARD)
        return
    if dealt.arrays is None or not guessed.is_stored or not all(one.is_stored for one in trial.releases):
        findings.not_checked(f"what was released, and what was reported of it: {BY_DIGEST}")
        return
    findings.reports += 1
    asked, spent = _released(findings, trial, open_groups(dealt.deal, dealt.arrays), dealt.deal.groups.epsilon)
    place = f"{trial.deal_id}: compliance reports: epsilon_spent"
    findings.same(reported.place, place, reported.request.epsilon_spent, spent)
    if not asked:
        findings.wrong(guessed.place, f"{trial.deal_id}: developer reports what it asked nobody about")
        return
    guess, again = from_message(guessed.request.guess), decode(asked, np.array(told.deal.shares))
    findings.same(guessed.place, f"{trial.deal_id}: developer reports: guess", guess, again)


def _released(
    findings: Findings, trial: TrialMessages, grouped: GroupCase, epsilon: float
) -> tuple[list[tuple[NDArray[np.float64], GroupRelease]], float]:
    """Compare counts with the groups and their seed; return the requests with their answers, and the epsilon spent."""
    asked: dict[str, tuple[NDArray[np.float64], GroupRelease]] = {}
    losses = {}
    for one in trial.releases:
        if short(one.method) != "ByGroup":
            continue
        first, *parts = one.requests
        header = first.header
        decisions = gathered(header.predictions, (part.predictions_chunk for part in parts)).astype(np.float64)
        release = one.answers[0].release
        again = released(grouped.people, header, decisions, noise_for(grouped.case.seed, header.request_id))
        place = f"{trial.deal_id}: compliance releases {header.request_id}"
        mine_of, theirs_of = ([*each.tables, *each.rows] for each in (again, release))
        for mine, theirs in zip(mine_of, theirs_of, strict=True):
            findings.same(one.place, place, from_message(theirs.counts), from_message(mine.counts))
        losses[header.request_id] = grouped.loss(header.epsilon)
        asked.setdefault(header.request_id, (decisions, release))
    return list(asked.values()), Budget(epsilon).spent(Counter(losses.values()))
