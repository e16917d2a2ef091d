"""A planned batch, and the distribution of one stratum's released gap under each kind of noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from compliance.mechanisms.noise_on_gaps import Bounding
from compliance.noise.sampling import GAUSSIAN_FINENESS, ROUNDING_STEPS, step_for
from compliance.records.people import STRATUM_MIN
from fairwall.arrays import Floats, Ints
from fairwall.laws.choice.prediction import SHRUNK
from fairwall.laws.mechanisms.calibration import conceal_laplace_beta, metric_range, truncated_scale
from fairwall.laws.mechanisms.table import MECHANISM_LAWS, MechanismLaw, NoiseInputs
from fairwall.laws.metrics.metric import Metric, find_metric
from fairwall.laws.metrics.sensitivity import LabelGroupCounts, Sensitivities, sensitivities
from fairwall.laws.noise.cauchy import tune
from fairwall.laws.noise.count_noise import expected_in_batches, gaussian_scales, laplace_scales
from fairwall.laws.noise.distributions import Cauchy, Gaussian, Laplace, NoiseDistribution
from fairwall.laws.noise.gaussian import gaussian_multiplier, gridded_multiplier
from fairwall.laws.noise.randomized_response import response_estimates
from sim.planning import PlanError
from sim.planning.worst import Array


@dataclass(frozen=True)
class PlannedBatch:
    """A batch, the first that its account buys; epsilon and delta are the whole batch's.

    ``metric`` and ``mechanism`` are keys of `fairwall.laws.metrics.metric.METRICS` and
    `compliance.mechanisms.MECHANISMS`, the latter followed by `SHRUNK` where answers are shrunk towards 0. ``counts``
    are secret. ``queries`` is m, the number of models. ``reveal_max`` is the limit by which ``recommended`` chooses, 1
    for none.
    """

    metric: str
    counts: LabelGroupCounts
    queries: int
    epsilon: float
    delta: float
    mechanism: str
    bounding: Bounding
    reveal_max: float = 1.0

    @property
    def kind(self) -> Metric:
        """The metric's public description."""
        return find_metric(self.metric)

    @property
    def law(self) -> MechanismLaw:
        """The mechanism's public description."""
        return MECHANISM_LAWS[self.mechanism.removesuffix(SHRUNK)]

    @property
    def strata(self) -> tuple[tuple[int, int], ...]:
        """Disadvantaged and advantaged people, (n0, n1), of each of the metric's strata."""
        return tuple(self.counts.groups(label) for label in self.kind.strata)

    @property
    def people(self) -> int:
        """Number of people whom the metric covers."""
        return sum(sum(groups) for groups in self.strata)

    @property
    def exposed(self) -> int:
        """Number of people for whom a limit on attacks holds: `compliance.records.people.Records.exposed`."""
        return len(self.strata) * min(map(sum, self.strata))

    @property
    def auditable(self) -> bool:
        """Whether compliance would audit these people: see `compliance.records.people.Records`."""
        return all(min(groups) >= 1 and sum(groups) >= STRATUM_MIN for groups in self.strata)

    def sensitivities(self, beta: float | None = None) -> Sensitivities:
        """Return the sensitivities to which mechanisms calibrate noise."""
        counts = self.strata[0] if len(self.strata) == 1 else self.counts
        return sensitivities(self.metric, counts, beta)


_GAPS = 401
_JUST = 1e-6


@dataclass(frozen=True)
class AddedNoise:
    """The distribution of an answer that is the gap plus noise.

    ``noise`` is that before any bounding; ``low`` and ``high`` are the metric's range. Answers are ``bounded`` if they
    are kept in it at all, ``truncated`` if that is by drawing noise again.

    With noise Z of a known law the answer is r = f + Z for the true gap f, and P(|r - f| <= F) = P(|Z| <= F), whatever
    f. Clamped to the metric's range [low, high] it never moves away from f, and an answer cannot be too high where f +
    F >= high, nor too low where f - F <= low:

        P(|r - f| <= F) = (1 if f + F >= high else P(Z <= F)) - (0 if f - F <= low else P(Z < -F)).

    So clamping helps near the ends alone, unless F is half of the range or more. Truncated noise has the law of f + Z
    given that it lies in the range. The least of either over f is the promise. The grid, of at most 2^-20 of the
    noise's scale, is neglected.
    """

    noise: NoiseDistribution
    low: float
    high: float
    bounded: bool
    truncated: bool

    def probabilities(self, within: float, gaps: Floats) -> Floats:
        """Return P(abs(answer - gap) <= within) for each true gap, in the shape of the gaps."""
        if self.noise.scale == 0:
            return np.ones(gaps.shape)
        if not self.bounded:
            return np.full(gaps.shape, float(np.diff(cumulative(self.noise, np.array([-within, within])))[0]))
        most, least = np.minimum(within, self.high - gaps), np.maximum(-within, self.low - gaps)
        if self.truncated:
            inside = cumulative(self.noise, self.high - gaps) - cumulative(self.noise, self.low - gaps)
            return (cumulative(self.noise, most) - cumulative(self.noise, least)) / inside
        above = np.where(gaps + within >= self.high, 1.0, cumulative(self.noise, most))
        return above - np.where(gaps - within <= self.low, 0.0, cumulative(self.noise, least))

    def worst(self, within: float) -> tuple[float, float]:
        """Return the least of `probabilities` over all true gaps in the metric's range, and a gap that attains it."""
        gaps = np.linspace(self.low, self.high, _GAPS)
        # Just beyond the points where an end of the range is within reach, clear of the last bits.
        just = np.array([within, -within]) + np.array([[_JUST], [-_JUST]])
        ends = np.concatenate([self.low + just.ravel(), self.high + just.ravel()])
        gaps = np.sort(np.concatenate([gaps, ends[(ends >= self.low) & (ends <= self.high)]]))
        probabilities = self.probabilities(within, gaps)
        # Among equal probabilities, the gap nearest to the range's middle.
        equal = np.flatnonzero(probabilities <= probabilities.min() + 1e-12)
        at = equal[np.argmin(np.abs(gaps[equal] - (self.low + self.high) / 2))]
        return float(probabilities[at]), float(gaps[at])


def added_noise(batch: PlannedBatch) -> AddedNoise:
    """Return the law of a mechanism with independent noise, at compliance's scale; PlanError if it is not known."""
    low, high = metric_range(batch.metric)
    truncated = batch.bounding == "truncate"
    noise = _truncated(batch, high - low) if truncated else ADDED.get(batch.mechanism, _by_law)(batch)
    return AddedNoise(noise, low, high, batch.bounding != "none", truncated)


def cumulative(law: NoiseDistribution, x: Floats) -> Floats:
    """Return P(Z <= x) for noise Z of this law, in x's shape; its scale is above 0."""
    from scipy.special import ndtr

    x = x / law.scale
    found: Floats
    if isinstance(law, Laplace):
        tail = np.exp(-np.abs(x)) / 2
        found = np.where(x < 0, tail, 1 - tail)
    elif isinstance(law, Gaussian):
        found = ndtr(x)
    elif isinstance(law, Cauchy):
        found = np.arctan(x) / math.pi + 0.5
    else:
        raise PlanError(f"--mechanism: {type(law).__name__} noise is not planned")
    return found


def _by_law(batch: PlannedBatch) -> NoiseDistribution:
    if not batch.kind.of_means:
        raise PlanError(f"--mechanism: the noise of {batch.mechanism} on metric {batch.metric} is not known")
    ((n0, n1),) = batch.strata
    noise = batch.law.error(NoiseInputs(batch.metric, n0, n1, batch.queries, batch.epsilon, batch.delta))
    assert noise is not None, "what is independent adds noise"
    return noise


def _laplace(batch: PlannedBatch) -> NoiseDistribution:
    change, unit = batch.sensitivities().overall, batch.queries / batch.epsilon
    return Laplace(unit * (change + ROUNDING_STEPS * step_for(unit * change)))


def _truncated(batch: PlannedBatch, width: float) -> NoiseDistribution:
    change = batch.sensitivities().overall
    step = min(step_for(batch.queries * change / batch.epsilon), 2.0**-20)
    steps = int(width / step)
    distance = min(math.ceil(change / step) + 1, steps) if change else 0
    return Laplace(truncated_scale(distance, steps, step, batch.epsilon / batch.queries))


def _gaussian(batch: PlannedBatch) -> NoiseDistribution:
    change, root = batch.sensitivities().overall, math.sqrt(batch.queries)
    about = gaussian_multiplier(batch.epsilon, batch.delta) * root * change
    step = step_for(about, GAUSSIAN_FINENESS)
    multiplier = gridded_multiplier(batch.epsilon, batch.delta, batch.queries, about / step)
    return Gaussian(multiplier * root * (change + ROUNDING_STEPS * step))


def _conceal(batch: PlannedBatch) -> NoiseDistribution:
    beta = batch.epsilon / (6 * batch.queries)
    return Cauchy(_smooth(batch, beta) / beta)


def _conceal_laplace(batch: PlannedBatch) -> NoiseDistribution:
    beta = conceal_laplace_beta(batch.queries, batch.epsilon, batch.delta)
    return Laplace(2 * batch.queries / batch.epsilon * _smooth(batch, beta))


def _cauchy(batch: PlannedBatch) -> NoiseDistribution:
    tuning = tune(batch.metric, batch.people, batch.queries, batch.epsilon)
    return Cauchy(_smooth(batch, tuning.beta) / tuning.alpha)


def _smooth(batch: PlannedBatch, beta: float) -> float:
    smooth = batch.sensitivities(beta).smooth
    assert smooth is not None
    return smooth


ADDED = {
    "laplace": _laplace,
    "gaussian": _gaussian,
    "conceal": _conceal,
    "conceal-laplace": _conceal_laplace,
    "cauchy": _cauchy,
}
"""The noise of the mechanisms that add noise to gaps of every metric; that of others follows from their laws."""


_REACH = 21.0
"""Truncation of the noise on N0, in scales; noise beyond has a probability below 1e-9."""

_ONE_BY_ONE = 240
_BLOCKS = 120

_TOLERANCE = 1e-9
"""Tolerance at the ends of an interval, so that the last bits of a clipped answer do not decide."""


@dataclass(frozen=True)
class CountedNoise:
    """The noise of a stratum's counts: on N0, before rounding, and on each centred sum."""

    size: NoiseDistribution
    sums: NoiseDistribution


def counted_noise(batch: PlannedBatch) -> CountedNoise:
    """Return the noise that compliance adds to the counts of a stratum, for `counts` and `counts-gaussian`."""
    sums, epsilon = batch.queries, batch.epsilon
    people = max(sum(groups) for groups in batch.strata)
    if batch.law.needs_delta:
        about = gaussian_scales(sums, gaussian_multiplier(epsilon, batch.delta))
        steps = [step_for(scale, GAUSSIAN_FINENESS, people) for scale in (about.size, about.sums)]
        fewest = min(about.size / steps[0], about.sums / steps[1])
        multiplier = gridded_multiplier(epsilon, batch.delta, sums + 1, fewest)
        scales = gaussian_scales(sums, multiplier, steps=ROUNDING_STEPS * steps[1])
        return CountedNoise(Gaussian(scales.size), Gaussian(scales.sums))
    step = step_for(laplace_scales(sums, epsilon).sums, magnitude=people)
    scales = laplace_scales(sums, epsilon, steps=ROUNDING_STEPS * step)
    return CountedNoise(Laplace(scales.size), Laplace(scales.sums))


@dataclass(frozen=True, eq=False)
class CountedGap:
    """The distribution of a stratum's released gap, by the noise on its counts; one draw needs ``numbers`` answers.

    ``sizes`` and ``chances`` are the possible released values of N0 and their probabilities.

    `compliance.mechanisms.counts` releases N0 as a whole number s in 1 .. n-1 and the centred sum with noise Z. The sum
    over the disadvantaged becomes x = clip(S0 + (s - N0)/2 + Z, a, b), where decisions allow a = max(0, T - (n-s)) to b
    = min(T, s), and T = S0 + S1 is the public total. The released gap

        g' = (T - x)/(n - s) - x/s = T/(n-s) - x n/(s (n-s))

    falls as x grows. Given s, g' lies in [low, high] where x lies between two numbers, whose probability is that of Z
    between two others, or of being clipped. The law of g' is the mixture over s.
    """

    n0: int
    n1: int
    noise: CountedNoise
    sizes: Array
    chances: Array
    numbers: int = 1

    @classmethod
    def of(cls, n0: int, n1: int, noise: CountedNoise) -> CountedGap:
        """Return the law with the possible released values of N0: whole numbers, or blocks if there are very many."""
        n, reach = n0 + n1, math.ceil(_REACH * noise.size.scale) + 1
        low, high = max(1, n0 - reach), min(n - 1, n0 + reach)
        last = np.arange(low, high + 1)
        if len(last) > _ONE_BY_ONE:
            # Close together near the ends, where 1/s and 1/(n-s) change most.
            near = np.unique(np.rint(np.geomspace(1, high - low, _BLOCKS)).astype(np.int64))
            even = np.rint(np.linspace(low, high, _BLOCKS)).astype(np.int64)
            last = np.unique(np.concatenate([[low, high - 1, high], even, low + near, high - near]))
        first = np.concatenate([[low], last[:-1] + 1])
        below = _at_most(noise.size, last[:-1] - n0)
        chances = np.diff(np.concatenate([[0.0], below, [1.0]]))
        return cls(n0, n1, noise, (first + last) / 2, chances)

    def inside(self, low: Array, high: Array, sum0: Array, sum1: Array) -> Array:
        """Return P(low <= released gap <= high), or 0 if low > high, for the groups' sums of ones; all shapes (k,)."""
        s, n = self.sizes, self.n0 + self.n1
        total = (sum0 + sum1)[:, np.newaxis]
        least, most = np.maximum(0.0, total - (n - s)), np.minimum(total, s)
        centre = sum0[:, np.newaxis] + (s - self.n0) / 2
        per_gap = s * (n - s) / n
        level = total / (n - s)
        top = (level - (low[:, np.newaxis] - _TOLERANCE)) * per_gap
        bottom = (level - (high[:, np.newaxis] + _TOLERANCE)) * per_gap
        up_to = np.where(top >= most, 1.0, np.where(top < least, 0.0, cumulative(self.noise.sums, top - centre)))
        below = np.where(
            bottom <= least, 0.0, np.where(bottom > most, 1.0, cumulative(self.noise.sums, bottom - centre))
        )
        return np.asarray(np.maximum(up_to - below, 0.0) @ self.chances)

    def draw(self, sum0: float, sum1: float, generator: np.random.Generator, size: int) -> Array:
        """Draw released gaps, shape (size,)."""
        n, total = self.n0 + self.n1, sum0 + sum1
        s = self.draw_sizes(generator, size)
        noisy = sum0 + (s - self.n0) / 2 + self.noise.sums.sample(generator, size)
        x = np.clip(noisy, np.maximum(0.0, total - (n - s)), np.minimum(total, s))
        return np.asarray((total - x) / (n - s) - x / s)

    def draw_sizes(self, generator: np.random.Generator, size: int) -> Array:
        """Draw released values of N0, shape (size,)."""
        if isinstance(self.noise.size, Laplace):
            up, down = generator.geometric(-math.expm1(-1 / self.noise.size.scale), (2, size))
            moved = (up - down).astype(np.float64)
        else:
            moved = np.rint(self.noise.size.sample(generator, size))
        return np.asarray(np.clip(self.n0 + moved, 1, self.n0 + self.n1 - 1))


def _at_most(law: NoiseDistribution, moved: Ints) -> Array:
    """Return P(N0 moves by at most ``moved``), for discrete Laplace or a rounded Gaussian."""
    if isinstance(law, Laplace):
        # P(D > d) = q^(d+1) / (1+q) for d >= 0, q = exp(-1/scale); the rest by symmetry.
        rate, far = 1 / law.scale, np.where(moved >= 0, moved + 1, -moved)
        tail = np.exp(-rate * far) / (1 + math.exp(-rate))
        return np.where(moved >= 0, 1 - tail, tail)
    return cumulative(law, np.asarray(moved + 0.5))


_DEVIATIONS = 7.0
_BINOMIAL_BLOCKS = 100


@dataclass(frozen=True)
class RespondedGap:
    """The distribution of a stratum's released gap; ``probability`` is that of turning one person's group over.

    Each person's group is turned over with probability p. Of the S1 advantaged people with a decision of 1 and the S0
    disadvantaged ones, V = S1 - Bin(S1, p) + Bin(S0, p) are advantaged afterwards, and likewise U of those with a
    decision of 0, independently. The released gap is a function of V and U
    (`fairwall.laws.noise.randomized_response.response_estimates`), so its distribution is a sum over pairs, with very
    many values of a count grouped into blocks.
    """

    n0: int
    n1: int
    probability: float
    numbers: int = 1

    def inside(self, low: Array, high: Array, sum0: Array, sum1: Array) -> Array:
        """Return P(low <= released gap <= high), ends included; see `sim.planning.answer_laws.CountedGap.inside`."""
        found = np.empty(len(sum0))
        for i, (zero, one) in enumerate(zip(sum0.tolist(), sum1.tolist(), strict=True)):
            gaps, up_to = _law(self, zero, one)
            first = np.searchsorted(gaps, low[i] - _TOLERANCE, side="left")
            last = np.searchsorted(gaps, high[i] + _TOLERANCE, side="right")
            found[i] = up_to[last] - up_to[min(first, last)]
        return found

    def draw(self, sum0: float, sum1: float, generator: np.random.Generator, size: int) -> Array:
        """Draw released gaps, shape (size,)."""
        others = self.n1 - sum1, self.n0 - sum0
        out1, in1, out0, in0 = (
            generator.binomial(int(many), self.probability, size).astype(np.float64) for many in (sum1, sum0, *others)
        )
        return self.released(sum1 - out1 + in1, others[0] - out0 + in0, sum0 + sum1)

    def released(self, v: Array, u: Array, total: float) -> Array:
        """Return the gap released if v advantaged people have a 1 and u a 0, in the shape of v and u."""
        n = self.n0 + self.n1
        n1, sum1 = response_estimates(v + u, v, n, np.asarray(total), self.probability)
        return np.asarray(np.clip(sum1 / n1 - (total - sum1) / (n - n1), -1, 1))


@lru_cache(maxsize=256)
def _law(gap: RespondedGap, zero: float, one: float) -> tuple[Array, Array]:
    """Return the sorted released gaps, and the probability of all before each and of all, shape (gaps + 1,)."""
    v, v_chances = _kept(one, zero, gap.probability)
    u, u_chances = _kept(gap.n1 - one, gap.n0 - zero, gap.probability)
    gaps = gap.released(np.repeat(v, u.size), np.tile(u, v.size), zero + one)
    order = np.argsort(gaps)
    return gaps[order], np.concatenate([[0.0], np.cumsum(np.outer(v_chances, u_chances).ravel()[order])])


def _kept(inside: float, outside: float, p: float) -> tuple[Array, Array]:
    """Return the law of inside - Bin(inside, p) + Bin(outside, p): values and probabilities, shape (values,) each."""
    out, out_chances = _binomial(int(inside), p)
    in_, in_chances = _binomial(int(outside), p)
    chances = np.convolve(out_chances[::-1], in_chances)
    values = np.arange(len(chances)) + inside - out[-1] + in_[0]
    if len(values) > _BINOMIAL_BLOCKS:
        starts = np.unique(np.rint(np.linspace(0, len(values), _BINOMIAL_BLOCKS + 1)[:-1]).astype(np.int64))
        sums = np.add.reduceat(chances, starts)
        values = np.add.reduceat(values * chances, starts) / np.where(sums > 0, sums, 1.0)
        chances = sums
    return values, chances / chances.sum()


def _binomial(n: int, p: float) -> tuple[Array, Array]:
    """Return the values of Bin(n, p) with a non-negligible probability, and their probabilities."""
    from scipy.special import gammaln, xlog1py, xlogy

    reach = _DEVIATIONS * math.sqrt(n * p * (1 - p)) + 20
    k = np.arange(max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach)) + 1.0)
    log = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + xlog1py(n - k, -p)
    return k, np.exp(log)


@dataclass(frozen=True)
class ShrunkGap:
    """The distribution of a stratum's released gap, for one of m models; ``counted`` is the one before shrinking.

    The batch's other models have the same sums if ``others_alike``, else no gap.

    How far an answer moves depends on all answers of its batch (`fairwall.laws.noise.count_noise`), so its distribution
    depends on the other models too. Two cases are drawn: the other models equal the judged one, or they have no gap at
    all, which moves the judged one farthest.
    """

    counted: CountedGap
    queries: int
    others_alike: bool

    @property
    def numbers(self) -> int:
        """Number of answers that one draw needs."""
        return self.queries

    def draw(self, sum0: float, sum1: float, generator: np.random.Generator, size: int) -> Floats:
        """Draw released gaps, shape (size,)."""
        n0, noise = self.counted.n0, self.counted.noise.sums
        n, total, m = n0 + self.counted.n1, sum0 + sum1, self.queries
        sums = np.full(m, sum0 if self.others_alike else total * n0 / n)
        sums[0] = sum0
        sizes = self.counted.draw_sizes(generator, size)
        centred = sums - n0 / 2 + noise.sample(generator, (size, m))
        # As `fairwall.laws.noise.count_noise.shrunk_sums`, for many batches at once.
        rate, widest = total / n, sizes * (n - sizes) / n
        by_chance = (sizes * (rate - 0.5))[:, np.newaxis]
        spread = np.sqrt(rate * (1 - rate) * sizes * (n - sizes) / (n - 1))
        moved = by_chance[:, 0].copy()
        if 0 < rate < 1:
            spreads = np.broadcast_to(spread[:, np.newaxis], centred.shape)
            gaussian = isinstance(noise, Gaussian)
            moved += expected_in_batches(centred - by_chance, spreads, widest, noise.scale, gaussian=gaussian)[:, 0]
        x = np.clip(moved + sizes / 2, np.maximum(0.0, total - (n - sizes)), np.minimum(total, sizes))
        return np.asarray((total - x) / (n - sizes) - x / sizes)
