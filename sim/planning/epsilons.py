"""What each epsilon of a grid buys of one batch, and what it gives away: to choose an epsilon by.

How near answers are, whatever the true gap, depends on the sizes of groups and is `sim.planning.audit`'s. How far half
of the answers are off, and what is given away, is what compliance tells developers: by public numbers alone.
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
from sim.planning.batch import Batch

EPSILONS = (
    *(0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8),
    *(1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0),
)
EPSILON, WITHIN = 0.5, 0.05
"""Of the batch that is looked at first, and from where the search for a reach sets out, where nobody says otherwise."""

_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
_APART = 1.34
"""No step is farther from the next one."""


@dataclass(frozen=True)
class Bought:
    """What a batch of one epsilon comes to.

    Attributes
    ----------
    mechanism : what answers, ``recommended`` resolved.
    reach : the half-width that 95% of answers keep whatever the true gap, as `sim.planning.audit.Plan.reach`.
    median_error : of one answer, in the worlds of `fairwall.laws.standings`; None for what does not stand there.
    revealed : the balanced accuracy of the best attack that is known; None where none is.
    unlimited : the same if the policy had no ``reveal_max``.
    one_person : no attack is right about one person aimed at with a higher probability; see `one_person`.
    """

    epsilon: float
    mechanism: str
    reach: float | None
    median_error: float | None
    revealed: float | None
    unlimited: float | None
    one_person: float


@dataclass(frozen=True)
class Choices:
    """The epsilons to choose from, in ascending order, and the half-widths to choose them by.

    Attributes
    ----------
    batch : as asked.
    widths : ascending, from below what the grid reaches to above what it does.
    start : the one that is looked at first.
    """

    batch: Batch
    bought: Sequence[Bought]
    widths: Sequence[float]
    start: float

    def least(self, width: float) -> int | None:
        """Return the place of the least epsilon whose answers are so near; None where none of the grid is enough."""
        return next((i for i, one in enumerate(self.bought) if one.reach is not None and one.reach <= width), None)


def choices(batch: Batch, within: float | None = None, told: Callable[[float], None] = lambda _: None) -> Choices:
    """Look at the grid, and at the batch's own epsilon.

    PlanError as `sim.planning.audit.make` does.

    Parameters
    ----------
    within : the half-width to look at first; None for what the batch reaches, or comes closest to.
    told : is called with each epsilon that is looked at.
    """
    bought = []
    for answered, reach in reaches(batch, sorted({*EPSILONS, batch.epsilon}), within or WITHIN):
        told(answered.epsilon)
        bought.append(_bought(batch, answered, reach))
    low, high = metric_range(batch.metric)
    reached = [one.reach for one in bought if one.reach is not None]
    own = next((one.reach for one in bought if one.epsilon >= batch.epsilon and one.reach is not None), None)
    start = within or own or min(reached, default=WITHIN)
    return Choices(batch, bought, _widths([*reached, start], high - low), start)


def _bought(batch: Batch, answered: Batch, reach: float | None) -> Bought:
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


def _revealed(batch: Batch, epsilon: float, limit: float) -> float | None:
    spent = batch.queries, epsilon, batch.delta
    if batch.law.noise_on == "any":
        return Recommended(reveal_max=limit).reveals(batch.metric, batch.people, *spent, exposed=batch.exposed)
    return revealed(batch.mechanism, batch.metric, batch.exposed, *spent) if is_known(batch.mechanism) else None


def _widths(told: Sequence[float], most: float) -> list[float]:
    """Return round numbers from just below what is told to just above it, and the last of what is told, below most."""
    exponents = range(math.floor(math.log10(min(told))) - 1, math.ceil(math.log10(max(told))) + 1)
    steps = [float(f"{step}e{exponent}") for exponent in exponents for step in _STEPS]
    low, high = min(told) / _APART, min(max(told) * _APART, most)
    return sorted({*(step for step in steps if low < step < high), told[-1]})
