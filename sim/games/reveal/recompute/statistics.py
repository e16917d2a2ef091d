"""Recomputation of the developer's figures about its models in the reveal game, training the base model if needed."""

from __future__ import annotations

import numpy as np

from developer.reveal.base_model import accuracy
from fairwall.rpc.arrays import from_message
from fairwall.wire.queries import size_queries
from sim.games.reveal.recompute.base_model import BaseModel
from sim.transcripts.findings import BY_DIGEST, UNHEARD, Findings
from sim.transcripts.messages import TrialMessages


def compare(findings: Findings, trial: TrialMessages, base: BaseModel) -> None:
    """Compare the number of queries, the models' accuracies, and their distance from the base model."""
    dealt, submitted = trial.cards.get("DeveloperDeal"), trial.submissions.get("SubmitReveal")
    if dealt is None or submitted is None:
        return
    if not trial.is_heard:
        findings.not_checked(UNHEARD)
        return
    where, request, place = submitted.place, submitted.request, f"{trial.deal_id}: developer reports"
    findings.reports += 1
    batches = sorted((one for one in trial.batches.values() if one.is_answered), key=lambda one: one.asked)
    asked = sum(batch.models for batch in batches)
    try:
        sizes = [size_queries(batch.request_id, batch.models) for batch in batches]
    except ValueError as error:
        findings.wrong(where, f"{place}: {error}")
        return
    findings.same(where, f"{place}: queries", request.queries, asked - sum(sizes))
    findings.same(where, f"{place}: size_queries", request.size_queries, sum(sizes))
    predictions = [batch.predictions for batch in batches if batch.predictions is not None]
    if dealt.arrays is None or not submitted.is_stored or len(predictions) < len(batches):
        findings.not_checked(f"what the developer reported of its models: {BY_DIGEST}")
        return
    if not predictions:
        return
    rows = np.concatenate(predictions)
    metric_rows = np.concatenate([batch[count:] for batch, count in zip(predictions, sizes, strict=True)])
    if request.HasField("accuracy_models"):
        reported = from_message(request.accuracy_models).astype(np.float64)
        findings.same(where, f"{place}: accuracy_models", reported, accuracy(metric_rows, dealt.arrays["labels"]))
    known = base.scores(dealt, rows)
    if known is None:
        findings.not_checked("accuracy_base, max_prediction_change: the base model's training table is not stored")
        return
    scores, slack = known
    if request.HasField("accuracy_base"):
        share = float(accuracy(scores, dealt.arrays["labels"]))
        # A score close to 1/2 may be decided differently on another processor.
        unsure = float(np.mean(np.abs(scores - 0.5) <= slack)) if slack else 0.0
        findings.between(where, f"{place}: accuracy_base", request.accuracy_base, share - unsure, share + unsure)
    change = float(np.abs(metric_rows - scores).max(initial=0.0))
    what = f"{place}: max_prediction_change"
    findings.between(where, what, request.max_prediction_change, change - slack, change + slack)
