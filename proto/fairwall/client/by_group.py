"""Counts by group: the request, and the rates, ratios and intervals computed from its answer at no cost."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, Any

import grpc
import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bools, Floats
from fairwall.client.gaps import require_pandas
from fairwall.client.predictions import PredictionBatch, announced, encoded
from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.compliance.v1.group_service_pb2_grpc import GroupServiceStub
from fairwall.laws.groups.group_tables import (
    NoisyRows,
    NoisyTable,
    Share,
    WorstPair,
    compared,
    merged_share,
    p_values,
    share_of_rows,
    sizes,
    worst_pair,
)
from fairwall.laws.groups.practice_measures import (
    GroupEstimate,
    MeasureCounts,
    balanced_accuracy,
    common_odds_ratio,
    counts_of_rows,
    counts_of_tables,
    ratios_however_filled,
    treatment_equality,
)
from fairwall.laws.groups.proxy_attributes import Proxied, ProxyTable
from fairwall.laws.noise.row_noise import Ball
from fairwall.rpc import arrays, channel, chunks
from fairwall.tables.values import is_unknown
from fairwall.wire.audits import ID_DIGITS, by_group_digest

if TYPE_CHECKING:
    import pandas as pd

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: rows about people."""

BY_GROUP_SECONDS = 600.0

MEASURES = {
    wire.Measure.Name(number).removeprefix("MEASURE_").lower(): number
    for number in wire.Measure.values()
    if number != wire.MEASURE_UNSPECIFIED
}
"""Measures by name, which is Fairlearn's if it has one."""

_COSTS = ("epsilon_charged", "epsilon_remaining", "epsilon_remaining_now")

_OF_DECISIONS = ("selection_rate",)
_OF_SCORES = ("mean_score", "scoring_rate")
_OF_HITS = ("selection_rate", "true_positive_rate", "false_positive_rate", "accuracy")
_TESTED = frozenset({"selection_rate", "scoring_rate"})


@dataclass(frozen=True)
class GroupTerms:
    """The terms of requests by group.

    Parameters
    ----------
    people : int
        Number of predictions that a model has to give.
    attributes : mapping of str to tuple of str
        The attributes that groups may be made of, with every value that a person may have.
    least_share : float
        Groups with an estimated share of the people below this are not compared.
    epsilon, epsilon_remaining : float
        The whole budget, which audits are charged to as well, and what is left of it.
    golden : mapping of str to int
        For attributes known by probabilities, the number of people whose value is known for sure.
    """

    people: int
    attributes: Mapping[str, tuple[str, ...]]
    measures: tuple[str, ...]
    least_share: float
    epsilon: float
    epsilon_remaining: float
    golden: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ByGroup:
    """The noisy counts of one purchase by group, and the statistics computed from these.

    Parameters
    ----------
    by : tuple of str
        The attributes whose combined values are the groups.
    groups : tuple of tuple of str
        Each group's values.
    release : GroupRelease
        The counts, with noise.
    least_share : float
        See `GroupTerms`.
    names : tuple of str
        As `Answer.models`.
    epsilon_charged, epsilon_remaining, epsilon_remaining_now, rows_compared, request_id, data : as of `Answer`.
    """

    by: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    measures: tuple[str, ...]
    models: int
    release: wire.GroupRelease = field(repr=False)
    least_share: float
    epsilon_charged: float
    epsilon_remaining: float
    epsilon_remaining_now: float
    rows_compared: bool | None = field(default=None, repr=False)
    request_id: str = field(default="", repr=False)
    data: str = ""
    names: tuple[str, ...] = ()

    @classmethod
    def read(cls, release: wire.GroupRelease, **charged: Any) -> ByGroup:
        """Read a release, with the other fields by name; ArrayError if its description does not fit its content."""
        names = {number: name for name, number in MEASURES.items()}
        groups = tuple(product(*(each.values for each in release.by)))
        has = bool(release.tables or release.rows) and len(groups) == release.groups
        if not (has and release.by and release.measures and set(release.measures) <= names.keys()):
            raise arrays.ArrayError("what was released does not say what it is about")
        measures = tuple(names[number] for number in release.measures)
        models = sum(len(table.models) for table in release.tables)
        return cls(
            by=tuple(each.name for each in release.by),
            groups=groups,
            measures=measures,
            models=models or len(release.rows[0].row) // len(measures),
            release=release,
            least_share=release.least_share,
            **charged,
        )

    def records(self, over: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return one record for each model and group, with plain names and numbers; see `frame`."""
        return [record for model in range(self.models) for record in self._records_of(model, self.joined(over))]

    def frame(self, over: Sequence[str] | None = None) -> pd.DataFrame:
        """Return one row for each group, or for each model and group if there are several models.

        Parameters
        ----------
        over : sequence of str, optional
            The attributes that the groups are to be made of, some of `by`: counts are added up over the other
            attributes, which costs nothing. By default all.

        Returns
        -------
        DataFrame
            Its columns are ``people``, ``compared`` (unknowns and small groups are not), and for each measure m: ``m``;
            ``m_difference``, the most favoured group's rate less the group's; ``m_ratio``, the impact ratio, the
            group's rate over the most favoured group's; each with ``_low`` and ``_high``, an interval that holds the
            exact number of these people with probability at least 95%; ``m_below_four_fifths``, the probability of an
            exact ratio below 0.8; and for selection and scoring rates ``m_p_value``
            (`fairwall.laws.groups.group_tables.p_values`). If an attribute is known by probabilities: ``m_noise``,
            ``m_sampling`` and ``m_proxy``, the 95% half-width of each part of the error, and ``m_proxy_p_value``,
            corrected for the number of groups: the probability that a rate from probabilities alone is so far off, if
            their assumption holds (`fairwall.laws.groups.proxy_attributes`). ``attrs`` has the data set, the charges,
            and for each measure and model the `WorstPair` furthest apart.

        Raises
        ------
        ImportError
            Without pandas; `records` needs none.
        """
        pandas = require_pandas("count_by_group(...).records()")
        over = self._over(over)
        names = [*(["model"] if self.models > 1 else []), *over]
        frame = pandas.DataFrame.from_records(self.records(over)).drop(columns=[] if self.models > 1 else ["model"])
        frame = frame.set_index(names)
        frame.attrs = {
            **{name: getattr(self, name) for name in ("data", *_COSTS)},
            "worst_pairs": {
                measure: [self.worst_pair(measure, model, over) for model in range(self.models)]
                for measure in self.measures
            },
        }
        found: pd.DataFrame = frame
        return found

    def share(self, measure: str, model: int = 0, over: Sequence[str] | None = None) -> Share:
        """Return a measure of a model as released, for your own statistics."""
        joined = self.joined(over)
        if self.probable is not None:
            return self._proxied(measure, model, joined).share
        return merged_share(self._share(measure, model), joined.groups, len(joined.values))

    def worst_pair(
        self, measure: str, model: int = 0, over: Sequence[str] | None = None
    ) -> tuple[tuple[str, ...], tuple[str, ...], WorstPair] | None:
        """Return the groups with the largest and the smallest rate, and their comparison; None for fewer than two."""
        joined = self.joined(over)
        pair = worst_pair(self.share(measure, model, over), joined.compared)
        return None if pair is None else (joined.values[pair.most], joined.values[pair.least], pair)

    def _records_of(self, model: int, joined: Joined) -> Iterator[dict[str, Any]]:
        columns: dict[str, NDArray[Any]] = {
            "people": joined.people[0],
            "people_low": joined.people[1],
            "people_high": joined.people[2],
            "compared": joined.compared,
        }
        for measure in self.measures:
            share = self.share(measure, model, joined.over)
            found = compared(share, joined.compared)
            low, high = share.interval()
            columns |= {measure: share.estimate, f"{measure}_low": low, f"{measure}_high": high}
            columns |= {f"{measure}_{name}": column for name, column in vars(found).items()}
            if measure in _TESTED:
                columns[f"{measure}_p_value"] = p_values(share)
            if self.probable is not None:
                proxied = self._proxied(measure, model, joined)
                columns |= {f"{measure}_{part}": width for part, width in proxied.half_widths().items()}
                columns[f"{measure}_proxy_p_value"] = proxied.p_values(joined.compared)
        yield from ({"model": self._called(model), **record} for record in joined.records(columns))

    def _called(self, model: int) -> str | int:
        return self.names[model] if self.names else model

    def _over(self, over: Sequence[str] | None) -> tuple[str, ...]:
        kept = self.by if over is None else tuple(name for name in self.by if name in over)
        if not kept or (over is not None and not set(over) <= set(self.by)):
            raise ValueError(f"over: groups were counted by {', '.join(self.by)}: name some of these, not {over!r}")
        return kept

    def counts(self, pairs: Sequence[tuple[str, int]], over: Sequence[str] | None = None) -> MeasureCounts:
        """Return the people and the hits for each pair of a measure and a model; mean scores have none.

        The counts have the shape (2 * pairs, groups), people and hits in turn, with the noise of all of them together.
        ValueError for a measure that was not bought, or groups that are known by probabilities.
        """
        if self.probable is not None:
            raise ValueError(
                f"this needs counts of people, and {self.probable} is known by probabilities: take frame()"
            )
        for measure, _ in pairs:
            if measure not in self.measures:
                raise ValueError(f"this needs {measure}, which was not asked for: {', '.join(self.measures)} were")
        joined = self.joined(over)
        if self._parts:
            places = [model * len(self.measures) + self.measures.index(measure) for measure, model in pairs]
            return counts_of_rows(self._parts, places).joined(joined.groups, len(joined.values))
        found, order = [], list[int]()
        for table in self.release.tables:
            own = [place for place, (_, model) in enumerate(pairs) if model in table.models]
            looked, hits = _numbers(table.base), _numbers(table.hits)
            rows = [self._row(table, *pairs[place]) for place in own]
            if rows:
                weights = np.stack([looked[rows], hits[rows]], axis=1).reshape(2 * len(rows), -1).astype(np.float64)
                found.append((self._tables[table.models[0]], weights))
                order += [2 * place + side for place in own for side in (0, 1)]
        counts = counts_of_tables(found).joined(joined.groups, len(joined.values))
        return counts.combined(np.eye(len(order))[np.argsort(order)])

    def practice(
        self, over: Sequence[str] | None = None, reference: str | Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return the statistics that practice uses besides rates, one record for each model and group, at no cost.

        Parameters
        ----------
        over : as of `frame`.
        reference : str or sequence of str, optional
            The values of the group whose odds the others' are divided by; by default the group with the largest
            estimated rate.

        Returns
        -------
        list of dict
            With true and false positive rates ``balanced_accuracy``, (TPR + 1 - FPR) / 2, in [0, 1], and
            ``treatment_equality``, false negatives over false positives, from 0 to infinity; with selection or true
            positive rates m ``m_odds_ratio``, from 0 to infinity. All have the ends of an interval, ``_low`` and
            ``_high``, as of `frame`; NaN means not defined, or not compared (`fairwall.laws.groups.practice_measures`).

        Raises
        ------
        ValueError
            If none of these rates was bought, or there is no such group.
        """
        of_odds = [name for name in ("selection_rate", "true_positive_rate") if name in self.measures]
        both = [name for name in ("true_positive_rate", "false_positive_rate") if name in self.measures]
        if not of_odds:
            raise ValueError(
                "this needs selection_rate or true_positive_rate, which were not asked for: name them in measures"
            )
        joined, records = self.joined(over), list[dict[str, Any]]()
        for model in range(self.models):
            columns: dict[str, NDArray[Any]] = {"compared": joined.compared}
            if len(both) == 2:
                four = self.counts([(name, model) for name in both], over)
                columns |= told("balanced_accuracy", balanced_accuracy(four))
                columns |= told("treatment_equality", treatment_equality(four))
            for name in of_odds:
                two = self.counts([(name, model)], over).combined(np.array([[0.0, 1.0], [1.0, -1.0]]))
                place = joined.reference(two.share(0, 1).estimate, reference)
                columns |= joined.beside(f"{name}_odds_ratio", place, partial(common_odds_ratio, two))
            records += [{"model": self._called(model), **record} for record in joined.records(columns)]
        return records

    def however_filled(self, over: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Bound impact ratios over all assignments of the people with unknown values to groups, at no cost.

        Returns
        -------
        list of dict
            A record for each model and group, with four numbers for each purchased measure m of decisions:
            ``m_ratio_least`` and ``m_ratio_most``, by the counts as released, and ``m_ratio_low`` and ``m_ratio_high``,
            between which the exact ratio of these people lies with 95%, noise included, whatever groups the unknown
            belong to (`fairwall.laws.groups.practice_measures.ratios_however_filled`). NaN for groups that are not
            compared.

        Raises
        ------
        ValueError
            If no measure of decisions was bought.
        """
        asked = [name for name in self.measures if name in _OF_HITS]
        if not asked:
            raise ValueError(f"this needs one of {', '.join(_OF_HITS)}, which were not asked for: name one in measures")
        joined, records = self.joined(over), list[dict[str, Any]]()
        fits = [
            [
                all(is_unknown(mine) or mine == its for mine, its in zip(one, other, strict=True))
                for other in joined.values
            ]
            for one in joined.values
        ]
        may_be = np.array(fits) & joined.compared
        for model in range(self.models):
            columns: dict[str, NDArray[Any]] = {"compared": joined.compared}
            for name in asked:
                two = self.counts([(name, model)], over).combined(np.array([[0.0, 1.0], [1.0, -1.0]]))
                least, most = ratios_however_filled(two, may_be, joined.compared)
                columns |= {f"{name}_ratio_least": least.value, f"{name}_ratio_most": most.value}
                columns |= {f"{name}_ratio_low": least.low, f"{name}_ratio_high": most.high}
            records += [{"model": self._called(model), **record} for record in joined.records(columns)]
        return records

    def joined(self, over: Sequence[str] | None = None) -> Joined:
        """Return the groups joined to those of some attributes, as of `frame`."""
        kept = self._over(over)
        places = [self.by.index(name) for name in kept]
        parts = [tuple(group[place] for place in places) for group in self.groups]
        values = tuple(dict.fromkeys(parts))
        numbers = np.array([values.index(part) for part in parts])
        if self.probable is not None:
            table = self._probable_tables[0]
            everybody = np.ones(len(table.others), np.bool_)
            people = self._arranged(table.proxied(everybody, everybody), kept, numbers, len(values)).sizes()
            total = table.people
        else:
            people = sizes(self._parts or list(dict.fromkeys(self._tables.values())), numbers, len(values))
            total = sum(part.counts[0].sum() for part in self._parts) or self._tables[0].counts.sum()
        known = np.array([not any(map(is_unknown, value)) for value in values])
        return Joined(kept, values, numbers, people, known & (people[0] >= max(self.least_share * total, 1)))

    @cached_property
    def probable(self) -> str | None:
        """The attribute that is known by probabilities, if there is one."""
        return next((each.name for each in self.release.by if each.golden), None)

    @property
    def golden(self) -> int:
        """Number of people whose value of that attribute is known for sure; 0 without such an attribute."""
        return max(each.golden for each in self.release.by)

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """The groups' indices, in an order where the values of the attribute known by probabilities vary fastest."""
        sizes, place = [len(each.values) for each in self.release.by], self.by.index(str(self.probable))
        return np.moveaxis(np.arange(len(self.groups)).reshape(sizes), place, -1).ravel()

    @cached_property
    def _probable_tables(self) -> dict[int, ProxyTable]:
        """The table of each model, if an attribute is known by probabilities; `_tables` has the others."""
        values, groups = len(self.release.by[self.by.index(str(self.probable))].values), len(self.groups)
        found = {
            model: ProxyTable(_numbers(each.counts), _numbers(each.golden), each.rate, values)
            for each in self.release.tables
            for model in each.models
        }
        columns = {(2 * each.others.shape[1], each.golden.shape[1]) for each in found.values()}
        if columns != {(groups * (values + 1), groups * values)}:
            raise arrays.ArrayError("tables of probabilities are of other groups than the release says")
        return found

    def _proxied(self, measure: str, model: int, joined: Joined) -> Proxied:
        """Return a measure of groups that are known by probabilities."""
        (of,) = (each for each in self.release.tables if model in each.models)
        row = self._row(of, measure, model)
        found = self._probable_tables[model].proxied(_numbers(of.base)[row] == 1, _numbers(of.hits)[row] == 1)
        return self._arranged(found, joined.over, joined.groups, len(joined.values))

    def _arranged(self, proxied: Proxied, over: Sequence[str], groups: NDArray[np.intp], count: int) -> Proxied:
        joined = proxied.joined(groups[self._order], count)
        return joined if self.probable in over else joined.known()

    @cached_property
    def _tables(self) -> dict[int, NoisyTable]:
        """The table of each model."""
        tables = [(NoisyTable(_numbers(each.counts), each.rate), each.models) for each in self.release.tables]
        return {model: table for table, models in tables for model in models}

    @cached_property
    def _parts(self) -> list[NoisyRows]:
        """The rows of each part of the people; empty if there are tables."""
        return [
            NoisyRows(
                _numbers(each.counts),
                Ball(each.rate, self.release.groups, tuple(each.reach)),
                _numbers(each.base) == 1,
                np.array(each.row, np.intp),
                np.array(each.offset),
                np.array(each.slope),
            )
            for each in self.release.rows
        ]

    def _share(self, measure: str, model: int) -> Share:
        if self._parts:
            return share_of_rows(self._parts, model * len(self.measures) + self.measures.index(measure))
        table = self._tables[model]
        if measure == "mean_score":
            told = self.release.sums
            sums, total = _numbers(told.sums)[model], float(_numbers(told.totals)[model])
            return table.mean(sums, told.rate, told.people, total)
        (of,) = (each for each in self.release.tables if model in each.models)
        row = self._row(of, measure, model)
        return table.share(_numbers(of.base)[row] == 1, _numbers(of.hits)[row] == 1)

    def _row(self, table: wire.GroupTable, measure: str, model: int) -> int:
        """Return the row of a table that has a measure of one of its models."""
        counted = [each for each in self.measures if each != "mean_score"]
        return list(table.models).index(model) * len(counted) + counted.index(measure)


@dataclass(frozen=True, eq=False)
class Joined:
    """Groups of some attributes: values, the joined group of each released one, sizes, and which are compared."""

    over: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    groups: NDArray[np.intp]
    people: tuple[Floats, ...]
    compared: Bools

    def records(self, columns: Mapping[str, NDArray[Any]]) -> list[dict[str, Any]]:
        """Return one record for each group, with plain names and numbers."""
        return [
            {
                **dict(zip(self.over, values, strict=True)),
                **{name: column[place].item() for name, column in columns.items()},
            }
            for place, values in enumerate(self.values)
        ]

    def reference(self, rates: Floats, named: str | Sequence[str] | None) -> int | None:
        """Return the index of the group with these values, by default the largest rate; None if none is compared."""
        if named is not None:
            values = (named,) if isinstance(named, str) else tuple(named)
            if values not in self.values:
                raise ValueError(f"reference: no group has these values of {', '.join(self.over)}: {', '.join(values)}")
            if any(map(is_unknown, values)):
                raise ValueError(f"reference: {', '.join(values)} is not known: such people are counted, not compared")
            return self.values.index(values)
        chosen = np.where(self.compared & ~np.isnan(rates), rates, -np.inf)
        return int(chosen.argmax()) if np.isfinite(chosen).any() else None

    def beside(self, name: str, reference: int | None, estimate: Callable[[int], GroupEstimate]) -> dict[str, Floats]:
        """Return the columns of a comparison with one group; NaN for groups that are not compared."""
        if reference is None:
            return dict.fromkeys((name, f"{name}_low", f"{name}_high"), np.full(len(self.values), np.nan))
        columns = told(name, estimate(reference))
        return {each: np.where(self.compared, column, np.nan) for each, column in columns.items()}


def told(name: str, estimate: GroupEstimate) -> dict[str, Floats]:
    """Return the columns of an estimate and its interval."""
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


class GroupStub(GroupServiceStub):
    """A stub of GroupService on a channel to compliance, which sends predictions as they lie in memory."""

    def __init__(self, connection: grpc.Channel) -> None:
        super().__init__(connection)  # type: ignore[no-untyped-call]
        self.ByGroup = connection.stream_unary(
            "/fairwall.compliance.v1.GroupService/ByGroup",
            request_serializer=chunks.serialize,
            response_deserializer=wire.ByGroupResponse.FromString,
        )


def require_scipy() -> None:
    """Raise ImportError, with the command that installs it, unless SciPy is there: p-values need it."""
    try:
        importlib.import_module("scipy")
    except ModuleNotFoundError:
        raise ImportError("rates by group need SciPy: pip install 'fairwall[groups]'") from None


def terms(service: GroupServiceStub, deal_id: str) -> GroupTerms:
    """Return the terms of requests by group. Costs nothing. grpc.RpcError if compliance refuses."""
    return _read_terms(_terms(service, deal_id))


def _terms(service: GroupServiceStub, deal_id: str) -> wire.GetGroupTermsResponse:
    told: wire.GetGroupTermsResponse = service.GetGroupTerms(
        wire.GetGroupTermsRequest(deal_id=deal_id), timeout=channel.CALL_SECONDS
    )
    return told


def _read_terms(response: wire.GetGroupTermsResponse) -> GroupTerms:
    names = {number: name for name, number in MEASURES.items()}
    return GroupTerms(
        people=response.people,
        attributes={each.name: tuple(each.values) for each in response.attributes},
        measures=tuple(names[number] for number in response.measures if number in names),
        least_share=response.least_share,
        epsilon=response.epsilon,
        epsilon_remaining=response.epsilon_remaining,
        golden={each.name: each.golden for each in response.attributes if each.golden},
    )


def measures_for(predictions: PredictionBatch) -> tuple[str, ...]:
    """Return the default measures: of decisions the selection rate, else the mean score and the scoring rate."""
    return _OF_DECISIONS if predictions.dtype == np.bool_ else _OF_SCORES


def count(
    service: GroupStub,
    deal_id: str,
    request_id: str | None,
    predictions: NDArray[Any] | PredictionBatch,
    by: Sequence[str],
    measures: Sequence[str],
    epsilon: float,
    *,
    rows_digest: bytes = b"",
) -> ByGroup:
    """Buy counts by group of predictions, shape (models, people); see `AuditClient.count_by_group`.

    The same request id again gets the stored answer and costs nothing; None makes an id from the whole request.
    ValueError for an attribute that the terms do not have; grpc.RpcError if compliance refuses.
    """
    told_terms = _terms(service, deal_id)
    allowed = _read_terms(told_terms)
    unknown = [name for name in by if name not in allowed.attributes]
    if unknown or not by or len(set(by)) < len(by):
        raise ValueError(
            f"by must be one or several of {', '.join(allowed.attributes)}, none twice, not {', '.join(by)!r}"
        )
    if "mean_score" in measures and (likely := allowed.golden.keys() & set(by)):
        raise ValueError(f"mean_score is not told by {', '.join(likely)}, known by probabilities: ask for scoring_rate")
    header = wire.ByGroupHeader(
        request_id=request_id or "",
        deal_id=deal_id,
        by=by,
        measures=[wire.Measure.Name(MEASURES[measure]) for measure in measures],
        epsilon=epsilon,
        predictions=announced(predictions),
        rows_digest=rows_digest,
    )
    if request_id is None:
        header.request_id = by_group_digest(header, told_terms, predictions).hex()[:ID_DIGITS]

    def parts() -> Iterator[wire.ByGroupRequest | bytes]:
        yield wire.ByGroupRequest(header=header)
        yield from encoded(predictions, wire.ByGroupRequest)

    told = service.ByGroup(parts(), timeout=BY_GROUP_SECONDS)
    found = ByGroup.read(
        told.release,
        epsilon_charged=told.epsilon_charged,
        epsilon_remaining=told.epsilon_remaining,
        epsilon_remaining_now=(
            told.epsilon_remaining_now if told.HasField("epsilon_remaining_now") else told.epsilon_remaining
        ),
        rows_compared=told.rows_compared if told.HasField("rows_compared") else None,
        request_id=header.request_id,
        data=deal_id,
    )
    groups = tuple(product(*(allowed.attributes[name] for name in by)))
    if (found.by, found.groups, found.measures) != (tuple(by), groups, tuple(measures)):
        raise arrays.ArrayError("what was released is not what was asked for")
    return found


def _numbers(message: Any) -> NDArray[Any]:
    return arrays.from_message(message)
