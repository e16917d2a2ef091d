"""Batches that a plan is about, asked of compliance's own mechanism many times."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import BatchQuestion, Mechanism
from compliance.mechanisms.noise_on_gaps import bounded
from compliance.mechanisms.recommended import answerers
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from sim.planning.answer_laws import PlannedBatch
from sim.planning.worst import Worst

Rates = tuple[tuple[float, float], ...]
"""Of each stratum, the shares of its disadvantaged and advantaged people that get a 1."""


def share_within(batch: PlannedBatch, within: float, worst: Worst, draws: int, seed: int = 0) -> float:
    """How often the released gap of the least favourable model is within reach of the true one."""
    if worst.ones is None:
        question = _with_scores(batch, worst.gap)
    else:
        question = _with_decisions(batch, worst.ones, alike=worst.case == 0)
    return share_of(batch, within, question, draws, seed)


def share_for(batch: PlannedBatch, within: float, rates: Rates, draws: int, seed: int = 0) -> float:
    """The same for a model of these rates."""
    ones = tuple((round(r0 * n0), round(r1 * n1)) for (r0, r1), (n0, n1) in zip(rates, batch.strata, strict=True))
    return share_of(batch, within, _with_decisions(batch, ones, alike=True), draws, seed)


def share_of(batch: PlannedBatch, within: float, question: BatchQuestion, draws: int, seed: int) -> float:
    """How often the first model's released gap is within reach."""
    mechanism: Mechanism
    if batch.mechanism in MECHANISMS:
        mechanism = bounded(MECHANISMS[batch.mechanism], batch.bounding)
    else:
        mechanism = answerers()[batch.mechanism]
    noise, truth, near = Seeded(np.random.default_rng(seed)), question.gaps()[0], 0
    for _ in range(draws):
        released = mechanism.release(question, {}, batch.epsilon, batch.delta, noise)
        near += abs(released.values[0] - truth) <= within + 1e-9
    return near / draws


def standard_error(share: float, draws: int) -> float:
    """Of a share of draws."""
    return math.sqrt(max(share * (1 - share), 1 / draws) / draws)


def _people(batch: PlannedBatch) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Labels and protected attributes, by label, the disadvantaged first."""
    labels, protected = [], []
    for label in (0, 1):
        n0, n1 = batch.counts.groups(label)
        labels += [label] * (n0 + n1)
        protected += [0] * n0 + [1] * n1
    return np.array(labels, np.uint8), np.array(protected, np.uint8)


def _question(batch: PlannedBatch, values: NDArray[np.float64]) -> BatchQuestion:
    labels, protected = _people(batch)
    if batch.kind.parts[0].value == "correct":  # values say how right a prediction is
        values = np.where(labels == 1, values, 1 - values)
    return BatchQuestion(batch.metric, values, Records(labels, protected, (batch.metric,)))


def _with_scores(batch: PlannedBatch, gap: float) -> BatchQuestion:
    """Scores, the same for a whole group, with that gap in every stratum."""
    each = gap / 2 if batch.metric == "eodds_sum" else gap
    _, protected = _people(batch)
    scores = np.where(protected == 1, max(each, 0.0), max(-each, 0.0))
    return _question(batch, np.tile(scores, (batch.queries, 1)))


def _with_decisions(batch: PlannedBatch, ones: tuple[tuple[int, int], ...], *, alike: bool) -> BatchQuestion:
    labels, protected = _people(batch)
    rows = [np.zeros(labels.size), np.zeros(labels.size)]
    for label, groups, some in zip(batch.kind.strata, batch.strata, ones, strict=True):
        members = np.ones(labels.size, np.bool_) if label is None else labels == label
        for a, n in enumerate(groups):
            people = np.flatnonzero(members & (protected == a))
            rows[0][people[: some[a]]] = 1
            rows[1][people[: round(sum(some) * n / sum(groups))]] = 1
    others = [rows[0] if alike else rows[1]] * (batch.queries - 1)
    return _question(batch, np.array([rows[0], *others]))
