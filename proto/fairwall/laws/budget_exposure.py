r"""What a whole budget gives away, however it is split into batches: a proved limit, and what attacks come to.

**Proved** (`most_by_budget`): whatever is bought, in whatever order, and whatever later questions are chosen by. All
that a budget buys is one (epsilon, delta)-private look Y at n people, of whom N0 are disadvantaged, which is public,
and else everybody as likely as anybody. Let S be all the disadvantaged but one, J, who is any of the other
m = n - N0 + 1 people with the same probability. Y's density is f_J times what it is where S alone are disadvantaged: a
neighbour, so that f_J lies in [1/a, a], a = e^epsilon, for delta 0. Let U be those who are guessed, x their share of
the m people, and w1 and w0 the means of f_j over those in U and not in U. Then J is named with a probability that
exceeds another one's by

    E[sum_j f_j (1{j in U} - x)] / (m - 1)  =  m / (m - 1) E[x (1-x) (w1 - w0)],  where  E[x w1 + (1-x) w0] = 1.

With t = tanh(epsilon/2), x (1-x) (w1 - w0) - t (x w1 + (1-x) w0 - 1) is linear in w1 and w0. With w1 = a, w0 = 1/a it
is concave in x and largest, t, at x = 1/(1+a); w1 = 1/a is better only where x > 1 - t, and comes to t (1 - 1/a) at
most. So nobody has a balanced accuracy above

    1/2 + m / (m-1) t / 2,

and either group may be called the disadvantaged one. Randomised response has it but for m / (m-1), which is what
knowing N0 is worth. Both hypotheses are also within epsilon of the same third one, which bounds it by
1 - e^-epsilon / 2, and for two people that is attained. A delta lets f leave [1/a, a] in parts of mass delta, which by
the terms above adds at most 4 delta / (1+a) to t.

**Played** (`revealed_by_budget`): what the best attack known here comes to, by the laws of the mechanisms that answer,
for groups of the least size. It is no bound: looks are taken for independent (`fairwall.laws.looks`), and somebody may
find a better attack. Looked at are splits into batches of one epsilon, and one more of what is left, all of them sold
in that one way which tells most. Mixing epsilons or ways does no better where looks are nearly Gaussian, as what they
tell adds up then: one price is the best. All that was bought is counted as read, noisy counts and attributes
themselves, so that free answers add nothing. Counts by group are cells, of `STRATUM` people on average at least, or
rows of one ball, two for each model at most, at no more of epsilon than a request's limit allows. A release of the same
people's attributes tells each as randomised response of all its epsilon does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np

from fairwall.laws.cube import CubeNoise
from fairwall.laws.exposure import Limit, cells_within, is_known, least_people_within, noise_on_count, one_person
from fairwall.laws.looks import (
    Look,
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
from fairwall.laws.low_rank import RANKS
from fairwall.laws.mechanisms import MECHANISM_LAWS, Batch
from fairwall.laws.metric import find_metric
from fairwall.laws.noise import Law, Scaled, Uniform
from fairwall.laws.residuals import CROWDS

STRATUM = 50
"""How many people a stratum of counts by group has on average at least."""

TABLES, ROWS = "tables", "rows"
"""What counts by group are called among the ways in which a budget is spent: tables, or rows of one ball."""

BUDGETS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""Budgets that are looked at for what they keep."""

_STEPS, _PARTS, _PARTS_MAX = (*range(13), 16, 20, 24, 28), 4, 256
"""By how many quarters of a halving batches are smaller than the largest; into how many a budget is parted."""

_SCREENED, _TRIED = 12, 3
"""How many splits are put together, those that tell most batch by batch; in how many who is found out is left out."""

_MANY, _SEVERAL = 150, 3
"""From so many people on in a stratum, and in the smaller group, is known which mechanism tells most within a limit."""

_RESPONSE_FROM = 1.0
"""Below this epsilon `recommended` never takes randomised response: counts that are moved towards no gap err less."""

_ROUNDED = 1e-3
"""So near a limit is taken for within it."""

_SURE = 30.0
"""A budget beyond this gives everybody away, as far as is told here."""


@dataclass(frozen=True)
class Offer:
    """What is sold about the same people: public, all of it.

    Parameters
    ----------
    names : the mechanisms that may answer, keys of `MECHANISM_LAWS`, and `TABLES` and `ROWS`.
    metric : what is asked for.
    people : in the smallest stratum that it looks at, at least 2.
    queries : the most models in a batch.
    limit : what a batch may reveal of whoever is in a group of the least size that its shares allow.
    epsilon_min, epsilon_max : the least and the most that one batch may spend.
    delta : of each batch.
    chooses : whether a mechanism answers only if it stays within the limit, or else tells least.
    released : what these people's attributes are released for besides, in epsilon.
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
        """How many people the smaller group has at least."""
        return self.limit.shares.allowed(self.people)[0]


@dataclass(frozen=True)
class _Way:
    """A batch of one epsilon, answered by a mechanism: about so many rows, or from so many cells."""

    name: str
    size: int
    epsilon: float


def most_by_budget(people: int, least: int, epsilon: float, delta: float = 0.0) -> float:
    """Return the limit to the balanced accuracy of any attack that spends a whole budget; it is proved above.

    Parameters
    ----------
    people, least : how many people there are, and in the smaller group; at least 2 and 1.
    epsilon, delta : of the budget.
    """
    others = max(least, people - least)
    turned = 1 / (1 + math.exp(min(epsilon, 700.0)))
    apart = (others + 1) / others * (math.tanh(epsilon / 2) + 4 * delta * turned)
    third = 1 - math.exp(-epsilon) / 2 if delta == 0 else 1.0
    return min(1.0, 0.5 + apart / 2, third)


@lru_cache(maxsize=1024)
def revealed_by_budget(offer: Offer, epsilon: float) -> float:
    """Return the balanced accuracy of the best attack known here that spends a whole budget, at the worst split of it.

    An estimate, and no bound: see above. It is in [1/2, 1], and never above what is proved.
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
    """Return, of mechanisms that answer within one limit, those that an attacker would ask: the others tell less.

    Cells tell more than a cube does, rows of a ball among them, and a cube more than noise of their own on sums and on
    gaps: tried out, see its test, and not proved. Of few people, of groups of one or two, and of groups that have to be
    equal, anything may;
    but for one cube, which two are reckoned with as.
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


def that_differ(offers: Sequence[Offer]) -> list[Offer]:
    """Leave out offers about metrics by whose noise no more is found out than by another offer's.

    That is the same noise; or more of it, where nobody chooses by a limit what is sold. Laplace, normal and Cauchy
    noise of a larger scale is noise of a smaller one and some more, and cubes are compared as these are.
    """
    noises = {offer: _noises(offer) for offer in offers}
    differ: list[Offer] = []
    for offer in sorted(noises, key=lambda each: sum(law.scale for law in noises[each])):
        alike = (zip(noises[each], noises[offer], strict=True) for each in differ if _sold(each) == _sold(offer))
        told = (all(one == more or _is_less(one, more) * (not offer.chooses) for one, more in laws) for laws in alike)
        if not any(told):
            differ.append(offer)
    return differ


def _sold(offer: Offer) -> object:
    """Return what offers have in common of which only the noise differs."""
    return replace(offer, metric=""), [_batch_sizes(offer, name, _RESPONSE_FROM) for name in offer.names]


def _noises(offer: Offer) -> list[Law]:
    return [
        _noise(offer, _Way(name, queries, epsilon))
        for name, queries, epsilon in product(offer.names, (1, offer.queries), (0.1, 1.0))
        if name != ROWS and _kind(name) not in ("cells", "attributes")
    ]


def _is_less(less: Law, more: Law) -> bool:
    if not (isinstance(less, Scaled) and isinstance(more, Scaled)) or isinstance(less, Uniform):
        return False
    return less.scale <= more.scale and replace(less, scale=more.scale) == more


def _found_by(offer: Offer, way: _Way, epsilon: float) -> float:
    return found_out(lambda n, _: _spent(offer, way, epsilon, n / offer.people), offer.people, offer.least)


def _most(offer: Offer, epsilon: float) -> float:
    return 1.0 if offer.delta else most_by_budget(offer.people, offer.least, epsilon + offer.released)


def budget_that_keeps(offers: Sequence[Offer], accuracy: float) -> float | None:
    """Return the largest of `BUDGETS` that reveals no more than so much, None if even the least reveals more."""

    def keeps(budget: float) -> bool:
        # What is proved takes no time.
        return all(_most(each, budget) <= accuracy or revealed_by_budget(each, budget) <= accuracy for each in offers)

    low, high = -1, len(BUDGETS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(BUDGETS[middle]) else (low, middle)
    return BUDGETS[low] if low >= 0 else None


def _prices(offer: Offer, epsilon: float) -> set[float]:
    """Return what batches may cost that are looked at; mostly the same for every budget, so that looks are shared."""
    most = min(epsilon, offer.epsilon_max)
    highest = math.floor(math.log2(most) * _PARTS)
    found = {most} | {2.0 ** ((highest - step) / _PARTS) for step in _STEPS}
    found |= {epsilon / parts for parts in range(1, _PARTS + 1)}
    if 0.5 < offer.limit.accuracy < 1:
        found.add(math.log(offer.limit.accuracy / (1 - offer.limit.accuracy)))  # from where on a limit binds
    least = max(offer.epsilon_min, epsilon / _PARTS_MAX)
    return {each for each in found if least <= each <= most} or {most}


@lru_cache(maxsize=4096)
def _ways(offer: Offer, epsilon: float) -> tuple[_Way, ...]:
    """Return how a batch of an epsilon may be answered."""
    found = [_Way(name, size, epsilon) for name in offer.names for size in _batch_sizes(offer, name, epsilon)]
    if offer.limit.accuracy >= one_person(epsilon):
        return tuple(found)
    # Rows that tell more than the limit have the noise of a smaller epsilon, which is looked at as well.
    inside = [
        way
        for way in found
        if not (offer.chooses or way.name == ROWS) or _alone(offer, way) <= offer.limit.accuracy + _ROUNDED
    ]
    return tuple(inside or sorted(found, key=lambda way: _alone(offer, way))[:1])


def _batch_sizes(offer: Offer, name: str, epsilon: float) -> list[int]:
    """Return numbers of rows, or of cells, that an attacker chooses among; none where nothing is told."""
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
    # Two cubes have a side more for each row that models have in common.
    sides = most + min(most, RANKS[-1]) if kind == "directions" else most
    return sorted({most, sides} | {4**i for i in range(most.bit_length()) if 4**i < most})


def _rate(offer: Offer, way: _Way) -> float:
    """Return how much a way tells for its price, of people of whom nothing is found out yet: enough to screen ways.

    It is that of the nearest price which every budget looks at, so that it is worked out once for all of them.
    """
    return _rate_at(offer, replace(way, epsilon=2.0 ** (round(math.log2(way.epsilon) * _PARTS) / _PARTS)))


@lru_cache(maxsize=4096)
def _rate_at(offer: Offer, way: _Way) -> float:
    told = min(told_apart(_looks(offer, way, 1.0)), one_person(way.epsilon, offer.delta))
    return distance(told) ** 2 / way.epsilon


@lru_cache(maxsize=4096)
def _alone(offer: Offer, way: _Way) -> float:
    """Return what one batch reveals by itself."""
    told = found_out(lambda n, _: told_apart(_looks(offer, way, n / offer.people)), offer.people, offer.least)
    return min(told, one_person(way.epsilon, offer.delta))


def _spent(offer: Offer, way: _Way, epsilon: float, left: float) -> float:
    """Return what is revealed by the batches that a budget pays for, and one of the rest, to a part of the people."""
    whole = math.floor(epsilon / way.epsilon * (1 + 1e-12))
    looks = _looks(offer, way, left, whole)
    rest = epsilon - whole * way.epsilon
    if rest >= max(offer.epsilon_min, 1e-3 * epsilon):
        sizes = _batch_sizes(offer, way.name, rest)
        looks += _looks(offer, _Way(way.name, min(sizes[-1], max(way.size, sizes[0])), rest), left) if sizes else []
    return told_apart([*looks, _response(offer.released)] if offer.released else looks)


def _response(epsilon: float) -> Look:
    kept = 1 / (1 + math.exp(-epsilon))
    return Look(np.array([kept, 1 - kept]), np.array([1 - kept, kept]))


def _looks(offer: Offer, way: _Way, left: float, times: int = 1) -> list[Look]:
    """Return the looks of so many batches, where a part of the people is left whose attributes are not known yet."""
    left = max(round(left, 2), 0.01)
    one, a_batch = _looked(offer, way, left)
    looks = [replace(one, times=max(1, round(times * a_batch * one.times)))]
    if way.name != TABLES and _kind(way.name) == "cells":
        n, n0 = _part(offer.people, offer.least, left)
        if n >= CROWDS and cells_within(offer.people, way.epsilon, offer.limit, besides=True) >= way.size:
            looks.append(replace(_looked_at_residual(n, n0, way.epsilon), times=times))
    return looks


@lru_cache(maxsize=1024)
def _looked_at_residual(n: int, n0: int, epsilon: float) -> Look:
    return look_at_residual(n, n0, epsilon)


@lru_cache(maxsize=8192)
def _looked(offer: Offer, way: _Way, left: float) -> tuple[Look, float]:
    """Return one look, and how many of its kind a batch has."""
    n, n0, kind = offer.people, offer.least, _kind(way.name)
    if kind == "attributes":
        return _response(way.epsilon), 1.0
    if kind == "cells":
        return look_at_cells(*_part(n, n0, left), way.size, way.epsilon), 1.0
    of_rows = way.name == ROWS
    law = noise_on_count(way.size + 1, way.epsilon) if of_rows else scaled(_noise(offer, way), n0 * (n - n0) / n)
    law, n, n0, smaller = small(law, n, n0)
    if isinstance(law, CubeNoise):
        return look_at_cube(law, *_part(n, n0, left), max(1, round(way.size / smaller))), 1.0
    return look_at_rows(law, *_part(n, n0, left), 1), way.size / smaller


def _kind(name: str) -> str:
    return {TABLES: "cells", ROWS: "cube"}.get(name) or MECHANISM_LAWS[name].noise_on


def _noise(offer: Offer, way: _Way) -> Law:
    """Return the law of what is added to the gaps of a batch."""
    n, n0 = offer.people, offer.least
    proxy = offer.metric if len(find_metric(offer.metric).parts) == 1 else "abs_sp"
    public = MECHANISM_LAWS[way.name]
    error = public.error(Batch(proxy, n0, n - n0, way.size, way.epsilon, offer.delta, shares=offer.limit.shares))
    assert error is not None, "those that are known add noise"
    return error


def _part(n: int, n0: int, left: float) -> tuple[int, int]:
    return max(2, math.ceil(n * left)), max(1, math.ceil(n0 * left))


def knows(names: Sequence[str]) -> bool:
    """Return whether `revealed_by_budget` knows what all of these give away."""
    return all(name in (TABLES, ROWS) or is_known(name) for name in names)
