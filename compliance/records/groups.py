"""The protected attributes of any number of groups. This module alone reads them; `people` reads those of two."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.probable import GRID

OTHER, UNKNOWN = "other", "unknown"
"""Values of an attribute that stand for every value that is not listed, and for none."""

NO_LABEL = 2
"""The label of who has none."""


@dataclass(frozen=True)
class Attribute:
    """A column that groups are made of, and every value that somebody may have, which is public."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Probable:
    """An attribute that nobody holds of everybody.

    Parameters
    ----------
    name : of the attribute.
    parts : ndarray of int64, shape (people, values)
        Probabilities of the values, rounded (`fairwall.laws.probable.rounded`).
    golden : ndarray of bool, shape (people,)
        Of whom it is known: who these people are is not protected.
    """

    name: str
    parts: NDArray[np.int64] = field(repr=False)
    golden: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Grouped:
    """A test set whose people are in groups.

    Parameters
    ----------
    codes : ndarray of uint8, shape (attributes, people)
        The number of each person's value; of what is known by probabilities it counts in the golden sample alone.
    labels : ndarray of uint8, shape (people,)
        0, 1 or `NO_LABEL`.
    probable : the attribute that is known by probabilities.
    """

    attributes: tuple[Attribute, ...]
    codes: NDArray[np.uint8] = field(repr=False)
    labels: NDArray[np.uint8]
    probable: Probable | None = None

    def golden(self, name: str) -> int:
        """Return of how many people an attribute is known that is known of others by probabilities; else 0."""
        return int(self.probable.golden.sum()) if self.probable is not None and self.probable.name == name else 0

    def cells(self, by: tuple[str, ...]) -> tuple[NDArray[np.intp], int]:
        """Return each person's group by some attributes, the last one's values the fastest, and how many there are."""
        places = [[each.name for each in self.attributes].index(name) for name in by]
        sizes = [len(self.attributes[place].values) for place in places]
        return np.asarray(np.ravel_multi_index([self.codes[place] for place in places], sizes)), math.prod(sizes)

    def products(self, by: tuple[str, ...], stratum: NDArray[np.intp], strata: int) -> tuple[NDArray[np.int64], ...]:
        """Add up by stratum what is released of probabilities (`fairwall.laws.probable`), in its units.

        Parameters
        ----------
        by : the attribute that is known by probabilities among them.
        stratum : ndarray of intp, shape (people,)

        Returns
        -------
        others, golden : ndarray of int64, shape (strata, other groups * pairs), (strata, other groups * values^2)
        """
        assert self.probable is not None, "an attribute is known by probabilities"
        parts, golden = self.probable.parts.astype(np.float64), self.probable.golden
        own, values = self.cells((self.probable.name,))
        known = tuple(name for name in by if name != self.probable.name)
        cell, cells = self.cells(known) if known else (np.zeros(len(own), np.intp), 1)
        row, rows = stratum * cells + cell, strata * cells

        def summed(place: NDArray[np.intp], places: int, weights: list[NDArray[np.float64]]) -> NDArray[np.int64]:
            sums = np.stack([np.bincount(place, each, places) for each in weights], 1)
            return sums.astype(np.int64).reshape(strata, -1)  # whole numbers below 2^53, which add up exactly

        pairs = zip(*np.triu_indices(values), strict=True)
        products = [(1 + (a != b)) * (parts[:, a] * parts[:, b])[~golden] for a, b in pairs]
        sure = [GRID * parts[golden, b] for b in range(values)]
        return (
            summed(row[~golden], rows, products),
            summed((row * values + own)[golden], rows * values, sure),
        )
