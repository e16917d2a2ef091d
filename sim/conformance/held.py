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
from sim.conformance.calls import Violation
from sim.conformance.services import asking
from sim.conformance.vocabulary import Expect, Part, Words
from sim.conformance.world import SECONDS, World


@dataclass
class _Held:
    method: str
    call: Any
    release: threading.Event
    again: Callable[[], _Held]
    """Opens it anew."""


class Hold(Words):
    """Opens calls that send a part of what they have to send, and then nothing more.

    They are made over so many `connections`, since a server may limit the calls of each, and send `sends`, see
    `Predicted`; of a `method` ("/package.Service/Method") that takes no predictions, nothing is sent. They stay open
    until a step lets go of them ("wait"); are cancelled at once; until their deadline has passed; or it is the server
    that must end them ("at once"), as `expect` says, although nothing more comes.
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

    def run(self, world: World) -> None:
        """Open them, and end them as told."""
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
                raise Violation(f"a call that was not sent to its end {seen.text}")

    def _await(self, opened: list[_Held]) -> None:
        give_up = time.monotonic() + _AT_ONCE_SECONDS
        try:
            while not all(each.call.done() for each in opened):
                if time.monotonic() > give_up:
                    raise Violation(f"a call that sends nothing has no answer within {_AT_ONCE_SECONDS:g} seconds")
                time.sleep(0.01)
            for each in opened:
                self.expect.check_end(calls.finish(self.method, each.call))
        finally:
            for each in opened:
                each.release.set()
                each.call.cancel()

    def _open(self, world: World, channel: grpc.Channel, number: int) -> _Held:
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
"""How long a busy machine may take to refuse a call that has just arrived."""


class LetGo(Words):
    """Ends the calls that were held open: they have nothing more to send."""

    do: Literal["let_go"]
    expect: Expect = Expect()

    def run(self, world: World) -> None:
        """Half-close them, and look at how they end."""
        for each in world.held:
            each.release.set()
        for each in world.held:
            self.expect.check_end(calls.finish(each.method, each.call))
        world.held.clear()
