"""What can be trained, found out with the developer's own training on people that a plan has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from developer.training import Regression, TrainingSet, train
from sim.datasets.rows import EncodedRows
from sim.planning.regressions import Design, outcomes, private
from sim.planning.training import Demands, quarters


def taken(rows: EncodedRows, some: NDArray[np.intp]) -> EncodedRows:
    return replace(rows, encoded=rows.encoded[some], labels=rows.labels[some], protected=rows.protected[some])


def constant(rows: EncodedRows) -> float:
    return float(max(rows.labels.mean(), 1 - rows.labels.mean()))


def trained(rows: EncodedRows, setting: Regression, seed: int, train_on: NDArray[np.bool_]) -> tuple[float, float]:
    """Accuracy and gap of one training, on the other rows."""
    accuracy, low, high = _measured(rows, setting, seed, train_on)
    return accuracy, abs(high - low)


def _measured(
    rows: EncodedRows, setting: Regression, seed: int, train_on: NDArray[np.bool_]
) -> tuple[float, float, float]:
    people = TrainingSet(rows.features[train_on], rows.labels[train_on])
    decisions = train(people, setting, seed, rows.protected[train_on]).scores(rows.features[~train_on]) >= 0.5
    group = rows.protected[~train_on]
    rates = [float(decisions[group == a].mean()) for a in (0, 1)]
    return float((decisions == rows.labels[~train_on]).mean()), rates[0], rates[1]


@dataclass(frozen=True)
class Truth:
    """By how much the best setting meets the demand that it meets worse, or misses it.

    Attributes
    ----------
    margin : in standard errors: of trainings, and of these people as a sample of n.
    distance : as it is, in accuracy or gap.
    """

    margin: float
    distance: float

    @property
    def holds(self) -> bool:
        return self.margin >= 0

    @property
    def sure(self) -> bool:
        return abs(self.margin) > 2


def truth_of(rows: EncodedRows, demands: Demands, trainings: int, seed: int) -> Truth:
    """Train every setting many times, by the developer's own training, on three quarters of these people."""
    n, share = len(rows.labels), constant(rows)
    sizes = [int((rows.protected == group).sum()) for group in (0, 1)]
    over = share - demands.min_accuracy
    margins = [(over / np.sqrt(share * (1 - share) / n), over)]
    if over >= 0:
        return Truth(*margins[0])
    rng = np.random.default_rng(seed)
    splits = [rng.random(n) < 0.75 for _ in range(trainings)]
    written = replace(rows, encoded=_Written(rows.features))
    for setting in private(demands.epsilon, demands.delta):
        found = np.array([_measured(written, setting, seed + 1000 + i, split) for i, split in enumerate(splits)])
        accuracy, low, high = found.mean(0)
        gaps = np.abs(found[:, 2] - found[:, 1])
        by_accuracy = (
            accuracy - demands.min_accuracy,
            accuracy * (1 - accuracy) / n + found[:, 0].var(ddof=1) / trainings,
        )
        by_gap = (
            demands.max_gap - gaps.mean(),
            sum(rate * (1 - rate) / size for rate, size in zip((low, high), sizes, strict=True))
            + gaps.var(ddof=1) / trainings,
        )
        margins.append(min((over / np.sqrt(square + 1e-12), over) for over, square in (by_accuracy, by_gap)))
    return Truth(*max(margins))


class _Written:
    """Features that were written out before, so that a thousand trainings need not."""

    def __init__(self, features: NDArray[np.float64]) -> None:
        self._features = features

    def __getitem__(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        return self._features if len(rows) == len(self._features) else self._features[rows]


@dataclass(frozen=True)
class Case:
    seen: EncodedRows
    unseen: EncodedRows
    demands: Demands


def random_case(
    rows: EncodedRows, design: Design, rng: np.random.Generator, least: int, epsilons: Sequence[float]
) -> Case:
    """Two samples without a person in common, and demands about what some setting comes to at that size."""
    everybody = len(rows.labels)
    n, delta = int(rng.integers(least, everybody // 2 + 1)), float(rng.choice([0.0, 1e-5]))
    epsilon = float(np.exp(rng.uniform(*np.log(epsilons))))
    parts = quarters(design.groups, everybody, 8, rng)
    settings = private(epsilon, delta)
    found = outcomes(design, parts, settings, rng.integers(0, 2**31, parts.splits).tolist(), n / everybody)
    accuracy, gap = (values.mean(1) for values in (found.accuracy, found.gap))
    # On the front: what no other setting is better than in both; and of more use than a constant decision.
    best = np.array([not ((accuracy > a) & (gap < g)).any() for a, g in zip(accuracy, gap, strict=True)])
    worth = np.flatnonzero(best & (accuracy > constant(rows)))
    at = int(rng.choice(worth)) if len(worth) else int(accuracy.argmax())
    # As far from it as samples of n people differ, and some more.
    share = constant(rows)
    error = np.sqrt(share * (1 - share) / n)
    min_accuracy = float(accuracy[at] + (0.015 + 2 * error) * rng.normal(-0.3, 1.0))
    sizes = [n * (design.groups == group).mean() for group in (0, 1)]
    max_gap = float(gap[at] * np.exp(rng.normal(0.2, 0.6)) + 0.25 * np.sqrt(sum(1 / size for size in sizes)))
    order = rng.permutation(everybody)
    return Case(
        taken(rows, np.sort(order[:n])),
        taken(rows, np.sort(order[n : 2 * n])),
        Demands(epsilon, delta, min(max_gap, 1.0), min(min_accuracy, 0.99)),
    )
