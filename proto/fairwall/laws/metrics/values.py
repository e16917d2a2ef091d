"""The values that a metric sums, one piece at a time, so that only predictions are held as a whole.

Predictions are decisions, a byte each, or scores in their original type; only the pieces are float64.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bools, Bytes, Floats
from fairwall.laws.metrics.metric import Value, find_metric, members_of
from fairwall.rpc.memory import let_go, part

AT_ONCE = 1 << 22
"""Most numbers of a piece, unless one row has more: 32 MiB."""

# Numbers added up at a time: half a MiB.
_TOGETHER = 1 << 16

# Least numbers, 32 MiB, for which threads share the models: an audit waits for the sums.
_LARGE = 1 << 22
_THREADS = min(os.cpu_count() or 1, 4)

_SORTED = 1 << 17
"""Number of people above which only those are sorted who may be the last of a group."""


@dataclass(frozen=True, eq=False)
class Values:
    """A number in [0, 1] of each person for each model: one part of a metric.

    `predictions`: shape (m, n), each in [0, 1]: bool, or float32 or float64. `value`: the quantity summed. `labels`:
    shape (n,), each 0 or 1; None where no labels are needed.
    """

    predictions: NDArray[Any]
    value: Value = "prediction"
    labels: Bytes | None = None

    def __len__(self) -> int:
        """Return the number of models."""
        return len(self.predictions)

    @property
    def decided(self) -> bool:
        """Whether each number is 0 or 1, and can be counted."""
        return self.predictions.dtype == np.bool_

    def decisions(self) -> Iterator[Bools]:
        """Yield everybody's decisions, shape (n,), one model after another."""
        for model in self.predictions:
            if self.value == "prediction" or self.labels is None:
                yield model
            else:
                yield model & (self.labels == 1) if self.value == "hit" else model == (self.labels == 1)
            let_go(model)

    def of(self, models: slice, people: NDArray[np.intp] | slice = slice(None)) -> Floats:
        """Return the numbers of some people for some models: as float64, in C order."""
        numbers = np.ascontiguousarray(part(self.predictions, models, people), np.float64)
        if self.value == "prediction" or self.labels is None:
            return numbers
        # Not 1 - |y - h|: for y = 1 that loses the last bits of a small h.
        return np.where(self.labels[people] == 1, numbers, 0.0 if self.value == "hit" else 1.0 - numbers)

    def pieces(self, people: NDArray[np.intp] | slice = slice(None)) -> Iterator[Floats]:
        """Yield the numbers of some people for some models at a time, at least one."""
        many = len(people) if not isinstance(people, slice) else self.predictions.shape[1]
        step = max(1, AT_ONCE // max(many, 1))
        for first in range(0, len(self), step):
            yield self.of(slice(first, first + step), people)


def values_of(metric: str, predictions: NDArray[Any], labels: Bytes | None = None) -> Iterator[tuple[Bools, Values]]:
    """Yield, for each of a metric's parts, the mask of the people it looks at, shape (n,), and their values.

    ValueError for an unknown metric, missing labels, or predictions that must be 0 or 1 and are not. Predictions and
    labels are as of `Values`.
    """
    found = find_metric(metric)
    if found.labelled and labels is None:
        raise ValueError(f"metric {metric} needs labels")
    if found.binary and not are_decisions(predictions):
        raise ValueError(f"metric {metric} needs binary predictions, each 0 or 1")
    for each in found.parts:
        yield members_of(each.label, predictions.shape[1:], labels), Values(predictions, each.value, labels)


def are_decisions(predictions: NDArray[Any]) -> bool:
    """Return whether all predictions are 0 or 1."""
    if predictions.dtype == np.bool_:
        return True
    for model in predictions:
        if not ((model == 0) | (model == 1)).all():
            return False
        let_go(predictions)
    return True


def part_values(metric: str, predictions: NDArray[Any], labels: Bytes | None = None) -> Iterator[tuple[Bools, Floats]]:
    """Yield the results of `values_of` as numbers of everybody at once, shape (m, n)."""
    for members, values in values_of(metric, predictions, labels):
        yield members, values.of(slice(None))


def sums_over(members: Bools, values: NDArray[Any] | Values) -> Floats:
    """Return the sum of each model's values over some people, in the order of addition that the protocol fixes.

    The order is numpy's pairwise sum over a model's members in their own order, laid out contiguously. The layout
    matters: ``predictions[:, members]`` comes out of numpy column by column, and adding that up along the rows gives
    other last bits. BLAS products differ by CPU and are not used.

    The members have the shape (n,); m models' predictions, or other numbers in [0, 1], (m, n); sums (m,).
    """
    values = values if isinstance(values, Values) else Values(values)
    if values.decided:  # whole numbers add up to the same in any order
        return np.array([np.count_nonzero(decided & members) for decided in values.decisions()], np.float64)
    chosen = np.flatnonzero(members)
    total = np.empty(len(values))
    if values.predictions.size < _LARGE:
        _add_up(chosen, values, 0, len(values), total)
        return total
    # numpy releases the interpreter lock, and each model's sum is independent of the threads.
    bounds = np.linspace(0, len(values), _THREADS + 1).astype(int).tolist()
    with ThreadPoolExecutor(_THREADS) as pool:
        shares = [pool.submit(_add_up, chosen, values, *ends, total) for ends in pairwise(bounds)]
    for share in shares:
        share.result()
    return total


def _add_up(chosen: NDArray[np.intp], values: Values, first: int, last: int, total: Floats) -> None:
    """Write some models' sums over the chosen people into `total`."""
    # As many models at a time as fit the cache, in a reused buffer: all at once takes ten times as long.
    step = max(min(_TOGETHER // max(len(chosen), 1), last - first), 1)
    rows = np.empty((step, len(chosen)))
    plain = values.value == "prediction" and values.predictions.dtype == np.float64
    for start in range(first, last, step):
        models = slice(start, min(start + step, last))
        if plain:
            # mode="clip" makes numpy write straight into `rows`. There is nothing to clip.
            some = values.predictions[models]
            taken = np.take(some, chosen, axis=1, out=rows[: len(some)], mode="clip")
            let_go(some)
        else:
            taken = values.of(models, chosen)
        np.add.reduce(taken, axis=1, out=total[models])


def possible_sums(pieces: Iterable[Floats], first: int, last: int) -> tuple[Floats, Floats]:
    """Return each model's least and largest sum over k people, for k = first .. last, shape (m, last - first + 1) each.

    `pieces` hold some models each, shape (r, n); `first` is at least 1 and `last` below n. The order of addition may
    cost the last bits.
    """
    found = [_possible_sums(piece, first, last) for piece in pieces]
    least, most = zip(*found, strict=True)
    return np.concatenate(least), np.concatenate(most)


def sums_within(
    totals: Floats, ends: tuple[Floats, Floats], people: int, first: int, last: int
) -> tuple[Floats, Floats]:
    """Return bounds on `possible_sums`, exact for decisions, from totals and the ends of values, shape (m,) each."""
    some = np.arange(first, last + 1.0)
    total, least, most = (each[:, np.newaxis] for each in (totals, *ends))
    return (
        np.maximum(some * least, total - (people - some) * most),
        np.minimum(some * most, total - (people - some) * least),
    )


def _possible_sums(values: Floats, first: int, last: int) -> tuple[Floats, Floats]:
    n = values.shape[1]
    if n <= _SORTED:
        ordered = np.sort(values, axis=1)
    else:
        ordered = np.partition(values, sorted({first, last - 1, n - last, n - first}), axis=1)
        for start, end in ((first, last), (n - last, n - first)):
            ordered[:, start:end].sort(axis=1)

    def sums(fewest: Floats, further: Floats) -> Floats:
        of_all = np.empty((len(values), last - first + 1))
        of_all[:, 0] = fewest.sum(axis=1)
        np.cumsum(further, axis=1, out=of_all[:, 1:])
        of_all[:, 1:] += of_all[:, :1]
        return of_all

    return (
        sums(ordered[:, :first], ordered[:, first:last]),
        sums(ordered[:, n - first :], ordered[:, n - last : n - first][:, ::-1]),
    )
