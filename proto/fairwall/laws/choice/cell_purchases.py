"""Purchases of cells: a batch's plan, and the information of earlier purchases. Public, released noise included.

`fairwall.laws.choice.cell_partition` has the partition and the noise, `fairwall.laws.choice.cell_partition` the sum
measured besides, `fairwall.laws.choice.posterior` the answers, and `compliance.mechanisms.cells` draws the noise.
Purchases are stored in an account's facts (`fact_names`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bools, Floats
from fairwall.laws.choice.cell_partition import (
    CORRELATION,
    CROWDS,
    STEPS,
    Cuts,
    Residual,
    besides_cells,
    best_count,
    cells_scale,
    discrete_variance,
    expected,
    leading,
    narrowed,
    usual,
)
from fairwall.laws.choice.posterior import (
    SHARE,
    Free,
    NoisyObservations,
    directions_of,
    predicted_error,
    structures,
    variances_told,
)
from fairwall.laws.choice.public_batch import AskedBatch, Stratum, kept
from fairwall.laws.metrics.metric import find_metric, strata_of
from fairwall.laws.privacy.amounts import least_scale
from fairwall.laws.privacy.exposure import NO_LIMIT, Limit, cells_within, least_people_within

EPSILON = "cells.epsilon"
"""Name of the fact with the epsilon of each purchase, shape (purchases,)."""

_ROWS_MAX = 2048
"""Most noisy counts from which an answer is computed; the time grows with their cube."""


PURCHASES_MAX = 32
"""Most purchases from which an answer is computed, or checked for being free: limits waiting times."""


@dataclass(frozen=True, eq=False)
class CellPurchase:
    """A batch's purchase: cells with noisy counts, and weighted sums.

    `cell_of`: each person's cell, shape (n,). `counts`, `variances`: the noisy number of disadvantaged people in each
    cell, and its noise variance, shape (cells,). `weights`: of sums over the disadvantaged, times `residuals.STEPS`,
    shape (rows, n). `sums`, `sum_variances`: the noisy sums, and their noise variances, shape (rows,).
    """

    cell_of: NDArray[np.intp]
    counts: Floats
    variances: Floats
    weights: NDArray[np.int8]
    sums: Floats
    sum_variances: Floats

    def of(self, people: NDArray[np.intp]) -> CellPurchase:
        """Return the purchase restricted to some people, by position."""
        return replace(self, cell_of=self.cell_of[people], weights=self.weights[:, people])

    @property
    def people(self) -> Floats:
        """The number of people in each cell, shape (cells,)."""
        return np.bincount(self.cell_of, minlength=len(self.counts)).astype(np.float64)

    def narrowed(self) -> CellPurchase:
        """Return the purchase without impossible excess of noise in its counts, `cell_partition.narrowed`."""
        people = self.people
        inside = np.flatnonzero(people)
        share = float(np.clip(self.counts.sum() / people.sum(), 0.0, 1.0))
        counts, variances = self.counts.copy(), self.variances.copy()
        counts[inside], variances[inside] = narrowed(counts[inside], people[inside], variances[inside], share)
        return replace(self, counts=counts, variances=variances)

    def among(self, members: Bools) -> Floats:
        """Return the number of members in each cell, shape (cells,)."""
        return np.bincount(self.cell_of[members], minlength=len(self.counts)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Planned:
    """A planned purchase about some people of a batch: public.

    Parameters
    ----------
    people : their positions.
    count : the number of cells.
    scale : of the noise on their counts.
    residual : the sum measured besides.
    error : the expected error of a gap.
    cells : each person's cell, shape (people,), for people who were not cut themselves.
    """

    people: NDArray[np.intp]
    cuts: Cuts
    count: int
    scale: float
    residual: Residual | None
    error: float
    cells: NDArray[np.intp] | None = None

    @property
    def cell_of(self) -> NDArray[np.intp]:
        """Each person's cell, 0 .. `count` - 1, shape (people,)."""
        return self.cuts.cell_of(self.count) if self.cells is None else self.cells


@kept
def plan(batch: AskedBatch, epsilon: float, limit: Limit = NO_LIMIT, besides: bool = True) -> list[Planned]:
    """Return a batch's planned purchase for each part of its people (`AskedBatch.split`); public.

    `besides` allows a sum to be measured besides cells. The number of cells respects the limit. ValueError for an
    epsilon that is not finite and above 0.

    For very many people the plan is made about a sample of them and extended to all.
    """
    if batch.few is not batch:
        least, of_few = least_people_within(epsilon, limit), plan(batch.few, epsilon, limit, besides)
        return [_of_all(batch, each, people, least) for each, people in zip(of_few, batch.split, strict=True)]
    means = batch.of(np.arange(len(batch.labels))).mean(axis=1)
    found = []
    for people, cuts in batch.cuts(least_people_within(epsilon, limit)):
        values = batch.of(people)
        offset = float(((values.mean(axis=1) - means) ** 2).mean())
        of_these = _limit_among(batch, people, limit)
        found.append(plan_among(values, people, cuts, epsilon, offset, of_these, batch.stands_for, besides))
    return found


def plan_among(
    values: Floats,
    people: NDArray[np.intp],
    cuts: Cuts,
    epsilon: float,
    offset: float,
    limit: Limit,
    stands_for: float = 1.0,
    besides: bool = True,
) -> Planned:
    """Return the planned purchase for people with given cuts, from their `values`; `offset` as of `best_count`."""
    n, scale = max(2, round(stands_for * len(people))), cells_scale(epsilon)
    count, error = best_count(values, cuts, scale, offset, cells_within(n, epsilon, limit), stands_for)
    crowd = max(math.ceil(least_people_within(epsilon, limit) / stands_for), len(people) // CROWDS)
    most = cells_within(n, epsilon, limit, besides=True)
    hides, residual = besides_cells(values, cuts.cell_of(count), epsilon, error, crowd, stands_for)
    whole = Planned(people, cuts, count, scale, None, math.hypot(error, hides))
    if residual is None or not most or not besides:
        return whole
    # Less epsilon, or a lower limit on cells, gives other cells with another residual.
    scale = least_scale(epsilon, residual.scale)
    count, error = best_count(values, cuts, scale, offset, most, stands_for)
    weights = leading(lambda: [(slice(None), values)], cuts.cell_of(count), crowd)
    if weights is None:
        return whole
    residual = replace(residual, weights=weights)
    measured = Planned(people, cuts, count, scale, residual, math.hypot(error, residual.error))
    return min(whole, measured, key=lambda option: option.error)


def _of_all(batch: AskedBatch, planned: Planned, people: NDArray[np.intp], least: int) -> Planned:
    """Return a plan about a sample of people extended to all of them."""
    cells, residual = batch.cells(people, planned.cuts, planned.count, least), planned.residual
    if residual is not None:
        weights = leading(lambda: batch.blocks(people), cells, max(least, len(people) // CROWDS))
        residual = None if weights is None else replace(residual, weights=weights)
    return replace(planned, people=people, cells=cells, residual=residual)


def _limit_among(batch: AskedBatch, people: NDArray[np.intp], limit: Limit) -> Limit:
    """Return the limit for people of one label: without a minimum group where no metric looks at them alone."""
    strata = {label for metric in batch.metrics for label in find_metric(metric).strata}
    if len(people) == len(batch.labels) or int(batch.labels[people[0]]) in strata:
        return limit
    return replace(limit, shares=replace(limit.shares, minimum_group=1))


def predicted(batch: AskedBatch, epsilon: float, limit: Limit = NO_LIMIT, besides: bool = True) -> float:
    """Return an answer's expected error, with independent strata; infinite if cells tell only N0. Public."""
    planned, errors = plan(batch, epsilon, limit, besides), []
    for members in strata_of(batch.metric, batch.labels):
        inside = [(len(each.people), each.count, each.error) for each in planned if members[each.people].any()]
        if all(count == 1 for _, count, _ in inside):
            return math.inf
        people = sum(of_stratum for of_stratum, _, _ in inside)
        errors.append(math.sqrt(sum((of_stratum * error) ** 2 for of_stratum, _, error in inside)) / people)
    return sum(errors) / len(errors)


def predicted_with(batch: AskedBatch, purchases: Sequence[CellPurchase]) -> list[float]:
    """Return the expected error of an answer from each purchase by itself; public: no counts are looked at.

    For all directions in which models differ, where `predicted` looks at the first ones. As much may hide in the
    leading direction of the sums' residual as `fairwall.laws.choice.cell_partition` assumes, B.
    """
    errors = np.zeros(len(purchases))
    for stratum in batch.strata:
        members, n = stratum.members, stratum.people
        squares, directions = directions_of(stratum.gram)
        priors = structures(squares, stratum.rows, SHARE, n)
        for number, one in enumerate(purchases):
            seen = seen_by([one], stratum)
            # Sums measured besides cells come last and are left out: the prior says nothing of them.
            cells = len(seen.ones) - (0 if seen.free is None else len(seen.free.variances))
            # Scaled to all people for whom these stand.
            cross = math.sqrt(batch.stands_for) * (directions.T @ seen.cross[:, :cells])
            spread = SHARE * (1 - SHARE) * batch.stands_for * seen.ones[:cells]
            told = cross / np.sqrt(spread + usual(cells) * seen.noise[:cells])
            variances = [variance / stratum.rows for variance in variances_told(squares, told, priors)]
            of_size = usual(cells) * disadvantaged_among([one], members)[1]
            left = _left(stratum.gram, seen, cells) / stratum.rows
            hides = CORRELATION * math.sqrt(left / (SHARE * (1 - SHARE) * n))
            errors[number] += math.hypot(predicted_error(variances, of_size, n), hides) / len(batch.strata)
    return errors.tolist()


def _left(products: Floats, seen: NoisyObservations, cells: int) -> float:
    """Return the largest eigenvalue of X X' - X S' (S S')^-1 S X', by division for cells, which share nobody."""
    of_cells = seen.cross[:, :cells] / seen.ones[:cells]
    left = products - of_cells @ seen.cross[:, :cells].T
    if seen.free is not None:
        shared = seen.gram[:cells, cells:]
        own = seen.gram[cells:, cells:] - (shared.T / seen.ones[:cells]) @ shared
        besides = seen.cross[:, cells:] - of_cells @ shared
        left -= besides @ np.linalg.pinv(own, hermitian=True) @ besides.T
    return max(float(np.linalg.eigvalsh(left)[-1]), 0.0)


def planned(batch: AskedBatch, epsilon: float, limit: Limit = NO_LIMIT, besides: bool = True) -> CellPurchase:
    """Return a batch's planned purchase, with counts and sums of 0."""
    found = plan(batch, epsilon, limit, besides)
    cell_of, variances = np.empty(len(batch.labels), np.intp), list[float]()
    rows, of_rows = list[NDArray[np.int8]](), list[float]()
    for each in found:
        cell_of[each.people] = len(variances) + each.cell_of
        variances += [discrete_variance(each.scale)] * each.count
        if each.residual is not None:
            row = np.zeros(len(cell_of), np.int8)
            row[each.people] = each.residual.weights
            rows.append(row)
            of_rows.append(discrete_variance(STEPS * each.residual.scale) / STEPS**2)
    weights = np.array(rows, np.int8).reshape(len(rows), len(cell_of))
    return CellPurchase(
        cell_of, np.zeros(len(variances)), np.array(variances), weights, np.zeros(len(rows)), np.array(of_rows)
    )


def bought_at(facts: Mapping[str, NDArray[Any]], epsilon: float) -> list[CellPurchase]:
    """Return an account's purchases at epsilon or more; the most expensive if there are more than `PURCHASES_MAX`."""
    paid = facts.get(EPSILON, np.empty(0))
    dearest = {number for number in np.argsort(-paid, kind="stable")[:PURCHASES_MAX] if paid[number] >= epsilon}
    return [one for number, one in enumerate(purchases(facts)) if number in dearest]


def purchases(facts: Mapping[str, NDArray[Any]]) -> Iterator[CellPurchase]:
    """Yield an account's purchases."""
    for number in range(len(facts.get(EPSILON, ()))):
        of, counted, of_weights, of_sums = fact_names(number)
        cell_of, cells = facts[of], facts[counted]
        cell_of = np.asarray(cell_of).astype(np.intp)
        counts, variances = np.asarray(cells, dtype=np.float64)[:, :2].T
        sums, their, first, last = np.asarray(facts.get(of_sums, np.zeros((0, 4))), dtype=np.float64).T
        within = (cell_of >= first[:, np.newaxis]) & (cell_of <= last[:, np.newaxis])
        weights = np.where(within, np.asarray(facts.get(of_weights, 0), dtype=np.int8), np.int8(0))
        yield CellPurchase(cell_of, counts, variances, weights, sums, their)


def fact_names(number: int) -> tuple[str, str, str, str]:
    """Return the names of a purchase's facts.

    They are each person's cell, and the noisy counts with their variances; where sums are measured besides, each
    person's weight, and the noisy sums with their variances and the first and the last of their cells.
    """
    return f"cells.{number}.of", f"cells.{number}.counts", f"cells.{number}.weights", f"cells.{number}.sums"


def disadvantaged_among(purchases: Sequence[CellPurchase], members: Bools) -> tuple[float, float]:
    """Return an estimate of the number of disadvantaged members, and its variance.

    Each purchase adds up its cells, weighted by the members' share of a cell. Purchases are weighted by their noise.
    """
    estimates, precisions = [], []
    for one in purchases:
        part = one.among(members) / np.maximum(one.people, 1)
        estimates.append(float(part @ one.counts))
        precisions.append(1 / float(part**2 @ one.variances))
    return float(np.dot(estimates, precisions) / sum(precisions)), 1 / sum(precisions)


def excess(purchases: Sequence[CellPurchase]) -> float:
    """Return the excess kurtosis of the sum of all noise on counts: 3 + 1/v of one count, v its variance."""
    v = np.concatenate([one.variances for one in purchases])
    return float((v**2 * (3 + 1 / v)).sum() / v.sum() ** 2)


def seen_by(purchases: Sequence[CellPurchase], stratum: Stratum) -> NoisyObservations:
    """Return the information of at least one purchase about the sums of a stratum's values, `laws.choice.posterior`.

    Cells without any of the stratum's members are left out.
    """
    members = stratum.members
    kept = [np.flatnonzero(one.among(members)) for one in purchases]
    found = [(one, row) for one in purchases for row in np.flatnonzero(one.weights[:, members].any(axis=1))]
    crosses, effects = (
        [np.zeros((stratum.rows, len(one.counts))) for one in purchases],
        np.zeros((stratum.rows, len(found))),
    )
    for people, values in stratum.blocks():
        centred = stratum.centre(values)
        for one, cross in zip(purchases, crosses, strict=True):
            cells = one.cell_of[people]
            counted = np.bincount(cells, minlength=len(one.counts))
            some = np.flatnonzero(counted)
            starts = (np.cumsum(counted) - counted)[some]
            cross[:, some] += np.add.reduceat(centred[:, np.argsort(cells, kind="stable")], starts, axis=1)
        if found:
            effects += centred @ np.stack([one.weights[row, people] / STEPS for one, row in found]).T
    gram = np.block([[_shared(one, other)[np.ix_(a, b)] for other, b in zip(purchases, kept, strict=True)]
                     for one, a in zip(purchases, kept, strict=True)])  # fmt: skip
    seen = NoisyObservations(
        np.concatenate([one.counts[inside] for one, inside in zip(purchases, kept, strict=True)]),
        np.concatenate([one.people[inside] for one, inside in zip(purchases, kept, strict=True)]),
        gram,
        np.concatenate([cross[:, inside] for cross, inside in zip(crosses, kept, strict=True)], axis=1),
        np.concatenate([one.variances[inside] for one, inside in zip(purchases, kept, strict=True)]),
    )
    if not found:
        return seen
    w = np.stack([one.weights[row] / STEPS for one, row in found])
    of_cells = [np.stack([np.bincount(one.cell_of, row, len(one.counts))[inside] for row in w])
                for one, inside in zip(purchases, kept, strict=True)]  # fmt: skip
    shared = np.concatenate(of_cells, axis=1)
    gram = np.block([[gram, shared.T], [shared, w @ w.T]])
    variances = np.array([(expected(row) / float(row @ row)) ** 2 for row in w])
    return NoisyObservations(
        np.append(seen.values, [one.sums[row] for one, row in found]),
        np.append(seen.ones, w.sum(axis=1)),
        gram,
        np.hstack([seen.cross, effects]),
        np.append(seen.noise, [one.sum_variances[row] for one, row in found]),
        Free(gram[:, len(seen.values) :], effects, variances),
    )


def _shared(one: CellPurchase, other: CellPurchase) -> Floats:
    """Return the number of people in each pair of cells of two purchases."""
    shape = len(one.counts), len(other.counts)
    pairs = np.bincount(one.cell_of * shape[1] + other.cell_of, minlength=shape[0] * shape[1])
    return pairs.astype(np.float64).reshape(shape)


def merged(purchases: Sequence[CellPurchase]) -> list[CellPurchase]:
    """Return purchases with those of the same cells merged: the mean of their counts, weighted by noise."""
    found: dict[bytes, CellPurchase] = {}
    for one in purchases:
        key = one.cell_of.tobytes() + one.weights.tobytes()
        found[key] = _mean(found[key], one) if key in found else one
    return list(found.values())


def _mean(one: CellPurchase, other: CellPurchase) -> CellPurchase:
    counts, variances = _weighed(one.counts, one.variances, other.counts, other.variances)
    sums, sum_variances = _weighed(one.sums, one.sum_variances, other.sums, other.sum_variances)
    return CellPurchase(one.cell_of, counts, variances, one.weights, sums, sum_variances)


def _weighed(one: Floats, its: Floats, other: Floats, others: Floats) -> tuple[Floats, Floats]:
    precision = 1 / its + 1 / others
    return (one / its + other / others) / precision, 1 / precision


def strongest(purchases: Sequence[CellPurchase]) -> Sequence[CellPurchase]:
    """Return at most `PURCHASES_MAX` purchases: the least noisy, and the last, which may be for these very models."""
    if len(purchases) <= PURCHASES_MAX:
        return purchases
    noisiest = sorted(range(len(purchases) - 1), key=lambda number: float(purchases[number].variances.mean()))
    return [purchases[number] for number in (*sorted(noisiest[: PURCHASES_MAX - 1]), len(purchases) - 1)]


def within_reach(purchases: Sequence[CellPurchase]) -> list[CellPurchase]:
    """Return the least noisy purchases, up to `_ROWS_MAX` counts."""
    kept, rows = list[CellPurchase](), 0
    for one in sorted(purchases, key=lambda one: float(one.variances.mean())):
        rows += len(one.counts)
        if kept and rows > _ROWS_MAX:
            break
        kept.append(one)
    return kept
