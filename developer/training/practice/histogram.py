"""Noisy counts of scores by group, label and bin: the paid input of fits after training.

A record adds 1 to one count, and to no other: the l2 sensitivity is 1. Post-processing is free only where it reads no
private rows, and thresholds or calibrations fitted on them do read them. Negative counts are clipped to 0, which is
free, and makes the counts of empty bins about 0.4 standard deviations too large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from developer.training.model import TrainingPromise, TrainingStep
from developer.training.practice.descent import descent
from developer.training.practice.practice import PracticeTask
from fairwall.arrays import Bytes, Floats
from fairwall.laws.noise.gaussian import gaussian_epsilon, gaussian_multiplier
from fairwall.learning.ensemble import Ensemble

BINS = 8
"""Number of bins of equal width over [0, 1]. More bins follow the scores more closely, but hold more noise together."""

MIDDLES: Floats = (np.arange(BINS) + 0.5) / BINS
"""The middles of the bins."""


def count(scores: Floats, labels: Bytes, groups: Bytes | None) -> Floats:
    """Return the counts of rows by group, label and bin of scores: (2, 2, BINS); (1, 2, BINS) without groups."""
    bins = np.minimum((scores * BINS).astype(np.intp), BINS - 1)
    parts = 1 if groups is None else 2
    cells = (0 if groups is None else groups.astype(np.intp) * 2 * BINS) + labels.astype(np.intp) * BINS + bins
    return np.bincount(cells, minlength=parts * 2 * BINS).reshape(parts, 2, BINS).astype(np.float64)


def tell(counts: Floats, multiplier: float, rng: np.random.Generator) -> Floats:
    """Return counts with Gaussian noise of standard deviation ``multiplier``, clipped to at least 0."""
    return np.maximum(counts + multiplier * rng.standard_normal(counts.shape), 0)


@dataclass(frozen=True, eq=False)
class ScoreHistogram:
    """A private network, its scores' counts, (1 or 2 groups, 2, BINS) and at least 0, and the cost of both together."""

    network: Ensemble
    counts: Floats
    steps: tuple[TrainingStep, ...]
    spent: TrainingPromise


def train_and_count(task: PracticeTask, groups: Bytes | None) -> ScoreHistogram:
    """Train by DP-SGD, and count the scores: of public rows exactly where there are any, else of private ones.

    `groups` are the private rows', to count by group; public rows are then used only if their groups are known.
    """
    public, budget = task.public, task.budget
    if public is not None and (groups is None or task.public_protected is not None):
        steps = descent(task)
        network = steps.fit(task.people, task.seed)
        theirs = None if groups is None else task.public_protected
        return ScoreHistogram(
            network, count(network.scores(public.features)[0], public.labels, theirs), (steps.step,), steps.spent
        )
    multiplier = gaussian_multiplier(budget.statistics * budget.epsilon, budget.delta)
    steps = descent(task, release_cost=1 / multiplier)
    network = steps.fit(task.people, task.seed)
    exact = count(network.scores(task.people.features)[0], task.people.labels, groups)
    by = "label" if groups is None else "group and label"
    step = TrainingStep(f"noisy histogram of scores by {by}", gaussian_epsilon(multiplier, budget.delta), budget.delta)
    told = tell(exact, multiplier, np.random.default_rng([task.seed, 1]))
    return ScoreHistogram(network, told, (steps.step, step), steps.spent)
