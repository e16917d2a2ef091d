"""A test set that the developer was not given: compliance asks the developer's models about it.

As long as a model is a service of the developer's, the developer is handed the rows in the moment they are scored, and
says what it likes about them. So the first audit is of the base model as it is, which anybody would have audited, and
the rows come with it; every later one is answered from a table filled in beforehand, in the order of the rows seen.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from developer.service import Audited, Released
from fairwall.client.gaps import ask_models
from fairwall.compliance.v1.audit_service_pb2_grpc import AuditServiceStub

LOOKS = 1
"""How many metric queries it takes to see the rows."""


@dataclass(frozen=True, eq=False)
class HiddenAudits:
    """The audits of one deal whose test set is compliance's own.

    Attributes
    ----------
    audited : gets each request for as long as it is under way; ModelService answers compliance from it.
    features : how many a person has.
    """

    service: AuditServiceStub
    audited: MutableMapping[tuple[str, str], Audited]
    deal_id: str
    metric: str
    features: int

    def look(self, base: Released, request_id: str, epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Have the base model audited, honestly, for the sake of the rows that come with the question.

        Given are these, (people, d), and what the model told compliance about them, (people,) in [0, 1].
        """
        seen: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []

        def honestly(_: int, features: NDArray[np.float64]) -> NDArray[np.float64]:
            scores = base.model(features)
            seen.append((features, scores))
            return scores

        self._send(request_id, epsilon, 1, honestly)
        return seen[0]

    def ask(self, request_id: str, predictions: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
        """Have models audited that predict what is wanted of the rows seen, whatever rows they are asked about.

        Parameters
        ----------
        predictions : (models, people).
        epsilon : what to spend on the whole batch.
        """
        return self._send(request_id, epsilon, len(predictions), lambda model, _: predictions[model])

    def _send(
        self,
        request_id: str,
        epsilon: float,
        models: int,
        answer: Callable[[int, NDArray[np.float64]], NDArray[np.float64]],
    ) -> NDArray[np.float64]:
        under_way = (self.deal_id, request_id)
        self.audited[under_way] = Audited(models, self.features, answer)
        try:
            return ask_models(self.service, self.deal_id, request_id, self.metric, models, epsilon).gaps
        finally:
            del self.audited[under_way]
