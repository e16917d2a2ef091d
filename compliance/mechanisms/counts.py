"""Laplace noise on counts and sums instead of on the metric: every metric, ratios included, is post-processing.

The mathematics is `fairwall.laws.counts`. What a batch adds up over the disadvantaged people is released with noise,
and so is how many they are, which is bought with an account's first batch and known from then on. Everything else is
computed from these and from what who asks knows: the values of all people, and hence their totals.

So are the intervals. N0 and each sum lie near what was released of them with a public probability, and all at once
with at least `LEVEL` (Bonferroni). The metric's interval holds whatever it can be there: for each possible N0 it is
monotone in the sum, so that the ends of the sum's interval are enough.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.accountant import Loss, pure
from compliance.interval import LEVEL, Ends, noise_reach
from compliance.mechanisms.mechanism import (
    Facts,
    Guarantee,
    Question,
    Release,
    exactly,
    require_answerable,
    require_budget,
)
from compliance.metrics import GroupSums, gaps, part_values, sums_over
from compliance.noise import ROUNDING_STEPS, Noise, step_for
from fairwall.laws.counts import Totals, laplace_scales, shrunk_sums
from fairwall.laws.metric import Metric, find_metric
from fairwall.laws.noise import Laplace, Law

_SIZE_MISSED = 0.0125
"""How often N0 may lie outside its interval; the sums may miss theirs as often as is left of 1 - `LEVEL`.

Whatever buys N0 does not know yet who will ask: two strata, at most, leave half to the sums.
"""

_LAST_BITS = 2.0**-40
"""For float64's rounding errors in the ends of intervals."""

_LEAST_SUM = 0.5
"""Sums below half a person are taken for that in a ratio, which stays finite."""


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """What a stratum releases.

    Parameters
    ----------
    size
        N0 with noise; None where it was bought before.
    size_law
        Of N0's noise.
    sums, law, step
        The centred sums with noise, its law, and their grid.
    """

    size: float | None
    size_law: Law
    sums: NDArray[np.float64]
    law: Law
    step: float


Buy = Callable[[int, NDArray[np.float64], int, bool], NoisyCounts]
"""Adds noise: takes N0, the centred sums, n, and whether N0 was bought before."""


@dataclass(frozen=True)
class CountsMechanism:
    """Adds Laplace noise to N0 and to the centred sums.

    Parameters
    ----------
    shrinks
        Whether answers move towards no gap where the noise hides them, `fairwall.laws.counts.shrunk_sums`.
    """

    shrinks: bool = False
    name: str = "counts"
    title: str = "noisy counts"
    guarantee: Guarantee = "pure"

    def refuses(self, metric: str, epsilon: float, delta: float) -> str | None:  # noqa: ARG002
        """Refuse nothing."""
        return None

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return epsilon, with N0 as without: what N0 does not need, the sums get."""
        require_budget(epsilon, delta)
        return pure(epsilon)

    def release(self, question: Question, facts: Facts, epsilon: float, delta: float, noise: Noise) -> Release:
        """Return possible values of the metric, and N0 as a fact. See `Mechanism.release`."""
        require_answerable(self, question.metric, epsilon, delta)
        if math.isinf(epsilon):
            return exactly(question.gaps())

        def buy(n0: int, centred: NDArray[np.float64], n: int, known: bool) -> NoisyCounts:
            about = laplace_scales(centred.size, epsilon, size_known=known)
            step = step_for(about.sums, magnitude=n)
            scales = laplace_scales(centred.size, epsilon, size_known=known, steps=ROUNDING_STEPS * step)
            # N0 is whole: its own grid is the integers.
            size = None if known else float(noise.laplace(np.array([float(n0)]), scales.size, 1.0)[0])
            sums = noise.laplace(centred, scales.sums, step)
            return NoisyCounts(size, Laplace(scales.size), sums, Laplace(scales.sums), step)

        return answer(question, facts, buy, shrinks=self.shrinks, gaussian=False)


def answer(question: Question, facts: Facts, buy: Buy, *, shrinks: bool, gaussian: bool) -> Release:
    """Answer a batch from noisy counts.

    Parameters
    ----------
    question, facts
        As for `Mechanism.release`.
    buy
        Adds the noise; called once for each stratum, since one person is in one of them only.
    shrinks, gaussian
        Whether answers move towards no gap, and the law of the noise.
    """
    metric = find_metric(question.metric)
    exact = question.records.group_sums(question.metric, question.predictions)
    values = list(part_values(question.metric, question.predictions, question.records.labels))
    bought, estimates = dict[str, NDArray[np.float64]](), dict[int, GroupSums]()
    # A ratio of two noisy sums has no ends that are simple to find.
    has_interval, intervals = not metric.binary, list[Ends]()
    missed = (1 - LEVEL - _SIZE_MISSED * len(metric.strata)) / len(metric.parts)
    for label in metric.strata:
        inside = [i for i, part in enumerate(metric.parts) if part.label == label]
        n0, n = int(exact[inside[0]].n0), int(np.count_nonzero(values[inside[0]][0]))
        name = size_fact(label)
        noisy = buy(n0, np.concatenate([exact[i].sum0 - n0 / 2 for i in inside]), n, name in facts)
        if noisy.size is not None:
            # N0 is whole, and so is how far the noise may have moved it; later batches need both.
            moved = math.ceil(noise_reach(noisy.size_law, 1 - _SIZE_MISSED))
            bought[name] = np.array([np.clip(np.rint(noisy.size), 1, n - 1), moved])
        size, reach = (float(number) for number in (facts[name] if noisy.size is None else bought[name]))
        first, last = int(max(1.0, size - reach)), int(min(n - 1.0, size + reach))
        centred_reach = noise_reach(noisy.law, 1 - missed) + noisy.step
        for i, centred in zip(inside, np.split(noisy.sums, len(inside)), strict=True):
            members, of_all = values[i]
            total = sums_over(members, of_all)
            people = of_all if members.all() else np.compress(members, of_all, axis=1)
            least, most = possible_sums(people, first, last)
            if has_interval:
                sizes = np.arange(first, last + 1.0)
                intervals.append(possible_gaps(metric, n, total, sizes, (least, most), centred, centred_reach))
            if shrinks:
                totals = Totals(n, total, people.var(axis=1))
                centred = shrunk_sums(centred, size, totals, noisy.law.scale, gaussian=gaussian)
            at = int(size) - first
            sum0 = np.clip(centred + size / 2, least[:, at], most[:, at])
            estimates[i] = GroupSums(sum1=total - sum0, sum0=sum0, n1=n - size, n0=size)
    parts = _consistent(metric, [estimates[i] for i in range(len(metric.parts))])
    low, high = _combined(metric, intervals) if has_interval else (None, None)
    return Release(gaps(question.metric, parts), bought, low, high)


def possible_sums(values: NDArray[np.float64], first: int, last: int) -> Ends:
    """Return each model's least and largest sum over k people, for each k from first to last.

    Parameters
    ----------
    values
        Shape (m, n).
    first, last
        At least 1, and below n.

    Returns
    -------
    Ends
        Shape (m, last - first + 1) each. The order of addition may cost the last bits.
    """
    ordered = np.sort(values, axis=1)

    def sums(of: NDArray[np.float64]) -> NDArray[np.float64]:
        fewest = of[:, :first].sum(axis=1, keepdims=True)
        return np.cumsum(np.concatenate((fewest, of[:, first:last]), axis=1), axis=1)

    return sums(ordered), sums(ordered[:, ::-1])


def possible_gaps(
    metric: Metric,
    n: int,
    totals: NDArray[np.float64],
    sizes: NDArray[np.float64],
    sums: Ends,
    centred: NDArray[np.float64],
    reach: float,
) -> Ends:
    """Return the least and the largest gap of one part, or ratio, that fits what was released.

    Parameters
    ----------
    metric
        What is asked for.
    n, totals
        The people in the stratum, and the totals of their values, shape (m,).
    sizes
        The possible N0, ascending.
    sums
        What so many people can add up to, see `possible_sums`.
    centred, reach
        The noisy centred sums, shape (m,), and how far from them the exact ones may be.
    """
    ends = list[NDArray[np.float64]]()
    for end in (centred - reach, centred + reach):
        sum0 = np.clip(end[:, np.newaxis] + sizes / 2, *sums)
        # The order of addition may cost the last bits, and what is left of a total be below 0.
        mean0, mean1 = sum0 / sizes, np.maximum(totals[:, np.newaxis] - sum0, 0.0) / (n - sizes)
        if metric.bounded:
            ends.append(mean1 - mean0)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                ends.append(mean0 / mean1)
    # For each N0 a gap falls as sum0 grows, and a ratio rises.
    upper, lower = ends if metric.bounded else ends[::-1]
    return lower.min(axis=1) - _LAST_BITS, upper.max(axis=1) + _LAST_BITS


def _combined(metric: Metric, parts: list[Ends]) -> Ends:
    """Make the metric's intervals out of those of its parts' gaps."""
    if not metric.absolute:
        (only,) = parts
        return only
    if len(parts) == 1:
        # As wide as before the sign came off: what lies below 0 is cut off where it is told, and till then tells how
        # wide the noise is.
        ((low, high),) = parts
        middle, half = np.abs(low + high) / 2, (high - low) / 2
        return middle - half, middle + half
    lows, highs = zip(*(_absolute(*part) for part in parts), strict=True)
    add = np.add if metric.name == "eodds_sum" else np.maximum
    return add.reduce(lows), add.reduce(highs)


def _absolute(low: NDArray[np.float64], high: NDArray[np.float64]) -> Ends:
    return np.maximum(np.maximum(low, -high), 0.0), np.maximum(np.abs(low), np.abs(high))


def _consistent(metric: Metric, parts: list[GroupSums]) -> list[GroupSums]:
    """Make estimates fit together: no more hits than positives, and no ratio to nobody."""
    if not metric.bounded:
        return [
            GroupSums(np.maximum(part.sum1, _LEAST_SUM), np.maximum(part.sum0, _LEAST_SUM), part.n1, part.n0)
            for part in parts
        ]
    if not metric.binary:
        return parts
    hits, positives = parts
    all_hits, all_positives = hits.sum0 + hits.sum1, positives.sum0 + positives.sum1
    # In both groups: hits0 <= positives0, and all_hits - hits0 <= all_positives - positives0.
    low = np.maximum(0.0, positives.sum0 - (all_positives - all_hits))
    hits0 = np.clip(hits.sum0, low, np.maximum(low, np.minimum(positives.sum0, all_hits)))
    return [GroupSums(all_hits - hits0, hits0, hits.n1, hits.n0), positives]


def size_fact(label: int | None) -> str:
    """Name the fact of a stratum that holds N0 with noise, and how far from it N0 may be."""
    return "n0" if label is None else f"n0 of y={label}"
