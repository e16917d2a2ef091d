"""A server's side: mTLS, and one gate before every method that checks who calls, what, and by when.

The gate looks at a call when it arrives, before any of its messages. To grpc every method takes a stream therefore: it
reads a lone message before the method is asked, for as long as the caller cares to send none.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from fairwall.rpc import chunks
from fairwall.rpc.access import CALLERS
from fairwall.rpc.channel import PING_SECONDS
from fairwall.rpc.errors import CATALOGUE, Refusal, abort
from fairwall.rpc.identity import PARTIES, Caller, Credentials, identify
from fairwall.rpc.recorder import RecordedCall, Recorder, message_type
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

_CANCELLED: int = grpc.StatusCode.CANCELLED.value[0]


@dataclass(frozen=True)
class Server:
    """A server that is listening."""

    grpc_server: grpc.Server
    address: str

    def stop(self) -> None:
        """Refuse new calls, give the running ones half a second, and end."""
        self.grpc_server.stop(0.5).wait()


def serve(
    register: Callable[[grpc.Server], None],
    credentials: Credentials,
    address: str = "127.0.0.1:0",
    admitted: Iterable[Caller] | None = None,
    recorder: Recorder | None = None,
) -> Server:
    """Start a server, with the standard health service beside what is registered.

    Parameters
    ----------
    register : callable
        Adds the servicers.
    credentials : Credentials
        The server's own; callers must show a certificate of the same authority.
    address : str
        "host:port"; port 0 lets the system choose.
    admitted : iterable of Caller, optional
        Who may call at all; the table of callers says what. By default the parties of the run, none of them named.
    recorder : Recorder, optional
        Records every call that arrives, the refused ones too.

    Raises
    ------
    OSError
        If the address cannot be bound, or the credentials cannot be used.
    """
    gate = _Gate(credentials.run, _parties_of(credentials.run) if admitted is None else admitted, recorder)
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=gate.calls_max + _REFUSING_THREADS, thread_name_prefix="rpc"),
        interceptors=[gate],
        options=(
            ("grpc.so_reuseport", 0),
            # Callers that wait ask whether the server is there; by default more than twice in five minutes is abuse.
            ("grpc.http2.min_ping_interval_without_data_ms", int(500 * PING_SECONDS)),
        ),
    )
    register(server)
    checks = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    secure = grpc.ssl_server_credentials(
        [(credentials.key.encode(), credentials.certificate.encode())],
        root_certificates=credentials.authority.encode(),
        require_client_auth=True,
    )
    try:
        port = server.add_secure_port(address, secure)
    except RuntimeError as error:
        raise OSError(f"cannot listen on {address} with this certificate, key and authority") from error
    server.start()
    checks.set("", health_pb2.HealthCheckResponse.SERVING)
    return Server(server, f"{address.rsplit(':', 1)[0]}:{port}")


def _parties_of(run: str) -> Iterable[Caller]:
    return (Caller(run, party) for party in PARTIES)


class _Gate(grpc.ServerInterceptor):
    """Lets a call through to its method, or refuses it."""

    def __init__(self, run: str, admitted: Iterable[Caller], recorder: Recorder | None) -> None:
        self._run = run
        self._recorder = recorder
        self._room = {caller: threading.BoundedSemaphore(CALLS_PER_CALLER) for caller in admitted}

    @property
    def calls_max(self) -> int:
        """How many calls there can be: one caller that holds its own open must not keep the others out."""
        return len(self._room) * CALLS_PER_CALLER

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], _Handler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> _Handler | None:
        handler = continuation(handler_call_details)
        if handler is None:
            return None
        method = handler_call_details.method
        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(self._streaming(handler, method))
        return grpc.stream_unary_rpc_method_handler(self._unary(handler, method))

    @contextlib.contextmanager
    def _admitted(self, context: grpc.ServicerContext, method: str) -> Iterator[None]:
        """Hold the call's place while it is under way."""
        caller = identify(context)
        if caller is None or caller.run != self._run:
            raise Refusal(error_pb2.REASON_CALLER_UNKNOWN)
        if caller not in self._room or caller.party not in CALLERS.get(method, frozenset()):
            raise Refusal(error_pb2.REASON_CALLER_NOT_ALLOWED)
        remaining = context.time_remaining()
        if remaining is None or remaining > DEADLINE_SECONDS_MAX + _ROUNDED_UP_SECONDS:
            raise Refusal(error_pb2.REASON_DEADLINE_MISSING)
        if not self._room[caller].acquire(blocking=False):
            raise Refusal(error_pb2.REASON_TOO_MANY_CALLS)
        try:
            yield
        finally:
            self._room[caller].release()

    @contextlib.contextmanager
    def _handled(self, context: grpc.ServicerContext, method: str, recorded: RecordedCall) -> Iterator[None]:
        """Let a call run if it may, and record how it ended."""
        try:
            with self._admitted(context, method):
                yield
            recorded.ended()
        except Exception as error:
            _end(context, method, error, recorded)
        finally:
            recorded.ended(_CANCELLED)  # whoever asked has left in the middle of the answer

    def _recorded(self, context: grpc.ServicerContext, method: str) -> RecordedCall:
        if self._recorder is None:
            return RecordedCall()
        caller = identify(context)
        peer = caller.party if caller is not None and caller.run == self._run else ""
        return self._recorder.answering(peer, method, context.invocation_metadata())

    def _unary(self, handler: _Handler, method: str) -> Callable[..., Any]:
        behaviour, ask, encode = _behaviour(handler), _asker(handler, method), _encoder(handler)

        def call(arriving: Iterator[bytes], context: grpc.ServicerContext) -> Any:
            recorded = self._recorded(context, method)
            with self._handled(context, method, recorded):
                return recorded.sent(encode(behaviour(ask(arriving, recorded), context)))

        return call

    def _streaming(self, handler: _Handler, method: str) -> Callable[..., Any]:
        behaviour, ask, encode = _behaviour(handler), _asker(handler, method), _encoder(handler)

        def call(arriving: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[Any]:
            recorded = self._recorded(context, method)
            with self._handled(context, method, recorded):
                for answer in behaviour(ask(arriving, recorded), context):
                    yield recorded.sent(encode(answer))

        return call


def _asker(handler: _Handler, method: str) -> Callable[[Iterator[bytes], RecordedCall], Any]:
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

    def stream(arriving: Iterator[bytes], recorded: RecordedCall) -> Iterator[Any]:
        return map(one, map(recorded.received, _to_the_end(arriving)))

    def lone(arriving: Iterator[bytes], recorded: RecordedCall) -> Any:
        messages = [recorded.received(data) for data in itertools.islice(_to_the_end(arriving), 2)]
        if len(messages) != 1:
            raise Refusal(error_pb2.REASON_REQUEST_MALFORMED)
        return one(messages[0])

    return stream if handler.request_streaming else lone


def _to_the_end(arriving: Iterator[bytes]) -> Iterator[bytes]:
    """Pass on a stream whose caller has said that it is whole; RpcError if the caller gave it up before that."""
    yield from arriving
    # A stream that is given up ends like a whole one if grpc tells of its end before it tells that the call is over.
    # It tells both in this order and at once; what it is asked now it answers after both.
    next(arriving, None)


def _encoder(handler: _Handler) -> Callable[[Any], bytes]:
    """Encode here rather than in grpc: the bytes that are recorded are those that travel."""
    encode: Callable[[Any], bytes] = handler.response_serializer or bytes
    return encode


def _behaviour(handler: _Handler) -> Callable[..., Any]:
    kinds = (handler.unary_unary, handler.unary_stream, handler.stream_unary, handler.stream_stream)
    return next(behaviour for behaviour in kinds if behaviour is not None)


def _end(context: grpc.ServicerContext, method: str, error: Exception, recorded: RecordedCall) -> None:
    """End a call that raised: a refusal says its reason, a cancelled call is over already, the rest is ours."""
    if isinstance(error, Refusal):
        recorded.ended(CATALOGUE[error.reason][0].value[0], error.reason)
        abort(context, error)
    if not context.is_active() or isinstance(error, grpc.RpcError):
        # The caller hung up or its deadline passed while it was still sending: nobody is left to answer.
        raise error
    LOG.exception("%s failed", method)
    recorded.ended(CATALOGUE[error_pb2.REASON_INTERNAL][0].value[0], error_pb2.REASON_INTERNAL)
    abort(context, Refusal(error_pb2.REASON_INTERNAL))
