"""The base model of the reveal game's developer, as far as the deal determines it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from developer.reveal.base_model import Model, cross_fitted, identity, logistic
from fairwall.game.v1 import reveal_service_pb2 as game
from sim.transcripts.findings import TOLERANCE
from sim.transcripts.messages import Cards, PlayedSession


class BaseModel:
    """The base model's scores in the trials of a session; it is trained once for each training table."""

    def __init__(self, session: PlayedSession) -> None:
        self._session = session
        self._trained: dict[str, Model] = {}

    def scores(self, dealt: Cards, rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], float] | None:
        """Return the scores, (people,), and their largest distance from the developer's; None without a stored table.

        `rows`, (models, people), are the predictions, the first query first.
        """
        cards, digest = dealt.arrays or {}, dealt.deal.training_digest
        if "features" not in cards:
            return rows[0], 0.0  # the first query is about the base model itself, see `developer.reveal.hidden`
        features = cards["features"].astype(np.float64)
        if dealt.deal.base_model == game.BASE_MODEL_IDENTITY:
            return identity(features), 0.0
        if not digest:
            return cross_fitted(features, cards["labels"]), TOLERANCE
        if digest not in self._trained:
            table = self._session.table(digest)
            if table is None:
                return None
            self._trained[digest] = logistic(table["features"].astype(np.float64), table["labels"].astype(np.uint8))
        return self._trained[digest](features), TOLERANCE
