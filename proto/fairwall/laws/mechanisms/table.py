"""The public facts of every mechanism, by name: where its noise is, the error of answers, and the privacy loss.

Mechanisms are public (Kerckhoffs). All code that treats mechanisms differently reads why from here: ledgers, intervals,
decoders, privacy audits, plans and the conformance suite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from fairwall.laws.choice.cell_partition import cells_scale
from fairwall.laws.mechanisms.calibration import (
    aggregate_law,
    aggregate_loss,
    block_count,
    conceal_laplace_law,
    conceal_law,
    conceal_loss,
    laplace_law,
    laplace_loss,
    proposed_bound,
    released_law,
)
from fairwall.laws.metrics.answer_precision import DECIMALS, rounding_law
from fairwall.laws.metrics.group_size_range import DEFAULT_SHARES, Shares
from fairwall.laws.metrics.sensitivity import global_sensitivity, local_sensitivity
from fairwall.laws.noise.cauchy import tuned_law, tuned_loss
from fairwall.laws.noise.count_noise import counts_loss, gaussian_scales, laplace_scales
from fairwall.laws.noise.distributions import Gaussian, Laplace, NoiseDistribution
from fairwall.laws.noise.gaussian import gaussian_epsilon, gaussian_multiplier
from fairwall.laws.noise.linf_ball import CubeNoise, cube_loss, cube_scales
from fairwall.laws.noise.randomized_response import response_loss, turning_probability
from fairwall.plugins import Plugin, Registry

RESPONSE_FROM = 5.0
"""Epsilon from which `recommended` is usually randomised response; below, mostly counts."""

CHOICE = Gaussian(0.5)
"""Error distribution of answers that are 0 or 1 where a gap was asked for: they tell next to nothing about the gap."""

_multiplier = lru_cache(maxsize=64)(gaussian_multiplier)


@dataclass(frozen=True)
class NoiseInputs:
    """Inputs of a mechanism's error distribution, for a metric with one part.

    Attributes
    ----------
    n0, n1 : disadvantaged and advantaged people in the metric's stratum, each at least 1. Secret: an attacker assumes
        them.
    queries, epsilon, delta : m, and the whole batch's budget.
    size_known : whether an earlier batch has bought N0, where that is sold separately.
    shares : the group shares for which noise should be small, and g, the least size of both groups; public.
    """

    metric: str
    n0: int
    n1: int
    queries: int
    epsilon: float
    delta: float = 0.0
    size_known: bool = False
    shares: Shares = DEFAULT_SHARES

    @property
    def people(self) -> int:
        """The number of people in the stratum: n."""
        return self.n0 + self.n1

    @property
    def minimum_group(self) -> int:
        """The least size of both groups: g."""
        return self.shares.minimum_group


Noisy: TypeAlias = Literal[
    "nothing", "gaps", "blocks", "sums", "cube", "directions", "cells", "attributes", "choices", "any"
]
"""Quantity to which noise is added.

Each gap; the mean of a gap over blocks of people; N0 and each group sum, by separate noise (``sums``), one draw from a
cube for all (``cube``), or one cube for the sums' common part and another for their residuals (``directions``); the
counts of cells; or people's attributes. Answers of ``choices`` are not near a gap but choices among models, or
verdicts. ``any`` is another mechanism's noise, chosen batch by batch.
"""


@dataclass(frozen=True)
class Interval:
    """The meaning of a mechanism's intervals.

    `noise`: the distribution, Laplace or Gaussian, whose quantiles they use. `is_added`: whether noise is added to the
    metric itself, and the interval is the reach of that noise. `is_posterior`: whether answers and intervals are a
    posterior's, see `compliance.mechanisms.posterior_answers`.
    """

    noise: type[Laplace | Gaussian] = Gaussian
    is_added: bool = False
    is_posterior: bool = False


@dataclass(frozen=True, kw_only=True)
class MechanismLaw:
    """The public facts of one mechanism; those without a default must be given.

    Parameters ---------- noise_on : the quantity to which noise is added. error : from a `NoiseInputs` to the
    distribution of an answer's error, as near as it is known; None for exact answers. counts_on_groups : whether
    noise is smaller the more people both groups are known to have: losses hold for such data
        alone.
    interval : the meaning of its intervals; None if it gives none.
    independent : whether each answer is the gap plus noise distributed as `error`, independent of all else.
    recommendable : whether `recommended` may choose it; compliance then has to know how
        (`compliance.mechanisms.recommended`).
    needs_delta : whether it answers only with a delta above 0.
    epsilon_below : exclusive upper bound of epsilon.
    truncates : whether redrawing noise until the answer lies in the metric's range is proved private too, see
        `fairwall.laws.mechanisms.calibration`.
    may_be_nan : whether some answers may be NaN, though it answers.
    loss : from a `NoiseInputs` to the least epsilon, at its delta, between a data set with these counts and all its
        neighbours. None where it is not known in closed form.
    """

    noise_on: Noisy
    error: Callable[[NoiseInputs], NoiseDistribution | None]
    counts_on_groups: bool
    interval: Interval | None
    independent: bool = False
    recommendable: bool = False
    needs_delta: bool = False
    epsilon_below: float = math.inf
    truncates: bool = False
    may_be_nan: bool = False
    loss: Callable[[NoiseInputs], float] | None = None

    @property
    def is_choice(self) -> bool:
        """Whether answers are choices or verdicts, not numbers near a gap."""
        return self.noise_on == "choices"

    @property
    def answers_for_nothing(self) -> bool:
        """Whether a batch's purchase may answer later batches free: noisy attributes, and cells of people."""
        return self.noise_on in ("attributes", "cells", "any")


def _overall(batch: NoiseInputs) -> float:
    return global_sensitivity(batch.metric, batch.people, minimum_group=batch.minimum_group)


def _gaussian(batch: NoiseInputs) -> NoiseDistribution:
    multiplier = _multiplier(batch.epsilon, batch.delta)
    return Gaussian(multiplier * math.sqrt(batch.queries) * _overall(batch))


def _gaussian_loss(batch: NoiseInputs) -> float:
    moves = local_sensitivity(batch.metric, batch.n0, batch.n1, minimum_group=batch.minimum_group)
    if moves == 0:
        return 0.0
    reach = _multiplier(batch.epsilon, batch.delta) * _overall(batch)
    return gaussian_epsilon(reach / moves, batch.delta)


def _cauchy_loss(batch: NoiseInputs) -> float:
    # The first element is between g+1 and g.
    first, n = batch.minimum_group + 1, batch.people
    losses = tuned_loss(batch.metric, n, batch.queries, batch.epsilon, batch.shares)
    return max((float(losses[s - first]) for s in (batch.n0, batch.n0 + 1) if first <= s <= n + 1 - first), default=0.0)


def _counts(batch: NoiseInputs) -> NoiseDistribution:
    # The noise on a centred sum, times 1/n0 + 1/n1. The sizes are those used for the answers, with N0 as released: all
    # else cancels except (N0 released - N0) times the row's mean minus 1/2, which is 0 for balanced rows. Impossible
    # answers were moved to the nearest possible ones.
    scales = laplace_scales(batch.queries, batch.epsilon, size_known=batch.size_known)
    return Laplace((1 / batch.n0 + 1 / batch.n1) * scales.sums)


def _counts_gaussian(batch: NoiseInputs) -> NoiseDistribution:
    multiplier = _multiplier(batch.epsilon, batch.delta)
    scales = gaussian_scales(batch.queries, multiplier, size_known=batch.size_known)
    return Gaussian((1 / batch.n0 + 1 / batch.n1) * scales.sums)


def _counts_gaussian_loss(batch: NoiseInputs) -> float:
    # N0 moves by 1 and every sum by 1/2, at any counts: one Gaussian that moves by as many standard deviations.
    scales = gaussian_scales(batch.queries, _multiplier(batch.epsilon, batch.delta))
    return gaussian_epsilon(1 / math.hypot(1 / scales.size, math.sqrt(batch.queries) / 2 / scales.sums), batch.delta)


def _cube(batch: NoiseInputs) -> CubeNoise:
    # As for counts, for values that fill [0, 1] and different models; otherwise the noise is smaller.
    law = cube_scales(batch.queries, batch.epsilon, size_known=batch.size_known).law
    return replace(law, scale=(1 / batch.n0 + 1 / batch.n1) * law.scale / 2)


def _low_rank(batch: NoiseInputs) -> NoiseDistribution:
    # For models that have nothing in common, with all sizes; for others the predictions determine the reduction.
    return replace(_cube(batch), stair=0.0)


def _cells(batch: NoiseInputs) -> NoiseDistribution:
    # The noise of one cell, whose people differ from the mean by 1/2. The number of cells, and the shrinking towards no
    # gap, depend on the predictions.
    return Laplace((1 / batch.n0 + 1 / batch.n1) * cells_scale(batch.epsilon) / 2)


def _proposed(batch: NoiseInputs) -> NoiseDistribution:
    # Given that the test passed.
    g = batch.minimum_group
    bound = proposed_bound(batch.metric, batch.people, minimum_group=g) if batch.people > 2 * g else 0.0
    return released_law(bound, batch.queries, batch.epsilon)


def _recommended(batch: NoiseInputs) -> NoiseDistribution | None:
    # The winning mechanism is public, but determined by compliance's code; counts may be shrunk.
    return None if batch.epsilon >= RESPONSE_FROM else _counts(batch)


def _unknown(_: str) -> MechanismLaw:
    """Return safe facts for a plug-in's mechanism without any: readers of its answers assume Laplace noise."""
    return MechanismLaw(noise_on="gaps", error=MECHANISM_LAWS["laplace"].error, counts_on_groups=True, interval=None)


def _checked(plugin: Plugin, law: MechanismLaw) -> MechanismLaw:
    plugin.require(isinstance(law, MechanismLaw) and not law.recommendable, "is no MechanismLaw, or is recommendable")
    return law


MECHANISM_LAWS: Registry[MechanismLaw] = Registry(
    "laws",
    {
        "exact": MechanismLaw(
            noise_on="nothing", error=lambda _: None, counts_on_groups=False, interval=Interval(is_added=True)
        ),
        "round": MechanismLaw(
            noise_on="nothing", error=lambda _: rounding_law(DECIMALS), counts_on_groups=False, interval=None
        ),
        "pass-fail": MechanismLaw(noise_on="choices", error=lambda _: CHOICE, counts_on_groups=False, interval=None),
        "laplace": MechanismLaw(
            noise_on="gaps",
            error=lambda b: laplace_law(b.metric, b.people, b.queries, b.epsilon, b.minimum_group),
            counts_on_groups=True,
            interval=Interval(Laplace, is_added=True),
            recommendable=True,
            independent=True,
            truncates=True,
            loss=lambda b: laplace_loss(b.metric, b.n0, b.n1, b.queries, b.epsilon, b.minimum_group),
        ),
        "gaussian": MechanismLaw(
            noise_on="gaps",
            error=_gaussian,
            counts_on_groups=True,
            interval=Interval(is_added=True),
            recommendable=True,
            needs_delta=True,
            independent=True,
            loss=_gaussian_loss,
        ),
        # The scale of these three is secret.
        "conceal": MechanismLaw(
            noise_on="gaps",
            error=lambda b: conceal_law(b.metric, b.n0, b.n1, b.queries, b.epsilon, b.minimum_group),
            counts_on_groups=True,
            interval=None,
            independent=True,
            loss=lambda b: conceal_loss(b.metric, b.n0, b.n1, b.queries, b.epsilon, b.minimum_group),
        ),
        "conceal-laplace": MechanismLaw(
            noise_on="gaps",
            error=lambda b: conceal_laplace_law(b.metric, b.n0, b.n1, b.queries, b.epsilon, b.delta, b.minimum_group),
            counts_on_groups=True,
            interval=None,
            needs_delta=True,
            epsilon_below=1.0,
            independent=True,
        ),
        "cauchy": MechanismLaw(
            noise_on="gaps",
            error=lambda b: tuned_law(b.metric, b.n0, b.n1, b.queries, b.epsilon, b.shares),
            counts_on_groups=True,
            interval=None,
            recommendable=True,
            independent=True,
            loss=_cauchy_loss,
        ),
        # Losses of the following five include the facts that the first batch buys.
        "counts": MechanismLaw(
            noise_on="sums",
            error=_counts,
            counts_on_groups=False,
            interval=Interval(),
            recommendable=True,
            loss=lambda b: counts_loss(b.queries, b.epsilon),
        ),
        "counts-gaussian": MechanismLaw(
            noise_on="sums",
            error=_counts_gaussian,
            counts_on_groups=False,
            interval=Interval(),
            recommendable=True,
            needs_delta=True,
            loss=_counts_gaussian_loss,
        ),
        "cube": MechanismLaw(
            noise_on="cube",
            error=_cube,
            counts_on_groups=False,
            interval=Interval(),
            recommendable=True,
            loss=lambda b: cube_loss(b.queries, b.epsilon),
        ),
        "low-rank": MechanismLaw(
            noise_on="directions",
            error=_low_rank,
            counts_on_groups=False,
            interval=Interval(),
            recommendable=True,
            loss=lambda b: cube_loss(1, b.epsilon),
        ),
        # For any number of cells and models.
        "cells": MechanismLaw(
            noise_on="cells",
            error=_cells,
            counts_on_groups=False,
            interval=Interval(is_posterior=True),
            recommendable=True,
            loss=lambda b: 1 / cells_scale(b.epsilon),
        ),
        # Answers are also the exact gaps of the noisy attributes.
        "randomized-response": MechanismLaw(
            noise_on="attributes",
            error=lambda _: None,
            counts_on_groups=False,
            interval=Interval(),
            recommendable=True,
            loss=lambda b: response_loss(turning_probability(b.epsilon)),
        ),
        # One batch's loss is not known for these two, only the supremum over batches, which a small one does not reach.
        "sparse-vector": MechanismLaw(
            noise_on="choices", error=lambda _: CHOICE, counts_on_groups=True, interval=None, may_be_nan=True
        ),
        "exponential": MechanismLaw(noise_on="choices", error=lambda _: CHOICE, counts_on_groups=True, interval=None),
        # The noise on the mean over blocks; the error of dealing people into blocks is added, biased, with an unknown
        # distribution. The loss is given the worst deal, against an attacker who knows it.
        "sample-and-aggregate": MechanismLaw(
            noise_on="blocks",
            error=lambda b: aggregate_law(block_count(b.people), b.queries, b.epsilon),
            counts_on_groups=False,
            interval=None,
            loss=lambda b: aggregate_loss(b.metric, b.n0, b.n1, b.queries, b.epsilon, minimum_group=b.minimum_group),
        ),
        # The loss of a test with m answers at a delta has no closed form.
        "propose-test-release": MechanismLaw(
            noise_on="gaps",
            error=_proposed,
            counts_on_groups=True,
            interval=Interval(Laplace, is_added=True),
            needs_delta=True,
            may_be_nan=True,
        ),
        # Its intervals are the chosen mechanism's.
        "recommended": MechanismLaw(noise_on="any", error=_recommended, counts_on_groups=False, interval=None),
    },
    _checked,
    stand_in=_unknown,
    also="mechanisms",
)
"""Public facts of every mechanism, by name."""

BY_GROUP = "group-counts"
"""Ledger name of answers by group: noise on each count, independent of the groups' sizes."""


def counts_on_groups(mechanism: str) -> bool:
    """Return whether a loss holds only for groups of a known size; true for unknown names."""
    law = MECHANISM_LAWS.get(mechanism)
    return mechanism != BY_GROUP if law is None else law.counts_on_groups
