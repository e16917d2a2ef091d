"""The kinds of steps that abandon calls and connections without ending them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, Literal

import grpc
import numpy as np
from pydantic import Field

from sim.conformance import calls
from sim.conformance.audits import AuditStep
from sim.conformance.calls import CallResult, ProtocolViolation
from sim.conformance.purchases import Predicted, PurchaseStep, again
from sim.conformance.services import on
from sim.conformance.vocabulary import Part, Predictions, Words
from sim.conformance.world import SECONDS, CaseState

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
