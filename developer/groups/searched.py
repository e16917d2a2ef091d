"""Search for the questions that tell most of who is in which group, by simulation on people of the public shares.

How a service counts is public: which models share a table, where it tells rows, and the noise of both. So a `Plan` is
tried on people who are drawn, and read by what reads the answers. From one batch, of blocks as small as a shared table
allows or of one half, numbers are changed in ever smaller steps while that tells more. Both are held on fresh draws
against the blocks that as many models and batches as there may be would make. Draws are the same for every plan, and in
every trial, so that a cell is searched once.

Blocks of uneven size tell less: 19 of 30, 15 or 7 people, and one of all others, were 0.5 to 16 points behind 20 alike
(5 and 10 groups of Adult, epsilon 1, 5 and 20, 1 to 16 batches).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from developer.climbing import climbed
from developer.groups.decode import EXACT, read
from developer.groups.subsets import SUBSETS, Plan
from fairwall.laws.ball import Ball
from fairwall.laws.decimals import part_of
from fairwall.laws.groups import (
    DRAWN_MAX,
    PEOPLE_A_STRATUM,
    WORTH,
    balanced,
    most_shared,
    noise_rate,
    noise_variance,
    strata_of,
)

_TRIED, _FINAL = 30_000, 100_000
"""On how many drawn people, of all games together, a plan is tried, and the last ones are compared."""

_LARGEST = 1e10
"""The square of all rows, times people and groups, up to which answers are read in a second or two."""


@dataclass(frozen=True)
class Asked:
    """What is known beforehand: the groups' shares, how many people there are, epsilon, and what a plan has at most."""

    shares: tuple[float, ...]
    people: int
    epsilon: float
    batches: int
    models: int

    @property
    def given(self) -> Plan:
        """The blocks of as many models and batches as there may be."""
        return Plan("blocks", min(2**self.models, self.people), self.batches)

    def near(self, plan: Plan, step: float) -> Iterator[Plan]:
        """Give the plans of which one number is so many times as large or as small."""
        least, most = (2, self.given.parts) if plan.subsets == "blocks" else (1, self.models)
        for parts in (max(math.floor(plan.parts / step), least), min(math.ceil(plan.parts * step), most)):
            yield replace(plan, parts=parts)
        for batches in (max(math.floor(plan.batches / step), 1), min(math.ceil(plan.batches * step), self.batches)):
            yield replace(plan, batches=batches)


@lru_cache
def found(asked: Asked) -> Plan:
    """Climb to the plans of blocks and of halves that tell most, and take what tells most on fresh draws."""

    @cache
    def score(plan: Plan) -> float:
        return _score(plan, asked, _TRIED, seed=0)

    tables = min(max(asked.people // PEOPLE_A_STRATUM, 2), asked.given.parts)
    starts = (Plan("blocks", tables, 1), Plan("halves", 1, 1))
    tops = [climbed(plan, asked.near, score) for plan in starts]
    return max((asked.given, *tops), key=lambda plan: _score(plan, asked, _FINAL, seed=1))


def _score(plan: Plan, asked: Asked, drawn: int, seed: int) -> float:
    """Play a plan on so many drawn people: balanced accuracy; -inf where that takes too long."""
    rng, groups, games = np.random.default_rng(seed), len(asked.shares), math.ceil(drawn / asked.people)
    cells = rng.choice(groups, (games, asked.people), p=asked.shares)
    batches = []
    for _ in range(plan.batches):
        decisions = SUBSETS[plan.subsets](rng, asked.people, plan.parts)
        batches.append(_answered(decisions, part_of(asked.epsilon, plan.batches), groups, games, rng))
        if (len(batches[0][0]) * plan.batches) ** 2 * asked.people * groups > _LARGEST:
            return -math.inf
    strata, variances, noise = zip(*batches, strict=True)
    rows = np.concatenate(strata)
    exact = np.stack([(cells == group).astype(np.float64) @ rows.T for group in range(groups)], axis=-1)
    counts = exact + np.concatenate(noise, axis=1)
    right = read(rows, counts, np.concatenate(variances), np.array(asked.shares)) == cells
    named, people = np.bincount(cells[right], minlength=groups), np.bincount(cells.ravel(), minlength=groups)
    return float((named[people > 0] / people[people > 0]).mean())


def _answered(
    decisions: NDArray[np.float64], epsilon: float, groups: int, games: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[Any]]:
    """Tell a batch as a service does: what people count in its rows or strata, and the noise with its variances.

    Shapes are (rows, people), (rows,) for variances, and (games, rows, groups) for noise. Noise of a ball takes long to
    draw, and is nearly Gaussian; that of a table is not, and tells up to two points more.
    """
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
