"""Audits of gaps in any deal: answers, terms, and the calls, which raise gRPC's errors."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import grpc
import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Floats
from fairwall.client import rows
from fairwall.client.predictions import PredictionBatch, announced, encoded
from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.compliance.v1.audit_service_pb2_grpc import AuditServiceStub
from fairwall.laws.metrics.answer_precision import Precision
from fairwall.laws.noise.quantiles import LEVEL
from fairwall.laws.privacy.exposure import in_words, one_person
from fairwall.laws.studies.alternatives import Candidates
from fairwall.rpc import arrays, channel, chunks
from fairwall.wire.metrics import name_of, number_of
from fairwall.wire.numbers import from_message
from fairwall.wire.v1.array_pb2 import Array

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: rows about people."""

AUDIT_SECONDS = 600.0


@dataclass(frozen=True)
class Answer:
    """Compliance's answer to one batch.

    Parameters
    ----------
    gaps : ndarray, shape (models,)
        Advantaged minus disadvantaged, with noise.
    epsilon_charged : float
        Epsilon charged for the batch.
    epsilon_remaining, epsilon_remaining_now : float
        The budget left after the batch's charge, and now: the same, unless the request is a repeat, and something was
        charged since.
    low, high : ndarray, shape (models,)
        An interval that holds the test set's exact gap in at least 95% of cases, over the noise, whatever people's
        groups are. NaN if the mechanism promises none: ``cells`` does not, and ``recommended`` answers batches of five
        models and more from cells.
    likely_low, likely_high : ndarray, shape (models,)
        An interval believed to hold the exact gap as often: the promised one, or, for ``cells``, that of the posterior
        under a prior on gaps. NaN if nothing is known.
    probability_above : ndarray, shape (models,), or None
        P(the population's gap > threshold), sampling error included; NaN if nothing is known. None without a threshold.
    rows_compared : bool or None
        Whether compliance compared your rows with its own, by their ids. None if its rows have no ids.
    request_id : str
        The request's id.
    data, metric : str
        The data set, and the metric.
    by : str
        The protected column; empty for the first.
    models : tuple of str
        The models' names, if predictions came with names: of a mapping, of columns, or of a frame's labels.
    digest : str
        BLAKE3, in hexadecimal, of the whole request, predictions included, if the request id was made from it (``once``
        of `AuditClient.ask`); else empty.
    draws : ndarray, shape (draws, models), or None
        For candidates of a search: joint draws of their gaps, given the release.
    """

    gaps: Floats
    epsilon_charged: float
    epsilon_remaining: float
    epsilon_remaining_now: float
    low: Floats
    high: Floats
    likely_low: Floats
    likely_high: Floats
    probability_above: Floats | None = None
    rows_compared: bool | None = field(default=None, repr=False)
    request_id: str = field(default="", repr=False)
    data: str = ""
    metric: str = ""
    by: str = ""
    models: tuple[str, ...] = ()
    digest: str = field(default="", repr=False)
    draws: Floats | None = field(default=None, repr=False)

    def frame(self) -> pd.DataFrame:
        """Return one row for each model, by its name or number: ``gap`` and the ends of its intervals.

        ``probability_above`` is a column if a threshold was given; ``attrs`` has the request and the charge.
        ImportError without pandas.
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

        The axes are by default those of a new figure. ImportError without matplotlib.
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
        """The metric and the protected column, as in "sp by sex"."""
        return f"{self.metric} by {self.by}" if self.by else self.metric

    def bounds_above(self, threshold: float) -> tuple[Floats, Floats]:
        """Return promised bounds on the probability that the test set's exact gap is above a threshold.

        Whatever people's groups are, over the noise: if the lower bound is 0.95, the exact gap is at or below the
        threshold in at most 5% of cases; if the upper bound is 0.05, it is above in at most 5%. `probability_above` is
        believed instead, and about the population.

        Parameters
        ----------
        threshold : float
            Any number: it need not be the request's threshold.

        Returns
        -------
        least, most : ndarray, shape (models,)
            0.95 if `low` is above the threshold, and else 0; 0.05 if `high` is not above it, and else 1.
        """
        return np.where(self.low > threshold, LEVEL, 0.0), np.where(self.high <= threshold, 1 - LEVEL, 1.0)


_ENDS = "low", "high", "likely_low", "likely_high"


def axes_of(given: Axes | None, height: float) -> Axes:
    """Return axes to draw on: the given ones, or those of a new figure of this height in inches."""
    if given is not None:
        return given
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(6, height), layout="constrained")[1]


def require_pandas(instead: str) -> Any:
    """Return pandas; ImportError with the command that installs it, and an alternative, if it is missing."""
    try:
        return importlib.import_module("pandas")
    except ModuleNotFoundError:
        raise ImportError(f"a frame needs pandas: pip install 'fairwall[groups]', or take {instead}") from None


@dataclass(frozen=True)
class BudgetTerms:
    """Balanced accuracies of an attacker who spends a whole budget on finding people's groups.

    Parameters
    ----------
    revealed, revealed_together : float
        For your budget, and for the data set's, which several developers spend together: by the best attack that the
        service knows, an estimate; NaN if it knows none.
    revealed_most : float
        For the data set's budget and any attack: a proved bound.
    kept : mapping of float to float
        By balanced accuracy, the largest examined budget that reveals no more; 0 if each reveals more.
    """

    revealed: float
    revealed_together: float
    revealed_most: float
    kept: Mapping[float, float]


@dataclass(frozen=True)
class SealedTerms:
    """Terms of audits of models that compliance runs on rows that you do not have.

    Parameters
    ----------
    features : tuple of str
        The columns of a model's input, in order.
    bytes_max : int
        Largest size of the models of one batch, together.
    seconds_max : float
        Most processor time of one model.
    """

    features: tuple[str, ...]
    bytes_max: int
    seconds_max: float


@dataclass(frozen=True)
class Terms:
    """The terms on which a data set is audited.

    Parameters
    ----------
    people : int
        Number of predictions that a model has to give.
    metrics : tuple of str
        The metrics on offer.
    mechanism : str
        The mechanism that answers.
    epsilon, epsilon_remaining : float
        The whole budget, and what is left of it.
    queries_max : int
        Most models in one batch.
    epsilon_min, epsilon_max : float
        Least and most epsilon of one batch.
    precision : Precision
        Precision of answers.
    rows : fairwall.client.rows.KnownRows or None
        The description of the service's rows; None if they have no ids.
    reveal_max : float or None
        The limit by which ``recommended`` chooses and ``cells`` are cut: the largest balanced accuracy of an attacker
        who spends a whole batch on finding people's groups, if each group has at least ``minimum_group`` people. None
        without a limit.
    minimum_group : int
        Least number of people in each group, wherever a metric looks. Epsilon protects one person's attribute among
        data that satisfy this whatever the attribute is: for a group of exactly this size, it does not hide that nobody
        left the group.
    budget : BudgetTerms or None
        What whole budgets reveal. None in a game, and from an older service.
    by : tuple of str
        The protected columns on offer, the first by default, out of one budget; empty in a game, for people who stay in
        an engine, and from an older service.
    sealed : SealedTerms or None
        The terms of models that compliance runs; None if it runs none.
    commitment : CommitmentTerms or None
        The service's commitment, as a message: `AuditClient.commit` keeps it. None without a commitment.
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
        """The most that a batch, and a whole budget, reveal, in plain words."""
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
    """The expected quality of one answer of a batch: medians, in the metric's unit, computed without reading A.

    Parameters
    ----------
    error : float
        Distance of the answer from the test set's exact value; NaN for answers that are choices, not values.
    half_width, likely_half_width : float
        Of the guaranteed interval, and of the likely one; NaN if the mechanism gives none.
    midpoint_error : float
        Distance of the middle of the metric's range, which is known for free, from the exact value: an answer whose
        error is not below this is not worth its epsilon.
    revealed : float
        Largest balanced accuracy of an attacker who spends such a batch on finding people's groups, each group as small
        as the terms allow: the mean of the shares of both groups that are named right, where guessing gives 0.5; NaN if
        unknown.
    person_risk, person_risk_most : float
        The share of the disadvantaged that an attacker names who spends such a batch on one person, if one in 1,000 of
        the advantaged is named too: by the best test of an attacker who knows the groups' sizes and nobody's group, NaN
        if unknown; and a proved bound for every attacker who knows these sizes.
    """

    error: float
    half_width: float
    midpoint_error: float
    revealed: float = math.nan
    likely_half_width: float = math.nan
    person_risk: float = math.nan
    person_risk_most: float = 1.0


class Audits(AuditServiceStub):
    """A stub of AuditService on a channel to compliance, which sends predictions as they lie in memory."""

    def __init__(self, connection: grpc.Channel) -> None:
        super().__init__(connection)  # type: ignore[no-untyped-call]
        self.Audit = connection.stream_unary(
            "/fairwall.compliance.v1.AuditService/Audit",
            request_serializer=chunks.serialize,
            response_deserializer=audit.AuditResponse.FromString,
        )


def terms(service: AuditServiceStub, deal_id: str) -> Terms:
    """Return the terms of a deal, with the budget left. Costs nothing."""
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


def _sealed_terms(message: audit.SealedTerms) -> SealedTerms:
    return SealedTerms(tuple(message.features), message.bytes_max, message.seconds_max)


def _budget_terms(message: audit.BudgetTerms) -> BudgetTerms:
    return BudgetTerms(
        message.revealed if message.HasField("revealed") else math.nan,
        message.revealed_together if message.HasField("revealed_together") else math.nan,
        message.revealed_most,
        {each.revealed: each.epsilon for each in message.kept},
    )


def _of_budget(terms: BudgetTerms, epsilon: float) -> str:
    proved = (
        f"nobody has more than {100 * terms.revealed_most:.3g}% with the whole budget of the data set: that is proved."
    )
    if math.isnan(terms.revealed):
        return f"Whatever is done, {proved}"
    return (
        f"Whoever spends the whole of epsilon {epsilon:,.10g} so has at most {100 * terms.revealed:.3g}%, and "
        f"{100 * terms.revealed_together:.3g}% with that of all developers. Whatever is done, {proved}"
    )


def expected_error(service: AuditServiceStub, deal_id: str, metric: str, models: int, epsilon: float) -> ExpectedError:
    """Return the expected error of an answer. Costs nothing."""
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
    predictions: NDArray[Any] | PredictionBatch,
    epsilon: float,
    *,
    threshold: float | None = None,
    rows_digest: bytes = b"",
    by: str = "",
    candidates: Candidates | None = None,
    nonce: bytes = b"",
) -> Answer:
    """Ask for one metric of a batch of models; grpc.RpcError if compliance refuses.

    Parameters
    ----------
    request_id : the same id again gets the stored answer and costs nothing.
    metric : "sp", "abs_sp", "eo" or "abs_eo".
    predictions : float64, float32, uint8 or bool, in [0, 1], shape (models, people), or a Batch.
    epsilon : epsilon of the whole batch.
    threshold : the value to compare the population's gap with.
    rows_digest : digest of the rows in the order of their ids, if predictions are in that order; empty for the deal's.
    by : the protected column, one of `Terms.by`; empty for the first.
    candidates : the models' roles, if a less discriminatory one is searched for.
    nonce : an input to committed noise that compliance cannot foresee; empty for none.
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
    predictions: NDArray[Any] | PredictionBatch,
    epsilon: float,
    threshold: float | None,
    rows_digest: bytes,
    by: str = "",
    candidates: Candidates | None = None,
    nonce: bytes = b"",
) -> audit.AuditHeader:
    """Return the header of a request; the parameters are those of `ask`."""
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
    """Ask for one metric of a batch of models that compliance queries itself, on its own rows.

    The server of the models has to answer compliance while this call waits, see `developer.reveal.hidden`. The number
    of models is at least 1; the other parameters and the errors are those of `ask`.
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
    """Send ONNX models to compliance, and ask for a metric of them on rows not held here; else as `ask`."""
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
    """Return the header of a request of `ask_sealed`."""
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
    """Ask for one metric of models whose predictions are in a table beside the people, in an engine.

    ``table`` is the table's name in the policy; ``models`` are its columns of predictions, in the order of answers,
    empty for all but the ids. The other parameters and the errors are those of `ask`.
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
        # An older service has one interval, and does not say which of the two it is.
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


def _numbers(message: Array) -> Floats:
    return arrays.from_message(message).astype(np.float64, copy=False)
