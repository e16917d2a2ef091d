"""Asking for gaps of any deal: what answers are, what may be asked, and the calls, which raise what gRPC raises."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import grpc
import numpy as np
from numpy.typing import NDArray

from fairwall.client import rows
from fairwall.client.predictions import Batch, announced, encoded
from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.compliance.v1.audit_service_pb2_grpc import AuditServiceStub
from fairwall.laws.alternatives import Candidates
from fairwall.laws.exposure import in_words, one_person
from fairwall.laws.precision import Precision
from fairwall.laws.quantiles import LEVEL
from fairwall.rpc import arrays, channel, chunks
from fairwall.wire.metrics import name_of, number_of
from fairwall.wire.precision import from_message
from fairwall.wire.v1.array_pb2 import Array

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__tracebackhide__ = True
"""pytest shows the arguments of what failed, and these are rows about people."""

AUDIT_SECONDS = 600.0


@dataclass(frozen=True)
class Answer:
    """What compliance answered to one batch.

    Parameters
    ----------
    gaps : ndarray, shape (models,)
        Advantaged minus disadvantaged, with noise.
    epsilon_charged : float
        What the batch cost.
    epsilon_remaining, epsilon_remaining_now : float
        What was left of the budget once the batch was charged, and what is left now: the same, unless this is the
        answer to a repeat, and something was charged since.
    low, high : ndarray, shape (models,)
        Between what numbers the test set's exact gap lies in at least 95% of cases, over the noise, whoever is who; NaN
        where nothing is promised, which depends on the mechanism: of ``cells`` nothing is, and ``recommended``
        answers batches of five models and more from cells.
    likely_low, likely_high : ndarray, shape (models,)
        Between what numbers it is believed to lie as often: what is promised, or, of ``cells``, what their
        posterior says under a prior on gaps. NaN where nothing is known.
    probability_above : ndarray, shape (models,), or None
        P(the population's gap > threshold), sampling error included; NaN where nothing is known. None if no threshold
        was given.
    rows_compared : bool or None
        Whether compliance compared your rows with its own, by their ids. None where its rows have none.
    request_id : str
        What the request was called.
    data, metric : str
        What was asked about, and for.
    by : str
        The column that gaps are by; empty for the first.
    models : tuple of str
        What each model is called, where predictions came with names: of a mapping, of columns, or of a frame's labels.
    digest : str
        BLAKE3, in hexadecimal, of all that was asked, predictions included, where the request was named by it (``once``
        of `AuditClient.ask`); else empty.
    draws : ndarray, shape (draws, models), or None
        Of candidates: their gaps as they may be together, given what was released.
    """

    gaps: NDArray[np.float64]
    epsilon_charged: float
    epsilon_remaining: float
    epsilon_remaining_now: float
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    likely_low: NDArray[np.float64]
    likely_high: NDArray[np.float64]
    probability_above: NDArray[np.float64] | None = None
    rows_compared: bool | None = field(default=None, repr=False)
    request_id: str = field(default="", repr=False)
    data: str = ""
    metric: str = ""
    by: str = ""
    models: tuple[str, ...] = ()
    digest: str = field(default="", repr=False)
    draws: NDArray[np.float64] | None = field(default=None, repr=False)

    def frame(self) -> pd.DataFrame:
        """Give one row for each model, by its name or number: ``gap`` and the ends of its intervals, as above.

        ``probability_above`` is there if it was asked for, and ``attrs`` has what was asked and charged.

        Raises
        ------
        ImportError
            Without pandas.
        """
        pandas = require_pandas("the arrays gaps, low and high")
        columns = {"gap": self.gaps, **{name: getattr(self, name) for name in _ENDS}}
        if self.probability_above is not None:
            columns["probability_above"] = self.probability_above
        frame: pd.DataFrame = pandas.DataFrame(columns, index=pandas.Index(self.models or range(len(self.gaps))))
        frame.index.name = "model"
        frame.attrs = {name: getattr(self, name) for name in ("data", "metric", "by", "request_id", "epsilon_charged")}
        return frame

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw each model's gap, from the smallest to the largest: promised intervals thin, likely ones broad.

        Parameters
        ----------
        axes : matplotlib Axes, optional
            By default those of a new figure.

        Raises
        ------
        ImportError
            Without matplotlib.
        """
        axes = axes_of(axes, 1 + 0.25 * len(self.gaps))
        order = np.argsort(np.abs(self.gaps))[::-1]
        places = np.arange(len(order))
        for (low, high), width in (((self.low, self.high), 1.2), ((self.likely_low, self.likely_high), 4.0)):
            axes.hlines(places, low[order], high[order], lw=width, color="C0", alpha=0.5 if width > 2 else 1.0)
        axes.plot(self.gaps[order], places, "o", color="C0", ms=5)
        axes.axvline(0, color="grey", lw=0.9, ls=":")
        axes.set_yticks(places, [self.models[i] if self.models else str(i) for i in order])
        axes.set_xlabel(f"gap, {self.asked}")
        return axes

    @property
    def asked(self) -> str:
        """What was asked for, as in "sp by sex"."""
        return f"{self.metric} by {self.by}" if self.by else self.metric

    def bounds_above(self, threshold: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bound the probability that the test set's exact gap is above a threshold: promised, as `low` and `high` are.

        Whoever the people are, the exact gap is at or below the threshold in at most 5% of cases in which the lower
        bound is 0.95, over the noise, and above it in at most 5% of all in which the upper one is 0.05.
        `probability_above` is believed instead, and about the population.

        Parameters
        ----------
        threshold : float
            Any number: it need not be what the batch was asked with.

        Returns
        -------
        least, most : ndarray, shape (models,)
            0.95 where `low` is above the threshold, and else 0; 0.05 where `high` is not above it, and else 1.
        """
        return np.where(self.low > threshold, LEVEL, 0.0), np.where(self.high <= threshold, 1 - LEVEL, 1.0)


_ENDS = "low", "high", "likely_low", "likely_high"


def axes_of(given: Axes | None, height: float) -> Axes:
    """Return axes to draw on: those given, or those of a new figure so many inches high."""
    if given is not None:
        return given
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(6, height), layout="constrained")[1]


def require_pandas(instead: str) -> Any:
    """Return pandas; ImportError that says what to do, or to take instead, where there is none."""
    try:
        return importlib.import_module("pandas")
    except ModuleNotFoundError:
        raise ImportError(f"a frame needs pandas: pip install 'fairwall[groups]', or take {instead}") from None


@dataclass(frozen=True)
class BudgetTerms:
    """What whole budgets give away: balanced accuracies of whoever spends one on finding out who is who.

    Parameters
    ----------
    revealed, revealed_together : float
        Of your budget, and of the data set's, which several developers spend together: by the best attack that the
        service knows, an estimate; NaN where it knows none.
    revealed_most : float
        Of the data set's budget, whatever anybody does: proved.
    kept : mapping of float to float
        By a balanced accuracy the largest budget that was looked at and reveals no more, 0 where each reveals more.
    """

    revealed: float
    revealed_together: float
    revealed_most: float
    kept: Mapping[float, float]


@dataclass(frozen=True)
class SealedTerms:
    """How models that are handed over are asked about rows that you do not have.

    Parameters
    ----------
    features : tuple of str
        The columns that a model is given, in this order.
    bytes_max : int
        How large the models of one batch may be, together.
    seconds_max : float
        For how long of a processor a model may run.
    """

    features: tuple[str, ...]
    bytes_max: int
    seconds_max: float


@dataclass(frozen=True)
class Terms:
    """On what terms a data set is audited.

    Parameters
    ----------
    people : int
        How many predictions a model has to give.
    metrics : tuple of str
        What may be asked for.
    mechanism : str
        What answers.
    epsilon, epsilon_remaining : float
        The whole budget, and what is left of it.
    queries_max : int
        The most models in one batch.
    epsilon_max : float
        The most that one batch may spend.
    precision : Precision
        How precisely answers are written down.
    epsilon_min : float
        The least that one batch may spend.
    rows : fairwall.client.rows.KnownRows or None
        What rows are known by; None where they have no ids.
    reveal_max : float or None
        By what limit ``recommended`` chooses and ``cells`` are cut: the balanced accuracy that anybody has at most who
        spends a whole batch on finding out who is who, where each group has at least ``minimum_group`` people. None
        where there is no limit.
    minimum_group : int
        How many people each group has at least, wherever a metric looks. Epsilon is about one person's attribute, for
        data that keep to this whichever it is: of a group of just so many, it does not hide that nobody left it.
    budget : BudgetTerms or None
        What whole budgets give away. None in a game, and of an older service.
    by : tuple of str
        By which columns gaps may be asked for, the first by default, out of one budget; none in a game, of people who
        stay in an engine, and of an older service.
    sealed : SealedTerms or None
        How models that are handed over are asked; None where none are taken.
    commitment : CommitmentTerms or None
        What the service is bound to, as it travels: `AuditClient.commit` keeps it. None where it is not.
    """

    people: int
    metrics: tuple[str, ...]
    mechanism: str
    epsilon: float
    epsilon_remaining: float
    queries_max: int
    epsilon_max: float
    precision: Precision = "float64"
    epsilon_min: float = 0.0
    rows: rows.KnownRows | None = None
    reveal_max: float | None = None
    minimum_group: int = 1
    budget: BudgetTerms | None = None
    by: tuple[str, ...] = ()
    sealed: SealedTerms | None = None
    commitment: audit.CommitmentTerms | None = None

    @property
    def privacy(self) -> str:
        """What a batch gives away at most, and a whole budget, in plain words."""
        limit = one_person(self.epsilon_max)
        most = limit if self.reveal_max is None else min(limit, self.reveal_max)
        told = in_words(most, self.epsilon_max, fewest=self.minimum_group)
        if most < limit:
            told += (
                " Where no mechanism stays within that, the one that gives away least answers: expected_error() says "
                "how much, of each batch."
            )
        return told if self.budget is None else f"{told} {_of_budget(self.budget, self.epsilon)}"


@dataclass(frozen=True)
class ExpectedError:
    """What one answer of a batch will be worth: medians, in the metric's unit; nobody has looked at A for them.

    Parameters
    ----------
    error : float
        How far the answer will be from the test set's exact value; NaN for answers that are choices and no values.
    half_width, likely_half_width : float
        Of its interval that is guaranteed, and of the likely one; NaN where the mechanism gives none.
    midpoint_error : float
        How far the middle of the metric's range is from the exact value, which costs nothing to say: an answer whose
        error is not below this is not worth its epsilon.
    revealed : float
        The balanced accuracy that anybody has at most who spends such a batch on finding out who is who, each group as
        small as the terms allow: the mean of the shares of both groups that are named right, where guessing gives 0.5;
        NaN where that is not known.
    person_risk, person_risk_most : float
        The share of the disadvantaged whom somebody names who spends such a batch on one person, where one in 1,000 of
        the advantaged is named too: by the best test of an attacker who knows the groups' sizes and nobody's group,
        NaN where that is not known; and what nobody exceeds who knows these sizes: that is proved.
    """

    error: float
    half_width: float
    midpoint_error: float
    revealed: float = math.nan
    likely_half_width: float = math.nan
    person_risk: float = math.nan
    person_risk_most: float = 1.0


class Audits(AuditServiceStub):
    """The service's stub; predictions go out as they lie in memory.

    Parameters
    ----------
    connection : grpc.Channel
        To compliance.
    """

    def __init__(self, connection: grpc.Channel) -> None:
        super().__init__(connection)  # type: ignore[no-untyped-call]
        self.Audit = connection.stream_unary(
            "/fairwall.compliance.v1.AuditService/Audit",
            request_serializer=chunks.serialize,
            response_deserializer=audit.AuditResponse.FromString,
        )


def terms(service: AuditServiceStub, deal_id: str) -> Terms:
    """Ask what may be asked, and what is left of the budget. Costs nothing."""
    response = service.GetTerms(audit.GetTermsRequest(deal_id=deal_id), timeout=channel.CALL_SECONDS)
    return Terms(
        people=response.people,
        metrics=tuple(name_of(number) for number in response.metrics),
        mechanism=response.mechanism,
        epsilon=response.epsilon,
        epsilon_remaining=response.epsilon_remaining,
        queries_max=response.queries_max,
        epsilon_max=response.epsilon_max,
        precision=from_message(response.precision) or "float64",
        epsilon_min=response.epsilon_min,
        rows=rows.from_message(response.rows, response.people) if response.HasField("rows") else None,
        reveal_max=response.reveal_max if response.HasField("reveal_max") else None,
        minimum_group=response.minimum_group or 1,
        budget=_budget_terms(response.budget) if response.HasField("budget") else None,
        by=tuple(response.by),
        sealed=_sealed_terms(response.sealed) if response.HasField("sealed") else None,
        commitment=response.commitment if response.HasField("commitment") else None,
    )


def _sealed_terms(told: audit.SealedTerms) -> SealedTerms:
    return SealedTerms(tuple(told.features), told.bytes_max, told.seconds_max)


def _budget_terms(told: audit.BudgetTerms) -> BudgetTerms:
    return BudgetTerms(
        told.revealed if told.HasField("revealed") else math.nan,
        told.revealed_together if told.HasField("revealed_together") else math.nan,
        told.revealed_most,
        {each.revealed: each.epsilon for each in told.kept},
    )


def _of_budget(told: BudgetTerms, epsilon: float) -> str:
    proved = (
        f"nobody has more than {100 * told.revealed_most:.3g}% with the whole budget of the data set: that is proved."
    )
    if math.isnan(told.revealed):
        return f"Whatever is done, {proved}"
    return (
        f"Whoever spends the whole of epsilon {epsilon:,.10g} so has at most {100 * told.revealed:.3g}%, and "
        f"{100 * told.revealed_together:.3g}% with that of all developers. Whatever is done, {proved}"
    )


def expected_error(service: AuditServiceStub, deal_id: str, metric: str, models: int, epsilon: float) -> ExpectedError:
    """Ask what an answer will be worth. Costs nothing."""
    request = audit.GetExpectedErrorRequest(deal_id=deal_id, metric=number_of(metric), models=models, epsilon=epsilon)
    response = service.GetExpectedError(request, timeout=channel.CALL_SECONDS)
    revealed = response.revealed if response.HasField("revealed") else math.nan
    widths = response.half_width, response.likely_half_width
    risk = response.person_risk if response.HasField("person_risk") else math.nan, response.person_risk_most
    return ExpectedError(response.error, widths[0], response.midpoint_error, revealed, widths[1], *risk)


def ask(
    service: Audits,
    deal_id: str,
    request_id: str,
    metric: str,
    predictions: NDArray[Any] | Batch,
    epsilon: float,
    *,
    threshold: float | None = None,
    rows_digest: bytes = b"",
    by: str = "",
    candidates: Candidates | None = None,
    nonce: bytes = b"",
) -> Answer:
    """Ask for one metric of a batch of models.

    Parameters
    ----------
    request_id : str
        Names this request: the same one again gets the stored answer and costs nothing.
    metric : str
        "sp", "abs_sp", "eo" or "abs_eo".
    predictions : ndarray of float64, float32, uint8 or bool, shape (models, people), or Batch
        In [0, 1].
    epsilon : float
        What to spend on the whole batch.
    threshold : float, optional
        What to compare the population's gap with.
    rows_digest : bytes
        Of the rows, which predictions are in the order of the ids of; empty where they are in the order of the deal.
    by : str
        The column that gaps are by, one of `Terms.by`; empty for the first.
    candidates : Candidates, optional
        What the models are candidates for, if a less discriminatory one is searched for.
    nonce : bytes
        What compliance cannot foresee, of which committed noise is made too; empty where there is none.

    Raises
    ------
    grpc.RpcError
        If compliance refuses; :func:`fairwall.rpc.errors.reason_of` tells why.
    """
    header = header_of(deal_id, request_id, metric, predictions, epsilon, threshold, rows_digest, by, candidates, nonce)

    def parts() -> Iterator[audit.AuditRequest | bytes]:
        yield audit.AuditRequest(header=header)
        yield from encoded(predictions, audit.AuditRequest)

    response = service.Audit(parts(), timeout=AUDIT_SECONDS)
    if response.by != by:  # an older service, which has one column
        raise arrays.ArrayError(f"the service answers by one protected column alone, and {by!r} was asked for")
    if candidates is not None and not response.HasField("draws"):
        raise arrays.ArrayError("the service is of a version that searches nothing, and has answered as ask() does")
    if response.nonce != nonce:
        raise arrays.ArrayError("the service did not count your nonce in: it could have chosen the noise")
    return replace(_answer(response, request_id, deal_id, metric), by=by)


def header_of(
    deal_id: str,
    request_id: str,
    metric: str,
    predictions: NDArray[Any] | Batch,
    epsilon: float,
    threshold: float | None,
    rows_digest: bytes,
    by: str = "",
    candidates: Candidates | None = None,
    nonce: bytes = b"",
) -> audit.AuditHeader:
    """Say what is asked; the parameters are those of `ask`."""
    return audit.AuditHeader(
        request_id=request_id,
        deal_id=deal_id,
        metric=number_of(metric),
        epsilon=epsilon,
        predictions=announced(predictions),
        threshold=threshold,
        rows_digest=rows_digest,
        by=by,
        candidates=None if candidates is None else audit.Candidates(**asdict(candidates)),
        nonce=nonce,
    )


def ask_models(
    service: AuditServiceStub,
    deal_id: str,
    request_id: str,
    metric: str,
    models: int,
    epsilon: float,
    *,
    threshold: float | None = None,
) -> Answer:
    """Ask for one metric of a batch of models that compliance queries itself, about rows of its own.

    Whoever serves the models has to answer compliance while this call waits, see `developer.reveal.hidden`. The other
    parameters and what may be raised are those of `ask`.

    Parameters
    ----------
    models : int
        How many there are, at least 1.
    """
    request = audit.AuditModelsRequest(
        request_id=request_id,
        deal_id=deal_id,
        metric=number_of(metric),
        epsilon=epsilon,
        models=models,
        threshold=threshold,
    )
    return _answer(service.AuditModels(request, timeout=AUDIT_SECONDS).answer, request_id, deal_id, metric)


def ask_sealed(
    service: AuditServiceStub,
    deal_id: str,
    request_id: str,
    metric: str,
    models: Sequence[bytes],
    epsilon: float,
    *,
    threshold: float | None = None,
    by: str = "",
) -> Answer:
    """Ask for one metric of models that are handed over, about rows that the caller does not have.

    The other parameters and what may be raised are those of `ask`.

    Parameters
    ----------
    models : sequence of bytes
        ONNX models.
    """
    header = sealed_header(deal_id, request_id, metric, models, epsilon, threshold, by)

    def parts() -> Iterator[audit.AuditSealedRequest]:
        yield audit.AuditSealedRequest(header=header)
        for model in models:
            for start in range(0, len(model), arrays.CHUNK_BYTES):
                yield audit.AuditSealedRequest(models_chunk=model[start : start + arrays.CHUNK_BYTES])

    response = service.AuditSealed(parts(), timeout=AUDIT_SECONDS).answer
    return replace(_answer(response, request_id, deal_id, metric), by=response.by)


def sealed_header(
    deal_id: str,
    request_id: str,
    metric: str,
    models: Sequence[bytes],
    epsilon: float,
    threshold: float | None,
    by: str,
) -> audit.AuditSealedHeader:
    """Say what `ask_sealed` asks."""
    return audit.AuditSealedHeader(
        request_id=request_id,
        deal_id=deal_id,
        metric=number_of(metric),
        epsilon=epsilon,
        sizes=[len(model) for model in models],
        threshold=threshold,
        by=by,
    )


def ask_table(
    service: AuditServiceStub,
    deal_id: str,
    request_id: str,
    metric: str,
    table: str,
    id_column: str,
    models: Sequence[str],
    epsilon: float,
    *,
    threshold: float | None = None,
) -> Answer:
    """Ask for one metric of models whose predictions are in a table beside the people, who stay where they are.

    The other parameters and what may be raised are those of `ask`.

    Parameters
    ----------
    table, id_column : str
        The table's name in the policy, and its column of ids.
    models : sequence of str
        Its columns of predictions, in the order of answers; none are all but that of ids.
    """
    request = audit.AuditTableRequest(
        request_id=request_id,
        deal_id=deal_id,
        metric=number_of(metric),
        epsilon=epsilon,
        threshold=threshold,
        table=table,
        id_column=id_column,
        models=models,
    )
    return _answer(service.AuditTable(request, timeout=AUDIT_SECONDS).answer, request_id, deal_id, metric)


def _answer(response: audit.AuditResponse, request_id: str, data: str, metric: str) -> Answer:
    low, high = _numbers(response.low), _numbers(response.high)
    if response.HasField("likely_low"):
        likely = _numbers(response.likely_low), _numbers(response.likely_high)
    else:
        # A service from before there were two intervals does not say which of them its own is.
        likely, unknown = (low, high), np.full(low.shape, np.nan)
        low, high = unknown, unknown
    return Answer(
        gaps=_numbers(response.gaps),
        epsilon_charged=response.epsilon_charged,
        epsilon_remaining=response.epsilon_remaining,
        epsilon_remaining_now=(
            response.epsilon_remaining_now if response.HasField("epsilon_remaining_now") else response.epsilon_remaining
        ),
        low=low,
        high=high,
        likely_low=likely[0],
        likely_high=likely[1],
        probability_above=_numbers(response.probability_above) if response.HasField("probability_above") else None,
        rows_compared=response.rows_compared if response.HasField("rows_compared") else None,
        request_id=request_id,
        data=data,
        metric=metric,
        draws=_numbers(response.draws) if response.HasField("draws") else None,
    )


def _numbers(message: Array) -> NDArray[np.float64]:
    return arrays.from_message(message).astype(np.float64, copy=False)
