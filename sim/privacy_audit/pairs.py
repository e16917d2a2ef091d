"""Pairs of neighbours to try a mechanism on, each with a question about them.

Neighbours differ in one person's protected attribute, and no group of the metric's stratum is empty. The worst
predictions come from the derivations in `fairwall.laws.metrics.sensitivity`: a person with prediction h leaves a group
of s people, the others of which have mean y, for a group with mean x.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from compliance.mechanisms.mechanism import BatchQuestion
from compliance.records.people import STRATUM_MIN, Records
from fairwall.arrays import Bytes, Floats
from fairwall.laws.metrics.metric import find_metric

_RANDOM = 2


@dataclass(frozen=True, eq=False)
class NeighbourPair:
    """Two neighbours with the same question, of one batch, and a description of the pair."""

    about: str
    first: BatchQuestion = field(repr=False)
    second: BatchQuestion = field(repr=False)


def stratum_sizes(metric: str, n: int) -> tuple[int, ...]:
    """Return the sizes of the metric's stratum to try: few and half of n people, or n if the stratum is everybody."""
    if find_metric(metric).strata == (None,):
        return (n,)
    return tuple(sorted({STRATUM_MIN, max(STRATUM_MIN, n // 2)}))


def least_people(metric: str) -> int:
    """Return the size of the smallest data set that has neighbours."""
    return STRATUM_MIN * len(find_metric(metric).strata)


def worst_pairs(metric: str, n: int, queries: int, generator: np.random.Generator) -> tuple[NeighbourPair, ...]:
    """Return the neighbours on which a metric, its noise or both move most, and a few drawn at random.

    `n` is the size of the whole data set, at least `least_people`; `queries` is the number of models in the batch.
    """
    if find_metric(metric).binary:
        return _precision(metric, n, queries, generator)
    pairs: list[NeighbourPair] = []
    for size in stratum_sizes(metric, n):
        for group in (0, 1):
            pairs += _leaving(metric, n, size, queries, group, 2)
            # For noise, or refusals, that depend on a group's size.
            if size > 3:
                pairs += _leaving(metric, n, size, queries, group, 3)[:2]
        for leaving in sorted({4, 8, size // 2} - {1, 2, 3}):
            if leaving < size:
                pairs += _leaving(metric, n, size, queries, 0, leaving)[:2]
        pairs += [_random(metric, n, size, queries, generator) for _ in range(_RANDOM)]
    return tuple(pairs)


def _leaving(metric: str, n: int, size: int, queries: int, group: int, leaving: int) -> list[NeighbourPair]:
    """Return pairs in which person 0 leaves a group of `leaving` members."""
    members = np.full(size, 1 - group, dtype=np.uint8)
    members[:leaving] = group
    signed, absolute = np.zeros(size), np.zeros(size)
    signed[0] = absolute[0] = 1.0
    # If the receiving group's mean is 1/s the gap starts at 0, so dropping its sign loses nothing.
    absolute[leaving:] = 1 / leaving
    shapes = {
        "every model accepts only the person who changes group": np.tile(signed, (queries, 1)),
        "every gap starts at zero": np.tile(absolute, (queries, 1)),
        "every other model is turned round": np.where(np.arange(queries)[:, None] % 2, 1 - signed, signed),
        "half of the absolute gaps fall, half rise": np.where(np.arange(queries)[:, None] % 2, absolute, signed),
        "no model accepts anybody": np.zeros((queries, size)),
    }
    which = "advantaged" if group else "disadvantaged"
    return [
        _pair(metric, n, members, shape, f"{leaving} of {size} {which}, one of them leaves; {about}")
        for about, shape in shapes.items()
    ]


def _random(metric: str, n: int, size: int, queries: int, generator: np.random.Generator) -> NeighbourPair:
    members = generator.integers(2, size=size, dtype=np.uint8)
    members[:3] = (0, 0, 1)  # so that person 0 can leave
    predictions = generator.random((queries, size))
    return _pair(metric, n, members, predictions, f"{size} people and their predictions drawn at random")


def _precision(metric: str, n: int, queries: int, generator: np.random.Generator) -> tuple[NeighbourPair, ...]:
    """Return pairs for predictive parity; in the worst, with three accepted people, the gap moves from -1/2 to 1/2."""
    protected, labels = np.arange(n, dtype=np.uint8) % 2, np.zeros(n, dtype=np.uint8)
    protected[:3], labels[0] = (0, 0, 1), 1
    three = np.zeros((queries, n))
    three[:, :3] = 1.0
    pairs = [_flipped(metric, labels, protected, three, "three people accepted; the one with label 1 changes group")]
    for _ in range(_RANDOM):
        drawn = generator.integers(2, size=n, dtype=np.uint8)
        drawn[:2] = (0, 1)
        predictions = generator.integers(2, size=(queries, n)).astype(np.float64)
        pairs.append(_flipped(metric, drawn, protected, predictions, f"{n} people's labels and predictions at random"))
    return tuple(pairs)


def _pair(metric: str, n: int, members: Bytes, predictions: Floats, about: str) -> NeighbourPair:
    """Return a pair with `members` first; the others get the other label, alternating groups, and predictions of 0."""
    size = len(members)
    label = find_metric(metric).strata[0]
    label = 1 if label is None else label
    labels = np.full(n, 1 - label, dtype=np.uint8)
    labels[:size] = label
    protected = np.arange(n, dtype=np.uint8) % 2
    protected[:size] = members
    rest = np.zeros((len(predictions), n - size))
    if size < n:
        about += f"; {n - size} others outside the stratum"
    return _flipped(metric, labels, protected, np.hstack((predictions, rest)), about)


def _flipped(metric: str, labels: Bytes, protected: Bytes, predictions: Floats, about: str) -> NeighbourPair:
    """Return the pair of a data set and the same one with person 0's attribute flipped."""
    other = protected.copy()
    other[0] = 1 - other[0]
    first, second = (BatchQuestion(metric, predictions, Records(labels, who, (metric,))) for who in (protected, other))
    return NeighbourPair(about, first, second)
