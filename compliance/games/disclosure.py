"""The disclosure game: a study's table is released."""

from __future__ import annotations

import numpy as np

from compliance.answers.accounts import Accounts
from compliance.answers.studies import Study, game_study
from compliance.games.trial import Around, Cards, OpenTrial, seed_of
from fairwall.game.v1 import referee_service_pb2 as game


def open_trial(deal: game.ComplianceDeal, cards: Cards, _around: Around) -> OpenTrial:
    """Open the study."""
    study = open_study(deal, cards)
    return OpenTrial(
        Accounts(tables={deal.deal_id: study}),
        lambda: game.SubmitAuditReportRequest(deal_id=deal.deal_id, epsilon_spent=study.spent),
    )


def open_study(deal: game.ComplianceDeal, cards: Cards) -> Study:
    """Open a deal's study."""
    terms = deal.study.terms
    return game_study(
        deal.deal_id,
        cards["study_cells"].astype(np.intp),
        cards["study_answers"].astype(np.uint8, copy=False),
        terms.cells,
        terms.epsilon,
        seed_of(deal),
        records=terms.records,
    )
