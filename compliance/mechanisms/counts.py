"""Laplace noise on counts and sums instead of on the metric: every metric, ratios included, is post-processing.

The mathematics is `fairwall.laws.counts`. What a batch adds up over the disadvantaged people is released with noise,
and so is how many they are, which is bought with an account's first batch and known from then on. Everything else is
computed from these and from what who asks knows: the values of all people, and hence their totals.

So are the intervals, `compliance.intervals.counts`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.intervals.counts import (
    CentredSums,
    combined,
    level_of_parts,
    likely_gaps,
    likely_values,
    possible_gaps,
    possible_sums,
)
from compliance.intervals.interval import Ends, noise_reach
from compliance.mechanisms.mechanism import Facts, Guarantee, Question, Release
from compliance.mechanisms.promise import Noisy
from compliance.noise.sampling import ROUNDING_STEPS, Noise, step_for
from compliance.records.metrics import GroupSums, gaps, sums_over
from fairwall.laws.batch import Stratum
from fairwall.laws.counts import Totals, laplace_scales, shrunk_sums
from fairwall.laws.cube import CubeNoise
from fairwall.laws.metric import Metric, find_metric
from fairwall.laws.noise import Gaussian, Laplace, Law

_MISSED = 0.001
"""How often N0, or a sum, may lie outside what is looked at."""

_SIZES = 15
"""How many of the possible N0 an interval looks at, evenly spaced, each for those around it."""

_LEAST_SUM = 0.5
"""Sums below half a person are taken for that in a ratio, which stays finite."""


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """What a stratum releases.

    Parameters
    ----------
    size : float or None
        N0 with noise; None where it was bought before.
    size_law : Law
        Of N0's noise.
    sums, law, step : ndarray of float64, Law, float
        The centred sums with noise, its law, and their grid.
    centres, units : ndarray of float64 or float
        What was taken off each value before it was added up, and the unit of `law` and `step`: a number, or shape (k,).
    expected : callable or None
        From N0 as released to what the centred sums are taken for, shape (k,); None for what they are with noise.
    """

    size: float | None
    size_law: Law
    sums: NDArray[np.float64]
    law: Law
    step: float
    centres: NDArray[np.float64] | float = 0.5
    units: NDArray[np.float64] | float = 1.0
    expected: Callable[[float], NDArray[np.float64]] | None = None


@dataclass(frozen=True, eq=False)
class Asked:
    """What is bought of a stratum. Secret.

    Parameters
    ----------
    stratum : Stratum
        Which. Public.
    n0, sums : int, ndarray of float64
        N0, and the sums over a=0, shape (k,).
    known : bool
        Whether N0 was bought before.
    """

    stratum: Stratum
    n0: int
    sums: NDArray[np.float64]
    known: bool

    @property
    def n(self) -> int:
        """The people in the stratum."""
        return self.stratum.people


Buy = Callable[[Asked], NoisyCounts]
"""Adds noise."""


@dataclass(frozen=True)
class CountsMechanism(Noisy):
    """Adds Laplace noise to N0 and to the centred sums.

    Parameters
    ----------
    shrinks : bool
        Whether answers move towards no gap where the noise hides them, `fairwall.laws.counts.shrunk_sums`.
    """

    shrinks: bool = False
    name: str = "counts"
    title: str = "noisy counts"
    guarantee: Guarantee = "pure"

    def noisy(self, question: Question, facts: Facts, epsilon: float, delta: float, noise: Noise) -> Release:  # noqa: ARG002
        """Return possible values of the metric, and N0 as a fact. See `Noisy.noisy`."""

        def buy(asked: Asked) -> NoisyCounts:
            k, known = asked.sums.size, asked.known
            about = laplace_scales(k, epsilon, size_known=known)
            step = step_for(about.sums, magnitude=asked.n)
            scales = laplace_scales(k, epsilon, size_known=known, steps=ROUNDING_STEPS * step)
            # N0 is whole: its own grid is the integers.
            size = None if known else float(noise.laplace(np.array([float(asked.n0)]), scales.size, 1.0)[0])
            sums = noise.laplace(asked.sums - asked.n0 / 2, scales.sums, step)
            return NoisyCounts(size, Laplace(scales.size), sums, Laplace(scales.sums), step)

        return answer(question, facts, buy, shrinks=self.shrinks, gaussian=False)


def answer(question: Question, facts: Facts, buy: Buy, *, shrinks: bool, gaussian: bool) -> Release:
    """Answer a batch from noisy counts.

    Parameters
    ----------
    question, facts : Question, Facts
        As for `Mechanism.release`.
    buy : Buy
        Adds the noise; called once for each stratum, since one person is in one of them only.
    shrinks, gaussian : bool
        Whether answers move towards no gap, and the law of the noise.
    """
    metric = find_metric(question.metric)
    exact = question.records.group_sums(question.metric, question.predictions)
    bought, estimates, fewest = dict[str, NDArray[np.float64]](), dict[int, GroupSums](), question.records.minimum_group
    intervals = list[Ends]()
    for stratum in question.asked.strata:
        inside, members, name = stratum.parts, stratum.members, size_fact(stratum.label)
        sums = np.concatenate([exact[i].sum0 for i in inside])
        asked = Asked(stratum, int(exact[inside[0]].n0), sums, known=name in facts)
        noisy, n = buy(asked), asked.n
        if noisy.size is not None:
            bought[name] = as_fact(noisy.size, noisy.size_law, n)
        size, size_law = from_fact(facts[name] if noisy.size is None else bought[name])
        size = min(max(size, fewest), n - fewest)  # which is public
        reach = math.ceil(noise_reach(size_law, 1 - _MISSED))
        first, last = int(max(fewest, size - reach)), int(min(n - fewest, size + reach))
        every = np.arange(first, last + 1.0)
        sizes, weights = _thinned(every, size, size_law)
        reaches = (noise_reach(noisy.law, 1 - _MISSED) + noisy.step) * noisy.units
        taken = noisy.sums if noisy.expected is None else noisy.expected(size)
        of_sums = [
            np.broadcast_to(of, np.shape(noisy.sums)) for of in (noisy.sums, reaches, noisy.centres, noisy.units, taken)
        ]
        of_parts = (np.split(of, len(inside)) for of in (stratum.values, *of_sums))
        told, of_all_people = list[CentredSums](), list[NDArray[np.float64]]()
        for i, of_all, centred, off, centres, units, nearest in zip(inside, *of_parts, strict=True):
            total = sums_over(members, of_all)
            people = of_all if members.all() else np.compress(members, of_all, axis=1)
            least, most = possible_sums(people, first, last)
            told.append(CentredSums(centred, centres, units, noisy.law, noisy.step))
            of_all_people.append(total)
            if not metric.binary:
                possible = possible_gaps(metric, n, total, every, (least, most), centred, off, centres)
                level = level_of_parts(metric)
                intervals.append(likely_gaps(metric, n, total, sizes, weights, told[-1], possible, level))
            if shrinks:
                totals = Totals(n, total, people.var(axis=1))
                nearest = shrunk_sums(nearest, size, totals, noisy.law.scale, gaussian=gaussian)
            at = int(size) - first
            sum0 = np.clip(nearest + size * centres, least[:, at], most[:, at])
            estimates[i] = GroupSums(sum1=total - sum0, sum0=sum0, n1=n - size, n0=size)
        if metric.binary:

            def value(parts: list[GroupSums]) -> NDArray[np.float64]:
                return gaps(metric.name, consistent(metric, parts))

            intervals.append(likely_values(of_all_people, n, sizes, weights, told, value))
    parts = consistent(metric, [estimates[i] for i in range(len(metric.parts))])
    return Release(gaps(question.metric, parts), bought, *combined(metric, intervals))


def as_fact(noisy: float, law: Law, n: int) -> NDArray[np.float64]:
    """Make N0 with noise a fact: a possible N0, the scale of its noise, and its law's kind.

    0 is Laplace noise, 1 Gaussian noise, and 1 + d that of one of a cube's d sides.
    """
    kind = 1 + law.sides if isinstance(law, CubeNoise) else int(isinstance(law, Gaussian))
    return np.array([np.clip(np.rint(noisy), 1, n - 1), law.scale, float(kind)])


def from_fact(fact: NDArray[np.float64]) -> tuple[float, Laplace | Gaussian | CubeNoise]:
    """Read N0 with noise, and its noise's law, from a fact."""
    size, scale, kind = fact.tolist()
    if kind > 1:
        return size, CubeNoise(scale, int(kind) - 1)
    return size, (Gaussian if kind else Laplace)(scale)


def _thinned(sizes: NDArray[np.float64], size: float, law: Law) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Say how likely each possible N0 is, of many evenly spaced ones."""
    logs = law.log_density(sizes - size)
    weights = np.exp(logs - logs.max())
    groups = [each for each in np.array_split(np.arange(sizes.size), min(_SIZES, sizes.size)) if weights[each].any()]
    together = np.array([float(weights[each].sum()) for each in groups])
    middles = np.array([float(weights[each] @ sizes[each]) for each in groups]) / together
    return middles, together / together.sum()


def consistent(metric: Metric, parts: list[GroupSums]) -> list[GroupSums]:
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
