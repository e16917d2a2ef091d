"""The expected error and interval of an answer, before anything is spent and without reading A.

The mechanism's code answers batches about simulated people: as many as in the data set, with its labels, which are not
protected, and with groups of public shares. Two worlds, as for `compliance.mechanisms.recommended`: uniform scores
without a gap beyond chance, and 0/1 decisions, a quarter of them 1, with a gap of 0.1 beside chance. The draws are
seeded, so that every developer gets the same numbers. A batch is answered several times, each with fresh noise. The
first batch of each world chooses the mechanism for all others: choosing takes longer than answering, and the choice
depends on the predictions alone, which are of one kind whatever the share.

At most about `_PEOPLE_MAX` people are simulated, and errors are scaled: noise on counts and sums moves a gap among n
people by c / n, and estimates from noisy attributes err by c / sqrt(n); noise on gaps is made for the real number of
people. The error within cells is c / sqrt(n) by chance (world 0), and does not shrink with n beyond chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import TypeAlias

import numpy as np

from compliance.intervals.interval import within_range
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion, Mechanism, chosen, ends_of
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from fairwall.arrays import Bytes, Floats
from fairwall.laws.choice.prediction import midpoint
from fairwall.laws.mechanisms.calibration import metric_range
from fairwall.laws.mechanisms.table import MECHANISM_LAWS
from fairwall.laws.metrics.group_size_range import Shares
from fairwall.laws.metrics.metric import find_metric

_SEED = 2016
_ANSWERS = 60
"""Simulated answers for each share in each world, at most; a large batch has one for each of its models."""

_REPEATS = 5
"""Simulated answers to the same batch, at most."""

_DRAWN_MAX = 2**18
"""Most predictions for each share in each world; with many people fewer batches are enough."""

_SHARES = 3
_VALUES_MAX = 2**20
"""Most predictions in a batch: a larger batch is simulated with fewer models, at the same epsilon per model."""

_PEOPLE_MAX, _VALUES_OF_MANY = 2**14, 2**18
_MEMBERS_MIN = 2**12
"""Least number of simulated people of the rarer label."""

_POWERS = {"sums": 1.0, "cube": 1.0, "directions": 1.0, "attributes": 0.5}
"""The power of the number of people by which errors fall, by what the noise is on."""


@dataclass(frozen=True)
class Expectation:
    """The expected quality of one answer of a batch: medians over shares, worlds and draws, in the metric's unit.

    `error`: |answer, cut to the metric's range - the data set's exact value|. NaN for a mechanism whose answers are
    choices. `half_width`, `likely_half_width`: of the guaranteed and the likely interval, cut to the metric's range.
    NaN for none. `midpoint_error`: |middle of the metric's range - exact value|: the error of a guess that costs
    nothing.
    """

    error: float
    half_width: float
    likely_half_width: float
    midpoint_error: float


def expected_about(
    records: Records, mechanism: Mechanism, metric: str, models: int, epsilon: float, delta: float, shares: Shares
) -> Expectation:
    """Return `expect` for these records' numbers of people by label. No protected attribute is read."""
    qualified = int(np.count_nonzero(records.labels))
    strata = records.people - qualified, qualified
    return expect(mechanism, metric, strata, models, epsilon, delta, shares, records.metrics)


@lru_cache(maxsize=256)
def expect(
    mechanism: Mechanism,
    metric: str,
    strata: tuple[int, int],
    models: int,
    epsilon: float,
    delta: float,
    shares: Shares,
    metrics: tuple[str, ...] = (),
) -> Expectation:
    """Return the expected quality of an answer; ValueError for a batch that the mechanism refuses.

    Parameters
    ----------
    strata : numbers of people with label 0 and with label 1.
    models : in the batch, at least 1.
    epsilon, delta : spent on the whole batch.
    shares : of the disadvantaged group, in each stratum.
    metrics : all audited metrics, which cells of similar people serve together; empty for `metric` alone.
    """
    about = metrics or (metric,), metric, strata, models, shares
    found = [_imagined(mechanism, about, world, epsilon, delta) for world in _worlds(metric)]
    # Each world has the same weight, whatever its number of answers.
    most = max(len(values) for world in found for values in world)
    errors, widths, likely_widths, distances = (
        np.concatenate([np.resize(values, most) for values in of_worlds]) for of_worlds in zip(*found, strict=True)
    )
    if MECHANISM_LAWS[mechanism.name].is_choice:
        return Expectation(math.nan, math.nan, math.nan, _median(distances))
    return Expectation(_median(errors), _median(widths), _median(likely_widths), _median(distances))


_About: TypeAlias = tuple[tuple[str, ...], str, tuple[int, int], int, Shares]
"""The audited metrics, the requested one, the numbers of people by label, the number of models, and the shares."""


def _imagined(mechanism: Mechanism, about: _About, world: int, epsilon: float, delta: float) -> tuple[Floats, ...]:
    """Return errors, half-widths, likely half-widths and distances from the midpoint, of answers in one world.

    Fewer people are simulated if errors can be scaled to all; the mechanism is chosen, and noise on gaps made, for all.
    """
    metrics, metric, strata, _, shares = about
    stands_for = max(1.0, min(sum(strata) / _PEOPLE_MAX, min(strata) / _MEMBERS_MIN))
    few = round(strata[0] / stands_for), round(strata[1] / stands_for)
    answering, spent, asked = _chosen(mechanism, about, few, stands_for, world, epsilon, delta)
    law = MECHANISM_LAWS[answering.name]
    power, scaled = _POWERS.get(law.noise_on, 0.0), law.noise_on == "gaps" and not law.may_be_nan
    if law.noise_on == "cells":
        power = 0.0 if world else 0.5
    elif stands_for > 1 and not power and not scaled:
        stands_for, few = 1.0, strata
        answering, spent, asked = _chosen(mechanism, about, few, stands_for, world, epsilon, delta)
    fewer = asked.queries
    answers = max(1, min(_ANSWERS // fewer, _DRAWN_MAX // (fewer * sum(few))))
    repeats = max(1, min(_REPEATS, _ANSWERS // fewer))
    found = tuple(list[Floats]() for _ in range(4))
    for share, draw in product(np.linspace(shares.low, shares.high, _SHARES), range(math.ceil(answers / _REPEATS))):
        generator = np.random.default_rng((_SEED, int(1000 * share), world, draw))
        question = _question(metrics, metric, few, fewer, share, shares.minimum_group, world, generator)
        truth = question.gaps()
        if scaled:
            question = replace(question, stands_for=stands_for)
        for _ in range(repeats):
            released = answering.release(question, NO_FACTS, spent, delta, Seeded(generator))
            found[0].append(np.abs(np.clip(released.values, *metric_range(metric)) - truth) / stands_for**power)
            for halves, (low, high) in zip(found[1:], ends_of(released), strict=False):
                low, high = within_range(low, high, metric)
                with np.errstate(invalid="ignore"):  # both ends of a ratio may be infinite
                    halves.append((high - low) / 2 / stands_for**power)
        found[3].append(np.abs(midpoint(metric) - truth))
    return tuple(map(np.concatenate, found))


def _chosen(
    mechanism: Mechanism,
    about: _About,
    strata: tuple[int, int],
    stands_for: float,
    world: int,
    epsilon: float,
    delta: float,
) -> tuple[Mechanism, float, BatchQuestion]:
    """Return the mechanism, the epsilon, and a question about one or several of the batch's models."""
    metrics, metric, _, models, shares = about
    fewer = max(1, min(models, (_VALUES_MAX if stands_for == 1 else _VALUES_OF_MANY) // sum(strata)))
    spent, generator = epsilon * fewer / models, np.random.default_rng((_SEED, int(1000 * shares.low), world, 0))
    asked = _question(metrics, metric, strata, fewer, shares.low, shares.minimum_group, world, generator)
    asked = replace(asked, stands_for=stands_for)
    return chosen(mechanism, metric, asked.asked.people, fewer, spent, delta, asked), spent, asked


def _worlds(metric: str) -> range:
    """Return the worlds that have the metric: 0, scores, unless it needs decisions, and 1, decisions."""
    return range(1 if find_metric(metric).binary else 0, 2)


def _question(
    metrics: tuple[str, ...],
    metric: str,
    strata: tuple[int, int],
    models: int,
    share: float,
    minimum_group: int,
    world: int,
    generator: np.random.Generator,
) -> BatchQuestion:
    labels = np.repeat(np.array([0, 1], np.uint8), strata)
    protected = np.concatenate([_groups(share, people, minimum_group) for people in strata])
    predictions = generator.random((models, labels.size))
    if world == 1:
        rate = np.where(protected == 1, 0.25 + 0.1 * share, 0.25 - 0.1 * (1 - share))
        predictions = (predictions < rate).astype(np.float64)
    return BatchQuestion(metric, predictions, Records.imagined(labels, protected, metrics, minimum_group))


def _groups(share: float, people: int, minimum_group: int) -> Bytes:
    """Return a stratum's protected attributes; each group has its minimum, or half of too few people."""
    least = min(minimum_group, people // 2)
    fewest = min(max(round(share * people), least), people - least)
    return (np.arange(people) >= fewest).astype(np.uint8)


def _median(values: Floats) -> float:
    return float(np.median(values)) if not np.isnan(values).all() else math.nan
