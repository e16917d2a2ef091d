"""The dealer of any game: it deals the game's own cards once they are ready, and takes submissions in turn."""

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
from sim.games.table import Table, Trial

T = TypeVar("T", bound=Trial)
D = TypeVar("D")
O = TypeVar("O")  # noqa: E741 - a game's outcome


class TableDealer(Generic[T, D, O]):
    """What dealers have in common: a game's own has its service's methods besides, and says what came of a trial.

    Attributes
    ----------
    kind : of which kind its trials are.
    serve : registers its service with a server.
    table : where it deals.
    """

    kind: type[T]
    serve: Callable[[Any, grpc.Server], None]

    def __init__(self, table: Table) -> None:
        self.table = table

    def register(self, server: grpc.Server, watch: Watch) -> None:
        """Serve the game's service."""
        type(self).serve(watch(self), server)

    def play(self, deal: D, seconds: float) -> O:
        """Play one deal to its end. See `Dealer.play`."""
        trial = self.kind(deal)  # type: ignore[arg-type]  # a trial of this kind has such a deal
        self.table.play(trial, seconds)
        return self.outcome(trial)

    def outcome(self, trial: T) -> O:
        """Say what came of a trial that is over; TrialFailed if the parties contradict one another."""
        raise NotImplementedError

    @contextmanager
    def turn(self, deal_id: str, ready: Callable[[T], bool]) -> Iterator[T]:
        """Give the trial that is played, for the body to change, to whoever's turn it is."""
        with self.table.changing():
            trial = self.table.playing(self.kind, deal_id)
            if not ready(trial):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            yield trial


def deals(
    response: Any, cards: Callable[[T], tuple[Any, Arrays]], ready: Callable[[T], bool]
) -> Callable[[TableDealer[T, Any, Any], Any, grpc.ServicerContext], Iterator[Any]]:
    """Make the method that deals to a party, once a trial is ready.

    ``cards`` gives a trial's message and the arrays that follow it, by name: the message gets their headers here, and
    the deal's id.
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
