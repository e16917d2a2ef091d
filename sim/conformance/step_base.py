"""Base classes and fields of all kinds of steps: numbers, streams of messages, and the end of a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Literal

import grpc
import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from fairwall.rpc import arrays
from fairwall.rpc.errors import CATALOGUE
from fairwall.wire.v1.array_pb2 import ArrayHeader
from fairwall.wire.v1.error_pb2 import Reason
from sim.conformance.calls import CallResult, ProtocolViolation
from sim.conformance.world import SECONDS, CaseState, Result, valid_number

_REASONS = {Reason.Name(reason).removeprefix("REASON_") for reason in CATALOGUE}

_STATUSES = {status.name for status in grpc.StatusCode}


def _known(is_known: Callable[[str], bool], what: str) -> AfterValidator:
    def check(value: Any) -> Any:
        if isinstance(value, str) and not is_known(value):
            raise ValueError(f"must be {what}")
        return value

    return AfterValidator(check)


Number = Annotated[float | str, _known(valid_number, 'a number, or such as "queries_max + 1"')]

Part = Literal["header", "chunks", "half", "byte", "empty", "garbage"]


class Words(BaseModel):
    """A part of a case; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Expect(Words):
    """The required end of a call, by default an answer.

    The call must be refused for one of the reasons `refused`, or fail with one of the statuses `fails`, without a
    reason; with `maybe` it may also be answered. It must repeat the answer of the earlier step `same_as` (a refusal:
    all that a caller sees), and not the noise of the step `unlike`. With `close` answers are the exact gaps up to the
    mechanism's noise; with `noise` the noise has its distribution. `probability` is the range of P(gap > threshold).
    """

    refused: tuple[Annotated[str, _known(_REASONS.__contains__, "a reason of docs/protocol.md")], ...] = ()
    fails: tuple[Annotated[str, _known(_STATUSES.__contains__, "a gRPC status")], ...] = ()
    maybe: bool = False
    same_as: str = ""
    unlike: str = ""
    close: bool = False
    noise: bool = False
    probability: tuple[float, float] | None = None

    def check_end(self, seen: CallResult) -> None:
        """Demand that a call ended as required."""
        wanted = [*(f"refused as {reason}" for reason in self.refused), *(f"failed as {name}" for name in self.fails)]
        fits = (
            seen.reason in self.refused
            or (not seen.reason and seen.status.name in self.fails)
            or ((self.maybe or not wanted) and seen.answered)
        )
        if not fits:
            may = [*wanted, *(["answered"] if self.maybe or not wanted else [])]
            raise ProtocolViolation(f"a call {seen.text}; it should have been {' or '.join(may)}")

    def check_told(self, seen: CallResult, world: CaseState, name: str) -> None:
        """Demand that terms, or other answers without noise, are those of `same_as`; `name` is for later steps."""
        if self.same_as and seen != world.results[self.same_as].seen:
            raise ProtocolViolation("two callers, or two deployments, were told unlike things")
        if name:
            world.results[name] = Result(seen)


class CallerStep(Words):
    """A caller's request to a deployment, by default the case's own."""

    caller: str = "developer"
    deployment: str = ""
    deadline: float | Literal["none"] = SECONDS
    metadata: dict[str, str] = Field(default_factory=dict)

    def sent_with(self) -> dict[str, Any]:
        """Return the deadline and metadata of a call, as arguments of `CaseState.call`."""
        seconds = None if self.deadline == "none" else self.deadline
        return {"seconds": seconds, "metadata": tuple(self.metadata.items())}


class Predictions(Words):
    """The models' predictions about `columns` people: scores in [0, 1] from the seed `random`.

    Instead of scores: zeros and ones from the seed `decisions`; one prediction for everybody (`fill`); or 1 for one
    `group` and 0 for the other, of another deployment's people if `of` names one. Then `put` changes some, each a
    (model, person, value); negative positions count from the end. They are sent in the type `kind`.
    """

    models: Number = 1
    columns: Number = "people"
    random: int = 1
    decisions: int | None = None
    fill: float | None = None
    group: Literal["advantaged", "disadvantaged"] | None = None
    of: str = ""
    put: tuple[tuple[int, int, float], ...] = ()
    kind: Literal["float64", "float32", "uint8", "bool"] = "float64"

    @property
    def are_decisions(self) -> bool:
        """Whether all predictions are 0 or 1, except those in `put`."""
        return (
            self.kind in ("uint8", "bool")
            or self.decisions is not None
            or self.group is not None
            or self.fill in (0, 1)
        )

    def make(self, world: CaseState, deployment: str) -> NDArray[Any]:
        """Return the predictions, shape (models, columns)."""
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


class Header(Words):
    """False statements in an array's header."""

    shape: tuple[Number, ...] | None = None
    element_type: int | None = None

    def of(self, array: NDArray[Any], world: CaseState, deployment: str) -> ArrayHeader:
        """Return an array's header, with the case's false statements."""
        announced = arrays.header_of(array)
        if self.shape is not None:
            shape = [int(world.number(each, deployment=deployment)) for each in self.shape]
            announced = ArrayHeader(element_type=announced.element_type, shape=shape)
        if self.element_type is not None:
            announced.element_type = self.element_type  # type: ignore[assignment]
        return announced


def stream_of(
    parts: Sequence[Part], header: bytes, data: bytes, size: int, chunk: Callable[[bytes], Message]
) -> Iterator[bytes]:
    """Yield the messages of a stream, in the parts of a case."""
    for part in parts:
        match part:
            case "header":
                yield header
            case "chunks" | "half":
                end = len(data) if part == "chunks" else len(data) // 2
                yield from (chunk(data[at : min(at + size, end)]).SerializeToString() for at in range(0, end, size))
            case "byte":
                yield chunk(b"\0").SerializeToString()
            case "empty":
                yield b""
            case "garbage":
                yield b"\xff\xff\xff"
