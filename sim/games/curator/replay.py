"""A recorded trial of the curator game: its messages in words, and what the parties claim recomputed from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from compliance.answers.audits import values_of
from compliance.games.curator import open_curator
from fairwall.game.v1 import curator_service_pb2 as wire
from fairwall.rpc.arrays import from_message
from fairwall.wire.metrics import name_of
from sim.games.curator.deal import CuratorDeal
from sim.games.curator.regulator import judge
from sim.games.curator.trial import CuratorOutcome, commitment_of
from sim.transcripts.captions import Caption, Parts, Story, count, dealt, number
from sim.transcripts.findings import BY_DIGEST, Findings
from sim.transcripts.messages import TrialMessages


def captions() -> Mapping[str, Caption]:
    """Return the captions by message."""
    return {
        "ReleaseCommitmentRequest": lambda _story, message, _: (
            f"I am bound to {count(message.commitment.rows, 'row')} and to my noise by root "
            f"{message.commitment.root.hex()[:8]}…"
        ),
        "TakeCuratorDealResponse": _take_curator_deal_response,
        "SubmitAnswersRequest": lambda _story, message, _: (
            f"what I asked, and the {count(len(message.request_ids), 'answer')} that I got"
        ),
        "SubmitAnswersResponse": lambda _story, message, _: f"verdict: {_TOLD[message.verdict]}",
        "SubmitOpeningRequest": lambda _story, message, _: (
            f"the attributes of {count(message.attributes.header.shape[0], 'row')}, my salts and my seed"
        ),
    }


_TOLD = ("none yet", "compliance did as it promised", "compliance cheated")
"""Indexed by the number of the verdict."""


@dealt
def _take_curator_deal_response(story: Story, deal: Any, _: Parts) -> str:
    story.begin()
    by = f"bound by root {deal.commitment.root.hex()[:8]}…" if deal.HasField("commitment") else "not bound"
    return f"{deal.deal_id}: {count(deal.requests, 'request')} at epsilon {number(deal.epsilon)}; compliance is {by}"


def told(findings: Findings, trial: TrialMessages, dealt: CuratorDeal, outcome: CuratorOutcome) -> None:
    """Compare the verdict that the developer was told with the regulator's."""
    submitted = trial.submissions["SubmitAnswers"]
    accused = judge(dealt, outcome.answered, outcome.commitment, outcome.opening).accused
    said = submitted.answer.verdict == wire.VERDICT_ACCUSED
    findings.same(submitted.place, f"{trial.deal_id}: the regulator tells: accused", said, accused)


def compare(findings: Findings, trial: TrialMessages) -> None:
    """Compare answers, commitment and opening with the cards, and the developer's report with the answers it got.

    A cheat's expected answers are those of this compliance code with the same cards. Compliance's report of audits is
    compared as in any game that audits a test set, by `sim.verify.audit_reports`.
    """
    dealt, told = trial.cards.get("ComplianceDeal"), trial.cards.get("CuratorDeal")
    submitted, opened = (trial.submissions.get(name) for name in ("SubmitAnswers", "SubmitOpening"))
    if dealt is None or told is None or submitted is None or opened is None or not trial.is_heard:
        return
    batches, place = trial.batches.values(), f"{trial.deal_id}: compliance"
    stored = dealt.arrays is not None and submitted.is_stored and opened.is_stored
    if not stored or any(one.predictions is None or one.answer is None for one in batches):
        findings.not_checked(f"what was answered and opened: {BY_DIGEST}")
        return
    findings.reports += 1
    curator, given = open_curator(dealt.deal, dealt.arrays or {}), np.empty(0)
    for one in batches:
        asked: Any = np.asarray(one.predictions, np.uint8)
        again = curator.case.answer("developer", one.request_id, b"", name_of(one.metric), asked, one.epsilon)
        assert one.answer is not None, "just looked at"
        given = np.append(given, from_message(one.answer.gaps))
        findings.same(opened.place, f"{place} answers {one.request_id}", given[-1], values_of(again)[0])
    answers = from_message(submitted.request.answers)
    findings.same(submitted.place, f"{trial.deal_id}: developer reports: answers", answers, given)
    for name, value in (("attributes", curator.case.records.protected), ("sample", curator.sample)):
        findings.same(opened.place, f"{place} opens: {name}", from_message(getattr(opened.request, name)), value)
    findings.same(opened.place, f"{place} opens: seed", opened.request.seed, curator.seed)
    if told.deal.HasField("commitment"):
        same = commitment_of(told.deal.commitment) == curator.commitment()
        findings.same(opened.place, f"{place} commits: the same as its cards say", True, same)
