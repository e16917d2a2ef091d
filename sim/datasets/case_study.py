"""People drawn as in the case study of [SD], section VI-D: two groups of unequal size and base rate.

The paper prints the groups' sizes, 5,000 and 500, base rates, 0.30 and 0.45, and the accuracies of a logistic
regression without privacy, 0.82 and 0.79, but not the features. Here there are ten, normal around a mean that depends
on the label, in directions that agree only partly between the groups: the small group's direction has to be learned
from the small group. The distance of the two means gives the best linear rule about the printed accuracies.
"""

from __future__ import annotations

import functools

import numpy as np

from sim.datasets.rows import EncodedRows

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
    """Draw the 110,000 people, always the same ones. Label 1 reoffends; ``protected`` is 1 in the large group."""
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
