"""Ledgers with a fault in their protocol, each in one place, of which the exploration has to find every one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from compliance.ledger import Ledger, _Covered, _Held
from compliance.ledger.entries import Books, LedgerEntry, Reply, Request, Room
from compliance.ledger.head import AnySeal, Head
from compliance.ledger.store import LedgerUnavailable
from tests.simulation.world import Places, sealed_in


def replies_before_the_commit(
    ledger: Ledger, request: Request, draw: Callable[[tuple[bytes, ...]], Reply], leave: Callable[[bytes], None]
) -> None:
    def charge(held: _Held, asked: Request, reply: Reply) -> LedgerEntry:
        entry = Ledger._charge(ledger, held, asked, reply)
        leave(reply.answer)
        return entry

    ledger._charge = charge  # type: ignore[method-assign]
    leave(ledger.settle(request, draw).reply.answer)


class SealsBeforeTheCommit(Ledger):
    def _charge(self, held: _Held, request: Request, reply: Reply) -> LedgerEntry:
        entry = super()._charge(held, request, reply)
        assert held.chain.seal is not None
        held.chain.seal.write(Head(entry.sequence, entry.chain))
        return entry


class RepliesBeforeTheSeal(Ledger):
    def _seal_head(self, dataset: str) -> None:
        """The next request seals it."""


class RepeatsBeforeTheSeal(Ledger):
    """What a request has bought is looked up before the last record is sealed."""

    def _open(self, request: Request, room: Room | None) -> LedgerEntry | _Covered:
        with self._store.session(self._store.chain_of(request.dataset)) as session:
            found = session.find(request.developer, request.request_id)
        return found[0] if found else super()._open(request, room)


class RepeatsWhatItOnlyLookedAt(Ledger):
    """Whether it is sealed where the chain ends is not asked before a stored answer leaves."""

    @contextlib.contextmanager
    def _seen(self, dataset: str) -> Iterator[tuple[_Held | None, int]]:
        with super()._seen(dataset) as (seen, sealed):
            yield seen, sealed if seen is None else seen.books.head.sequence


class LooksBeforeTheTurn(Ledger):
    """Whether a request is answered already is looked at once, before its answer is computed."""

    def _sell(
        self, request: Request, reply: Reply, found: _Covered, minimum_group: int, room: Room | None
    ) -> LedgerEntry | None:
        with self._held(request.dataset) as held:
            self._covered(held, request, room)
            return self._charge(held, request, reply)


class CountsBeforeTheTurn(Ledger):
    """Whether the budget covers a request is looked at once, before its answer is computed."""

    def _sell(
        self, request: Request, reply: Reply, found: _Covered, minimum_group: int, room: Room | None
    ) -> LedgerEntry | None:
        with self._held(request.dataset) as held:
            return self._find(held, request) or self._charge(held, request, reply)


class KeepsIdsInMemory(Ledger):
    def _find(self, held: _Held, request: Request) -> LedgerEntry | None:
        known: dict[str, LedgerEntry] = self.__dict__.setdefault("known", {})
        return known.get(request.request_id)

    def _charge(self, held: _Held, request: Request, reply: Reply) -> LedgerEntry:
        entry = super()._charge(held, request, reply)
        self.__dict__["known"][request.request_id] = entry
        return entry


class TakesALostCommitForDone(Ledger):
    def _sell(
        self, request: Request, reply: Reply, found: _Covered, minimum_group: int, room: Room | None
    ) -> LedgerEntry | None:
        entry = None
        with contextlib.suppress(LedgerUnavailable), self._held(request.dataset) as held:
            self._covered(held, request, room)
            entry = self._find(held, request) or self._charge(held, request, reply)
        return entry


def takes_old_copies(seal: AnySeal, books: Books) -> None:
    """In place of `compliance.ledger._check_seal`: seals the end of whatever it finds."""
    if seal.read() != books.head:
        with contextlib.suppress(OSError):
            seal.write(books.head)


def seals_over_what_is_sealed(_: Places, head: Head) -> Places:
    return (head,)


def leaves_a_late_seal_out(places: Places, head: Head) -> Places:
    """And does not say so, as the table of heads once did."""
    return (head,) if not places or places[0].sequence < head.sequence else places


def seals_in_two_places(places: Places, head: Head) -> Places:
    """In turn, whatever stands there, as the file of a head once did."""
    if sealed_in(places) is None:
        return head, head
    return (head, places[1]) if head.sequence % 2 == 0 else (places[0], head)
