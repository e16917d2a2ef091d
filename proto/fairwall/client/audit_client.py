"""The client of a deployment: `AuditClient`, and how it is refused."""

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
from fairwall.client.predictions import Batch, in_order
from fairwall.client.rehearsal import DATA, Service
from fairwall.client.sanitised import Released, ReleaseTerms
from fairwall.client.search import Search, candidates_of
from fairwall.compliance.v1.release_service_pb2_grpc import ReleaseServiceStub
from fairwall.laws.alternatives import Candidates
from fairwall.laws.bounding import metric_range
from fairwall.laws.metric import find_metric, meaning
from fairwall.rpc import arrays, channel, identity
from fairwall.rpc.errors import CATALOGUE, audit_error_of, reason_of
from fairwall.wire.audits import ID_DIGITS, audit_digest, sealed_digest
from fairwall.wire.v1 import error_pb2
from fairwall.wire.v1.error_pb2 import AuditError, Reason

if TYPE_CHECKING:
    import pandas as pd

__tracebackhide__ = True
"""pytest shows the arguments of what failed, and these are rows about people."""

RECONNECT_SECONDS = 20.0
"""How long a service that was there before may take to come back."""
_PAUSE_SECONDS = 0.1
_STARTING_SECONDS = 0.25

_T = TypeVar("_T")


class AuditRefused(Exception):
    """Compliance refused. The text is the catalogue's sentence, and the numbers that go with it.

    Nothing was charged, but for ``"LEDGER_UNAVAILABLE"``: ask again under the same request id, and it is charged at
    most once.

    Parameters
    ----------
    error : AuditError
        What compliance said.
    data : str
        What was asked for, as in "data set 'loans'".

    Attributes
    ----------
    reason : str
        The catalogue's name, such as ``"BUDGET_EXHAUSTED"``.
    people : int or None
        How many people the test set holds, where predictions do not have as many columns.
    queries_max : int or None
        The most models in one batch, where there were more.
    epsilon_min, epsilon_max : float or None
        The least and the most that one batch may spend, where it offered less or more.
    epsilon_remaining, epsilon_needed : float or None
        What is left of the budget and what the batch would take of it, where that is more.
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
            # The service says the same of what is not there and of what is not the caller's.
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
"""How a refusal's numbers are said."""


class AuditUnavailable(ConnectionError):
    """No answer came. The same request under the same id may be sent again: it is charged once."""


class RowsNotCompared(UserWarning):
    """Whether predictions are in the order of compliance's rows was not checked, though it could have been."""


class AuditClient:
    """Asks a deployment's compliance service about models, and buys sanitised attributes to train them on.

    Parameters
    ----------
    address : str or sequence of str
        "host:port"; or several, of services that share one ledger: requests take turns among them, and go to another
        one where one is gone or cannot write its ledger, under the same request id.
    credentials : str or Path
        The folder with your ``authority.pem``, ``certificate.pem`` and ``key.pem``.
    data : str, optional
        The data set's name; by default the deployment's, which your certificate tells.

    Raises
    ------
    fairwall.rpc.identity.CredentialsError
        If the folder does not hold credentials that can be used.
    ValueError
        For an address that is not "host:port".
    """

    def __init__(self, address: str | Sequence[str], credentials: str | Path, *, data: str | None = None) -> None:
        own = identity.load(Path(credentials))
        self._address = address if isinstance(address, str) else " and ".join(address)
        self._first = address if isinstance(address, str) else address[0]
        self._others = 0 if isinstance(address, str) else len(address) - 1
        self._data = own.run if data is None else data
        self._channel = channel.connect(address, "compliance", own)
        self._service = gaps.Audits(self._channel)
        self._groups = by_group.Groups(self._channel)
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
        """Try the client on people who do not exist: free, without a certificate, and nobody is told anything.

        A real service of your own answers on this machine, by the real mechanisms, until the client is closed. Who is
        in which group is drawn by the seed, and has nothing to do with rows: so a model's exact gaps are near 0.

        Parameters
        ----------
        rows : int or frame
            How many people there are; or the table that predictions will be made of, of which ids and labels are used.
        id, label : str, optional
            Columns of rows: that of ids, by default the labels of a frame of pandas that do more than count; and that
            of outcomes, 0 or 1, by default drawn.
        metrics, mechanism, epsilon : sequence of str, str, float
            As in a policy. The budget is as large as you like.
        seed : int
            By which groups are drawn. Noise is the operating system's, and other each time.

        Raises
        ------
        ValueError
            For rows that cannot be people.
        UserError
            Where no service starts, with its one line: for a metric that there is not, or without `fairwall[service]`.
        """
        return Rehearsal(
            Service(rows, id=id, label=label, metrics=metrics, mechanism=mechanism, epsilon=epsilon, seed=seed)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
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
            In [0, 1], one for each row of the test set, in its order. Of a classifier with probabilities that is
            ``predict_proba(X)[:, 1]``; of a frame with a column for each model, ``frame.T``. In any order where the
            service's rows have ids and these are given: as labels of a Series or a frame, by ``ids`` or by ``table``,
            which agree where several are given.
            A table has a column for each model: the path of a Parquet file, an Arrow table, a mapping of names to
            arrays, a frame of polars, or, with ``ids`` as the name of its column of ids, one of pandas.
        metric : str
            Such as "sp" or "eo", or another name of docs/metrics.md, such as "demographic_parity".
        epsilon : float
            What to spend on the whole batch.
        request_id : str, optional
            1 to 64 printable ASCII characters. The same one again, with the same request, gets the same answer at no
            cost. By default a new one each time.
        threshold : float, optional
            What to compare the population's gap with; it is part of the request.
        ids : sequence or str, optional
            Each person's id, in the order of predictions; or the name of the column of predictions that has them.
        table : frame or mapping of str to sequence, optional
            What predictions were made from, in their order, with the column of ids and the public columns that the
            terms name. All of them are compared with compliance's.
        once : bool
            Pay for this question once and for all: the request id is made from all that is asked, so that the same
            question gets the same answer at no cost, also from another program on another day.
        by : str
            The column that gaps are by, such as "sex", where `Terms.by` has several; by default the first.
        sample_weight : None
            Refused: every person counts as one. docs/groups.md says why.

        Raises
        ------
        ValueError
            For what cannot be asked, before anything is asked; for rows that are not compliance's too.
        AuditRefused
        AuditUnavailable
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
        candidates: Callable[[Batch], Candidates] | None = None,
    ) -> Answer:
        metric, by = find_metric(metric).name, _text("by", by)
        epsilon, threshold = _epsilon(epsilon), _threshold(threshold, metric)
        asked = _request_id(request_id, once=once)
        batch, digest = self._arranged(predictions, ids, table)
        searched = None if candidates is None else candidates(batch)
        header = gaps.header_of(self._data, asked or "", metric, batch, epsilon, threshold, digest, by, searched)
        question = ""
        if self._kept is not None:
            # By the developer's own key: the same question has the same, and compliance cannot foresee it.
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
        """Have compliance bound before anything is asked: keep what it commits to, and then what is asked and answered.

        From now on every question of `ask` and `search` is written to the folder with its answer: a regulator opens
        some of them where compliance is, and says whether they were answered as was committed to. Noise follows from
        the question and from a nonce that the client makes with your private key, which compliance must not have.

        Parameters
        ----------
        folder : str or Path
            Made if it is not there. One that was begun is gone on with, as long as the commitment is the same.

        Raises
        ------
        ValueError
            Where the service commits to nothing.
        fairwall.client.kept.KeptError
            Where the folder holds another commitment: whom it answers about, its noise or its terms have changed.
        AuditRefused
        AuditUnavailable
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
        """Search many candidates for one that is as useful and less discriminatory; one epsilon for all of them.

        Parameters
        ----------
        candidates, metric, epsilon, request_id, ids, table, once, by : as of `ask`
            Such as ``{"lr1": predictions, "gbm": predictions}``. Epsilon is spent in rounds: the candidates that are
            useful enough and look best are looked at again.
        utility : mapping of str to float, or sequence of float
            How useful each is by your own count, such as its accuracy, by names or in their order; more is better. The
            service keeps it with the answer, and cannot check it.
        baseline : str or int
            The candidate that others are to be better than, by its name or number.
        at_least : float, optional
            The utility that will do, by default the baseline's.

        Raises
        ------
        ValueError
            For what cannot be asked, before anything is charged.
        AuditRefused
        AuditUnavailable
            Also where the service is of a version without searches; then it was charged as `ask` is.
        """
        found, errors = list[Candidates](), list[float]()

        def told(batch: Batch) -> Candidates:
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

    def _expected_of_search(self, batch: Batch, metric: str, epsilon: float) -> float:
        """Return how far the answers about what is left in the end are expected to be off, a median.

        Where `recommended` answers, by the candidates' own predictions: as a gap of everybody's, times what this metric
        errs more. The client does not know the labels.
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
        """Ask for one metric of models whose predictions are in a table beside the people, in compliance's engine.

        Parameters
        ----------
        table : str
            The table's name in compliance's policy.
        metric, epsilon, request_id, threshold : as of `ask`.
            The same id stands for the same rows too: where one has changed since, it is refused.
        id : str
            The table's column of ids.
        models : sequence of str, optional
            Its columns of predictions, in the order of answers; by default all but that of ids, in the table's order.

        Raises
        ------
        ValueError
            For what cannot be asked, before anything is asked.
        AuditRefused
        AuditUnavailable
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
        """Hand models over, and ask for one metric of them about rows that you do not have.

        Parameters
        ----------
        models : path, bytes, model, or a sequence or mapping of these
            ONNX models, such as `skl2onnx.to_onnx` makes: each takes the features of `Terms.sealed` as one tensor. Its
            last output is its scores: one number a row, or two of which the second counts, the probability of 1. They
            are put into [0, 1], NaN is 0, and for a metric that needs decisions one half and more is 1.
        metric, epsilon, request_id, threshold, once, by : as of `ask`.
            A request is about the files: the same id with another file is refused.
        positive : object
            The favourable class of models that were fitted to others than 0 and 1, which must be the second.

        Raises
        ------
        ValueError
            For what cannot be asked, before anything is asked.
        OSError
            For a file that cannot be read.
        AuditRefused
        AuditUnavailable
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
        """Ask what may be asked, and what is left of the budget. Costs nothing.

        Raises
        ------
        AuditRefused
        AuditUnavailable
        """
        return self._call(lambda: gaps.terms(self._service, self._data))

    def expected_error(self, metric: str, models: int, epsilon: float) -> ExpectedError:
        """Ask what an answer will be worth, before anything is spent. Costs nothing.

        Parameters
        ----------
        metric : str
            Such as "sp" or "eo".
        models : int
            How many the batch asks about.
        epsilon : float
            What it spends.

        Raises
        ------
        ValueError
            For what cannot be asked, before anything is sent.
        AuditRefused
        AuditUnavailable
        """
        metric = find_metric(metric).name
        epsilon = _epsilon(epsilon)
        if not isinstance(models, Integral) or models < 1:
            raise ValueError(f"models: must be at least 1, the number that you mean to ask about, not {models}")
        return self._call(lambda: gaps.expected_error(self._service, self._data, metric, models, epsilon))

    def group_terms(self) -> GroupTerms:
        """Ask what may be asked by group, and what is left of the budget. Costs nothing.

        Raises
        ------
        AuditRefused
            Also where nothing may be.
        AuditUnavailable
        """
        return self._call(lambda: by_group.terms(self._groups, self._data), " with groups")

    def by_group(self, /, predictions: Any, by: str | Sequence[str], epsilon: float, **asked: Any) -> pd.DataFrame:
        """Ask for rates by group, and how the groups compare: a frame, see `fairwall.client.by_group.ByGroup.frame`.

        Parameters, also those by keyword, and errors are those of `count_by_group`; ImportError where there is no
        pandas, before anything is sent.
        """
        gaps.require_pandas("count_by_group(...).records()")
        return self.count_by_group(predictions, by, epsilon, **asked).frame()

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
        """Buy counts by group, of which frames and records are made at no cost.

        Parameters
        ----------
        predictions, request_id, ids, table, once, sample_weight : as of `ask`.
        by : str or sequence of str
            The attributes whose values, all together, are the groups, such as ("race", "sex").
        epsilon : float
            What to spend on all models, groups and measures together.
        measures : sequence of str, optional
            Of `fairwall.client.by_group.MEASURES`; by default the selection rate where all predictions are 0 or 1,
            else the mean score and the scoring rate.

        Raises
        ------
        ValueError
            For what cannot be asked; nothing is charged.
        ImportError
            Without SciPy, before anything is sent.
        AuditRefused
        AuditUnavailable
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
        **asked: Any,
    ) -> ByQuantile:
        """Buy selection rates and impact ratios by group at every quantile of a score; one epsilon for all of them.

        Parameters
        ----------
        scores : array_like, shape (people,)
            Of any scale. Thresholds are the quantiles of these, which are public; who has at least as much is selected.
        by, epsilon, asked : as of `count_by_group`, but for measures.
        quantiles : int
            How many parts of the people; a threshold between two is a model of the request, and counts as one.
        labels : bool
            To ask for true and false positive rates as well, and so for calibration.

        Raises
        ------
        ValueError, ImportError, AuditRefused, AuditUnavailable
            As of `count_by_group`.
        """
        return practice.by_quantile(self.count_by_group, scores, by, epsilon, quantiles, asked, labels=labels)

    def by_segment(
        self, /, decisions: Any, segments: Sequence[object], by: str | Sequence[str], epsilon: float, **asked: Any
    ) -> BySegment:
        """Buy selection rates by group within segments, and the odds ratio that these have in common.

        Parameters
        ----------
        decisions : array_like, shape (people,)
            0 or 1.
        segments : sequence, shape (people,)
            Each person's segment, in the order of the decisions, whose labels agree: public, such as a column that the
            model is told. Each segment is two models of the request.
        by, epsilon, asked : as of `count_by_group`, but for measures.

        Raises
        ------
        ValueError, ImportError, AuditRefused, AuditUnavailable
            As of `count_by_group`.
        """
        return practice.by_segment(self.count_by_group, decisions, segments, by, epsilon, asked)

    def standardised_difference(
        self,
        /,
        values: Any,
        by: str | Sequence[str],
        epsilon: float,
        *,
        bounds: tuple[float, float] | None = None,
        reference: str | Sequence[str] | None = None,
        **asked: Any,
    ) -> list[dict[str, Any]]:
        """Buy mean scores or prices by group, and how far they are apart in standard deviations.

        Parameters
        ----------
        values : array_like, shape (people,)
            Scores or prices.
        by, epsilon, asked : as of `count_by_group`, but for measures.
        bounds : tuple of float, optional
            What values are clipped to: public, such as a policy's least and highest price. Noise is as large as
            their distance. By default [0, 1], and a value outside is refused.
        reference : as of `fairwall.client.by_group.ByGroup.practice`, the largest mean by default.

        Returns
        -------
        list of dict
            One record for each group: ``mean``, in the unit of the values, and ``standardised_difference``, the group's
            mean less the reference's over the standard deviation of all people's clipped values; each with ``_low`` and
            ``_high``, as of `ByGroup.frame`; and ``clipped``, how many of all people's values lay outside the bounds.

        Raises
        ------
        ValueError, ImportError, AuditRefused, AuditUnavailable
            As of `count_by_group`.
        """
        return practice.standardised_differences(self.count_by_group, values, by, epsilon, bounds, reference, asked)

    def release_terms(self) -> ReleaseTerms:
        """Ask what attributes may be bought, and what is left of their budget. Costs nothing.

        Raises
        ------
        AuditRefused
        AuditUnavailable
            Also where the service releases nothing.
        """
        return self._call(lambda: sanitised.terms(self._releases, self._data), " with a release")

    def release(self, epsilon: float, *, request_id: str | None = None) -> Released:
        """Buy everybody's sensitive attributes, sanitised.

        Parameters
        ----------
        epsilon : float
            What to spend on each person's attributes together.
        request_id : str, optional
            As in `ask`: the same one again gets the same bits at no cost. Audits and releases share a developer's ids.

        Raises
        ------
        ValueError
            For what cannot be asked, before anything is sent.
        AuditRefused
        AuditUnavailable
            Also where the service releases nothing.
        """
        epsilon = _epsilon(epsilon)
        asked = uuid.uuid4().hex if request_id is None else _text("request_id", request_id)
        try:
            return self._call(lambda: sanitised.buy(self._releases, self._data, asked, epsilon), " with a release")
        except arrays.ArrayError as error:
            raise AuditUnavailable(f"no answer from {self._address}: {error}") from None

    def _arranged(self, predictions: Any, ids: Sequence[object] | str | None, table: Any) -> tuple[Batch, bytes]:
        """Bring predictions into the service's order, with the digest of their rows; empty where they have no ids."""
        given, ids = in_order(predictions, "predictions"), in_order(ids, "ids")
        predictions, own = rows.opened(given, ids)
        columns = rows.columns_of(predictions)
        # Asked each time: the service may have read another table since.
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
        """Throw away what a service answers that took no notice of ids; warn once of an order that is trusted."""
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
        """Make a call, and again for a while if a connection that had worked was lost, or the service is starting.

        A request id is charged once.
        """
        give_up, others = time.monotonic() + RECONNECT_SECONDS, self._others
        while True:
            try:
                result = call()
            except grpc.RpcError as error:
                if channel.is_starting(error) and time.monotonic() < give_up:
                    time.sleep(_STARTING_SECONDS)  # of several services the next one may be asked then
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
    """See `AuditClient.rehearsal`, which makes one: about people who do not exist, by a service that ends with it."""

    def __init__(self, own: Service) -> None:
        super().__init__(own.address, own.credentials, data=DATA)
        self._own = own

    def __repr__(self) -> str:
        return f"<a rehearsal: {DATA}, made-up groups, nothing is spent>"

    def close(self) -> None:
        """Hang up, and end the service."""
        super().close()
        self._own.end()


def _request_id(given: str | None, *, once: bool) -> str | None:
    """Name a request; None where its name is to be made of all that it asks."""
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
    """Read a model: a path's, one that is bytes, or a message of ONNX."""
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


def _batch(predictions: Any) -> Batch:
    """Bring predictions into the shape (models, people), and refuse what no service would take."""
    batch = Batch.of(predictions)
    models, people = batch.shape
    if models > people and not batch.names and (advice := _advice(predictions, people)):
        raise ValueError(
            f"predictions of shape {batch.shape} are not one row a model and one column a person: pass {advice}"
        )
    return batch.in_least_type()


def _advice(predictions: Any, columns: int) -> str:
    """Say what to pass instead of predictions that have people as rows; empty where they may have models as rows."""
    # Nobody audits a test set of one person or two.
    if columns == 1:
        return "the one column as a row, predictions.T"
    if columns == 2:
        return "the second column if predict_proba made them, predict_proba(X)[:, 1], else predictions.T"
    if hasattr(predictions, "columns"):
        return "the frame's transpose, frame.T, or frame.to_numpy() if its rows are models"
    return ""


def _lost(error: grpc.RpcError) -> bool:
    """Whether a call failed without a connection rather than by a refusal."""
    return isinstance(error, grpc.Call) and error.code() == grpc.StatusCode.UNAVAILABLE and not reason_of(error)
