"""Noisy counts of people by group, for any number of groups, and their cost.

The noise and its proof are in `fairwall.laws.groups.group_counts`, and for rows of many models in
`fairwall.laws.noise.row_noise`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from compliance.answers.audits import AuditCase
from compliance.answers.charging import room_of
from compliance.answers.group_rows import RowPart, balanced_noise, ball_noise, parts_of, questions
from compliance.ledger.accountant import Loss, Neighbours, pure
from compliance.ledger.entries import LedgerEntry, Reply, Request
from compliance.noise.sampling import Noise, noise_for
from compliance.records.groups import Grouped
from compliance.records.rows import FileRows
from fairwall.arrays import Bools, Floats, Ints
from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.laws.groups.group_counts import (
    DRAWN_MAX,
    SUM_STEP,
    WORTH,
    most_shared,
    noise_rate,
    noise_variance,
    strata_of,
)
from fairwall.laws.groups.proxy_attributes import rate_of
from fairwall.laws.mechanisms.table import BY_GROUP
from fairwall.laws.metrics.group_size_range import Shares
from fairwall.laws.noise.row_noise import Ball
from fairwall.laws.privacy.exposure import NO_LIMIT, Limit, of_rows, of_tables, one_person
from fairwall.rpc import arrays
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import array_pb2, error_pb2

METRIC = "by-group"
"""The ledger's metric name for all counts by group."""

GROUPS_MAX = 256
NUMBERS_MAX = 1 << 17
RELEASE_BYTES_MAX = 2 << 20
"""Most groups of a table, most numbers of a table, and most bytes of a release, which stay below the message limit."""

EPSILON_MIN = 1e-4
"""Least epsilon: below it, noise could not be summed exactly in float64, and no number would be worth having."""

_CLOSE = 1.02
"""Ratio of bounds at which the search for a smaller epsilon stops."""


@dataclass(frozen=True, eq=False)
class GroupCase:
    """An open case that also answers counts by group: the same people and the same account.

    Parameters
    ----------
    case : whose ledger pays, on its terms.
    people : everybody in the file, audited or not: stratum totals are exact, so leaving out a person whose value is
        missing would tell whoever has a stratum with that person alone.
    least_share : groups estimated below this share of the people take part in no comparison.
    limit : on what a request may reveal about membership of a group of the least size that the limit names.
    """

    case: AuditCase
    people: Grouped
    least_share: float
    limit: Limit = NO_LIMIT

    @property
    def dataset(self) -> str:
        """The people's name in the ledger."""
        return self.case.dataset

    @property
    def developers(self) -> frozenset[str] | None:
        """The developers admitted, as in `AuditCase`."""
        return self.case.developers

    @cached_property
    def rows(self) -> FileRows | None:
        """The ids of everybody."""
        rows = self.case.rows
        return None if rows is None else replace(rows, audited=np.ones(rows.people, np.bool_))

    @property
    def spent(self) -> float:
        """Epsilon spent of the budget."""
        return self.case.ledger.standing(self.case.dataset).spent

    def answer(
        self, developer: str, request_id: str, digest: bytes, header: wire.ByGroupHeader, predictions: Floats
    ) -> LedgerEntry:
        """Charge a request and count, or return the stored answer of the same request.

        The loss is stated for a change of all of one person's protected attributes, which bounds that for a change of
        one, so it is charged to the account of the audits. Refusal, LedgerError or LedgerUnavailable as
        `Ledger.settle`.
        """
        loss, room = self.loss(header.epsilon), room_of(developer, self.case.answers_a_day, self.case.epsilon_min)

        def reply(_: tuple[bytes, ...]) -> Reply:
            noise = noise_for(self.case.seed, request_id)
            release = released(self.people, header, predictions, noise, self.limit)
            release.by.extend(self.attributes(header.by))
            release.measures.extend(header.measures)
            release.least_share = self.least_share
            return Reply(release.SerializeToString(deterministic=True))

        request = Request(self.case.dataset, developer, request_id, digest, METRIC, BY_GROUP, Neighbours.A_FLIP, loss)
        return self.case.ledger.settle(request, reply, room=room)

    def attributes(self, names: Sequence[str]) -> list[wire.GroupAttribute]:
        """Return the values of these attributes, as released; KeyError for an unknown attribute."""
        values = {each.name: each.values for each in self.people.attributes}
        return [wire.GroupAttribute(name=name, values=values[name], golden=self.people.golden(name)) for name in names]

    def loss(self, epsilon: float) -> Loss:
        """Return the loss of a request: its whole epsilon."""
        return pure(epsilon)


def released(
    people: Grouped,
    header: wire.ByGroupHeader,
    predictions: Floats,
    noise: Noise,
    limit: Limit = NO_LIMIT,
    *,
    worth: float = WORTH,
) -> wire.GroupRelease:
    """Count people by group, with the noise of epsilon, or of the limit if that is more.

    Tables count people by stratum, for one model or for models that share strata; rows are for many models that do not.
    Refusal ``QUERIES_OUT_OF_RANGE`` if the models split the people into more strata than a response can hold.

    `header`: the request; an infinite epsilon means no noise. `predictions`: shape (models, people). `limit`: on what
    the release may reveal. `worth`: the largest variance of rows, relative to tables, at which rows replace tables; 0
    for tables always.
    """
    tables = _tables(people, header, predictions, limit)
    by = people.cells(tuple(header.by))
    release = wire.GroupRelease(groups=by[1])
    if any(map(people.golden, header.by)):
        for models in tables.split:
            rate = rate_of(tables.epsilon_of(models))
            release.tables.append(_probable(people, tables.counted, predictions, models, tuple(header.by), rate, noise))
            _require_room(release)
        return release
    balls = _balls(people, header, predictions, by[1], limit)
    if balls is not None and balls.variance < worth * tables.variance(by[1]):
        for part in balls.parts:
            release.rows.append(_rows(part, by, balls.rate, noise))
            _require_room(release)
        return release
    for models in tables.split:
        rate = noise_rate(tables.epsilon_of(models))
        release.tables.append(_table(people, tables.counted, predictions, models, by, rate, noise))
        _require_room(release)
    if tables.share < 1:
        release.sums.CopyFrom(_sums(predictions, by, noise_rate(tables.of_sums, 1 / SUM_STEP), noise))
    return release


def _require_room(release: wire.GroupRelease) -> None:
    if release.ByteSize() > RELEASE_BYTES_MAX:
        raise Refusal(error_pb2.REASON_QUERIES_OUT_OF_RANGE)


@dataclass(frozen=True)
class _Tables:
    """A request's answer by tables.

    Parameters
    ----------
    counted : the measures counted: all but the mean score, whose sums are released separately.
    split : the models that share each table.
    strata : for each table, its number of strata, and the mean number of strata read by its models' measures.
    share : of epsilon, for tables: the rest is for sums.
    epsilon : for which noise is made.
    cells : most cells into which public probabilities split each stratum further.
    """

    counted: Sequence[wire.Measure]
    split: list[list[int]]
    strata: list[tuple[int, float]]
    share: float
    epsilon: float
    cells: int = 1

    @property
    def models(self) -> int:
        """Number of models."""
        return sum(map(len, self.split))

    @property
    def of_sums(self) -> float:
        """Epsilon of each model's sums."""
        return (1 - self.share) * self.epsilon / self.models

    def epsilon_of(self, models: Sequence[int]) -> float:
        """Return the epsilon of the table of these models."""
        return self.share * self.epsilon * len(models) / self.models

    def revealed(self, people: int, epsilon: float, shares: Shares) -> float:
        """Return the balanced accuracy of an attack on all of it, if noise is made for `epsilon`."""
        strata, spent = Counter(self.cells * each for each, _ in self.strata), replace(self, epsilon=epsilon)
        sums = self.models * (self.share < 1)
        return of_tables(people, strata, sums, spent.epsilon_of(self.split[0]), spent.of_sums, shares)

    def variance(self, groups: int) -> float:
        """Return the mean variance, over measures, of top - bottom/2: the error of a rate near 1/2."""
        counted = [
            looked / 4 * noise_variance(noise_rate(self.epsilon_of(models)), groups)
            for models, (_, looked) in zip(self.split, self.strata, strict=True)
            for _ in models
        ]
        of = len(self.counted) * float(np.mean(counted)) if self.counted else 0.0
        if self.share == 1:
            return of / len(self.counted)
        sums = SUM_STEP**2 * noise_variance(noise_rate(self.of_sums, 1 / SUM_STEP), groups)
        return (of + sums) / (len(self.counted) + 1)


@dataclass(frozen=True)
class _Balls:
    """A request's answer by rows: parts of the people, each with its own ball, all of one rate."""

    parts: list[RowPart]
    rate: float
    groups: int

    @property
    def variance(self) -> float:
        """Mean variance over measures, comparable with `_Tables.variance`."""
        found = np.zeros(len(self.parts[0].slope))
        for part in self.parts:
            ball = Ball(self.rate, self.groups, tuple(part.reaches))
            of = {reach: ball.variance(reach) for reach in set(part.reaches)}
            found += np.square(part.slope) * [of[part.reaches[row]] for row in part.row]
        return float(found.mean())


def _balls(
    people: Grouped, header: wire.ByGroupHeader, predictions: Floats, groups: int, limit: Limit
) -> _Balls | None:
    """Return the answer by rows; None without noise, if drawing is slow, and for decisions of one model alone.

    For one model's decisions tables have an error as small.
    """
    if math.isinf(header.epsilon) or (len(predictions) == 1 and wire.MEASURE_MEAN_SCORE not in header.measures):
        return None
    parts = parts_of(list(header.measures), people.labels, predictions)
    if groups == 1 or sum(len(part.reaches) for part in parts) * (groups - 1) ** 2 > DRAWN_MAX:
        return None
    told = [(part.people, len(part.reaches)) for part in parts]
    epsilon = _within(lambda epsilon: of_rows(told, epsilon, limit.shares), header.epsilon, limit)
    return _Balls(parts, noise_rate(epsilon, 1.0), groups)


def _rows(part: RowPart, by: tuple[NDArray[np.intp], int], rate: float, noise: Noise) -> wire.GroupRows:
    cell, groups = by
    exact = part.counted(cell, groups)
    if exact.size > NUMBERS_MAX:
        raise Refusal(error_pb2.REASON_QUERIES_OUT_OF_RANGE)
    (drawn,) = ball_noise(noise, Ball(rate, groups, tuple(part.reaches)))
    return wire.GroupRows(
        counts=arrays.to_message((exact + drawn).astype(np.float64)),
        reach=part.reaches,
        base=arrays.to_message(np.array(part.looked, np.uint8)),
        row=part.row,
        offset=part.offset,
        slope=part.slope,
        rate=rate,
    )


def _within(revealed: Callable[[float], float], epsilon: float, limit: Limit) -> float:
    """Return about the largest epsilon, up to this one, that reveals no more than the limit allows."""
    if limit.accuracy >= one_person(epsilon) or revealed(epsilon) <= limit.accuracy:
        return epsilon
    low, high = EPSILON_MIN, epsilon
    while high > _CLOSE * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if revealed(middle) <= limit.accuracy else (low, middle)
    return low


def _tables(people: Grouped, header: wire.ByGroupHeader, predictions: Floats, limit: Limit) -> _Tables:
    """Choose, by public numbers alone, the models that share a table, and the epsilon of the noise.

    Tables have their share of epsilon, and sums of scores the rest. Models do not share a table that reveals more than
    the limit; if separate tables exceed it too, all noise is that of a smaller epsilon.
    """
    counted = [each for each in header.measures if each != wire.MEASURE_MEAN_SCORE]
    share, n = 0.5 if len(counted) < len(header.measures) else 1.0, len(people.labels)
    cells = 1
    for each in people.attributes:
        if each.name in header.by and (golden := people.golden(each.name)):
            # The golden sample, or the rest, may be few people; their probabilities, if known, split them further.
            n, cells = min(golden, n - golden), len(each.values)

    def split_as(split: list[list[int]]) -> _Tables:
        strata = [_strata(people, counted, predictions[models]) for models in split]
        return _Tables(counted, split, strata, share, header.epsilon, cells)

    together, alone = split_as([list(range(len(predictions)))]), [[model] for model in range(len(predictions))]
    found = together
    if len(alone) > 1 and counted:
        apart = split_as(alone)
        most = most_shared(n, [each for each, _ in apart.strata])
        limited = limit.accuracy < one_person(header.epsilon)
        revealed = limited and together.revealed(n, header.epsilon, limit.shares) > limit.accuracy
        found = apart if together.strata[0][0] > most or revealed else together
    spent = _within(lambda epsilon: found.revealed(n, epsilon, limit.shares), header.epsilon, limit)
    return replace(found, epsilon=spent)


def _strata(people: Grouped, measures: Sequence[wire.Measure], predictions: Floats) -> tuple[int, float]:
    """Return the number of strata of these models' table, and the mean number that a measure reads."""
    asked = _asked(people, measures, predictions)
    answers, _ = strata_of(asked)
    return len(answers), float(answers[:, : len(asked) // 2].sum(axis=0).mean()) if len(asked) else 1.0


def _asked(people: Grouped, measures: Sequence[wire.Measure], predictions: Floats) -> Bools:
    """Stack all models' questions, shape (2 * models * measures, people): who is read, then who is a hit."""
    pairs = [questions(measures, people.labels, row) for row in predictions]
    return np.concatenate([base for base, _ in pairs] + [hits for _, hits in pairs])


def _table(
    people: Grouped,
    measures: Sequence[wire.Measure],
    predictions: Floats,
    models: list[int],
    by: tuple[NDArray[np.intp], int],
    rate: float,
    noise: Noise,
) -> wire.GroupTable:
    cell, groups = by
    answers, stratum = _parted(people, measures, predictions[models], groups)
    counts = np.bincount(stratum * groups + cell, minlength=len(answers) * groups).reshape(len(answers), groups)
    return _told(models, answers, rate, counts=_noisy(counts, rate, noise))


def _probable(
    people: Grouped,
    measures: Sequence[wire.Measure],
    predictions: Floats,
    models: list[int],
    by: tuple[str, ...],
    rate: float,
    noise: Noise,
) -> wire.GroupTable:
    """Return a table with one attribute that is known by probabilities."""
    assert people.probable is not None, "it is among the attributes"
    groups = people.cells(by)[1] * people.probable.parts.shape[1]
    answers, stratum = _parted(people, measures, predictions[models], groups)
    others, golden = (_noisy(each, rate, noise) for each in people.products(by, stratum, len(answers)))
    return _told(models, answers, rate, counts=others, golden=golden)


def _parted(
    people: Grouped, measures: Sequence[wire.Measure], predictions: Floats, groups: int
) -> tuple[Bools, NDArray[np.intp]]:
    """Split people into strata as `strata_of`; Refusal if a response cannot hold all their groups."""
    answers, stratum = strata_of(_asked(people, measures, predictions))
    if answers.size > NUMBERS_MAX or len(answers) * groups > NUMBERS_MAX:
        raise Refusal(error_pb2.REASON_QUERIES_OUT_OF_RANGE)
    return answers, stratum


def _noisy(counts: Ints, rate: float, noise: Noise) -> array_pb2.Array:
    return arrays.to_message((counts + balanced_noise(noise, rate, *counts.shape)).astype(np.float64))


def _told(models: list[int], answers: Bools, rate: float, **counts: array_pb2.Array) -> wire.GroupTable:
    base, hits = map(arrays.to_message, np.split(answers.T.astype(np.uint8), 2))
    return wire.GroupTable(models=models, base=base, hits=hits, rate=rate, **counts)


def _sums(predictions: Floats, by: tuple[NDArray[np.intp], int], rate: float, noise: Noise) -> wire.GroupSums:
    cell, groups = by
    centred = predictions - 0.5
    if math.isinf(rate):
        sums = np.array([np.bincount(cell, row, groups) for row in centred])
    else:
        steps = np.rint(centred / SUM_STEP)  # whole numbers, which add up exactly
        exact = np.array([np.bincount(cell, row, groups) for row in steps])
        sums = (exact + balanced_noise(noise, rate, *exact.shape)) * SUM_STEP
    return wire.GroupSums(
        sums=arrays.to_message(sums),
        totals=arrays.to_message(predictions.sum(axis=1)),
        people=predictions.shape[1],
        rate=rate,
    )
