"""Laplace noise on counts and sums instead of on the metric: every metric, ratios included, is post-processing.

The mathematics is `fairwall.laws.noise.count_noise`. Released with noise are a batch's sums over the disadvantaged
people, and their number, which is bought with an account's first batch and known from then on. Everything else is
computed from these and from what the developer knows: the values of all people, and hence their totals.

Intervals are `compliance.intervals.counts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from compliance.intervals.counts import CentredSums, Common, intervals, possible_gaps
from compliance.intervals.interval import within_range
from compliance.intervals.reach import Additive, Size
from compliance.ledger.accountant import Loss
from compliance.mechanisms.mechanism import (
    BatchQuestion,
    Facts,
    Guarantee,
    MechanismAnswer,
    around,
    within_ends,
)
from compliance.mechanisms.noise_on_gaps import gaussian_cost
from compliance.mechanisms.row_defaults import Noisy, require_budget
from compliance.noise.sampling import GAUSSIAN_FINENESS, ROUNDING_STEPS, Noise, step_for
from compliance.records.metrics import MetricSums, gaps
from compliance.records.people import Records
from compliance.records.sums import StratumSums, TableSums
from fairwall.arrays import Floats
from fairwall.laws.choice.public_batch import Stratum
from fairwall.laws.mechanisms.calibration import metric_range
from fairwall.laws.metrics.metric import Metric, find_metric
from fairwall.laws.metrics.values import sums_within
from fairwall.laws.noise.count_noise import CountScales, Totals, gaussian_scales, laplace_scales, shrunk_sums
from fairwall.laws.noise.distributions import Gaussian, Laplace
from fairwall.laws.noise.gaussian import gaussian_multiplier, gridded_multiplier
from fairwall.laws.noise.linf_ball import CubeNoise

LEAST_SUM = 0.5
"""Least sum in a ratio, in people: smaller ones are raised to it, so that the ratio stays finite."""


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """A stratum's release.

    Parameters
    ----------
    size : N0 with noise; None if it was bought before.
    shared : whether N0's noise is a coordinate of the sums' cube, or of that of the common sums.
    sums, law, rounded : the centred sums with noise, its law, and the largest change of each by rounding: a number, or
        shape (k,).
    centres, units : what was subtracted from each value before summing, and the unit of `law`: a number, or shape (k,).
    expected : maps the released N0 to estimates of the centred sums, shape (k,); None takes the noisy sums.
    totals : if the developer does not see the predictions, their sums over everybody with noise of the same law, shape
        (k,).
    """

    size: float | None
    size_law: Additive
    sums: Floats
    law: Additive
    rounded: Floats | float
    centres: Floats | float = 0.5
    units: Floats | float = 1.0
    expected: Callable[[float], Floats] | None = None
    shared: bool = False
    common: Common | None = None
    totals: Floats | None = None


@dataclass(frozen=True, eq=False)
class CountPurchase:
    """The exact N0 and sums of a stratum to which noise is added. Secret.

    `stratum`: public, unless it holds sums of predictions that the developer does not see. `sums`: over a=0, shape
    (k,). `known`: whether N0 was bought before.
    """

    stratum: Stratum
    n0: int
    sums: Floats
    known: bool

    @property
    def n(self) -> int:
        """Number of people in the stratum."""
        return self.stratum.people

    @property
    def is_hidden(self) -> bool:
        """Whether the predictions are hidden from the developer."""
        return isinstance(self.stratum, StratumSums)


Buy = Callable[[CountPurchase], NoisyCounts]
"""Adds noise to a stratum's exact numbers."""


@dataclass(frozen=True)
class CountsMechanism(Noisy):
    """A mechanism of Laplace noise on N0 and on the centred sums.

    `shrinks`: whether answers move towards no gap where the noise hides them,
    `fairwall.laws.noise.count_noise.shrunk_sums`.
    """

    shrinks: bool = False
    name: str = "counts"
    title: str = "noisy counts"
    guarantee: Guarantee = "pure"

    def noisy(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return possible values of the metric, and N0 as a fact. See `Noisy.noisy`."""

        def buy(purchase: CountPurchase) -> NoisyCounts:
            k, known = purchase.sums.size, purchase.known
            about = laplace_scales(k, epsilon, size_known=known)
            step = step_for(about.sums, magnitude=purchase.n)
            scales = laplace_scales(k, epsilon, size_known=known, steps=ROUNDING_STEPS * step)
            # N0 is whole: its own grid is the integers.
            size = None if known else float(noise.laplace(np.array([float(purchase.n0)]), scales.size, 1.0)[0])
            sums = noise.laplace(purchase.sums - purchase.n0 / 2, scales.sums, step)
            totals = noise.laplace(purchase.stratum.totals, scales.sums, step) if purchase.is_hidden else None
            return NoisyCounts(size, Laplace(scales.size), sums, Laplace(scales.sums), step, totals=totals)

        return answer(question, facts, buy, shrinks=self.shrinks, gaussian=False)


def answer(question: BatchQuestion, facts: Facts, buy: Buy, *, shrinks: bool, gaussian: bool) -> MechanismAnswer:
    """Return the answers to a batch from noisy counts; `question` and `facts` as for `Mechanism.release`.

    `buy`: adds the noise; called once for each stratum, since each person is in one stratum only. `shrinks`: whether
    answers move towards no gap.
    """
    metric = find_metric(question.metric)
    exact = question.sums()
    bought, estimates, fewest = (
        dict[str, Floats](),
        dict[int, MetricSums](),
        question.records.minimum_group,
    )
    sizes, told = list[Size](), list[CentredSums]()
    for stratum in question.asked.strata:
        inside, name = stratum.parts, size_fact(stratum.label)
        sums = np.concatenate([exact[i].sum0 for i in inside])
        asked = CountPurchase(stratum, int(exact[inside[0]].n0), sums, known=name in facts)
        noisy, n = buy(asked), asked.n
        if noisy.size is not None:
            bought[name] = as_fact(noisy.size, noisy.size_law, n)
        released = size_of(facts[name] if noisy.size is None else bought[name], fewest, n, shared=noisy.shared)
        size, (least_size, most_size) = float(np.rint(released.value)), released.range(fewest, n)
        first, last = math.floor(least_size), math.ceil(most_size)
        taken = noisy.sums if noisy.expected is None else noisy.expected(size)
        if noisy.totals is None:
            total, possible_sums, besides = stratum.totals, stratum.possible_sums(first, last), noisy.common
        else:
            total = np.clip(noisy.totals, 0.0, n)
            possible_sums = sums_within(total, (np.zeros_like(total), np.ones_like(total)), n, first, last)
            besides = _of_totals(metric, noisy, last / n)
        of_sums = [
            np.broadcast_to(of, np.shape(noisy.sums))
            for of in (total, noisy.sums, noisy.centres, noisy.units, noisy.rounded, taken)
        ]
        of_parts = [np.split(of, len(inside)) for of in (*possible_sums, *of_sums)]
        shared = [None] * len(inside) if besides is None else besides.split(len(inside))
        for part, (i, common) in enumerate(zip(inside, shared, strict=True)):
            least, most, total, centred, centres, units, rounded, nearest = (of[part] for of in of_parts)
            if noisy.totals is None:
                possible = possible_gaps(metric, n, total, np.arange(first, last + 1.0), (least, most))
            else:
                possible = (
                    np.full(total.shape, -1.0 if metric.bounded else 0.0),
                    np.full(total.shape, metric_range(metric.name)[1]),
                )
            sizes.append(released)
            told.append(CentredSums(n, total, centred, centres, units, noisy.law, rounded, possible, common))
            if shrinks:
                totals = Totals(n, total, np.split(stratum.variances, len(inside))[part])
                nearest = shrunk_sums(nearest, size, totals, noisy.law.scale, gaussian=gaussian)
            at = int(size) - first
            sum0 = np.clip(nearest + size * centres, least[:, at], most[:, at])
            estimates[i] = MetricSums(sum1=total - sum0, sum0=sum0, n1=n - size, n0=size)
    parts = consistent(metric, [estimates[i] for i in range(len(metric.parts))])
    values = gaps(question.metric, parts)
    if metric.binary and isinstance(question.asked.strata[0], StratumSums):
        return MechanismAnswer(values, bought)  # of two totals with noise nobody knows an interval
    ends = intervals(metric, sizes, fewest, told)
    values = within_ends(values, within_range(*ends, metric.name))
    return MechanismAnswer(values, bought, *around(values, ends))


def _of_totals(metric: Metric, noisy: NoisyCounts, share: float) -> Common:
    """Return the noise on totals as common noise on a sum, where N0 is at most `share` of the people.

    With T + e2 in place of T the derivation in `compliance.intervals.inversion` has L - (N/n) e2 in place of L. Of a
    ratio it has L - f e2, f at most 1.
    """
    assert isinstance(noisy.law, Laplace | CubeNoise), "of Gaussian noise no totals are made"
    law = noisy.law if isinstance(noisy.law, CubeNoise) else CubeNoise(noisy.law.scale, 1)
    weights = np.broadcast_to(noisy.units, noisy.sums.shape)[:, np.newaxis] * (share if metric.bounded else 1.0)
    return Common(law, weights, apart=True)


def as_fact(noisy: float, law: Additive, n: int) -> Floats:
    """Return N0 with noise as a fact: a number from 1 to n - 1, the scale of its noise, and its law's kind.

    0 is Laplace noise, 1 Gaussian noise, 1 + d that of one of a cube's d sides, and -1 - d that of a staircase's, whose
    sizes are 1 apart, the amount by which one person moves N0.
    """
    kind = int(isinstance(law, Gaussian))
    if isinstance(law, CubeNoise):
        kind = -1 - law.sides if law.stair else 1 + law.sides
    return np.array([np.clip(noisy, 1, n - 1), law.scale, float(kind)])


def size_of(fact: Floats, fewest: int, n: int, *, shared: bool = False) -> Size:
    """Return N0 with noise, moved to a value that is possible with groups of at least `fewest` people.

    Only a cube's noise is drawn between the whole numbers; old ledgers hold it rounded.
    """
    size, scale, kind = fact.tolist()
    law: Additive = (Gaussian if kind == 1 else Laplace)(scale)
    if abs(kind) > 1:
        law = CubeNoise(scale, int(abs(kind)) - 1, 1 / scale if kind < 0 else 0.0)
    return Size(min(max(size, fewest), n - fewest), law, whole=not shared and size == round(size), shared=shared)


def consistent(metric: Metric, parts: list[MetricSums]) -> list[MetricSums]:
    """Return consistent estimates: no more hits than positives, and no ratio to nobody."""
    if not metric.bounded:
        return [
            MetricSums(np.maximum(part.sum1, LEAST_SUM), np.maximum(part.sum0, LEAST_SUM), part.n1, part.n0)
            for part in parts
        ]
    if not metric.binary:
        return parts
    hits, positives = parts
    all_hits, all_positives = hits.sum0 + hits.sum1, positives.sum0 + positives.sum1
    # In both groups: hits0 <= positives0, and all_hits - hits0 <= all_positives - positives0.
    low = np.maximum(0.0, positives.sum0 - (all_positives - all_hits))
    hits0 = np.clip(hits.sum0, low, np.maximum(low, np.minimum(positives.sum0, all_hits)))
    return [MetricSums(all_hits - hits0, hits0, hits.n1, hits.n0), positives]


def size_fact(label: int | None) -> str:
    """Return the name of the fact that holds a stratum's N0 with noise, and the scale of that noise."""
    return "n0" if label is None else f"n0 of y={label}"


@dataclass(frozen=True)
class CountsGaussian(Noisy):
    """A mechanism of Gaussian noise on N0 and the centred sums. See `compliance.mechanisms.counts.CountsMechanism`."""

    shrinks: bool = False
    name: str = "counts-gaussian"
    title: str = "noisy counts (Gaussian)"
    guarantee: Guarantee = "approximate"

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return (epsilon, delta), and the multiplier for rules that use it."""
        require_budget(epsilon, delta)
        return gaussian_cost(epsilon, delta)

    def noisy(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return possible values of the metric, and N0 as a fact. See `Noisy.noisy`."""

        def buy(purchase: CountPurchase) -> NoisyCounts:
            k, known = purchase.sums.size, purchase.known
            about = gaussian_scales(k, gaussian_multiplier(epsilon, delta), size_known=known)
            steps = [step_for(scale, GAUSSIAN_FINENESS, purchase.n) for scale in (about.size, about.sums)]
            # N0 is whole: on a grid of at most 1 it is not rounded, which its scale has no allowance for.
            steps[0] = min(steps[0], 1.0)
            multiplier = gridded_multiplier(epsilon, delta, k + 1, _fewest_steps(about, steps))
            scales = gaussian_scales(k, multiplier, size_known=known, steps=ROUNDING_STEPS * steps[1])
            size = None if known else float(noise.gaussian(np.array([float(purchase.n0)]), scales.size, steps[0])[0])
            sums = noise.gaussian(purchase.sums - purchase.n0 / 2, scales.sums, steps[1])
            return NoisyCounts(size, Gaussian(scales.size), sums, Gaussian(scales.sums), steps[1])

        return answer(question, facts, buy, shrinks=self.shrinks, gaussian=True)


def _fewest_steps(scales: CountScales, steps: list[float]) -> float:
    return min(scale / step for scale, step in zip((scales.size, scales.sums), steps, strict=True) if scale)


@dataclass(frozen=True)
class SummedBatch:
    """The sums of a batch by stratum. Secret, except the numbers of people."""

    strata: tuple[StratumSums, ...]


@dataclass(frozen=True, eq=False)
class UnseenPredictions:
    """Predictions that the developer does not see: `sums` computes their sums, once the answer is paid for."""

    models: int
    sums: Callable[[], TableSums] = field(repr=False)


@dataclass(frozen=True, eq=False)
class SummedQuestion(BatchQuestion):
    """One batch whose predictions were summed in place; the records have no order, and are only counted."""

    unseen: UnseenPredictions = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, metric: str, unseen: UnseenPredictions, records: Records) -> SummedQuestion:
        """Return a question about predictions that nobody sees."""
        return cls(metric, np.zeros((unseen.models, 0)), records, unseen=replace(unseen, sums=cache(unseen.sums)))

    # A cached property would hold a lock of all batches meanwhile, up to Python 3.11.
    @property
    def asked(self) -> Any:
        """The batch's sums, which mechanisms read."""
        return SummedBatch(self.unseen.sums().strata(self.metric))

    def sums(self) -> tuple[MetricSums, ...]:
        """Return sums over each group, for each of the metric's parts. Secret."""
        found: dict[int, MetricSums] = {}
        for stratum in self.asked.strata:
            of_parts = (np.split(each, len(stratum.parts)) for each in (stratum.totals, stratum.sum0))
            for i, totals, sum0 in zip(stratum.parts, *of_parts, strict=True):
                found[i] = MetricSums(totals - sum0, sum0, stratum.people - stratum.n0, stratum.n0)
        return tuple(found[i] for i in range(len(found)))
