"""The kinds of steps that request audits. A step's keys are the fields of its class."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from fairwall.compliance.v1.audit_service_pb2 import AuditHeader, AuditRequest, Candidates
from fairwall.laws.bounding import metric_range
from fairwall.laws.mechanisms import MECHANISM_LAWS
from fairwall.rpc import arrays
from fairwall.wire.metrics import name_of, number_of
from fairwall.wire.v1.metric_pb2 import Metric
from sim.conformance import calls, law, told
from sim.conformance.calls import CallResult, ProtocolViolation
from sim.conformance.promise import Array, answered_by, cdf, promise_of
from sim.conformance.purchases import Predicted, SentRequest
from sim.conformance.target import DescribedDeployment
from sim.conformance.vocabulary import Words
from sim.conformance.world import CaseState, NotRun, Result

AUDIT = "/fairwall.compliance.v1.AuditService/Audit"

_DRAWS_MIN, _INSIDE, _ROUNDED = 100, 0.5, 1e-4


class Searched(Words):
    """Candidates of a search; by default each has a name and less utility than the one before, and all qualify."""

    names: tuple[str, ...] | None = None
    utilities: tuple[float, ...] | None = None
    baseline: int = 0
    at_least: float = 0.0

    def of(self, models: int) -> Candidates:
        """Return the message about this number of models."""
        names = [f"m{i}" for i in range(models)] if self.names is None else self.names
        utilities = [1 / (1 + i) for i in range(models)] if self.utilities is None else self.utilities
        return Candidates(names=names, utilities=utilities, baseline=self.baseline, at_least=self.at_least)


class Gaps(Predicted):
    """A step that requests one batch of gaps, however the predictions are passed.

    `metric` defaults to the first one that is allowed; "not allowed" takes one that is not. `by` names a protected
    column. The `nonce` is an input of the noise if the server has committed to its seed.
    """

    metric: str | int | None = None
    threshold: float | None = None
    by: str = ""
    candidates: Searched | None = None
    nonce: str = ""

    def question(self, world: CaseState) -> dict[str, Any]:
        """Return the fields that every request for gaps has."""
        return {
            "request_id": self.named(world),
            "deal_id": world.about(self.deployment).deal if self.deal is None else self.deal,
            "metric": self._metric(world),
            "epsilon": self.spends(world),
            "threshold": self.threshold,
        }

    def about(self, world: CaseState) -> DescribedDeployment:
        """Return the deployment's description, adapted to this kind of request."""
        return world.about(self.deployment)

    def visible(self, metric: str, predictions: Array) -> Array | None:  # noqa: ARG002
        """Return the predictions that bound the intervals, or None if nothing does."""
        return predictions

    def require_no_law(self, noise: NDArray[np.float64]) -> None:  # noqa: ARG002
        """Check noise whose distribution the tester does not know."""
        if self.expect.close or self.expect.noise:
            raise NotRun("needs a mechanism whose law the tester knows")

    def _metric(self, world: CaseState) -> Any:
        allowed = world.about(self.deployment).metrics
        if isinstance(self.metric, int):
            return self.metric
        if self.metric == "not allowed":
            refused = [number for number in Metric.values() if number and name_of(number) not in allowed]
            if not refused:
                raise NotRun("needs a metric that the policy does not allow")
            return refused[0]
        metric = self.metric or allowed[0]
        if metric not in allowed:
            raise NotRun(f"needs the metric {metric}")
        return number_of(metric)

    def check_answer(self, world: CaseState, request: SentRequest, seen: CallResult) -> Result:
        """Check an answer, enter its cost, and return its noise."""
        answer, header = seen.messages[0], request.header
        people = world.subject.target.people(self.deployment or world.deployment, self.by)
        world.enter(self.caller, self.deployment, header.request_id, header.epsilon, answer)
        models = len(request.predictions)
        gaps = _numbers(answer, "gaps", models)
        ends = [(_numbers(answer, low, models), _numbers(answer, high, models)) for low, high in told.INTERVALS]
        self._check_probability(answer, models)
        metric, about = name_of(header.metric), self.about(world)
        self.check_rows(answer)
        if answer.by != self.by:
            raise ProtocolViolation(f"an answer is by the column {answer.by!r}, and {self.by!r} was asked for")
        if answer.nonce != self.nonce.encode():
            raise ProtocolViolation("an answer does not have its request's nonce")
        told.require_written_down(gaps, about)
        self._check_draws(answer, request.predictions, ends[1], metric, about.mechanism)
        for low, high in ends:
            told.require_ends_written_down(low, high, about, metric)
        if people is None:
            if self.expect.close or self.expect.noise:
                raise NotRun("needs the table of the test set")
            return Result(seen)
        above = _numbers(answer, "probability_above", models) if self.threshold is not None else None
        predictions = self.in_the_order_of_the_deal(world, request)
        if answer.epsilon_charged and (may_be := self.visible(metric, predictions)) is not None:
            searched = self.candidates is not None
            by = answered_by(about, people, metric, may_be, header.epsilon, searched=searched)
            told.require_possible(gaps, ends, about, people, metric, may_be, by)
        for low, high in ends:
            answers = told.AnswerFields(gaps, low, high, above)
            told.require_recomputed(answers, about, people, metric, predictions, header.epsilon, self.threshold)
        exact = law.exact_gaps(people, metric, predictions)
        world.exact.extend(exact)
        noise: NDArray[np.float64] = gaps - exact
        promised = promise_of(about, people, metric, models, header.epsilon)
        if promised is None:
            self.require_no_law(noise)
            return Result(seen, noise, exact)
        if self.expect.close:
            law.require_close(noise, promised.law)
        if self.expect.noise:
            law.require_noise(2 * cdf(noise, promised.law) - 1)
        if self.candidates is not None:
            law.require_drawn(arrays.from_message(answer.draws).astype(np.float64), exact, promised.law)
        # Not seeded: the server under test must not be able to predict it.
        return Result(seen, noise, exact, promised.uniform(gaps, exact, np.random.default_rng()))

    def _check_draws(
        self, answer: Any, predictions: NDArray[Any], likely: told.Ends, metric: str, mechanism: str
    ) -> None:
        """Demand joint draws of candidates' gaps, in the metric's range and, for a posterior, in likely intervals."""
        if answer.HasField("draws") != (self.candidates is not None):
            raise ProtocolViolation("draws are told if and only if models are candidates")
        if self.candidates is None:
            return
        try:
            draws = arrays.from_message(answer.draws)
        except arrays.ArrayError as error:
            raise ProtocolViolation(f"draws: {error}") from None
        models = len(predictions)
        if draws.dtype != np.float32 or draws.ndim != 2 or draws.shape[1] != models or len(draws) < _DRAWS_MIN:
            raise ProtocolViolation(
                f"draws must be float32, {_DRAWS_MIN} and more of {models} models, and are {draws.shape}"
            )
        gaps = draws.astype(np.float64)
        if np.isnan(gaps).all():
            return
        least, most = metric_range(metric)
        if not ((least <= gaps) & (gaps <= most)).all():
            raise ProtocolViolation("draws must be of all models or of none, and in the metric's range")
        first = [int(np.flatnonzero((predictions == row).all(axis=1))[0]) for row in predictions]
        if (np.abs(gaps - gaps[:, first]) > _ROUNDED).any():
            raise ProtocolViolation("models that predict the same have other gaps in one draw")
        law = MECHANISM_LAWS[mechanism].interval
        if law is not None and law.is_posterior:
            inside = ((likely[0] <= gaps) & (gaps <= likely[1])).mean(axis=0)
            if (inside < _INSIDE).any():
                raise ProtocolViolation(f"of draws of a gap {inside.min():.0%} lie where it is likely to, of 95%")

    def _check_probability(self, answer: Any, models: int) -> None:
        if answer.HasField("probability_above") != (self.threshold is not None):
            raise ProtocolViolation("probability_above is told if and only if a threshold was given")
        if self.threshold is None:
            return
        values = _numbers(answer, "probability_above", models)
        known = values[~np.isnan(values)]
        least, most = self.expect.probability if isinstance(self.expect.probability, tuple) else (0.0, 1.0)
        if not ((known >= least) & (known <= most)).all():
            raise ProtocolViolation(
                f"probability_above must lie between {least:g} and {most:g}, and is {known.tolist()}"
            )


class AuditStep(Gaps):
    """A step that requests an audit of predictions in the request."""

    METHOD: ClassVar[str] = AUDIT
    PART: ClassVar[type[Message]] = AuditRequest

    do: Literal["audit"]

    def head(self, world: CaseState) -> AuditHeader:
        """Return the header, without the array header of the predictions."""
        searched = None if self.candidates is None else self.candidates.of(int(world.number(self.predictions.models)))
        return AuditHeader(**self.question(world), by=self.by, candidates=searched, nonce=self.nonce.encode())


def _numbers(answer: Any, field: str, models: int) -> NDArray[np.float64]:
    numbers = calls.numbers(getattr(answer, field), field, models, "model")
    told.require_plain(field, numbers)
    return numbers
