"""The game of groups: people are counted by group."""

from __future__ import annotations

import numpy as np

from compliance.answers.accounts import Accounts
from compliance.answers.audits import game_case
from compliance.answers.groups import GroupCase
from compliance.games.trial import Around, Cards, OpenTrial, seed_of
from compliance.ledger.accountant import Budget
from compliance.mechanisms import find_mechanism
from compliance.records.groups import Attribute, Grouped
from compliance.records.people import Records
from fairwall.game.v1 import referee_service_pb2 as game


def open_trial(deal: game.ComplianceDeal, cards: Cards, _around: Around) -> OpenTrial:
    """Open the people who are counted."""
    grouped = open_groups(deal, cards)
    return OpenTrial(
        Accounts(groups={deal.deal_id: grouped}),
        lambda: game.SubmitAuditReportRequest(deal_id=deal.deal_id, epsilon_spent=grouped.spent),
    )


def open_groups(deal: game.ComplianceDeal, cards: Cards) -> GroupCase:
    """Open a deal's groups."""
    dealt, codes = deal.groups, cards["groups"].astype(np.uint8, copy=False)
    nobody = np.zeros(codes.shape[1], np.uint8)
    columns = zip(dealt.names, dealt.sizes, strict=True)
    attributes = tuple(Attribute(name, tuple(map(str, range(size)))) for name, size in columns)
    # No gap is audited: labels and the two groups of an audit are dummies.
    case = game_case(
        deal.deal_id,
        Records.imagined(nobody, nobody, metrics=("sp",)),
        find_mechanism("counts"),
        Budget(dealt.epsilon),
        0.0,
        dealt.queries_max,
        seed_of(deal),
    )
    return GroupCase(case, Grouped(attributes, codes, nobody), least_share=0.0)
