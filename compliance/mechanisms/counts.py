"""Laplace noise on counts and sums instead of on the metric: every metric, ratios included, is post-processing.

The mathematics is `fairwall.laws.counts`. What a batch adds up over the disadvantaged people is released with noise,
and so is how many they are, which is bought with an account's first batch and known from then on. Everything else is
computed from these and from what who asks knows: the values of all people, and hence their totals.

So are the intervals, `compliance.count_intervals`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.accountant import Loss, pure
from compliance.count_intervals import (
    combined,
    level_of_parts,
    likely_gaps,
    likely_values,
    possible_gaps,
    possible_sums,
)
from compliance.interval import Ends, noise_reach
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
from fairwall.laws.noise import Gaussian, Laplace, Law

_MISSED = 0.001
"""How often N0, or a sum, may lie outside what is looked at."""

_SIZES = 15
"""How many of the possible N0 an interval looks at, evenly spaced, each for those around it."""

_OLD_FACT = 2
"""How many numbers a fact about N0 had before it told the law of the noise."""

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
    intervals = list[Ends]()
    for label in metric.strata:
        inside = [i for i, part in enumerate(metric.parts) if part.label == label]
        n0, n = int(exact[inside[0]].n0), int(np.count_nonzero(values[inside[0]][0]))
        name = size_fact(label)
        noisy = buy(n0, np.concatenate([exact[i].sum0 - n0 / 2 for i in inside]), n, name in facts)
        if noisy.size is not None:
            bought[name] = _size_of(noisy.size, noisy.size_law, n)
        size, size_law = _size_in(facts[name] if noisy.size is None else bought[name])
        reach = math.ceil(noise_reach(size_law, 1 - _MISSED))
        first, last = int(max(1.0, size - reach)), int(min(n - 1.0, size + reach))
        sizes, weights = _thinned(np.arange(first, last + 1.0), size, size_law)
        centred_reach = noise_reach(noisy.law, 1 - _MISSED) + noisy.step
        for i, centred in zip(inside, np.split(noisy.sums, len(inside)), strict=True):
            members, of_all = values[i]
            total = sums_over(members, of_all)
            people = of_all if members.all() else np.compress(members, of_all, axis=1)
            least, most = possible_sums(people, first, last)
            if not metric.binary:
                every = np.arange(first, last + 1.0)
                possible = possible_gaps(metric, n, total, every, (least, most), centred, centred_reach)
                level = level_of_parts(metric)
                intervals.append(likely_gaps(metric, n, total, sizes, weights, centred, noisy.law, possible, level))
            if shrinks:
                totals = Totals(n, total, people.var(axis=1))
                centred = shrunk_sums(centred, size, totals, noisy.law.scale, gaussian=gaussian)
            at = int(size) - first
            sum0 = np.clip(centred + size / 2, least[:, at], most[:, at])
            estimates[i] = GroupSums(sum1=total - sum0, sum0=sum0, n1=n - size, n0=size)
        if metric.binary:
            both, all_of = np.split(noisy.sums, len(inside)), [sums_over(*values[i]) for i in inside]

            def value(parts: list[GroupSums]) -> NDArray[np.float64]:
                return gaps(metric.name, _consistent(metric, parts))

            intervals.append(likely_values(all_of, n, sizes, weights, both, noisy.law, value))
    parts = _consistent(metric, [estimates[i] for i in range(len(metric.parts))])
    return Release(gaps(question.metric, parts), bought, *combined(metric, intervals))


def _size_of(noisy: float, law: Law, n: int) -> NDArray[np.float64]:
    """Make N0 with noise a fact: a possible N0, the scale of its noise, and whether that is Gaussian."""
    return np.array([np.clip(np.rint(noisy), 1, n - 1), law.scale, float(isinstance(law, Gaussian))])


def _size_in(fact: NDArray[np.float64]) -> tuple[float, Law]:
    """Read N0 with noise, and its noise's law, from a fact."""
    if fact.size == _OLD_FACT:  # the second is what the noise had moved N0 by but for 1 in 80 times
        return float(fact[0]), Laplace(float(fact[1]) / math.log(80))
    return float(fact[0]), (Gaussian if fact[2] else Laplace)(float(fact[1]))


def _thinned(sizes: NDArray[np.float64], size: float, law: Law) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Say how likely each possible N0 is, of many evenly spaced ones."""
    logs = law.log_density(sizes - size)
    weights = np.exp(logs - logs.max())
    groups = [each for each in np.array_split(np.arange(sizes.size), min(_SIZES, sizes.size)) if weights[each].any()]
    together = np.array([float(weights[each].sum()) for each in groups])
    middles = np.array([float(weights[each] @ sizes[each]) for each in groups]) / together
    return middles, together / together.sum()


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
