"""The training game: rows of a training set's people are summed by group."""

from __future__ import annotations

import numpy as np

from compliance.answers.accounts import Accounts
from compliance.answers.statistics import Cohort, game_cohort
from compliance.games.trial import Around, Cards, OpenTrial, seed_of
from fairwall.game.v1 import referee_service_pb2 as game


def open_trial(deal: game.ComplianceDeal, cards: Cards, _around: Around) -> OpenTrial:
    """Open the training set's people."""
    cohort = open_cohort(deal, cards)
    return OpenTrial(
        Accounts(sums={deal.deal_id: cohort}),
        lambda: game.SubmitAuditReportRequest(deal_id=deal.deal_id, epsilon_spent=cohort.spent),
    )


def open_cohort(deal: game.ComplianceDeal, cards: Cards) -> Cohort:
    """Open a deal's people."""
    protected, terms = cards["protected"].astype(np.uint8, copy=False), deal.statistics.terms
    return game_cohort(deal.deal_id, protected, terms.epsilon, terms.delta, seed_of(deal))
