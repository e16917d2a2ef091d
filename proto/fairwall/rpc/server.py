"""A server's side: mTLS, and one gate before every method that checks who calls, what, and by when.

The gate looks at a call when it arrives, before any of its messages. To grpc every method takes a stream therefore: it
reads a lone message before the method is asked, for as long as the caller cares to send none.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent import futures
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from fairwall.rpc import chunks, journal, work
from fairwall.rpc.access import CALLERS, HEALTH
from fairwall.rpc.channel import PING_SECONDS, STARTING
from fairwall.rpc.errors import CATALOGUE, Refusal, abort
from fairwall.rpc.identity import PARTIES, Caller, Credentials, are_valid, certificates_of, identify, unusable
from fairwall.rpc.quota import Meter, Quota, metered
from fairwall.rpc.recorder import RecordedCall, Recorder, message_type
from fairwall.rpc.revoked import Revoked, RevokedError
from fairwall.wire.v1 import error_pb2

if TYPE_CHECKING:
    _Handler = grpc.RpcMethodHandler[Any, Any]  # generic in its stubs alone

LOG = logging.getLogger(__name__)

DEADLINE_SECONDS_MAX = 3600.0
_ROUNDED_UP_SECONDS = 30.0
"""By how much gRPC may lengthen a deadline of an hour on its way: it writes three digits."""

CALLS_PER_CALLER = 8
_REFUSING_THREADS = 4
"""Besides one for each call that may be under way: whoever is refused must not wait for those to end."""

_AGE_SECONDS = 600.0
"""How long a deployment's connection lasts; calls that are under way by then may end."""

_SILENCE_SECONDS = 30.0
"""How long a deployment waits for a call's first message, or its next one: a silent call holds a place."""

_PATIENCE_SECONDS = 0.01
"""How long a caller's other calls wait with a call for its message, which mostly is there by then."""

_CANCELLED: int = grpc.StatusCode.CANCELLED.value[0]


def _options_of_a_deployment() -> tuple[tuple[str, int], ...]:
    """Keep what is not used from staying for good."""
    return (
        ("grpc.max_connection_age_ms", int(1000 * _AGE_SECONDS)),
        ("grpc.max_connection_age_grace_ms", 3_600_000),
        ("grpc.max_connection_idle_ms", int(1000 * _AGE_SECONDS / 2)),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.server_handshake_timeout_ms", 10_000),
        ("grpc.max_concurrent_streams", 100),
    )


@dataclass(frozen=True)
class Deployed:
    """What a server has that stands for good, among callers who are not of one run.

    Parameters
    ----------
    admitted : who may call at all, and how much; the table of callers says what.
    is_ready : says whether the service can do its work, to whoever asks for its health.
    revoked : whose certificates hold no longer; it is asked at every message.
    silence_seconds : how long a call may send no message; then it is refused as ``MESSAGE_LATE``.
    is_starting : bool
        Whether it says how it is, not ready, and nothing else: other calls end as ``UNAVAILABLE``, without a reason, as
        where nobody listens yet.
    """

    admitted: Mapping[Caller, Quota]
    is_ready: Callable[[], bool] = lambda: True
    revoked: Revoked | None = None
    silence_seconds: float = _SILENCE_SECONDS
    is_starting: bool = False


@dataclass(frozen=True)
class Server:
    """A server that is listening."""

    grpc_server: grpc.Server
    address: str
    _gate: _Gate
    _threads: _Threads
    _shown: _Shown

    def show(self, credentials: Credentials) -> None:
        """Prove itself with other credentials, in a deployment, to whoever connects from now on."""
        self._shown.change(credentials)

    def admit(self, deployed: Deployed) -> None:
        """Admit others from now on, whose calls are counted on; who is not among them is refused at once."""
        self._gate.admit(deployed)
        self._threads.grow(self._gate.calls_max + _REFUSING_THREADS)

    def stop(self) -> None:
        """Refuse new calls, give the running ones half a second, and end."""
        self.grpc_server.stop(0.5).wait()


def serve(
    register: Callable[[grpc.Server], None],
    credentials: Credentials,
    address: str = "127.0.0.1:0",
    deployed: Deployed | None = None,
    recorder: Recorder | None = None,
) -> Server:
    """Start a server, with the standard health service beside what is registered.

    OSError if the address cannot be bound, or the credentials cannot be used.

    Parameters
    ----------
    register : adds the servicers.
    credentials : the server's own; callers must show a certificate of the same authority.
    address : "host:port"; port 0 lets the system choose.
    deployed : for a deployment. A game's server admits the parties of its run, none of them named.
    recorder : records every call that arrives, the refused ones too.
    """
    gate = _Gate(credentials.run, deployed, recorder)
    threads = _Threads(max_workers=gate.calls_max + _REFUSING_THREADS, thread_name_prefix="rpc")
    server = grpc.server(
        threads,
        interceptors=[gate],
        options=(
            ("grpc.so_reuseport", 0),
            # Callers that wait ask whether the server is there; by default more than twice in five minutes is abuse.
            ("grpc.http2.min_ping_interval_without_data_ms", int(500 * PING_SECONDS)),
            *(() if deployed is None else _options_of_a_deployment()),
        ),
    )
    register(server)
    checks = health.HealthServicer() if deployed is None else _Health(gate)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    shown = _Shown()
    secure = grpc.dynamic_ssl_server_credentials(
        _shown(credentials),
        shown,  # type: ignore[arg-type]  # None is for no change
        require_client_authentication=True,
    )
    try:
        port = server.add_secure_port(address, secure)
    except RuntimeError as error:
        raise OSError(f"cannot listen on {address}: {_why_not(address, credentials) or _NO_TLS}") from error
    server.start()
    checks.set("", health_pb2.HealthCheckResponse.SERVING)
    return Server(server, f"{address.rsplit(':', 1)[0]}:{port}", gate, threads, shown)


def check(address: str, credentials: Credentials) -> None:
    """See whether a server could listen now, and do not; OSError as of `serve`."""
    if why := _why_not(address, credentials):
        raise OSError(f"cannot listen on {address}: {why}")


def _why_not(address: str, credentials: Credentials) -> str:
    """Say why a server cannot listen, which gRPC tells nobody; empty where the address and the credentials are good."""
    host, _, port = address.rpartition(":")
    try:
        kind, protocol, _, _, place = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0][:5]
        with socket.socket(kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
            probe.listen()
    except (OSError, ValueError) as error:
        return _REFUSED_ADDRESS.get(getattr(error, "errno", None) or 0) or f"no address that can be used ({error})"
    return unusable(credentials)


_NO_TLS = "its certificate, key and authority cannot be used for TLS"

_REFUSED_ADDRESS = {
    errno.EADDRINUSE: "the address is in use: another process listens there",
    errno.EADDRNOTAVAIL: "the address is none of this machine's",
    errno.EACCES: "this process may not use the port: those below 1024 mostly need a permission",
    errno.EPERM: "this process may not use the port: those below 1024 mostly need a permission",
    socket.EAI_NONAME: "the host's name is not known",
    socket.EAI_AGAIN: "the host's name is not known: nobody could be asked for it",
}


class _Threads(futures.ThreadPoolExecutor):
    """Threads that may become more."""

    def grow(self, most: int) -> None:
        self._max_workers = max(self._max_workers, most)


def _shown(credentials: Credentials) -> grpc.ServerCertificateConfiguration:
    pair = (credentials.key.encode(), credentials.certificate.encode())
    return grpc.ssl_server_certificate_configuration([pair], credentials.authority.encode())


class _Shown:
    """What a server is to prove itself with from now on; called for each connection, it gives what is new once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._new: grpc.ServerCertificateConfiguration | None = None

    def change(self, credentials: Credentials) -> None:
        with self._lock:
            self._new = _shown(credentials)

    def __call__(self) -> grpc.ServerCertificateConfiguration | None:
        with self._lock:
            new, self._new = self._new, None
            return new


class _Health(health.HealthServicer):  # type: ignore[misc]
    """Says that nothing is served while the service cannot do its work."""

    def __init__(self, gate: _Gate) -> None:
        super().__init__()
        self._gate = gate

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 - gRPC's own name
        """Answer as the standard says."""
        if not self._gate.is_ready():
            return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING)
        return super().Check(request, context)


@dataclass(frozen=True)
class _Place:
    """What a caller has of a server: calls under way, one at a time of them worked on, and so much a day."""

    meter: Meter | None
    room: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(CALLS_PER_CALLER))
    turn: threading.Lock = field(default_factory=threading.Lock)


class _Gate(grpc.ServerInterceptor):
    """Lets a call through to its method, or refuses it."""

    def __init__(self, run: str, deployed: Deployed | None, recorder: Recorder | None) -> None:
        self._run = run
        self._deployed = deployed
        self._recorder = recorder
        self._places = {Caller(run, party): _Place(None) for party in PARTIES}
        if deployed is not None:
            self._places = {caller: _Place(Meter(quota)) for caller, quota in deployed.admitted.items()}

    def admit(self, deployed: Deployed) -> None:
        """Admit others than before; who stays keeps its calls that are under way, and what it has used of its quota."""
        places = self._places
        self._places = {
            caller: places.get(caller) or _Place(Meter(quota)) for caller, quota in deployed.admitted.items()
        }
        for caller, quota in deployed.admitted.items():
            meter = self._places[caller].meter
            if meter is not None:
                meter.allow(quota)
        self._deployed = deployed

    def is_ready(self) -> bool:
        """Say whether the service can do its work."""
        return self._deployed is None or (not self._deployed.is_starting and self._deployed.is_ready())

    @property
    def calls_max(self) -> int:
        """How many calls there can be: one caller that holds its own open must not keep the others out."""
        return len(self._places) * CALLS_PER_CALLER

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], _Handler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> _Handler | None:
        handler = continuation(handler_call_details)
        if handler is None:
            return None
        method = handler_call_details.method
        if self._deployed is not None and self._deployed.is_starting and not method.startswith(HEALTH):
            return grpc.stream_unary_rpc_method_handler(_not_yet)
        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(self._streaming(handler, method))
        return grpc.stream_unary_rpc_method_handler(self._unary(handler, method))

    def _check(self, caller: Caller | None, certificates: Iterable[bytes], method: str) -> Caller:
        """Refuse who may not call, or no longer; the caller."""
        deployed = self._deployed
        try:
            hold = deployed is None or are_valid(certificates, deployed.revoked)
        except RevokedError:
            raise Refusal(error_pb2.REASON_INTERNAL) from None
        if caller is None or caller.run != self._run or not hold:
            raise Refusal(error_pb2.REASON_CALLER_UNKNOWN)
        if caller not in self._places or caller.party not in CALLERS.get(method, frozenset()):
            raise Refusal(error_pb2.REASON_CALLER_NOT_ALLOWED)
        return caller

    @contextlib.contextmanager
    def _admitted(self, context: grpc.ServicerContext, check: Callable[[], Caller]) -> Iterator[Meter | None]:
        """Hold the call's place while it is under way; what counts its bytes, in a deployment."""
        caller = check()
        remaining = context.time_remaining()
        if remaining is None or remaining > DEADLINE_SECONDS_MAX + _ROUNDED_UP_SECONDS:
            raise Refusal(error_pb2.REASON_DEADLINE_MISSING)
        place = self._places.get(caller)
        if place is None:  # admitted until just now
            raise Refusal(error_pb2.REASON_CALLER_NOT_ALLOWED)
        if not place.room.acquire(blocking=False):
            raise Refusal(error_pb2.REASON_TOO_MANY_CALLS)
        try:
            if place.meter is None:
                yield None
                return
            with work.working(place.turn), metered(place.meter):
                place.meter.call()
                yield place.meter
        finally:
            place.room.release()

    @contextlib.contextmanager
    def _handled(self, context: grpc.ServicerContext, method: str) -> Iterator[_Bytes]:
        """Let a call run if it may, and record how it ended; what its messages go through."""
        caller = identify(context)
        check = functools.partial(self._check, caller, certificates_of(context), method)
        recorded = self._recorded(context, caller, method)
        with self._journalled(caller, method):
            try:
                with self._admitted(context, check) as meter:
                    yield _Bytes(recorded, meter, check if self._deployed else lambda: None)
                recorded.ended()
            except Exception as error:
                _end(context, method, error, recorded)
            finally:
                recorded.ended(_CANCELLED)  # whoever asked has left in the middle of the answer

    @contextlib.contextmanager
    def _journalled(self, caller: Caller | None, method: str) -> Iterator[None]:
        """Write a deployment's line about a call."""
        if self._deployed is None:
            yield
            return
        outcome, began = "given up", time.monotonic()
        with journal.noting() as facts:
            try:
                yield
                outcome = "answered"
            except Exception:
                outcome = "refused" if "reason" in facts else "given up"
                raise
            finally:
                who = "/".join(filter(None, (caller.party, caller.name))) if caller else "unknown"
                journal.write(who, method.lstrip("/"), outcome, facts, time.monotonic() - began)

    def _recorded(self, context: grpc.ServicerContext, caller: Caller | None, method: str) -> RecordedCall:
        if self._recorder is None:
            return RecordedCall()
        peer = caller.party if caller is not None and caller.run == self._run else ""
        return self._recorder.answering(peer, method, context.invocation_metadata())

    def _prompt(self, arriving: Iterator[bytes]) -> Iterator[bytes]:
        """Let no call of a deployment be silent for long."""
        return arriving if self._deployed is None else _Prompt(arriving, self._deployed.silence_seconds)

    def _unary(self, handler: _Handler, method: str) -> Callable[..., Any]:
        behaviour, ask, encode = _behaviour(handler), _asker(handler, method), _encoder(handler)

        def call(arriving: Iterator[bytes], context: grpc.ServicerContext) -> Any:
            with self._handled(context, method) as passing:
                return passing.sent(encode(behaviour(ask(self._prompt(arriving), passing), context)))

        return call

    def _streaming(self, handler: _Handler, method: str) -> Callable[..., Any]:
        behaviour, ask, encode = _behaviour(handler), _asker(handler, method), _encoder(handler)

        def call(arriving: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[Any]:
            with self._handled(context, method) as passing:
                for answer in behaviour(ask(self._prompt(arriving), passing), context):
                    data = passing.sent(encode(answer))
                    with work.waiting():
                        yield data

        return call


@dataclass(frozen=True)
class _Bytes:
    """What the messages of a call go through: they are recorded in a game, and counted in a deployment.

    A deployment's caller may be refused from any message on: whoever is revoked is not heard out.
    """

    recorded: RecordedCall
    meter: Meter | None
    check: Callable[[], object]

    def all_received(self, arriving: Iterator[bytes]) -> Iterator[bytes]:
        for data in _to_the_end(arriving):
            self.check()
            yield self.recorded.received(data if self.meter is None else self.meter.received(data))
        self.check()

    def sent(self, data: bytes) -> bytes:
        self.check()
        return self.recorded.sent(data if self.meter is None else self.meter.sent(data))


def _asker(handler: _Handler, method: str) -> Callable[[Iterator[bytes], _Bytes], Any]:
    """Make what reads a request, or a stream of them, once the gate is passed: what does not decode has a reason."""
    deserialize: Callable[[bytes], Any] = handler.request_deserializer or bytes
    if handler.request_streaming and handler.request_deserializer is not None:
        message = message_type(method, is_request=True)
        deserialize = deserialize if message is None else chunks.decoder(message, deserialize)

    def one(data: bytes) -> Any:
        try:
            return deserialize(data)
        except DecodeError:
            raise Refusal(error_pb2.REASON_REQUEST_MALFORMED) from None

    def stream(arriving: Iterator[bytes], passing: _Bytes) -> Iterator[Any]:
        return map(one, passing.all_received(arriving))

    def lone(arriving: Iterator[bytes], passing: _Bytes) -> Any:
        messages = [*itertools.islice(passing.all_received(arriving), 2)]
        if len(messages) != 1:
            raise Refusal(error_pb2.REASON_REQUEST_MALFORMED)
        return one(messages[0])

    return stream if handler.request_streaming else lone


class _Prompt:
    """A call's messages, each of which has to come within a time; Refusal ``MESSAGE_LATE`` if one does not.

    grpc's own iterator waits on a condition for as long as the call lasts, and cannot be told to give up: ``cancel``,
    the one public way to end the wait, would not let the caller know why. This does
    what that does, step by step, but for the end of the wait. Another thread that waits instead would cost each message
    a change of threads: a sixth of what a small call takes.
    """

    def __init__(self, arriving: Any, seconds: float) -> None:
        self._arriving = arriving
        self._seconds = seconds

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        began = time.monotonic()
        with self._arriving._state.condition:
            self._arriving._raise_or_start_receive_message()
            message = self._look(began + _PATIENCE_SECONDS)
        if message is None:
            with work.waiting(), self._arriving._state.condition:
                message = self._look(began + self._seconds)
        if message is None:
            raise Refusal(error_pb2.REASON_MESSAGE_LATE)
        return message

    def _look(self, until: float) -> bytes | None:
        """Wait for the message, holding grpc's condition; None if it has not come by then."""
        while True:
            message: bytes | None = self._arriving._look_for_request()
            left = until - time.monotonic()
            if message is not None or left <= 0:
                return message
            self._arriving._state.condition.wait(left)


def _to_the_end(arriving: Iterator[bytes]) -> Iterator[bytes]:
    """Pass on a stream whose caller has said that it is whole; RpcError if the caller gave it up before that."""
    yield from arriving
    # A stream that is cancelled ends like a whole one if grpc tells of its end before it tells that the call is over.
    # It tells both in this order and at once; what it is asked now it answers after both.
    next(arriving, None)


def _encoder(handler: _Handler) -> Callable[[Any], bytes]:
    """Encode here rather than in grpc: the bytes that are recorded are those that travel."""
    encode: Callable[[Any], bytes] = handler.response_serializer or bytes
    return encode


def _behaviour(handler: _Handler) -> Callable[..., Any]:
    kinds = (handler.unary_unary, handler.unary_stream, handler.stream_unary, handler.stream_stream)
    return next(behaviour for behaviour in kinds if behaviour is not None)


def _not_yet(_: object, context: grpc.ServicerContext) -> None:
    context.abort(grpc.StatusCode.UNAVAILABLE, STARTING)


def _end(context: grpc.ServicerContext, method: str, error: Exception, recorded: RecordedCall) -> None:
    """End a call that raised: a refusal says its reason, a cancelled call is over already, the rest is ours."""
    if isinstance(error, Refusal):
        journal.note(reason=error_pb2.Reason.Name(error.reason).removeprefix("REASON_"))
        recorded.ended(CATALOGUE[error.reason][0].value[0], error.reason)
        abort(context, error)
    if not context.is_active() or isinstance(error, grpc.RpcError):
        # The caller hung up or its deadline passed while it was still sending: nobody is left to answer.
        raise error
    LOG.exception("%s failed", method)
    journal.note(reason="INTERNAL")
    recorded.ended(CATALOGUE[error_pb2.REASON_INTERNAL][0].value[0], error_pb2.REASON_INTERNAL)
    abort(context, Refusal(error_pb2.REASON_INTERNAL))
