"""What a privacy audit looks at: something that turns a data set into transcripts and claims how private they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms.mechanism import Mechanism, Question
from fairwall.laws.mechanisms import Batch
from sim.privacy_audit.exact import ExactLoss, NoiseLaw, is_one_mean
from sim.privacy_audit.sessions import releases


class Claim(NamedTuple):
    """A promise: no event is likelier than e^epsilon times its probability on a neighbour, plus delta."""

    epsilon: float
    delta: float


class Subject(Protocol):
    """A whole session with a service, seen by who asks. Broken or not, it is treated alike."""

    @property
    def claim(self) -> Claim:
        """The epsilon and delta that are claimed for one session, whatever the question."""

    def refuses(self, metric: str) -> str | None:
        """Return why a metric is not answered, None where it is."""

    def loss(self, metric: str, n0: int, n1: int, people: int, queries: int) -> float | None:
        """Return the true loss, at the claimed delta, to the neighbours of a data set; None where it is not known.

        The groups have n0 and n1 of the metric's stratum, and all people are counted in `people`.
        """

    def sessions(self, question: Question, count: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """Return the transcripts of independent sessions, shape (count, numbers seen)."""

    def log_ratio(
        self, first: Question, second: Question, transcripts: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Return the log-likelihood ratio of each transcript, shape (count,), None where densities are not known.

        Only for choosing an event: a wrong one costs power and accuses nobody.
        """


@dataclass(frozen=True)
class Batches:
    """One batch put to a mechanism, or the same one again and again by one account.

    Parameters
    ----------
    mechanism : any `compliance.mechanisms.Mechanism`, a broken one too.
    epsilon, delta : what the batch is asked for at.
    exact : what it really costs, where somebody has worked it out.
    law : the noise on each answer, where answers are gaps with independent noise.
    batches : how many, at least 1. Each is taken to cost as much as the first; `exact` and `law` speak of one alone.
    """

    mechanism: Mechanism
    epsilon: float
    delta: float
    exact: ExactLoss | None = None
    law: NoiseLaw | None = None
    batches: int = 1

    @property
    def claim(self) -> Claim:
        """See `Subject.claim`."""
        cost = self.mechanism.cost(self.epsilon, self.delta)
        return Claim(self.batches * cost.epsilon, self.batches * cost.delta)

    def refuses(self, metric: str) -> str | None:
        """See `Subject.refuses`."""
        return self.mechanism.refuses(metric, self.epsilon, self.delta)

    def loss(self, metric: str, n0: int, n1: int, people: int, queries: int) -> float | None:
        """See `Subject.loss`."""
        if self.exact is None or self.batches > 1 or not is_one_mean(metric):
            return None
        return self.exact(Batch(metric, n0, n1, queries, self.epsilon, self.delta), people)

    def sessions(self, question: Question, count: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """See `Subject.sessions`."""
        return releases(self.mechanism, question, self.epsilon, self.delta, count, generator, self.batches)

    def log_ratio(
        self, first: Question, second: Question, transcripts: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """See `Subject.log_ratio`."""
        if self.law is None or self.batches > 1 or not is_one_mean(first.metric):
            return None
        here, there = (self._log_density(question, transcripts) for question in (first, second))
        return here - there

    def _log_density(self, question: Question, transcripts: NDArray[np.float64]) -> NDArray[np.float64]:
        assert self.law is not None
        values = question.gaps()
        batch = Batch(question.metric, *question.records.counts(question.metric), len(values), self.epsilon, self.delta)
        law = self.law(batch, question.records.people)
        density: NDArray[np.float64] = law.log_density(transcripts[:, : len(values)] - values).sum(axis=1)
        return density
