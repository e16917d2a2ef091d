"""The words that every kind of step uses: numbers, streams of messages, and how a call must end."""

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
from sim.conformance.calls import Seen, Violation
from sim.conformance.world import SECONDS, Result, World, valid_number

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
    """What a case says; a key that nobody knows is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Expect(Words):
    """How a call must end. By default it is answered.

    It must be refused for one of the reasons `refused`, or fail with one of the statuses `fails`, without a reason;
    with `maybe` it may be answered as well. It must repeat the answer of an earlier step (`same_as`; for a refusal: all
    that a caller sees), and not the noise of one (`unlike`). With `close` answers are the exact gaps, but for noise of
    the mechanism's law; with `noise` the noise has that law. `probability` says between what P(gap > threshold) lies.
    """

    refused: tuple[Annotated[str, _known(_REASONS.__contains__, "a reason of docs/protocol.md")], ...] = ()
    fails: tuple[Annotated[str, _known(_STATUSES.__contains__, "a gRPC status")], ...] = ()
    maybe: bool = False
    same_as: str = ""
    unlike: str = ""
    close: bool = False
    noise: bool = False
    probability: tuple[float, float] | None = None

    def check_end(self, seen: Seen) -> None:
        """Demand that a call ended as it must."""
        wanted = [*(f"refused as {reason}" for reason in self.refused), *(f"failed as {name}" for name in self.fails)]
        fits = (
            seen.reason in self.refused
            or (not seen.reason and seen.status.name in self.fails)
            or ((self.maybe or not wanted) and seen.answered)
        )
        if not fits:
            may = [*wanted, *(["answered"] if self.maybe or not wanted else [])]
            raise Violation(f"a call {seen.text}; it should have been {' or '.join(may)}")

    def check_told(self, seen: Seen, world: World, name: str) -> None:
        """Demand that terms, or any answer without noise, are those of `same_as`; later steps call them by the name."""
        if self.same_as and seen != world.results[self.same_as].seen:
            raise Violation("two callers, or two deployments, were told unlike things")
        if name:
            world.results[name] = Result(seen)


class Asks(Words):
    """What a caller asks a deployment, by default the case's own."""

    caller: str = "developer"
    deployment: str = ""
    deadline: float | Literal["none"] = SECONDS
    metadata: dict[str, str] = Field(default_factory=dict)

    def sent_with(self) -> dict[str, Any]:
        """Return what goes with a call, as `World.call` has it."""
        seconds = None if self.deadline == "none" else self.deadline
        return {"seconds": seconds, "metadata": tuple(self.metadata.items())}


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
    kind: Literal["float64", "float32", "uint8", "bool"] = "float64"

    @property
    def are_decisions(self) -> bool:
        """Whether all of them are 0 or 1, but for those that are put."""
        return (
            self.kind in ("uint8", "bool")
            or self.decisions is not None
            or self.group is not None
            or self.fill in (0, 1)
        )

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


class Header(Words):
    """What an array's header says, where it does not say the truth."""

    shape: tuple[Number, ...] | None = None
    element_type: int | None = None

    def of(self, array: NDArray[Any], world: World, deployment: str) -> ArrayHeader:
        """Describe an array as the case has it."""
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
    """Give the messages of a stream, as a case has them."""
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
