"""What the developer reports of its models in the reveal game.

It follows from the same predictions as compliance's gaps, and from the base model, which is trained again where no
message has its scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from developer.base_model import accuracy
from fairwall.laws.metric import find_metric
from fairwall.rpc.arrays import from_message
from fairwall.wire.metrics import name_of
from sim.games.reveal.recompute.base_model import BaseModel
from sim.transcripts.findings import BY_DIGEST, UNHEARD, Findings
from sim.transcripts.messages import TrialMessages


def compare(findings: Findings, trial: TrialMessages, base: BaseModel) -> None:
    """Compare how many queries there were, how right the models are, and how far they are from the base model."""
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
    findings.same(where, f"{place}: queries + size_queries", request.queries + request.size_queries, asked)
    predictions = [batch.predictions for batch in batches if batch.predictions is not None]
    if dealt.arrays is None or not submitted.is_stored or len(predictions) < len(batches):
        findings.not_checked(f"what the developer reported of its models: {BY_DIGEST}")
        return
    if not predictions:
        return
    rows = np.concatenate(predictions)
    looks = 0 if dealt.deal.HasField("features") else 1
    surely, maybe = _metric_rows(name_of(dealt.deal.metric), predictions, looks, request.size_queries)
    if request.HasField("accuracy_models"):
        shares = accuracy(rows, dealt.arrays["labels"])
        reported = from_message(request.accuracy_models).astype(np.float64)
        if surely.sum() == maybe.sum():
            findings.same(where, f"{place}: accuracy_models", reported, shares[surely])
        elif not _is_within(reported, shares[maybe]):
            findings.wrong(where, f"{place}: accuracy_models are not those of the models that were asked about")
    known = base.scores(dealt, rows)
    if known is None:
        findings.not_checked("accuracy_base, max_prediction_change: the base model's training table is not stored")
        return
    scores, slack = known
    if request.HasField("accuracy_base"):
        share = float(accuracy(scores, dealt.arrays["labels"]))
        # Whether a score of just about 1/2 is a yes, another processor may decide otherwise.
        unsure = float(np.mean(np.abs(scores - 0.5) <= slack)) if slack else 0.0
        findings.between(where, f"{place}: accuracy_base", request.accuracy_base, share - unsure, share + unsure)
    changes = np.abs(rows - scores).max(axis=1)
    least, most = (float(changes[some].max(initial=0.0)) for some in (surely, maybe))
    what = f"{place}: max_prediction_change"
    findings.between(where, what, request.max_prediction_change, least - slack, most + slack)


def _metric_rows(
    metric: str, batches: Sequence[NDArray[np.float64]], looks: int, size_queries: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell size queries, and what was asked to see the rows, from the others: which surely are, and which may be.

    Size queries come first. Where a metric has two strata each has its own, asked alone before those of its stratum.
    """
    models = [len(batch) for batch in batches]
    numbers = np.arange(sum(models))
    if len(find_metric(metric).strata) == 1 or not size_queries:
        surely = numbers >= looks + size_queries
        return surely, surely
    maybe = numbers >= looks
    return maybe & np.repeat(np.array(models) > 1, models), maybe


def _is_within(some: NDArray[np.float64], values: NDArray[np.float64]) -> bool:
    """Whether leaving some of the values out can give others, in their order."""
    left = iter(values.tolist())
    return all(value in left for value in some.tolist())
