"""Subjects of a privacy audit: objects that turn a data set into transcripts, and claim how private those are."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from compliance.ledger.accountant import Loss, pure
from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, Mechanism, MechanismAnswer
from compliance.mechanisms.row_defaults import require_budget
from compliance.noise.sampling import Noise
from fairwall.arrays import Floats
from fairwall.laws.mechanisms.table import NoiseInputs
from sim.privacy_audit.exact import ExactLoss, NoiseLaw, is_one_mean
from sim.privacy_audit.sessions import SessionNoise, releases


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

    def sessions(self, question: BatchQuestion, count: int, generator: np.random.Generator) -> Floats:
        """Return the transcripts of independent sessions, shape (count, numbers in a transcript)."""

    def log_ratio(self, first: BatchQuestion, second: BatchQuestion, transcripts: Floats) -> Floats | None:
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

    def sessions(self, question: BatchQuestion, count: int, generator: np.random.Generator) -> Floats:
        """See `AuditedSession.sessions`."""
        return releases(self.mechanism, question, self.epsilon, self.delta, count, generator, self.batches)

    def log_ratio(self, first: BatchQuestion, second: BatchQuestion, transcripts: Floats) -> Floats | None:
        """See `AuditedSession.log_ratio`."""
        if self.law is None or self.batches > 1 or not is_one_mean(first.metric):
            return None
        here, there = (self._log_density(question, transcripts) for question in (first, second))
        return here - there

    def _log_density(self, question: BatchQuestion, transcripts: Floats) -> Floats:
        assert self.law is not None
        values = question.gaps()
        batch = NoiseInputs(
            question.metric, *question.records.counts(question.metric), len(values), self.epsilon, self.delta
        )
        law = self.law(batch, question.records.people)
        density: Floats = law.log_density(transcripts[:, : len(values)] - values).sum(axis=1)
        return density


@dataclass(frozen=True)
class Foreign:
    """A function as a `Mechanism` that claims the requested epsilon and delta, for any metric.

    It is called as ``function(predictions, labels, attributes, epsilon, noise)`` and returns one number per model; see
    ``privacy-audit.md`` in `docs`.
    """

    function: Callable[..., Any]
    name: str
    guarantee: Guarantee = "approximate"

    @property
    def title(self) -> str:
        """See `Mechanism.title`."""
        return self.name

    def refuses(self, _metric: str, _epsilon: float, _delta: float) -> None:
        """Return None: nothing is refused."""

    def cost(self, epsilon: float, delta: float) -> Loss:
        """See `Mechanism.cost`."""
        require_budget(epsilon, delta)
        return pure(epsilon, delta)

    def release(
        self, question: BatchQuestion, _facts: Facts, epsilon: float, _delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the function's answers; raise ValueError unless they are one number per model."""
        records = question.records
        attributes = records.turned(np.zeros(records.people, np.bool_))
        answered = self.function(question.predictions.copy(), records.labels.copy(), attributes, epsilon, noise)
        values = np.asanyarray(answered, np.float64)
        shape, due = values.shape, (question.queries,)
        if shape != due and not (isinstance(values, SessionNoise) and shape[1:] == due):
            raise ValueError(f"must answer with one number a model, shape {due}, not {shape}")
        return MechanismAnswer(values)


def load(target: str) -> Mechanism:
    """Return the function, class (called without arguments) or `Mechanism` ``FILE.py:NAME`` or ``MODULE:NAME``."""
    where, _, name = target.rpartition(":")
    if where.endswith(".py") and not Path(where).is_file():
        raise ValueError(f"{where}: no such file")
    try:
        found = getattr(_file(where) if where.endswith(".py") else importlib.import_module(where), name, None)
        found = found() if isinstance(found, type) else found
    except Exception as error:
        raise ValueError(f"{target} cannot be loaded: {type(error).__name__}: {error}".splitlines()[0]) from error
    if not callable(found) and not hasattr(found, "cost"):
        raise ValueError(f"{where}: has no function or class {name!r}")
    return cast(Mechanism, found) if hasattr(found, "cost") else Foreign(cast(Any, found), target)


def _file(path: str) -> ModuleType:
    name = f"audited_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, Path(path).resolve())
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
