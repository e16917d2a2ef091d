"""What a batch gives away at most, whatever mechanism answers it."""

import math
from dataclasses import replace

from compliance.mechanisms.bounding import Bounded
from compliance.mechanisms.cells import CellsMechanism
from compliance.mechanisms.mechanism import Mechanism
from compliance.mechanisms.recommended import Recommended
from compliance.records.people import Records
from fairwall.laws.exposure import Limit, is_known, revealed
from fairwall.laws.shares import Shares


def exposure_about(
    records: Records, mechanism: Mechanism, metric: str, models: int, epsilon: float, delta: float, shares: Shares
) -> float:
    """Return what a batch about some records gives away: as `exposure`, of the stratum where that is most."""
    people, exposed = sum(records.counts(metric)), records.exposed(metric)
    return exposure(mechanism, metric, people, models, epsilon, delta, shares, exposed)


def exposure(
    mechanism: Mechanism,
    metric: str,
    people: int,
    models: int,
    epsilon: float,
    delta: float,
    shares: Shares,
    exposed: int | None = None,
) -> float:
    """Return the balanced accuracy of the best attack with a batch. Nothing protected is looked at.

    Parameters
    ----------
    mechanism : Mechanism
        What answers.
    metric : str
        A key of `compliance.records.metrics.METRICS`.
    people : int
        Whom the metric looks at.
    models : int
        In the batch, at least 1.
    epsilon, delta : float
        Of the batch; above 0, infinite for exact answers.
    shares : Shares
        The public range of group shares, or how small a policy allows groups to be.
    exposed : int or None
        How many people it would look at if all its strata were as small as its smallest; left out, they are.

    Returns
    -------
    float
        In [1/2, 1]; NaN for a mechanism of which that is not known.
    """
    inner = mechanism.mechanism if isinstance(mechanism, Bounded) else mechanism
    if math.isinf(epsilon) or inner.guarantee == "none":
        return 1.0
    exposed = people if exposed is None else exposed
    if isinstance(inner, Recommended):
        return inner.reveals(metric, people, models, epsilon, delta, exposed) if people > 2 else 1.0
    if not is_known(inner.name) or people < 2:
        return math.nan
    found = revealed(inner.name, metric, exposed, models, epsilon, delta, shares)
    return min(found, inner.limit.accuracy) if isinstance(inner, CellsMechanism) else found


def limited(mechanism: Mechanism, limit: Limit) -> Mechanism:
    """Return the mechanism; `recommended` and `cells` with a limit to what a batch may give away."""
    match mechanism:
        case Recommended():
            return replace(mechanism, shares=limit.shares, reveal_max=limit.accuracy)
        case CellsMechanism():
            return replace(mechanism, limit=limit)
        case _:
            return mechanism


def reveal_max(mechanism: Mechanism) -> float:
    """Return the limit by which `recommended` chooses and `cells` are cut; 1 for none."""
    inner = mechanism.mechanism if isinstance(mechanism, Bounded) else mechanism
    match inner:
        case Recommended():
            return inner.reveal_max
        case CellsMechanism():
            return inner.limit.accuracy
        case _:
            return 1.0
