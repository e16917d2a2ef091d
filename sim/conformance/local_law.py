r"""The distribution of sanitised attributes, tested against the true ones.

A person's value is v; a column has k values and an epsilon e. By the definitions in docs/release.md, computed here by
hand, places are 1 independently of each other, v's with probability p and every other one with q:

* ``rappor``: p = e^(e/2) / (e^(e/2) + 1), q = 1 - p;
* ``oue``: p = 1/2, q = 1 / (e^e + 1);
* ``blh``, ``olh``: p = e^e / (e^e + g - 1), q = 1/g, with g = 2 and g = round(e^e) + 1;
* ``the``: one-hot numbers with Laplace noise of scale 2/e are above the threshold t = 2/e ln u, where u is the larger
  root of 3 c u^2 - 2 (1 + c) u + 1 with c = e^(-e/2): p = 1 - c u / 2, q = 1 / (2u);

or a set of places is 1, where all sets of one size are equally likely given whether they contain v:

* ``grr``: one place, v with p = e^e / (e^e + k - 1);
* ``ss``: omega = max(1, round(k / (e^e + 1))) of them, v among them with p = omega e^e / (omega e^e + k - omega);

or, for ``the-server``, the noisy numbers themselves are released.

Each place becomes a uniform number, by a draw between P(less) and P(not more), given the places before it, the person's
own first. These numbers are independent, for one person and for all, and are tested like all noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bytes
from fairwall.laws.noise.distributions import Laplace
from sim.conformance import bounds
from sim.conformance.calls import ProtocolViolation
from sim.conformance.independence_checks import AnsweredBatch, require_nothing_depends
from sim.conformance.promise import Array, cdf

_P = 1e-12

NUMBERS = "the-server"
"""Protocol that releases numbers; all others release zeros and ones."""

PROTOCOLS = ("grr", "blh", "olh", "rappor", "oue", "ss", "the", NUMBERS)
"""Protocols whose distribution is known here."""


@dataclass(frozen=True, eq=False)
class EncodedColumn:
    """A column's uniform numbers: for each person's `own` place, and for the `others` in circular order after it.

    Shapes are (people,) and (people, values - 1), with NaN where a place follows from those before it; `values` are the
    true ones.
    """

    values: Bytes
    own: Array
    others: Array


def uniform(
    encodings: Sequence[NDArray[Any]], values: Bytes, epsilons: Sequence[float], protocol: str
) -> list[EncodedColumn]:
    """Map a release to uniform numbers, one part per column.

    `encodings` and `epsilons` have an entry per column, encodings of shape (people, values of the column). The true
    `values` have shape (people, columns).
    """
    found = []
    for encoded, true, epsilon in zip(encodings, values.T, epsilons, strict=True):
        # A person's own place comes first, then the following ones.
        k = encoded.shape[1]
        turned = np.take_along_axis(encoded, (true[:, np.newaxis] + np.arange(k)) % k, axis=1)
        numbers = _uniform(turned, k, epsilon, protocol)
        found.append(EncodedColumn(true, numbers[:, 0], numbers[:, 1:]))
    return found


def _uniform(turned: NDArray[Any], k: int, epsilon: float, protocol: str) -> Array:
    rng, odds = np.random.default_rng(), math.exp(min(epsilon, 600.0))
    if protocol == NUMBERS:
        return cdf(turned - (np.arange(k) == 0), Laplace(2 / epsilon))
    if protocol in ("grr", "ss"):
        size = 1 if protocol == "grr" else max(1, round(k / (odds + 1)))
        if not (turned.sum(axis=1) == size).all():
            raise ProtocolViolation(f"{protocol} releases {size} of a person's places, not fewer or more")
        inside = turned == 1
        wanted = size - np.cumsum(inside, axis=1) + inside
        likely = wanted / (k - np.arange(k))
        likely[:, 0] = size * odds / (size * odds + k - size)
    else:
        likely = np.tile(_bits(protocol, k, epsilon, odds), (len(turned), 1))
    drawn = rng.random(turned.shape)
    # 0 comes first: its numbers are below 1 - P(1).
    numbers: Array = np.where(turned == 1, 1 - likely * drawn, (1 - likely) * drawn)
    return np.where((likely <= 0) | (likely >= 1), np.nan, numbers)


def _bits(protocol: str, k: int, epsilon: float, odds: float) -> Array:
    """Return the probabilities that a person's own place, and each other one, is 1."""
    half = math.exp(-epsilon / 2)
    match protocol:
        case "rappor":
            own, other = 1 / (1 + half), half / (1 + half)
        case "oue":
            own, other = 0.5, 1 / (odds + 1)
        case "the":
            root = ((1 + half) + math.sqrt(1 - half + half**2)) / (3 * half)
            own, other = 1 - half * root / 2, 1 / (2 * root)
        case _:
            hashes = 2 if protocol == "blh" else round(odds) + 1
            own, other = odds / (odds + hashes - 1), 1 / hashes
    return np.array([own, *[other] * (k - 1)])


def require_law(parts: Sequence[EncodedColumn]) -> None:
    """Demand that a release has its protocol's distribution, with people and columns independent of each other."""
    batches = []
    for number, part in enumerate(parts, start=1):
        middle = part.values.mean()
        for value in np.unique(part.values):
            here = part.values == value
            for place, numbers in enumerate([part.own, *part.others.T]):
                what = {"caller": "", "column": number, "value": f"column {number}, value {value}, {place} further"}
                known = numbers[here & ~np.isnan(numbers)]
                if len(known):
                    batches.append(AnsweredBatch(what, 2 * known - 1, np.full(len(known), value - middle), known))
    require_nothing_depends(batches)
    for (one, first), (other, second) in combinations(enumerate(parts, start=1), 2):
        if bounds.is_unlikely_product(2 * first.own - 1, 2 * second.own - 1, _P):
            raise ProtocolViolation(f"columns {one} and {other} are not drawn each by itself")
    for number, part in enumerate(parts, start=1):
        for lag in (1, 2):
            pairs = len(part.own) // (2 * lag) * 2 * lag
            before, after = (2 * part.own[:pairs] - 1).reshape(-1, 2, lag).swapaxes(0, 1)
            if bounds.is_unlikely_product(before.ravel(), after.ravel(), _P):
                raise ProtocolViolation(f"column {number}: people are not drawn each by themselves")
