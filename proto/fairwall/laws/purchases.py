"""What cells a batch would buy, and what those that were bought tell of it: all of it public, released noise included.

`fairwall.laws.cells` has the partition and the noise, `fairwall.laws.posterior` the answers, and
`compliance.mechanisms.cells` draws the noise. What was bought stands in an account's facts: by purchase the cell of
each person and the noisy counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.batch import AskedBatch, kept
from fairwall.laws.cells import Cuts, best_count, cells_scale, discrete_variance, usual
from fairwall.laws.exposure import NO_LIMIT, Limit, cells_within, least_people_within
from fairwall.laws.metric import find_metric, strata_of
from fairwall.laws.posterior import SHARE, Seen, directions_of, predicted_error, structures, variances_told

EPSILON = "cells.epsilon"
"""The fact: the epsilon of each purchase, shape (purchases,)."""

_ROWS_MAX = 2048
"""How many noisy counts an answer is computed from at most; the time grows with their cube."""


PURCHASES_MAX = 32
"""How many purchases an answer is computed from, and looked at for whether it is free: who makes many waits for few."""


@dataclass(frozen=True, eq=False)
class Purchase:
    """What one batch has bought: each person's cell, shape (n,), and noisy counts.

    They are the number of disadvantaged people in each cell, with the variance of its noise, shape (cells,).
    """

    cell_of: NDArray[np.intp]
    counts: NDArray[np.float64]
    variances: NDArray[np.float64]

    def among(self, members: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Count the people of each cell that are members, shape (cells,)."""
        return np.bincount(self.cell_of[members], minlength=len(self.counts)).astype(np.float64)


@kept
def plan(batch: AskedBatch, epsilon: float, limit: Limit = NO_LIMIT) -> list[tuple[NDArray[np.intp], Cuts, int, float]]:
    """Return who is in each stratum, by position, its cuts, how many cells are used, and the error to expect; public.

    No more cells than reveal what the limit allows. ValueError for an epsilon that is not finite and above 0.
    """
    means = batch.predictions.mean(axis=1)
    found = []
    for people, cuts in batch.cuts(least_people_within(epsilon, limit)):
        values = batch.predictions[:, people]
        offset = float(((values.mean(axis=1) - means) ** 2).mean())
        most = cells_within(max(2, len(people)), epsilon, _limit_among(batch, people, limit))
        found.append((people, cuts, *best_count(values, cuts, epsilon, offset, most)))
    return found


def _limit_among(batch: AskedBatch, people: NDArray[np.intp], limit: Limit) -> Limit:
    """Return the limit for people of one label: where no metric looks at them alone, a group of them may be anybody."""
    strata = {label for metric in batch.metrics for label in find_metric(metric).strata}
    if len(people) == len(batch.labels) or int(batch.labels[people[0]]) in strata:
        return limit
    return replace(limit, shares=replace(limit.shares, minimum_group=1))


def predicted(batch: AskedBatch, epsilon: float, limit: Limit = NO_LIMIT) -> float:
    """Return the error to expect of an answer; public. Infinite where cells tell nothing but N0.

    A sum over several strata of cells errs by all of theirs, and independently.
    """
    planned, errors = plan(batch, epsilon, limit), []
    for members in strata_of(batch.metric, batch.labels):
        inside = [(len(people), count, error) for people, _, count, error in planned if members[people].any()]
        if all(count == 1 for _, count, _ in inside):
            return math.inf
        people = sum(of_stratum for of_stratum, _, _ in inside)
        errors.append(math.sqrt(sum((of_stratum * error) ** 2 for of_stratum, _, error in inside)) / people)
    return sum(errors) / len(errors)


def predicted_with(batch: AskedBatch, bought: Sequence[Purchase]) -> list[float]:
    """Return the error to expect of an answer from each purchase by itself; public, `Purchase.counts` is not looked at.

    Of all directions in which models differ, where `predicted` looks at the first ones.
    """
    errors = np.zeros(len(bought))
    for stratum in batch.strata:
        centred, members, n = stratum.centred, stratum.members, stratum.people
        squares, directions = directions_of(centred @ centred.T)
        priors = structures(squares, len(centred), SHARE, n)
        for number, one in enumerate(bought):
            seen = seen_by([one], centred, members)
            cross = directions.T @ seen.cross
            told = cross / np.sqrt(SHARE * (1 - SHARE) * seen.ones + usual(len(seen.ones)) * seen.noise)
            variances = [variance / len(centred) for variance in variances_told(squares, told, priors)]
            of_size = usual(len(seen.ones)) * disadvantaged_among([one], members)[1]
            errors[number] += predicted_error(variances, of_size, n) / len(batch.strata)
    return errors.tolist()


def planned(batch: AskedBatch, epsilon: float, limit: Limit = NO_LIMIT) -> Purchase:
    """Return what a batch would buy; of nobody's counts."""
    cell_of, total = cells_of(batch, epsilon, limit)
    return Purchase(cell_of, np.zeros(total), np.full(total, discrete_variance(cells_scale(epsilon))))


def bought_at(facts: Mapping[str, NDArray[Any]], epsilon: float) -> list[Purchase]:
    """Return what an account has bought at epsilon or more; of very many purchases those that were dearest."""
    paid = facts.get(EPSILON, np.empty(0))
    dearest = {number for number in np.argsort(-paid, kind="stable")[:PURCHASES_MAX] if paid[number] >= epsilon}
    return [one for number, one in enumerate(purchases(facts)) if number in dearest]


def purchases(facts: Mapping[str, NDArray[Any]]) -> Iterator[Purchase]:
    """Read what an account has bought."""
    for number in range(len(facts.get(EPSILON, ()))):
        cell_of, cells = (facts[name] for name in fact_names(number))
        counts, variances = np.asarray(cells, dtype=np.float64)[:, :2].T
        yield Purchase(np.asarray(cell_of).astype(np.intp), counts, variances)


def fact_names(number: int) -> tuple[str, str]:
    """Name the two facts of a purchase: each person's cell, and the noisy counts with their variances."""
    return f"cells.{number}.of", f"cells.{number}.counts"


def cells_of(batch: AskedBatch, epsilon: float, limit: Limit) -> tuple[NDArray[np.intp], int]:
    """Return the cell of each person that a batch would buy, shape (n,), and how many cells there are."""
    cell_of = np.empty(len(batch.labels), np.intp)
    total = 0
    for people, cuts, count, _ in plan(batch, epsilon, limit):
        cell_of[people] = total + cuts.cell_of(count)
        total += count
    return cell_of, total


def disadvantaged_among(bought: Sequence[Purchase], members: NDArray[np.bool_]) -> tuple[float, float]:
    """Estimate how many members are disadvantaged, and return the estimate and its variance.

    Each purchase adds up its cells; of a cell with others in it, it takes the members' part. Purchases are weighed by
    the noise in them.
    """
    estimates, precisions = [], []
    for one in bought:
        part = one.among(members) / np.maximum(np.bincount(one.cell_of, minlength=len(one.counts)), 1)
        estimates.append(float(part @ one.counts))
        precisions.append(1 / float(part**2 @ one.variances))
    return float(np.dot(estimates, precisions) / sum(precisions)), 1 / sum(precisions)


def seen_by(bought: Sequence[Purchase], centred: NDArray[np.float64], members: NDArray[np.bool_]) -> Seen:
    """Say what purchases tell of the sums of some values, `fairwall.laws.posterior`.

    There is at least one purchase, and X, shape (m, n), is 0 for everybody but the members, shape (n,). Cells without
    any of them say nothing and are left out.
    """
    crosses, kept, people = [], [], []
    for one in bought:
        inside = np.flatnonzero(one.among(members))
        order = np.argsort(one.cell_of, kind="stable")
        counted = np.bincount(one.cell_of, minlength=len(one.counts))
        starts = np.concatenate([[0], np.cumsum(counted)[:-1]])
        crosses.append(np.add.reduceat(centred[:, order], starts, axis=1)[:, inside])
        kept.append(inside)
        people.append(counted[inside].astype(np.float64))
    gram = np.block([[_shared(one, other)[np.ix_(a, b)] for other, b in zip(bought, kept, strict=True)]
                     for one, a in zip(bought, kept, strict=True)])  # fmt: skip
    return Seen(
        np.concatenate([one.counts[inside] for one, inside in zip(bought, kept, strict=True)]),
        np.concatenate(people),
        gram,
        np.concatenate(crosses, axis=1),
        np.concatenate([one.variances[inside] for one, inside in zip(bought, kept, strict=True)]),
    )


def _shared(one: Purchase, other: Purchase) -> NDArray[np.float64]:
    """Count the people of each cell of one purchase that are in each of another."""
    shape = len(one.counts), len(other.counts)
    pairs = np.bincount(one.cell_of * shape[1] + other.cell_of, minlength=shape[0] * shape[1])
    return pairs.astype(np.float64).reshape(shape)


def merged(bought: Sequence[Purchase]) -> list[Purchase]:
    """Put purchases of the same cells together: as one with the mean of their counts, weighed by their noise."""
    found: dict[bytes, Purchase] = {}
    for one in bought:
        key = one.cell_of.tobytes()
        found[key] = _mean(found[key], one) if key in found else one
    return list(found.values())


def _mean(one: Purchase, other: Purchase) -> Purchase:
    precision = 1 / one.variances + 1 / other.variances
    mean = (one.counts / one.variances + other.counts / other.variances) / precision
    return Purchase(one.cell_of, mean, 1 / precision)


def strongest(bought: Sequence[Purchase]) -> Sequence[Purchase]:
    """Leave out the noisiest of very many, but for the last one, which may be for these very models."""
    if len(bought) <= PURCHASES_MAX:
        return bought
    noisiest = sorted(range(len(bought) - 1), key=lambda number: float(bought[number].variances.mean()))
    return [bought[number] for number in (*sorted(noisiest[: PURCHASES_MAX - 1]), len(bought) - 1)]


def within_reach(bought: Sequence[Purchase]) -> list[Purchase]:
    """Leave out the noisiest beyond `_ROWS_MAX` counts."""
    kept, rows = list[Purchase](), 0
    for one in sorted(bought, key=lambda one: float(one.variances.mean())):
        rows += len(one.counts)
        if kept and rows > _ROWS_MAX:
            break
        kept.append(one)
    return kept
