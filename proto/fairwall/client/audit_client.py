"""The client of a compliance service: `AuditClient`, and its exceptions."""

from __future__ import annotations

import hashlib
import hmac
import math
import time
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import grpc
import numpy as np

from fairwall.client import by_group, gaps, practice, rows, sanitised, search
from fairwall.client.by_group import ByGroup, GroupTerms
from fairwall.client.gaps import Answer, ExpectedError, Terms
from fairwall.client.kept import Kept, NotKept
from fairwall.client.onnx_classes import check_classes
from fairwall.client.practice import ByQuantile, BySegment
from fairwall.client.predictions import PredictionBatch, in_order
from fairwall.client.rehearsal import DATA, RehearsalService
from fairwall.client.sanitised import Released, ReleaseTerms
from fairwall.client.search import Search, candidates_of
from fairwall.compliance.v1.release_service_pb2_grpc import ReleaseServiceStub
from fairwall.laws.mechanisms.calibration import metric_range
from fairwall.laws.metrics.metric import find_metric, meaning
from fairwall.laws.studies.alternatives import Candidates
from fairwall.rpc import arrays, channel, identity
from fairwall.rpc.errors import CATALOGUE, audit_error_of, reason_of
from fairwall.wire.audits import ID_DIGITS, audit_digest, sealed_digest
from fairwall.wire.v1 import error_pb2
from fairwall.wire.v1.error_pb2 import AuditError, Reason

if TYPE_CHECKING:
    import pandas as pd

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: rows about people."""

RECONNECT_SECONDS = 20.0
"""Longest wait, in seconds, for a service that was reached before to come back."""
_PAUSE_SECONDS = 0.1
_STARTING_SECONDS = 0.25

_T = TypeVar("_T")


class AuditRefused(Exception):
    """A refusal by compliance. The text is the catalogue's sentence, and the numbers that go with it.

    Nothing was charged, except perhaps for ``"LEDGER_UNAVAILABLE"``: send the request again under the same id, and it
    is charged at most once.

    Parameters
    ----------
    error : AuditError
        The refusal as received.
    data : str
        The data set for the text, as in "data set 'loans'".

    Attributes
    ----------
    reason : str
        The catalogue's name, such as ``"BUDGET_EXHAUSTED"``.
    people : int or None
        Number of people in the test set, if predictions have another number of columns.
    queries_max : int or None
        Most models in one batch, if the batch had more.
    epsilon_min, epsilon_max : float or None
        The least and the most epsilon of one batch, if the batch offered less or more.
    epsilon_remaining, epsilon_needed : float or None
        The budget left, and the batch's charge, if that is more.
    """

    def __init__(self, error: AuditError, data: str = "") -> None:
        told = {field.name: value for field, value in error.ListFields()}
        self.reason = Reason.Name(error.reason).removeprefix("REASON_")
        self.people: int | None = told.get("people")
        self.queries_max: int | None = told.get("queries_max")
        self.epsilon_min: float | None = told.get("epsilon_min")
        self.epsilon_max: float | None = told.get("epsilon_max")
        self.epsilon_remaining: float | None = told.get("epsilon_remaining")
        self.epsilon_needed: float | None = told.get("epsilon_needed")
        numbers = [text.format(told[name]) for name, text in _NUMBERS.items() if name in told]
        if data and self.reason == "DEAL_UNKNOWN":
            # The service does not distinguish missing data from other callers' data.
            numbers.append(f"the service has no {data}, or none that you may ask about")
        super().__init__(": ".join([CATALOGUE[error.reason][1], *([", ".join(numbers)] if numbers else [])]))


_NUMBERS = {
    "people": "it has {} people",
    "queries_max": "at most {} models",
    "epsilon_min": "at least {!r}",
    "epsilon_max": "at most {!r}",
    "epsilon_remaining": "{!r} is left",
    "epsilon_needed": "{!r} is needed",
}
"""The text of each number in a refusal."""


class AuditUnavailable(ConnectionError):
    """A request without an answer. It may be sent again under the same id: it is charged once."""


class RowsNotCompared(UserWarning):
    """A warning that the order of predictions was not checked against compliance's rows, though these have ids."""


class AuditClient:
    """A client of a compliance service: audits models, and buys sanitised attributes to train models on.

    Parameters
    ----------
    address : str or sequence of str
        "host:port"; or several, of services that share one ledger: requests take turns among these, and move on, under
        the same request id, from a service that is gone or cannot write its ledger.
    credentials : str or Path
        The folder with your ``authority.pem``, ``certificate.pem`` and ``key.pem``.
    data : str, optional
        The data set's name; by default the deployment's, which your certificate names.

    Raises
    ------
    fairwall.rpc.identity.CredentialsError
        If the folder does not hold usable credentials.
    ValueError
        If an address is not "host:port".
    """

    def __init__(self, address: str | Sequence[str], credentials: str | Path, *, data: str | None = None) -> None:
        own = identity.load(Path(credentials))
        self._address = address if isinstance(address, str) else " and ".join(address)
        self._first = address if isinstance(address, str) else address[0]
        self._others = 0 if isinstance(address, str) else len(address) - 1
        self._data = own.run if data is None else data
        self._channel = channel.connect(address, "compliance", own)
        self._service = gaps.Audits(self._channel)
        self._groups = by_group.GroupStub(self._channel)
        self._releases = ReleaseServiceStub(self._channel)
        self._connected = False
        self._has_warned = False
        self._certificate, self._secret = own.certificate, own.key.encode()
        self._kept: Kept | None = None

    @classmethod
    def rehearsal(
        cls,
        rows: Any,
        *,
        id: str | None = None,  # noqa: A002
        label: str | None = None,
        metrics: Sequence[str] = ("sp", "eo"),
        mechanism: str = "recommended",
        epsilon: float = 10.0,
        seed: int = 0,
    ) -> AuditClient:
        """Return a client of a local service about made-up people: free, without a certificate, and without a trace.

        The service runs on this machine, with the real mechanisms, until the client is closed. People's groups are
        drawn by the seed, independently of rows: so a model's exact gaps are near 0.

        Parameters
        ----------
        rows : int or frame
            The number of people; or the table that predictions will be made of, of which only ids and labels are used.
        id, label : str, optional
            Columns of rows. Ids are by default the index of a pandas frame, unless it only counts rows; labels, 0 or 1,
            are by default drawn.
        metrics, mechanism, epsilon : sequence of str, str, float
            As in a policy. The budget is as large as you like.
        seed : int
            Seed of the groups. Noise is the operating system's, and differs each time.

        Raises
        ------
        ValueError
            If rows cannot be people.
        UserError
            If no service starts, with its one line: for an unknown metric, or without `fairwall[service]`.
        """
        return Rehearsal(
            RehearsalService(rows, id=id, label=label, metrics=metrics, mechanism=mechanism, epsilon=epsilon, seed=seed)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def ask(
        self,
        predictions: Any,
        metric: str,
        epsilon: float,
        *,
        request_id: str | None = None,
        threshold: float | None = None,
        ids: Sequence[object] | str | None = None,
        table: Any = None,
        once: bool = False,
        by: str = "",
        sample_weight: None = None,
    ) -> Answer:
        """Ask for one metric of one model, or of a batch of models.

        Parameters
        ----------
        predictions : array_like, shape (people,) or (models, people), or a table
            In [0, 1], one for each row of the test set, in the test set's order. Of a classifier with probabilities
            pass ``predict_proba(X)[:, 1]``; of a frame with a column for each model, ``frame.T``. Any order will do if
            the service's rows have ids and these are given: as labels of a Series or a frame, by ``ids`` or by
            ``table``, which must agree if several are given. A table has a column for each model: the path of a Parquet
            file, an Arrow table, a mapping of names to arrays, a frame of polars, or, with ``ids`` as the name of its
            column of ids, one of pandas.
        metric : str
            Such as "sp" or "eo", or another name of docs/metrics.md, such as "demographic_parity".
        epsilon : float
            Epsilon of the whole batch.
        request_id : str, optional
            1 to 64 printable ASCII characters. The same id with the same request gets the same answer at no cost. By
            default a new id each time.
        threshold : float, optional
            The value to compare the population's gap with; it is part of the request.
        ids : sequence or str, optional
            Each person's id, in the order of predictions; or the name of the column of predictions with the ids.
        table : frame or mapping of str to sequence, optional
            The table that predictions were made from, in their order, with the column of ids and the public columns
            that the terms name. All of these are compared with compliance's.
        once : bool
            Make the request id from the whole request, so that the same question gets the same answer at no cost, also
            from another program on another day.
        by : str
            The protected column, such as "sex", if `Terms.by` has several; by default the first.
        sample_weight : None
            Refused: every person counts as one. docs/groups.md says why.

        Raises
        ------
        ValueError
            If the request is not valid, before anything is charged; also if rows are not compliance's.
        AuditRefused, AuditUnavailable
        """
        _check_weights(sample_weight)
        return self._asked(predictions, metric, epsilon, request_id, threshold, ids, table, once, by)

    def _asked(
        self,
        predictions: Any,
        metric: str,
        epsilon: float,
        request_id: str | None,
        threshold: float | None,
        ids: Sequence[object] | str | None,
        table: Any,
        once: bool,
        by: str,
        candidates: Callable[[PredictionBatch], Candidates] | None = None,
    ) -> Answer:
        metric, by = find_metric(metric).name, _text("by", by)
        epsilon, threshold = _epsilon(epsilon), _threshold(threshold, metric)
        asked = _request_id(request_id, once=once)
        batch, digest = self._arranged(predictions, ids, table)
        searched = None if candidates is None else candidates(batch)
        header = gaps.header_of(self._data, asked or "", metric, batch, epsilon, threshold, digest, by, searched)
        question = ""
        if self._kept is not None:
            # Made with the developer's private key: the same for the same question, and unforeseeable for compliance.
            header.nonce = hmac.digest(self._secret, audit_digest(header, batch), hashlib.sha256)
        if asked is None:
            question = audit_digest(header, batch).hex()
            header.request_id = question[:ID_DIGITS]
        answer = self._call(
            lambda: gaps.ask(
                self._service,
                self._data,
                header.request_id,
                metric,
                batch,
                epsilon,
                threshold=threshold,
                rows_digest=digest,
                by=by,
                candidates=searched,
                nonce=header.nonce,
            )
        )
        self._check_rows(digest, answer.rows_compared)
        if self._kept is not None:
            try:
                self._kept.keep(header, batch, answer.gaps)
            except OSError as error:  # the answer is paid for
                warnings.warn(f"{header.request_id} was answered and is not kept: {error}", NotKept, stacklevel=3)
        return replace(answer, digest=question, models=batch.names)

    def commit(self, folder: str | Path) -> None:
        """Keep compliance's commitment, and from now on every question with its answer, in a folder.

        Questions are those of `ask` and `search`. A regulator opens some of the questions at compliance's site, and
        checks that the answers follow the commitment. Noise follows from the question and from a nonce that the client
        makes with your private key, which compliance must not have.

        Parameters
        ----------
        folder : str or Path
            Made if it is missing. A folder with the same commitment is continued.

        Raises
        ------
        ValueError
            If the service commits to nothing.
        fairwall.client.kept.KeptError
            If the folder holds another commitment: the service's people, noise or terms have changed.
        AuditRefused, AuditUnavailable
        """
        told = self.terms().commitment
        if told is None:
            raise ValueError(
                "this service commits to nothing, so there is nothing to keep: its policy has no audit.committed"
            )
        self._kept = Kept.begin(Path(folder), self._data, identity.name_in(self._certificate), told)

    def search(
        self,
        candidates: Any,
        metric: str,
        epsilon: float,
        *,
        utility: Mapping[str, float] | Sequence[float],
        baseline: str | int,
        at_least: float | None = None,
        request_id: str | None = None,
        ids: Sequence[object] | str | None = None,
        table: Any = None,
        once: bool = False,
        by: str = "",
    ) -> Search:
        """Search many candidates for a less discriminatory model that is as useful; one epsilon for all of them.

        Parameters
        ----------
        candidates, metric, epsilon, request_id, ids, table, once, by : as of `ask`
            Such as ``{"lr1": predictions, "gbm": predictions}``. Epsilon is spent in rounds: later rounds measure again
            the candidates that are useful enough and look best.
        utility : mapping of str to float, or sequence of float
            Usefulness of each candidate by your own measure, such as accuracy, by name or in order; more is better. The
            service keeps it with the answer, and cannot check it.
        baseline : str or int
            The candidate to improve on, by name or number.
        at_least : float, optional
            Least utility that will do, by default the baseline's.

        Raises
        ------
        ValueError
            If the request is not valid, before anything is charged.
        AuditRefused
        AuditUnavailable
            Also if the service is of a version without searches; then the request was charged as one of `ask`.
        """
        found, errors = list[Candidates](), list[float]()

        def told(batch: PredictionBatch) -> Candidates:
            models = batch.shape[0]
            found.append(candidates_of(batch.names, models, utility, baseline, at_least))
            errors.append(self._expected_of_search(batch, find_metric(metric).name, epsilon))
            try:
                errors.append(self.expected_error(metric, 1, epsilon / models).error)
            except AuditRefused:  # a policy has a least epsilon
                errors.append(math.nan)
            return found[0]

        try:
            answer = self._asked(candidates, metric, epsilon, request_id, None, ids, table, once, by, told)
        except arrays.ArrayError as error:
            raise AuditUnavailable(f"no answer from {self._address}: {error}") from None
        return Search(answer, found[0], *errors)

    def _expected_of_search(self, batch: PredictionBatch, metric: str, epsilon: float) -> float:
        """Return the expected median error of the last answers of a search.

        With `recommended`, it is the error of "sp" for the candidates' own predictions, times this metric's error over
        that of "sp": the client does not know the labels.
        """
        terms, is_own, error = self.terms(), metric in ("sp", "abs_sp"), math.inf
        if terms.mechanism == "recommended" and (is_own or "sp" in terms.metrics):
            error = search.expected_error(batch, epsilon, terms)
        if is_own and math.isfinite(error):
            return error
        of_any = self.expected_error(metric, batch.shape[0], epsilon).error
        if not math.isfinite(error):
            return of_any
        return error * of_any / self.expected_error("sp", batch.shape[0], epsilon).error

    def ask_table(
        self,
        table: str,
        metric: str,
        epsilon: float,
        *,
        id: str,  # noqa: A002
        models: Sequence[str] | None = None,
        request_id: str | None = None,
        threshold: float | None = None,
    ) -> Answer:
        """Ask for one metric of models whose predictions are in a table of compliance's engine.

        Parameters
        ----------
        table : str
            The table's name in compliance's policy.
        metric, epsilon, request_id, threshold : as of `ask`.
            A request id covers the rows too: if a row has changed since, the request is refused.
        id : str
            The table's column of ids.
        models : sequence of str, optional
            Columns of predictions, in the order of answers; by default all but the ids, in the table's order.

        Raises
        ------
        ValueError
            If the request is not valid, before anything is sent.
        AuditRefused, AuditUnavailable
        """
        metric, table, id = find_metric(metric).name, _text("table", table), _text("id", id)  # noqa: A001
        epsilon, threshold = _epsilon(epsilon), _threshold(threshold, metric)
        columns = () if models is None else tuple(_text("models", each) for each in in_order(models, "models"))
        if models is not None and (isinstance(models, str) or not columns):
            raise ValueError(
                "models must be a list of names of the table's columns, at least one; left out: all but the id's"
            )
        asked = uuid.uuid4().hex if request_id is None else _text("request_id", request_id)
        return self._call(
            lambda: gaps.ask_table(
                self._service, self._data, asked, metric, table, id, columns, epsilon, threshold=threshold
            )
        )

    def ask_sealed(
        self,
        models: Any,
        metric: str,
        epsilon: float,
        *,
        request_id: str | None = None,
        threshold: float | None = None,
        once: bool = False,
        by: str = "",
        positive: object = None,
    ) -> Answer:
        """Send models to compliance, and ask for one metric of them on rows that you do not have.

        Parameters
        ----------
        models : path, bytes, model, or a sequence or mapping of these
            ONNX models, such as `skl2onnx.to_onnx` makes: each takes the features of `Terms.sealed` as one tensor. The
            last output is the scores: one number a row, or two of which the second counts, the probability of 1. Scores
            are put into [0, 1], NaN is 0, and for a metric that needs decisions one half and more is 1.
        metric, epsilon, request_id, threshold, once, by : as of `ask`.
            A request covers the files: the same id with another file is refused.
        positive : object
            The favourable class of models that were fitted to classes other than 0 and 1; must be the second class.

        Raises
        ------
        ValueError
            If the request is not valid, before anything is sent.
        OSError
            If a file cannot be read.
        AuditRefused, AuditUnavailable
        """
        metric, by = find_metric(metric).name, _text("by", by)
        epsilon, threshold = _epsilon(epsilon), _threshold(threshold, metric)
        asked, question = _request_id(request_id, once=once), ""
        names = tuple(map(str, models)) if isinstance(models, Mapping) else ()
        models = list(models.values()) if isinstance(models, Mapping) else models
        files = [_model(each) for each in (models if isinstance(models, list | tuple) else [models])]
        if not files:
            raise ValueError("models: there is none: give a path, bytes or a model of ONNX, or several by name")
        for file in files:
            check_classes(file, positive)
        if asked is None:
            header = gaps.sealed_header(self._data, "", metric, files, epsilon, threshold, by)
            question = sealed_digest(header, files).hex()
            asked = question[:ID_DIGITS]
        answer = self._call(
            lambda: gaps.ask_sealed(
                self._service, self._data, asked, metric, files, epsilon, threshold=threshold, by=by
            )
        )
        return replace(answer, digest=question, models=names)

    def terms(self) -> Terms:
        """Return the terms of audits, with the budget left. Costs nothing.

        Raises
        ------
        AuditRefused, AuditUnavailable
        """
        return self._call(lambda: gaps.terms(self._service, self._data))

    def expected_error(self, metric: str, models: int, epsilon: float) -> ExpectedError:
        """Return the expected error of an answer, before anything is spent. Costs nothing.

        Parameters
        ----------
        metric, models, epsilon : str, int, float
            The batch's metric, such as "sp" or "eo", its number of models, and its epsilon.

        Raises
        ------
        ValueError
            If the request is not valid, before anything is sent.
        AuditRefused, AuditUnavailable
        """
        metric = find_metric(metric).name
        epsilon = _epsilon(epsilon)
        if not isinstance(models, Integral) or models < 1:
            raise ValueError(f"models: must be at least 1, the number that you mean to ask about, not {models}")
        return self._call(lambda: gaps.expected_error(self._service, self._data, metric, models, epsilon))

    def group_terms(self) -> GroupTerms:
        """Return the terms of requests by group, with the budget left. Costs nothing.

        Raises
        ------
        AuditRefused
            Also if nothing may be asked by group.
        AuditUnavailable
        """
        return self._call(lambda: by_group.terms(self._groups, self._data), " with groups")

    def by_group(self, /, predictions: Any, by: str | Sequence[str], epsilon: float, **options: Any) -> pd.DataFrame:
        """Return rates by group and the groups' comparison, as `fairwall.client.by_group.ByGroup.frame` has them.

        Parameters, also those by keyword, and errors are those of `count_by_group`; ImportError without pandas, before
        anything is sent.
        """
        gaps.require_pandas("count_by_group(...).records()")
        return self.count_by_group(predictions, by, epsilon, **options).frame()

    def count_by_group(
        self,
        predictions: Any,
        by: str | Sequence[str],
        epsilon: float,
        *,
        measures: Sequence[str] | None = None,
        request_id: str | None = None,
        ids: Sequence[object] | str | None = None,
        table: Any = None,
        once: bool = False,
        sample_weight: None = None,
    ) -> ByGroup:
        """Buy counts by group, from which frames and records are made at no cost.

        Parameters
        ----------
        predictions, request_id, ids, table, once, sample_weight : as of `ask`.
        by : str or sequence of str
            The attributes whose combined values are the groups, such as ("race", "sex").
        epsilon : float
            Epsilon of all models, groups and measures together.
        measures : sequence of str, optional
            Of `fairwall.client.by_group.MEASURES`; by default the selection rate if all predictions are 0 or 1, else
            the mean score and the scoring rate.

        Raises
        ------
        ValueError
            If the request is not valid; nothing is charged.
        ImportError
            Without SciPy, before anything is sent.
        AuditRefused, AuditUnavailable
        """
        by_group.require_scipy()
        epsilon = _epsilon(epsilon)
        _check_weights(sample_weight)
        name = _request_id(request_id, once=once)
        batch, digest = self._arranged(predictions, ids, table)
        asked = by_group.measures_for(batch) if measures is None else tuple(measures)
        for measure in asked:
            if measure not in by_group.MEASURES:
                hint = meaning(measure, by_group.MEASURES, by_group=True)
                raise ValueError(f"measure {measure!r}: must be among {', '.join(by_group.MEASURES)}{hint}")
        names = (by,) if isinstance(by, str) else tuple(by)
        bought = self._call(
            lambda: by_group.count(self._groups, self._data, name, batch, names, asked, epsilon, rows_digest=digest),
            " with groups",
        )
        self._check_rows(digest, bought.rows_compared)
        return replace(bought, names=batch.names)

    def by_quantile(
        self,
        /,
        scores: Any,
        by: str | Sequence[str],
        epsilon: float,
        *,
        quantiles: int = 20,
        labels: bool = False,
        **options: Any,
    ) -> ByQuantile:
        """Buy selection rates and impact ratios by group at every quantile of a score; one epsilon for all of them.

        Parameters
        ----------
        scores : array_like, shape (people,)
            Of any scale. Thresholds are the quantiles of these scores, which are public; scores at or above a threshold
            are selected.
        by, epsilon, options : as of `count_by_group`, except measures.
        quantiles : int
            Number of parts of the people; a threshold between two parts counts as one model of the request.
        labels : bool
            Whether to buy true and false positive rates as well, and so calibration.

        Raises
        ------
        ValueError, ImportError, AuditRefused, AuditUnavailable
            As of `count_by_group`.
        """
        return practice.by_quantile(self.count_by_group, scores, by, epsilon, quantiles, options, labels=labels)

    def by_segment(
        self, /, decisions: Any, segments: Sequence[object], by: str | Sequence[str], epsilon: float, **options: Any
    ) -> BySegment:
        """Buy selection rates by group within segments, and the segments' common odds ratio.

        Parameters
        ----------
        decisions : array_like, shape (people,)
            0 or 1.
        segments : sequence, shape (people,)
            Each person's segment, in the order of the decisions, with the same labels if any: public, such as a column
            that the model uses. Each segment is two models of the request.
        by, epsilon, options : as of `count_by_group`, except measures.

        Raises
        ------
        ValueError, ImportError, AuditRefused, AuditUnavailable
            As of `count_by_group`.
        """
        return practice.by_segment(self.count_by_group, decisions, segments, by, epsilon, options)

    def standardised_difference(
        self,
        /,
        values: Any,
        by: str | Sequence[str],
        epsilon: float,
        *,
        bounds: tuple[float, float] | None = None,
        reference: str | Sequence[str] | None = None,
        **options: Any,
    ) -> list[dict[str, Any]]:
        """Buy mean scores or prices by group, and their differences in standard deviations.

        Parameters
        ----------
        values : array_like, shape (people,)
            Scores or prices.
        by, epsilon, options : as of `count_by_group`, except measures.
        bounds : tuple of float, optional
            Public bounds to clip values to, such as a policy's least and highest price. Noise is proportional to their
            distance. By default [0, 1], and a value outside is refused.
        reference : as of `fairwall.client.by_group.ByGroup.practice`, the largest mean by default.

        Returns
        -------
        list of dict
            One record for each group: ``mean``, in the unit of the values, and ``standardised_difference``, the group's
            mean less the reference's over the standard deviation of all people's clipped values; each with ``_low`` and
            ``_high``, as of `ByGroup.frame`; and ``clipped``, the number of all people's values outside the bounds.

        Raises
        ------
        ValueError, ImportError, AuditRefused, AuditUnavailable
            As of `count_by_group`.
        """
        return practice.standardised_differences(self.count_by_group, values, by, epsilon, bounds, reference, options)

    def release_terms(self) -> ReleaseTerms:
        """Return the terms of releases: the attributes on sale, and the budget left. Costs nothing.

        Raises
        ------
        AuditRefused
        AuditUnavailable
            Also if the service releases nothing.
        """
        return self._call(lambda: sanitised.terms(self._releases, self._data), " with a release")

    def release(self, epsilon: float, *, request_id: str | None = None) -> Released:
        """Buy everybody's sensitive attributes, sanitised.

        Parameters
        ----------
        epsilon : float
            Epsilon of each person's attributes together.
        request_id : str, optional
            As in `ask`: the same id again gets the same bits at no cost. Audits and releases share a developer's ids.

        Raises
        ------
        ValueError
            If the request is not valid, before anything is sent.
        AuditRefused
        AuditUnavailable
            Also if the service releases nothing.
        """
        epsilon = _epsilon(epsilon)
        asked = uuid.uuid4().hex if request_id is None else _text("request_id", request_id)
        try:
            return self._call(lambda: sanitised.buy(self._releases, self._data, asked, epsilon), " with a release")
        except arrays.ArrayError as error:
            raise AuditUnavailable(f"no answer from {self._address}: {error}") from None

    def _arranged(
        self, predictions: Any, ids: Sequence[object] | str | None, table: Any
    ) -> tuple[PredictionBatch, bytes]:
        """Return predictions in the service's order, with the digest of the rows; empty if rows have no ids."""
        given, ids = in_order(predictions, "predictions"), in_order(ids, "ids")
        predictions, own = rows.opened(given, ids)
        columns = rows.columns_of(predictions)
        # Requested each time, because the service may have read another table since.
        known = self.terms().rows if columns or rows.are_named(predictions, own, table) else None
        if known is not None and known.id_column in columns:
            predictions, own = rows.opened(given, ids, known.id_column)
        if known is not None and rows.are_named(predictions, own, table):
            batch, digest = rows.arranged(predictions, own, table, known)
            return _batch(batch), digest
        if own is not None or table is not None:
            raise ValueError("this service's rows have no ids to compare yours with: leave ids and table out")
        return _batch(predictions), b""

    def _check_rows(self, digest: bytes, compared: bool | None) -> None:
        """Refuse an answer of a service that ignored the ids; warn once of an order that is not checked."""
        if digest and not compared:
            raise AuditUnavailable(f"no answer from {self._address}: it did not compare rows, which its terms promised")
        if compared is False and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                "the order of rows is trusted: predictions came without ids, by which compliance would have compared "
                "them with its own; give ids=, table=, or a Series or frame that is labelled with them",
                RowsNotCompared,
                stacklevel=3,
            )

    def _call(self, call: Callable[[], _T], kind: str = "") -> _T:
        """Make a call, and again for a while if a working connection was lost, or the service is starting.

        Repeating is safe: a request id is charged once.
        """
        give_up, others = time.monotonic() + RECONNECT_SECONDS, self._others
        while True:
            try:
                result = call()
            except grpc.RpcError as error:
                if channel.is_starting(error) and time.monotonic() < give_up:
                    time.sleep(_STARTING_SECONDS)  # with several services, the next call may reach another one
                    continue
                said = audit_error_of(error)
                if said.reason == error_pb2.REASON_LEDGER_UNAVAILABLE and others:
                    others -= 1  # the next one is asked
                    continue
                if said.reason:
                    self._connected = True
                    raise AuditRefused(said, f"data set {self._data!r}{kind}") from None
                if not (self._connected and _lost(error) and self._reconnected(give_up - time.monotonic())):
                    raise AuditUnavailable(self._no_answer(error, kind)) from None
            else:
                self._connected = True
                return result

    def _reconnected(self, seconds: float) -> bool:
        """Wait for a connection; one that looks ready may still turn out to be the lost one."""
        if seconds <= 0:
            return False
        time.sleep(_PAUSE_SECONDS)
        ready = grpc.channel_ready_future(self._channel)
        try:
            ready.result(timeout=seconds)
        except grpc.FutureTimeoutError:
            ready.cancel()
            return False
        return True

    def _no_answer(self, error: grpc.RpcError, kind: str) -> str:
        code = error.code() if isinstance(error, grpc.Call) else None
        if isinstance(error, grpc.Call) and _lost(error):
            why = channel.why_lost(error, self._first)
        elif code == grpc.StatusCode.UNIMPLEMENTED:
            why = f"the service has no data set{kind}, or is not of this kind (UNIMPLEMENTED)"
        else:
            why = "unknown" if code is None else code.name
        return f"no answer from {self._address}: {why}"


class Rehearsal(AuditClient):
    """A client of a local service about made-up people, which ends with it: see `AuditClient.rehearsal`."""

    def __init__(self, service: RehearsalService) -> None:
        super().__init__(service.address, service.credentials, data=DATA)
        self._own = service

    def __repr__(self) -> str:
        return f"<a rehearsal: {DATA}, made-up groups, nothing is spent>"

    def close(self) -> None:
        """Close the connection, and end the service."""
        super().close()
        self._own.end()


def _request_id(given: str | None, *, once: bool) -> str | None:
    """Return a request's id; None if it is to be made from the whole request."""
    if once and given is not None:
        raise ValueError("once makes the request id: leave request_id out")
    return None if once else uuid.uuid4().hex if given is None else _text("request_id", given)


def _text(name: str, given: Any) -> str:
    if not isinstance(given, str):
        raise ValueError(f"{name} must be text, in quotes, not of type {type(given).__name__}")
    return given


def _number(name: str, given: Any) -> float:
    if isinstance(given, bool | np.bool_) or not isinstance(given, Real | Decimal) or math.isnan(given):
        told = given if isinstance(given, Real | Decimal) else f"of type {type(given).__name__}"
        raise ValueError(f"{name} must be a number, not {told}")
    return float(given)


def _model(given: Any) -> bytes:
    """Return a model's bytes, given its path, its bytes or an ONNX message."""
    if isinstance(given, str | Path):
        return Path(given).read_bytes()
    if hasattr(given, "SerializeToString"):
        return bytes(given.SerializeToString())
    if isinstance(given, bytes):
        return given
    raise ValueError(
        f"a model must be the path of an ONNX file, its bytes, or a model of ONNX, not {type(given).__name__}"
    )


def _check_weights(sample_weight: object) -> None:
    if sample_weight is not None:
        raise ValueError(
            "sample_weight: everybody counts as one: noise that hides one person would have to hide the largest weight"
        )


def _epsilon(given: Any) -> float:
    epsilon = _number("epsilon", given)
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"epsilon must be a number above 0, not {epsilon}")
    return epsilon


def _threshold(given: Any, metric: str) -> float | None:
    least, most = metric_range(metric)
    threshold = None if given is None else _number("threshold", given)
    if threshold is not None and not least <= threshold <= most:
        raise ValueError(f"threshold: {metric} is from {least:g} to {most:g}: pass one of its values, not {threshold}")
    return threshold


def _batch(predictions: Any) -> PredictionBatch:
    """Return predictions in the shape (models, people); ValueError for predictions that no service takes."""
    batch = PredictionBatch.of(predictions)
    models, people = batch.shape
    if models > people and not batch.names and (advice := _advice(predictions, people)):
        raise ValueError(
            f"predictions of shape {batch.shape} are not one row a model and one column a person: pass {advice}"
        )
    return batch.in_least_type()


def _advice(predictions: Any, columns: int) -> str:
    """Return what to pass instead of predictions with people as rows; empty if the rows may be models."""
    # Nobody audits a test set of one person or two.
    if columns == 1:
        return "the one column as a row, predictions.T"
    if columns == 2:
        return "the second column if predict_proba made them, predict_proba(X)[:, 1], else predictions.T"
    if hasattr(predictions, "columns"):
        return "the frame's transpose, frame.T, or frame.to_numpy() if its rows are models"
    return ""


def _lost(error: grpc.RpcError) -> bool:
    """Return whether a call failed for lack of a connection, not by a refusal."""
    return isinstance(error, grpc.Call) and error.code() == grpc.StatusCode.UNAVAILABLE and not reason_of(error)
