"""The table that one deal at a time is played at: parties wait here for their cards, and the runner for the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from fairwall.errors import RunFailed
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.cards import Deal
from sim.games.submissions import AuditReport

_WAIT_SECONDS = 5.0
"""How long a party's call is held before it is told to ask again."""


class TrialFailed(RunFailed):
    """A trial that was not played to its end; the text says why."""


class PluginFailed(TrialFailed):
    """A trial that a plug-in's failure ended: others may go on. The text says which plug-in, and what it did."""


@dataclass
class Trial:
    """A deal on the table, and what has happened to it.

    A game says of what kind the deal is, and what the developer submits; one in which that is not all that parties
    submit adds the rest.
    """

    deal: Deal
    served: bool = False
    report: AuditReport | None = None
    submitted: Any = None

    @property
    def ended(self) -> bool:
        """Whether the developer and the adversary are done."""
        return self.submitted is not None

    @property
    def missing(self) -> str:
        """Who has not submitted yet."""
        return "developer" if self.opened and not self.ended else "compliance"

    @property
    def dealable(self) -> bool:
        """Whether compliance's cards are complete: some wait for what the developer commits itself to."""
        return self.deal.compliance is not None

    @property
    def opened(self) -> bool:
        """Whether it is the developer's turn yet: compliance, where it is dealt in, serves first."""
        return self.served or self.deal.compliance is None

    @property
    def over(self) -> bool:
        """Whether everybody is done: compliance, where it is dealt in, reports last."""
        return self.ended and (self.deal.compliance is None or self.report is not None)


_T = TypeVar("_T", bound=Trial)
_Value = TypeVar("_Value")


def given(value: _Value | None) -> _Value:
    """Give what everybody was waiting for: a trial that has got so far has it."""
    assert value is not None, "a trial that has got so far has it"
    return value


class Table:
    """What every referee's calls and the runner share: one trial at a time, and one lock around it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._trial: Trial | None = None
        self._closed = False
        self._failure: TrialFailed | None = None

    # What the runner calls.

    def play(self, trial: Trial, seconds: float) -> None:
        """Lay a trial on the table, and wait for its end."""
        with self._changed:
            self._trial = trial
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: self._failure or trial.over, seconds)
            if self._failure is not None:
                raise self._failure
            if not done:
                raise TrialFailed(f"{trial.missing} did not finish the trial within {seconds:g} s")

    def finish(self) -> None:
        """Tell every party that the run is over, and end every call that waits."""
        with self.changing():
            self._closed = True

    def abort(self, reason: str | TrialFailed) -> None:
        """End the trial that is being played, and the run, for a reason: the first one given."""
        with self.changing():
            self._failure = self._failure or (TrialFailed(reason) if isinstance(reason, str) else reason)

    def renew(self) -> None:
        """Let others play at it, after a trial that failed."""
        with self.changing():
            self._trial, self._closed, self._failure = None, False, None

    # What the referees' methods call.

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock, and wake everybody who waits for what the body changes."""
        with self._changed:
            yield
            self._changed.notify_all()

    def wait(self, ready: Callable[[], bool]) -> bool:
        """Wait a while until something is so; at once when the run is over. Whether it is so."""
        with self._changed:
            self._changed.wait_for(lambda: ready() or self._closed, _WAIT_SECONDS)
            return ready()

    def take(self, kind: type[_T], after: str, ready: Callable[[_T], bool]) -> _T | game.Turn:
        """Wait for a deal that a party has not taken yet; WAIT or OVER where there is none.

        Parameters
        ----------
        kind : of which kind of trial the party is dealt cards.
        after : the last deal that it took.
        ready : whether it is dealt in by now.
        """
        found: _T | None = None

        def look() -> bool:
            nonlocal found
            trial = self._trial
            found = trial if isinstance(trial, kind) and trial.deal.deal_id != after and ready(trial) else None
            return found is not None

        with self._changed:
            self.wait(look)
            if found is not None:
                return found
            return game.TURN_OVER if self._closed else game.TURN_WAIT

    def playing(self, kind: type[_T], deal_id: str) -> _T:
        """Give the trial that is played, by whoever holds the lock."""
        trial = self._trial
        if not isinstance(trial, kind) or trial.deal.deal_id != deal_id:
            raise Refusal(error_pb2.REASON_OUT_OF_TURN)
        return trial
