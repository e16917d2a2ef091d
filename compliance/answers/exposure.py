"""What a batch gives away at most, whatever mechanism answers it, and what a whole budget does."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from compliance.mechanisms.bounding import Bounded
from compliance.mechanisms.cells import CellsMechanism
from compliance.mechanisms.mechanism import Mechanism
from compliance.mechanisms.recommended import Recommended
from compliance.records.people import Records
from fairwall.laws import risk
from fairwall.laws.budget_exposure import ROWS, TABLES, Offer, that_differ, that_tell_most
from fairwall.laws.choice import CELLS, CELLS_FROM
from fairwall.laws.exposure import Limit, is_known, revealed
from fairwall.laws.metric import find_metric
from fairwall.laws.shares import Shares


@dataclass(frozen=True)
class BudgetExposure:
    """What whole budgets give away, as balanced accuracies: public.

    Parameters
    ----------
    revealed : by the best attack known here, with each developer's budget; NaN where none is known.
    together : the same with the data set's budget.
    most : with the data set's budget, whatever anybody does: proved.
    kept : the largest budget that was looked at and keeps the first two to so much; 0 if each reveals more. Empty where
        no attack is known.
    """

    revealed: Mapping[str, float]
    together: float
    most: float
    kept: Mapping[float, float]


def offers(
    records: Records,
    mechanism: Mechanism,
    queries_max: int,
    batch: tuple[float, float, float],
    limit: Limit,
    *,
    by_group: bool,
    released: float,
) -> list[Offer]:
    """Say what is sold, for metrics that tell different things; empty where an attack on it is not known.

    Parameters
    ----------
    batch : the least and the most that one may spend, and its delta.
    limit : what a batch may reveal.
    by_group : whether counts by group are sold too.
    released : for how much the same attributes are released besides.
    """
    inner = mechanism.mechanism if isinstance(mechanism, Bounded) else mechanism
    least, most, delta = batch
    sold: tuple[Mechanism, ...] = (inner,)
    if isinstance(inner, Recommended):
        sold = tuple(each for each in inner.candidates(delta) if each.name != CELLS or queries_max >= CELLS_FROM)
    if not all(is_known(each.name) for each in sold):
        return []

    chooses, found = isinstance(inner, Recommended), []
    for metric in sorted(records.metrics):
        people = records.exposed(metric) // len(find_metric(metric).strata)
        names = tuple(each.name for each in sold if each.refuses(metric, least, delta) is None)
        names += (TABLES, ROWS) if by_group else ()
        if chooses:
            names = that_tell_most(names, people, limit.shares.allowed(people)[0])
        found.append(Offer(names, metric, people, queries_max, limit, least, most, delta, chooses, released))
    return that_differ(found)


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
    mechanism : what answers.
    metric : a key of `compliance.records.metrics.METRICS`.
    people : whom the metric looks at.
    models : in the batch, at least 1.
    epsilon, delta : of the batch; above 0, infinite for exact answers.
    shares : the public range of group shares, or how small a policy allows groups to be.
    exposed : how many people it would look at if all its strata were as small as its smallest; left out, they are.

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


def person_risk_about(
    records: Records, mechanism: Mechanism, metric: str, models: int, epsilon: float, delta: float, shares: Shares
) -> tuple[float, float]:
    """Return what share of the disadvantaged is named by whoever aims a batch at one person, and the most that can be.

    As `fairwall.laws.risk` has it; nothing protected is looked at. The first is NaN where it is not known.
    """
    inner = mechanism.mechanism if isinstance(mechanism, Bounded) else mechanism
    if math.isinf(epsilon) or inner.guarantee == "none":
        return 1.0, 1.0
    exposed, people, most = records.exposed(metric), sum(records.counts(metric)), risk.limit(epsilon, delta)
    names = [inner.name]
    if isinstance(inner, Recommended) and people > 2:
        names = inner.answering(metric, people, models, epsilon, delta, exposed)
    if people <= 2 or not all(map(is_known, names)):
        return math.nan, most
    return max(risk.aimed(name, metric, exposed, epsilon, delta, shares) for name in names), most


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
