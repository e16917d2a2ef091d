"""A server's side: mTLS, and one gate before every method that checks caller, method and deadline.

The gate checks a call before any of its messages. Therefore every method is a stream to grpc, which would read a lone
message first, for as long as the caller sends none.
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

from fairwall.rpc import chunks, fair_use, journal
from fairwall.rpc.access import CALLERS, HEALTH
from fairwall.rpc.channel import PING_SECONDS, STARTING
from fairwall.rpc.errors import CATALOGUE, Refusal, abort
from fairwall.rpc.fair_use import Meter, Quota, metered
from fairwall.rpc.identity import PARTIES, Caller, Credentials, are_valid, certificates_of, identify, unusable
from fairwall.rpc.recorder import RecordedCall, TranscriptRecorder, message_type
from fairwall.rpc.revoked import Revoked, RevokedError
from fairwall.wire.v1 import error_pb2

if TYPE_CHECKING:
    _Handler = grpc.RpcMethodHandler[Any, Any]  # generic in its stubs alone

LOG = logging.getLogger(__name__)

DEADLINE_SECONDS_MAX = 3600.0
_ROUNDED_UP_SECONDS = 30.0
"""Most that gRPC lengthens a deadline of an hour in transit: it writes three digits."""

CALLS_PER_CALLER = 8
_REFUSING_THREADS = 4
"""Threads besides one for each possible call, so that refusals need not wait for calls to end."""

_AGE_SECONDS = 600.0
"""Age at which a deployment's connection is closed; calls under way then may end."""

_SILENCE_SECONDS = 30.0
"""Longest wait of a deployment for a call's first message, or its next one: a silent call holds a place."""

_PATIENCE_SECONDS = 0.01
"""Longest wait of a caller's other calls for this call's message, which mostly is there by then."""

_CANCELLED: int = grpc.StatusCode.CANCELLED.value[0]


def _options_of_a_deployment() -> tuple[tuple[str, int], ...]:
    """Return options that stop unused connections from staying for good."""
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
    """Settings of a permanent server, whose callers are not of one run.

    Parameters
    ----------
    admitted : the callers that may call at all, with quotas; the table of callers limits methods.
    is_ready : returns whether the service can do its work, for health checks.
    revoked : the list of revoked certificates, consulted at every message.
    silence_seconds : longest time without a message of a call; then the call is refused as ``MESSAGE_LATE``.
    is_starting : whether only health checks are answered, with not ready: others end as ``UNAVAILABLE``, without a
        reason.
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
        """Use other credentials, in a deployment, for connections from now on."""
        self._shown.change(credentials)

    def admit(self, deployed: Deployed) -> None:
        """Admit other callers from now on, with their use so far; callers no longer admitted are refused at once."""
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
    recorder: TranscriptRecorder | None = None,
) -> Server:
    """Start a server, with the standard health service beside the registered ones.

    OSError if the address (port 0 lets the system choose) or the credentials cannot be used. Callers must have a
    certificate of the same authority. Without ``deployed`` the parties of a game's run are admitted, without names.
    ``recorder`` records every call that arrives, refused ones too.
    """
    gate = _Gate(credentials.run, deployed, recorder)
    threads = _Threads(max_workers=gate.calls_max + _REFUSING_THREADS, thread_name_prefix="rpc")
    server = grpc.server(
        threads,
        interceptors=[gate],
        options=(
            ("grpc.so_reuseport", 0),
            # Waiting callers ping the server; by default more than twice in five minutes is abuse.
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
    """Check that a server could listen now, without listening; OSError as of `serve`."""
    if why := _why_not(address, credentials):
        raise OSError(f"cannot listen on {address}: {why}")


def _why_not(address: str, credentials: Credentials) -> str:
    """Return the reason why a server cannot listen, which gRPC does not give; empty if it can."""
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
    """A pool of threads that can grow."""

    def grow(self, most: int) -> None:
        self._max_workers = max(self._max_workers, most)


def _shown(credentials: Credentials) -> grpc.ServerCertificateConfiguration:
    pair = (credentials.key.encode(), credentials.certificate.encode())
    return grpc.ssl_server_certificate_configuration([pair], credentials.authority.encode())


class _Shown:
    """The new credentials of a server: called for each connection, returns a change once, else None."""

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
    """A health service that reports that nothing is served while the service cannot do its work."""

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
    """A caller's place on a server: calls under way, only one of them worked on at a time, and a daily quota."""

    meter: Meter | None
    room: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(CALLS_PER_CALLER))
    turn: threading.Lock = field(default_factory=threading.Lock)


class _Gate(grpc.ServerInterceptor):
    """The gate of a server: passes a call on to its method, or refuses it."""

    def __init__(self, run: str, deployed: Deployed | None, recorder: TranscriptRecorder | None) -> None:
        self._run = run
        self._deployed = deployed
        self._recorder = recorder
        self._places = {Caller(run, party): _Place(None) for party in PARTIES}
        if deployed is not None:
            self._places = {caller: _Place(Meter(quota)) for caller, quota in deployed.admitted.items()}

    def admit(self, deployed: Deployed) -> None:
        """Admit other callers; those who stay keep their calls under way, and their use of the quota."""
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
        """Return whether the service can do its work."""
        return self._deployed is None or (not self._deployed.is_starting and self._deployed.is_ready())

    @property
    def calls_max(self) -> int:
        """Most calls at a time: a caller that holds its own open must not keep the others out."""
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
        """Return the caller; Refusal if it may not call, or no longer."""
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
        """Hold the call's place while it is under way; yield the meter of its bytes, in a deployment."""
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
            with fair_use.working(place.turn), metered(place.meter):
                place.meter.call()
                yield place.meter
        finally:
            place.room.release()

    @contextlib.contextmanager
    def _handled(self, context: grpc.ServicerContext, method: str) -> Iterator[_Bytes]:
        """Run a call if it is allowed, and record its end; yield the path of its messages."""
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
                recorded.ended(_CANCELLED)  # the caller left in the middle of the answer

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
        """Limit the silence of a deployment's calls."""
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
                    with fair_use.waiting():
                        yield data

        return call


@dataclass(frozen=True)
class _Bytes:
    """The path of a call's messages, recorded in a game, counted in a deployment, where each one checks the caller."""

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
    """Return a function that reads a request, or a stream of requests, after the gate; undecodable ones are refused."""
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
    """A call's messages, each of which must come within a time; else Refusal ``MESSAGE_LATE``.

    grpc's own iterator waits as long as the call lasts, and its ``cancel`` would not let the caller know why. This
    class does the iterator's steps, with another end of the wait. A waiting thread instead would cost each message a
    change of threads: a sixth of a small call's time.
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
            with fair_use.waiting(), self._arriving._state.condition:
                message = self._look(began + self._seconds)
        if message is None:
            raise Refusal(error_pb2.REASON_MESSAGE_LATE)
        return message

    def _look(self, until: float) -> bytes | None:
        """Return the message, waiting with grpc's condition held; None if it has not come by then."""
        while True:
            message: bytes | None = self._arriving._look_for_request()
            left = until - time.monotonic()
            if message is not None or left <= 0:
                return message
            self._arriving._state.condition.wait(left)


def _to_the_end(arriving: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a stream whose caller has marked its end; RpcError if the caller gave it up before."""
    yield from arriving
    # A cancelled stream ends like a whole one if grpc reports its end before it reports that the call is over. It
    # reports both in this order and at once; this request is answered after both.
    next(arriving, None)


def _encoder(handler: _Handler) -> Callable[[Any], bytes]:
    """Return the encoder of answers, used here rather than in grpc: the same bytes are recorded and sent."""
    encode: Callable[[Any], bytes] = handler.response_serializer or bytes
    return encode


def _behaviour(handler: _Handler) -> Callable[..., Any]:
    kinds = (handler.unary_unary, handler.unary_stream, handler.stream_unary, handler.stream_stream)
    return next(behaviour for behaviour in kinds if behaviour is not None)


def _not_yet(_: object, context: grpc.ServicerContext) -> None:
    context.abort(grpc.StatusCode.UNAVAILABLE, STARTING)


def _end(context: grpc.ServicerContext, method: str, error: Exception, recorded: RecordedCall) -> None:
    """End a call that raised: a refusal with its reason, a cancelled call silently, any other error as internal."""
    if isinstance(error, Refusal):
        journal.note(reason=error_pb2.Reason.Name(error.reason).removeprefix("REASON_"))
        recorded.ended(CATALOGUE[error.reason][0].value[0], error.reason)
        abort(context, error)
    if not context.is_active() or isinstance(error, grpc.RpcError):
        # The caller hung up or its deadline passed while it was still sending: nobody waits for an answer.
        raise error
    LOG.exception("%s failed", method)
    journal.note(reason="INTERNAL")
    recorded.ended(CATALOGUE[error_pb2.REASON_INTERNAL][0].value[0], error_pb2.REASON_INTERNAL)
    abort(context, Refusal(error_pb2.REASON_INTERNAL))
