"""ReleaseService: validate, sanitise, record, reply; and take the model trained on the release."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import grpc
from blake3 import blake3

from compliance.answers.audit_service import check_request_id, developer_of, explained, opened
from compliance.answers.releases import AttributeRelease, HandedModel
from compliance.answers.tables import Study
from compliance.mechanisms.local import PROTOCOLS
from fairwall.compliance.v1 import release_service_pb2 as wire
from fairwall.compliance.v1.release_service_pb2_grpc import ReleaseServiceServicer
from fairwall.laws.local import CLEAN, LocalPrivacyError
from fairwall.rpc import arrays, uploads
from fairwall.rpc.errors import Refusal
from fairwall.wire.limits import EPSILON_MIN
from fairwall.wire.v1 import error_pb2

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
        header = uploads.header_of(request_iterator)
        case = opened(self._cases, header.deal_id, context)
        if isinstance(case, AttributeRelease):
            raise Refusal(error_pb2.REASON_NO_FEATURES)
        nodes = uploads.array_after(header.nodes, request_iterator, "nodes_chunk", _MODEL_BYTES_MAX)
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
