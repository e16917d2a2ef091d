"""Guaranteed intervals hold in worlds that are chosen against the mechanism, of 60 to 10,000 people."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion, ends_of
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from fairwall.laws.noise.quantiles import LEVEL

NAMES = ("counts", "counts-gaussian", "cube", "low-rank", "randomized-response")
SIZES = tuple(
    (people, models)
    for people, models in itertools.product((60, 1_000, 10_000), (1, 5, 25, 400))
    if people * models <= 400_000
)
EPSILONS = (0.2, 1.0, 7.0)
AGAINST = ("highest", "tails", "one's own", "one cell", "few", "by chance")
FEWEST = 8

CASES = [  # of each mechanism and size two of eighteen worlds and epsilons, and all of them in turn
    (name, people, models, against, epsilon)
    for turn, (name, (people, models)) in enumerate(itertools.product(NAMES, SIZES))
    for place, (against, epsilon) in enumerate(itertools.product(AGAINST, EPSILONS))
    if (place + turn) % 9 == 0
]
DRAWS = 180
"""Of scores, and as many of decisions."""


def world(people: int, models: int, against: str, kind: str) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Make models that are near one another, and groups that are against what is measured of them."""
    rng = np.random.default_rng((people, models))
    common, own = rng.normal(size=people), 0.3 * rng.normal(size=(models, people))
    scores = 1 / (1 + np.exp(-common - own))
    rows = scores if kind == "scores" else (scores > 0.6).astype(np.float64)
    by = {
        "highest": common,
        "tails": np.abs(common),
        "one's own": own[0],
        "one cell": -np.abs(common - np.quantile(common, 0.7)) - np.abs(own[0]),
        "few": rows[0] + 1e-3 * own[0],
        "by chance": rng.random(people),
    }[against]
    groups = np.ones(people, np.uint8)
    groups[np.argsort(-by)[: FEWEST if against == "few" else people // 6]] = 0
    return rows, groups


@pytest.mark.slow(seconds=5)
@pytest.mark.parametrize(("name", "people", "models", "against", "epsilon"), CASES)
def test_an_interval_holds_whoever_is_who(name: str, people: int, models: int, against: str, epsilon: float) -> None:
    mechanism, delta = MECHANISMS[name], 1e-6 if name == "counts-gaussian" else 0.0
    # Of 400 models one draw tells 400 times; two cubes take long.
    draws, inside = DRAWS // (10 if models > 25 else 5 if name == "low-rank" else 1), []
    for kind in ("scores", "decisions"):
        rows, groups = world(people, models, against, kind)
        records = Records(groups, groups, ("sp",), minimum_group=FEWEST)
        question = BatchQuestion("sp", rows, records)
        gaps = question.gaps()
        for draw in range(draws):
            noise, facts = Seeded(np.random.default_rng((7, draw))), NO_FACTS
            if draw % 2:  # a later batch: N0 is bought
                facts = mechanism.release(BatchQuestion("sp", rows[:1] ** 2, records), facts, 0.1, delta, noise).facts
            low, high = ends_of(mechanism.release(question, facts, epsilon, delta, noise))[0]
            assert np.isfinite(low).all()
            inside.append(np.mean((low <= gaps + 1e-9) & (gaps <= high + 1e-9)))
    # Models err together, so that draws are counted; below by chance once in 1e6.
    short = LEVEL - np.mean(inside)
    assert short <= 5 * np.std(inside) / np.sqrt(len(inside))
