"""Releases of sanitised attributes, and their service; in the release game also the trained model's measures."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from compliance.answers.audit_service import check_request_id, developer_of, explained, opened
from compliance.answers.charging import game_ledger, room_of
from compliance.answers.studies import Study
from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Loss, Neighbours
from compliance.ledger.entries import LedgerEntry, Reply, Request
from compliance.mechanisms.local_protocols import PROTOCOLS, seeded, system
from compliance.noise.sampling import request_key
from compliance.records.people import Records
from fairwall.arrays import Bytes, Floats
from fairwall.compliance.v1 import release_service_pb2 as wire
from fairwall.compliance.v1.release_service_pb2_grpc import ReleaseServiceServicer
from fairwall.laws.local import CLEAN, LocalPrivacyError
from fairwall.laws.metrics.utility import RATED, UTILITIES
from fairwall.learning.design import design, one_hot
from fairwall.learning.forest import from_array
from fairwall.rpc import arrays
from fairwall.rpc.errors import Refusal
from fairwall.wire.numbers import EPSILON_MIN
from fairwall.wire.v1 import error_pb2


@dataclass(frozen=True)
class SanitisedColumn:
    """A sensitive column: index in the file, domain size, share of epsilon, name, and its values' names.

    Values are in the order of their codes; empty where only codes are known.
    """

    place: int
    domain: int
    share: float
    name: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class AttributeRelease:
    """People whose sensitive attributes are released sanitised, and the ledger that pays.

    Parameters
    ----------
    dataset : the people's name in the ledger.
    protocol : one of `PROTOCOLS`, or ``CLEAN``.
    values : shape (people, columns), each within its column's domain.
    ledger : holds a budget for the data set, and the developer's share of it.
    seed : of the randomness; None draws it from the operating system.
    epsilon_min : least epsilon of one release.
    developers : the developers admitted, as in `Case`.
    """

    dataset: str
    protocol: str
    columns: Sequence[SanitisedColumn]
    values: Bytes = field(repr=False)
    ledger: Ledger = field(repr=False)
    seed: bytes | None = field(repr=False)
    epsilon_min: float = EPSILON_MIN
    developers: frozenset[str] | None = None
    answers_a_day: Mapping[str, int] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Number of values of all columns together."""
        return sum(column.domain for column in self.columns)

    @property
    def spent(self) -> float:
        """Epsilon spent of the budget, on releases and everything else it pays for."""
        return self.ledger.standing(self.dataset).spent

    def answer(self, developer: str, request_id: str, digest: bytes, epsilon: float) -> LedgerEntry:
        """Charge a release and draw it, or return the stored one of the same request: it is never drawn twice.

        Refusal, LedgerError or LedgerUnavailable as `Ledger.settle`; LocalPrivacyError if the protocol is undefined at
        this epsilon.
        """
        loss = Loss(epsilon)
        request = Request(
            self.dataset, developer, request_id, digest, "release", self.protocol, Neighbours.ATTRIBUTES, loss
        )
        room = room_of(developer, self.answers_a_day, self.epsilon_min)
        return self.ledger.settle(request, lambda _: Reply(self.sanitised(request_id, epsilon).tobytes()), room=room)

    def encoded(self, entry: LedgerEntry) -> NDArray[Any]:
        """Return the released values, shape (people, width)."""
        stored = np.frombuffer(entry.reply.answer, np.uint8)
        cells = len(self.values) * self.width
        numbers = stored if len(stored) == cells else stored.view(np.float64)
        return numbers.reshape(-1, self.width)

    def sanitised(self, request_id: str, epsilon: float) -> NDArray[Any]:
        """Draw a release, shape (people, width): with a seed, a function of the seed and the request alone."""
        if self.protocol == CLEAN:
            return np.hstack([one_hot(values, column.domain) for column, values in self._by_column()])
        draw = system()
        if self.seed is not None:
            draw = seeded(request_key(self.seed, request_id))
        parts = [
            PROTOCOLS[self.protocol].sanitise(values, column.domain, column.share * epsilon, draw)
            for column, values in self._by_column()
        ]
        return np.concatenate(parts, axis=1)

    def _by_column(self) -> Iterator[tuple[SanitisedColumn, Bytes]]:
        return zip(self.columns, self.values.T, strict=True)


def game_release(
    dataset: str, protocol: str, columns: Sequence[SanitisedColumn], values: Bytes, epsilon: float, seed: bytes | None
) -> AttributeRelease:
    """Open a game's release with a budget of epsilon, in a ledger in memory."""
    ledger = game_ledger(dataset, Neighbours.ATTRIBUTES, Budget(epsilon))
    return AttributeRelease(dataset, protocol, columns, values, ledger, seed)


class HandedModel:
    """The model of one deal: none until the developer hands one over, and then that one for good.

    `labels`: of the test set, shape (people,). `features`: codes of the columns that are not sensitive, shape (people,
    columns). `sensitive`: exact values, shape (people, sensitive columns). `sizes`: domain sizes of the columns that
    are not sensitive.
    """

    def __init__(
        self,
        labels: Bytes,
        features: NDArray[np.integer],
        sensitive: Bytes,
        columns: Sequence[SanitisedColumn],
        sizes: Sequence[int],
    ) -> None:
        self._labels, self._features, self._sensitive = labels, features, sensitive
        self._columns, self._sizes = columns, sizes
        self._digest = b""
        self._lock = threading.Lock()
        self.decisions = np.empty(0, np.uint8)
        self.utilities: tuple[float, ...] = ()

    def hand(self, nodes: NDArray[np.generic], *, sees_attributes: bool) -> None:
        """Take a model, untrusted, as written by `fairwall.learning.forest.to_array`, and measure it.

        The same model again changes nothing. Refusal ``OUT_OF_TURN`` for another model than the first,
        ``REQUEST_MALFORMED`` for an array that is no model of these features.
        """
        what = f"{nodes.dtype} {nodes.shape} {sees_attributes}".encode()
        digest = blake3(what + nodes.tobytes()).digest()
        with self._lock:  # calls may be concurrent
            if self._digest:
                if self._digest != digest:
                    raise Refusal(error_pb2.REASON_OUT_OF_TURN)
                return
            clear = zip(self._columns, self._sensitive.T, strict=True)
            encodings = {column.place: one_hot(values, column.domain) for column, values in clear if sees_attributes}
            rows = design(self._features, self._sizes, encodings)
            try:
                forest = from_array(nodes, rows.shape[1])
            except ValueError:
                raise Refusal(error_pb2.REASON_REQUEST_MALFORMED) from None
            scores = forest.scores(rows)
            self.decisions = (scores > 0).astype(np.uint8)
            self.utilities = tuple(one.measure(self._labels, self.decisions, scores) for one in UTILITIES.values())
            self._digest = digest

    def group_rates(self, records: Records) -> tuple[float, ...]:
        """Return the rates of which gaps are made, on these records of the test set, as in the audit report.

        Empty before a model is handed over. The records must have somebody of each group in every metric's stratum.
        """
        if not self._digest:
            return ()
        parts = [records.group_sums(metric, self.decisions[np.newaxis].astype(np.float64))[0] for metric in RATED]
        return tuple(float(one) for part in parts for one in (part.sum1[0] / part.n1, part.sum0[0] / part.n0))

    def scores(self, _request_id: str, count: int, _context: grpc.ServicerContext) -> Floats:
        """Return the model's decisions about the test set, shape (1, people).

        Refusal before the model is handed over, or for more than one model.
        """
        if not self._digest or count != 1:
            raise Refusal(error_pb2.REASON_MODEL_UNAVAILABLE)
        return self.decisions.astype(np.float64)[np.newaxis]


LOG = logging.getLogger(__name__)

_MODEL_BYTES_MAX = 1 << 26


@dataclass(frozen=True)
class ReleaseCase:
    """The release of one deal, the model that comes back, and whether the developer gets the model's utilities."""

    release: AttributeRelease
    model: HandedModel
    tells_utilities: bool

    @property
    def dataset(self) -> str:
        """The people's name in the ledger."""
        return self.release.dataset

    @property
    def developers(self) -> frozenset[str] | None:
        """The developers admitted, as in `AttributeRelease`."""
        return self.release.developers


class ReleaseService(ReleaseServiceServicer):
    """The gRPC service that releases attributes of the open deals.

    `cases`: by deal id; the caller adds and removes them. A `AttributeRelease` alone is a deployment's, to which no
    model comes back. `studies`: whose tables are released, likewise.
    """

    def __init__(
        self, cases: Mapping[str, ReleaseCase | AttributeRelease], studies: Mapping[str, Study] | None = None
    ) -> None:
        self._cases = cases
        self._studies = {} if studies is None else studies

    def GetReleaseTerms(
        self, request: wire.GetReleaseTermsRequest, context: grpc.ServicerContext
    ) -> wire.GetReleaseTermsResponse:
        """Return the terms of a release."""
        release = self._release(request.deal_id, context)
        with explained(request.deal_id):
            standing = release.ledger.standing(release.dataset, developer_of(context))
        terms = _terms(release)
        terms.epsilon = standing.budget.epsilon if standing.budget else 0.0
        terms.epsilon_remaining = standing.remaining
        return terms

    def Sanitise(self, request: wire.SanitiseRequest, context: grpc.ServicerContext) -> Iterator[wire.SanitiseResponse]:
        """Release sanitised attributes."""
        release = self._release(request.deal_id, context)
        check_request_id(request.request_id)
        if release.protocol not in (*PROTOCOLS, CLEAN):  # the controls that release nothing
            raise Refusal(error_pb2.REASON_MECHANISM_REFUSES)
        if not request.epsilon >= release.epsilon_min:
            raise Refusal(error_pb2.REASON_EPSILON_INVALID)
        # The digest covers the terms too: a release bought on other terms is not this request's, and has another shape.
        asked = (message.SerializeToString(deterministic=True) for message in (request, _terms(release)))
        try:
            with explained(request.deal_id):
                entry = release.answer(
                    developer_of(context), request.request_id, blake3(b"".join(asked)).digest(), request.epsilon
                )
        except LocalPrivacyError:
            raise Refusal(error_pb2.REASON_EPSILON_INVALID) from None
        encoded = release.encoded(entry)
        LOG.info("deal %s: released %d columns of %d people", request.deal_id, len(release.columns), len(encoded))
        yield wire.SanitiseResponse(
            header=wire.SanitisedHeader(
                epsilons=[column.share * request.epsilon for column in release.columns],
                encoded=arrays.header_of(encoded),
                epsilon_charged=entry.request.loss.epsilon,
                epsilon_remaining=entry.remaining,
            )
        )
        yield from (wire.SanitiseResponse(encoded_chunk=chunk) for chunk in arrays.chunks_of(encoded))

    def HandModel(
        self, request_iterator: Iterator[wire.HandModelRequest], context: grpc.ServicerContext
    ) -> wire.HandModelResponse:
        """Take the trained model."""
        header = arrays.first_header(request_iterator)
        case = opened(self._cases, header.deal_id, context)
        if isinstance(case, AttributeRelease):
            raise Refusal(error_pb2.REASON_NO_FEATURES)
        nodes = arrays.array_after(header.nodes, request_iterator, "nodes_chunk", _MODEL_BYTES_MAX)
        case.model.hand(nodes, sees_attributes=header.sees_attributes)
        LOG.info("deal %s: got a model of %d nodes", header.deal_id, len(nodes))
        return wire.HandModelResponse(utilities=case.model.utilities if case.tells_utilities else ())

    def Tabulate(self, request: wire.TabulateRequest, context: grpc.ServicerContext) -> Iterator[wire.TabulateResponse]:
        """Release a study's table."""
        study = self._studies.get(request.deal_id)
        if study is None:
            raise Refusal(error_pb2.REASON_DEAL_UNKNOWN)
        check_request_id(request.request_id)
        if not request.epsilon >= EPSILON_MIN:
            raise Refusal(error_pb2.REASON_EPSILON_INVALID)
        digest = blake3(request.SerializeToString(deterministic=True)).digest()
        with explained(request.deal_id):
            entry = study.answer(developer_of(context), request.request_id, digest, request.epsilon)
        table = study.table(entry)
        LOG.info("deal %s: released a table of shape %s", request.deal_id, table.shape)
        yield wire.TabulateResponse(
            header=wire.TableHeader(
                table=arrays.header_of(table),
                epsilon_charged=entry.request.loss.epsilon,
                epsilon_remaining=entry.remaining,
            )
        )
        yield from (wire.TabulateResponse(table_chunk=chunk) for chunk in arrays.chunks_of(table))

    def _release(self, deal_id: str, context: grpc.ServicerContext) -> AttributeRelease:
        case = opened(self._cases, deal_id, context)
        return case.release if isinstance(case, ReleaseCase) else case


def _terms(release: AttributeRelease) -> wire.GetReleaseTermsResponse:
    """Return the terms, except the caller's remaining budget."""
    return wire.GetReleaseTermsResponse(
        people=len(release.values),
        protocol=release.protocol,
        columns=[
            wire.ReleasedColumn(name=column.name, domain=column.domain, share=column.share, values=column.values)
            for column in release.columns
        ],
    )
