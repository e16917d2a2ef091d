"""The table at which one deal at a time is played: parties wait here for their cards, the runner for the end."""

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
"""Longest time a party's call waits before the party is told to call again, in seconds."""


class TrialFailed(RunFailed):
    """A trial that did not reach its end; the text says why."""


class PluginFailed(TrialFailed):
    """A trial ended by a plug-in's failure; other trials may go on. The text names the plug-in and the failure."""


@dataclass
class Trial:
    """A deal on the table and its state; games set the types of the deal and of the submissions."""

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
        """The party that has not submitted yet."""
        return "developer" if self.opened and not self.ended else "compliance"

    @property
    def dealable(self) -> bool:
        """Whether compliance's cards are complete: some wait for the developer's commitment."""
        return self.deal.compliance is not None

    @property
    def opened(self) -> bool:
        """Whether the developer may begin: compliance, where it is in the game, serves first."""
        return self.served or self.deal.compliance is None

    @property
    def over(self) -> bool:
        """Whether all parties are done: compliance, where it is in the game, reports last."""
        return self.ended and (self.deal.compliance is None or self.report is not None)


_T = TypeVar("_T", bound=Trial)
_Value = TypeVar("_Value")


def given(value: _Value | None) -> _Value:
    """Return a value that the trial's state guarantees to be set."""
    assert value is not None, "a trial that has got so far has it"
    return value


class GameTable:
    """The state that referees' calls and the runner share: one trial at a time, and one lock around it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._trial: Trial | None = None
        self._closed = False
        self._failure: TrialFailed | None = None

    # Called by the runner.

    def play(self, trial: Trial, seconds: float) -> None:
        """Put a trial on the table and wait for its end, at most `seconds`; TrialFailed if it does not finish."""
        with self._changed:
            self._trial = trial
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: self._failure or trial.over, seconds)
            if self._failure is not None:
                raise self._failure
            if not done:
                raise TrialFailed(f"{trial.missing} did not finish the trial within {seconds:g} s")

    def finish(self) -> None:
        """Mark the run as over, and end every waiting call."""
        with self.changing():
            self._closed = True

    def abort(self, reason: str | TrialFailed) -> None:
        """End the current trial, and the run. The first reason given is kept."""
        with self.changing():
            self._failure = self._failure or (TrialFailed(reason) if isinstance(reason, str) else reason)

    def renew(self) -> None:
        """Reset the table for other trials, after a trial that failed."""
        with self.changing():
            self._trial, self._closed, self._failure = None, False, None

    # Called by the referees' methods.

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock, and then wake every call that waits for a change."""
        with self._changed:
            yield
            self._changed.notify_all()

    def wait(self, ready: Callable[[], bool]) -> bool:
        """Wait until `ready`, at most `_WAIT_SECONDS` or until the run is over, and return whether it is ready."""
        with self._changed:
            self._changed.wait_for(lambda: ready() or self._closed, _WAIT_SECONDS)
            return ready()

    def take(self, kind: type[_T], after: str, ready: Callable[[_T], bool]) -> _T | game.Turn:
        """Wait for a deal that a party has not taken yet and that is `ready`; WAIT or OVER if there is none.

        `kind` is the class of trial in which the party is dealt cards, `after` the id of the last deal that it took.
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
        """Return the trial that is being played; the caller holds the lock. Refusal (out of turn) for another deal."""
        trial = self._trial
        if not isinstance(trial, kind) or trial.deal.deal_id != deal_id:
            raise Refusal(error_pb2.REASON_OUT_OF_TURN)
        return trial
