"""The kinds of steps that hold calls open, or abandon calls and connections without ending them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import grpc
import numpy as np
from pydantic import Field

from sim.conformance import calls
from sim.conformance.audits import AUDIT, AuditStep
from sim.conformance.calls import CallResult, ProtocolViolation
from sim.conformance.purchases import Predicted, PurchaseStep, again
from sim.conformance.services import asking, on
from sim.conformance.step_base import Expect, Part, Predictions, Words
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


_DEADLINE_SECONDS = 0.2
_MOMENTS_SECONDS = 0.02
"""Longest time in seconds from a call's last message to its cancellation."""
_ROOM_SECONDS = 5.0

_BEGINNINGS = {
    "nothing": b"",
    # A TLS record that announces 512 bytes of a handshake, and its first bytes.
    "half a handshake": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(40)),
    "plain text": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


class GiveUp(Words):
    """A step that gives up calls, and makes requests under their ids again.

    In each of the `rounds`, `calls` simultaneous calls are cancelled, outlive their deadline or lose their connection,
    after they have sent `sends`, see `AuditStep`. If the caller has also ended its stream (`whole`), the request is
    repeated, and charged once, by either of the two calls. Otherwise the id counts as unused, and is sent with other
    predictions.
    """

    do: Literal["give_up"]
    caller: str = "developer"
    way: Literal["cancel", "deadline", "close"]
    sends: tuple[Part, ...] = ("header", "chunks")
    whole: bool = False
    calls: int = Field(default=8, ge=1, le=8)
    rounds: int = Field(default=3, ge=1)
    predictions: Predictions = Predictions()

    def run(self, world: CaseState) -> None:
        """Give up the calls, and make requests under their ids again."""
        rng = np.random.default_rng(1)
        for number in range(self.rounds):
            own = {"caller": self.caller, "parts": self.sends, "predictions": self.predictions}
            steps: list[PurchaseStep] = [
                on(world.service, AuditStep(do="audit", id=f"given-up-{world.step}-{number}-{each}", **own))
                for each in range(self.calls)
            ]
            world.open_account(self.caller, "", steps[0].ACCOUNT)
            ends = self._give_up(world, steps, float(rng.uniform(0, _MOMENTS_SECONDS)))
            self._await_room(world)
            if self.whole:
                again(world, self.caller, steps, ends, "before the call was cancelled")
                continue
            fresh: dict[str, Any] = {"epsilon": "unit * 2"}
            if isinstance(steps[0], Predicted):
                other = self.predictions.model_copy(update={"random": 77})
                fresh = {"parts": ("header", "chunks"), "predictions": other}
            for step in steps:
                step.model_copy(update=fresh).run(world)

    def _give_up(self, world: CaseState, steps: list[PurchaseStep], after: float) -> list[CallResult]:
        """Start calls and give them up; return their ends, which may be answers that came first."""
        channel = world.channel(self.caller, another=True)
        grpc.channel_ready_future(channel).result(SECONDS)
        ended = threading.Event()
        sent = [threading.Event() for _ in steps]
        seconds = _DEADLINE_SECONDS if self.way == "deadline" else SECONDS

        def stream(step: PurchaseStep, sent_all: threading.Event) -> Iterator[bytes]:
            yield from step.messages(step.asked(world))
            sent_all.set()
            if not self.whole:
                ended.wait(2 * SECONDS)

        started = [
            calls.start(channel, step.METHOD, stream(step, told), seconds, streamed=True)
            for step, told in zip(steps, sent, strict=True)
        ]
        if self.way != "deadline":
            for told in sent:
                told.wait(SECONDS)
            time.sleep(after)
        if self.way == "cancel":
            for call in started:
                call.cancel()
        elif self.way == "close":
            channel.close()
        ends = [calls.finish(step.METHOD, call) for step, call in zip(steps, started, strict=True)]
        ended.set()
        for seen in ends:
            # On a busy machine calls that were cancelled earlier may still be open.
            if seen.reason not in ("", "TOO_MANY_CALLS") or (seen.answered and not self.whole):
                raise ProtocolViolation(f"a call that was cancelled {seen.text}")
        return ends

    def _await_room(self, world: CaseState) -> None:
        """Wait until the server has noticed."""
        give_up = time.monotonic() + _ROOM_SECONDS
        while (seen := world.terms(self.caller)).reason == "TOO_MANY_CALLS" and time.monotonic() < give_up:
            time.sleep(0.02)
        if not seen.answered:
            raise ProtocolViolation(f"after calls that were cancelled, GetTerms {seen.text}")
        time.sleep(0.05)  # for the other calls


class Connections(Words):
    """A step that opens connections which send nothing more, for as long as the case lasts."""

    do: Literal["connections"]
    count: int = Field(ge=1, le=500)
    say: Literal["nothing", "half a handshake", "plain text"] = "nothing"

    def run(self, world: CaseState) -> None:
        """Open the connections."""
        host, _, port = world.subject.address(world.deployment).rpartition(":")
        for _ in range(self.count):
            opened = world.closing.enter_context(socket.create_connection((host.strip("[]"), int(port)), SECONDS))
            opened.sendall(_BEGINNINGS[self.say])
