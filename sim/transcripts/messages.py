"""The messages of each trial in transcripts: deals, batches of queries with their answers, and submissions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Floats
from fairwall.compliance.v1.audit_service_pb2 import AuditResponse
from fairwall.rpc.arrays import from_message, gathered
from fairwall.rpc.turns import collect
from fairwall.wire.queries import deal_of, trained_on
from sim.transcripts.calls import KnownCall, known_calls
from sim.transcripts.files import Transcript
from sim.transcripts.methods import DEALS, SUBMISSIONS, TABLES, short

_AUDITS = "/fairwall.compliance.v1.AuditService/"
_AUDIT, _AUDIT_MODELS = f"{_AUDITS}Audit", f"{_AUDITS}AuditModels"
_RELEASES = tuple(f"/fairwall.compliance.v1.{name}Service/" for name in ("Release", "Statistics", "Group"))
_PREDICT = "/fairwall.developer.v1.ModelService/Predict"


@dataclass(frozen=True, eq=False)
class Cards:
    """A deal, and its arrays by name; None if they are not stored."""

    deal: Any
    arrays: dict[str, NDArray[Any]] | None


@dataclass(frozen=True, eq=False)
class RecordedSubmission:
    """A party's submission and its answer. Arrays are missing from a request that is not stored in full."""

    place: str
    request: Any
    is_stored: bool
    answer: Any = None


@dataclass(frozen=True, eq=False)
class RecordedBatch:
    """A batch of queries under one request id, on ``models`` models, with the metric's wire number.

    ``epsilon`` is the requested one. ``predictions``, of shape (models, people), are None if not stored or never
    received, ``answer`` if not given or not stored. ``asked`` and ``answered`` are the entries of the request, and of
    the answer or the end.
    """

    request_id: str
    metric: int
    epsilon: float
    models: int
    predictions: Floats | None = field(repr=False)
    answer: AuditResponse | None = field(repr=False)
    is_answered: bool
    asked: int
    answered: int


@dataclass(frozen=True, eq=False)
class ServedScores:
    """A model's scores of rows, as served: features (rows, d) and scores (rows,); None if not stored."""

    request_id: str
    model: int
    features: Floats | None
    scores: Floats | None
    asked: int


@dataclass(eq=False)
class TrialMessages:
    """The messages of a trial.

    ``cards`` are by the deal's message, such as "ComplianceDeal"; ``submissions`` by the method, such as
    "SubmitReveal", the last accepted one; ``batches`` by request id, without refused ones; ``others`` are batches on
    the deal's other cases, by case name, then request id; ``served`` are scores for the adversary; ``releases`` are
    answers of ReleaseService, StatisticsService and GroupService. ``is_heard`` if the transcript of compliance or the
    developer goes on to its submission, so that no batch is missing. ``unread`` are calls that cannot be decoded, with
    the reason.
    """

    deal_id: str
    cards: dict[str, Cards] = field(default_factory=dict)
    submissions: dict[str, RecordedSubmission] = field(default_factory=dict)
    batches: dict[str, RecordedBatch] = field(default_factory=dict)
    others: dict[str, dict[str, RecordedBatch]] = field(default_factory=dict)
    served: list[ServedScores] = field(default_factory=list)
    releases: list[KnownCall] = field(default_factory=list)
    is_heard: bool = False
    unread: list[str] = field(default_factory=list)

    @property
    def queried(self) -> dict[str, RecordedBatch]:
        """The batches on the people whose attributes the deal releases."""
        return self.others.get(trained_on(self.deal_id), {})


class PlayedSession:
    """The trials that parties played together; ``unread`` are calls that cannot be decoded, with the reason.

    A trial is read on request and not kept: all predictions together may exceed memory.
    """

    def __init__(self, parties: Mapping[str, Transcript]) -> None:
        self.unread: list[str] = []
        self._calls: dict[str, list[KnownCall]] = {}
        self._tables: dict[str, KnownCall] = {}
        for one in known_calls(parties):
            method = one.method
            try:
                if method in TABLES and one.is_answered:
                    self._tables[_name_of_table(one.request)] = one
                elif method in DEALS and one.is_answered and one.answer.WhichOneof("part") == "deal":
                    self._calls.setdefault(one.answer.deal.deal_id, []).append(one)
                elif method in SUBMISSIONS or method == _AUDIT_MODELS:
                    self._calls.setdefault(deal_of(one.request.deal_id), []).append(one)
                elif method.startswith(_RELEASES):
                    named = one.request.header if one.request.DESCRIPTOR.fields_by_name.get("header") else one.request
                    self._calls.setdefault(named.deal_id, []).append(one)
                elif method in (_AUDIT, _PREDICT):
                    self._calls.setdefault(deal_of(one.request.header.deal_id), []).append(one)
            except (ValueError, LookupError) as error:
                # A cancelled call may consist of its beginning only.
                if one.is_answered:
                    self.unread.append(f"{one.place}: {error}")

    @property
    def deals(self) -> list[str]:
        """The ids of all deals that calls name."""
        return list(self._calls)

    def trial(self, deal_id: str) -> TrialMessages:
        """Return the messages of a trial."""
        trial = TrialMessages(deal_id)
        looks: dict[str, list[ServedScores]] = {}
        # Compliance's calls to models come before the answer that it computed from them.
        for one in sorted(self._calls[deal_id], key=lambda one: one.method == _AUDIT_MODELS):
            try:
                _take(trial, looks, one)
            except (ValueError, LookupError) as error:
                if one.is_answered:
                    trial.unread.append(f"{one.place}: {error}")
        return trial

    def table(self, digest: str) -> dict[str, NDArray[Any]] | None:
        """Return the arrays of the table with this digest, by name; None if it is not stored."""
        one = self._tables.get(digest)
        if one is None or not one.is_stored:
            return None
        first, *parts = one.answers
        return collect(first.table, parts)


def _name_of_table(request: Any) -> Any:
    """Return the name of the table that a request asks for: its only field."""
    ((_, name),) = request.ListFields()
    return name


def _take(trial: TrialMessages, looks: dict[str, list[ServedScores]], one: KnownCall) -> None:
    method = one.method
    if method == _PREDICT and one.is_answered:
        served = _served(one)
        if one.call.key.caller == "compliance":
            looks.setdefault(served.request_id, []).append(served)
        else:
            trial.served.append(served)
    elif method.startswith(_RELEASES) and one.is_answered:
        trial.releases.append(one)
    elif method in DEALS:
        first, *parts = one.answers
        arrays = collect(first.deal, parts) if one.is_stored else None
        trial.cards[first.deal.DESCRIPTOR.name] = Cards(first.deal, arrays)
    elif method in SUBMISSIONS and one.is_answered:
        trial.submissions[short(method)] = RecordedSubmission(one.place, one.request, one.is_stored, one.answer)
        # A model may be released before the last question about it.
        trial.is_heard |= short(method).startswith("Submit") and one.script.party in ("compliance", "developer")
    elif method in (_AUDIT, _AUDIT_MODELS) and not one.is_refused:
        batch = _uploaded(one) if method == _AUDIT else _asked_models(one, looks)
        about = one.request.header.deal_id if method == _AUDIT else one.request.deal_id
        batches = trial.batches if about == trial.deal_id else trial.others.setdefault(about, {})
        before = batches.get(batch.request_id)
        # A repeated request gets the stored answer: it counts from its first time.
        if before is None or (batch.is_answered and not before.is_answered):
            batches[batch.request_id] = batch if before is None else replace(batch, asked=before.asked)


def _served(one: KnownCall) -> ServedScores:
    first, *parts = one.requests
    header = first.header
    if not one.is_stored:
        return ServedScores(header.request_id, header.model, None, None, one.call.start)
    features = gathered(header.features, (part.features_chunk for part in parts)).astype(np.float64)
    scores = from_message(one.answers[0].scores).astype(np.float64)
    return ServedScores(header.request_id, header.model, features, scores, one.call.start)


def _uploaded(one: KnownCall) -> RecordedBatch:
    first, *parts = one.requests
    header = first.header
    predictions = None
    if one.script.stores_all(one.call.requests):
        predictions = gathered(header.predictions, (part.predictions_chunk for part in parts)).astype(np.float64)
    answer = next(iter(one.answers), None)
    return _batch(one, header, int(header.predictions.shape[0]), predictions, answer)


def _asked_models(one: KnownCall, looks: Mapping[str, list[ServedScores]]) -> RecordedBatch:
    """Return the batch of a request on served models, with the scores that compliance got while it lasted."""
    (request,) = one.requests
    during = range(one.call.start, one.call.answered + 1)
    # Two calls with one id each have their own scores; another party's entries do not show when these came.
    own = one.script.party == "compliance"
    asked = looks.get(request.request_id, ())
    got = {look.model: look.scores for look in asked if look.asked in during or not own}
    known = [scores for _, scores in sorted(got.items()) if scores is not None]
    predictions = np.stack(known) if len(known) == request.models else None
    answer = next(iter(one.answers), None)
    return _batch(one, request, int(request.models), predictions, answer.answer if answer else None)


def _batch(
    one: KnownCall, header: Any, models: int, predictions: Floats | None, answer: AuditResponse | None
) -> RecordedBatch:
    return RecordedBatch(
        request_id=header.request_id,
        metric=header.metric,
        epsilon=header.epsilon,
        models=models,
        predictions=predictions,
        answer=answer if one.script.stores_all(one.call.answers) else None,
        is_answered=answer is not None,
        asked=one.call.start,
        answered=one.call.answered,
    )
