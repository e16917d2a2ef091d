r"""What sanitised attributes must look like, told by somebody who holds the true ones.

A person's value is v. The protocols treat values alike: the place of v is 1 with probability p, every other place with
probability q. For k values and a column's epsilon e, by the definitions in docs/release.md, worked out here by hand:

* ``grr``: p = e^e / (e^e + k - 1), q = 1 / (e^e + k - 1), and one place of a row is 1;
* ``rappor``: p = e^(e/2) / (e^(e/2) + 1), q = 1 - p;
* ``oue``: p = 1/2, q = 1 / (e^e + 1).

People and columns are independent of each other. So each count here is binomial, and by Chernoff's bound its share is
as far from its probability as N KL(share, probability) > ln(2 / P) with a probability of at most P.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.conformance import bounds
from sim.conformance.calls import Violation
from sim.conformance.law import FALSE_ALARM

_P = FALSE_ALARM / 100

Bits = NDArray[Any]
Codes = NDArray[np.uint8]

PLACES: Mapping[str, Callable[[int, float], tuple[float, float]]] = {
    "grr": lambda k, e: (1 / (1 + (k - 1) * math.exp(-e)), math.exp(-e) / (1 + (k - 1) * math.exp(-e))),
    "rappor": lambda _, e: (1 / (1 + math.exp(-e / 2)), math.exp(-e / 2) / (1 + math.exp(-e / 2))),
    "oue": lambda _, e: (0.5, math.exp(-e) / (1 + math.exp(-e))),
}
"""From the number of values and epsilon to p and q."""


def require_law(encodings: Sequence[Bits], values: Codes, epsilons: Sequence[float], protocol: str) -> None:
    """Demand that a release has its protocol's law, one of `PLACES`.

    Each column has its `encodings`, uint8 of shape (people, values of the column), and its epsilon. The true `values`
    are of shape (people, columns). A sound server is accused with a probability of at most `FALSE_ALARM` / 100.
    """
    # Each column as a whole, its places by value, its neighbours; each pair of columns.
    count = len(encodings)
    looks = count * 2 + sum(part.shape[1] ** 2 for part in encodings) + math.comb(count, 2)
    at_most = _P / looks
    hits, own = [], []
    for number, (part, epsilon) in enumerate(zip(encodings, epsilons, strict=True), start=1):
        column, k = values[:, number - 1], part.shape[1]
        p, q = PLACES[protocol](k, epsilon)
        if protocol == "grr" and not (part.sum(axis=1) == 1).all():
            raise Violation(f"column {number}: a person is released as none or several values; grr says one")
        hit = part[np.arange(len(part)), column] == 1
        _require_share(hit, p, at_most, f"column {number}: the true value is among what is released")
        for value in range(k):
            rows = part[column == value]
            for place in range(k):
                what = f"column {number}: value {value} is released as value {place}"
                _require_share(rows[:, place] == 1, p if place == value else q, at_most, what)
        pairs = len(hit) // 2 * 2
        both = hit[0:pairs:2] & hit[1:pairs:2]
        _require_share(both, p * p, at_most, f"column {number}: two neighbours' true values are released")
        hits.append(hit)
        own.append(p)
    for one, other in combinations(range(count), 2):
        what = f"columns {one + 1} and {other + 1}: both true values are released"
        _require_share(hits[one] & hits[other], own[one] * own[other], at_most, what)


def require_unrelated(
    one: Sequence[Bits],
    other: Sequence[Bits],
    values: Codes,
    epsilons: Sequence[tuple[float, float]],
    protocol: str,
) -> None:
    """Demand that two releases of the same people were drawn each by itself.

    `epsilons` has each column's in the one and in the other; all else is as in `require_law`.
    """
    for number, (first, second, spent) in enumerate(zip(one, other, epsilons, strict=True)):
        column, k = values[:, number], first.shape[1]
        here, there = (part[np.arange(len(part)), column] == 1 for part in (first, second))
        both = PLACES[protocol](k, spent[0])[0] * PLACES[protocol](k, spent[1])[0]
        what = f"column {number + 1}: the true value is among what is released, in two releases"
        _require_share(here & there, both, _P / len(one), what)


def _require_share(found: NDArray[np.bool_], probability: float, at_most: float, what: str) -> None:
    """Demand that something happens as often as it should."""
    if len(found) and len(found) * bounds.divergence(float(found.mean()), probability) > math.log(2 / at_most):
        raise Violation(f"{what}, for {found.mean():.1%} of {len(found)}; it should be {probability:.1%}")
