"""What a developer believes of people whose attributes were released sanitised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.mechanisms.local_protocols import PROTOCOLS, seeded
from developer.release.beliefs import AttributeGuesses, believe, from_everything, from_release
from fairwall.game.v1 import referee_service_pb2 as game

PEOPLE = 4000


def terms(epsilon: float, own: float) -> game.ReleaseTerms:
    columns = [
        game.SensitiveColumn(place=place, domain=domain, share=share, groups=groups)
        for place, domain, share, groups in ((0, 2, own, True), (1, 6, 1 - own, False))
    ]
    return game.ReleaseTerms(protocol="grr", columns=columns, epsilon=epsilon)


def believed(
    epsilon: float, age: NDArray[np.uint8], group: NDArray[np.uint8], x: NDArray[np.float64], own: float = 0.5
) -> AttributeGuesses:
    """Release both columns, the protected one at its own part of epsilon, and guess."""

    def released(values: NDArray[np.uint8], domain: int, share: float) -> NDArray[Any]:
        return PROTOCOLS["grr"].sanitise(values, domain, epsilon * share, seeded(bytes([domain]) * 32))

    encoded = np.hstack([released(group, 2, own), released(age, 6, 1 - own)])
    return believe(terms(epsilon, own), x[:, None], np.zeros(PEOPLE, np.uint8), encoded)


def right(beliefs: AttributeGuesses, group: NDArray[np.uint8]) -> tuple[float, float]:
    return float((beliefs.from_release == group).mean()), float((beliefs.from_everything == group).mean())


def drawn(seed: int) -> tuple[np.random.Generator, NDArray[np.uint8]]:
    rng = np.random.default_rng(seed)
    return rng, (rng.random(PEOPLE) < 0.6).astype(np.uint8)


def test_what_another_column_tells_is_used_where_it_tells_enough() -> None:
    rng, group = drawn(1)
    noise = rng.normal(size=PEOPLE)
    ages = (3 * group + rng.integers(0, 3, PEOPLE)).astype(np.uint8)
    related = right(believed(4.0, ages, group, noise, own=0.1), group)
    unrelated = right(believed(4.0, rng.permutation(ages), group, noise, own=0.1), group)
    # Of the groups 60% come as they are, of the ages 88%; three of the six ages are of either group.
    assert related[0] < 0.65
    assert related[1] > 0.85
    assert unrelated[1] == pytest.approx(unrelated[0], abs=0.02)


def test_a_regression_finds_what_a_faint_release_tells_of_many_people() -> None:
    # Of the release alone everybody's guess is the commoner group; features tell most, once one knows how.
    rng, group = drawn(2)
    beliefs = believed(1.0, rng.integers(0, 6, PEOPLE).astype(np.uint8), group, group + rng.normal(0, 0.4, PEOPLE))
    alone, together = right(beliefs, group)
    assert alone < 0.65
    assert together > 0.85
    assert ((beliefs.probability > 0.5) == beliefs.from_everything).all()


def test_a_release_that_says_nothing_or_everything_is_no_trouble() -> None:
    for log_ratio in (np.zeros(50), np.full(50, 700.0), np.full(50, -700.0)):
        known = np.random.default_rng(3).normal(size=(50, 2))
        for posterior in (from_release(log_ratio), from_everything(log_ratio, known, [known[:, 0]])):
            assert np.isfinite(posterior).all()
            assert posterior == pytest.approx(from_release(log_ratio), abs=1e-6)
