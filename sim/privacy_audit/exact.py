"""Exact privacy losses, from the noise distribution instead of samples.

`fairwall.laws.mechanisms.table` has an exact loss, or else the distribution of independent noise, from which the loss
is found on a grid. Some mechanisms have neither: `propose-test-release` keeps its claim by a proof, and the loss of
`conceal-laplace` at a delta is not known, because its scale moves with the counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from compliance.mechanisms.mechanism import Mechanism
from fairwall.laws.choice.prediction import SHRUNK, choose
from fairwall.laws.mechanisms.table import MECHANISM_LAWS, NoiseInputs
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.metrics.sensitivity import flip_sensitivity
from fairwall.laws.noise.distributions import NoiseDistribution

ExactLoss: TypeAlias = Callable[[NoiseInputs, int], float]
"""Loss of a batch, given the size of the whole data set: the least epsilon, at delta, against all neighbours."""

NoiseLaw: TypeAlias = Callable[[NoiseInputs, int], NoiseDistribution]
"""Distribution of the independent noise on each answer of a batch, given the size of the whole data set."""


def _loss(loss: Callable[[NoiseInputs], float]) -> ExactLoss:
    return lambda batch, _: loss(batch)


def _noise(error: Callable[[NoiseInputs], NoiseDistribution | None]) -> NoiseLaw:
    def law(batch: NoiseInputs, _: int) -> NoiseDistribution:
        found = error(batch)
        assert found is not None
        return found

    return law


def _recommended_loss(batch: NoiseInputs, everybody: int) -> float:
    chosen = choose(batch.metric, batch.people, batch.queries, batch.epsilon, batch.delta).removesuffix(SHRUNK)
    return EXACT[chosen](batch, everybody)


EXACT: Mapping[str, ExactLoss] = {
    **{name: _loss(row.loss) for name, row in MECHANISM_LAWS.items() if row.loss},
    "recommended": _recommended_loss,
}
"""Exact losses by mechanism name, for metrics that are one mean per group.

`recommended` has the loss of the mechanism it chooses, before answers are clamped or shrunk; the choice is made by the
service's own code, and so not checked.
"""

LAWS: Mapping[str, NoiseLaw] = {
    name: _noise(row.error)
    for name, row in MECHANISM_LAWS.items()
    if row.independent and not (row.needs_delta and row.loss)
}
"""Noise distribution of each answer, by mechanism name. Mechanisms with a known loss at a delta are left out, because
their likelihood ratio would choose other events."""


def is_one_mean(metric: str) -> bool:
    """Return whether a metric is a bounded difference of one mean per group, which these losses require."""
    found = find_metric(metric)
    return found.bounded and len(found.parts) == 1


def exact_loss(mechanism: Mechanism) -> ExactLoss | None:
    """Return a mechanism's exact loss (on a grid if only its noise is known), or None if neither is known."""
    name = mechanism.name
    if name in EXACT:
        return EXACT[name]
    return numeric_loss(LAWS[name]) if name in LAWS and mechanism.guarantee == "pure" else None


def numeric_loss(law: NoiseLaw) -> ExactLoss:
    """Return the pure-privacy loss of independent noise, found on a grid of answers and shifts.

    Each of the m answers can move by the flip's sensitivity, or less, and all of them can be worst at once. A grid can
    miss a peak, so this is a lower bound; it is close because noise distributions are smooth.
    """

    def loss(batch: NoiseInputs, everybody: int) -> float:
        here, losses = law(batch, everybody), [0.0]
        for other_n0, leaving in neighbours(batch.n0, batch.n1):
            there = law(replace(batch, n0=other_n0, n1=batch.people - other_n0), everybody)
            if not (here.scale and there.scale):
                return math.inf
            for shift in np.linspace(0.0, flip_sensitivity(batch.metric, batch.people, leaving), 9):
                losses.append(batch.queries * _log_ratio(here, there, float(shift)))
        return max(losses)

    return loss


def neighbours(n0: int, n1: int) -> Iterator[tuple[int, int]]:
    """Yield each neighbour's n0 and the size of the group that the person leaves."""
    if n0 > 1:
        yield n0 - 1, n0
    if n1 > 1:
        yield n0 + 1, n1


def _log_ratio(here: NoiseDistribution, there: NoiseDistribution, shift: float) -> float:
    # Fine around both locations, and wide enough to include the tails.
    near = np.linspace(-3.0, 3.0, 2001)
    far = np.geomspace(3.0, 1e6, 400)
    grid = np.concatenate((-far[::-1], near, far)) * max(here.scale, there.scale, shift)
    grid = np.concatenate((grid, grid + shift, [0.0, shift]))
    return float(np.max(np.abs(here.log_density(grid) - there.log_density(grid - shift))))
