"""Subjects of a privacy audit: objects that turn a data set into transcripts, and claim how private those are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms.mechanism import BatchQuestion, Mechanism
from fairwall.laws.mechanisms import NoiseInputs
from sim.privacy_audit.exact import ExactLoss, NoiseLaw, is_one_mean
from sim.privacy_audit.sessions import releases


class PrivacyClaim(NamedTuple):
    """A promise: no event is likelier than e^epsilon times its probability on a neighbour, plus delta."""

    epsilon: float
    delta: float


class AuditedSession(Protocol):
    """A whole session with a service, as the caller sees it; sound and broken services have the same interface."""

    @property
    def claim(self) -> PrivacyClaim:
        """Epsilon and delta claimed for one session, whatever the question."""

    def refuses(self, metric: str) -> str | None:
        """Return the reason a metric is not answered, or None if it is answered."""

    def loss(self, metric: str, n0: int, n1: int, people: int, queries: int) -> float | None:
        """Return the true loss at the claimed delta, against all neighbours of a data set, or None if it is not known.

        The groups have `n0` and `n1` members in the metric's stratum; `people` counts the whole data set.
        """

    def sessions(self, question: BatchQuestion, count: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """Return the transcripts of independent sessions, shape (count, numbers in a transcript)."""

    def log_ratio(
        self, first: BatchQuestion, second: BatchQuestion, transcripts: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Return the log-likelihood ratio of each transcript, shape (count,), or None if the densities are not known.

        The ratio only helps to choose an event: a wrong one costs power and accuses nobody.
        """


@dataclass(frozen=True)
class Batches:
    """One batch put to a mechanism, possibly a broken one, or the same batch repeated by one account.

    `exact` is the batch's true loss, if it has been derived; `law` is the distribution of the noise on each answer, if
    answers are gaps with independent noise. Both describe a single batch. Each of the `batches` (at least 1) is assumed
    to cost as much as the first.
    """

    mechanism: Mechanism
    epsilon: float
    delta: float
    exact: ExactLoss | None = None
    law: NoiseLaw | None = None
    batches: int = 1

    @property
    def claim(self) -> PrivacyClaim:
        """See `AuditedSession.claim`."""
        cost = self.mechanism.cost(self.epsilon, self.delta)
        return PrivacyClaim(self.batches * cost.epsilon, self.batches * cost.delta)

    def refuses(self, metric: str) -> str | None:
        """See `AuditedSession.refuses`."""
        return self.mechanism.refuses(metric, self.epsilon, self.delta)

    def loss(self, metric: str, n0: int, n1: int, people: int, queries: int) -> float | None:
        """See `AuditedSession.loss`."""
        if self.exact is None or self.batches > 1 or not is_one_mean(metric):
            return None
        return self.exact(NoiseInputs(metric, n0, n1, queries, self.epsilon, self.delta), people)

    def sessions(self, question: BatchQuestion, count: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """See `AuditedSession.sessions`."""
        return releases(self.mechanism, question, self.epsilon, self.delta, count, generator, self.batches)

    def log_ratio(
        self, first: BatchQuestion, second: BatchQuestion, transcripts: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """See `AuditedSession.log_ratio`."""
        if self.law is None or self.batches > 1 or not is_one_mean(first.metric):
            return None
        here, there = (self._log_density(question, transcripts) for question in (first, second))
        return here - there

    def _log_density(self, question: BatchQuestion, transcripts: NDArray[np.float64]) -> NDArray[np.float64]:
        assert self.law is not None
        values = question.gaps()
        batch = NoiseInputs(
            question.metric, *question.records.counts(question.metric), len(values), self.epsilon, self.delta
        )
        law = self.law(batch, question.records.people)
        density: NDArray[np.float64] = law.log_density(transcripts[:, : len(values)] - values).sum(axis=1)
        return density
