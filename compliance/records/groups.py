"""The protected attributes of any number of groups. This module alone reads them; `people` reads those of two."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

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
class Grouped:
    """A test set whose people are in groups.

    Parameters
    ----------
    codes : ndarray of uint8, shape (attributes, people)
        The number of each person's value.
    labels : ndarray of uint8, shape (people,)
        0, 1 or `NO_LABEL`.
    """

    attributes: tuple[Attribute, ...]
    codes: NDArray[np.uint8] = field(repr=False)
    labels: NDArray[np.uint8]

    def cells(self, by: tuple[str, ...]) -> tuple[NDArray[np.intp], int]:
        """Return each person's group by some attributes, the last one's values the fastest, and how many there are."""
        places = [[each.name for each in self.attributes].index(name) for name in by]
        sizes = [len(self.attributes[place].values) for place in places]
        return np.asarray(np.ravel_multi_index([self.codes[place] for place in places], sizes)), math.prod(sizes)
