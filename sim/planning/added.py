"""Gaps with added noise, and perhaps bounded: the probability that an answer is near its gap, in closed form.

With noise Z of a known law the answer is r = f + Z for the true gap f, and P(|r - f| <= F) = P(|Z| <= F), whatever f.
Clamped to the metric's range [low, high] it never moves away from f, and an answer cannot be too high where f + F >=
high, nor too low where f - F <= low:

    P(|r - f| <= F) = (1 if f + F >= high else P(Z <= F)) - (0 if f - F <= low else P(Z < -F)).

So clamping helps near the ends alone, unless F is half of the range or more. Truncated noise has the law of f + Z given
that it lies in the range. The least of either over f is the promise. The grid, of at most 2^-20 of the noise's scale,
is neglected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.noise.sampling import GAUSSIAN_FINENESS, ROUNDING_STEPS, step_for
from fairwall.laws import mechanisms
from fairwall.laws.bounding import metric_range, truncated_scale
from fairwall.laws.cauchy import tune
from fairwall.laws.conceal_laplace import conceal_laplace_beta
from fairwall.laws.gaussian import gaussian_multiplier, gridded_multiplier
from fairwall.laws.noise import Cauchy, Gaussian, Laplace, NoiseDistribution
from sim.planning.batch import PlannedBatch
from sim.planning.errors import PlanError

_GAPS = 401
_JUST = 1e-6


@dataclass(frozen=True)
class AddedNoise:
    """The distribution of an answer that is the gap plus noise.

    ``noise`` is that before any bounding; ``low`` and ``high`` are the metric's range. Answers are ``bounded`` if they
    are kept in it at all, ``truncated`` if that is by drawing noise again.
    """

    noise: NoiseDistribution
    low: float
    high: float
    bounded: bool
    truncated: bool

    def probabilities(self, within: float, gaps: NDArray[np.float64]) -> NDArray[np.float64]:
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


def cumulative(law: NoiseDistribution, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(Z <= x) for noise Z of this law, in x's shape; its scale is above 0."""
    from scipy.special import ndtr

    x = x / law.scale
    found: NDArray[np.float64]
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
    noise = batch.law.error(mechanisms.NoiseInputs(batch.metric, n0, n1, batch.queries, batch.epsilon, batch.delta))
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
