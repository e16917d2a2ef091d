"""Replay of one live party: its counterparts are ghosts, which repeat their recorded messages from its transcript.

Ghosts do not judge. The k-th call of a method gets the k-th recorded answer, whatever the request; what the party sends
differently is found afterwards in its new transcript. Ghosts do keep the causal order: a ghost sends nothing before the
party has received and sent all that preceded it in the recording.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf.message_factory import GetMessageClass

from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.rpc import channel, confine, server
from fairwall.rpc.errors import Refusal
from fairwall.rpc.identity import SERVERS, Credentials
from fairwall.rpc.recorder import CALL_KEY, MODES, Recording
from fairwall.wire.v1 import error_pb2
from sim.play import keys
from sim.play.launch import CALLS, UNPLUGGED, Party, Plugged, launch
from sim.runs.folder import RunFolder
from sim.transcripts.calls import TranscriptCall, calls
from sim.transcripts.files import Transcript, decode
from sim.transcripts.methods import METHODS

_POLL_SECONDS = 5.0
"""Seconds that a call is held whose caller can be told to ask again."""

_LAST_SECONDS = 60.0
"""Longest time, in seconds, for finishing the calls to a party that has made a call with no recorded answer."""

_IDLE_SECONDS = 1800.0
"""Seconds without a message to or from the party after which it counts as hung."""

Change = Callable[[Any], None]
"""A function that changes a decoded message to the party; its argument is None if the message cannot be decoded."""

Layers = Mapping[str, Sequence[Mapping[str, Any]]]
"""The layers that confine the party and, under "referee", the process that holds its transcript."""


def play_alone(
    script: Transcript,
    folder: RunFolder,
    on_start: Callable[[Layers], None],
    change: Change = lambda _: None,
    plugged: Plugged = UNPLUGGED,
) -> str | None:
    """Run one party against ghosts to the end of its transcript; return why it ended, if it ended early.

    The party records anew in the folder. ``on_start`` gets the layers of confinement before the first message; if it
    raises, the replay ends. ``change`` is applied to each decoded answer to the party. ``plugged`` are the plug-ins
    that the party may run.
    """
    header, party = script.header, script.party
    assert header is not None, "looked at when it was read"
    own = confine.guard()
    credentials = keys.mint(header.run)
    ghosts = _Ghosts(script, change)
    epitaphs: list[str] = []

    def on_death(dead: Party) -> None:
        if dead.process.returncode:
            epitaphs.append(dead.epitaph())
        ghosts.end()

    recording = Recording(folder.path / "transcript", "1", MODES[0], header.scenario_digest)
    names = [name for name in SERVERS if name in ("referee", CALLS[party])]
    with contextlib.ExitStack() as kept:
        places = {name: kept.enter_context(_serving(name, ghosts, credentials[name])) for name in names}
        ghosts.counterpart = places[CALLS[party]]
        started = launch(
            credentials, places["referee"], folder.logs, on_death, recording, (party,), places, plugged=plugged
        )
        with started as announced:
            try:
                on_start({"referee": confine.as_values(own), party: announced[party].layers})
                ghosts.begin()
                ghosts.call(announced[party].address, credentials)
            finally:
                ghosts.end()
    return epitaphs[0] if epitaphs else None


@contextlib.contextmanager
def _serving(name: str, ghosts: _Ghosts, credentials: Credentials) -> Iterator[str]:
    listening = server.serve(
        lambda grpc_server: grpc_server.add_generic_rpc_handlers((_Spoken(name, ghosts),)), credentials
    )
    try:
        yield listening.address
    finally:
        listening.stop()


class _Spoken(grpc.GenericRpcHandler):
    """Handlers for every method of the protocol, with a ghost's answers as bytes."""

    def __init__(self, name: str, ghosts: _Ghosts) -> None:
        self._name = name
        self._ghosts = ghosts

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        method = handler_call_details.method
        if method not in METHODS:
            return None
        streams, is_streamed = _streams(method)

        def many(request: Any, _: grpc.ServicerContext) -> Iterator[bytes]:
            deque(request if streams else (), maxlen=0)  # read to the end, as the recorded server did
            yield from self._ghosts.answer(self._name, method)

        def one(request: Any, context: grpc.ServicerContext) -> bytes:
            (only,) = many(request, context)
            return only

        ways = "stream" if streams else "unary", "stream" if is_streamed else "unary"
        make = getattr(grpc, f"{ways[0]}_{ways[1]}_rpc_method_handler")
        return make(many if is_streamed else one)


class _Ghosts:
    """The counterparts of the party: their answers and calls, and the times of these."""

    def __init__(self, script: Transcript, change: Change) -> None:
        self._script = script
        self._change = change
        self._changed = threading.Condition()
        self._is_begun = False
        self._over = False
        self._begun: set[int] = set()
        self._done: set[int] = set()
        self.counterpart = ""
        own: list[tuple[TranscriptCall, int]] = []
        self._incoming: list[TranscriptCall] = []
        first_polls: dict[str, int] = {}
        for call in calls(script):
            if call.key.server == script.party:
                self._incoming += [call] if call.key.caller in CALLS or call.key.caller == "referee" else []
            elif call.is_poll(script):
                first_polls.setdefault(call.method, call.start)
            else:
                # A call that is told to ask again, and the call that then is answered, count as one.
                own.append((call, first_polls.pop(call.method, call.start)))
        self._own = own
        self._waiting: dict[tuple[str, str], deque[int]] = {}
        for number, (call, _) in enumerate(own):
            self._waiting.setdefault((call.key.server, call.method), deque()).append(number)

    # The party's calls.

    def answer(self, name: str, method: str) -> list[bytes]:
        """Answer the party's next call of a method when it is due; Refusal if recorded, or if no answer is."""
        wait = _wait_answer(method)
        with self._changed:
            self._changed.wait_for(lambda: self._is_begun or self._over)
            waiting = self._waiting.get((name, method))
            if not waiting:
                # A call too many, or the transcript breaks off: the others finish their calls, as in the game.
                self._changed.wait_for(lambda: self._over or not self._is_spoken_to(), _LAST_SECONDS)
                self._end()
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            # A call that is told to ask again remains to be answered.
            number = waiting[0] if wait is not None else waiting.popleft()
            call, _ = self._own[number]
            self._begun.add(number)
            self._changed.notify_all()
            seconds = _POLL_SECONDS if wait is not None else _IDLE_SECONDS
            if not self._changed.wait_for(lambda: self._over or self._heard(call.answered), seconds):
                if wait is not None:
                    return [wait]
                raise Refusal(error_pb2.REASON_INTERNAL)
            if wait is not None:
                waiting.popleft()
            self._done.add(number)
            self._changed.notify_all()
        assert call.ending is not None, "calls without an end are left out"
        if call.ending.status:
            raise Refusal(call.ending.reason)  # type: ignore[arg-type]
        return [self._said(method, self._script.data(message)) for message in call.answers]

    def _said(self, method: str, data: bytes) -> bytes:
        message, changed = decode(method, False, data), decode(method, False, data)
        if isinstance(changed, game.JoinResponse):
            changed.counterpart_address = self.counterpart
        self._change(changed)
        return data if changed == message else bytes(changed.SerializeToString())

    def _heard(self, entry: int) -> bool:
        """Return whether the party has answered every recorded call that had ended before this entry."""
        return all(~number in self._done for number, call in enumerate(self._incoming) if call.end < entry)

    # The calls to the party.

    def call(self, address: str, credentials: dict[str, Credentials]) -> None:
        """Make the calls that the party answered, each when it is due; return when no more follow."""
        # Channels close first: calls that still wait for an answer then get none.
        with ThreadPoolExecutor(server.CALLS_PER_CALLER) as callers, contextlib.ExitStack() as kept:
            lines = {
                name: kept.enter_context(channel.connect(address, self._script.party, credentials[name]))
                for name in sorted({call.key.caller for call in self._incoming})
            }
            for number, call in enumerate(self._incoming):
                if not self._comes(lambda: self._is_time(call.start)):  # noqa: B023 - called at once
                    break
                callers.submit(self._make, lines[call.key.caller], number, call)
            self._comes(lambda: False)

    def _comes(self, time: Callable[[], bool]) -> bool:
        """Wait until ``time()`` holds; return False if the replay ends first."""
        with self._changed:
            while not self._over:
                said = len(self._begun) + len(self._done)
                if self._changed.wait_for(lambda: self._over or time(), _IDLE_SECONDS):
                    break
                if said == len(self._begun) + len(self._done):
                    self._end()
            return not self._over

    def _is_time(self, entry: int) -> bool:
        own = all(
            (number in self._begun or start >= entry) and (number in self._done or call.end >= entry)
            for number, (call, start) in enumerate(self._own)
        )
        return own and self._heard(entry)

    def _is_spoken_to(self) -> bool:
        """Return whether a call to the party is in progress or due."""
        return any(
            ~number not in self._done and self._is_time(call.start) for number, call in enumerate(self._incoming)
        )

    def _make(self, line: grpc.Channel, number: int, call: TranscriptCall) -> None:
        streams, is_streamed = _streams(call.method)
        make = getattr(line, f"{'stream' if streams else 'unary'}_{'stream' if is_streamed else 'unary'}")
        requests = [self._script.data(message) for message in call.requests]
        own = ((CALL_KEY, str(call.key.number)),)
        try:
            answers = make(call.method)(iter(requests) if streams else requests[0], timeout=_IDLE_SECONDS, metadata=own)
            deque(answers if is_streamed else (), maxlen=0)
        except grpc.RpcError:
            pass  # refused, or the party has left: its transcript shows which
        finally:
            with self._changed:
                self._done.add(~number)
                self._changed.notify_all()

    # The beginning and the end.

    def begin(self) -> None:
        """Start answering."""
        with self._changed:
            self._is_begun = True
            self._changed.notify_all()

    def end(self) -> None:
        """Stop answering and calling."""
        with self._changed:
            self._end()

    def _end(self) -> None:
        self._over = True
        self._changed.notify_all()


def _streams(method: str) -> tuple[bool, bool]:
    """Return whether a method's requests, and its answers, are streams."""
    found = METHODS[method]
    return bool(found.client_streaming), bool(found.server_streaming)


def _wait_answer(method: str) -> bytes | None:
    """Return the answer of a method that means "ask again", or None if it has none."""
    found = METHODS[method].output_type
    if found is game.ServeTrialResponse.DESCRIPTOR:
        return game.ServeTrialResponse().SerializeToString()
    if "turn" not in found.fields_by_name:
        return None
    return bytes(GetMessageClass(found)(turn=game.TURN_WAIT).SerializeToString())
