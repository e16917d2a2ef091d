"""Which rows a training step looks at.

Every model draws its batches from its own generator, and a batch is as wide as its plan says: the batches of a model
depend on nothing but its own rows and its own seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]
"""Row numbers in the table of features, shape (k,)."""

OVERFLOW = 1e-9
"""What a whole training's delta has to leave for Poisson batches that are larger than there is room for and lose rows.

If that happens with a probability p, training and accounting differ by p with and without a record, so that delta is
larger by (1 + e^epsilon) p: less than this for every epsilon up to 25.
"""

_CROWDED = 1e-20
"""That p, over a whole training."""


@dataclass(frozen=True, eq=False)
class Shuffled:
    """Batches that hold a fixed number of rows of each stratum.

    Each stratum is gone through in random order, again and again.

    Attributes
    ----------
    strata : pairs of a stratum's rows, at least one, and how many of them a batch holds.
    """

    strata: tuple[tuple[Rows, int], ...]

    def __post_init__(self) -> None:
        if not self.strata or any(len(rows) == 0 or size < 1 for rows, size in self.strata):
            raise ValueError("a batch needs strata, each with rows and a share in the batch")

    @property
    def width(self) -> int:
        """How many rows a batch holds."""
        return sum(size for _, size in self.strata)


@dataclass(frozen=True, eq=False)
class Poisson:
    """Batches that hold each row with the same probability, independently: what accounting by subsampling supposes.

    Attributes
    ----------
    rows : at least one.
    rate : that probability, in (0, 1].
    steps : for how many steps ``width`` is to suffice.
    """

    rows: Rows
    rate: float
    steps: int

    def __post_init__(self) -> None:
        if len(self.rows) == 0 or not 0 < self.rate <= 1 or self.steps < 1:
            raise ValueError("Poisson batches need rows, a rate in (0, 1] and steps")

    @cached_property
    def width(self) -> int:
        """How many rows there is room for: with probability `_CROWDED` at most some step of them all draws more."""
        from scipy.stats import binom

        # `isf` takes what is next to 0 for 0.
        room = np.arange(1, len(self.rows))
        enough = binom.sf(room, len(self.rows), self.rate) <= _CROWDED / self.steps
        return int(room[np.argmax(enough)]) if enough.any() else len(self.rows)

    @property
    def expected(self) -> float:
        """How many rows a batch holds on average."""
        return float(len(self.rows) * self.rate)


@dataclass(frozen=True, eq=False)
class PoissonStrata:
    """Poisson batches of several strata of rows, each at a rate of its own.

    Attributes
    ----------
    strata : at least one, of different rows.
    expected : what a step divides the sum of gradients by. A public number: the strata's own sizes may be private.
    """

    strata: tuple[Poisson, ...]
    expected: float

    def __post_init__(self) -> None:
        if not self.strata or not self.expected > 0:
            raise ValueError("a batch needs strata, and an expected size above 0")

    @property
    def width(self) -> int:
        """How many rows there is room for: every stratum keeps its own."""
        return sum(stratum.width for stratum in self.strata)


Batches = Shuffled | Poisson | PoissonStrata


class Stream:
    """One model's batches, one block after the other."""

    def __init__(self, batches: Batches, rng: np.random.Generator) -> None:
        self._batches = batches
        self._rng = rng
        self._left = [np.empty(0, np.intp) for _ in getattr(batches, "strata", ())]

    def take(self, steps: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Draw the next batches.

        Returns
        -------
        rows : ndarray, shape (steps, width)
        present : ndarray of 0 or 1, shape (steps, width)
            0 where there is room for a row and none.
        """
        if isinstance(self._batches, Poisson):
            return self._poisson(self._batches, steps)
        if isinstance(self._batches, PoissonStrata):
            chosen, masks = zip(*(self._poisson(part, steps) for part in self._batches.strata), strict=True)
            return np.concatenate(chosen, axis=1), np.concatenate(masks, axis=1)
        parts = []
        for stratum, (rows, size) in enumerate(self._batches.strata):
            left = self._left[stratum]
            if len(left) < steps * size:
                rounds = -(-(steps * size - len(left)) // len(rows))
                left = np.concatenate([left, *(self._rng.permutation(rows) for _ in range(rounds))])
            parts.append(left[: steps * size].reshape(steps, size))
            self._left[stratum] = left[steps * size :]
        drawn = np.concatenate(parts, axis=1)
        return drawn, np.ones(drawn.shape, np.float32)

    def _poisson(self, batches: Poisson, steps: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        drawn = np.full((steps, batches.width), batches.rows[0], np.intp)
        present = np.zeros(drawn.shape, np.float32)
        for step in range(steps):
            # Which rows, given how many, is uniform.
            size = min(int(self._rng.binomial(len(batches.rows), batches.rate)), batches.width)
            drawn[step, :size] = self._rng.choice(batches.rows, size, replace=False, shuffle=False)
            present[step, :size] = 1
        return drawn, present


def shuffled(rows: Rows, size: int) -> Shuffled:
    """Plan batches of so many rows, without strata."""
    return Shuffled(((rows, size),))


def stratified(rows: Rows, size: int, cells: NDArray[np.integer]) -> Shuffled:
    """Plan batches that hold every cell as often as the rows do, and at least once, given each row's cell, shape (k,).

    A batch holds so many rows, or as many as there are cells where that is more.
    """
    names, counts = np.unique(cells, return_counts=True)
    sizes = apportion(counts, max(size, len(names)))
    return Shuffled(tuple((rows[cells == name], int(part)) for name, part in zip(names, sizes, strict=True)))


def apportion(counts: Sequence[int] | NDArray[np.integer], size: int) -> NDArray[np.intp]:
    """Share out ``size`` seats in proportion to counts, by largest remainders, with at least one seat each.

    ValueError if there are fewer seats than counts.
    """
    shares = np.asarray(counts, dtype=np.float64)
    if size < len(shares):
        raise ValueError(f"{len(shares)} strata do not fit into a batch of {size}")
    # A seat each beforehand, the others in proportion to what is then still owed.
    owed = np.maximum(shares / shares.sum() * size - 1, 0)
    spare = size - len(shares)
    exact = owed / owed.sum() * spare if owed.sum() > 0 else np.full(len(shares), spare / len(shares))
    seats = np.floor(exact).astype(np.intp)
    order = np.argsort(-(exact - seats), kind="stable")
    seats[order[: spare - int(seats.sum())]] += 1
    return np.asarray(seats + 1)
