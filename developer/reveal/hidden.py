"""A test set that the developer was not given: compliance queries the developer's models about it.

As long as the developer serves its own model, it receives the rows when they are scored, and can return any score. So
the first audit is of the base model, honestly, and reveals the rows; every later audit is answered from a table filled
in beforehand, in the order of the rows seen.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass

from developer.service import Audited, ReleasedModel
from fairwall.arrays import Floats
from fairwall.client.gaps import ask_models
from fairwall.compliance.v1.audit_service_pb2_grpc import AuditServiceStub

LOOKS = 1
"""Number of metric queries that reveal the rows."""


@dataclass(frozen=True, eq=False)
class HiddenAudits:
    """The audits of one deal whose test set is compliance's; `audited` holds each pending request for ModelService."""

    service: AuditServiceStub
    audited: MutableMapping[tuple[str, str], Audited]
    deal_id: str
    metric: str
    features: int

    def look(self, base: ReleasedModel, request_id: str, epsilon: float) -> tuple[Floats, Floats]:
        """Have the base model audited honestly; return the rows seen, (people, d), and scores, (people,) in [0, 1]."""
        seen: list[tuple[Floats, Floats]] = []

        def honestly(_: int, features: Floats) -> Floats:
            scores = base.model(features)
            seen.append((features, scores))
            return scores

        self._send(request_id, epsilon, 1, honestly)
        return seen[0]

    def ask(self, request_id: str, predictions: Floats, epsilon: float) -> Floats:
        """Return the gaps of models that give these predictions, (models, people), whatever rows they are sent."""
        return self._send(request_id, epsilon, len(predictions), lambda model, _: predictions[model])

    def _send(self, request_id: str, epsilon: float, models: int, answer: Callable[[int, Floats], Floats]) -> Floats:
        under_way = (self.deal_id, request_id)
        self.audited[under_way] = Audited(models, self.features, answer)
        try:
            return ask_models(self.service, self.deal_id, request_id, self.metric, models, epsilon).gaps
        finally:
            del self.audited[under_way]
