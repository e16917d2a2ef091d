"""Synthetic people with a score as the only feature, and identical groups."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fairwall.tables.errors import DataError
from sim.datasets.rows import EncodedRows

_NUMBER: Final = r"\s*(\d+(?:\.\d*)?|\.\d+)\s*"
_BETA: Final = re.compile(rf"beta\({_NUMBER},{_NUMBER}\)")


def synthetic(n: int, n0: int, scores: str, rng: np.random.Generator) -> EncodedRows:
    """Draw n people, n0 random ones disadvantaged, with calibrated scores that are independent of the group.

    The distribution of scores is "uniform" on [0, 1] or "beta(a,b)". A label is 1 with its score's probability. Raises
    `DataError` if the distribution is unknown or a group would be empty.
    """
    if not 0 < n0 < n:
        raise DataError(
            f"synthetic: of n = {n} people n0 = {n0} cannot be disadvantaged; data.n0 must be from 1 to n - 1"
        )
    drawn = _draw(scores, n, rng)
    protected = np.ones(n, dtype=np.uint8)
    protected[rng.choice(n, n0, replace=False)] = 0
    labels = (rng.random(n) < drawn).astype(np.uint8)
    return EncodedRows("synthetic", drawn[:, np.newaxis], labels, protected, ("score",), scored=True)


def _draw(law: str, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    if law == "uniform":
        return rng.random(n)
    if beta := _BETA.fullmatch(law):
        a, b = (float(number) for number in beta.groups())
        if a > 0 and b > 0:
            return rng.beta(a, b, n)
    raise DataError(f"synthetic: unknown law of scores {law!r}; it must be uniform or beta(a,b) with a and b above 0")
