"""Synthetic people: with a score as the only feature, and as in a paper's case study."""

from __future__ import annotations

import functools
import re
from typing import Final

import numpy as np

from fairwall.arrays import Floats
from fairwall.errors import DataError
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


def _draw(law: str, n: int, rng: np.random.Generator) -> Floats:
    if law == "uniform":
        return rng.random(n)
    if beta := _BETA.fullmatch(law):
        a, b = (float(number) for number in beta.groups())
        if a > 0 and b > 0:
            return rng.beta(a, b, n)
    raise DataError(f"synthetic: unknown law of scores {law!r}; it must be uniform or beta(a,b) with a and b above 0")


CASE_STUDY = "case-study"

SIZES = (500, 5000)
"""Sizes of the disadvantaged and the advantaged group, as the paper trains on."""

BASE_RATES = (0.45, 0.30)
"""Share of each group that reoffends: label 1."""

_TIMES = 20
"""Multiple of the sizes that is drawn: enough to sample from, and to measure on."""

_FEATURES = 10
_APART = (1.85, 1.6)
"""Distance of the two labels' means in each group, in standard deviations; it determines the best rule's accuracy."""

_AGREE = 0.9
"""Cosine of the groups' directions."""


@functools.cache
def case_study() -> EncodedRows:
    """Draw the 110,000 people, always the same ones. Label 1 reoffends; ``protected`` is 1 in the large group.

    They are drawn as in the case study of [SD], section VI-D: two groups of unequal size and base rate. The paper
    prints the groups' sizes, 5,000 and 500, base rates, 0.30 and 0.45, and the accuracies of a logistic regression
    without privacy, 0.82 and 0.79, but not the features. Here there are ten, normal around a mean that depends on the
    label, in directions that agree only partly between the groups: the small group's direction has to be learned from
    the small group. The distance of the two means gives the best linear rule about the printed accuracies.
    """
    rng = np.random.default_rng(2601_17909)
    protected = np.repeat([0, 1], [_TIMES * size for size in SIZES]).astype(np.uint8)
    labels = (rng.random(len(protected)) < np.take(BASE_RATES, protected)).astype(np.uint8)
    own = np.zeros((2, _FEATURES))
    own[1, 0] = 1.0
    own[0, :2] = _AGREE, np.sqrt(1 - _AGREE**2)
    shift = own[protected] * np.take(_APART, protected)[:, None]
    features = rng.normal(size=(len(protected), _FEATURES)) + (labels[:, None] - 0.5) * shift
    names = tuple(f"x{number}" for number in range(_FEATURES))
    order = rng.permutation(len(protected))
    return EncodedRows(CASE_STUDY, features[order], labels[order], protected[order], names)
