"""Whom models accept that are made to find out who is in which group."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Choose = Callable[[np.random.Generator, int, int], NDArray[np.float64]]
"""Draw the decisions of a batch, shape (models, people), from how many people and models there are."""


def halves(rng: np.random.Generator, people: int, models: int) -> NDArray[np.float64]:
    """Have each model accept a random half of the people."""
    places = np.tile(np.arange(people), (models, 1))
    return (rng.permuted(places, axis=1) < people // 2).astype(np.float64)


def blocks(rng: np.random.Generator, people: int, models: int) -> NDArray[np.float64]:
    """Cut the people at random into 2^models blocks that are as large, and tell them apart by who accepts them.

    A service counts each block for the price of one where its rules let the models share a table.
    """
    block = rng.permutation(people) % 2**models
    return np.asarray(block[np.newaxis] >> np.arange(models)[:, np.newaxis] & 1, np.float64)


STRATEGIES: dict[str, Choose] = {"blocks": blocks, "halves": halves}
