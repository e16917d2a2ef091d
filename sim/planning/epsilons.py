"""Figures for choosing an epsilon: for each of a grid, the precision one batch would have, and what it would reveal.

The half-width that answers keep for every true gap depends on the groups' sizes (`sim.planning.audit`). The median
error and what is revealed are computed from public numbers alone, as compliance tells them to developers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compliance.mechanisms.recommended import Recommended
from fairwall.laws.bounding import metric_range
from fairwall.laws.exposure import NO_LIMIT, is_known, one_person, revealed
from fairwall.laws.standings import standings
from sim.planning.audit import reaches
from sim.planning.batch import PlannedBatch

EPSILONS = (
    *(0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8),
    *(1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0),
)
EPSILON, WITHIN = 0.5, 0.05
"""Epsilon of the batch shown first, and the half-width where the search for `Plan.reach` starts, by default."""

_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
_APART = 1.34
"""Largest ratio of two successive steps."""


@dataclass(frozen=True)
class Bought:
    """The precision and disclosure of a batch at one epsilon.

    ``reach`` is the half-width that 95% of answers keep whatever the true gap (`sim.planning.audit.AuditPlan.reach`);
    ``median_error`` is None for a mechanism not ranked in `fairwall.laws.standings`; ``revealed`` is the balanced
    accuracy of the best known attack, or None, and ``unlimited`` the same without the policy's ``reveal_max``;
    ``one_person`` bounds how often an attack on one person is right (`fairwall.laws.exposure.one_person`).
    """

    epsilon: float
    mechanism: str
    reach: float | None
    median_error: float | None
    revealed: float | None
    unlimited: float | None
    one_person: float


@dataclass(frozen=True)
class EpsilonChoices:
    """The epsilons to choose from, and the half-widths to choose them by, both ascending.

    ``widths`` reach from below the least half-width of the grid to above its largest; ``start`` is the one shown first.
    """

    batch: PlannedBatch
    bought: Sequence[Bought]
    widths: Sequence[float]
    start: float

    def least(self, width: float) -> int | None:
        """Return the index of the smallest epsilon with at most this half-width, or None if the grid has none."""
        return next((i for i, one in enumerate(self.bought) if one.reach is not None and one.reach <= width), None)


def choices(
    batch: PlannedBatch, within: float | None = None, progress: Callable[[float], None] = lambda _: None
) -> EpsilonChoices:
    """Return the choices of the grid and of the batch's own epsilon; PlanError as for `sim.planning.audit.make`.

    ``within`` is the half-width shown first, None for the one that the batch reaches or comes closest to; ``progress``
    is called with each epsilon computed.
    """
    bought = []
    for answered, reach in reaches(batch, sorted({*EPSILONS, batch.epsilon}), within or WITHIN):
        progress(answered.epsilon)
        bought.append(_bought(batch, answered, reach))
    low, high = metric_range(batch.metric)
    reached = [one.reach for one in bought if one.reach is not None]
    own = next((one.reach for one in bought if one.epsilon >= batch.epsilon and one.reach is not None), None)
    start = within or own or min(reached, default=WITHIN)
    return EpsilonChoices(batch, bought, _widths([*reached, start], high - low), start)


def _bought(batch: PlannedBatch, answered: PlannedBatch, reach: float | None) -> Bought:
    epsilon, delta = answered.epsilon, batch.delta
    rows = standings(batch.metric, batch.people, batch.queries, epsilon, delta)
    return Bought(
        epsilon=epsilon,
        mechanism=answered.mechanism,
        reach=reach,
        median_error=next((row.median_error for row in rows if row.name == answered.mechanism), None),
        revealed=_revealed(batch, epsilon, batch.reveal_max),
        unlimited=_revealed(batch, epsilon, NO_LIMIT.accuracy),
        one_person=one_person(epsilon, delta),
    )


def _revealed(batch: PlannedBatch, epsilon: float, limit: float) -> float | None:
    spent = batch.queries, epsilon, batch.delta
    if batch.law.noise_on == "any":
        return Recommended(reveal_max=limit).reveals(batch.metric, batch.people, *spent, exposed=batch.exposed)
    return revealed(batch.mechanism, batch.metric, batch.exposed, *spent) if is_known(batch.mechanism) else None


def _widths(widths: Sequence[float], most: float) -> list[float]:
    """Return round half-widths from just below the least to just above the largest, and the last one."""
    exponents = range(math.floor(math.log10(min(widths))) - 1, math.ceil(math.log10(max(widths))) + 1)
    steps = [float(f"{step}e{exponent}") for exponent in exponents for step in _STEPS]
    low, high = min(widths) / _APART, min(max(widths) * _APART, most)
    return sorted({*(step for step in steps if low < step < high), widths[-1]})
