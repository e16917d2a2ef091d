"""Laplace noise on counts and sums instead of on the metric: every metric, ratios included, is post-processing.

The mathematics is `fairwall.laws.counts`. What a batch adds up over the disadvantaged people is released with noise,
and so is how many they are, which is bought with an account's first batch and known from then on. Everything else is
computed from these and from what who asks knows: the values of all people, and hence their totals.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.accountant import Loss, pure
from compliance.mechanisms.mechanism import (
    Facts,
    Guarantee,
    Question,
    Release,
    require_answerable,
    require_budget,
)
from compliance.metrics import GroupSums, gaps, part_values, sums_over
from compliance.noise import ROUNDING_STEPS, Noise, step_for
from fairwall.laws.counts import Totals, laplace_scales, shrunk_sums
from fairwall.laws.metric import Metric, find_metric

_LEAST_SUM = 0.5
"""Sums below half a person are taken for that in a ratio, which stays finite."""


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """What a stratum releases: N0, or None where it was bought before; the centred sums; the scale of their noise."""

    size: float | None
    sums: NDArray[np.float64]
    scale: float


Buy = Callable[[int, NDArray[np.float64], int, bool], NoisyCounts]
"""Adds noise: takes N0, the centred sums, n, and whether N0 was bought before."""


@dataclass(frozen=True)
class CountsMechanism:
    """Adds Laplace noise to N0 and to the centred sums.

    Parameters
    ----------
    shrinks
        Whether answers move towards no gap where the noise hides them, `fairwall.laws.counts.shrunk_sums`.
    """

    shrinks: bool = False
    name: str = "counts"
    guarantee: Guarantee = "pure"

    def refuses(self, metric: str, epsilon: float, delta: float) -> str | None:  # noqa: ARG002
        """Refuse nothing."""
        return None

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return epsilon, with N0 as without: what N0 does not need, the sums get."""
        require_budget(epsilon, delta)
        return pure(epsilon)

    def release(self, question: Question, facts: Facts, epsilon: float, delta: float, noise: Noise) -> Release:
        """Return possible values of the metric, and N0 as a fact. See `Mechanism.release`."""
        require_answerable(self, question.metric, epsilon, delta)
        if math.isinf(epsilon):
            return Release(question.gaps())

        def buy(n0: int, centred: NDArray[np.float64], n: int, known: bool) -> NoisyCounts:
            about = laplace_scales(centred.size, epsilon, size_known=known)
            step = step_for(about.sums, magnitude=n)
            scales = laplace_scales(centred.size, epsilon, size_known=known, steps=ROUNDING_STEPS * step)
            # N0 is whole: its own grid is the integers.
            size = None if known else float(noise.laplace(np.array([float(n0)]), scales.size, 1.0)[0])
            return NoisyCounts(size, noise.laplace(centred, scales.sums, step), scales.sums)

        return answer(question, facts, buy, shrinks=self.shrinks, gaussian=False)


def answer(question: Question, facts: Facts, buy: Buy, *, shrinks: bool, gaussian: bool) -> Release:
    """Answer a batch from noisy counts.

    Parameters
    ----------
    question, facts
        As for `Mechanism.release`.
    buy
        Adds the noise; called once for each stratum, since one person is in one of them only.
    shrinks, gaussian
        Whether answers move towards no gap, and the law of the noise.
    """
    metric = find_metric(question.metric)
    exact = question.records.group_sums(question.metric, question.predictions)
    values = list(part_values(question.metric, question.predictions, question.records.labels))
    bought, estimates = dict[str, NDArray[np.float64]](), dict[int, GroupSums]()
    for label in metric.strata:
        inside = [i for i, part in enumerate(metric.parts) if part.label == label]
        n0, n = int(exact[inside[0]].n0), int(np.count_nonzero(values[inside[0]][0]))
        name = _fact(label)
        noisy = buy(n0, np.concatenate([exact[i].sum0 - n0 / 2 for i in inside]), n, name in facts)
        size = float(facts[name][0]) if noisy.size is None else float(np.clip(np.rint(noisy.size), 1, n - 1))
        if noisy.size is not None:
            bought[name] = np.array([size])
        for i, centred in zip(inside, np.split(noisy.sums, len(inside)), strict=True):
            people = np.compress(values[i][0], values[i][1], axis=1)
            totals = Totals(n, sums_over(*values[i]), people.var(axis=1))
            if shrinks:
                centred = shrunk_sums(centred, size, totals, noisy.scale, gaussian=gaussian)
            sum0 = np.clip(centred + size / 2, *possible_sums(people, int(size)))
            estimates[i] = GroupSums(sum1=totals.total - sum0, sum0=sum0, n1=n - size, n0=size)
    parts = _consistent(metric, [estimates[i] for i in range(len(metric.parts))])
    return Release(gaps(question.metric, parts), bought)


def possible_sums(values: NDArray[np.float64], size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each model's least and largest sum over so many people, of values in the shape (m, n): two of (m,)."""
    n = values.shape[1]
    ordered = np.partition(values, sorted({size - 1, n - size}), axis=1)
    return ordered[:, :size].sum(axis=1), ordered[:, n - size :].sum(axis=1)


def _consistent(metric: Metric, parts: list[GroupSums]) -> list[GroupSums]:
    """Make estimates fit together: no more hits than positives, and no ratio to nobody."""
    if not metric.bounded:
        return [
            GroupSums(np.maximum(part.sum1, _LEAST_SUM), np.maximum(part.sum0, _LEAST_SUM), part.n1, part.n0)
            for part in parts
        ]
    if not metric.binary:
        return parts
    hits, positives = parts
    all_hits, all_positives = hits.sum0 + hits.sum1, positives.sum0 + positives.sum1
    # In both groups: hits0 <= positives0, and all_hits - hits0 <= all_positives - positives0.
    low = np.maximum(0.0, positives.sum0 - (all_positives - all_hits))
    hits0 = np.clip(hits.sum0, low, np.maximum(low, np.minimum(positives.sum0, all_hits)))
    return [GroupSums(all_hits - hits0, hits0, hits.n1, hits.n0), positives]


def _fact(label: int | None) -> str:
    return "n0" if label is None else f"n0 of y={label}"
