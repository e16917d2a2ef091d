"""The dealer of any game: it sends the cards to a party once they are ready, and takes submissions in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import grpc

from fairwall.rpc.arrays import header_of
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.game import Watch
from sim.games.referee import Arrays, in_chunks
from sim.games.table import GameTable, Trial

T = TypeVar("T", bound=Trial)
D = TypeVar("D")
O = TypeVar("O")  # noqa: E741 - a game's outcome


class TableDealer(Generic[T, D, O]):
    """Base class of the games' dealers, which add their service's methods; `kind` is the class of their trials."""

    kind: type[T]
    serve: Callable[[Any, grpc.Server], None]

    def __init__(self, table: GameTable) -> None:
        self.table = table

    def register(self, server: grpc.Server, watch: Watch) -> None:
        """Register the game's service with a server."""
        type(self).serve(watch(self), server)

    def play(self, deal: D, seconds: float) -> O:
        """Play one deal to its end, see `Dealer.play`."""
        trial = self.kind(deal)  # type: ignore[arg-type]  # a trial of this kind has such a deal
        self.table.play(trial, seconds)
        return self.outcome(trial)

    def outcome(self, trial: T) -> O:
        """Return the outcome of a finished trial; TrialFailed if the parties' submissions contradict one another."""
        raise NotImplementedError

    @contextmanager
    def turn(self, deal_id: str, ready: Callable[[T], bool]) -> Iterator[T]:
        """Yield the trial that is being played, locked for changes; Refusal (out of turn) if it is not `ready`."""
        with self.table.changing():
            trial = self.table.playing(self.kind, deal_id)
            if not ready(trial):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            yield trial


def deals(
    response: Any, cards: Callable[[T], tuple[Any, Arrays]], ready: Callable[[T], bool]
) -> Callable[[TableDealer[T, Any, Any], Any, grpc.ServicerContext], Iterator[Any]]:
    """Return the service method that deals to a party once a trial is `ready`.

    `cards` returns a trial's message and, by name, the arrays that follow it; the method adds their headers and the
    deal's id.
    """

    def take(dealer: TableDealer[T, Any, Any], request: Any, _: grpc.ServicerContext) -> Iterator[Any]:
        trial = dealer.table.take(dealer.kind, request.after_deal_id, ready)
        if not isinstance(trial, dealer.kind):
            yield response(turn=trial)
            return
        deal, arrays = cards(trial)
        deal.deal_id = trial.deal.deal_id
        for name, array in arrays.items():
            getattr(deal, name).CopyFrom(header_of(array))
        yield response(deal=deal)
        yield from in_chunks(response, arrays)

    return take
