r"""Intervals of answers from flipped attributes (`fairwall.laws.noise.randomized_response`), by `inversion`.

Everybody's y_i is released, with the mean p for a disadvantaged person and 1 - p for an advantaged one. The e_i = (y_i
less its mean)/(1 - 2p) are independent, and N1 and the sum of v over the advantaged are known up to the sums of e_i and
of e_i v_i. So L is the sum of e_i (v_i - nu').

**Guaranteed** intervals use Chernoff's bound (`fairwall.laws.noise.randomized_response`). People with similar values
are grouped, with the farther end of their bin as value: the bound grows with everybody's weight.

**Likely** intervals use a normal distribution. The variance of e_i is the same for everybody. For many people L is
nearly normal, and q is 0.72 times as large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from compliance.intervals.counts import possible_gaps
from compliance.intervals.interval import Ends
from compliance.intervals.inversion import BEYOND, Reach, StratumPart, gaps_of_part, gaps_of_parts
from fairwall.arrays import Bools, Floats
from fairwall.laws.metrics.metric import Metric
from fairwall.laws.metrics.values import possible_sums
from fairwall.laws.noise.quantiles import LEVEL
from fairwall.laws.noise.randomized_response import chernoff, mean_of_copies, turned_law

_BINS = 64
"""Number of bins of values."""

_EDGES = np.linspace(0.0, 1.0, _BINS + 1)


def intervals(
    metric: Metric, parts: Sequence[tuple[Bools, Floats]], noisy: Floats, probabilities: Sequence[float], fewest: int
) -> tuple[Ends, Ends]:
    """Return a metric's intervals at `LEVEL`: guaranteed, and likely.

    `parts`: as from `fairwall.laws.metrics.values.part_values`: the people read, and their values, shape (m, n).
    `noisy`: y, shape (n,). `probabilities`: of a flip, for each copy of the attributes. `fewest`: least number of
    people in each group.
    """
    off, chances = turned_law(probabilities)
    deviation = math.sqrt(float(chances @ off**2))

    def bounded(counted: Floats) -> Reach:
        """Return Chernoff's q, from the number of people in each bin of `_EDGES`, shape (m, bins)."""

        def reach(least: Floats, most: Floats, level: float) -> Floats:
            farthest = np.maximum(*(np.abs(_EDGES - end[:, np.newaxis]) for end in (least, most)))
            return chernoff(counted, np.maximum(farthest[:, 1:], farthest[:, :-1]), off, chances, level + BEYOND)

        return reach

    def normal(squares: Floats, totals: Floats, people: Floats) -> Reach:
        """Return a normal distribution's q, from sums of squares, of values and of people, shape (m,) each."""

        def reach(least: Floats, most: Floats, level: float) -> Floats:
            from scipy.special import ndtri

            of_ends = [squares - 2 * end * totals + people * end**2 for end in (least, most)]
            q: Floats = (
                float(ndtri((1 + level + BEYOND) / 2)) * deviation * np.sqrt(np.maximum(np.max(of_ends, axis=0), 0.0))
            )
            return q

        return reach

    p = mean_of_copies(probabilities)
    kept = max(1 - 2 * p, 2.0**-52)
    guaranteed, likely = list[StratumPart](), list[StratumPart]()
    for members, values in _looked_at(metric, parts):
        people = members.sum(axis=1).astype(np.float64)
        totals, squares = (np.where(members, of, 0.0).sum(axis=1) for of in (values, values**2))
        size = people - ((noisy - p) * members).sum(axis=1) / kept
        sums = totals - np.where(members, values * (noisy - p), 0.0).sum(axis=1) / kept
        counted, everybody = _counted(values, members), np.zeros((len(values), _BINS))
        everybody[:, -1] = people
        for found, of_values, of_size in (
            (guaranteed, bounded(counted), bounded(everybody)),
            (likely, normal(squares, totals, people), normal(people, people, people)),
        ):
            inside = None if metric.binary else values[:, members[0]]
            found.append(_part(metric, people, totals, size, sums, of_values, of_size, fewest, inside))
    if metric.binary:
        return gaps_of_part(guaranteed[0], LEVEL), gaps_of_part(likely[0], LEVEL)
    return gaps_of_parts(metric, guaranteed), gaps_of_parts(metric, likely)


def _looked_at(metric: Metric, parts: Sequence[tuple[Bools, Floats]]) -> list[tuple[Bools, Floats]]:
    """Return the people each model's means are of, and their values, shape (m, n) each.

    Predictive parity is the share of hits among those whom a model predicts to be positive: each model has other
    people.
    """
    if metric.binary:
        (_, hits), (_, predicted) = parts
        return [(predicted > 0, hits)]
    return [(np.broadcast_to(members, values.shape), values) for members, values in parts]


def _counted(values: Floats, members: Bools) -> Floats:
    """Return the number of members in each bin of `_EDGES`, shape (m, bins)."""
    place = np.clip(np.searchsorted(_EDGES, values) - 1, 0, _BINS - 1)
    counted = [np.bincount(of[who], minlength=_BINS) for of, who in zip(place, members, strict=True)]
    return np.stack(counted).astype(np.float64)


def _part(
    metric: Metric,
    people: Floats,
    totals: Floats,
    size: Floats,
    sums: Floats,
    of_values: Reach,
    of_size: Reach,
    fewest: int,
    inside: Floats | None,
) -> StratumPart:
    """Return the knowledge of one part from estimates of N0 and of sums over the disadvantaged, shape (m,) each.

    `inside` has the values of the same people for each model, shape (m, people): they limit the possible sums.
    """
    zeros = np.zeros(len(sums))
    reach, least = of_size(zeros, zeros, 1 - 2 * BEYOND), 0.5 if metric.binary else float(fewest)
    first, last = np.maximum(least, size - reach), np.minimum(people - least, size + reach)
    # Where a group may have no positives, the metric is 0 by definition.
    unknown = first > last if not metric.binary else (first <= least) | (last >= people - least)
    people, totals, first, last = (np.where(unknown, 1.0, of) for of in (people, totals, first, last))
    possible = (zeros - 1, zeros + 1) if metric.bounded else (zeros, zeros + np.inf)
    if inside is not None and not unknown.any():
        ends = math.floor(first[0]), math.ceil(last[0])
        counts = np.arange(ends[0], ends[1] + 1.0)
        possible = possible_gaps(metric, inside.shape[1], totals, counts, possible_sums([inside], *ends))
    return StratumPart(people, totals, size, first, last, sums, 0.0, of_values, possible, unknown)
