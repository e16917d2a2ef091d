"""The kinds of steps that hold calls open."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import grpc
from pydantic import Field

from sim.conformance import calls
from sim.conformance.audits import AUDIT
from sim.conformance.calls import ProtocolViolation
from sim.conformance.services import asking
from sim.conformance.vocabulary import Expect, Part, Words
from sim.conformance.world import SECONDS, CaseState


@dataclass
class _Held:
    method: str
    call: Any
    release: threading.Event
    again: Callable[[], _Held]
    """Function that reopens the call."""


class Hold(Words):
    """A step that opens calls, sends a part of each, and then nothing more.

    The calls use `connections` connections, since a server may limit the calls of each. Each sends the parts `sends`,
    see `Predicted`; nothing is sent to a `method` ("/package.Service/Method") that takes no predictions. The calls stay
    open until a step ends them ("wait"), are cancelled at once, or last until their deadline; with "at once" the server
    must end them as in `expect`, although nothing more comes.
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

    def run(self, world: CaseState) -> None:
        """Open the calls, and end them as required."""
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
                raise ProtocolViolation(f"a call that was not sent to its end {seen.text}")

    def _await(self, opened: list[_Held]) -> None:
        give_up = time.monotonic() + _AT_ONCE_SECONDS
        try:
            while not all(each.call.done() for each in opened):
                if time.monotonic() > give_up:
                    raise ProtocolViolation(
                        f"a call that sends nothing has no answer within {_AT_ONCE_SECONDS:g} seconds"
                    )
                time.sleep(0.01)
            for each in opened:
                self.expect.check_end(calls.finish(self.method, each.call))
        finally:
            for each in opened:
                each.release.set()
                each.call.cancel()

    def _open(self, world: CaseState, channel: grpc.Channel, number: int) -> _Held:
        own = {"caller": self.caller, "deployment": self.deployment, "id": f"{self.id}-{number}", "parts": self.sends}
        step = asking(self.method, own)
        messages = [] if step is None else list(step.messages(step.asked(world)))
        release = threading.Event()
        seconds = None if self.deadline == "none" else self.deadline

        def silent() -> Iterator[bytes]:
            yield from messages
            release.wait((seconds or 0.0) + SECONDS)  # the deadline ends the call, not we

        again = partial(self._open, world, channel, number)
        call = calls.start(channel, self.method, silent(), seconds, streamed=True)
        return _Held(self.method, call, release, again)


_AT_ONCE_SECONDS = 8.0
"""Seconds that a busy machine may take to refuse a new call."""


class LetGo(Words):
    """A step that ends the calls that were held open: they have nothing more to send."""

    do: Literal["let_go"]
    expect: Expect = Expect()

    def run(self, world: CaseState) -> None:
        """Half-close the calls, and check how they end."""
        for each in world.held:
            each.release.set()
        for each in world.held:
            self.expect.check_end(calls.finish(each.method, each.call))
        world.held.clear()
