"""Bound what a whole budget reveals, however it is split into batches: a proved limit, and the best known attack.

**Proved** (`most_by_budget`), for any purchases in any order, adaptive or not. A whole budget buys one
(epsilon, delta)-private view Y of n people, N0 of them disadvantaged (public), all equally likely. Let S be all the
disadvantaged but one, and J that one, uniform among the other m = n - N0 + 1 people. Y's density is f_J times the one
where only S are disadvantaged: a neighbour, so f_J lies in [1/a, a], a = e^epsilon, for delta 0. Let U be the people
guessed, x their share of the m people, and w1 and w0 the means of f_j inside and outside U. Then J is named with a
probability that exceeds another person's by

    E[sum_j f_j (1{j in U} - x)] / (m - 1)  =  m / (m - 1) E[x (1-x) (w1 - w0)],  where  E[x w1 + (1-x) w0] = 1.

With t = tanh(epsilon/2), x (1-x) (w1 - w0) - t (x w1 + (1-x) w0 - 1) is linear in w1 and w0. With w1 = a, w0 = 1/a it
is concave in x and largest, t, at x = 1/(1+a); w1 = 1/a is better only where x > 1 - t, and comes to t (1 - 1/a) at
most. So no attack has a balanced accuracy above

    1/2 + m / (m-1) t / 2,

whichever group is called disadvantaged. Randomised response attains this up to the factor m / (m-1), the value of
knowing N0. Both hypotheses are also within epsilon of one third hypothesis, which gives the bound 1 - e^-epsilon / 2,
attained for two people. A delta lets f leave [1/a, a] on mass delta, which by the terms above adds at most
4 delta / (1+a) to t.

**Played** (`revealed_by_budget`): the best attack known here, from the public noise distributions, for groups of the
least size. Not a bound: looks are taken as independent (`fairwall.laws.privacy.single_person_tests`), and better
attacks may exist. Splits into batches of one epsilon are tried, plus one batch of the rest, all sold in the way that
tells most; mixing does no better where looks are nearly Gaussian, as their information adds up. The attacker reads all
noisy counts and attributes bought, so free answers add nothing. Counts by group are cells of at least `STRATUM` people
on average, or rows of one ball, at most two a model, at no more epsilon than a request's limit allows. A release of the
people's attributes tells each as randomised response at its whole epsilon does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np

from fairwall.laws.choice.cell_partition import CROWDS
from fairwall.laws.choice.low_rank import RANKS
from fairwall.laws.mechanisms.table import MECHANISM_LAWS, NoiseInputs
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.noise.distributions import NoiseDistribution, Scaled, Uniform
from fairwall.laws.noise.linf_ball import CubeNoise
from fairwall.laws.privacy.exposure import (
    Limit,
    cells_within,
    is_known,
    least_people_within,
    noise_on_count,
    one_person,
)
from fairwall.laws.privacy.single_person_tests import (
    SinglePersonTest,
    distance,
    found_out,
    look_at_cells,
    look_at_cube,
    look_at_residual,
    look_at_rows,
    scaled,
    small,
    told_apart,
)

STRATUM = 50
"""Least mean number of people per stratum of counts by group."""

TABLES, ROWS = "tables", "rows"
"""Names of the two ways of counts by group to spend a budget: tables, or rows of one ball."""

BUDGETS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""Budgets, in epsilon, that `budget_that_keeps` tries."""

_STEPS, _PARTS, _PARTS_MAX = (*range(13), 16, 20, 24, 28), 4, 256
"""Batch epsilons tried, in quarter octaves below the largest; equal parts of a budget tried; the most parts of one."""

_SCREENED, _TRIED = 12, 3
"""Numbers of splits evaluated for a fixed population, and of those re-evaluated with known people left out."""

_MANY, _SEVERAL = 150, 3
"""Least people in a stratum, and in the smaller group, from which the ranking of mechanisms within a limit is known."""

_RESPONSE_FROM = 1.0
"""Epsilon below which `recommended` never uses randomised response: shrunk counts err less."""

_ROUNDED = 1e-3
"""Tolerance, in accuracy, for counting as within a limit."""

_SURE = 30.0
"""Epsilon above which a budget counts as revealing everybody."""


@dataclass(frozen=True)
class AuditOffer:
    """The public terms on which one metric about the same people is sold.

    Parameters
    ----------
    names : the mechanisms that may answer, keys of `MECHANISM_LAWS`, and `TABLES` and `ROWS`.
    metric : the metric asked for.
    people : in the smallest stratum that the metric looks at, at least 2.
    queries : the most models in a batch.
    limit : what a batch may reveal about members of a group of the least size that its shares allow.
    epsilon_min, epsilon_max : the least and the most that one batch may spend.
    delta : of each batch.
    chooses : whether a mechanism answers only if it stays within the limit, or else tells least.
    released : epsilon of a separate release of these people's attributes.
    """

    names: tuple[str, ...]
    metric: str
    people: int
    queries: int
    limit: Limit
    epsilon_min: float
    epsilon_max: float = math.inf
    delta: float = 0.0
    chooses: bool = False
    released: float = 0.0

    @property
    def least(self) -> int:
        """Least number of people in the smaller group."""
        return self.limit.shares.allowed(self.people)[0]


@dataclass(frozen=True)
class _Way:
    """A batch of one epsilon and its mechanism; `size` is its number of rows or cells."""

    name: str
    size: int
    epsilon: float


def most_by_budget(people: int, least: int, epsilon: float, delta: float = 0.0) -> float:
    """Return the proved bound on the balanced accuracy of any attack that spends a whole budget; see the module.

    Of at least 2 people, at least `least` (at least 1) are in the smaller group.
    """
    others = max(least, people - least)
    turned = 1 / (1 + math.exp(min(epsilon, 700.0)))
    apart = (others + 1) / others * (math.tanh(epsilon / 2) + 4 * delta * turned)
    third = 1 - math.exp(-epsilon) / 2 if delta == 0 else 1.0
    return min(1.0, 0.5 + apart / 2, third)


@lru_cache(maxsize=1024)
def revealed_by_budget(offer: AuditOffer, epsilon: float) -> float:
    """Return the balanced accuracy, in [1/2, 1], of the best known attack with a whole budget, at the worst split.

    An estimate, not a bound (see the module), but never above the proved bound.
    """
    most = _most(offer, epsilon)
    if epsilon > _SURE or most >= 1:
        return most
    ways = [way for each in _prices(offer, epsilon) for way in _ways(offer, each)]
    ways.sort(key=lambda way: _rate(offer, way))
    together = {way: _spent(offer, way, epsilon, 1.0) for way in ways[-_SCREENED:]}
    best = sorted(together, key=lambda way: together[way])[-_TRIED:]
    found = max((_found_by(offer, way, epsilon) for way in best), default=told_apart([_response(offer.released)]))
    return min(found, most)


def that_tell_most(names: Sequence[str], people: int, least: int) -> tuple[str, ...]:
    """Return the mechanisms an attacker would use, of those that answer within one limit.

    Cells tell more than a cube (rows of a ball included), and a cube more than separate noise on sums or gaps: tested,
    not proved. With few people, groups of one or two, or nearly equal groups, any mechanism may tell most, and all are
    returned; except that `cube` is dropped beside two cubes, which are modelled as one.
    """
    kind = {name: name if name in (TABLES, ROWS) else _kind(name) for name in names}
    if "directions" in kind.values():
        names = [name for name in names if kind[name] != "cube"]
    if people < _MANY or not _SEVERAL <= least <= people / 3:
        return tuple(names)
    tell_less: tuple[str, ...] = ("sums", "gaps")
    if "cells" in kind.values():
        tell_less += ("cube", "directions", ROWS)
    elif not {"cube", "directions"} & set(kind.values()):
        tell_less = ()
    return tuple(name for name in names if kind[name] not in tell_less)


def that_differ(offers: Sequence[AuditOffer]) -> list[AuditOffer]:
    """Return the offers without those about metrics whose noise reveals no more than another offer's.

    That is the same noise; or more noise, where no mechanism is chosen by a limit. Laplace, normal and Cauchy noise of
    a larger scale is noise of a smaller one plus independent noise; cubes are compared by the same rule.
    """
    noises = {offer: _noises(offer) for offer in offers}
    differ: list[AuditOffer] = []
    for offer in sorted(noises, key=lambda candidate: sum(law.scale for law in noises[candidate])):
        alike = (zip(noises[each], noises[offer], strict=True) for each in differ if _sold(each) == _sold(offer))
        told = (all(one == more or _is_less(one, more) * (not offer.chooses) for one, more in laws) for laws in alike)
        if not any(told):
            differ.append(offer)
    return differ


def _sold(offer: AuditOffer) -> object:
    """Return the key that offers share if only their noise differs."""
    return replace(offer, metric=""), [_batch_sizes(offer, name, _RESPONSE_FROM) for name in offer.names]


def _noises(offer: AuditOffer) -> list[NoiseDistribution]:
    return [
        _noise(offer, _Way(name, queries, epsilon))
        for name, queries, epsilon in product(offer.names, (1, offer.queries), (0.1, 1.0))
        if name != ROWS and _kind(name) not in ("cells", "attributes")
    ]


def _is_less(less: NoiseDistribution, more: NoiseDistribution) -> bool:
    if not (isinstance(less, Scaled) and isinstance(more, Scaled)) or isinstance(less, Uniform):
        return False
    return less.scale <= more.scale and replace(less, scale=more.scale) == more


def _found_by(offer: AuditOffer, way: _Way, epsilon: float) -> float:
    return found_out(lambda n, _: _spent(offer, way, epsilon, n / offer.people), offer.people, offer.least)


def _most(offer: AuditOffer, epsilon: float) -> float:
    return 1.0 if offer.delta else most_by_budget(offer.people, offer.least, epsilon + offer.released)


def budget_that_keeps(offers: Sequence[AuditOffer], accuracy: float) -> float | None:
    """Return the largest of `BUDGETS` that reveals at most this accuracy for each offer; None if none does."""

    def keeps(budget: float) -> bool:
        # The proved bound is cheap.
        return all(_most(each, budget) <= accuracy or revealed_by_budget(each, budget) <= accuracy for each in offers)

    low, high = -1, len(BUDGETS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(BUDGETS[middle]) else (low, middle)
    return BUDGETS[low] if low >= 0 else None


def _prices(offer: AuditOffer, epsilon: float) -> set[float]:
    """Return the batch epsilons to try; mostly the same for every budget, so that looks are cached."""
    most = min(epsilon, offer.epsilon_max)
    highest = math.floor(math.log2(most) * _PARTS)
    found = {most} | {2.0 ** ((highest - step) / _PARTS) for step in _STEPS}
    found |= {epsilon / parts for parts in range(1, _PARTS + 1)}
    if 0.5 < offer.limit.accuracy < 1:
        found.add(math.log(offer.limit.accuracy / (1 - offer.limit.accuracy)))  # where the limit begins to bind
    least = max(offer.epsilon_min, epsilon / _PARTS_MAX)
    return {each for each in found if least <= each <= most} or {most}


@lru_cache(maxsize=4096)
def _ways(offer: AuditOffer, epsilon: float) -> tuple[_Way, ...]:
    """Return the ways to answer a batch of an epsilon."""
    found = [_Way(name, size, epsilon) for name in offer.names for size in _batch_sizes(offer, name, epsilon)]
    if offer.limit.accuracy >= one_person(epsilon):
        return tuple(found)
    # Rows above the limit get the noise of a smaller epsilon, which is tried as well.
    inside = [
        way
        for way in found
        if not (offer.chooses or way.name == ROWS) or _alone(offer, way) <= offer.limit.accuracy + _ROUNDED
    ]
    return tuple(inside or sorted(found, key=lambda way: _alone(offer, way))[:1])


def _batch_sizes(offer: AuditOffer, name: str, epsilon: float) -> list[int]:
    """Return the numbers of rows or cells among which an attacker chooses; empty where nothing is told."""
    n, limit, kind = offer.people, offer.limit, _kind(name)
    if kind == "attributes":
        return [1] if epsilon >= _RESPONSE_FROM or not offer.chooses else []
    if kind == "cells":
        smallest = STRATUM if name == TABLES else least_people_within(epsilon, limit)
        within = cells_within(n, epsilon, limit, besides=name != TABLES) or cells_within(n, epsilon, limit)
        cells = min(within, max(2 if name == TABLES else 1, n // smallest))
        return [cells] if cells > 1 else []
    a_model = 2 if name == ROWS else 1 if kind == "gaps" else find_metric(offer.metric).sums_a_stratum
    most = offer.queries * a_model
    # Two cubes have an additional side for each common row.
    sides = most + min(most, RANKS[-1]) if kind == "directions" else most
    return sorted({most, sides} | {4**i for i in range(most.bit_length()) if 4**i < most})


def _rate(offer: AuditOffer, way: _Way) -> float:
    """Return how much a way tells per epsilon, before anybody is known, at the nearest epsilon of the common grid."""
    return _rate_at(offer, replace(way, epsilon=2.0 ** (round(math.log2(way.epsilon) * _PARTS) / _PARTS)))


@lru_cache(maxsize=4096)
def _rate_at(offer: AuditOffer, way: _Way) -> float:
    told = min(told_apart(_looks(offer, way, 1.0)), one_person(way.epsilon, offer.delta))
    return distance(told) ** 2 / way.epsilon


@lru_cache(maxsize=4096)
def _alone(offer: AuditOffer, way: _Way) -> float:
    """Return the balanced accuracy that one batch reveals."""
    told = found_out(lambda n, _: told_apart(_looks(offer, way, n / offer.people)), offer.people, offer.least)
    return min(told, one_person(way.epsilon, offer.delta))


def _spent(offer: AuditOffer, way: _Way, epsilon: float, unknown_share: float) -> float:
    """Return what a whole budget's batches, and one of the rest, reveal about the people who are still unknown."""
    whole = math.floor(epsilon / way.epsilon * (1 + 1e-12))
    looks = _looks(offer, way, unknown_share, whole)
    rest = epsilon - whole * way.epsilon
    if rest >= max(offer.epsilon_min, 1e-3 * epsilon):
        sizes = _batch_sizes(offer, way.name, rest)
        looks += (
            _looks(offer, _Way(way.name, min(sizes[-1], max(way.size, sizes[0])), rest), unknown_share) if sizes else []
        )
    return told_apart([*looks, _response(offer.released)] if offer.released else looks)


def _response(epsilon: float) -> SinglePersonTest:
    kept = 1 / (1 + math.exp(-epsilon))
    return SinglePersonTest(np.array([kept, 1 - kept]), np.array([1 - kept, kept]))


def _looks(offer: AuditOffer, way: _Way, unknown_share: float, times: int = 1) -> list[SinglePersonTest]:
    """Return the looks of `times` batches, where only a share of the people is still unknown."""
    unknown_share = max(round(unknown_share, 2), 0.01)
    one, a_batch = _looked(offer, way, unknown_share)
    looks = [replace(one, times=max(1, round(times * a_batch * one.times)))]
    if way.name != TABLES and _kind(way.name) == "cells":
        n, n0 = _part(offer.people, offer.least, unknown_share)
        if n >= CROWDS and cells_within(offer.people, way.epsilon, offer.limit, besides=True) >= way.size:
            looks.append(replace(_looked_at_residual(n, n0, way.epsilon), times=times))
    return looks


@lru_cache(maxsize=1024)
def _looked_at_residual(n: int, n0: int, epsilon: float) -> SinglePersonTest:
    return look_at_residual(n, n0, epsilon)


@lru_cache(maxsize=8192)
def _looked(offer: AuditOffer, way: _Way, unknown_share: float) -> tuple[SinglePersonTest, float]:
    """Return one look, and the number of such looks in a batch."""
    n, n0, kind = offer.people, offer.least, _kind(way.name)
    if kind == "attributes":
        return _response(way.epsilon), 1.0
    if kind == "cells":
        return look_at_cells(*_part(n, n0, unknown_share), way.size, way.epsilon), 1.0
    of_rows = way.name == ROWS
    law = noise_on_count(way.size + 1, way.epsilon) if of_rows else scaled(_noise(offer, way), n0 * (n - n0) / n)
    law, n, n0, smaller = small(law, n, n0)
    if isinstance(law, CubeNoise):
        return look_at_cube(law, *_part(n, n0, unknown_share), max(1, round(way.size / smaller))), 1.0
    return look_at_rows(law, *_part(n, n0, unknown_share), 1), way.size / smaller


def _kind(name: str) -> str:
    return {TABLES: "cells", ROWS: "cube"}.get(name) or MECHANISM_LAWS[name].noise_on


def _noise(offer: AuditOffer, way: _Way) -> NoiseDistribution:
    """Return the distribution of the noise on a batch's gaps."""
    n, n0 = offer.people, offer.least
    proxy = offer.metric if len(find_metric(offer.metric).parts) == 1 else "abs_sp"
    public = MECHANISM_LAWS[way.name]
    error = public.error(NoiseInputs(proxy, n0, n - n0, way.size, way.epsilon, offer.delta, shares=offer.limit.shares))
    assert error is not None, "those that are known add noise"
    return error


def _part(n: int, n0: int, unknown_share: float) -> tuple[int, int]:
    return max(2, math.ceil(n * unknown_share)), max(1, math.ceil(n0 * unknown_share))


def knows(names: Sequence[str]) -> bool:
    """Return whether `revealed_by_budget` covers all of these mechanisms."""
    return all(name in (TABLES, ROWS) or is_known(name) for name in names)
