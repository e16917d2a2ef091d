"""A party's side of the referee: entering a run, and pulling deals until it is over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import grpc
import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from fairwall.errors import UserError
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceStub
from fairwall.rpc import channel
from fairwall.rpc.arrays import ArrayError, ArrivingArray
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.identity import Credentials
from fairwall.rpc.recorder import TranscriptRecorder
from fairwall.wire.v1 import array_pb2

PROTOCOL_VERSION = 3

_NOWHERE = "127.0.0.1:0"

Play = TypeVar("Play")


@dataclass(frozen=True)
class Seat:
    """A party's place in a run: channel to the referee, counterpart's address or "", credentials, recorder."""

    referee: grpc.Channel
    counterpart: str
    credentials: Credentials
    recorder: TranscriptRecorder | None = None

    def reach(self, party: str) -> AbstractContextManager[grpc.Channel]:
        """Open a channel to the counterpart, which must be that party; without an address, only calls fail."""
        return channel.connect(self.counterpart or _NOWHERE, party, self.credentials, self.recorder)


class _Part(Protocol):
    def WhichOneof(self, oneof_group: Any, /) -> Any: ...  # noqa: N802 - protobuf's own name


def join(referee: RefereeServiceStub) -> game.JoinResponse:
    """Enter the run; return once every party's address is known."""
    while True:
        response: game.JoinResponse = referee.Join(
            game.JoinRequest(protocol_version=PROTOCOL_VERSION), timeout=CALL_SECONDS
        )
        if response.turn != game.TURN_WAIT:
            return response


@contextmanager
def enter(
    referee: str, credentials: Credentials, recorder: TranscriptRecorder | None
) -> Iterator[tuple[game.Game, Seat]]:
    """Enter a referee's run while the context lasts; yield the game and the party's seat."""
    with channel.connect(referee, "referee", credentials, recorder) as connection:
        entered = join(RefereeServiceStub(connection))
        yield entered.game, Seat(connection, entered.counterpart_address, credentials, recorder)


def choose(games: Mapping[game.Game, Play], played: game.Game) -> Play:
    """Return a party's way to play a game; UserError for an unknown game."""
    if played not in games:
        raise UserError(f"the referee plays game {played}, which this version of the party does not know")
    return games[played]


def wait_for_the_end(seat: Seat) -> None:
    """Wait until the end of a game that deals this party nothing."""
    referee = RefereeServiceStub(seat.referee)
    while referee.AwaitEnd(game.AwaitEndRequest(), timeout=CALL_SECONDS).turn == game.TURN_WAIT:
        pass


def deals(
    take: Callable[..., Iterator[_Part]], request: Callable[..., Message]
) -> Iterator[tuple[Any, dict[str, NDArray[Any]]]]:
    """Yield deals until the run is over, each with its announced arrays, by the names of the announcing fields.

    `take` is the referee's method, which streams a deal's parts; `request` makes its argument from the last deal's id.
    """
    last = ""
    while True:
        parts = take(request(after_deal_id=last), timeout=CALL_SECONDS)
        first: Any = next(parts)
        if first.WhichOneof("part") == "turn":
            next(parts, None)  # nothing follows; the call has then ended on both sides
            if first.turn == game.TURN_OVER:
                return
            continue
        deal = first.deal
        arrays = collect(deal, parts)
        yield deal, arrays
        last = deal.deal_id


def collect(announcement: Message, parts: Iterable[_Part]) -> dict[str, NDArray[Any]]:
    """Return the arrays that a message announces in its ArrayHeader fields, from the ``<field>_chunk`` parts after it.

    ArrayError if a chunk belongs to no announced array, or an array is longer or shorter than announced.
    """
    arriving = {name: ArrivingArray(header) for name, header in announced(announcement)}
    for part in parts:
        kind = str(part.WhichOneof("part"))
        name = kind.removesuffix("_chunk")
        if name not in arriving:
            raise ArrayError(f"unexpected part {kind}")
        arriving[name].append(getattr(part, kind))
    return {name: array.finish() for name, array in arriving.items()}


def announced(message: Message) -> Iterator[tuple[str, array_pb2.ArrayHeader]]:
    """Yield the arrays that a message, or messages within it, announces, with the names of their fields."""
    for field, value in message.ListFields():
        if isinstance(value, array_pb2.ArrayHeader):
            yield field.name, value
        elif isinstance(value, Message):
            yield from announced(value)


def generator(seed: bytes) -> np.random.Generator:
    """Return a party's own random generator, from its dealt seed."""
    return np.random.default_rng(int.from_bytes(seed, "big"))
