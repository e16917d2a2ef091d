"""Whom models accept that are made to find out who is in which group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Choose = Callable[[np.random.Generator, int, int], NDArray[np.float64]]
"""Draw the decisions of a batch, shape (models, people), from how many people and parts there are."""


def halves(rng: np.random.Generator, people: int, parts: int) -> NDArray[np.float64]:
    """Have each of so many models accept a random half of the people."""
    places = np.tile(np.arange(people), (parts, 1))
    return (rng.permuted(places, axis=1) < people // 2).astype(np.float64)


def blocks(rng: np.random.Generator, people: int, parts: int) -> NDArray[np.float64]:
    """Cut the people at random into so many blocks that are as large, and tell them apart by who accepts them.

    They are two or more. A service counts each for the price of one where its rules let the models share a table.
    """
    block, models = rng.permutation(people) % parts, (parts - 1).bit_length()
    return np.asarray(block[np.newaxis] >> np.arange(models)[:, np.newaxis] & 1, np.float64)


SUBSETS: dict[str, Choose] = {"blocks": blocks, "halves": halves}

SEARCHED = "searched"
"""Whichever of them tells more by `developer.groups.searched`."""

STRATEGIES = (*SUBSETS, SEARCHED)


@dataclass(frozen=True)
class Plan:
    """How to ask: batches, each of so many blocks, or of a model for each of so many halves."""

    subsets: str
    parts: int
    batches: int
