"""The overfit game: a test set is audited, of which the developer may have committed itself to sealed models."""

from __future__ import annotations

from dataclasses import dataclass, field

import grpc
import numpy as np
from numpy.typing import NDArray

from compliance.answers.accounts import Accounts
from compliance.games.audits import open_case, report_of
from compliance.games.trial import Around, Cards, OpenTrial
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.learning.sealed import sealed_decisions


@dataclass(frozen=True, eq=False)
class Sealed:
    """Sealed models, scored by compliance on rows, (people, d), that the developer does not get to see."""

    key: bytes
    features: NDArray[np.float64] = field(repr=False)

    def scores(self, _request_id: str, count: int, _context: grpc.ServicerContext | None) -> NDArray[np.float64]:
        """Score the first so many models: (count, people)."""
        return sealed_decisions(self.key, self.features, count).astype(np.float64)


def open_trial(deal: game.ComplianceDeal, cards: Cards, around: Around) -> OpenTrial:
    """Open the audits of a test set, and of sealed models where the developer handed any over."""
    key = deal.audits.sealed
    sealed = Sealed(key, cards["features"].astype(np.float64, copy=False)) if key else None
    case = open_case(deal, deal.audits, cards, sealed, around.draws)
    return OpenTrial(Accounts(audits={deal.deal_id: case}), lambda: report_of(case))
