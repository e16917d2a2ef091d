"""The kinds of steps that request audits, spend a share on them, and open their answers.

A step's keys are the fields of its class.
"""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any, ClassVar, Literal

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray
from pydantic import Field

from fairwall.arrays import Floats
from fairwall.client.kept import Kept, KeptError
from fairwall.compliance.v1.audit_service_pb2 import AuditHeader, AuditRequest, Candidates
from fairwall.laws.mechanisms.calibration import metric_range
from fairwall.laws.mechanisms.table import MECHANISM_LAWS, NoiseInputs
from fairwall.laws.noise.distributions import Gaussian
from fairwall.laws.noise.gaussian import gaussian_epsilon, gaussian_multiplier
from fairwall.rpc import arrays
from fairwall.wire.metrics import name_of, number_of
from fairwall.wire.v1.metric_pb2 import Metric
from sim.conformance import answer_checks, calls, law
from sim.conformance.calls import CallResult, ProtocolViolation
from sim.conformance.promise import Array, answered_by, cdf, promise_of
from sim.conformance.purchases import Predicted, SentRequest
from sim.conformance.step_base import Predictions, Words
from sim.conformance.target import DescribedDeployment
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

    def require_no_law(self, noise: Floats) -> None:  # noqa: ARG002
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
        ends = [
            (_numbers(answer, low, models), _numbers(answer, high, models)) for low, high in answer_checks.INTERVALS
        ]
        self._check_probability(answer, models)
        metric, about = name_of(header.metric), self.about(world)
        self.check_rows(answer)
        if answer.by != self.by:
            raise ProtocolViolation(f"an answer is by the column {answer.by!r}, and {self.by!r} was asked for")
        if answer.nonce != self.nonce.encode():
            raise ProtocolViolation("an answer does not have its request's nonce")
        answer_checks.require_written_down(gaps, about)
        self._check_draws(answer, request.predictions, ends[1], metric, about.mechanism)
        for low, high in ends:
            answer_checks.require_ends_written_down(low, high, about, metric)
        if people is None:
            if self.expect.close or self.expect.noise:
                raise NotRun("needs the table of the test set")
            return Result(seen)
        above = _numbers(answer, "probability_above", models) if self.threshold is not None else None
        predictions = self.in_the_order_of_the_deal(world, request)
        if answer.epsilon_charged and (may_be := self.visible(metric, predictions)) is not None:
            searched = self.candidates is not None
            by = answered_by(about, people, metric, may_be, header.epsilon, searched=searched)
            answer_checks.require_possible(gaps, ends, about, people, metric, may_be, by)
        for low, high in ends:
            answers = answer_checks.AnswerFields(gaps, low, high, above)
            answer_checks.require_recomputed(
                answers, about, people, metric, predictions, header.epsilon, self.threshold
            )
        exact = law.exact_gaps(people, metric, predictions)
        world.exact.extend(exact)
        noise: Floats = gaps - exact
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
        self, answer: Any, predictions: NDArray[Any], likely: answer_checks.Ends, metric: str, mechanism: str
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


def _numbers(answer: Any, field: str, models: int) -> Floats:
    numbers = calls.numbers(getattr(answer, field), field, models, "model")
    answer_checks.require_plain(field, numbers)
    return numbers


_OFF = 1e-6
"""Tolerance for float64 and for the rounding of reported budgets, relative to the share."""


class SpentStep(Words):
    """A step that requests equal batches until one is refused; after each, the rule decides the remaining budget.

    The caller's share must be unspent. A batch at `first` may come before those at `epsilon`. At most `most` calls are
    made; with `batches` that many are answered, because delta runs out, whatever epsilon would be left.

    Each rule's epsilon is computed again here, in float64, from the table in docs/ledger.md.
    """

    do: Literal["spent"]
    caller: str
    epsilon: float
    first: float | None = None
    most: int = Field(default=200, ge=1)
    batches: int | None = None

    def run(self, world: CaseState) -> None:
        """Spend the share, and check the remaining budget."""
        about = world.about()
        share = about.shares[world.subject.target.developer(self.caller)]
        charged: list[float] = []
        for number in range(self.most):
            epsilon = self.first if number == 0 and self.first is not None else self.epsilon
            left = share - _composed([*charged, epsilon], about)
            step = AuditStep(do="audit", caller=self.caller, id=f"spent-{world.step}-{number}", epsilon=epsilon)
            asked = step.asked(world)
            seen = step.ask(world, asked)
            if abs(left) <= _OFF * share:
                raise ProtocolViolation("a case must not ask for a batch that fits within float64's errors alone")
            fits = left > 0 and (self.batches is None or number < self.batches)
            if seen.answered != fits or (not fits and seen.reason != "BUDGET_EXHAUSTED"):
                how = f"{len(charged)} batches and one of epsilon {epsilon:,g} under {about.rule!r}"
                raise ProtocolViolation(f"{how}: the last call {seen.text}, and {left:.6g} would be left")
            if not fits:
                return
            charged.append(epsilon)
            for stated in (seen.messages[0].epsilon_remaining, world.remaining(self.caller)):
                if not -_OFF * share <= left - stated <= _OFF * share:
                    raise ProtocolViolation(
                        f"{stated!r} is stated to be left of {share:g}; by {about.rule!r} it is {left:.9g}"
                    )
        raise ProtocolViolation(f"{self.most} batches of epsilon {self.epsilon:,g} did not use up {share:g}")


def _composed(charged: list[float], about: DescribedDeployment) -> float:
    """Return the epsilon of a series of batches at the budget's delta."""
    losses = [(epsilon, about.batch_delta) for epsilon in charged]
    surely = math.inf if about.batch_delta else sum(charged)
    match about.rule:
        case "basic":
            return sum(charged)
        case "advanced":
            squares = sum(epsilon * epsilon for epsilon in charged)
            return min(surely, squares / 2 + math.sqrt(2 * math.log(2 / about.delta) * squares))
        case "zcdp":
            gaussian = _is_gaussian(about)
            rho = sum(
                1 / gaussian_multiplier(*loss) ** 2 / 2 if gaussian else loss[0] * math.tanh(loss[0] / 2)
                for loss in losses
            )
            return min(surely, rho + 2 * math.sqrt(rho * math.log(1 / about.delta)))
        case _:
            squares = sum(1 / gaussian_multiplier(*loss) ** 2 for loss in losses)
            return gaussian_epsilon(1 / math.sqrt(squares), about.delta)


def _is_gaussian(about: DescribedDeployment) -> bool:
    law_of_answers = MECHANISM_LAWS.get(about.mechanism)
    if law_of_answers is None or law_of_answers.is_choice or not about.batch_delta:
        return False
    return isinstance(law_of_answers.error(NoiseInputs("sp", 2, 2, 1, 0.5, about.batch_delta)), Gaussian)


class OpeningStep(Words):
    """A step that requests batches, keeps requests and answers, and has a regulator open all that this case kept."""

    do: Literal["opened"]

    def run(self, world: CaseState) -> None:
        """Request batches, and open them."""
        if not world.subject.starts:
            raise NotRun("needs a server that the tester starts, to open what it answered")
        caller, about, terms = world.subject.target.developer("developer"), world.about(), world.terms("developer")
        if not terms.answered:
            raise ProtocolViolation(f"who asked for the terms {terms.text}")
        folder = world.subject.place(world.deployment).parent / f"kept-{world.nonce}"
        try:
            kept = Kept.begin(folder, about.deal, caller, terms.messages[0].commitment)
        except KeptError:
            raise ProtocolViolation("what it commits to has changed") from None
        world.open_account("developer", "")
        for number, metric in enumerate(about.metrics):
            own: dict[str, Any] = {"threshold": 0.1} if number % 2 else {"nonce": f"nonce {number}"}
            own["predictions"] = Predictions(models=number + 1, random=number)
            step = AuditStep(do="audit", id=f"{world.step}-{number}", metric=metric, **own)
            asked = step.asked(world)
            seen = step.ask(world, asked)
            step.expect.check_end(seen)
            step.check_answer(world, asked, seen)
            gaps = np.asarray(arrays.from_message(seen.messages[0].gaps), np.float64)
            kept.keep(asked.header, [asked.predictions], gaps)
        if not (world.subject.shown(world.deployment) / "seal.key").exists():
            raise NotRun("needs a server whose key and ledger `fairwall deploy open` reads")
        policy = str(world.subject.policy(world.deployment))
        asked_for = [sys.executable, "-m", "sim", "deploy", "open", str(folder), "--policy", policy]
        done = subprocess.run(asked_for, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
        if done.returncode:
            raise ProtocolViolation(f"a regulator finds: {' / '.join((done.stdout + done.stderr).splitlines())}")
