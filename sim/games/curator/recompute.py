"""What the parties report of a trial of the game of the curator, computed again from its messages, and the verdict.

What a cheat answers is what this compliance would answer with the same cards; the verdict follows from what was opened.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compliance.games.audits import report_of
from compliance.games.curator import open_curator
from fairwall.game.v1 import curator_service_pb2 as wire
from fairwall.rpc.arrays import from_message
from fairwall.wire.metrics import name_of
from sim.games.curator.deal import CuratorDeal
from sim.games.curator.outcome import CuratorOutcome, commitment_of
from sim.games.curator.regulator import judge
from sim.transcripts.findings import BY_DIGEST, UNHEARD, Findings
from sim.transcripts.messages import TrialMessages


def told(findings: Findings, trial: TrialMessages, dealt: CuratorDeal, outcome: CuratorOutcome) -> None:
    """Compare the verdict that the developer was told with the regulator's."""
    submitted = trial.submissions["SubmitAnswers"]
    said, again = submitted.answer.verdict, judge(dealt, outcome.answered, outcome.commitment, outcome.opening).told
    names = [wire.Verdict.Name(verdict) for verdict in (said, again)]
    findings.same(submitted.place, f"{trial.deal_id}: the regulator tells: verdict", *names)


def compare(findings: Findings, trial: TrialMessages) -> None:
    """Compare answers, the commitment and its opening with the cards, and what the developer says with what it got."""
    dealt, told = trial.cards.get("ComplianceDeal"), trial.cards.get("CuratorDeal")
    submitted, opened, reported = map(trial.submissions.get, ("SubmitAnswers", "SubmitOpening", "SubmitAuditReport"))
    if dealt is None or told is None or submitted is None or opened is None or reported is None:
        return
    if not trial.is_heard:
        findings.not_checked(UNHEARD)
        return
    stored = dealt.arrays is not None and all(one.is_stored for one in (submitted, opened, reported))
    if not stored or any(one.predictions is None or one.answer is None for one in trial.batches.values()):
        findings.not_checked(f"what was answered, and what was reported of it: {BY_DIGEST}")
        return
    findings.reports += 1
    curator = open_curator(dealt.deal, dealt.arrays or {})
    for one in trial.batches.values():
        predictions: Any = np.asarray(one.predictions, np.uint8)
        curator.case.answer("developer", one.request_id, b"", name_of(one.metric), predictions, one.epsilon)
    again, place = report_of(curator.case), f"{trial.deal_id}: compliance"
    spent = reported.request.epsilon_spent
    findings.same(reported.place, f"{place} reports: epsilon_spent", spent, again.epsilon_spent)
    for mine, theirs in zip(again.audits, reported.request.audits, strict=True):
        for of in ("exact", "released"):
            values, others = (from_message(getattr(audit, of)) for audit in (theirs, mine))
            findings.same(reported.place, f"{place} reports: {theirs.request_id} {of}", values, others)
    got = np.array([from_message(one.answer.gaps)[0] for one in trial.batches.values() if one.answer is not None])
    answers = from_message(submitted.request.answers)
    findings.same(submitted.place, f"{trial.deal_id}: developer reports: answers", answers, got)
    for name, value in (("attributes", curator.case.records.protected), ("sample", curator.sample)):
        shown = from_message(getattr(opened.request, name))
        findings.same(opened.place, f"{place} opens: {name}", shown, value)
    findings.same(opened.place, f"{place} opens: seed", opened.request.seed, curator.seed)
    if told.deal.HasField("commitment"):
        same = commitment_of(told.deal.commitment) == curator.commitment()
        findings.same(opened.place, f"{place} commits: the same as its cards say", True, same)
