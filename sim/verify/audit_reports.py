"""Checks compliance's reports of the batches that it answered: exact gaps and charges.

They follow from the deal and from the predictions that compliance received, or got from the developer's models. Sums
are taken in the order that the protocol fixes, so they are the same bit for bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compliance.answers.audits import AuditCase
from compliance.answers.differencing import Detector
from compliance.games.audits import open_case
from compliance.games.curator import open_curator
from compliance.games.overfit import rounds_of
from compliance.ledger.accountant import FREE, Budget
from compliance.records.metrics import gaps
from compliance.records.people import Records
from fairwall.laws.privacy.amounts import total
from fairwall.learning.sealed import sealed_decisions
from fairwall.rpc.arrays import from_message
from fairwall.wire.metrics import name_of
from fairwall.wire.queries import trained_on
from sim.transcripts.findings import BY_DIGEST, UNHEARD, Findings
from sim.transcripts.messages import RecordedBatch, RecordedSubmission, TrialMessages
from sim.verify.charges import charges


def compare(findings: Findings, trial: TrialMessages) -> None:
    """Compare each batch's exact gaps, answers and cost, in the order of their charges, and the total cost."""
    dealt, report = trial.cards.get("ComplianceDeal"), trial.submissions.get("SubmitAuditReport")
    kind = None if dealt is None else dealt.deal.WhichOneof("cards")
    if dealt is None or kind not in ("audits", "release", "curator"):  # without a test set there are no audits
        return
    if report is None:
        findings.not_checked("what compliance answered in trials that it made no report of")
        return
    if not trial.is_heard:
        findings.not_checked(UNHEARD)
        return
    if dealt.arrays is None or not report.is_stored:
        findings.not_checked(f"what compliance reported: {BY_DIGEST}")
        return
    findings.reports += 1
    deal, arrays = dealt.deal, dealt.arrays
    said: dict[str, list[Any]] = {}
    for audit in report.request.audits:
        said.setdefault(audit.case_id or trial.deal_id, []).append(audit)
    spent = []
    for own, cards in rounds_of(deal, arrays):
        audits = own.audits if kind == "audits" else getattr(own, kind).audits
        opened = open_curator(own, cards).case if kind == "curator" else open_case(own, audits, cards)
        batches = trial.batches if own.deal_id == trial.deal_id else trial.others.get(own.deal_id, {})
        if audits.sealed:
            batches = _sealed(audits.sealed, cards["features"], batches)
        case = _Case(own.deal_id, opened.records, said.pop(own.deal_id, []), batches)
        asked = _compare(findings, report, case, audits.differencing)
        if len(asked) == len(case.audits):
            spent.append(_spent(findings, report, audits, opened, asked))
        else:
            spent.append(None)
    for name in said:
        findings.wrong(report.place, f"{trial.deal_id}: compliance reports of {name}, which is no case")
    if (known := [each for each in spent if each is not None]) == spent:
        place = f"{trial.deal_id}: compliance reports: epsilon_spent"
        findings.same(report.place, place, report.request.epsilon_spent, total(known))
    if kind == "release":
        (groups,) = (place for place, column in enumerate(deal.release.terms.columns) if column.groups)
        protected = arrays["release"].astype(np.uint8)[:, groups]
        trained = Records(np.zeros_like(protected), protected, ())
        name = trained_on(trial.deal_id)
        # The cost is compared with the release, which is paid from the same budget.
        _compare(findings, report, _Case(name, trained, report.request.release_audits, trial.queried), 0)


def _sealed(key: bytes, features: NDArray[Any], batches: Mapping[str, RecordedBatch]) -> dict[str, RecordedBatch]:
    """Return the batches with the recomputed predictions of sealed models, which no message contains."""
    rows = features.astype(np.float64)
    return {
        name: replace(batch, predictions=sealed_decisions(key, rows, batch.models).astype(np.float64))
        for name, batch in batches.items()
    }


@dataclass(frozen=True, eq=False)
class _Case:
    """The audited records of a case, compliance's reports on it, and the batches requested."""

    name: str
    records: Records
    audits: Sequence[Any]
    batches: Mapping[str, RecordedBatch]


def _compare(
    findings: Findings, report: RecordedSubmission, case: _Case, differencing: int
) -> list[tuple[Any, RecordedBatch]]:
    """Compare the reports on a case's batches, except for the total cost; return those of known requests."""
    _gaps(findings, report, case, differencing)
    _listed(findings, report, case)
    asked = [(audit, case.batches[audit.request_id]) for audit in case.audits if audit.request_id in case.batches]
    _order(findings, report, case, [batch for _, batch in asked])
    return asked


def _gaps(findings: Findings, report: RecordedSubmission, case: _Case, differencing: int) -> None:
    """Compare each batch's metric, gaps, charge, and number of flagged models."""
    where = report.place
    records = case.records
    detector: Detector | None = Detector(differencing)
    for audit in case.audits:
        place = f"{case.name}: compliance reports of {audit.request_id}"
        batch = case.batches.get(audit.request_id)
        if batch is None:
            findings.wrong(where, f"{place}, which nobody asked")
            continue
        metric = name_of(batch.metric)
        findings.same(where, f"{place}: metric", name_of(audit.metric), metric)
        if batch.answer is not None:
            findings.same(where, f"{place}: released", from_message(audit.released), from_message(batch.answer.gaps))
            findings.same(where, f"{place}: epsilon", audit.epsilon, batch.answer.epsilon_charged)
        else:
            findings.not_checked("answers and costs of batches whose answer was not given, or is not stored")
        if batch.predictions is None:
            findings.not_checked(
                f"exact gaps of batches whose predictions are not there: {BY_DIGEST}, or the call was cut"
            )
            detector = None  # later models are compared with these, too
            continue
        exact = gaps(metric, records.group_sums(metric, batch.predictions))
        findings.same(where, f"{place}: exact", from_message(audit.exact), exact)
        if detector is not None:
            detector.watch(batch.request_id, batch.predictions)
            findings.same(where, f"{place}: flagged", audit.flagged, detector.flagged.get(batch.request_id, 0))


def _listed(findings: Findings, report: RecordedSubmission, case: _Case) -> None:
    """Check that each answered batch is reported once."""
    said = Counter(audit.request_id for audit in case.audits)
    for request_id, times in said.items():
        if times > 1:
            findings.wrong(report.place, f"{case.name}: compliance reports {request_id} {times} times")
    for request_id, batch in case.batches.items():
        if batch.is_answered and request_id not in said:
            text = f"{case.name}: compliance does not report {request_id}, which it answered"
            findings.wrong(report.place, text)


def _order(findings: Findings, report: RecordedSubmission, case: _Case, batches: Iterable[RecordedBatch]) -> None:
    """Check that batches are in the order of charges: a request after another's answer is charged later."""
    latest = -1
    for batch in batches:
        if batch.answered < latest:
            text = f"{case.name}: compliance reports {batch.request_id} after one that was asked later"
            findings.wrong(report.place, text)
        latest = max(latest, batch.asked)


def _spent(
    findings: Findings,
    report: RecordedSubmission,
    dealt: Any,
    case: AuditCase,
    batches: Sequence[tuple[Any, RecordedBatch]],
) -> float | None:
    """Recompute each batch's cost, check the budget, and return the total cost; None if it is unknown."""
    place = f"{case.dataset}: compliance reports"
    budget = Budget(dealt.epsilon, dealt.delta)
    losses: Counter[Any] = Counter()
    told = charges(case, ((batch, audit.epsilon) for audit, batch in batches))
    for (audit, batch), loss in zip(batches, told, strict=True):
        if loss is None:
            findings.not_checked(f"what batches cost that bought ones may answer: {BY_DIGEST}, or the call was cut")
            return None
        findings.same(report.place, f"{place} of {batch.request_id}: epsilon", audit.epsilon, loss.epsilon)
        if not budget.affords(losses, loss):
            text = f"{place} {batch.request_id}, which was more than was left of the budget of {dealt.epsilon!r}"
            findings.wrong(report.place, text)
        if loss != FREE:
            losses[loss] += 1
    return budget.spent(losses)
