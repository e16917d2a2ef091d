"""Mechanisms that add noise to the gaps themselves, or none, and the bounding of answers to their metric's range.

**Bounding** (Remark 6 of Hamman, Chen, Dutta, FAccT 2023). `fairwall.laws.mechanisms.calibration` has the argument for
each of the three ways. Two of them are a function of the released answer and cost nothing, whatever the mechanism.
Truncation redraws noise until the answer is in range, which costs privacy: it needs noise that is calibrated for it,
and only Laplace noise of a public scale has a proof here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from compliance.ledger.accountant import Loss, LossKind, pure
from compliance.mechanisms.mechanism import (
    BatchQuestion,
    Facts,
    Guarantee,
    Mechanism,
    MechanismAnswer,
    Reusable,
    candidates,
    chosen,
    exactly,
    with_interval,
)
from compliance.mechanisms.row_defaults import ByRecord, Noisy, require_answerable, require_budget
from compliance.noise.sampling import GAUSSIAN_FINENESS, ROUNDING_STEPS, Noise, step_for
from fairwall.arrays import Floats
from fairwall.laws.mechanisms.calibration import conceal_laplace_beta, metric_range, truncated_scale
from fairwall.laws.mechanisms.table import MECHANISM_LAWS
from fairwall.laws.metrics.answer_precision import DECIMALS
from fairwall.laws.metrics.group_size_range import DEFAULT_SHARES, Shares
from fairwall.laws.noise.cauchy import tune
from fairwall.laws.noise.distributions import Gaussian, Laplace
from fairwall.laws.noise.gaussian import gaussian_multiplier, gridded_multiplier


@dataclass(frozen=True)
class Exact(ByRecord):
    """A mechanism of exact answers, at an infinite price. A known-bad subject for privacy tests."""

    name: str = "exact"
    title: str = "exact answers"
    guarantee: Guarantee = "none"

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the gaps."""
        require_budget(epsilon, delta)
        return exactly(question.gaps())


@dataclass(frozen=True)
class Round(ByRecord):
    """A mechanism of rounded gaps, at an infinite price: different answers tell two neighbours apart.

    A known-bad subject for privacy tests.
    """

    name: str = "round"
    title: str = "rounded answers"
    guarantee: Guarantee = "none"

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the rounded gaps, also at an infinite epsilon, which is this mechanism's price."""
        require_budget(epsilon, delta)
        # Adding 0.0 turns -0.0 into 0.0.
        return MechanismAnswer(np.round(question.gaps(), DECIMALS) + 0.0)


@dataclass(frozen=True)
class LaplaceMechanism(Noisy):
    """A mechanism of independent Laplace noise of the public scale m * global sensitivity / epsilon.

    See `fairwall.laws.mechanisms.calibration.laplace_law`. The sensitivity is enlarged by the largest effect of
    rounding to the grid.
    """

    name: str = "laplace"
    title: str = "Laplace"
    guarantee: Guarantee = "pure"

    def noisy(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the gaps with noise. See `Noisy.noisy`."""
        gaps = question.gaps()
        change = question.sensitivities().overall
        step = step_for(question.queries * change / epsilon)
        law = Laplace(question.queries * (change + ROUNDING_STEPS * step) / epsilon)
        return with_interval(noise.laplace(gaps, law.scale, step), law, step)


@dataclass(frozen=True)
class GaussianMechanism(Noisy):
    """A mechanism of independent Gaussian noise on m gaps, whose l2 sensitivity is sqrt(m) times one gap's.

    See `fairwall.laws.noise.gaussian`, also for the cost of the grid.
    """

    name: str = "gaussian"
    title: str = "Gaussian"
    guarantee: Guarantee = "approximate"

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return (epsilon, delta), and the multiplier for rules that use it."""
        require_budget(epsilon, delta)
        return gaussian_cost(epsilon, delta)

    def noisy(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the gaps with noise. See `Noisy.noisy`."""
        gaps = question.gaps()
        change, root = question.sensitivities().overall, math.sqrt(question.queries)
        about = gaussian_multiplier(epsilon, delta) * root * change
        step = step_for(about, GAUSSIAN_FINENESS)
        multiplier = gridded_multiplier(epsilon, delta, question.queries, about / step)
        law = Gaussian(multiplier * root * (change + ROUNDING_STEPS * step))
        return with_interval(noise.gaussian(gaps, law.scale, step), law, step)


def gaussian_cost(epsilon: float, delta: float) -> Loss:
    """Return the loss of the least (epsilon, delta)-private Gaussian noise: epsilon, delta, and its multiplier."""
    if math.isinf(epsilon) or delta == 0:
        return pure(math.inf)
    return Loss(epsilon, delta, LossKind.GAUSSIAN, gaussian_multiplier(epsilon, delta))


_ALLOWANCE = 1 + 2.0**-30
"""Factor on the scale for float64's rounding errors in gaps and scale, which are below 2^-40 of a flip."""


@dataclass(frozen=True)
class CauchyMechanism(Noisy):
    """A mechanism of independent Cauchy noise, calibrated to its exact loss: `fairwall.laws.noise.cauchy`.

    `shares`: public range of group shares for which the noise is tuned.
    """

    shares: Shares = DEFAULT_SHARES
    name: str = "cauchy"
    title: str = "tuned Cauchy"
    guarantee: Guarantee = "pure"

    def noisy(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the gaps with noise. See `Noisy.noisy`."""
        gaps = question.gaps()
        # What the records hold, and nothing assumed: noise counts on it.
        shares = replace(self.shares, minimum_group=question.records.minimum_group)
        tuning = tune(question.metric, question.people(), question.queries, epsilon, shares)
        scale = _ALLOWANCE * question.smooth(tuning.beta) / tuning.alpha
        return MechanismAnswer(noise.cauchy(gaps, scale, step_for(question.smallest_change() / tuning.alpha)))


@dataclass(frozen=True)
class Conceal(Noisy):
    """A mechanism of independent Cauchy noise of scale 6 m S / epsilon: the paper's, with S corrected.

    See `fairwall.laws.mechanisms.calibration.conceal_law`. The scale depends on the secret counts and must never leave
    compliance; the grid does not.
    """

    name: str = "conceal"
    title: str = "Attribute-Conceal"
    guarantee: Guarantee = "pure"

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return epsilon: the promise, not the smaller loss that `calibration.conceal_loss` computes.

        That loss depends on the secret counts, so it is no price.
        """
        require_budget(epsilon, delta)
        return pure(epsilon)

    def noisy(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the gaps with noise. See `Noisy.noisy`."""
        gaps = question.gaps()
        beta = epsilon / (6 * question.queries)
        return MechanismAnswer(
            noise.cauchy(gaps, question.smooth(beta) / beta, step_for(question.smallest_change() / beta))
        )


@dataclass(frozen=True)
class ConcealLaplace(ByRecord):
    """A mechanism of Laplace noise of scale 2 m S / epsilon, epsilon below 1: `conceal_laplace_beta` has the reason."""

    name: str = "conceal-laplace"
    title: str = "Attribute-Conceal (Laplace)"
    guarantee: Guarantee = "approximate"

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the gaps with noise. See `Mechanism.release`."""
        require_answerable(self, question.metric, epsilon, delta)
        beta = conceal_laplace_beta(question.queries, epsilon, delta)
        unit = 2 * question.queries / epsilon
        step = step_for(unit * question.smallest_change())
        # S plus a constant is as smooth as S, and covers a flip together with the rounding.
        scale = unit * (question.smooth(beta) + ROUNDING_STEPS * step)
        return MechanismAnswer(noise.laplace(question.gaps(), scale, step))


Bounding = Literal["none", "clamp", "truncate", "boundary-inflate"]

# How many draws are needed depends on the secret; among so many there is an acceptable one but for once in 3e10 times.
_DRAWS = 64


@dataclass(frozen=True)
class Bounded:
    """A mechanism whose answers lie in the metric's range; made by `bounded`.

    Name, title, price and refusals are the mechanism's; truncation also refuses metrics without a range.
    """

    mechanism: Mechanism
    bounding: Bounding

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return self.mechanism.name

    @property
    def title(self) -> str:
        """The mechanism's title."""
        return self.mechanism.title

    @property
    def guarantee(self) -> Guarantee:
        """The mechanism's guarantee."""
        return self.mechanism.guarantee

    def refuses(self, metric: str, epsilon: float, delta: float) -> str | None:
        """Return the mechanism's refusal, or why the metric cannot be truncated."""
        refusal = self.mechanism.refuses(metric, epsilon, delta)
        if refusal is None and self.bounding == "truncate" and math.isinf(metric_range(metric)[1]):
            return f"metric {metric} has no range to truncate answers to"
        return refusal

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return the mechanism's price."""
        return self.mechanism.cost(epsilon, delta)

    def is_free(self, facts: Facts, epsilon: float, question: BatchQuestion | None = None) -> bool:
        """Return whether the mechanism answers this batch free, from earlier purchases."""
        return isinstance(self.mechanism, Reusable) and self.mechanism.is_free(facts, epsilon, question)

    def chosen(
        self,
        metric: str,
        people: int,
        queries: int,
        epsilon: float,
        delta: float,
        question: BatchQuestion | None = None,
    ) -> Mechanism:
        """Return the mechanism's choice for a batch; this object itself if it truncates, with its own noise."""
        if self.bounding == "truncate":
            return self
        return chosen(self.mechanism, metric, people, queries, epsilon, delta, question)

    def candidates(self, delta: float) -> tuple[Mechanism, ...]:
        """Return the mechanisms that may be chosen at this delta."""
        return candidates(self.mechanism, delta)

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return answers in the metric's range; NaN stays NaN. See `Mechanism.release`."""
        require_answerable(self, question.metric, epsilon, delta)
        if self.bounding == "truncate":
            # Noise that is redrawn is not centred on the gap: no interval.
            return MechanismAnswer(_truncated(question, epsilon, noise))
        released = self.mechanism.release(question, facts, epsilon, delta, noise)
        return replace(released, values=to_range(released.values, question.metric))


def bounded(mechanism: Mechanism, bounding: Bounding) -> Mechanism:
    """Return the mechanism with its answers bounded; ``none`` returns it unchanged.

    ValueError for an unknown bounding, or one without a proof for this mechanism. The text says which has one.
    """
    if bounding not in get_args(Bounding):
        raise ValueError(f"unknown bounding {bounding!r}, choose one of: {', '.join(get_args(Bounding))}")
    if bounding == "none":
        return mechanism
    told = MECHANISM_LAWS[mechanism.name]
    if told.is_choice:
        raise ValueError(f"mechanism {mechanism.name} answers with choices, which have nothing to bound: choose none")
    if bounding == "truncate" and not told.truncates:
        proved = ", ".join(name for name, law in MECHANISM_LAWS.items() if law.truncates)
        raise ValueError(
            f"truncated noise is proved private for mechanism {proved} alone, not {mechanism.name}: choose clamp"
        )
    return Bounded(mechanism, bounding)


def to_range(values: Floats, metric: str) -> Floats:
    """Return answers clipped to the metric's range: ``clamp`` and ``boundary-inflate``."""
    return np.clip(values, *metric_range(metric))


def _truncated(question: BatchQuestion, epsilon: float, noise: Noise) -> Floats:
    """Return answers with truncated Laplace noise that costs epsilon for the batch."""
    gaps = question.gaps()
    if math.isinf(epsilon):
        return gaps
    low, high = metric_range(question.metric)
    sensitivity = question.sensitivities().overall
    # The step is small against the range also where the scale is large: both ends are on the grid.
    step = min(step_for(question.queries * sensitivity / epsilon), 2.0**-20)
    width = int((high - low) / step)
    # Rounding moves two neighbours apart by one step more; the ceiling's own rounding error is below the second one.
    distance = min(math.ceil(sensitivity / step) + 1, width) if sensitivity else 0
    scale = truncated_scale(distance, width, step, epsilon / question.queries)
    return low + truncated_laplace(gaps - low, high - low, scale, step, noise)


def truncated_laplace(values: Floats, width: float, scale: float, step: float, noise: Noise) -> Floats:
    """Return values on the grid with discrete Laplace noise, conditioned on sums between 0 and the width.

    `values`: shape (size,), each between 0 and the width. Secret. `width`: a multiple of the step. `scale`: at least 0;
    0 only rounds. Public. `step`: the grid's step, a power of two.
    """
    truths = noise.laplace(values, 0.0, step)
    if scale == 0:
        return truths
    found = np.full(truths.shape, np.nan)
    while (missing := np.isnan(found)).any():
        # As many draws for each value: one that lies at an end needs more of them, and the time would tell.
        centres = np.repeat(truths[missing], _DRAWS)
        if scale < width:
            drawn = noise.laplace(centres, scale, step)
            fits = (drawn >= 0) & (drawn <= width)
        else:  # nearly flat: most noise would miss the range
            drawn = step * noise.integers(round(width / step) + 1, centres.size).astype(np.float64)
            fits = noise.bernoulli_exp(np.abs(drawn - centres) / scale)
        rows = np.where(fits, drawn, np.nan).reshape(-1, _DRAWS)
        found[missing] = rows[np.arange(len(rows)), np.argmin(np.isnan(rows), axis=1)]
    return found
