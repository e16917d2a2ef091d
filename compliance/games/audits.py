"""The reveal game, and the inference game: audits of a test set."""

from __future__ import annotations

import logging

import numpy as np

from compliance.answers.accounts import Accounts
from compliance.answers.audits import AuditCase, game_case, values_of
from compliance.answers.black_box import ModelScores, QueriedModels
from compliance.answers.exposure import limited
from compliance.games.trial import Around, Cards, OpenTrial, seed_of
from compliance.ledger.accountant import Budget
from compliance.mechanisms import find_mechanism
from compliance.mechanisms.noise_on_gaps import bounded
from compliance.noise.draw_log import DrawLog
from compliance.records.people import Records
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.laws.privacy.exposure import Limit
from fairwall.rpc.arrays import to_message
from fairwall.wire.metrics import name_of, number_of
from fairwall.wire.numbers import from_message

LOG = logging.getLogger(__name__)


def open_trial(deal: game.ComplianceDeal, cards: Cards, around: Around) -> OpenTrial:
    """Open the audits of a test set; with its features, compliance queries the developer's models itself."""
    models = None
    if "features" in cards:
        models = QueriedModels(around.models, deal.deal_id, cards["features"].astype(np.float64, copy=False))
    case = open_case(deal, deal.audits, cards, models, around.draws)
    return OpenTrial(Accounts(audits={deal.deal_id: case}), lambda: report_of(case))


def open_case(
    deal: game.ComplianceDeal,
    dealt: game.AuditCards,
    cards: Cards,
    models: ModelScores | None = None,
    draws: DrawLog | None = None,
) -> AuditCase:
    """Open the audits of a deal's test set."""
    records = Records(
        labels=cards["labels"].astype(np.uint8, copy=False),
        protected=cards["protected"].astype(np.uint8, copy=False),
        metrics=tuple(name_of(number) for number in dealt.metrics),
    )
    LOG.info("deal %s: %d people, mechanism %s", deal.deal_id, records.people, dealt.mechanism)
    limit = dealt.reveal_max if dealt.HasField("reveal_max") else 1.0
    return game_case(
        deal.deal_id,
        records,
        bounded(limited(find_mechanism(dealt.mechanism), Limit(limit)), dealt.bounding),  # type: ignore[arg-type]  # an unknown one is refused
        Budget(dealt.epsilon, dealt.delta),
        dealt.batch_delta,
        dealt.queries_max,
        seed_of(deal),
        from_message(dealt.precision) or "float64",
        dealt.differencing,
        models,
        draws,
    )


def report_of(case: AuditCase) -> game.SubmitAuditReportRequest:
    """Return the report of what was answered about a test set, and its total cost."""
    return game.SubmitAuditReportRequest(
        deal_id=case.dataset, audits=answered(case), epsilon_spent=case.ledger.standing(case.dataset).spent
    )


def answered(case: AuditCase) -> list[game.AuditRecord]:
    """Return a case's batches, in the order of their charges."""
    assert case.exact is not None, "a game's case keeps them"
    return [
        game.AuditRecord(
            request_id=entry.request.request_id,
            metric=number_of(entry.request.metric),
            exact=to_message(case.exact[entry.request.request_id]),
            released=to_message(values_of(entry)),
            epsilon=entry.request.loss.epsilon,
            flagged=case.detector.flagged.get(entry.request.request_id, 0),
        )
        for entry in case.ledger.entries(case.dataset)
        # A ledger may also have paid for a release, which is no audit.
        if entry.request.request_id in case.exact
    ]
