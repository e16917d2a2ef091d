"""Losses that need no sampling, because the law of the noise is known.

`fairwall.laws.mechanisms` has them: an exact loss where there is one, else the law of independent noise, and the loss
is found on a grid. Some mechanisms have neither. `propose-test-release` keeps its claim by a proof; the loss of
`conceal-laplace` at a delta, whose scale moves with the counts, is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from compliance.mechanisms.mechanism import Mechanism
from fairwall.laws.mechanisms import MECHANISM_LAWS, Batch
from fairwall.laws.metric import find_metric
from fairwall.laws.noise import Law
from fairwall.laws.sensitivity import flip_sensitivity
from fairwall.laws.standings import SHRUNK, choose

ExactLoss: TypeAlias = Callable[[Batch, int], float]
"""What a batch costs a data set of so many people in all: the least epsilon, at delta, against all its neighbours."""

NoiseLaw: TypeAlias = Callable[[Batch, int], Law]
"""The independent noise that each answer of a batch gets, in a data set of so many people in all."""


def _loss(loss: Callable[[Batch], float]) -> ExactLoss:
    return lambda batch, _: loss(batch)


def _noise(error: Callable[[Batch], Law | None]) -> NoiseLaw:
    def law(batch: Batch, _: int) -> Law:
        found = error(batch)
        assert found is not None
        return found

    return law


def _recommended_loss(batch: Batch, everybody: int) -> float:
    chosen = choose(batch.metric, batch.people, batch.queries, batch.epsilon, batch.delta).removesuffix(SHRUNK)
    return EXACT[chosen](batch, everybody)


EXACT: Mapping[str, ExactLoss] = {
    **{name: _loss(row.loss) for name, row in MECHANISM_LAWS.items() if row.loss},
    "recommended": _recommended_loss,
}
"""A mechanism's exact loss, by the mechanism's name; used for metrics that are one mean a group.

Of `recommended` what its choice releases, before answers are clamped or shrunk: the choice is compliance's own code.
"""

LAWS: Mapping[str, NoiseLaw] = {
    name: _noise(row.error)
    for name, row in MECHANISM_LAWS.items()
    if row.independent and not (row.needs_delta and row.loss)
}
"""The noise on each answer, by its name; not where a loss at a delta is known: it would choose other events."""


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


def numeric_loss(law: NoiseLaw) -> ExactLoss:
    """Return the loss of pure privacy that independent noise has, found on a grid of answers and of shifts.

    Each of the m answers can move by the sensitivity of the flip, or by less, and all of them can be worst at once. A
    grid can miss a peak, so this is a lower bound; laws of noise are smooth, and it is close.
    """

    def loss(batch: Batch, everybody: int) -> float:
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
