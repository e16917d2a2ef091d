"""An AuditService that judges its caller: it answers, refuses or loses the line as a case says, and watches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any

import grpc
import numpy as np

from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.rpc import arrays
from fairwall.rpc.errors import CATALOGUE, METADATA_KEY
from fairwall.rpc.identity import Credentials
from fairwall.wire.limits import EPSILON_MIN
from fairwall.wire.v1 import error_pb2
from fairwall.wire.v1.array_pb2 import ELEMENT_TYPE_FLOAT64
from fairwall.wire.v1.metric_pb2 import METRIC_SP
from fairwall.wire.v1.precision_pb2 import Precision

SERVICE = "/fairwall.compliance.v1.AuditService/"
PEOPLE = 60_000
"""So many that one model's predictions do not fit into a message of gRPC's 4 MiB with nine others."""

_HOUR = 3600.0 + 30.0
_MESSAGE_MAX = 4 << 20
_CHUNK_MAX = 2 << 20
"""Chunks of about 1 MiB: twice that is not."""


@dataclass(frozen=True)
class Heard:
    """One audit that was asked for: its request id, and everything else that was asked."""

    request_id: str
    asked: bytes = field(repr=False)


@dataclass
class Judge:
    """Serves AuditService to one client, for as long as the context lasts.

    Parameters
    ----------
    deal : str
    credentials : Credentials
        What it shows, which need not be compliance's.
    lose : int
        How many audits are lost: they arrive, and the line breaks before the answer.
    refuse : str
        The reason for which every audit is refused; empty: they are answered.
    """

    deal: str
    credentials: Credentials
    lose: int = 0
    refuse: str = ""
    heard: list[Heard] = field(default_factory=list)
    calls: int = 0
    faults: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> str:
        self._server = grpc.server(
            futures.ThreadPoolExecutor(8), options=(("grpc.max_receive_message_length", 64 << 20),)
        )
        self._server.add_generic_rpc_handlers((_Handlers(self._answer),))
        own = self.credentials
        secure = grpc.ssl_server_credentials(
            [(own.key.encode(), own.certificate.encode())], own.authority.encode(), require_client_auth=True
        )
        port = self._server.add_secure_port("127.0.0.1:0", secure)
        self._server.start()
        return f"127.0.0.1:{port}"

    def __exit__(self, *_: object) -> None:
        self._server.stop(0).wait()

    def _answer(self, method: str, requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        remaining = context.time_remaining()
        with self._lock:
            self.calls += 1
            if remaining is None or remaining > _HOUR:
                self._fault(f"{method.rpartition('/')[2]} came without a deadline of at most one hour")
        if method == SERVICE + "GetTerms":
            request = audit.GetTermsRequest.FromString(next(requests, b""))
            if request.deal_id != self.deal:
                _abort(context, error_pb2.REASON_DEAL_UNKNOWN)
            return self._terms().SerializeToString()
        if method != SERVICE + "Audit":
            self._fault(f"{method} is nothing that a developer asks compliance for")
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "")
        header, models = self._receive(requests)
        with self._lock:
            lost = self.lose > 0
            self.lose -= lost
        if lost:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the line is lost")
        if self.refuse:
            _abort(context, error_pb2.Reason.Value(f"REASON_{self.refuse}"))
        return self._told(header, models).SerializeToString()

    def _terms(self) -> audit.GetTermsResponse:
        return audit.GetTermsResponse(
            people=PEOPLE,
            metrics=[METRIC_SP],
            mechanism="laplace",
            epsilon=8.0,
            epsilon_remaining=8.0,
            queries_max=16,
            precision=Precision(float=ELEMENT_TYPE_FLOAT64),
            epsilon_max=8.0,
        )

    def _told(self, header: audit.AuditHeader, models: int) -> audit.AuditResponse:
        gaps = arrays.to_message(np.linspace(-0.25, 0.25, max(models, 1)))
        unknown = arrays.to_message(np.full(max(models, 1), np.nan))
        return audit.AuditResponse(
            gaps=gaps,
            low=unknown,
            high=unknown,
            probability_above=unknown if header.HasField("threshold") else None,
            epsilon_charged=header.epsilon,
            epsilon_remaining=8.0 - header.epsilon,
        )

    def _receive(self, requests: Iterator[bytes]) -> tuple[audit.AuditHeader, int]:
        """Take an audit, and note whatever is wrong about it."""
        header, data = audit.AuditHeader(), bytearray()
        for number, message in enumerate(requests):
            if len(message) > _MESSAGE_MAX:
                self._fault(f"a message of {len(message)} bytes came: more than 4 MiB")
            request = audit.AuditRequest.FromString(message)
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
        if header.metric != METRIC_SP:
            self._fault("it asks for a metric that the terms do not allow")
        if not EPSILON_MIN <= header.epsilon <= 8.0:
            self._fault(f"it offers epsilon {header.epsilon:g}, which the terms do not leave")
        try:
            arriving = arrays.ArrivingArray(header.predictions)
            arriving.append(data)
            predictions = arriving.finish()
        except arrays.ArrayError as error:
            self._fault(f"its predictions are no array: {error}")
            return 1
        if predictions.ndim != 2 or predictions.shape[1] != PEOPLE or not 1 <= len(predictions) <= 16:
            self._fault("its predictions have not one row a model and one column a person")
            return 1
        values = predictions.astype(np.float64)
        if not ((values >= 0) & (values <= 1)).all():
            self._fault("its predictions do not lie in [0, 1]")
        return len(predictions)

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


def _abort(context: grpc.ServicerContext, reason: Any) -> None:
    status, sentence = CATALOGUE[reason]
    context.set_trailing_metadata(((METADATA_KEY, error_pb2.Error(reason=reason).SerializeToString()),))
    context.abort(status, sentence)
