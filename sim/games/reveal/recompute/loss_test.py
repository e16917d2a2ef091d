"""Recomputation of the adversary's loss test from the answers it got."""

from __future__ import annotations

import numpy as np

from adversary.attacks.loss_test import loss_test
from sim.transcripts.findings import BY_DIGEST, Findings
from sim.transcripts.messages import TrialMessages


def compare(findings: Findings, trial: TrialMessages) -> None:
    """Compare the adversary's accuracies on both groups."""
    dealt, submitted = trial.cards.get("AdversaryDeal"), trial.submissions.get("SubmitLossTest")
    if dealt is None or submitted is None:
        return
    cards, scores = dealt.arrays, None
    for served in trial.served:
        if cards and served.features is not None and np.array_equal(served.features, cards["features"]):
            scores = served.scores
    if cards is None or scores is None:
        findings.not_checked(f"the adversary's loss test: {BY_DIGEST}, or it asked about other rows")
        return
    findings.reports += 1
    features, labels = cards["features"].astype(np.float64), cards["labels"].astype(np.uint8)
    again = loss_test(lambda _: scores, features, labels, dealt.deal.disadvantaged_rows)
    for name in ("accuracy_advantaged", "accuracy_disadvantaged"):
        what = f"{trial.deal_id}: adversary reports: {name}"
        findings.same(submitted.place, what, getattr(submitted.request, name), getattr(again, name))
