"""An AuditService that tests its caller: it answers, refuses or loses the connection as a case says."""

from __future__ import annotations

import contextlib
import functools
import getpass
import math
import os
import platform
import re
import socket
import string
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from google.protobuf.message import DecodeError

from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.rpc import arrays
from fairwall.rpc.errors import CATALOGUE, METADATA_KEY
from fairwall.rpc.identity import Credentials
from fairwall.wire.metrics import number_of
from fairwall.wire.numbers import EPSILON_MIN
from fairwall.wire.v1 import error_pb2
from fairwall.wire.v1.array_pb2 import ELEMENT_TYPE_FLOAT64
from fairwall.wire.v1.precision_pb2 import Precision
from sim.conformance.calls import ProtocolViolation

BITS = 64
_SPARE_BITS = 8
"""Tolerance in bits. Of 16 random hexadecimal digits, two or more are equal in five ids with a probability of 3e-8."""

_ALPHABETS = (
    string.digits,
    "0123456789abcdef",
    "0123456789ABCDEF",
    string.digits + string.ascii_lowercase,
    string.digits + string.ascii_uppercase,
    string.digits + string.ascii_letters,
    string.digits + string.ascii_letters + "+/-_",
)
USER, MACHINE = "somebody-of-the-kit", "machine-of-the-kit"
"""Names of the user and of the machine that a client is started with."""

_SHORT = 4
"""Shortest name that is searched for; shorter ones occur anywhere."""


def require_unguessable(ids: Sequence[str]) -> None:
    """Demand that the ids of several runs, at least five, have nothing in common."""
    if len(set(ids)) < len(ids):
        raise ProtocolViolation("another run, at the same time by its clock, sent another request under the same id")
    bits = _bits(ids)
    if bits < BITS - _SPARE_BITS:
        raise ProtocolViolation(f"request ids vary by about {bits:.0f} bits; {BITS} random ones are due")


def require_nameless(texts: Iterable[str], what: str) -> None:
    """Demand that the texts do not all contain a name of this machine or of its user."""
    known = [text.lower() for text in texts]
    for name in names():
        if known and all(name.lower() in text for text in known):
            raise ProtocolViolation(f"{what} tells the name of its machine or of its user")


@functools.cache
def names() -> tuple[str, ...]:
    """Return the names of this machine and of its user."""
    host = {socket.gethostname(), platform.node(), socket.getfqdn()}
    found = {USER, MACHINE, *host, *(name.partition(".")[0] for name in host), str(Path.home()), str(Path.cwd())}
    for key in ("USER", "LOGNAME", "HOSTNAME"):
        found.add(os.environ.get(key, ""))
    with contextlib.suppress(KeyError, OSError):
        found.add(getpass.getuser())
    return tuple(sorted(name for name in found if len(name) >= _SHORT and name != "localhost"))


def _bits(ids: Sequence[str]) -> float:
    """Estimate by how many bits ids vary: each differing place counts as one letter of their alphabet."""
    width = max(map(len, ids))
    # Numbers grow at their beginning, texts at their end: pad on either side.
    return min(_bits_of([text.ljust(width) for text in ids]), _bits_of([text.rjust(width) for text in ids]))


def _bits_of(ids: Sequence[str]) -> float:
    places = [set(place) for place in zip(*ids, strict=True)]
    varying = [place for place in places if len(place) > 1]
    letters = set().union(*varying) - {" "}
    alphabet = next((each for each in _ALPHABETS if letters <= set(each)), string.printable[:95])
    return len(varying) * math.log2(len(alphabet))


SERVICE = "/fairwall.compliance.v1.AuditService/"
PEOPLE = 60_000
"""People of the terms: ten models' predictions about these exceed gRPC's message limit of 4 MiB."""

_PLATFORM = re.compile(r"\([^)]*\)")
_AGENT = re.compile(r"(?:[a-z][a-z-]*/[\w.+-]+ ?)+(?:\([\w; .+-]*\))?")
"""User agent of a gRPC library: names with versions, and its platform."""

_HOUR = 3600.0 + 30.0
_MESSAGE_MAX = 4 << 20
_CHUNK_MAX = 2 << 20
"""Largest chunk: twice the recommended 1 MiB."""


@dataclass(frozen=True)
class Heard:
    """One requested audit: its request id, and the rest of the request."""

    request_id: str
    asked: bytes = field(repr=False)


@dataclass(frozen=True)
class OfferedTerms:
    """The terms offered to a client, where they affect its requests."""

    people: int = PEOPLE
    metric: str = "sp"
    queries_max: int = 16
    epsilon: float = 8.0
    epsilon_max: float = 8.0
    epsilon_min: float = 0.0


@dataclass
class Judge:
    """A server of AuditService for one client, for as long as the context lasts.

    It shows `credentials`, which need not be compliance's, and after the first audit, which is lost, those of `then`:
    it must not be called any more. `lose` audits are lost: they arrive, and the connection ends before the answer, with
    the status `fails`, or with "reason INTERNAL". With `refuse` every audit is refused for this reason.
    """

    deal: str
    credentials: Credentials
    lose: int = 0
    refuse: str = ""
    offer: OfferedTerms = OfferedTerms()
    fails: str = "UNAVAILABLE"
    then: Credentials | None = None
    told: list[str] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    calls: int = 0
    faults: list[str] = field(default_factory=list)
    _changed: bool = False
    _address: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> str:
        self._address = f"127.0.0.1:{self._serve(self.credentials, 0)}"
        return self._address

    def __exit__(self, *_: object) -> None:
        self._server.stop(0).wait()

    def _serve(self, credentials: Credentials, port: int) -> int:
        self._server = grpc.server(
            futures.ThreadPoolExecutor(8), options=(("grpc.max_receive_message_length", 64 << 20),)
        )
        self._server.add_generic_rpc_handlers((_Handlers(self._answer),))
        secure = grpc.ssl_server_credentials(
            [(credentials.key.encode(), credentials.certificate.encode())],
            credentials.authority.encode(),
            require_client_auth=True,
        )
        port = self._server.add_secure_port(f"127.0.0.1:{port}", secure)
        self._server.start()
        return port

    def _change(self, credentials: Credentials, port: int) -> None:
        """Show other credentials at the same address."""
        self._server.stop(0).wait()
        self._changed = True
        self._serve(credentials, port)

    def _answer(self, method: str, requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        remaining = context.time_remaining()
        self._look_at(context)
        with self._lock:
            self.calls += 1
            if self._changed:
                self._fault("it called a server that is not the one it means, where that one was before")
            if remaining is None or remaining > _HOUR:
                self._fault(f"{method.rpartition('/')[2]} came without a deadline of at most one hour")
        if method == SERVICE + "GetTerms":
            request = _decoded(audit.GetTermsRequest, next(requests, b""), self._fault)
            if request.deal_id != self.deal:
                _abort(context, error_pb2.REASON_DEAL_UNKNOWN)
            return self._terms().SerializeToString()
        if method != SERVICE + "Audit":
            self._fault(f"{method} is nothing that a developer asks compliance for")
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "")
        header, models = self._receive(requests)
        if self.then is not None:
            port = int(self._address.rpartition(":")[2])
            threading.Thread(target=self._change, args=(self.then, port), daemon=True).start()
            context.abort(grpc.StatusCode.UNAVAILABLE, "the line is lost")
        with self._lock:
            lost = self.lose > 0
            self.lose -= lost
        if lost:
            if self.fails == "reason INTERNAL":
                _abort(context, error_pb2.REASON_INTERNAL)
            context.abort(grpc.StatusCode[self.fails], "the line is lost")
        if self.refuse:
            _abort(context, error_pb2.Reason.Value(f"REASON_{self.refuse}"))
        return self._told(header, models).SerializeToString()

    def _terms(self) -> audit.GetTermsResponse:
        return audit.GetTermsResponse(
            people=self.offer.people,
            metrics=[number_of(self.offer.metric)],
            mechanism="laplace",
            epsilon=self.offer.epsilon,
            epsilon_remaining=self.offer.epsilon,
            queries_max=self.offer.queries_max,
            precision=Precision(float=ELEMENT_TYPE_FLOAT64),
            epsilon_max=self.offer.epsilon_max,
            epsilon_min=self.offer.epsilon_min,
        )

    def _told(self, header: audit.AuditHeader, models: int) -> audit.AuditResponse:
        gaps = arrays.to_message(np.linspace(-0.25, 0.25, max(models, 1)))
        unknown = arrays.to_message(np.full(max(models, 1), np.nan))
        return audit.AuditResponse(
            gaps=gaps,
            low=unknown,
            high=unknown,
            likely_low=unknown,
            likely_high=unknown,
            probability_above=unknown if header.HasField("threshold") else None,
            epsilon_charged=header.epsilon,
            epsilon_remaining=max(0.0, self.offer.epsilon - header.epsilon),
        )

    def _receive(self, requests: Iterator[bytes]) -> tuple[audit.AuditHeader, int]:
        """Return an audit's header and its number of models, and record its faults."""
        header, data = audit.AuditHeader(), bytearray()
        for number, message in enumerate(requests):
            if len(message) > _MESSAGE_MAX:
                self._fault(f"a message of {len(message)} bytes came: more than 4 MiB")
            request = _decoded(audit.AuditRequest, message, self._fault)
            part = request.WhichOneof("part")
            if (part == "header") != (number == 0):
                self._fault("the header comes first, and once")
            if part == "header":
                header = request.header
            elif len(request.predictions_chunk) > _CHUNK_MAX:
                self._fault(f"a chunk of {len(request.predictions_chunk)} bytes came, not of about 1 MiB")
            data += request.predictions_chunk
        models = self._check(header, bytes(data))
        with self._lock:
            asked = audit.AuditHeader()
            asked.CopyFrom(header)
            asked.ClearField("request_id")
            self.heard.append(Heard(header.request_id, asked.SerializeToString(deterministic=True) + bytes(data)))
        return header, models

    def _check(self, header: audit.AuditHeader, data: bytes) -> int:
        if not (1 <= len(header.request_id) <= 64 and header.request_id.isascii() and header.request_id.isprintable()):
            self._fault("a request id must be 1 to 64 printable ASCII characters")
        if header.deal_id != self.deal:
            self._fault("it asks about another deal")
        if header.metric != number_of(self.offer.metric):
            self._fault("it asks for a metric that the terms do not allow")
        least = max(EPSILON_MIN, self.offer.epsilon_min)
        if not least <= header.epsilon <= min(self.offer.epsilon, self.offer.epsilon_max):
            self._fault(f"it offers epsilon {header.epsilon:,g}, which the terms do not leave")
        try:
            predictions = arrays.gathered(header.predictions, [data])
        except arrays.ArrayError as error:
            self._fault(f"its predictions are no array: {error}")
            return 1
        fits = predictions.ndim == 2 and predictions.shape[1] == self.offer.people
        if not fits or not 1 <= len(predictions) <= self.offer.queries_max:
            self._fault("its predictions have not one row a model and one column a person")
            return 1
        values = predictions.astype(np.float64)
        if not ((values >= 0) & (values <= 1)).all():
            self._fault("its predictions do not lie in [0, 1]")
        return len(predictions)

    def _look_at(self, context: grpc.ServicerContext) -> None:
        """Record a call's metadata and their faults."""
        for key, value in context.invocation_metadata():
            text = value if isinstance(value, str) else value.decode("latin-1")
            self.told.append(f"{key}: {_PLATFORM.sub('', text) if key == 'user-agent' else text}")
            if key == "user-agent" and not _AGENT.fullmatch(text):
                self._fault("its user-agent is not gRPC's")
        for word in (word for word in names() if any(word.lower() in told.lower() for told in self.told)):
            self._fault(f"its metadata tell {word!r}, the name of its machine or of its user")

    def _fault(self, text: str) -> None:
        self.faults.append(text)


@dataclass
class _Handlers(grpc.GenericRpcHandler):
    answer: Callable[[str, Iterator[bytes], grpc.ServicerContext], bytes]

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        method: str = handler_call_details.method

        def call(requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
            return self.answer(method, requests, context)

        return grpc.stream_unary_rpc_method_handler(call)


def _decoded(kind: Any, data: bytes, fault: Callable[[str], None]) -> Any:
    try:
        message = kind.FromString(data)
    except DecodeError:
        fault(f"it sends what is no {kind.DESCRIPTOR.name}")
        return kind()
    known = kind.FromString(data)
    known.DiscardUnknownFields()
    if known.ByteSize() != message.ByteSize():
        fault(f"its {kind.DESCRIPTOR.name} has fields that the protocol does not know")
    return message


def _abort(context: grpc.ServicerContext, reason: Any) -> None:
    status, sentence = CATALOGUE[reason]
    context.set_trailing_metadata(((METADATA_KEY, error_pb2.Error(reason=reason).SerializeToString()),))
    context.abort(status, sentence)
