"""The most that a batch, or a whole budget, reveals about protected attributes, whatever mechanism answers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from compliance.mechanisms.cells import CellsMechanism
from compliance.mechanisms.mechanism import Mechanism
from compliance.mechanisms.noise_on_gaps import Bounded
from compliance.mechanisms.recommended import Recommended
from compliance.records.people import Records
from fairwall.laws.choice.choose import CELLS, CELLS_FROM
from fairwall.laws.metrics.group_size_range import Shares
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.privacy import most_exposed as risk
from fairwall.laws.privacy.budget_exposure import ROWS, TABLES, AuditOffer, that_differ, that_tell_most
from fairwall.laws.privacy.exposure import Limit, is_known, revealed


@dataclass(frozen=True)
class BudgetExposure:
    """Exposure of whole budgets, as balanced accuracies: public.

    `revealed`: by the best attack known here, with each developer's budget; NaN if no attack is known. `together`: the
    same with the data set's budget. `most`: with the data set's budget, by any attack: proved. `kept`: by balanced
    accuracy, the largest budget examined that stays within it for `revealed` and `together`; 0 if every budget exceeds
    it. Empty if no attack is known.
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
) -> list[AuditOffer]:
    """Return what the service sells, for metrics that reveal different things; empty if an attack is not known.

    `batch`: least and most epsilon of a batch, and its delta. `limit`: on what a batch may reveal. `by_group`: whether
    counts by group are sold too. `released`: epsilon at which the same attributes are also released.
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
        found.append(AuditOffer(names, metric, people, queries_max, limit, least, most, delta, chooses, released))
    return that_differ(found)


def exposure_about(
    records: Records, mechanism: Mechanism, metric: str, models: int, epsilon: float, delta: float, shares: Shares
) -> float:
    """Return `exposure` of a batch about some records, for the stratum where it is largest."""
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
    """Return the balanced accuracy, in [1/2, 1], of the best attack with a batch; NaN if not known for the mechanism.

    No protected attribute is read.

    Parameters
    ----------
    people : the number of people that the metric reads.
    models : in the batch, at least 1.
    epsilon, delta : of the batch; above 0, infinite for exact answers.
    shares : public range of group shares, or the smallest group that a policy allows.
    exposed : the number of people the metric would read if all its strata were as small as its smallest; by default
        `people`.
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
    """Return the share of the disadvantaged named by an attack aimed at one person, and its upper bound.

    See `fairwall.laws.privacy.most_exposed`; no protected attribute is read. The first is NaN where it is not known.
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
    """Return the mechanism, with a limit on what a batch may reveal if it is `recommended` or `cells`."""
    match mechanism:
        case Recommended():
            return replace(mechanism, shares=limit.shares, reveal_max=limit.accuracy)
        case CellsMechanism():
            return replace(mechanism, limit=limit)
        case _:
            return mechanism


def reveal_max(mechanism: Mechanism) -> float:
    """Return the balanced accuracy that limits `recommended` and `cells`; 1 for no limit."""
    inner = mechanism.mechanism if isinstance(mechanism, Bounded) else mechanism
    match inner:
        case Recommended():
            return inner.reveal_max
        case CellsMechanism():
            return inner.limit.accuracy
        case _:
            return 1.0
