"""Counts of people by group, of any number of groups: what is released of them, at what cost.

The noise, and why it is enough, is in `fairwall.laws.groups`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from compliance.answers.audits import Case
from compliance.answers.charging import room_of
from compliance.ledger.accountant import Loss, Neighbours, pure
from compliance.ledger.entries import Entry, Reply, Request
from compliance.noise.sampling import Noise, noise_for
from compliance.records.groups import Grouped
from compliance.records.rows import Rows
from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.laws.exposure import NO_LIMIT, Limit, of_tables, one_person
from fairwall.laws.groups import SUM_STEP, noise_rate, strata_of
from fairwall.laws.mechanisms import BY_GROUP
from fairwall.rpc import arrays
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

METRIC = "by-group"
"""What the ledger calls the metric of all counts by group."""

GROUPS_MAX = 256
NUMBERS_MAX = 1 << 17
RELEASE_BYTES_MAX = 2 << 20
"""In one table, and in a whole release: it stays below what a message may hold."""

EPSILON_MIN = 1e-4
"""Less buys noise that float64 could not add up exactly, and no number worth having."""

_CLOSE = 1.02
"""So near to the limit a smaller epsilon is looked for."""

PEOPLE_A_STRATUM = 50
"""At least so many have the strata of several models' one table, on average.

Models may be made to part people into strata of one each. A table of these would be everybody's group under randomised
response, and whoever buys it right with a probability of 73% at epsilon 1: as private, by its epsilon, as any other
answer, and not what an audit is for. `benchmarks/by_group.py` has what the best attack comes to as it is.
"""


@dataclass(frozen=True, eq=False)
class GroupCase:
    """An open case that is asked by group too: the same people and the same account.

    Parameters
    ----------
    case : Case
        Whose ledger pays, at its terms.
    people : Grouped
        Everybody in the file, whether audited or not: what a stratum's counts sum up to is told exactly, so that to
        leave somebody out whose value is missing would tell whoever has a stratum of that person's own.
    least_share : float
        Groups that are estimated below this share of the people take part in no comparison.
    limit : Limit
        What a request may give away of who is in a group of the least size that the limit names.
    """

    case: Case
    people: Grouped
    least_share: float
    limit: Limit = NO_LIMIT

    @property
    def dataset(self) -> str:
        """What the ledger calls these people."""
        return self.case.dataset

    @property
    def developers(self) -> frozenset[str] | None:
        """Who may ask, as in `Case`."""
        return self.case.developers

    @cached_property
    def rows(self) -> Rows | None:
        """By what ids everybody is known."""
        rows = self.case.rows
        return None if rows is None else replace(rows, audited=np.ones(rows.people, np.bool_))

    @property
    def spent(self) -> float:
        """What has been spent of the budget, in epsilon."""
        return self.case.ledger.standing(self.case.dataset).spent

    def answer(
        self,
        developer: str,
        request_id: str,
        digest: bytes,
        header: wire.ByGroupHeader,
        predictions: NDArray[np.float64],
    ) -> Entry:
        """Charge a request and count, or find what this request has bought already.

        The loss is stated for one person's change of protected attributes, all of them, and bounds what a change of one
        of them tells: so it is charged to the account of the audits.

        Raises
        ------
        Refusal, LedgerError, LedgerUnavailable
            As `Ledger.settle`.
        """
        loss, room = self.loss(header.epsilon), room_of(developer, self.case.answers_a_day, self.case.epsilon_min)

        def reply(_: tuple[bytes, ...]) -> Reply:
            noise = noise_for(self.case.seed, request_id)
            return Reply(
                released(self.people, header, predictions, noise, self.limit).SerializeToString(deterministic=True)
            )

        request = Request(self.case.dataset, developer, request_id, digest, METRIC, BY_GROUP, Neighbours.A_FLIP, loss)
        return self.case.ledger.settle(request, reply, room=room)

    def loss(self, epsilon: float) -> Loss:
        """Say what a request costs that offers so much: all of it."""
        return pure(epsilon)


def released(
    people: Grouped,
    header: wire.ByGroupHeader,
    predictions: NDArray[np.float64],
    noise: Noise,
    limit: Limit = NO_LIMIT,
) -> wire.GroupRelease:
    """Count people by stratum and group, with noise: as much as epsilon asks for, or as the limit does if that is more.

    Parameters
    ----------
    header : ByGroupHeader
        What is asked; its epsilon may be infinite, and then nothing has noise.
    predictions : ndarray of float64, shape (models, people)
    limit : Limit, optional
        What it may give away.

    Raises
    ------
    Refusal
        ``QUERIES_OUT_OF_RANGE`` if the models part the people into more strata than a response can hold.
    """
    cell, groups = people.cells(tuple(header.by))
    counted = [each for each in header.measures if each != wire.MEASURE_MEAN_SCORE]
    summed = wire.MEASURE_MEAN_SCORE in header.measures
    share = 0.5 if summed else 1.0
    release = wire.GroupRelease(groups=groups)
    split, spent = _split_within(people, counted, predictions, header.epsilon, share, limit)
    for models in split:
        epsilon = share * spent * len(models) / len(predictions)
        release.tables.append(_table(people, counted, predictions, models, (cell, groups), noise_rate(epsilon), noise))
        if release.ByteSize() > RELEASE_BYTES_MAX:
            raise Refusal(error_pb2.REASON_QUERIES_OUT_OF_RANGE)
    if summed:
        rate = noise_rate((1 - share) * spent / len(predictions), 1 / SUM_STEP)
        release.sums.CopyFrom(_sums(predictions, (cell, groups), rate, noise))
    return release


def questions(
    measures: Sequence[wire.Measure], labels: NDArray[np.uint8], predictions: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Say of one model who is looked at by each measure, and who of these is a hit.

    Parameters
    ----------
    measures : sequence of Measure
        None of them the mean score.
    labels, predictions : ndarray, shape (people,)

    Returns
    -------
    base, hits : ndarray of bool, shape (measures, people)
    """
    everybody = np.ones(len(labels), np.bool_)
    positive, negative, chosen = labels == 1, labels == 0, predictions == 1
    of = {
        wire.MEASURE_SELECTION_RATE: (everybody, chosen),
        wire.MEASURE_TRUE_POSITIVE_RATE: (positive, positive & chosen),
        wire.MEASURE_FALSE_POSITIVE_RATE: (negative, negative & chosen),
        wire.MEASURE_ACCURACY: (positive | negative, (positive & chosen) | (negative & ~chosen)),
        wire.MEASURE_SCORING_RATE: (everybody, predictions > np.median(predictions)),
    }
    pairs = [of[measure] for measure in measures]
    shape = (len(pairs), len(labels))
    base, hits = (np.array([pair[side] for pair in pairs], np.bool_).reshape(shape) for side in (0, 1))
    return base, hits


def _split_within(
    people: Grouped,
    measures: Sequence[wire.Measure],
    predictions: NDArray[np.float64],
    epsilon: float,
    share: float,
    limit: Limit,
) -> tuple[list[list[int]], float]:
    """Choose, by public numbers alone, which models share a table, and how much of epsilon noise is made for.

    Tables have their share of epsilon, and sums of scores the rest. Models share no table that gives away more than the
    limit; and where tables of their own do too, all noise is that of a smaller epsilon.
    """
    split, m = _split(people, measures, predictions), len(predictions)
    if limit.accuracy >= one_person(epsilon):
        return split, epsilon

    def strata_of_tables(split: list[list[int]]) -> Counter[int]:
        return Counter(_count_strata(people, measures, predictions[models]) for models in split)

    def revealed(strata: Counter[int], epsilon: float) -> float:
        each, of_sums = share * epsilon / strata.total(), (1 - share) * epsilon / m
        return of_tables(len(people.labels), strata, m * (share < 1), each, of_sums, limit.shares)

    strata = strata_of_tables(split)
    if len(split) < m and revealed(strata, epsilon) > limit.accuracy:
        split = [[model] for model in range(m)]
        strata = strata_of_tables(split)
    low, high = EPSILON_MIN, epsilon
    if revealed(strata, high) <= limit.accuracy:
        return split, epsilon
    while high > _CLOSE * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if revealed(strata, middle) <= limit.accuracy else (low, middle)
    return split, low


def _split(people: Grouped, measures: Sequence[wire.Measure], predictions: NDArray[np.float64]) -> list[list[int]]:
    """Choose, by public numbers alone, whether models share a table or each has its own, of its part of epsilon.

    Of S strata and the whole of epsilon, a sum over half of them has a variance of 4 S / epsilon^2 about; a table of
    one model has few strata, and 1/m of epsilon.
    """
    together, alone = [list(range(len(predictions)))], [[model] for model in range(len(predictions))]
    if len(predictions) == 1 or not measures:
        return together
    strata = [_count_strata(people, measures, predictions[models]) for models in (*alone, *together)]
    worth = float(np.mean(strata[:-1])) * len(predictions) ** 2
    coarse = len(people.labels) / PEOPLE_A_STRATUM
    return together if strata[-1] <= min(worth, max(coarse, strata[0])) else alone


def _count_strata(people: Grouped, measures: Sequence[wire.Measure], predictions: NDArray[np.float64]) -> int:
    return len(strata_of(_asked(people, measures, predictions))[0])


def _asked(people: Grouped, measures: Sequence[wire.Measure], predictions: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Stack the questions of all models, shape (2 * models * measures, people): who is looked at, then the hits."""
    pairs = [questions(measures, people.labels, row) for row in predictions]
    return np.concatenate([base for base, _ in pairs] + [hits for _, hits in pairs])


def _table(
    people: Grouped,
    measures: Sequence[wire.Measure],
    predictions: NDArray[np.float64],
    models: list[int],
    by: tuple[NDArray[np.intp], int],
    rate: float,
    noise: Noise,
) -> wire.GroupTable:
    cell, groups = by
    answers, stratum = strata_of(_asked(people, measures, predictions[models]))
    if answers.size > NUMBERS_MAX or len(answers) * groups > NUMBERS_MAX:
        raise Refusal(error_pb2.REASON_QUERIES_OUT_OF_RANGE)
    counts = np.bincount(stratum * groups + cell, minlength=len(answers) * groups).reshape(len(answers), groups)
    base, hits = np.split(answers.T.astype(np.uint8), 2)
    return wire.GroupTable(
        models=models,
        counts=arrays.to_message((counts + balanced_noise(noise, rate, *counts.shape)).astype(np.float64)),
        base=arrays.to_message(base),
        hits=arrays.to_message(hits),
        rate=rate,
    )


def _sums(
    predictions: NDArray[np.float64], by: tuple[NDArray[np.intp], int], rate: float, noise: Noise
) -> wire.GroupSums:
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


def balanced_noise(noise: Noise, rate: float, rows: int, groups: int) -> NDArray[np.int64]:
    """Draw noise whose rows sum up to 0, exactly by its law, see `fairwall.laws.groups`.

    All but the last number of a row are drawn as Laplace noise, and the last one is what is missing from 0; the row is
    kept with the probability e^(-rate |last|), or drawn again. How often does not depend on anything but the draws.

    Parameters
    ----------
    rate : float
        Of `noise_rate`; infinite for no noise.
    rows, groups : int
        The shape, at least two groups.

    Returns
    -------
    ndarray of int64, shape (rows, groups)
    """
    drawn = np.zeros((rows, groups), np.int64)
    missing = np.arange(0 if math.isinf(rate) else rows)
    while len(missing):
        # Noise of scale 1 on a grid of the rate: its multiples, and so the exponents, are exact in float64.
        free = noise.laplace(np.zeros(len(missing) * (groups - 1)), 1.0, rate).reshape(len(missing), groups - 1)
        steps = np.rint(free / rate).astype(np.int64)
        last = -steps.sum(axis=1)
        kept = noise.bernoulli_exp(rate * np.abs(last))
        drawn[missing[kept]] = np.column_stack([steps, last])[kept]
        missing = missing[~kept]
    return drawn
