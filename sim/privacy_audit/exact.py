"""Losses that need no sampling, because the law of the noise is known.

`EXACT` says which function of `fairwall.laws` belongs to which mechanism. A new mechanism gets a line there where its
exact loss is known; else, if the law of its noise has a row in `fairwall.laws.mechanisms`, the loss is found on a grid.

Some have neither. What `exponential` and `sparse-vector` cost a batch of m models is not known, only its supremum over
all scores and all batches (`fairwall.laws.selection`), which a small batch does not reach. `propose-test-release` mixes
a test with m answers, whose loss at a delta has no closed form; it keeps its claim by a proof. Nor has the loss of
`conceal-laplace` at a delta, whose scale moves with the counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from compliance.mechanisms.mechanism import Mechanism
from compliance.mechanisms.recommended import SHRUNK, choose
from fairwall.laws import mechanisms
from fairwall.laws.aggregation import aggregate_loss
from fairwall.laws.calibration import conceal_loss, laplace_loss
from fairwall.laws.cauchy import tuned_loss
from fairwall.laws.counts import counts_loss, gaussian_scales
from fairwall.laws.gaussian import gaussian_epsilon, gaussian_multiplier
from fairwall.laws.metric import find_metric
from fairwall.laws.noise import Law
from fairwall.laws.response import response_loss, turning_probability
from fairwall.laws.sensitivity import flip_sensitivity, global_sensitivity, local_sensitivity
from sim.privacy_audit.pairs import stratum_sizes

if TYPE_CHECKING:
    from sim.privacy_audit.subject import Subject


class ExactLoss(Protocol):
    """What a batch costs a data set: the least epsilon that holds against all its neighbours, at delta."""

    def __call__(
        self, metric: str, n0: int, n1: int, people: int, queries: int, epsilon: float, delta: float, /
    ) -> float:
        """Return it for groups of n0 and n1 in the metric's stratum, and so many people in all."""


class NoiseLaw(Protocol):
    """The independent noise that each answer of a batch gets."""

    def __call__(
        self, metric: str, n0: int, n1: int, people: int, queries: int, epsilon: float, delta: float, /
    ) -> Law:
        """Return it for groups of n0 and n1 in the metric's stratum, and so many people in all."""


def _cauchy_loss(metric: str, n0: int, n1: int, _people: int, queries: int, epsilon: float, _delta: float, /) -> float:
    losses = tuned_loss(metric, n0 + n1, queries, epsilon)  # element s-2 is between s and s-1
    return max((float(losses[s - 2]) for s in (n0, n0 + 1) if 2 <= s <= n0 + n1 - 1), default=0.0)


def _gaussian_loss(
    metric: str, n0: int, n1: int, _people: int, _queries: int, epsilon: float, delta: float, /
) -> float:
    moves = local_sensitivity(metric, n0, n1)
    if moves == 0:
        return 0.0
    return gaussian_epsilon(gaussian_multiplier(epsilon, delta) * global_sensitivity(metric, n0 + n1) / moves, delta)


def _counts_gaussian_loss(
    _metric: str, _n0: int, _n1: int, _people: int, queries: int, epsilon: float, delta: float, /
) -> float:
    # N0 moves by 1 and every sum by 1/2, whatever the counts: one Gaussian that moves by as many standard deviations.
    scales = gaussian_scales(queries, gaussian_multiplier(epsilon, delta))
    return gaussian_epsilon(1 / math.hypot(1 / scales.size, math.sqrt(queries) / 2 / scales.sums), delta)


def _recommended_loss(
    metric: str, n0: int, n1: int, people: int, queries: int, epsilon: float, delta: float, /
) -> float:
    chosen = choose(metric, n0 + n1, queries, epsilon, delta).removesuffix(SHRUNK)
    return EXACT[chosen](metric, n0, n1, people, queries, epsilon, delta)


EXACT: Mapping[str, ExactLoss] = {
    "laplace": lambda metric, n0, n1, _people, m, epsilon, _delta: laplace_loss(metric, n0, n1, m, epsilon),
    "conceal": lambda metric, n0, n1, _people, m, epsilon, _delta: conceal_loss(metric, n0, n1, m, epsilon),
    "cauchy": _cauchy_loss,
    "gaussian": _gaussian_loss,
    "counts": lambda _metric, _n0, _n1, _people, m, epsilon, _delta: counts_loss(m, epsilon),
    "counts-gaussian": _counts_gaussian_loss,
    "randomized-response": lambda _metric, _n0, _n1, _people, _m, epsilon, _delta: response_loss(
        turning_probability(epsilon)
    ),
    "sample-and-aggregate": lambda metric, n0, n1, _people, m, epsilon, _delta: aggregate_loss(
        metric, n0, n1, m, epsilon
    ),
    "recommended": _recommended_loss,
}
"""A mechanism's exact loss, by the mechanism's name; used for metrics that are one mean a group.

Of `counts` and `randomized-response` with the facts that the first batch buys. Of `sample-and-aggregate` for who knows
how people were dealt, at worst. Of `recommended` what its choice releases, before answers are clamped or shrunk.
"""


def _added(law: AddedNoise) -> NoiseLaw:
    return lambda metric, n0, n1, _people, m, epsilon, delta: law(metric, n0, n1, m, epsilon, delta)


LAWS: Mapping[str, NoiseLaw] = {name: _added(law) for name, law in mechanisms.LAWS.items()}
"""The noise on each answer, by the mechanism's name."""


def is_one_mean(metric: str) -> bool:
    """Return whether a metric is a bounded difference of one mean a group, which these laws speak about."""
    found = find_metric(metric)
    return found.bounded and len(found.parts) == 1


def exact_loss(mechanism: Mechanism) -> ExactLoss | None:
    """Return a mechanism's exact loss, on a grid where only its noise is known, None where neither is."""
    name = mechanism.name
    if name in EXACT:
        return EXACT[name]
    return numeric_loss(LAWS[name]) if name in LAWS and mechanism.guarantee == "pure" else None


def worst_loss(subject: Subject, metric: str, n: int, queries: int) -> tuple[float, int, int] | None:
    """Return the largest loss over all pairs of neighbouring counts, with the counts (n0, n1) that have it.

    None where it is not known.
    """
    worst: tuple[float, int, int] | None = None
    for size in stratum_sizes(metric, n):
        for n0 in range(1, size):
            loss = subject.loss(metric, n0, size - n0, n, queries)
            if loss is None:
                return None
            if worst is None or loss > worst[0]:
                worst = loss, n0, size - n0
    return worst


def numeric_loss(law: NoiseLaw) -> ExactLoss:
    """Return the loss of pure privacy that independent noise has, found on a grid of answers and of shifts.

    Each of the m answers can move by the sensitivity of the flip, or by less, and all of them can be worst at once. A
    grid can miss a peak, so this is a lower bound; laws of noise are smooth, and it is close.
    """

    def loss(metric: str, n0: int, n1: int, people: int, queries: int, epsilon: float, delta: float, /) -> float:
        here = law(metric, n0, n1, people, queries, epsilon, delta)
        losses = [0.0]
        for other_n0, leaving in _neighbours(n0, n1):
            there = law(metric, other_n0, n0 + n1 - other_n0, people, queries, epsilon, delta)
            if not (here.scale and there.scale):
                return math.inf
            for shift in np.linspace(0.0, flip_sensitivity(metric, n0 + n1, leaving), 9):
                losses.append(queries * _log_ratio(here, there, float(shift)))
        return max(losses)

    return loss


def _neighbours(n0: int, n1: int) -> Iterator[tuple[int, int]]:
    """Yield a neighbour's n0 and the size of the group that somebody leaves."""
    if n0 > 1:
        yield n0 - 1, n0
    if n1 > 1:
        yield n0 + 1, n1


def _log_ratio(here: Law, there: Law, shift: float) -> float:
    # Fine around both locations, and far enough that what a tail does is seen.
    near = np.linspace(-3.0, 3.0, 2001)
    far = np.geomspace(3.0, 1e6, 400)
    grid = np.concatenate((-far[::-1], near, far)) * max(here.scale, there.scale, shift)
    grid = np.concatenate((grid, grid + shift, [0.0, shift]))
    return float(np.max(np.abs(here.log_density(grid) - there.log_density(grid - shift))))
