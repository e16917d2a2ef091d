"""What is public of every mechanism, by its name: where its noise is, how far answers may be from gaps, what they cost.

Mechanisms are public (Kerckhoffs). Whoever treats one mechanism otherwise than another reads why in its row here:
ledgers, intervals, decoders, privacy audits, plans and the conformance suite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from fairwall.laws.aggregation import aggregate_law, aggregate_loss, block_count
from fairwall.laws.calibration import conceal_law, conceal_loss, laplace_law, laplace_loss
from fairwall.laws.cauchy import tuned_law, tuned_loss
from fairwall.laws.cells import cells_scale
from fairwall.laws.conceal_laplace import conceal_laplace_law
from fairwall.laws.counts import counts_loss, gaussian_scales, laplace_scales
from fairwall.laws.cube import CubeNoise, cube_loss, cube_scales
from fairwall.laws.gaussian import gaussian_epsilon, gaussian_multiplier
from fairwall.laws.noise import Gaussian, Laplace, Law
from fairwall.laws.precision import DECIMALS, rounding_law
from fairwall.laws.proposal import proposed_bound, released_law
from fairwall.laws.response import response_loss, turning_probability
from fairwall.laws.sensitivity import global_sensitivity, local_sensitivity
from fairwall.laws.shares import DEFAULT_SHARES, Shares
from fairwall.plugins import Plugin, Table

RESPONSE_FROM = 5.0
"""From this epsilon on or so `recommended` is randomised response, below it mostly counts."""

CHOICE = Gaussian(0.5)
"""For answers that are 0 or 1 where a gap was asked for: an error of that size, which leaves next to nothing."""

_multiplier = lru_cache(maxsize=64)(gaussian_multiplier)


@dataclass(frozen=True)
class Batch:
    """What a law may depend on: a metric with one part, m, the whole batch's epsilon and delta.

    Attributes
    ----------
    n0, n1 : disadvantaged and advantaged people in the metric's stratum, each at least 1. Secret: an attacker assumes
        them.
    size_known : whether an earlier batch has bought N0, where that is sold apart.
    shares : for which group shares noise is to be small, and g, what both groups have at least; public.
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
        """The people in the stratum: n."""
        return self.n0 + self.n1

    @property
    def minimum_group(self) -> int:
        """What both groups have at least: g."""
        return self.shares.minimum_group


Noisy: TypeAlias = Literal[
    "nothing", "gaps", "blocks", "sums", "cube", "directions", "cells", "attributes", "choices", "any"
]
"""What noise is added to.

Each gap; the mean of a gap over blocks of people; N0 and each group sum, by noise of their own (``sums``), by one draw
from a cube for all of them (``cube``), or by one for what the sums have in common and another for what is left of each
(``directions``);
the counts of cells; or people's attributes. Of ``choices`` answers are none near a gap but choices among models, or
verdicts. ``any`` is another mechanism's noise, which is chosen batch by batch.
"""


@dataclass(frozen=True)
class Interval:
    """What a mechanism's intervals stand for.

    Parameters
    ----------
    noise : Laplace or Gaussian
        The law by whose quantiles they are read.
    is_added : whether it is added to the metric itself, and the interval is just that noise's reach.
    is_posterior : bool
        Whether answers and intervals are those of a posterior, see `compliance.mechanisms.posterior_answers`.
    """

    noise: type[Laplace | Gaussian] = Gaussian
    is_added: bool = False
    is_posterior: bool = False


@dataclass(frozen=True, kw_only=True)
class MechanismLaw:
    """What is public of one mechanism. What has no default must be said: nothing starts without it.

    Parameters
    ----------
    noise_on : what its noise is added to.
    error : from a `Batch` to the law of an answer's error, as near as it is known; None for exact answers.
    counts_on_groups : bool
        Whether it has less noise the more people both groups are known to have: its losses hold for such data alone.
    interval : what its intervals stand for; None where it tells none.
    independent : whether each answer is the gap and noise of the law `error`, independent of all else.
    recommendable : bool
        Whether `recommended` may choose it; compliance then has to know how (`compliance.mechanisms.recommended`).
    needs_delta : whether it answers only with a delta above 0.
    epsilon_below : what epsilon must be below.
    truncates : whether noise drawn again until the answer lies in the metric's range is proved private too, see
        `fairwall.laws.bounding`.
    may_be_nan : whether some answers may be no number, though it answers.
    loss : from a `Batch` to the least epsilon, at its delta, that holds between a data set with these counts and all
        its neighbours. Left out where it is not known in closed form.
    """

    noise_on: Noisy
    error: Callable[[Batch], Law | None]
    counts_on_groups: bool
    interval: Interval | None
    independent: bool = False
    recommendable: bool = False
    needs_delta: bool = False
    epsilon_below: float = math.inf
    truncates: bool = False
    may_be_nan: bool = False
    loss: Callable[[Batch], float] | None = None

    @property
    def is_choice(self) -> bool:
        """Whether answers are choices or verdicts, and no numbers near a gap."""
        return self.noise_on == "choices"

    @property
    def answers_for_nothing(self) -> bool:
        """Whether what a batch has bought may answer later ones: noisy attributes, and cells of people."""
        return self.noise_on in ("attributes", "cells", "any")


def _overall(batch: Batch) -> float:
    return global_sensitivity(batch.metric, batch.people, minimum_group=batch.minimum_group)


def _gaussian(batch: Batch) -> Law:
    multiplier = _multiplier(batch.epsilon, batch.delta)
    return Gaussian(multiplier * math.sqrt(batch.queries) * _overall(batch))


def _gaussian_loss(batch: Batch) -> float:
    moves = local_sensitivity(batch.metric, batch.n0, batch.n1, minimum_group=batch.minimum_group)
    if moves == 0:
        return 0.0
    reach = _multiplier(batch.epsilon, batch.delta) * _overall(batch)
    return gaussian_epsilon(reach / moves, batch.delta)


def _cauchy_loss(batch: Batch) -> float:
    # The first element is between g+1 and g.
    first, n = batch.minimum_group + 1, batch.people
    losses = tuned_loss(batch.metric, n, batch.queries, batch.epsilon, batch.shares)
    return max((float(losses[s - first]) for s in (batch.n0, batch.n0 + 1) if first <= s <= n + 1 - first), default=0.0)


def _counts(batch: Batch) -> Law:
    # The noise on a centred sum, times 1/n0 + 1/n1. The sizes are those that the answers were computed with, N0 as
    # released: with them everything else cancels but for (N0 released - N0) times the row's mean minus 1/2, which is 0
    # for balanced rows. Answers beyond what is possible were moved to its end.
    scales = laplace_scales(batch.queries, batch.epsilon, size_known=batch.size_known)
    return Laplace((1 / batch.n0 + 1 / batch.n1) * scales.sums)


def _counts_gaussian(batch: Batch) -> Law:
    multiplier = _multiplier(batch.epsilon, batch.delta)
    scales = gaussian_scales(batch.queries, multiplier, size_known=batch.size_known)
    return Gaussian((1 / batch.n0 + 1 / batch.n1) * scales.sums)


def _counts_gaussian_loss(batch: Batch) -> float:
    # N0 moves by 1 and every sum by 1/2, whatever the counts: one Gaussian that moves by as many standard deviations.
    scales = gaussian_scales(batch.queries, _multiplier(batch.epsilon, batch.delta))
    return gaussian_epsilon(1 / math.hypot(1 / scales.size, math.sqrt(batch.queries) / 2 / scales.sums), batch.delta)


def _cube(batch: Batch) -> CubeNoise:
    # As of counts, for values that fill [0, 1] and different models; of others the noise is smaller.
    law = cube_scales(batch.queries, batch.epsilon, size_known=batch.size_known).law
    return replace(law, scale=(1 / batch.n0 + 1 / batch.n1) * law.scale / 2)


def _low_rank(batch: Batch) -> Law:
    # That of models that have nothing in common, of sizes of all kinds: of others the predictions say how much less.
    return replace(_cube(batch), stair=0.0)


def _cells(batch: Batch) -> Law:
    # The noise of one cell, whose people differ from the mean by 1/2. How many cells there are, and how far answers are
    # moved towards no gap, depends on the predictions.
    return Laplace((1 / batch.n0 + 1 / batch.n1) * cells_scale(batch.epsilon) / 2)


def _proposed(batch: Batch) -> Law:
    # Given that the test passed.
    g = batch.minimum_group
    bound = proposed_bound(batch.metric, batch.people, minimum_group=g) if batch.people > 2 * g else 0.0
    return released_law(bound, batch.queries, batch.epsilon)


def _recommended(batch: Batch) -> Law | None:
    # Which mechanism wins is public, but compliance's own code; counts are shrunk or not.
    return None if batch.epsilon >= RESPONSE_FROM else _counts(batch)


def _unknown(_: str) -> MechanismLaw:
    """Say of a mechanism of others what is safe to say of any: whoever reads its answers takes them for Laplace's."""
    return MechanismLaw(noise_on="gaps", error=MECHANISM_LAWS["laplace"].error, counts_on_groups=True, interval=None)


def _checked(plugin: Plugin, law: MechanismLaw) -> MechanismLaw:
    plugin.require(isinstance(law, MechanismLaw) and not law.recommendable, "is no MechanismLaw, or is recommendable")
    return law


MECHANISM_LAWS: Table[MechanismLaw] = Table(
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
        # Losses of the following five are with the facts that the first batch buys.
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
        # Answers are exact gaps of the noisy attributes, to who reads them so.
        "randomized-response": MechanismLaw(
            noise_on="attributes",
            error=lambda _: None,
            counts_on_groups=False,
            interval=Interval(),
            recommendable=True,
            loss=lambda b: response_loss(turning_probability(b.epsilon)),
        ),
        # What these two cost a batch is not known, only its supremum over batches, which a small one does not reach.
        "sparse-vector": MechanismLaw(
            noise_on="choices", error=lambda _: CHOICE, counts_on_groups=True, interval=None, may_be_nan=True
        ),
        "exponential": MechanismLaw(noise_on="choices", error=lambda _: CHOICE, counts_on_groups=True, interval=None),
        # The noise on the mean over blocks; what is due to the deal of people into blocks comes on top, biased, and has
        # no law that is known. The loss is for who knows how people were dealt, at worst.
        "sample-and-aggregate": MechanismLaw(
            noise_on="blocks",
            error=lambda b: aggregate_law(block_count(b.people), b.queries, b.epsilon),
            counts_on_groups=False,
            interval=None,
            loss=lambda b: aggregate_loss(b.metric, b.n0, b.n1, b.queries, b.epsilon, minimum_group=b.minimum_group),
        ),
        # A test with m answers has a loss at a delta that has no closed form.
        "propose-test-release": MechanismLaw(
            noise_on="gaps",
            error=_proposed,
            counts_on_groups=True,
            interval=Interval(Laplace, is_added=True),
            needs_delta=True,
            may_be_nan=True,
        ),
        # Of its intervals, those of what it chose.
        "recommended": MechanismLaw(noise_on="any", error=_recommended, counts_on_groups=False, interval=None),
    },
    _checked,
    stand_in=_unknown,
    also="mechanisms",
)
"""Of every mechanism, by its name."""

BY_GROUP = "group-counts"
"""Under which name ledgers enter what answers by group: noise on each count, whatever the groups' sizes."""


def counts_on_groups(mechanism: str) -> bool:
    """Return whether a loss holds for groups of a known size alone; that of a name nobody knows is taken to."""
    law = MECHANISM_LAWS.get(mechanism)
    return mechanism != BY_GROUP if law is None else law.counts_on_groups
