r"""What sanitised attributes must look like, told by somebody who holds the true ones.

A person's value is v, a column has k values and an epsilon e. By the definitions in docs/release.md, worked out here by
hand, places are 1 independently of each other, that of v with probability p and every other one with q:

* ``rappor``: p = e^(e/2) / (e^(e/2) + 1), q = 1 - p;
* ``oue``: p = 1/2, q = 1 / (e^e + 1);
* ``blh``, ``olh``: p = e^e / (e^e + g - 1), q = 1/g, with g = 2 and g = round(e^e) + 1;
* ``the``: one-hot numbers with Laplace noise of scale 2/e are above the threshold t = 2/e ln u, where u is the larger
  root of 3 c u^2 - 2 (1 + c) u + 1 with c = e^(-e/2): p = 1 - c u / 2, q = 1 / (2u);

or a set of places is 1, of all sets of its size alike but for whether v is in it:

* ``grr``: one place, v with p = e^e / (e^e + k - 1);
* ``ss``: omega = max(1, round(k / (e^e + 1))) of them, v among them with p = omega e^e / (omega e^e + k - omega);

or, of ``the-server``, the noisy numbers themselves are told.

Each place becomes a number that is uniform, by a draw between P(less) and P(not more), given the places before it: the
person's own first. They are independent, of one person and of all, and are tested as all noise is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.noise import Laplace
from sim.conformance import bounds
from sim.conformance.calls import Violation
from sim.conformance.dependence import Batch, require_nothing_depends
from sim.conformance.promise import Array, cdf

_P = 1e-12

NUMBERS = "the-server"
"""The protocol that releases numbers; all others release zeros and ones."""

PROTOCOLS = ("grr", "blh", "olh", "rappor", "oue", "ss", "the", NUMBERS)
"""Whose law is known here."""


@dataclass(frozen=True, eq=False)
class Part:
    """A column: of each person's `own` place and of the `others`, round the circle from it, numbers that are uniform.

    Shapes are (people,) and (people, values - 1), NaN where a place is known from those before it; `values` are the
    true ones.
    """

    values: NDArray[np.uint8]
    own: Array
    others: Array


def uniform(
    encodings: Sequence[NDArray[Any]], values: NDArray[np.uint8], epsilons: Sequence[float], protocol: str
) -> list[Part]:
    """Map a release to uniform numbers.

    Each column has its encodings, of shape (people, values of the column), and its epsilon. The true `values` are of
    shape (people, columns).
    """
    found = []
    for encoded, true, epsilon in zip(encodings, values.T, epsilons, strict=True):
        # A person's own place comes first, and then the next ones.
        k = encoded.shape[1]
        turned = np.take_along_axis(encoded, (true[:, np.newaxis] + np.arange(k)) % k, axis=1)
        numbers = _uniform(turned, k, epsilon, protocol)
        found.append(Part(true, numbers[:, 0], numbers[:, 1:]))
    return found


def _uniform(turned: NDArray[Any], k: int, epsilon: float, protocol: str) -> Array:
    rng, odds = np.random.default_rng(), math.exp(min(epsilon, 600.0))
    if protocol == NUMBERS:
        return cdf(turned - (np.arange(k) == 0), Laplace(2 / epsilon))
    if protocol in ("grr", "ss"):
        size = 1 if protocol == "grr" else max(1, round(k / (odds + 1)))
        if not (turned.sum(axis=1) == size).all():
            raise Violation(f"{protocol} releases {size} of a person's places, not fewer or more")
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
    """Return how likely a person's own place is 1, and the others."""
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


def require_law(parts: Sequence[Part]) -> None:
    """Demand that a release has its protocol's law, people and columns each by themselves."""
    batches = []
    for number, part in enumerate(parts, start=1):
        middle = part.values.mean()
        for value in np.unique(part.values):
            here = part.values == value
            for place, numbers in enumerate([part.own, *part.others.T]):
                what = {"caller": "", "column": number, "value": f"column {number}, value {value}, {place} further"}
                known = numbers[here & ~np.isnan(numbers)]
                if len(known):
                    batches.append(Batch(what, 2 * known - 1, np.full(len(known), value - middle), known))
    require_nothing_depends(batches)
    for (one, first), (other, second) in combinations(enumerate(parts, start=1), 2):
        if bounds.is_unlikely_product(2 * first.own - 1, 2 * second.own - 1, _P):
            raise Violation(f"columns {one} and {other} are not drawn each by itself")
    for number, part in enumerate(parts, start=1):
        for lag in (1, 2):
            pairs = len(part.own) // (2 * lag) * 2 * lag
            before, after = (2 * part.own[:pairs] - 1).reshape(-1, 2, lag).swapaxes(0, 1)
            if bounds.is_unlikely_product(before.ravel(), after.ravel(), _P):
                raise Violation(f"column {number}: people are not drawn each by themselves")
