"""Base classes of the steps that buy something, whichever service sells it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray
from pydantic import Field

from fairwall.arrays import Floats
from fairwall.rpc import arrays
from fairwall.wire.rows import digest_of, order_of
from sim.conformance import calls, law
from sim.conformance.calls import CallResult, ProtocolViolation
from sim.conformance.step_base import CallerStep, Expect, Header, Number, Part, Predictions, stream_of
from sim.conformance.world import Account, CaseState, NotRun, Result, lasting, require_served


@dataclass(frozen=True, eq=False)
class SentRequest:
    """One request: its header, and the predictions that follow, empty if the service takes none."""

    header: Any
    predictions: NDArray[Any]

    def with_header(self, *, shape: Sequence[int] = (), **changed: Any) -> SentRequest:
        """Return this request with other header fields, or with another shape in the header."""
        header = type(self.header)()
        header.CopyFrom(self.header)
        for name, value in changed.items():
            if value is None:
                header.ClearField(name)
            elif isinstance(value, list):
                getattr(header, name)[:] = value
            elif isinstance(value, Message):
                getattr(header, name).CopyFrom(value)
            else:
                setattr(header, name, value)
        if shape:
            header.predictions.shape[:] = shape
        return SentRequest(header, self.predictions)

    def with_rows(self, rows: NDArray[Any]) -> SentRequest:
        """Return this request with other predictions, and their array header."""
        header = type(self.header)()
        header.CopyFrom(self.header)
        header.predictions.CopyFrom(arrays.header_of(rows))
        return SentRequest(header, np.ascontiguousarray(rows))


class PurchaseStep(CallerStep):
    """A step that requests something that is charged; later steps refer to it by `name`.

    `id` stands for a request id that no other case uses; `request_id` is sent verbatim, and no other run may use it.
    `epsilon` defaults to the smallest charge that the target's remaining budget shows. `metadata` is sent with the
    request. `together` is the number of simultaneous calls, each with its own id if they are `apart`; `answered` of
    them are answered. `times` is the number of successive calls, each with its own id.
    """

    METHOD: ClassVar[str]
    ACCOUNT: ClassVar[Account] = "audits"

    name: str = ""
    id: str = "a"
    request_id: str | None = None
    deal: str | None = None
    epsilon: Number = "unit"
    another_connection: bool = False
    together: int = Field(default=1, ge=1)
    apart: bool = False
    answered: int | None = None
    times: int = Field(default=1, ge=1)
    expect: Expect = Expect()

    @abstractmethod
    def asked(self, world: CaseState) -> SentRequest:
        """Return the request."""

    @abstractmethod
    def messages(self, request: SentRequest) -> Iterator[bytes]:
        """Yield the messages of a request."""

    @abstractmethod
    def check_answer(self, world: CaseState, request: SentRequest, seen: CallResult) -> Result:
        """Check an answer, enter its cost, and return its noise."""

    def run(self, world: CaseState) -> None:
        """Make the request, and check its end."""
        world.open_account(self.caller, self.deployment, self.ACCOUNT)
        if self.together > 1:
            self._run_together(world)
            return
        for step in self.each(world):
            step.run_once(world)

    def each(self, world: CaseState) -> Iterator[PurchaseStep]:  # noqa: ARG002
        """Yield the single purchases of this step, in order."""
        for number in range(self.times):
            yield self.model_copy(update={"id": f"{self.id}-{number}"} if self.times > 1 else {})

    def run_once(self, world: CaseState) -> None:
        """Make one call, and check its end."""
        asked = self.asked(world)
        seen = self.ask(world, asked)
        self.expect.check_end(seen)
        result = self.check_answer(world, asked, seen) if seen.answered else Result(seen)
        if seen.reason == "LEDGER_UNAVAILABLE":
            world.leave_open(self.caller, self.deployment, asked.header.request_id, asked.header.epsilon, self.ACCOUNT)
        world.require_numbers(self.caller, self.deployment, seen, asked.header.epsilon, self.ACCOUNT)
        self._compare(world, result)
        if self.name:
            world.results[self.name] = result

    def ask(self, world: CaseState, request: SentRequest) -> CallResult:
        """Send a request the way this step does, and wait for its end."""
        return require_served(self.METHOD, calls.finish(self.METHOD, self.start(world, request)))

    def start(self, world: CaseState, request: SentRequest) -> Any:
        """Start to send a request."""
        channel = world.channel(self.caller, self.deployment, another=self.another_connection)
        return calls.start(channel, self.METHOD, list(self.messages(request)), **self.sent_with())

    def named(self, world: CaseState) -> str:
        """Return the request id."""
        return world.request_id(self.id) if self.request_id is None else self.request_id

    def spends(self, world: CaseState) -> float:
        """Return the offered epsilon."""
        return world.number(self.epsilon, self.caller, self.deployment, self.ACCOUNT)

    def _run_together(self, world: CaseState) -> None:
        own = [{"id": f"{self.id}-{number}"} if self.apart else {} for number in range(self.together)]
        steps = [self.model_copy(update=each) for each in own]
        world.channel(self.caller, self.deployment)
        answers: dict[str, Any] = {}
        ends = together(world, steps)
        for _, each, seen in ends:
            if not seen.answered:
                self.expect.check_end(seen)
                continue
            if repeated(answers.setdefault(each.header.request_id, seen)) != repeated(seen):
                raise ProtocolViolation("one request at the same time got several answers")
        count = sum(seen.answered for _, _, seen in ends)
        if count != (self.together if self.answered is None else self.answered):
            raise ProtocolViolation(f"{count} of {self.together} calls at the same time were answered")
        told = {key: self.told(seen) for key, seen in answers.items()}
        world.enter_together(self.caller, self.deployment, told, self.ACCOUNT)

    def told(self, seen: CallResult) -> Any:
        """Return the part of an answer that has its cost."""
        return seen.messages[0]

    def _compare(self, world: CaseState, result: Result) -> None:
        if self.expect.same_as:
            earlier = world.results[self.expect.same_as]
            if replace(result.seen, messages=()) != replace(earlier.seen, messages=()):
                raise ProtocolViolation(f"a call {result.seen.text}, and {earlier.seen.text} before")
            if repeated(result.seen) != repeated(earlier.seen):
                raise ProtocolViolation("the same request got another answer")
        if self.expect.unlike:
            earlier = world.results[self.expect.unlike]
            if result.noise is None or earlier.noise is None:
                raise NotRun("needs the table of the test set")
            law.require_unrelated(result, earlier)


class Predicted(PurchaseStep):
    """A step that requests something about predictions.

    In its messages (`parts`) "half" is half of the chunks' bytes, "byte" one more byte, and "empty" a message without a
    part. The text of `unknown` goes into header fields that the protocol does not have. With `each_person` the request
    is made once per person, with this prediction about that person. `rows` says which digest is sent: of ids, or of ids
    and public columns; predictions are then in the order of the ids.
    """

    PART: ClassVar[type[Message]]

    predictions: Predictions = Predictions()
    header: Header = Header()
    parts: tuple[Part, ...] = ("header", "chunks")
    chunk_bytes: int = Field(default=1 << 20, ge=1)
    unknown: str = ""
    each_person: float | None = None
    rows: Literal["", "ids", "table", "others", "other columns", "cut"] = ""

    @abstractmethod
    def head(self, world: CaseState) -> Any:
        """Return the header, without the array header of the predictions."""

    def each(self, world: CaseState) -> Iterator[PurchaseStep]:
        """Yield the single purchases of this step, in order."""
        if self.each_person is None:
            yield from super().each(world)
            return
        for person in sampled(world, range(world.about(self.deployment).people)):
            changed = self.predictions.model_copy(update={"put": ((-1, person, self.each_person),)})
            yield self.model_copy(update={"predictions": changed, "id": f"{self.id}-{person}"})

    def asked(self, world: CaseState) -> SentRequest:
        """Return the request."""
        return self.asked_about(world, self.predictions.make(world, self.deployment))

    def asked_about(self, world: CaseState, predictions: NDArray[Any]) -> SentRequest:
        """Return the request about these predictions, given in the deal's order of people."""
        head = self.head(world)
        head.predictions.CopyFrom(self.header.of(predictions, world, self.deployment))
        if self.rows:
            digest, order = self._rows(world)
            head.rows_digest = digest
            predictions = np.ascontiguousarray(predictions[:, order])
        return SentRequest(head, predictions)

    def in_the_order_of_the_deal(self, world: CaseState, request: SentRequest) -> Floats:
        """Return a request's predictions in the deal's order of people; with a digest they are sent by id."""
        predictions = request.predictions.astype(np.float64)
        if self.rows:
            predictions = predictions[:, np.argsort(self._rows(world)[1])]
        return predictions

    def check_rows(self, answer: Any) -> None:
        """Demand that an answer says correctly whether rows were compared."""
        if self.rows and not answer.HasField("rows_compared"):
            raise NotRun("needs a server that knows its rows by ids")
        if answer.HasField("rows_compared") and answer.rows_compared != bool(self.rows):
            raise ProtocolViolation("an answer does not say whether rows were compared")

    def messages(self, request: SentRequest) -> Iterator[bytes]:
        """Yield the messages of a request."""
        data = arrays.to_message(request.predictions).data
        part: Any = self.PART
        return stream_of(
            self.parts, self._first(request), data, self.chunk_bytes, lambda chunk: part(predictions_chunk=chunk)
        )

    def _first(self, request: SentRequest) -> bytes:
        """Return the first message of a call, with unknown fields if the case has some."""
        data = request.header.SerializeToString()
        own = request.header.DESCRIPTOR.fields_by_number
        for number in (each for each in range(8, 16) if self.unknown and each not in own):
            # A string field that the protocol does not have (audits continue at 16): its tag, length and bytes.
            data += bytes([number << 3 | 2, len(self.unknown)]) + self.unknown.encode()
        part: Any = self.PART
        return bytes(part(header=type(request.header).FromString(data)).SerializeToString())

    def _rows(self, world: CaseState) -> tuple[bytes, NDArray[np.intp]]:
        """Return the digest that is sent, and the order of the ids."""
        known = world.subject.target.rows(self.deployment or world.deployment)
        if known is None:
            raise NotRun("needs a deployment whose rows have ids")
        ids, public = known
        order = order_of(ids)
        match self.rows:
            case "others":
                ids = [*ids[:-1], b"somebody else"]
                return digest_of(ids, order_of(ids)), order
            case "other columns":
                return digest_of(ids, order, {name: values[::-1] for name, values in public.items()}), order
            case "cut":
                return digest_of(ids, order)[:16], order
            case _:
                return digest_of(ids, order, public if self.rows == "table" else None), order


def sampled(world: CaseState, places: Sequence[int]) -> Sequence[int]:
    """Return all places on the audit service, which has cases about single ones, and one in seven on the others."""
    return places if world.service == "audit" else [*places[::-_ONE_OF]]


_ONE_OF = 7


def together(world: CaseState, steps: Sequence[PurchaseStep]) -> list[tuple[Any, SentRequest, CallResult]]:
    """Make all steps' requests at the same time, and wait for their ends."""
    asked = [step.asked(world) for step in steps]
    started = [step.start(world, each) for step, each in zip(steps, asked, strict=True)]
    ends = [calls.finish(step.METHOD, call) for step, call in zip(steps, started, strict=True)]
    return list(zip(steps, asked, ends, strict=True))


def again(
    world: CaseState, caller: str, steps: Sequence[PurchaseStep], before: Sequence[CallResult], when: str
) -> None:
    """Repeat all requests: answered ones get the same answer, and all are charged, in some order."""
    answers = {}
    for step, earlier in zip(steps, before, strict=True):
        asked = step.asked(world)
        seen = step.ask(world, asked)
        step.expect.check_end(seen)
        if earlier.answered and repeated(earlier) != repeated(seen):
            raise ProtocolViolation(f"what was answered {when} is answered otherwise")
        answers[asked.header.request_id] = step.told(seen)
    world.enter_together(caller, "", answers, steps[0].ACCOUNT)


def repeated(seen: CallResult) -> list[Any]:
    """Return an answer without the fields that a repeat may change, and with its chunks joined."""
    chunks = [each.encoded_chunk for each in seen.messages if each.DESCRIPTOR.fields_by_name.get("encoded_chunk")]
    return [*map(lasting, seen.messages[: 1 if chunks else None]), b"".join(chunks)]
