"""The people accepted by models that are made to find groups, and the search for the queries that reveal most.

The search simulates games on people of the public shares. The service's counting is public: which models share a table,
when it returns rows, and the noise of both. So a `SubsetPlan` is tried on drawn people with the real decoder. From one
batch, of blocks as small as a shared table allows or of one half, numbers are changed in ever smaller steps while the
score rises. Both results are compared on fresh draws with the blocks that the allowed models and batches would make.
Draws are the same for every plan, and in every trial, so that a cell is searched once.

Blocks of uneven size reveal less: 19 of 30, 15 or 7 people, and one of all others, were 0.5 to 16 points behind 20
equal ones (5 and 10 groups of Adult, epsilon 1, 5 and 20, 1 to 16 batches).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from developer.climbing import climbed
from developer.groups.decode import EXACT, read
from fairwall.arrays import Floats
from fairwall.laws.groups.group_counts import (
    DRAWN_MAX,
    PEOPLE_A_STRATUM,
    WORTH,
    balanced,
    most_shared,
    noise_rate,
    noise_variance,
    strata_of,
)
from fairwall.laws.noise.row_noise import Ball
from fairwall.laws.privacy.amounts import part_of

_TRIED, _FINAL = 30_000, 100_000
"""People drawn, over all games together, to score a plan, and to compare the last plans."""

_LARGEST = 1e10
"""Largest (rows squared) times people times groups, at which answers are read in a second or two."""

Choose = Callable[[np.random.Generator, int, int], Floats]
"""A function that returns the decisions of a batch, (models, people), given the numbers of people and parts."""


def halves(rng: np.random.Generator, people: int, parts: int) -> Floats:
    """Return `parts` models that each accept a random half of the people."""
    places = np.tile(np.arange(people), (parts, 1))
    return (rng.permuted(places, axis=1) < people // 2).astype(np.float64)


def blocks(rng: np.random.Generator, people: int, parts: int) -> Floats:
    """Return models that identify each of `parts` random blocks, at least 2, of equal size by their decisions.

    A service counts each block for the price of one where its rules let the models share a table.
    """
    block, models = rng.permutation(people) % parts, (parts - 1).bit_length()
    return np.asarray(block[np.newaxis] >> np.arange(models)[:, np.newaxis] & 1, np.float64)


SUBSETS: dict[str, Choose] = {"blocks": blocks, "halves": halves}

SEARCHED = "searched"
"""The better of them by `found`."""

STRATEGIES = (*SUBSETS, SEARCHED)


@dataclass(frozen=True)
class SubsetPlan:
    """A sequence of batches, each of `parts` blocks, or of `parts` models that accept a half."""

    subsets: str
    parts: int
    batches: int


@dataclass(frozen=True)
class SearchBounds:
    """Public knowledge (the groups' shares, the number of people, epsilon) and the limits of a plan."""

    shares: tuple[float, ...]
    people: int
    epsilon: float
    batches: int
    models: int

    @property
    def given(self) -> SubsetPlan:
        """The blocks with the most models and batches."""
        return SubsetPlan("blocks", min(2**self.models, self.people), self.batches)

    def near(self, plan: SubsetPlan, step: float) -> Iterator[SubsetPlan]:
        """Yield the plans with one number `step` times larger or smaller."""
        least, most = (2, self.given.parts) if plan.subsets == "blocks" else (1, self.models)
        for parts in (max(math.floor(plan.parts / step), least), min(math.ceil(plan.parts * step), most)):
            yield replace(plan, parts=parts)
        for batches in (max(math.floor(plan.batches / step), 1), min(math.ceil(plan.batches * step), self.batches)):
            yield replace(plan, batches=batches)


@lru_cache
def found(bounds: SearchBounds) -> SubsetPlan:
    """Return the plan, of the blocks' and the halves' climbs and the given one, with the best score on fresh draws."""

    @cache
    def score(plan: SubsetPlan) -> float:
        return _score(plan, bounds, _TRIED, seed=0)

    tables = min(max(bounds.people // PEOPLE_A_STRATUM, 2), bounds.given.parts)
    starts = (SubsetPlan("blocks", tables, 1), SubsetPlan("halves", 1, 1))
    tops = [climbed(plan, bounds.near, score) for plan in starts]
    return max((bounds.given, *tops), key=lambda plan: _score(plan, bounds, _FINAL, seed=1))


def _score(plan: SubsetPlan, bounds: SearchBounds, drawn: int, seed: int) -> float:
    """Return a plan's balanced accuracy on drawn people; -inf where the plan takes too long."""
    rng, groups, games = np.random.default_rng(seed), len(bounds.shares), math.ceil(drawn / bounds.people)
    cells = rng.choice(groups, (games, bounds.people), p=bounds.shares)
    batches = []
    for _ in range(plan.batches):
        decisions = SUBSETS[plan.subsets](rng, bounds.people, plan.parts)
        batches.append(_answered(decisions, part_of(bounds.epsilon, plan.batches), groups, games, rng))
        if (len(batches[0][0]) * plan.batches) ** 2 * bounds.people * groups > _LARGEST:
            return -math.inf
    strata, variances, noise = zip(*batches, strict=True)
    rows = np.concatenate(strata)
    exact = np.stack([(cells == group).astype(np.float64) @ rows.T for group in range(groups)], axis=-1)
    counts = exact + np.concatenate(noise, axis=1)
    right = read(rows, counts, np.concatenate(variances), np.array(bounds.shares)) == cells
    named, people = np.bincount(cells[right], minlength=groups), np.bincount(cells.ravel(), minlength=groups)
    return float((named[people > 0] / people[people > 0]).mean())


def _answered(
    decisions: Floats, epsilon: float, groups: int, games: int, rng: np.random.Generator
) -> tuple[Floats, Floats, NDArray[Any]]:
    """Return a simulated batch: weights (rows, people), noise variances (rows,) and noise (games, rows, groups)."""
    # A ball's noise is slow to draw, and is replaced by a Gaussian, which is close; a table's noise is not Gaussian,
    # and reveals up to two points more.
    models, people = decisions.shape
    chosen = decisions == 1
    answers, stratum = strata_of(chosen)
    shared = models == 1 or len(answers) <= most_shared(people, [2] * models)
    rate = noise_rate(epsilon if shared else epsilon / models)
    variance, looked = noise_variance(rate, groups), len(answers) if shared else 2
    if models > 1 and not math.isinf(epsilon) and (models + 1) * (groups - 1) ** 2 <= DRAWN_MAX:
        of_rows = Ball(noise_rate(epsilon, 1.0), groups, (1,) * (models + 1)).variance(1)
        if of_rows < WORTH * looked * variance:
            drawn = rng.standard_normal((games, models + 1, groups)) * math.sqrt(of_rows * groups / (groups - 1))
            rows, noise = np.vstack([np.ones(people), 2 * decisions - 1]), drawn - drawn.mean(axis=-1, keepdims=True)
            return rows, np.full(len(rows), max(of_rows, EXACT)), noise
    strata = np.arange(looked)[:, np.newaxis] == stratum if shared else np.vstack([chosen, ~chosen])
    noise = balanced(rng, rate, games * len(strata), groups).reshape(games, -1, groups)
    return strata.astype(np.float64), np.full(len(strata), max(variance, EXACT)), noise
