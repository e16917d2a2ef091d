"""What a batch gives away at most, whatever mechanism answers it."""

import math
from dataclasses import replace

from compliance.bounding import Bounded
from compliance.mechanisms.cells import CellsMechanism
from compliance.mechanisms.mechanism import Mechanism
from compliance.mechanisms.recommended import Recommended
from fairwall.laws.exposure import KNOWN, Limit, revealed
from fairwall.laws.shares import Shares


def exposure(
    mechanism: Mechanism, metric: str, people: int, models: int, epsilon: float, delta: float, shares: Shares
) -> float:
    """Return the balanced accuracy of the best attack with a batch. Nothing protected is looked at.

    Parameters
    ----------
    mechanism
        What answers.
    metric
        A key of `compliance.metrics.METRICS`.
    people
        Whom the metric looks at.
    models
        In the batch, at least 1.
    epsilon, delta
        Of the batch; above 0, infinite for exact answers.
    shares
        The public range of group shares.

    Returns
    -------
    float
        In [1/2, 1]; NaN for a mechanism of which that is not known.
    """
    inner = mechanism.mechanism if isinstance(mechanism, Bounded) else mechanism
    if math.isinf(epsilon) or inner.guarantee == "none":
        return 1.0
    if isinstance(inner, Recommended):
        return inner.reveals(metric, people, models, epsilon, delta) if people > 2 else 1.0
    if inner.name not in KNOWN or people < 2:
        return math.nan
    found = revealed(inner.name, metric, people, models, epsilon, delta, shares)
    return min(found, inner.limit.accuracy) if isinstance(inner, CellsMechanism) else found


def limited(mechanism: Mechanism, reveal_max: float) -> Mechanism:
    """Return the mechanism; `recommended` and `cells` with a limit to what a batch may give away."""
    match mechanism:
        case Recommended():
            return replace(mechanism, reveal_max=reveal_max)
        case CellsMechanism():
            return replace(mechanism, limit=Limit(reveal_max))
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
