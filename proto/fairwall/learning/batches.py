"""Batches of rows for training steps, which depend only on the model's own rows, plan and seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]
"""Row numbers in the table of features, shape (k,)."""

OVERFLOW = 1e-9
"""Part of a training's delta that covers Poisson batches with more rows than there is room for, which lose rows.

If that happens with a probability p, training and accounting differ by p with and without a record, so that delta is
larger by (1 + e^epsilon) p: less than this for every epsilon up to 25.
"""

_CROWDED = 1e-20
"""Largest probability p of such a batch, over a whole training."""


@dataclass(frozen=True, eq=False)
class Shuffled:
    """Batches of a fixed number of each stratum's rows, at least one, in random order, again and again."""

    strata: tuple[tuple[Rows, int], ...]

    def __post_init__(self) -> None:
        if not self.strata or any(len(rows) == 0 or size < 1 for rows, size in self.strata):
            raise ValueError("a batch needs strata, each with rows and a share in the batch")

    @property
    def width(self) -> int:
        """Number of rows in a batch."""
        return sum(size for _, size in self.strata)


@dataclass(frozen=True, eq=False)
class Poisson:
    """Batches that hold each row with probability ``rate``, independently, as accounting by subsampling assumes.

    ``width`` suffices for ``steps`` steps.
    """

    rows: Rows
    rate: float
    steps: int

    def __post_init__(self) -> None:
        if len(self.rows) == 0 or not 0 < self.rate <= 1 or self.steps < 1:
            raise ValueError("Poisson batches need rows, a rate in (0, 1] and steps")

    @cached_property
    def width(self) -> int:
        """Number of rows with room in a batch: some step draws more with probability `_CROWDED` at most."""
        from scipy.stats import binom

        # `isf` takes probabilities close to 0 for 0.
        room = np.arange(1, len(self.rows))
        enough = binom.sf(room, len(self.rows), self.rate) <= _CROWDED / self.steps
        return int(room[np.argmax(enough)]) if enough.any() else len(self.rows)

    @property
    def expected(self) -> float:
        """Mean number of rows in a batch."""
        return float(len(self.rows) * self.rate)


@dataclass(frozen=True, eq=False)
class PoissonStrata:
    """Poisson batches of several disjoint strata, each at its own rate.

    ``expected`` divides a step's sum of gradients. It is a public number: the strata's sizes may be private.
    """

    strata: tuple[Poisson, ...]
    expected: float

    def __post_init__(self) -> None:
        if not self.strata or not self.expected > 0:
            raise ValueError("a batch needs strata, and an expected size above 0")

    @property
    def width(self) -> int:
        """Number of rows with room in a batch: each stratum keeps its own room."""
        return sum(stratum.width for stratum in self.strata)


Batches = Shuffled | Poisson | PoissonStrata


class Stream:
    """The sequence of one model's batches, drawn a block at a time."""

    def __init__(self, batches: Batches, rng: np.random.Generator) -> None:
        self._batches = batches
        self._rng = rng
        self._left = [np.empty(0, np.intp) for _ in getattr(batches, "strata", ())]

    def take(self, steps: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Return the rows of the next batches, and 0 or 1 for each: 0 marks an empty place. Both (steps, width)."""
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
            # Given their number, the rows are uniform.
            size = min(int(self._rng.binomial(len(batches.rows), batches.rate)), batches.width)
            drawn[step, :size] = self._rng.choice(batches.rows, size, replace=False, shuffle=False)
            present[step, :size] = 1
        return drawn, present


def shuffled(rows: Rows, size: int) -> Shuffled:
    """Return a plan of batches of ``size`` rows, without strata."""
    return Shuffled(((rows, size),))


def stratified(rows: Rows, size: int, cells: NDArray[np.integer]) -> Shuffled:
    """Return a plan of batches with cells in the rows' proportions, each at least once; ``cells`` is (k,)."""
    names, counts = np.unique(cells, return_counts=True)
    sizes = apportion(counts, max(size, len(names)))
    return Shuffled(tuple((rows[cells == name], int(part)) for name, part in zip(names, sizes, strict=True)))


def apportion(counts: Sequence[int] | NDArray[np.integer], size: int) -> NDArray[np.intp]:
    """Return ``size`` seats shared out by largest remainders, at least one each; ValueError for too few seats."""
    shares = np.asarray(counts, dtype=np.float64)
    if size < len(shares):
        raise ValueError(f"{len(shares)} strata do not fit into a batch of {size}")
    # One seat each first, and the other seats in proportion to the remaining claims.
    owed = np.maximum(shares / shares.sum() * size - 1, 0)
    spare = size - len(shares)
    exact = owed / owed.sum() * spare if owed.sum() > 0 else np.full(len(shares), spare / len(shares))
    seats = np.floor(exact).astype(np.intp)
    order = np.argsort(-(exact - seats), kind="stable")
    seats[order[: spare - int(seats.sum())]] += 1
    return np.asarray(seats + 1)
