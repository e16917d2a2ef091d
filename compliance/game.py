"""Compliance at the referee's table: it takes a deal, opens a case, serves the trial, and reports."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compliance.accountant import Budget
from compliance.black_box import Models
from compliance.bounding import bounded
from compliance.case import Case, game_case, values_of
from compliance.draws import DrawLog
from compliance.mechanisms import MECHANISMS
from compliance.records import Records
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceStub
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceStub
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import Seat, deals
from fairwall.wire.metrics import name_of, number_of
from fairwall.wire.precision import from_message

LOG = logging.getLogger(__name__)


def play(seat: Seat, cases: MutableMapping[str, Case]) -> None:
    """Serve every trial of a run, whatever the game.

    Parameters
    ----------
    seat : Seat
        The log of the operating system's noise is kept beside its recorder's transcript.
    cases : mutable mapping of str to Case
        Where the open case stands while its trial lasts; AuditService answers from it.
    """
    referee = RefereeServiceStub(seat.referee)
    draws = DrawLog(seat.recorder.path.with_suffix(".draws.jsonl")) if seat.recorder is not None else None
    takes = deals(
        lambda last: referee.TakeComplianceDeal(
            game.TakeComplianceDealRequest(after_deal_id=last), timeout=CALL_SECONDS
        )
    )
    # Nothing is sent before the first model is asked.
    with seat.reach("developer") as connection:
        models = ModelServiceStub(connection)
        for deal, cards in takes:
            case = _open(deal, cards, models, draws)
            cases[deal.deal_id] = case
            LOG.info("deal %s: %d people, mechanism %s", deal.deal_id, case.records.people, case.mechanism.name)
            while not referee.ServeTrial(game.ServeTrialRequest(deal_id=deal.deal_id), timeout=CALL_SECONDS).ended:
                pass
            del cases[deal.deal_id]
            referee.SubmitAuditReport(_report(deal.deal_id, case), timeout=CALL_SECONDS)


def _open(
    deal: game.ComplianceDeal, cards: dict[str, NDArray[Any]], models: ModelServiceStub, draws: DrawLog | None
) -> Case:
    records = Records(
        labels=cards["labels"].astype(np.uint8, copy=False),
        protected=cards["protected"].astype(np.uint8, copy=False),
        metrics=tuple(name_of(number) for number in deal.metrics),
    )
    return game_case(
        deal.deal_id,
        records,
        bounded(MECHANISMS[deal.mechanism], deal.bounding),  # type: ignore[arg-type]  # an unknown one is refused
        Budget(deal.epsilon, deal.delta),
        deal.batch_delta,
        deal.queries_max,
        deal.seed if deal.noise_seeded else None,
        from_message(deal.precision) or "float64",
        deal.differencing,
        Models(models, deal.deal_id, cards["features"].astype(np.float64, copy=False)) if "features" in cards else None,
        draws,
    )


def _report(deal_id: str, case: Case) -> game.SubmitAuditReportRequest:
    assert case.exact is not None, "a game's case keeps them"
    return game.SubmitAuditReportRequest(
        deal_id=deal_id,
        audits=[
            game.AuditRecord(
                request_id=entry.request.request_id,
                metric=number_of(entry.request.metric),
                exact=to_message(case.exact[entry.request.request_id]),
                released=to_message(values_of(entry)),
                epsilon=entry.request.loss.epsilon,
                flagged=case.detector.flagged.get(entry.request.request_id, 0),
            )
            for entry in case.ledger.entries(deal_id)
        ],
        epsilon_spent=case.ledger.standing(deal_id).spent,
    )
