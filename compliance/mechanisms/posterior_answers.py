"""Answers and intervals of a batch from noisy sums it shares, by the joint posterior (`laws.choice.posterior`).

**Intervals.** u, the sum over the disadvantaged beyond their share of the total, has the distance from the answer that
`Posterior.within` gives: a mixture of the prior and of the sums without it. N0 has its own error: a gap is -u n / (N0
N1), so that an error d of N0 counts like an error u (1/N0 - 1/N1) d of u. At each end u is taken as it is there, not as
in the answer: where N0 is small, gaps may be much larger than answered, and hardly smaller. Gaps and ratios are
monotone in u, and so their ends are at the ends of u. For predictive parity, a difference of ratios of two sums, the
derivative at the answer combines both. Where a sum is as large or as small as N0 allows, N0's own error moves that end
as well.

The correlation of predictions with the protected attribute among people whom no sum tells apart is known by the prior
alone: intervals include some correlation of the leading direction there. Models of one batch agree, and so do their
errors: in a single batch few gaps may lie in their intervals.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from compliance.intervals.interval import Ends
from compliance.intervals.inversion import combined, level_of_parts
from compliance.mechanisms.counts import LEAST_SUM, consistent
from compliance.mechanisms.mechanism import BatchQuestion, Joint, within_ends
from compliance.records.metrics import MetricSums, gaps
from fairwall.arrays import Floats
from fairwall.laws.choice.posterior import NoisyObservations, Posterior, posterior
from fairwall.laws.choice.public_batch import Stratum
from fairwall.laws.metrics.metric import Metric, find_metric

_WIDER_SUM = 1.15

_TURNS = 3
"""Iterations that find an interval's end, each with N0's error as at the last one."""

_FEW = 20
"""People of a group below which its least and its largest possible size are looked at each."""

_EXCESS_MAX = 20.0
"""Largest excess kurtosis counted: noise with more is 0 in at least 19 of 20 cases."""


@dataclass(frozen=True, eq=False)
class StratumKnowledge:
    """Released knowledge of a stratum.

    `size`, `size_variance`: N0 as released, and the variance of its noise. `seen`: the noisy sums. `excess`: excess
    kurtosis of all noise on N0 together; 0 for normal noise.
    """

    size: float
    size_variance: float
    seen: NoisyObservations
    excess: float = 0.0


Look = Callable[[Stratum], StratumKnowledge]
"""Maps a stratum to its released knowledge."""


@dataclass(frozen=True, eq=False)
class _Known:
    """A stratum with its released knowledge, N0 moved to a possible size, and the posterior of u.

    `fewest` is the least number of people in each group, and `models` the number of models in the batch.
    """

    stratum: Stratum
    told: StratumKnowledge
    fewest: int
    models: int

    @property
    def people(self) -> int:
        return self.stratum.people

    @cached_property
    def size(self) -> float:
        return float(np.clip(self.told.size, self.fewest, self.people - self.fewest))

    @cached_property
    def found(self) -> Posterior:
        return posterior(self.stratum.gram, self.told.seen, self.size / self.people, self.people).near()

    def by_size(self, u: Floats) -> Floats:
        """Return the change of each u that equals the effect of one standard deviation of N0's noise."""
        one_person: Floats = u * (1 / self.size - 1 / (self.people - self.size))
        return one_person * math.sqrt(self.told.size_variance)

    def ends(self, level: float, wider: float) -> Floats:
        """Return the upper and the lower ends of u, shape (2, m)."""
        ends = mean = self.found.mean
        for _ in range(_TURNS):
            ends = mean + wider * np.array([[1.0], [-1.0]]) * self.found.within(level, self.by_size(ends) ** 2)
        return ends

    def sums(self, u: Floats, larger: float = 0.0) -> list[MetricSums]:
        """Return possible sums of each part, for values in [0, 1], where either group may be larger by `larger`.

        Where all or none are in one group, the larger group allows sums beyond those possible for N0.
        """
        n, size, means = self.people, self.size, self.stratum.means
        up, down = min(larger, n - self.fewest - size), min(larger, size - self.fewest)
        least = np.maximum(-means * size / (n - size) * up, n * means - (n - size) - down)
        most = np.minimum(n * means + means * (n - size) / size * down, size + up)
        sum0 = np.clip(size * means + u, least, most)
        return [
            MetricSums(total - part, part, n1=n - size, n0=size)
            for part, total in zip(*(np.split(each, len(u) // self.models) for each in (sum0, n * means)), strict=True)
        ]

    def draws(self, count: int, wider: float, generator: np.random.Generator) -> list[list[MetricSums]]:
        """Draw the sums of each part from their posterior, `count` times."""
        moved = self.found.draws(count, generator) - self.found.mean
        moved += self.by_size(self.found.mean) * generator.standard_normal((count, 1))
        return [self.sums(self.found.mean + wider * one) for one in moved]


def answers(question: BatchQuestion, look: Look) -> tuple[Floats, Ends, Joint]:
    """Return answers and likely intervals of a batch, shape (m,) each, and a sampler of their joint posterior.

    `look`: called once for each stratum of the metric.
    """
    metric = find_metric(question.metric)
    strata = [
        _Known(each, look(each), question.records.minimum_group, question.queries) for each in question.asked.strata
    ]
    ends = list[Ends]()
    for known in strata:
        of_sizes = [_ends(metric, each) for each in _sizes(metric, known)]
        ends += [
            (np.min([low for low, _ in parts], axis=0), np.max([high for _, high in parts], axis=0))
            for parts in zip(*of_sizes, strict=True)
        ]

    def told(of_strata: Iterable[list[MetricSums]]) -> Floats:
        sums = dict[int, MetricSums]()
        for known, of_parts in zip(strata, of_strata, strict=True):
            sums.update(zip(known.stratum.parts, of_parts, strict=True))
        return gaps(question.metric, consistent(metric, [sums[i] for i in range(len(metric.parts))]))

    def joint(count: int, generator: np.random.Generator) -> Floats:
        drawn = (known.draws(count, _wider(metric, known.told.excess), generator) for known in strata)
        return np.array([told(of_strata) for of_strata in zip(*drawn, strict=True)])

    values = told(known.sums(known.found.mean) for known in strata)
    likely = _of_sum(ends) if metric.joined == "sum" else combined(metric, ends)
    return within_ends(values, likely), likely, joint


def _sizes(metric: Metric, known: _Known) -> list[_Known]:
    """Return the stratum with each N0 to look at: where a group may be of few people, its least and its largest too."""
    reach = _normal_reach(metric) * math.sqrt(known.told.size_variance)
    sizes = np.clip(known.size + reach * np.array([-1, 1]), known.fewest, known.people - known.fewest)
    if not reach or min(sizes[0], known.people - sizes[1]) >= _FEW:
        return [known]
    return [known, *(replace(known, told=replace(known.told, size=float(size), size_variance=0.0)) for size in sizes)]


def _ends(metric: Metric, known: _Known) -> list[Ends]:
    """Return the ends of each part of a metric that the stratum has."""
    wider = _wider(metric, known.told.excess)
    if metric.binary:
        return [_ends_of_ratios(metric, known, wider)]
    larger = wider * _normal_reach(metric) * math.sqrt(known.told.size_variance)
    lower, upper = (known.sums(end, larger) for end in known.ends(level_of_parts(metric), wider))
    ends = []
    for below, above in zip(lower, upper, strict=True):
        both = [gaps(_signed(metric), consistent(metric, [part])) for part in (below, above)]
        low, high = np.minimum(*both), np.maximum(*both)
        if not metric.bounded:
            # An estimate is no ratio to nobody; an end may be one, and of nobody.
            low = np.where(np.minimum(below.sum0, above.sum0) <= LEAST_SUM, 0.0, low)
            high = np.where(np.minimum(below.sum1, above.sum1) <= LEAST_SUM, np.inf, high)
        ends.append((low, high))
    return ends


def _of_sum(parts: list[Ends]) -> Ends:
    """Return intervals of a sum of absolute gaps: as wide as independent errors add up, and a little wider.

    Where both gaps are 0, so that signs are lost, the sum of two normal errors of one size exceeds that in 4.8%.
    """
    half = _WIDER_SUM * np.sqrt(sum(((high - low) / 2) ** 2 for low, high in parts))
    middle = sum(np.abs(high + low) / 2 for low, high in parts)
    return middle - half, middle + half


def _ends_of_ratios(metric: Metric, known: _Known, wider: float) -> Ends:
    """Return the ends of a metric of two sums of one stratum, by its derivatives."""
    m, mean = known.models, known.found.mean
    middle = gaps(metric.name, consistent(metric, known.sums(mean)))
    slopes = []
    for part in range(2):
        moved = np.zeros_like(mean)
        moved[part * m : (part + 1) * m] = 0.5
        sides = [gaps(metric.name, consistent(metric, known.sums(mean + side * moved))) for side in (1, -1)]
        slopes.append(np.diag(sides[0] - sides[1]))
    by_both = np.hstack(slopes)
    by_size = known.by_size(mean) ** 2
    reach = wider * known.found.within(level_of_parts(metric), by_both**2 @ by_size, by_both)
    low, high = middle - reach, middle + reach
    if min(known.size, known.people - known.size) < _FEW:
        # A derivative says little of shares of few people: each sum at its own ends.
        ends = known.ends(level_of_parts(metric), wider)
        for one, other in itertools.product(ends, repeat=2):
            found = gaps(metric.name, consistent(metric, known.sums(np.concatenate([one[:m], other[m:]]))))
            low, high = np.fmin(low, found), np.fmax(high, found)
    return low, high


def _wider(metric: Metric, excess: float) -> float:
    """Return the factor on a normal interval's width for heavier tails (Cornish and Fisher's expansion).

    Whole-number noise of little variance is 0 mostly, and 1 more often than under a normal distribution.
    """
    return 1 + (_normal_reach(metric) ** 2 - 3) * min(excess, _EXCESS_MAX) / 24


def _normal_reach(metric: Metric) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + level_of_parts(metric)) / 2))


def _signed(metric: Metric) -> str:
    return "sp" if metric.bounded else metric.name
