"""Make calls that no honest client would make, and record everything that a caller sees of their ends."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any, TypeAlias

import grpc
import numpy as np
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message
from grpc_health.v1 import health_pb2  # noqa: F401 - nor its methods without it
from numpy.typing import NDArray

from fairwall.arrays import Floats
from fairwall.rpc import arrays
from fairwall.rpc.addresses import is_loopback
from fairwall.rpc.errors import CATALOGUE, METADATA_KEY
from fairwall.rpc.identity import Credentials, server_name_of
from fairwall.wire.v1 import error_pb2

_SPENT: dict[str, tuple[str, ...]] = {"BUDGET_EXHAUSTED": ("epsilon_remaining", "epsilon_needed")}

NUMBERS: dict[str, dict[str, tuple[str, ...]]] = {
    "fairwall.compliance.v1.AuditService": {
        "PREDICTIONS_SHAPE": ("people",),
        "QUERIES_OUT_OF_RANGE": ("queries_max",),
        "EPSILON_INVALID": ("epsilon_max",),
        **_SPENT,
    },
    "fairwall.compliance.v1.GroupService": {
        "PREDICTIONS_SHAPE": ("people",),
        "QUERIES_OUT_OF_RANGE": ("queries_max",),
        "EPSILON_INVALID": ("epsilon_max", "epsilon_min"),
        **_SPENT,
    },
    "fairwall.compliance.v1.ReleaseService": _SPENT,
}
"""Numbers that a service sends with a reason, by service and reason; all other reasons come without numbers."""

Metadata: TypeAlias = tuple[tuple[str, str | bytes], ...]

_ENCODINGS = r"(identity|deflate|gzip)(, ?(identity|deflate|gzip))*"

_TRANSPORT = {
    "content-type": r"application/grpc(\+proto)?",
    "grpc-encoding": _ENCODINGS,
    "grpc-accept-encoding": _ENCODINGS,
    "accept-encoding": _ENCODINGS,
}
"""Metadata that a gRPC library may add, and their allowed values; the time of day, in ``date``, is also allowed."""

_DATE_SECONDS = 2.0
"""Largest difference in seconds between a server's ``date``, in whole seconds, and the tester's clock."""

_SILENT = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}
"""Statuses with which a call may fail without a reason, before the service itself could refuse it."""


class ProtocolViolation(Exception):
    """An act of a server or a client that the protocol forbids; every check raises it. The text is for people."""


@dataclass(frozen=True)
class CallResult:
    """Everything that a caller sees of one call.

    `reason` is the catalogue's name, empty if the call was not refused for a reason; `trailing` the trailing metadata,
    without what the transport adds; `messages` the answer; `numbers` those that a refusal of compliance has beside its
    reason.
    """

    status: grpc.StatusCode
    details: str
    reason: str
    trailing: Metadata
    messages: tuple[Any, ...] = ()
    numbers: tuple[tuple[str, float], ...] = ()

    @property
    def answered(self) -> bool:
        """Whether the call succeeded."""
        return self.status is grpc.StatusCode.OK

    @property
    def text(self) -> str:
        """The end of the call, in words for people."""
        if self.answered:
            return "was answered"
        return f"was refused as {self.reason}" if self.reason else f"failed as {self.status.name} ({self.details})"


def dial(address: str, server: str, run: str, credentials: Credentials | None, *, tls: bool = True) -> grpc.Channel:
    """Open a separate channel, without retries, to the `server` of a `run`, which must be the one that answers.

    The credentials are the caller's; without a certificate, only an authority, the caller shows none. Without `tls` the
    caller uses plain text.
    """
    options = [
        ("grpc.ssl_target_name_override", server_name_of(run, server)),
        ("grpc.enable_retries", 0),
        ("grpc.enable_http_proxy", int(not is_loopback(address))),
        # Every channel has its own connection, so callers do not affect each other.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
        ("grpc.max_receive_message_length", 64 << 20),
    ]
    if not tls or credentials is None:
        return grpc.insecure_channel(address, options)
    return grpc.secure_channel(
        address,
        grpc.ssl_channel_credentials(
            credentials.authority.encode(),
            credentials.key.encode() or None,
            credentials.certificate.encode() or None,
        ),
        options,
    )


def method_types(method: str) -> tuple[type[Message], type[Message], bool, bool]:
    """Return a method's request and response types, and whether each is a stream."""
    service, _, name = method.strip("/").partition("/")
    found: Any = descriptor_pool.Default().FindServiceByName(service).FindMethodByName(name)
    if found is None:
        raise KeyError(method)
    return (
        message_factory.GetMessageClass(found.input_type),
        message_factory.GetMessageClass(found.output_type),
        found.client_streaming,
        found.server_streaming,
    )


def start(
    channel: grpc.Channel,
    method: str,
    requests: Iterable[bytes],
    seconds: float | None,
    metadata: Metadata = (),
    *,
    streamed: bool = False,
) -> Any:
    """Start a call of bytes that may be no messages, as a stream if `streamed`; :func:`finish` waits for its end."""
    try:
        _, _, streams_in, streams_out = method_types(method)
    except KeyError:
        streams_in, streams_out = True, False
    streams_in |= streamed
    request: Any = iter(requests) if streams_in else next(iter(requests), b"")
    if streams_out:
        answered: Any = channel.stream_stream if streams_in else channel.unary_stream
        return answered(method)(request, timeout=seconds, metadata=metadata)
    called: Any = channel.stream_unary if streams_in else channel.unary_unary
    return called(method).future(request, timeout=seconds, metadata=metadata)


def finish(method: str, call: Any) -> CallResult:
    """Wait for a call's end, and return everything that came back."""
    try:
        _, response, _, streams_out = method_types(method)
    except KeyError:
        response, streams_out = error_pb2.Error, False
    answers: list[bytes] = []
    try:
        answers.extend(call if streams_out else [call.result()])
    except grpc.FutureCancelledError:
        return CallResult(grpc.StatusCode.CANCELLED, "", "", ())
    except grpc.RpcError as failed:
        _require_quiet(call.initial_metadata(), ())
        return _refusal(method, failed)
    if kept := _kept(call.trailing_metadata()):
        raise ProtocolViolation(f"an answer came with metadata that nobody asked for: {_keys(kept)}")
    if call.details():
        raise ProtocolViolation("an answer came with a text beside it")
    _require_quiet(call.initial_metadata(), ())
    told = (_decoded(response, data) for data in answers)
    # Every request for gaps gets an answer, by itself or within another message.
    return CallResult(grpc.StatusCode.OK, "", "", (), tuple(getattr(message, "answer", message) for message in told))


def array(message: Any, what: str) -> NDArray[Any]:
    """Return an array of an answer; raise Violation if it is malformed."""
    try:
        return arrays.from_message(message)
    except arrays.ArrayError as error:
        raise ProtocolViolation(f"{what}: {error}") from None


def numbers(message: Any, what: str, count: int, item: str) -> Floats:
    """Return an answer's array of `count` float64 numbers, one for each `item`; raise Violation if it differs."""
    values = array(message, what)
    if values.dtype != np.float64 or values.shape != (count,):
        raise ProtocolViolation(f"{what}: must be one float64 a {item}, not {values.dtype} of shape {values.shape}")
    return values.astype(np.float64, copy=False)


def _refusal(method: str, failed: Any) -> CallResult:
    status, details, trailing = failed.code(), failed.details() or "", _kept(failed.trailing_metadata())
    errors = [value for key, value in trailing if key == METADATA_KEY]
    if not errors:
        if status not in _SILENT:
            raise ProtocolViolation(f"a call failed as {status.name} without one of the protocol's reasons ({details})")
        _require_quiet(trailing, ())
        return CallResult(status, details, "", trailing)
    _require_quiet(trailing, (METADATA_KEY,))
    if len(errors) != 1:
        raise ProtocolViolation("a refusal came with several reasons")
    tells = NUMBERS.get(method.strip("/").partition("/")[0])
    error = _decoded(error_pb2.Error if tells is None else error_pb2.AuditError, errors[0])
    if error.reason not in CATALOGUE:
        raise ProtocolViolation(f"a refusal has the reason {error.reason}, which the protocol does not know")
    reason = error_pb2.Reason.Name(error.reason).removeprefix("REASON_")
    if (status, details) != CATALOGUE[error.reason]:
        expected, sentence = CATALOGUE[error.reason]
        raise ProtocolViolation(
            f"{reason} came as {status.name} with the text {details!r}, not as {expected.name} with {sentence!r}"
        )
    numbers = tuple((field.name, value) for field, value in error.ListFields() if field.name != "reason")
    expected_numbers = (tells or {}).get(reason, ())
    if tuple(name for name, _ in numbers) != expected_numbers:
        told = ", ".join(name for name, _ in numbers)
        raise ProtocolViolation(
            f"{reason} came with {told or 'no number'}, not with {', '.join(expected_numbers) or 'none'}"
        )
    return CallResult(status, details, reason, trailing, numbers=numbers)


def _kept(metadata: Any) -> Metadata:
    return tuple((key, value) for key, value in metadata or () if not _is_transport(key, value))


def _is_transport(key: str, value: str | bytes) -> bool:
    text = value if isinstance(value, str) else value.decode("latin-1")
    if key == "date":
        try:
            told = parsedate_to_datetime(text)
        except ValueError:
            return False
        return format_datetime(told, usegmt=True) == text and abs(told.timestamp() - time.time()) <= _DATE_SECONDS
    return key in _TRANSPORT and re.fullmatch(_TRANSPORT[key], text) is not None


def _require_quiet(metadata: Any, allowed: tuple[str, ...]) -> None:
    told = [pair for pair in _kept(metadata) if pair[0] not in allowed]
    if told:
        raise ProtocolViolation(f"a call came back with metadata that nobody asked for: {_keys(told)}")


def _keys(metadata: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(sorted({key for key, _ in metadata}))


def _decoded(kind: Any, data: Any) -> Any:
    try:
        message = kind.FromString(bytes(data))
    except DecodeError:
        raise ProtocolViolation(f"what came back is no {kind.DESCRIPTOR.name}") from None
    known = kind.FromString(bytes(data))
    known.DiscardUnknownFields()
    if known.ByteSize() != message.ByteSize():
        raise ProtocolViolation(f"{kind.DESCRIPTOR.name} came with fields that the protocol does not know")
    if message.SerializeToString(deterministic=True) != bytes(data):
        raise ProtocolViolation(
            f"{kind.DESCRIPTOR.name} came in other bytes than its fields have: in another order, or twice"
        )
    return message
