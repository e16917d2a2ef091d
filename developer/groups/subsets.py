"""The people accepted by models that are made to find groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Choose = Callable[[np.random.Generator, int, int], NDArray[np.float64]]
"""A function that returns the decisions of a batch, (models, people), given the numbers of people and parts."""


def halves(rng: np.random.Generator, people: int, parts: int) -> NDArray[np.float64]:
    """Return `parts` models that each accept a random half of the people."""
    places = np.tile(np.arange(people), (parts, 1))
    return (rng.permuted(places, axis=1) < people // 2).astype(np.float64)


def blocks(rng: np.random.Generator, people: int, parts: int) -> NDArray[np.float64]:
    """Return models that identify each of `parts` random blocks, at least 2, of equal size by their decisions.

    A service counts each block for the price of one where its rules let the models share a table.
    """
    block, models = rng.permutation(people) % parts, (parts - 1).bit_length()
    return np.asarray(block[np.newaxis] >> np.arange(models)[:, np.newaxis] & 1, np.float64)


SUBSETS: dict[str, Choose] = {"blocks": blocks, "halves": halves}

SEARCHED = "searched"
"""The better of them by `developer.groups.searched`."""

STRATEGIES = (*SUBSETS, SEARCHED)


@dataclass(frozen=True)
class SubsetPlan:
    """A sequence of batches, each of `parts` blocks, or of `parts` models that accept a half."""

    subsets: str
    parts: int
    batches: int
