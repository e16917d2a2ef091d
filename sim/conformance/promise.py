r"""The noise that a deployment promises, and the mapping of answers to numbers that are uniform if it keeps that.

An answer is the exact gap g plus noise of a distribution F, clipped to the metric's range if the policy says so, and
rounded to some precision. Whoever knows g maps it to u = F(answer - g), uniform on [0, 1] whatever was requested. Where
several noises give the same answer, by rounding or clipping, u is drawn between the F of the nearest and of the
farthest of them, and is uniform again. So noise of every distribution, scale, metric and batch becomes one kind of
number, and can be tested together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fairwall.arrays import Floats
from fairwall.laws.choice.choose import Allowance, best_for, best_for_search
from fairwall.laws.choice.prediction import SHRUNK
from fairwall.laws.choice.public_batch import AskedBatch
from fairwall.laws.mechanisms.calibration import metric_range, truncated_scale
from fairwall.laws.mechanisms.table import MECHANISM_LAWS, NoiseInputs
from fairwall.laws.metrics.answer_precision import Precision, spacing
from fairwall.laws.metrics.group_size_range import Shares
from fairwall.laws.metrics.metric import find_metric, stratum
from fairwall.laws.metrics.sensitivity import global_sensitivity
from fairwall.laws.noise.distributions import Cauchy, Gaussian, Laplace
from fairwall.laws.privacy.exposure import Limit
from sim.conformance.target import DescribedDeployment, KnownPeople

Array = Floats
Known: TypeAlias = Laplace | Gaussian | Cauchy

_STEP = 2.0**-20
"""Finest grid of a truncated answer."""


@dataclass(frozen=True)
class Promise:
    """The distribution of a batch's answers: noise of a law, clipped to a range or, if `truncated`, drawn inside it."""

    law: Known
    range: tuple[float, float] = (-math.inf, math.inf)
    truncated: bool = False
    precision: Precision = "float64"

    def uniform(self, answers: Array, exact: Array, rng: np.random.Generator) -> Array:
        """Map answers, shape (m,), to numbers that are uniform on [0, 1]."""
        least, most = self.range
        if self.truncated:
            low, high = cdf(least - exact, self.law), cdf(most - exact, self.law)
            found: Array = (cdf(answers - exact, self.law) - low) / (high - low)
            return found
        half = spacing(answers, self.precision) / 2 if self.precision != "float64" else np.zeros(answers.shape)
        down = np.where(answers - half <= least, -math.inf, answers - half)
        up = np.where(answers + half >= most, math.inf, answers + half)
        low, high = cdf(down - exact, self.law), cdf(up - exact, self.law)
        spread: Array = low + (high - low) * rng.random(answers.shape)
        return spread


def cdf(noise: Array, law: Known) -> Array:
    """Return a law's distribution function at each number; infinities are allowed."""
    x = noise / law.scale
    if isinstance(law, Cauchy):
        return np.asarray(0.5 + np.arctan(x) / math.pi)
    if isinstance(law, Gaussian):
        from scipy.special import ndtr

        return np.asarray(ndtr(x))
    return np.where(x < 0, 0.5 * np.exp(-np.abs(x)), 1 - 0.5 * np.exp(-np.abs(x)))


def quantile(law: Known, missed: float) -> float:
    """Return the size of noise, of either sign, that is exceeded with a probability of `missed`, in (0, 1)."""
    if isinstance(law, Cauchy):
        return law.scale / math.tan(math.pi * missed / 2)
    if isinstance(law, Gaussian):
        from scipy.special import ndtri

        return -law.scale * float(ndtri(missed / 2))
    return -law.scale * math.log(missed)


def shares_of(about: DescribedDeployment) -> Shares:
    """Return the possible sizes of groups, by a policy with nothing but a minimum."""
    return Shares(minimum_group=about.minimum_group, by_policy=True)


def allowance_of(about: DescribedDeployment, epsilon: float) -> Allowance:
    """Return what one batch may spend and reveal."""
    return Allowance(epsilon, about.batch_delta, Limit(about.reveal_max, shares_of(about)))


def answered_by(
    about: DescribedDeployment, people: KnownPeople, metric: str, predictions: Array, epsilon: float, *, searched: bool
) -> str:
    """Return the mechanism that answers a charged batch; if there is a choice, public numbers alone make it."""
    told = MECHANISM_LAWS.get(about.mechanism)
    if told is None or told.noise_on != "any":
        return about.mechanism
    batch = AskedBatch(metric, predictions, people.labels, about.metrics)
    found = (best_for_search if searched else best_for)(batch, allowance_of(about, epsilon))
    return found.name.removesuffix(SHRUNK)


def promise_of(
    about: DescribedDeployment, people: KnownPeople, metric: str, queries: int, epsilon: float
) -> Promise | None:
    """Return the promised distribution of a batch, or None unless answers are a gap plus noise of a known law.

    For a mean over blocks it holds for models that predict the same for everybody, whose gap is 0 in each block too; if
    some answers are NaN, it holds for the others.
    """
    found = find_metric(metric)
    told = MECHANISM_LAWS.get(about.mechanism)
    if told is None or told.noise_on not in ("gaps", "blocks") or not found.bounded or len(found.strata) > 1:
        return None
    if told.noise_on == "blocks" and found.absolute:
        return None
    groups = people.protected[stratum(metric, people.labels)]
    n0, n1 = int((groups == 0).sum()), int((groups == 1).sum())
    batch = NoiseInputs(
        metric, n0, n1, queries, epsilon, about.batch_delta, shares=Shares(minimum_group=about.minimum_group)
    )
    law = told.error(batch)
    if not isinstance(law, Laplace | Gaussian | Cauchy):
        return None
    whole = (-math.inf, math.inf) if about.bounding == "none" else metric_range(metric)
    if about.bounding != "truncate":
        return Promise(law, whole, precision=about.precision)
    width = int((whole[1] - whole[0]) / _STEP)
    moves = global_sensitivity(metric, n0 + n1, minimum_group=about.minimum_group)
    distance = min(math.ceil(moves / _STEP), width)
    return Promise(Laplace(truncated_scale(distance, width, _STEP, epsilon / queries)), whole, truncated=True)
