"""AuditService: validate, compute, record, reply."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

import grpc
import numpy as np
from numpy.typing import NDArray

from compliance.answers.audits import AuditCase, intervals_of, search_of, values_of
from compliance.answers.charging import DEVELOPER
from compliance.answers.exposure import reveal_max
from compliance.answers.sealed import SealedModels
from compliance.ledger.entries import LedgerError
from compliance.ledger.store import LedgerUnavailable
from compliance.mechanisms.counts import UnseenPredictions
from compliance.records.sums import TableSums
from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.compliance.v1 import group_service_pb2 as group
from fairwall.compliance.v1.audit_service_pb2_grpc import AuditServiceServicer
from fairwall.laws.metrics.metric import METRICS
from fairwall.laws.metrics.values import are_decisions
from fairwall.laws.studies.alternatives import NAME_MAX, Candidates
from fairwall.rpc import arrays, fair_use, journal
from fairwall.rpc.errors import Refusal
from fairwall.rpc.identity import identify
from fairwall.rpc.memory import let_go
from fairwall.wire.audits import audit_digest, sealed_digest, table_digest
from fairwall.wire.metrics import is_known, name_of, number_of
from fairwall.wire.numbers import EPSILON_MIN, to_message
from fairwall.wire.v1 import error_pb2, metric_pb2
from fairwall.wire.v1.error_pb2 import AuditError

LOG = logging.getLogger(__name__)

_REQUEST_ID_MAX, _NONCE_MAX = 64, 64

_Header: TypeAlias = audit.AuditHeader | audit.AuditModelsRequest | audit.AuditSealedHeader | audit.AuditTableRequest


class AuditService(AuditServiceServicer):
    """The gRPC service that answers audits of the open cases.

    `cases`: by deal id; the caller adds and removes cases.
    """

    def __init__(self, cases: Mapping[str, AuditCase]) -> None:
        self._cases = cases

    def GetTerms(self, request: audit.GetTermsRequest, context: grpc.ServicerContext) -> audit.GetTermsResponse:
        """Return the terms of a deal."""
        case = self._case(request.deal_id, context)
        with explained(request.deal_id):
            standing = case.ledger.standing(case.dataset, developer_of(context))
        limit = reveal_max(case.mechanism)
        return audit.GetTermsResponse(
            people=case.people,
            metrics=[number_of(metric) for metric in case.records.metrics],
            mechanism=case.mechanism.name,
            epsilon=standing.budget.epsilon if standing.budget else 0.0,
            epsilon_remaining=standing.remaining,
            queries_max=case.queries_max,
            precision=to_message(case.precision),
            epsilon_max=case.epsilon_max,
            epsilon_min=case.epsilon_min,
            rows=_rows_terms(case),
            reveal_max=limit if limit < 1 else None,
            minimum_group=case.records.minimum_group if case.records.minimum_group > 1 else None,
            budget=_budget_terms(case, developer_of(context)),
            by=[case.protected, *case.others] if case.protected else [],
            sealed=_sealed_terms(case),
            commitment=_commitment_terms(case),
        )

    def GetExpectedError(
        self, request: audit.GetExpectedErrorRequest, context: grpc.ServicerContext
    ) -> audit.GetExpectedErrorResponse:
        """Return the expected error, intervals and exposure of an answer, without charging."""
        case = self._case(request.deal_id, context)
        metric = _check_question(request.metric, request.epsilon, case)
        _check_size(request.models, case)
        expected = case.expected(metric, request.models, request.epsilon)
        revealed = case.revealed(metric, request.models, request.epsilon)
        person, most = case.person_risk(metric, request.models, request.epsilon)
        return audit.GetExpectedErrorResponse(
            error=expected.error,
            half_width=expected.half_width,
            likely_half_width=expected.likely_half_width,
            midpoint_error=expected.midpoint_error,
            revealed=None if math.isnan(revealed) else revealed,
            person_risk=None if math.isnan(person) else person,
            person_risk_most=most,
        )

    def Audit(
        self, request_iterator: Iterator[audit.AuditRequest], context: grpc.ServicerContext
    ) -> audit.AuditResponse:
        """Answer one batch of predictions."""
        header = arrays.first_header(request_iterator)
        case = self._case(header.deal_id, context).by(header.by)
        metric = _validate(header, case)
        if case.tables is not None:
            raise Refusal(error_pb2.REASON_TABLE_NEEDED)
        candidates = candidates_in(header)
        return _answer(case, header, metric, _receive(header, metric, request_iterator, case), context, candidates)

    def AuditModels(
        self, request: audit.AuditModelsRequest, context: grpc.ServicerContext
    ) -> audit.AuditModelsResponse:
        """Query the developer's models about the test set, and answer as `Audit` does."""
        case = self._case(request.deal_id, context).by(request.by)
        metric = _validate(request, case)
        if case.models is None:
            raise Refusal(error_pb2.REASON_NO_FEATURES)
        _check_size(request.models, case)
        predictions = _checked(metric, case.models.scores(request.request_id, request.models, context))
        return audit.AuditModelsResponse(answer=_answer(case, request, metric, predictions, context))

    def AuditSealed(
        self, request_iterator: Iterator[audit.AuditSealedRequest], context: grpc.ServicerContext
    ) -> audit.AuditSealedResponse:
        """Score the test set with the models in the request, and answer as `Audit` does."""
        header = arrays.first_header(request_iterator)
        case = self._case(header.deal_id, context).by(header.by)
        metric = _validate(header, case)
        if case.sealed is None:
            raise Refusal(error_pb2.REASON_NO_FEATURES)
        _check_size(len(header.sizes), case)
        case.sealed.check(header.sizes)
        fair_use.weigh(8 * len(header.sizes) * case.people)
        models = arrays.parts_after(header.sizes, request_iterator, "models_chunk")
        unseen = UnseenPredictions(len(models), partial(_scored, case, case.sealed, models, metric, context))
        return audit.AuditSealedResponse(
            answer=_answer(case, header, metric, unseen, context, digest=sealed_digest(header, models))
        )

    def AuditTable(self, request: audit.AuditTableRequest, context: grpc.ServicerContext) -> audit.AuditTableResponse:
        """Sum a table of predictions inside the database engine, and answer as `Audit` does."""
        case = self._case(request.deal_id, context)
        metric = _validate(request, case)
        if case.tables is None:
            raise Refusal(error_pb2.REASON_TABLE_UNKNOWN)
        began, developer, columns = time.monotonic(), developer_of(context), request.models
        with explained(request.deal_id):
            case.require_covered(developer, request.request_id, metric, request.epsilon)
        sums = case.tables.sums(developer, request.table, request.id_column, columns, case.queries_max)
        fair_use.weigh(8 * sums.models * case.people)
        if METRICS[metric].binary and not sums.are_decisions:
            raise Refusal(error_pb2.REASON_PREDICTIONS_NOT_BINARY)
        unseen, digest = UnseenPredictions(sums.models, lambda: sums), table_digest(request, sums.digest)
        return audit.AuditTableResponse(
            answer=_answer(case, request, metric, unseen, context, digest=digest, began=began)
        )

    def _case(self, deal_id: str, context: grpc.ServicerContext) -> AuditCase:
        return opened(self._cases, deal_id, context)


def _answer(
    case: AuditCase,
    header: _Header,
    metric: str,
    predictions: NDArray[Any] | UnseenPredictions,
    context: grpc.ServicerContext,
    candidates: Candidates | None = None,
    digest: bytes = b"",
    began: float | None = None,
) -> audit.AuditResponse:
    """Charge and answer a batch, from any source of predictions.

    `digest` covers the whole request where predictions are unseen. Work for the answer started at `began`, by default
    now.
    """
    developer, began = developer_of(context), time.monotonic() if began is None else began
    rows_digest = header.rows_digest if isinstance(header, audit.AuditHeader) else b""
    compared = None if isinstance(header, audit.AuditTableRequest) else is_compared(rows_digest, case)
    if not isinstance(predictions, UnseenPredictions):
        assert isinstance(header, audit.AuditHeader | audit.AuditModelsRequest), "others see no prediction"
        digest = audit_digest(header, predictions)
        if case.rows is not None:
            predictions = case.rows.of_records(predictions, by_ids=compared is True)
    with explained(header.deal_id):
        entry = case.answer(developer, header.request_id, digest, metric, predictions, header.epsilon, candidates)
        now = case.ledger.remaining(case.dataset, developer)
    LOG.debug("deal %s: answered a batch of %d", header.deal_id, len(values_of(entry)))
    (low, high), (likely_low, likely_high) = intervals_of(entry)
    above = case.probability_above(entry, predictions, header.threshold) if header.HasField("threshold") else None
    wait(case, began)
    response = audit.AuditResponse(
        gaps=arrays.to_message(values_of(entry)),
        low=arrays.to_message(low),
        high=arrays.to_message(high),
        likely_low=arrays.to_message(likely_low),
        likely_high=arrays.to_message(likely_high),
        probability_above=None if above is None else arrays.to_message(above),
        epsilon_charged=entry.request.loss.epsilon,
        epsilon_remaining=entry.remaining,
        epsilon_remaining_now=None if now == entry.remaining else now,
        by="" if isinstance(header, audit.AuditTableRequest) else header.by,
        nonce=_nonce_of(header),
    )
    if compared is not None:
        response.rows_compared = compared
    if (found := search_of(entry)) is not None:
        response.draws.CopyFrom(arrays.to_message(found.draws))
    return response


def _scored(
    case: AuditCase, sealed: SealedModels, models: list[bytes], metric: str, context: grpc.ServicerContext
) -> TableSums:
    """Score everybody with the uploaded models and sum the scores by stratum; Refusal for an unfit model."""
    binary, developer = METRICS[metric].binary, developer_of(context)
    scores = sealed.scores(models, binary=binary, developer=developer, goes_on=context.is_active)
    if case.rows is not None:
        scores = case.rows.of_records(scores, by_ids=False)
    return TableSums.of(case.records, scores)


def candidates_in(header: audit.AuditHeader) -> Candidates | None:
    """Return the candidates of a search, validated before any prediction is read; Refusal if inconsistent."""
    if not header.HasField("candidates"):
        return None
    told, models = header.candidates, header.predictions.shape[0] if header.predictions.shape else 0
    sound = (
        len(told.names) == len(set(told.names)) == len(told.utilities) == models
        and told.baseline < models
        and all(1 <= len(name) <= NAME_MAX and name.isprintable() for name in told.names)
        and all(map(math.isfinite, (*told.utilities, told.at_least)))
        and max(told.utilities) >= told.at_least
    )
    if not sound:
        raise Refusal(error_pb2.REASON_REQUEST_MALFORMED)
    return Candidates(tuple(told.names), tuple(told.utilities), told.baseline, told.at_least)


def _budget_terms(case: AuditCase, developer: str) -> audit.BudgetTerms | None:
    if case.budget_exposure is None:
        return None
    told = case.budget_exposure()
    revealed, together = (None if math.isnan(each) else each for each in (told.revealed[developer], told.together))
    kept = [audit.KeptBudget(revealed=revealed, epsilon=epsilon) for revealed, epsilon in told.kept.items()]
    return audit.BudgetTerms(revealed=revealed, revealed_together=together, revealed_most=told.most, kept=kept)


def _commitment_terms(case: AuditCase) -> audit.CommitmentTerms | None:
    if case.commitment is None:
        return None
    found, terms_digest = case.commitment
    return audit.CommitmentTerms(**vars(found), terms_digest=terms_digest)


def _sealed_terms(case: AuditCase) -> audit.SealedTerms | None:
    if case.sealed is None:
        return None
    return audit.SealedTerms(
        features=case.sealed.names, bytes_max=case.sealed.bytes_max, seconds_max=case.sealed.seconds
    )


def _rows_terms(case: AuditCase) -> audit.RowsTerms | None:
    ids = case.rows and case.rows.ids
    if not ids:
        return None
    return audit.RowsTerms(
        id_column=ids.column,
        public_columns=ids.public_columns,
        ids_digest=ids.digests[0],
        table_digest=ids.digests[1] if ids.public_columns else b"",
        column_digests=ids.column_digests,
    )


def is_compared(rows_digest: bytes, case: AuditCase) -> bool | None:
    """Return whether the caller's rows were compared with the test set's; None if the test set has no ids."""
    if case.rows is None or case.rows.ids is None:
        return None
    return bool(rows_digest)


@contextmanager
def explained(deal_id: str) -> Iterator[None]:
    """Turn a ledger failure into a Refusal to the developer, and log the reason.

    What was charged before the failure stays charged, so no other refusal would be true; another service of the same
    ledger may be able to answer.
    """
    try:
        yield
    except (LedgerUnavailable, LedgerError) as error:
        LOG.error("deal %s: %s", deal_id, error)
        raise Refusal(error_pb2.REASON_LEDGER_UNAVAILABLE) from None


def developer_of(context: grpc.ServicerContext) -> str:
    """Return the calling developer's name: from the certificate in a deployment, `DEVELOPER` in a game."""
    caller = identify(context)
    return caller.name if caller is not None and caller.name else DEVELOPER


class _Open(Protocol):
    """An account that requests can name."""

    @property
    def dataset(self) -> str:
        """The data set's name in the ledger."""

    @property
    def developers(self) -> frozenset[str] | None:
        """The developers admitted; None admits everybody who can connect."""


_Opened = TypeVar("_Opened", bound=_Open)


def opened(cases: Mapping[str, _Opened], deal_id: str, context: grpc.ServicerContext) -> _Opened:
    """Return the account named by a request; every method of a deployment calls this first.

    Refusal ``DEAL_UNKNOWN`` if there is no such account, or if the caller is not admitted.
    """
    case = cases.get(deal_id)
    if case is None:
        raise Refusal(error_pb2.REASON_DEAL_UNKNOWN)
    journal.note(dataset=case.dataset)
    check_developer(case.developers, context)
    return case


def check_developer(developers: frozenset[str] | None, context: grpc.ServicerContext) -> None:
    """Refuse a developer who is not admitted, as if the data set did not exist."""
    if developers is not None and developer_of(context) not in developers:
        raise Refusal(error_pb2.REASON_DEAL_UNKNOWN)


def _validate(header: _Header, case: AuditCase) -> str:
    """Return the name of the request's metric, after checks that need no prediction."""
    check_request_id(header.request_id)
    journal.note(request=header.request_id)
    metric = _check_question(header.metric, header.epsilon, case)
    if math.isnan(header.threshold) or len(_nonce_of(header)) > _NONCE_MAX:  # 0 if absent
        raise Refusal(error_pb2.REASON_REQUEST_MALFORMED)
    return metric


def _nonce_of(header: _Header) -> bytes:
    return header.nonce if isinstance(header, audit.AuditHeader) else b""


def _check_question(number: metric_pb2.Metric, epsilon: float, case: AuditCase) -> str:
    """Return the metric's name; Refusal if the terms do not allow the metric or epsilon."""
    if not is_known(number):
        raise Refusal(error_pb2.REASON_METRIC_UNKNOWN)
    metric = name_of(number)
    if metric not in case.records.metrics:
        raise Refusal(error_pb2.REASON_METRIC_NOT_ALLOWED)
    if not case.epsilon_min <= epsilon <= case.epsilon_max:
        least = case.epsilon_min if case.epsilon_min > EPSILON_MIN else None
        raise Refusal(
            AuditError(reason=error_pb2.REASON_EPSILON_INVALID, epsilon_min=least, epsilon_max=case.epsilon_max)
        )
    if case.mechanism.refuses(metric, epsilon, case.delta) is not None:
        raise Refusal(error_pb2.REASON_MECHANISM_REFUSES)
    return metric


def wait(case: AuditCase, began: float) -> None:
    """Sleep until the case's minimum answer time has passed since `began` (a `time.monotonic` time)."""
    if case.answer_seconds:  # a sleep of 0 would yield to other threads
        with fair_use.waiting():
            time.sleep(max(0.0, began + case.answer_seconds - time.monotonic()))


def _check_rows(rows_digest: bytes, case: AuditCase) -> None:
    """Refuse rows whose digest is not the test set's; an empty digest is not compared."""
    if rows_digest and (case.rows is None or rows_digest not in case.rows.digests):
        raise Refusal(error_pb2.REASON_ROWS_DIFFER)


def check_request_id(request_id: str) -> None:
    """Refuse a request id that is empty, too long, or not printable ASCII."""
    if not 1 <= len(request_id) <= _REQUEST_ID_MAX or not (request_id.isascii() and request_id.isprintable()):
        raise Refusal(error_pb2.REASON_REQUEST_ID_INVALID)


def _check_size(models: int, case: AuditCase) -> None:
    if not 1 <= models <= case.queries_max:
        raise Refusal(AuditError(reason=error_pb2.REASON_QUERIES_OUT_OF_RANGE, queries_max=case.queries_max))


def _receive(
    header: audit.AuditHeader, metric: str, requests: Iterator[audit.AuditRequest], case: AuditCase
) -> NDArray[Any]:
    return _checked(metric, received(header, requests, case))


def received(
    header: audit.AuditHeader | group.ByGroupHeader,
    requests: Iterator[audit.AuditRequest] | Iterator[group.ByGroupRequest],
    case: AuditCase,
) -> NDArray[np.generic]:
    """Return the uploaded predictions, shape (models, people), with values not yet checked.

    Refusal for a wrong number of models or people, or for rows that are not the test set's.
    """
    shape = header.predictions.shape
    if len(shape) != 2 or shape[1] != case.people:
        raise Refusal(AuditError(reason=error_pb2.REASON_PREDICTIONS_SHAPE, people=case.people))
    _check_rows(header.rows_digest, case)
    _check_size(shape[0], case)
    limit = 8 * case.queries_max * case.people
    fair_use.weigh(8 * shape[0] * shape[1] - arrays.size_of(header.predictions))
    return arrays.array_after(header.predictions, requests, "predictions_chunk", limit)


def _checked(metric: str, predictions: NDArray[np.generic]) -> NDArray[Any]:
    return checked_predictions(predictions, binary=METRICS[metric].binary)


def checked_predictions(predictions: NDArray[np.generic], *, binary: bool) -> NDArray[Any]:
    """Return the predictions unchanged; Refusal for values outside [0, 1], or not 0 or 1 where `binary`."""
    if predictions.dtype == np.bool_:
        return predictions
    # Read as integers, floats in [0, 1] are at most the bits of 1: larger floats are larger integers, so are infinity
    # and NaN, and negative numbers have the top bit set. One pass clears a valid batch without -0.
    whole = f"u{predictions.itemsize}"
    one = np.ones(1, predictions.dtype).view(whole)[0]
    odd = []
    for row, model in enumerate(predictions):
        if model.view(whole).max() > one:
            odd.append(row)
        let_go(predictions)
    if not all(np.isfinite(predictions[row]).all() for row in odd):
        raise Refusal(error_pb2.REASON_PREDICTIONS_NOT_FINITE)
    if any(predictions[row].min() < 0 or predictions[row].max() > 1 for row in odd):
        raise Refusal(error_pb2.REASON_PREDICTIONS_OUT_OF_RANGE)
    if predictions.dtype == np.uint8:
        return predictions.view(np.bool_)
    if binary and not are_decisions(predictions):
        raise Refusal(error_pb2.REASON_PREDICTIONS_NOT_BINARY)
    return predictions
