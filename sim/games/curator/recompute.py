"""What both parties report of a trial of the game of the curator, computed again from its messages.

What a cheat answers is what this compliance would answer with the same cards; the verdict follows from what was opened.
"""

from __future__ import annotations

import numpy as np

from compliance.games.audits import report_of
from compliance.games.curator import open_curator
from fairwall.rpc.arrays import from_message
from fairwall.wire.metrics import name_of
from sim.games.curator.outcome import answered_of, commitment_of
from sim.transcripts.findings import BY_DIGEST, UNHEARD, Findings
from sim.transcripts.messages import TrialMessages


def compare(findings: Findings, trial: TrialMessages) -> None:
    """Compare answers, the commitment and its opening with the cards, and what the developer says with what it got."""
    dealt, told = trial.cards.get("ComplianceDeal"), trial.cards.get("CuratorDeal")
    names = ("SubmitAnswers", "SubmitOpening", "SubmitAuditReport")
    handed = [trial.submissions.get(name) for name in names]
    if dealt is None or told is None or any(one is None for one in handed):
        return
    if not trial.is_heard:
        findings.not_checked(UNHEARD)
        return
    batches = list(trial.batches.values())
    stored = all(one is not None and one.is_stored for one in handed)
    if dealt.arrays is None or not stored or any(one.predictions is None or one.answer is None for one in batches):
        findings.not_checked(f"what was answered, and what was reported of it: {BY_DIGEST}")
        return
    findings.reports += 1
    submitted, opened, reported = (one for one in handed if one is not None)
    curator = open_curator(dealt.deal, dealt.arrays)
    place = f"{trial.deal_id}: compliance"
    answers = []
    for one in batches:
        assert one.predictions is not None, "just looked at"
        assert one.answer is not None, "just looked at"
        curator.case.answer(
            "developer", one.request_id, b"", name_of(one.metric), one.predictions.astype(np.uint8), one.epsilon
        )
        answers.append(from_message(one.answer.gaps)[0])
    again = report_of(curator.case)
    findings.same(
        reported.place, f"{place} reports: epsilon_spent", reported.request.epsilon_spent, again.epsilon_spent
    )
    for mine, theirs in zip(again.audits, reported.request.audits, strict=True):
        about = f"{place} reports: {theirs.request_id}"
        for of in ("exact", "released"):
            findings.same(
                reported.place, f"{about} {of}", from_message(getattr(theirs, of)), from_message(getattr(mine, of))
            )
    got = answered_of(submitted.request)
    findings.same(submitted.place, f"{trial.deal_id}: developer reports: answers", got.answers, np.array(answers))
    attributes = from_message(opened.request.attributes)
    findings.same(opened.place, f"{place} opens: attributes", attributes, curator.case.records.protected)
    findings.same(opened.place, f"{place} opens: sample", from_message(opened.request.sample), curator.sample)
    findings.same(opened.place, f"{place} opens: seed", opened.request.seed, curator.seed)
    if told.deal.HasField("commitment"):
        same = commitment_of(told.deal.commitment) == curator.commitment()
        findings.same(opened.place, f"{place} commits: the same as its cards say", True, same)
