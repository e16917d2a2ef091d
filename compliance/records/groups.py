"""The protected attributes of any number of groups. This module alone reads them; `people` reads those of two."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bools, Bytes, Floats, Ints
from fairwall.laws.groups.proxy_attributes import GRID

OTHER, UNKNOWN = "other", "unknown"
"""Values of an attribute that stand for every value that is not listed, and for none."""

NO_LABEL = 2
"""The label of a person without one."""


@dataclass(frozen=True)
class Attribute:
    """A column that defines groups, and every value that somebody may have, which is public."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Probable:
    """An attribute that is known by probabilities, except in a golden sample.

    `parts`: probabilities of the values, rounded (`fairwall.laws.groups.proxy_attributes.rounded`), shape (people,
    values). `golden`: the people whose value is known, shape (people,): who they are is not protected.
    """

    name: str
    parts: Ints = field(repr=False)
    golden: Bools


@dataclass(frozen=True, eq=False)
class Grouped:
    """A test set whose people are in groups.

    `codes`: the number of each person's value, shape (attributes, people); for an attribute known by probabilities
    valid in the golden sample alone. `labels`: 0, 1 or `NO_LABEL`, shape (people,).
    """

    attributes: tuple[Attribute, ...]
    codes: Bytes = field(repr=False)
    labels: Bytes
    probable: Probable | None = None

    def golden(self, name: str) -> int:
        """Return the size of an attribute's golden sample; 0 if it has none."""
        return int(self.probable.golden.sum()) if self.probable is not None and self.probable.name == name else 0

    def cells(self, by: tuple[str, ...]) -> tuple[NDArray[np.intp], int]:
        """Return each person's group by some attributes, the last one's values fastest, and the number of groups."""
        places = [[each.name for each in self.attributes].index(name) for name in by]
        sizes = [len(self.attributes[place].values) for place in places]
        return np.asarray(np.ravel_multi_index([self.codes[place] for place in places], sizes)), math.prod(sizes)

    def products(self, by: tuple[str, ...], stratum: NDArray[np.intp], strata: int) -> tuple[Ints, ...]:
        """Return sums by stratum of products of probabilities (`laws.groups.proxy_attributes`), in their units.

        They are (others, golden), shapes (strata, other groups * pairs) and (strata, other groups * values^2).

        `by`: attributes, among them the one known by probabilities. `stratum`: of each person, shape (people,).
        """
        assert self.probable is not None, "an attribute is known by probabilities"
        parts, golden = self.probable.parts.astype(np.float64), self.probable.golden
        own, values = self.cells((self.probable.name,))
        known = tuple(name for name in by if name != self.probable.name)
        cell, cells = self.cells(known) if known else (np.zeros(len(own), np.intp), 1)
        row, rows = stratum * cells + cell, strata * cells

        def summed(place: NDArray[np.intp], places: int, weights: list[Floats]) -> Ints:
            sums = np.stack([np.bincount(place, each, places) for each in weights], 1)
            return sums.astype(np.int64).reshape(strata, -1)  # whole numbers below 2^53, which add up exactly

        pairs = zip(*np.triu_indices(values), strict=True)
        products = [(1 + (a != b)) * (parts[:, a] * parts[:, b])[~golden] for a, b in pairs]
        sure = [GRID * parts[golden, b] for b in range(values)]
        return (
            summed(row[~golden], rows, products),
            summed((row * values + own)[golden], rows * values, sure),
        )
