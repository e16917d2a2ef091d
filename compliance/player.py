"""Compliance at the referee's table: it takes a deal, opens a case, serves the trial, and reports."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compliance.case import Case
from compliance.mechanisms import MECHANISMS
from compliance.records import Records
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceStub
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import deals, join
from fairwall.wire.metrics import name_of, number_of

LOG = logging.getLogger(__name__)


def play(referee: RefereeServiceStub, cases: MutableMapping[str, Case]) -> None:
    """Serve every trial of a run.

    Parameters
    ----------
    referee : RefereeServiceStub
    cases : mutable mapping of str to Case
        Where the open case stands while its trial lasts; AuditService answers from it.
    """
    join(referee)
    takes = deals(
        lambda last: referee.TakeComplianceDeal(
            game.TakeComplianceDealRequest(after_deal_id=last), timeout=CALL_SECONDS
        )
    )
    for deal, cards in takes:
        case = _open(deal, cards)
        cases[deal.deal_id] = case
        LOG.info("deal %s: %d people, mechanism %s", deal.deal_id, case.records.people, case.mechanism.name)
        while not referee.ServeTrial(game.ServeTrialRequest(deal_id=deal.deal_id), timeout=CALL_SECONDS).ended:
            pass
        del cases[deal.deal_id]
        referee.SubmitAuditReport(_report(deal.deal_id, case), timeout=CALL_SECONDS)


def _open(deal: game.ComplianceDeal, cards: dict[str, NDArray[Any]]) -> Case:
    return Case(
        records=Records(
            labels=cards["labels"].astype(np.uint8, copy=False),
            protected=cards["protected"].astype(np.uint8, copy=False),
            metrics=tuple(name_of(number) for number in deal.metrics),
        ),
        mechanism=MECHANISMS[deal.mechanism],
        epsilon=deal.epsilon,
        queries_max=deal.queries_max,
        seed=deal.seed if deal.noise_seeded else None,
    )


def _report(deal_id: str, case: Case) -> game.SubmitAuditReportRequest:
    return game.SubmitAuditReportRequest(
        deal_id=deal_id,
        audits=[
            game.AuditRecord(
                request_id=entry.request_id,
                metric=number_of(entry.metric),
                exact=to_message(entry.answers.exact),
                released=to_message(entry.answers.released),
                epsilon=entry.charge,
            )
            for entry in case.account.entries
        ],
        epsilon_spent=case.account.spent,
    )
