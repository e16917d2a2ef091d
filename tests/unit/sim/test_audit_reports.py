"""What compliance reports of its batches follows from the messages of the trial, or is named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from compliance.records.metrics import gaps
from compliance.records.people import Records
from fairwall.compliance.v1.audit_service_pb2 import AuditResponse
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.rpc.arrays import header_of, to_message
from fairwall.wire.v1 import metric_pb2
from sim.transcripts.findings import Findings
from sim.transcripts.messages import Cards, RecordedBatch, RecordedSubmission, TrialMessages
from sim.verify.audit_reports import compare

RNG = np.random.default_rng(4)
LABELS, PROTECTED = RNG.integers(0, 2, (2, 40), np.uint8)
PREDICTIONS = RNG.random((2, 40))
RELEASED = RNG.integers(0, 2, (40, 2), np.uint8)
"""Of the people to train on; their groups are the second column."""


class Sold(NamedTuple):
    """A batch: for how much it was asked, the entries in which it was asked and answered, and what it was charged."""

    epsilon: float
    asked: int
    answered: int
    charged: float


def batch(name: str, sold: Sold) -> RecordedBatch:
    answer = AuditResponse(gaps=to_message(np.array([0.25, 0.5])), epsilon_charged=sold.charged)
    return RecordedBatch(
        name, metric_pb2.METRIC_SP, float(sold.epsilon), 2, PREDICTIONS, answer, True, sold.asked, sold.answered
    )


def record(name: str, charged: float, protected: Any) -> Any:
    sums = Records(np.zeros_like(protected), protected, ()).group_sums("sp", PREDICTIONS)
    exact, released = to_message(gaps("sp", sums)), to_message(np.array([0.25, 0.5]))
    return game.AuditRecord(
        request_id=name, metric=metric_pb2.METRIC_SP, exact=exact, released=released, epsilon=charged
    )


def trial(mechanism: str, batches: Sequence[Sold], queried: Sequence[Sold] = ()) -> TrialMessages:
    """Play a trial honestly, but for what batches are charged, in the order of their charges."""
    audits = game.AuditCards(mechanism=mechanism, epsilon=20.0, labels=header_of(LABELS), bounding="none")
    deal = game.ComplianceDeal(deal_id="deal-1", audits=audits)
    if queried:
        terms = game.ReleaseTerms(columns=[game.SensitiveColumn(), game.SensitiveColumn(groups=True)])
        deal.release.CopyFrom(game.ReleaseCards(audits=audits, terms=terms))
    report = game.SubmitAuditReportRequest(
        audits=[record(f"metric-{n}", sold.charged, PROTECTED) for n, sold in enumerate(batches)],
        epsilon_spent=sum(sold.charged for sold in batches),
        release_audits=[record(f"metric-{n}", sold.charged, RELEASED[:, 1]) for n, sold in enumerate(queried)],
    )
    return TrialMessages(
        "deal-1",
        cards={"ComplianceDeal": Cards(deal, {"labels": LABELS, "protected": PROTECTED, "release": RELEASED})},
        submissions={"SubmitAuditReport": RecordedSubmission("entry 9", report, True)},
        batches={f"metric-{n}": batch(f"metric-{n}", sold) for n, sold in enumerate(batches)},
        others={"deal-1/trained": {f"metric-{n}": batch(f"metric-{n}", sold) for n, sold in enumerate(queried)}},
        is_heard=True,
    )


def found(trial: TrialMessages) -> list[str]:
    findings = Findings()
    compare(findings, trial)
    assert (findings.unchecked, findings.reports) == ({}, 1)
    assert {where for where, _ in findings.contradictions} <= {"entry 9"}
    return [text.removeprefix("deal-1: compliance reports") for _, text in findings.contradictions]


BOUGHT, CELLS = "randomized-response", "cells"
WELL = {
    "each has its price": ("laplace", [Sold(5, 1, 2, 5), Sold(15, 3, 4, 15)]),
    "under way at once": ("laplace", [Sold(5, 3, 4, 5), Sold(5, 1, 4, 5), Sold(5, 2, 5, 5)]),
    "bought once": (BOUGHT, [Sold(5, 1, 2, 5), Sold(5, 3, 4, 0), Sold(9, 5, 6, 9), Sold(7, 7, 8, 0)]),
    "bought twice at once": (BOUGHT, [Sold(5, 1, 4, 5), Sold(5, 2, 3, 5)]),
    "bought by what was asked before": (BOUGHT, [Sold(5, 1, 4, 5), Sold(5, 2, 3, 0)]),
    "asked with the answer": (BOUGHT, [Sold(5, 1, 2, 5), Sold(5, 2, 3, 5)]),
    "cells, bought once": (CELLS, [Sold(5, 1, 2, 5), Sold(5, 3, 4, 0), Sold(9, 5, 6, 9), Sold(7, 7, 8, 0)]),
    "cells, bought twice at once": (CELLS, [Sold(5, 1, 4, 5), Sold(5, 2, 3, 5)]),
}


def test_what_an_honest_compliance_charges_is_well() -> None:
    for name in WELL:
        assert found(trial(*WELL[name])) == []


def test_a_charge_other_than_the_price_is_named() -> None:
    for mechanism, batches, text in [
        ("laplace", [Sold(5, 1, 2, 4)], " of metric-0: epsilon is 4.0, recomputed 5.0"),
        (BOUGHT, [Sold(5, 1, 2, 0)], " of metric-0: epsilon is 0.0, recomputed 5.0"),
        (BOUGHT, [Sold(5, 1, 2, 5), Sold(6, 3, 4, 0)], " of metric-1: epsilon is 0.0, recomputed 6.0"),
        (BOUGHT, [Sold(5, 1, 2, 5), Sold(5, 3, 4, 5)], " of metric-1: epsilon is 5.0, recomputed 0.0"),
        (CELLS, [Sold(5, 1, 2, 0)], " of metric-0: epsilon is 0.0, recomputed 5.0"),
        (CELLS, [Sold(5, 1, 2, 5), Sold(6, 3, 4, 0)], " of metric-1: epsilon is 0.0, recomputed 6.0"),
        (CELLS, [Sold(5, 1, 2, 5), Sold(5, 3, 4, 5)], " of metric-1: epsilon is 5.0, recomputed 0.0"),
        # The second was bought while the first was under way, the third after the second.
        (
            BOUGHT,
            [Sold(5, 1, 9, 5), Sold(5, 2, 3, 5), Sold(5, 4, 5, 5)],
            " of metric-2: epsilon is 5.0, recomputed 0.0",
        ),
        (
            "laplace",
            [Sold(15, 1, 2, 15), Sold(5.5, 3, 4, 5.5)],
            " metric-1, which was more than was left of the budget of 20.0",
        ),
        ("laplace", [Sold(5, 3, 4, 5), Sold(5, 1, 2, 5)], " metric-1 after one that was asked later"),
        # Not after the last one alone.
        ("laplace", [Sold(5, 4, 9, 5), Sold(5, 2, 9, 5), Sold(5, 1, 3, 5)], " metric-2 after one that was asked later"),
    ]:
        assert text in found(trial(mechanism, batches))


def test_what_all_charges_come_to_is_compared() -> None:
    played = trial("laplace", [Sold(5, 1, 2, 5), Sold(5, 3, 4, 5)])
    played.submissions["SubmitAuditReport"].request.epsilon_spent = 5
    assert found(played) == [": epsilon_spent is 5.0, recomputed 10.0"]


def test_batches_about_the_people_to_train_on_are_compared_too() -> None:
    played = trial("laplace", [Sold(5, 1, 2, 5)], queried=[Sold(2, 3, 4, 2)])
    assert found(played) == []
    report = played.submissions["SubmitAuditReport"].request
    report.release_audits[0].epsilon = 1
    report.release_audits[0].exact.CopyFrom(report.audits[0].exact)
    assert {text.partition(" is ")[0].removesuffix("[1]").removesuffix("[0]") for text in found(played)} == {
        "deal-1/trained: compliance reports of metric-0: epsilon",
        "deal-1/trained: compliance reports of metric-0: exact",
    }
    del report.release_audits[:]
    assert found(played) == ["deal-1/trained: compliance does not report metric-0, which it answered"]
