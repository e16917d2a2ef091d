"""The kinds of steps that repeat a call: unchanged, with one bit changed, and simultaneously."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairwall.compliance.v1.audit_service_pb2 import Candidates
from fairwall.wire.metrics import number_of
from fairwall.wire.rows import digest_of, order_of
from sim.conformance import answer_checks, law
from sim.conformance.audits import AuditStep
from sim.conformance.by_group import number_of as number_of_measure
from sim.conformance.calls import CallResult, ProtocolViolation
from sim.conformance.independence_checks import AnsweredBatch, require_nothing_depends
from sim.conformance.purchases import Predicted, PurchaseStep, SentRequest, repeated, sampled, together
from sim.conformance.services import Bought, on
from sim.conformance.step_base import Expect, Number, Predictions, Words
from sim.conformance.target import DescribedDeployment
from sim.conformance.world import CaseState, NotRun, Result


class Repeated(Words):
    """A step that asks the same question repeatedly, each time under another id, and tests all the noise together.

    If its case is put to another service, the step asks that service; so does every other kind here.
    """

    do: Literal["repeated"]
    calls: int = Field(ge=2)
    metric: str | None = None
    epsilon: Number = 1.0
    predictions: Predictions = Predictions()

    def run(self, world: CaseState) -> None:
        """Request answers, and test their noise."""
        numbers = []
        for number in range(self.calls):
            name = f"repeated-{world.step}-{number}"
            own = {"metric": self.metric, "epsilon": self.epsilon, "predictions": self.predictions}
            on(world.service, AuditStep(do="audit", name=name, id=name, **own)).run(world)
            found = world.results.pop(name).uniform
            if found is None:
                raise NotRun("needs a mechanism whose law the tester knows")
            numbers.append(2 * found - 1)
        law.require_noise_everywhere(np.stack(numbers))


class Alike(Words):
    """A step that makes the same calls to several deployments, and demands that all end in the same way, word for word.

    The end itself does not matter, only what callers see of it. With `each_person` each request is made once per
    person, with this prediction about that person.
    """

    do: Literal["alike"]
    deployments: tuple[str, ...] = Field(min_length=2)
    requests: tuple[Bought, ...] = Field(min_length=1)
    each_person: float | None = None

    def run(self, world: CaseState) -> None:
        """Make the calls, and compare their ends."""
        for number, request in enumerate(self._requests(world)):
            ends = [self._end(world, request, number, deployment) for deployment in self.deployments]
            if any(end != ends[0] for end in ends):
                ends_text = "; ".join(f"{name}: {end.text}" for name, end in zip(self.deployments, ends, strict=True))
                raise ProtocolViolation(f"call {number + 1} ended otherwise for other people: {ends_text}")

    def _requests(self, world: CaseState) -> Iterator[PurchaseStep]:
        for request in self.requests:
            if isinstance(request, Predicted) and self.each_person is not None:
                yield from request.model_copy(update={"each_person": self.each_person}).each(world)
            else:
                yield request

    def _end(self, world: CaseState, request: PurchaseStep, number: int, deployment: str) -> CallResult:
        # Ids have the step's number: a case may have several such steps.
        own = {"deployment": deployment, "id": f"alike-{world.step}-{number}"}
        step = request.model_copy(update=own)
        world.open_account(step.caller, deployment, step.ACCOUNT)
        asked = step.asked(world)
        seen = step.ask(world, asked)
        if seen.answered:
            step.check_answer(world, asked, seen)
        return replace(
            seen, messages=tuple(answer_checks.without_noise(each, world.about(deployment)) for each in seen.messages)
        )


_REFUSED = ("REQUEST_ID_REUSED", "PREDICTIONS_SHAPE", "QUERIES_OUT_OF_RANGE")
"""Reasons for refusing a request whose id was used for another one, or that is no longer valid."""


class Altered(Words):
    """A step that requests a batch, then others under its id that differ in one place each, then the batch again.

    One in `every` predictions is changed, by the smallest possible amount, one per call; so are the first, the middle
    and the last one.
    """

    do: Literal["altered"]
    request: Bought
    every: int = Field(default=1, ge=1)

    def run(self, world: CaseState) -> None:
        """Make the requests, and check how each call ends."""
        step = self.request.model_copy(update={"name": f"altered-{world.step}", "id": f"altered-{world.step}"})
        step.run(world)
        first = world.results[step.name].seen
        asked = step.asked(world)
        searches = "candidates" in {field.name for field, _ in asked.header.ListFields()}
        refused = (*_REFUSED, *(["REQUEST_MALFORMED"] if searches else []))  # of other models than candidates
        for what, other in (*_changed(asked, world), *self._others(world, asked)):
            seen = step.ask(world, other)
            if seen.answered or (seen.reason not in refused and not what.startswith("the field")):
                raise ProtocolViolation(f"a request with {what} changed {seen.text} under a used id")
        for rows in _as_other_types(asked):
            seen = step.ask(world, asked.with_rows(rows))
            if not seen.answered or repeated(seen) != repeated(first):
                raise ProtocolViolation(f"the same numbers as {rows.dtype} got another answer: {seen.text}")
        again = step.ask(world, asked)
        if not again.answered or repeated(again) != repeated(first):
            raise ProtocolViolation("the same request got another answer")

    def _others(self, world: CaseState, request: SentRequest) -> Iterator[tuple[str, SentRequest]]:
        header, rows = request.header, request.predictions
        if not rows.size:
            return
        places = sampled(world, range(0, rows.size, self.every))
        for place in dict.fromkeys([*places, rows.size - 1, rows.size // 2]):
            changed = np.ascontiguousarray(rows, rows.dtype.newbyteorder("<")).copy()
            # The least significant bit: the smallest possible difference.
            changed.reshape(-1).view(np.uint8)[place * rows.itemsize] ^= 1
            if changed.max() <= 1:
                yield f"prediction {place}", SentRequest(header, changed)
        if len(rows) > 1:
            yield "the order of models", SentRequest(header, np.ascontiguousarray(rows[::-1]))
            yield "a model more", request.with_rows(np.concatenate([rows, rows[-1:]]))
            yield "a model fewer", request.with_rows(rows[:-1])
            yield "two models", SentRequest(header, np.ascontiguousarray(rows[[1, 0, *range(2, len(rows))]]))
        yield "the order of people", SentRequest(header, np.ascontiguousarray(rows[:, ::-1]))
        if len(rows) == rows.shape[1]:
            yield "rows and columns", SentRequest(header, np.ascontiguousarray(rows.T))
        # The same bytes, as another shape.
        if len(rows) != rows.shape[1]:
            yield "the shape", request.with_header(shape=rows.shape[::-1])
        yield "the shape", request.with_header(shape=(rows.size,))


def _as_other_types(request: SentRequest) -> Iterator[NDArray[Any]]:
    """Yield the same numbers in every other type that can hold them."""
    rows = request.predictions
    if not rows.size:
        return
    for kind in (np.bool_, np.uint8, np.float32, np.float64):
        other = rows.astype(kind)
        if rows.dtype != kind and np.array_equal(other.astype(np.float64), rows.astype(np.float64)):
            yield other


def _changed(request: SentRequest, world: CaseState) -> Iterator[tuple[str, SentRequest]]:
    """Yield requests with one field of the header changed, mostly to an allowed value."""
    about, known = world.about(), world.subject.target.rows(world.deployment)
    for field in request.header.DESCRIPTOR.fields:
        if field.name in ("request_id", "deal_id", "predictions"):
            continue
        value, others = getattr(request.header, field.name), list[Any]()
        if field.type == field.TYPE_DOUBLE:
            others = [math.nextafter(value, 0.0), math.nextafter(value, math.inf)]
        elif field.name == "metric":
            others = [number_of(name) for name in about.metrics if number_of(name) != value][:2]
        elif field.name == "by" and field.is_repeated:
            others = [[name] for name in about.groups] + [list(about.groups), list(about.groups)[::-1]]
        elif field.name == "by":
            # The first column may be named or not.
            others = [name for name in about.by if {name, value} != {next(iter(about.by)), ""}]
        elif field.name == "candidates" and request.header.HasField(field.name):
            others = [None, *_other_candidates(value)]
        elif field.name == "measures":
            others = [[number_of_measure(name)] for name in about.measures] + [[*value, *_more(value, about)]]
        elif field.name == "rows_digest" and known is not None:
            others = [b"", digest_of(known[0], order_of(known[0]))]
        if field.has_presence and field.type == field.TYPE_DOUBLE:
            others += [None] if request.header.HasField(field.name) else [0.0]
        yield from (
            (f"the field {field.name}", request.with_header(**{field.name: other}))
            for other in others
            if other != value
        )


def _other_candidates(candidates: Candidates) -> Iterator[Candidates]:
    others: dict[str, Any] = {
        "names": [*candidates.names[:-1], f"{candidates.names[-1]}x"],
        "utilities": [*candidates.utilities[:-1], math.nextafter(candidates.utilities[-1], 0.0)],
        "baseline": (candidates.baseline + 1) % len(candidates.names),
        "at_least": math.nextafter(candidates.at_least, -1.0),
    }
    for name, value in others.items():
        other = Candidates()
        other.CopyFrom(candidates)
        other.ClearField(name)
        other.MergeFrom(Candidates(**{name: value}))
        yield other


def _more(measures: Sequence[int], about: DescribedDeployment) -> list[int]:
    return [number for name in about.measures if (number := number_of_measure(name)) not in measures][:1]


class Race(Words):
    """A step in which callers make `calls` calls each, all at the same time; each call has its own id.

    `answered` of them must be answered; the others are refused because of the budget, and report the remainder. Each
    caller must then have `left`. With `also` every other call goes to another deployment with the same ledger, and
    repeats go to the other one of the two. With `one_request` all calls of a caller have one id.
    """

    do: Literal["race"]
    callers: tuple[str, ...]
    deployment: str = ""
    also: str = ""
    one_request: bool = False
    calls: int = Field(default=1, ge=1)
    epsilon: Number
    answered: int
    left: float

    def run(self, world: CaseState) -> None:
        """Make the calls, and count the answers."""
        places = (self.deployment, self.also or self.deployment)
        steps: list[PurchaseStep] = [
            # `callers` are those of this service already.
            on(
                world.service, AuditStep(do="audit", id=f"race-{world.step}-{caller}-{name}", epsilon=self.epsilon)
            ).model_copy(update={"caller": caller, "deployment": places[number % 2]})
            for number in range(self.calls)
            for name in ["" if self.one_request else number]
            for caller in self.callers
        ]
        account = steps[0].ACCOUNT
        for caller in self.callers:
            for place in places:
                world.remaining(caller, place, account)  # so that all are connected
        ends = [seen for _, _, seen in together(world, steps)]
        for seen in ends:
            if not seen.answered:
                Expect(refused=("BUDGET_EXHAUSTED",)).check_end(seen)
        if (count := sum(seen.answered for seen in ends)) != self.answered:
            raise ProtocolViolation(f"{count} of {len(ends)} calls at the same time were answered; {self.answered} fit")
        for caller, place in itertools.product(self.callers, places):
            if (left := world.remaining(caller, place, account)) != self.left:
                raise ProtocolViolation(f"{caller} has epsilon {left!r} left; it should be {self.left!r}")
        for step, seen in zip(steps, ends, strict=True):
            elsewhere = step.model_copy(update={"deployment": places[step.deployment == places[0]]})
            again = elsewhere.ask(world, elsewhere.asked(world))
            if again.answered != seen.answered:
                raise ProtocolViolation(f"a call {seen.text}, and {again.text} when it was made again")
            if seen.answered and repeated(again) != repeated(seen):
                raise ProtocolViolation("the same request got another answer")


class Twins(Words):
    """A step that starts deployments anew, all at the same time, and makes the same calls to them at the same time.

    They differ at most in their people. Two callers make `calls` calls each, to each deployment and by each protected
    column, `times` times. The noise of calls with the same question must not be correlated.
    """

    do: Literal["twins"]
    deployments: tuple[str, ...] = Field(min_length=1)
    by: tuple[str, ...] = ("",)
    calls: int = Field(default=4, ge=1, le=8)
    times: int = Field(default=2, ge=1)
    models: int = 20
    anew: bool = True

    def run(self, world: CaseState) -> None:
        """Start the deployments, make the calls, and test the noise."""
        if not world.subject.starts:
            raise NotRun("needs a server that the tester starts")
        if self.anew:
            world.forget_connections()
            with ThreadPoolExecutor(len(self.deployments)) as starting:
                list(starting.map(world.subject.renew, self.deployments))
            for deployment in self.deployments:
                world.forget_purchases(deployment)
        batches = list(itertools.chain.from_iterable(self._ask(world, time) for time in range(self.times)))
        require_nothing_depends(batches)

    def _ask(self, world: CaseState, time: int) -> list[AnsweredBatch]:
        steps: list[PurchaseStep] = [
            on(
                world.service,
                AuditStep(
                    do="audit",
                    caller=caller,
                    deployment=deployment,
                    # The same id for each of the deployments, and for each of the callers.
                    id=f"twin-{world.step}-{time}-{number}-{by}",
                    by=by,
                    epsilon=1,
                    predictions=Predictions(models=self.models),
                ),
            )
            for number in range(self.calls)
            for caller in ("developer", "other")
            for deployment in self.deployments
            for by in self.by
        ]
        for step in steps:
            world.open_account(step.caller, step.deployment, step.ACCOUNT)
        batches, alike = [], dict[str, list[Result]]()
        for step, each, seen in sorted(together(world, steps), key=_left):
            step.expect.check_end(seen)
            result = step.check_answer(world, each, seen)
            if result.uniform is None or result.exact is None or result.noise is None:
                raise NotRun("needs the table of the test set, and a mechanism whose law the tester knows")
            for other in alike.setdefault(step.id.rpartition("-")[0], []):
                law.require_unrelated(result, other)
            alike[step.id.rpartition("-")[0]].append(result)
            asked_for = {"caller": step.caller, "deployment": step.deployment, "time": time}
            answers = result.exact if result.discrete else result.noise + result.exact
            batches.append(AnsweredBatch(asked_for, 2 * result.uniform - 1, result.exact, answers))
        return batches


def _left(call: tuple[PurchaseStep, Any, CallResult]) -> float:
    """Return a sort key for the order in which answers were charged."""
    step, _, seen = call
    return -float(step.told(seen).epsilon_remaining) if seen.answered else 0.0
