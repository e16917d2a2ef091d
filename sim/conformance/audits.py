"""The kinds of steps that ask for audits. A step's keys are the fields of its class."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import grpc
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairwall.compliance.v1.audit_service_pb2 import AuditHeader, AuditModelsRequest, AuditRequest
from fairwall.rpc import arrays
from fairwall.wire.metrics import name_of, number_of
from fairwall.wire.v1.metric_pb2 import Metric
from sim.conformance import calls, law, told
from sim.conformance.calls import Seen, Violation
from sim.conformance.promise import promise_of
from sim.conformance.vocabulary import Asks, Expect, Header, Number, Part, Words, stream_of
from sim.conformance.world import SECONDS, NotRun, Result, World, lasting

AUDIT = "/fairwall.compliance.v1.AuditService/Audit"

AUDIT_MODELS = "/fairwall.compliance.v1.AuditService/AuditModels"


class Predictions(Words):
    """What the models predict about so many people (`columns`): scores in [0, 1], of the seed `random`.

    In place of scores: zeros and ones, of the seed `decisions`; one prediction for everybody (`fill`); or 1 for one
    `group` and 0 for the other, of another deployment's people where `of` names it. Then `put` changes some, each a
    (model, person, value); negative positions count from the end. They travel in the type `kind`.
    """

    models: Number = 1
    columns: Number = "people"
    random: int = 1
    decisions: int | None = None
    fill: float | None = None
    group: Literal["advantaged", "disadvantaged"] | None = None
    of: str = ""
    put: tuple[tuple[int, int, float], ...] = ()
    kind: Literal["float64", "float32", "uint8"] = "float64"

    def make(self, world: World, deployment: str) -> NDArray[Any]:
        """Make them, shape (models, columns)."""
        shape = tuple(int(world.number(each, deployment=deployment)) for each in (self.models, self.columns))
        if self.group is not None:
            wanted = self.group == "advantaged"
            rows = np.tile(world.people(self.of or deployment).protected == wanted, (shape[0], 1)).astype(np.float64)
        elif self.fill is not None:
            rows = np.full(shape, self.fill)
        elif self.decisions is not None:
            rows = np.random.default_rng(self.decisions).integers(0, 2, shape).astype(np.float64)
        else:
            rows = np.random.default_rng(self.random).random(shape)
        for model, person, value in self.put:
            rows[model, person] = value
        return rows.astype(self.kind)


class Audit(Asks):
    """Asks for one batch.

    `name` is what later steps call it. `id` stands for a request id that no other case uses; `request_id` is one word
    for word, which no other run may use. Unless told otherwise `metric` is the first that is allowed ("not allowed":
    one that is not), and `epsilon` the smallest charge that the target can be asked to count. Of its messages (`parts`)
    "half" is half of the chunks' bytes, "byte" one more, and "empty" no part. `metadata` goes beside the request; the
    text of `unknown` into fields of the header that the protocol does not have.

    With `together` so many such calls are made at the same time, each under an id of its own where they are `apart`,
    and `answered` of them are answered. With `times` so many are made one after another, each under an id of its own;
    with `each_person` one a person, with this prediction about that person.
    """

    do: Literal["audit"]
    name: str = ""
    id: str = "a"
    request_id: str | None = None
    deal: str | None = None
    metric: str | int | None = None
    epsilon: Number = "unit"
    threshold: float | None = None
    predictions: Predictions = Predictions()
    header: Header = Header()
    parts: tuple[Part, ...] = ("header", "chunks")
    chunk_bytes: int = Field(default=1 << 20, ge=1)
    unknown: str = ""
    another_connection: bool = False
    together: int = Field(default=1, ge=1)
    apart: bool = False
    answered: int | None = None
    times: int = Field(default=1, ge=1)
    each_person: float | None = None
    expect: Expect = Expect()

    def run(self, world: World) -> None:
        """Ask, and look at what comes."""
        world.open_account(self.caller, self.deployment)
        if self.together > 1:
            self._run_together(world)
        elif self.each_person is not None:
            for person in range(world.about(self.deployment).people):
                changed = self.predictions.model_copy(update={"put": ((-1, person, self.each_person),)})
                step = self.model_copy(update={"predictions": changed, "id": f"{self.id}-{person}"})
                step._run_once(world)
        else:
            for number in range(self.times):
                own = {"id": f"{self.id}-{number}"} if self.times > 1 else {}
                self.model_copy(update=own)._run_once(world)

    def _run_once(self, world: World) -> None:
        asked = self.asked(world)
        seen = self.ask(world, asked)
        self.expect.check_end(seen)
        result = self.check_answer(world, asked, seen) if seen.answered else Result(seen)
        world.require_numbers(self.caller, self.deployment, seen, asked.header.epsilon)
        self._compare(world, result)
        if self.name:
            world.results[self.name] = result

    def _run_together(self, world: World) -> None:
        steps = [
            self.model_copy(update={"id": f"{self.id}-{number}"} if self.apart else {})
            for number in range(self.together)
        ]
        world.channel(self.caller, self.deployment)
        answers: dict[str, Any] = {}
        ends = together(world, steps)
        for _, each, seen in ends:
            if not seen.answered:
                self.expect.check_end(seen)
                continue
            answer = seen.messages[0]
            if lasting(answers.setdefault(each.header.request_id, answer)) != lasting(answer):
                raise Violation("one request at the same time got several answers")
        count = sum(seen.answered for _, _, seen in ends)
        if count != (self.together if self.answered is None else self.answered):
            raise Violation(f"{count} of {self.together} calls at the same time were answered")
        world.enter_together(self.caller, self.deployment, answers)

    def ask(self, world: World, asked: Asked) -> Seen:
        """Send a request as this step has it, and wait for its end."""
        return calls.finish(AUDIT, self.start(world, asked))

    def asked(self, world: World) -> Asked:
        """Make the request."""
        about = world.about(self.deployment)
        predictions = self.predictions.make(world, self.deployment)
        header = AuditHeader(
            request_id=world.request_id(self.id) if self.request_id is None else self.request_id,
            deal_id=about.deal if self.deal is None else self.deal,
            metric=self._metric(world),
            epsilon=world.number(self.epsilon, self.caller, self.deployment),
            predictions=self.header.of(predictions, world, self.deployment),
            threshold=self.threshold,
        )
        return Asked(header, predictions)

    def _metric(self, world: World) -> Any:
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

    def _messages(self, asked: Asked) -> Iterator[bytes]:
        data, header = arrays.to_message(asked.predictions).data, asked.header_message(self.unknown)
        return stream_of(self.parts, header, data, self.chunk_bytes, lambda part: AuditRequest(predictions_chunk=part))

    def start(self, world: World, asked: Asked) -> Any:
        """Begin to send a request."""
        channel = world.channel(self.caller, self.deployment, another=self.another_connection)
        return calls.start(channel, AUDIT, list(self._messages(asked)), **self.sent_with())

    def check_answer(self, world: World, asked: Asked, seen: Seen) -> Result:
        """Look at an answer, enter what it costs, and find its noise."""
        answer = seen.messages[0]
        header, people = asked.header, world.subject.target.people(self.deployment or world.deployment)
        world.enter(self.caller, self.deployment, header.request_id, header.epsilon, answer)
        models = len(asked.predictions)
        gaps = _numbers(answer, "gaps", models)
        ends = [tuple(_numbers(answer, field, models) for field in pair) for pair in told.INTERVALS]
        self._check_probability(answer, models)
        metric, about = name_of(header.metric), world.about(self.deployment)
        told.require_written_down(gaps, about)
        for low, high in ends:
            told.require_ends_written_down(low, high, about, metric)
        if people is None:
            if self.expect.close or self.expect.noise or self.expect.interval:
                raise NotRun("needs the table of the test set")
            return Result(seen)
        above = _numbers(answer, "probability_above", models) if self.threshold is not None else None
        predictions = asked.predictions.astype(np.float64)
        for low, high in ends:
            answers = told.Answers(gaps, low, high, above)
            told.require_recomputed(answers, about, people, metric, predictions, header.epsilon, self.threshold)
        exact = law.exact_gaps(people, metric, predictions)
        world.exact.extend(exact)
        noise: NDArray[np.float64] = gaps - exact
        promised = promise_of(about, people, metric, models, header.epsilon)
        if promised is None:
            if self.expect.close or self.expect.noise or self.expect.interval:
                raise NotRun("needs a mechanism whose law the tester knows")
            return Result(seen, noise, exact)
        if self.expect.close:
            law.require_close(noise, promised.law)
        if self.expect.noise:
            law.require_noise(noise, promised.law)
        if self.expect.interval:
            law.require_interval(low, high, gaps, exact, metric, promised.law)
        # Not seeded: what is tested must not be able to tell it in advance.
        return Result(seen, noise, exact, promised.uniform(gaps, exact, np.random.default_rng()))

    def _check_probability(self, answer: Any, models: int) -> None:
        if answer.HasField("probability_above") != (self.threshold is not None):
            raise Violation("probability_above is told if and only if a threshold was given")
        if self.threshold is None:
            return
        values = _numbers(answer, "probability_above", models)
        known = values[~np.isnan(values)]
        least, most = self.expect.probability if isinstance(self.expect.probability, tuple) else (0.0, 1.0)
        if not ((known >= least) & (known <= most)).all():
            raise Violation(f"probability_above must lie between {least:g} and {most:g}, and is {known.tolist()}")

    def _compare(self, world: World, result: Result) -> None:
        if self.expect.same_as:
            earlier = world.results[self.expect.same_as]
            if replace(result.seen, messages=()) != replace(earlier.seen, messages=()):
                raise Violation(f"a call {result.seen.text}, and {earlier.seen.text} before")
            if list(map(lasting, result.seen.messages)) != list(map(lasting, earlier.seen.messages)):
                raise Violation("the same request got another answer")
        if self.expect.unlike:
            earlier = world.results[self.expect.unlike]
            if result.noise is None or earlier.noise is None:
                raise NotRun("needs the table of the test set")
            law.require_unrelated(result.noise, earlier.noise)


@dataclass(frozen=True, eq=False)
class Asked:
    """One request: its header, and the predictions that follow."""

    header: AuditHeader
    predictions: NDArray[Any]

    def with_header(self, *, shape: Sequence[int] = (), **changed: float) -> Asked:
        """Return it with other fields of its header, or with another shape told there."""
        header = AuditHeader()
        header.CopyFrom(self.header)
        for name, value in changed.items():
            setattr(header, name, value)
        if shape:
            header.predictions.shape[:] = shape
        return Asked(header, self.predictions)

    def with_rows(self, rows: NDArray[Any]) -> Asked:
        """Return it with other predictions, as its header says."""
        header = AuditHeader()
        header.CopyFrom(self.header)
        header.predictions.CopyFrom(arrays.header_of(rows))
        return Asked(header, np.ascontiguousarray(rows))

    def header_message(self, unknown: str) -> bytes:
        """Write the first message of a call, with fields that the protocol does not have where a case has some."""
        data = self.header.SerializeToString()
        for number in range(7, 16) if unknown else ():
            # A string field that the protocol does not have (it goes on at 16): its tag, its length, its bytes.
            data += bytes([number << 3 | 2, len(unknown)]) + unknown.encode()
        inside = AuditHeader.FromString(data)
        return AuditRequest(header=inside).SerializeToString()


def together(world: World, steps: Sequence[Audit]) -> list[tuple[Audit, Asked, Seen]]:
    """Ask for each step's batch, all at the same time, and wait for all ends."""
    asked = [step.asked(world) for step in steps]
    started = [step.start(world, each) for step, each in zip(steps, asked, strict=True)]
    ends = [calls.finish(AUDIT, call) for call in started]
    return list(zip(steps, asked, ends, strict=True))


def again(world: World, caller: str, steps: Sequence[Audit], before: Sequence[Seen], when: str) -> None:
    """Ask all that was asked before again: what was answered is answered alike, and all is charged in some order."""
    answers = {}
    for step, earlier in zip(steps, before, strict=True):
        asked = step.asked(world)
        seen = step.ask(world, asked)
        step.expect.check_end(seen)
        if earlier.answered and lasting(earlier.messages[0]) != lasting(seen.messages[0]):
            raise Violation(f"what was answered {when} is answered otherwise")
        answers[asked.header.request_id] = seen.messages[0]
    world.enter_together(caller, "", answers)


def _numbers(answer: Any, field: str, models: int) -> NDArray[np.float64]:
    numbers = calls.numbers(getattr(answer, field), field, models, "model")
    told.require_plain(field, numbers)
    return numbers


class Repeated(Words):
    """Asks the same again and again, each time under another id, and tests all the noise together."""

    do: Literal["repeated"]
    calls: int = Field(ge=2)
    metric: str | None = None
    epsilon: Number = 1.0
    predictions: Predictions = Predictions()

    def run(self, world: World) -> None:
        """Ask, and look at the noise."""
        about, people = world.about(), world.people()
        metric = self.metric or about.metrics[0]
        models, epsilon = int(world.number(self.predictions.models)), world.number(self.epsilon)
        promised = promise_of(about, people, metric, models, epsilon)
        if promised is None:
            raise NotRun("needs a mechanism whose law the tester knows")
        noise = []
        for number in range(self.calls):
            name = f"repeated-{models}-{number}"
            Audit(do="audit", name=name, id=name, metric=metric, epsilon=epsilon, predictions=self.predictions).run(
                world
            )
            found = world.results[name].noise
            assert found is not None, "the table is known"
            noise.append(found)
        law.require_noise_everywhere(np.stack(noise), promised.law)


class Alike(Words):
    """Makes the same calls to several deployments, and demands that each ends in the same way, word for word.

    How each of them ends does not matter; what it is that the callers see does. With `each_person` each request is made
    once a person, with this prediction about that person.
    """

    do: Literal["alike"]
    deployments: tuple[str, ...] = Field(min_length=2)
    requests: tuple[Audit, ...] = Field(min_length=1)
    each_person: float | None = None

    def run(self, world: World) -> None:
        """Call, and compare."""
        for number, request in enumerate(self._requests(world)):
            ends = [self._end(world, request, number, deployment) for deployment in self.deployments]
            if any(end != ends[0] for end in ends):
                told = "; ".join(f"{name}: {end.text}" for name, end in zip(self.deployments, ends, strict=True))
                raise Violation(f"call {number + 1} ended otherwise for other people: {told}")

    def _requests(self, world: World) -> Iterator[Audit]:
        if self.each_person is None:
            yield from self.requests
            return
        for request in self.requests:
            for person in range(world.about().people):
                put = ((0, person, self.each_person),)
                yield request.model_copy(update={"predictions": request.predictions.model_copy(update={"put": put})})

    def _end(self, world: World, request: Audit, number: int, deployment: str) -> Seen:
        # Ids are those of the step: a world has several of them.
        own = {"deployment": deployment, "id": f"alike-{world.step}-{number}"}
        step = request.model_copy(update=own)
        world.open_account(step.caller, deployment)
        asked = step.asked(world)
        seen = step.ask(world, asked)
        if seen.answered:
            step.check_answer(world, asked, seen)
        return replace(
            seen, messages=tuple(told.without_noise(each, world.about(deployment)) for each in seen.messages)
        )


class AuditModels(Words):
    """Asks for one batch of models that compliance would query itself."""

    do: Literal["audit_models"]
    caller: str = "developer"
    deployment: str = ""
    id: str = "a"
    deal: str | None = None
    metric: str | None = None
    epsilon: Number = "unit"
    models: Number = 1
    expect: Expect = Expect()

    def run(self, world: World) -> None:
        """Ask, and look at how it ends."""
        about = world.about(self.deployment)
        world.open_account(self.caller, self.deployment)
        request = AuditModelsRequest(
            request_id=world.request_id(self.id),
            deal_id=about.deal if self.deal is None else self.deal,
            metric=number_of(self.metric or about.metrics[0]),
            epsilon=world.number(self.epsilon, self.caller, self.deployment),
            models=int(world.number(self.models)),
        )
        data = [request.SerializeToString()]
        self.expect.check_end(world.call(AUDIT_MODELS, data, self.caller, deployment=self.deployment))


@dataclass
class _Held:
    method: str
    call: Any
    release: threading.Event
    again: Callable[[], _Held]
    """Opens it anew."""


class Hold(Words):
    """Opens calls that send a part of what they have to send, and then nothing more.

    They are made over so many `connections`, since a server may limit the calls of each, and send `sends`, see `Audit`;
    of any `method` ("/package.Service/Method") but `Audit` nothing is sent. They stay open until a step lets go of them
    ("wait"); are cancelled at once; until their deadline has passed; or it is the server that must end them ("at
    once"), as `expect` says, although nothing more comes.
    """

    do: Literal["hold"]
    caller: str = "developer"
    deployment: str = ""
    method: str = AUDIT
    id: str = "held"
    calls: int = Field(default=1, ge=1)
    connections: int = Field(default=1, ge=1)
    sends: tuple[Part, ...] = ("header",)
    deadline: float | Literal["none"] = SECONDS
    ends: Literal["wait", "cancel", "deadline", "at once"] = "wait"
    expect: Expect = Expect()

    def run(self, world: World) -> None:
        """Open them, and end them as told."""
        world.open_account(self.caller, self.deployment)
        others = [world.channel(self.caller, self.deployment, another=True) for _ in range(self.connections - 1)]
        channels = [world.channel(self.caller, self.deployment), *others]
        opened = [self._open(world, channels[number % len(channels)], number) for number in range(self.calls)]
        if self.ends == "wait":
            world.held += opened
            return
        if self.ends == "at once":
            self._await(opened)
            return
        for each in opened:
            if self.ends == "cancel":
                time.sleep(0.05)  # so that what was sent is on its way
                each.call.cancel()
            seen = calls.finish(self.method, each.call)
            each.release.set()
            if seen.answered or seen.reason:
                raise Violation(f"a call that was not sent to its end {seen.text}")

    def _await(self, opened: list[_Held]) -> None:
        give_up = time.monotonic() + _AT_ONCE_SECONDS
        try:
            while not all(each.call.done() for each in opened):
                if time.monotonic() > give_up:
                    raise Violation(f"a call that sends nothing has no answer within {_AT_ONCE_SECONDS:g} seconds")
                time.sleep(0.01)
            for each in opened:
                self.expect.check_end(calls.finish(self.method, each.call))
        finally:
            for each in opened:
                each.release.set()
                each.call.cancel()

    def _open(self, world: World, channel: grpc.Channel, number: int) -> _Held:
        messages: list[bytes] = []
        if self.method == AUDIT:
            step = Audit(
                do="audit", caller=self.caller, deployment=self.deployment, id=f"{self.id}-{number}", parts=self.sends
            )
            messages = list(step._messages(step.asked(world)))
        release = threading.Event()
        seconds = None if self.deadline == "none" else self.deadline

        def silent() -> Iterator[bytes]:
            yield from messages
            release.wait((seconds or 0.0) + SECONDS)  # the deadline ends the call, not we

        again = partial(self._open, world, channel, number)
        call = calls.start(channel, self.method, silent(), seconds, streamed=True)
        return _Held(self.method, call, release, again)


_AT_ONCE_SECONDS = 8.0
"""How long a busy machine may take to refuse a call that has just arrived."""


class LetGo(Words):
    """Ends the calls that were held open: they have nothing more to send."""

    do: Literal["let_go"]
    expect: Expect = Expect()

    def run(self, world: World) -> None:
        """Half-close them, and look at how they end."""
        for each in world.held:
            each.release.set()
        for each in world.held:
            self.expect.check_end(calls.finish(each.method, each.call))
        world.held.clear()
